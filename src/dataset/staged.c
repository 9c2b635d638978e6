/*
 * staged.c - a copy of a data set that `stoker stage` wrote: tar shards and a table.
 *
 * The table has the samples in the order of the original data set, so split, folds and epochs are
 * the same as there. Pictures that could not be copied have a row without a member: the test set
 * keeps such a row, elsewhere the sample is left out.
 */
#include "dataset/listing.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"

static const char *const about_names[] = {STK_STAGED_ABOUT, NULL};
static const char *const samples_names[] = {STK_STAGED_SAMPLES, NULL};

/* The columns of STK_STAGED_HEADER; the column that divides the samples follows them. */
enum { SPLIT, CLASS, ID, PATH, MEMBER, COLUMNS, PART = COLUMNS };

/* The lists of a data set, by the name that a row has for them. */
typedef struct split_list {
    const char *name;
    stk_sample_list *list;
    size_t *capacity;
} split_list;

bool stk_staged_exists(const stk_listing *listing) {
    return stk_listing_entry(listing, about_names, false) != NULL &&
           stk_listing_entry(listing, samples_names, false) != NULL;
}

static stk_status fail_damaged(const stk_listing *listing, const char *file, const char *what,
                               stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s/%s is not what stoker stage wrote: %s; stage the data set again",
                    listing->dataset->root, file, what);
}

/* Keeps a text of the description, or the fallback when it has none. */
static stk_status keep_text(stk_listing *listing, const stk_json *about, const char *key,
                            const char **text, stk_error *err) {
    const char *value = stk_json_string(stk_json_get(about, key));
    if (value != NULL) {
        *text = stk_listing_keep(listing, value, strlen(value));
    }
    return *text != NULL ? STK_OK : STK_FAIL_MEMORY(err, STK_STAGED_ABOUT);
}

/* Reads the names of the columns of a submission. */
static stk_status read_about(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_bytes bytes = {0};
    stk_json *about = NULL;
    uint64_t format = 0;
    stk_error cause = {0};
    stk_status status = stk_store_read(dataset->store, STK_STAGED_ABOUT, &bytes, err);
    if (status == STK_OK &&
        stk_json_parse((const char *)bytes.data, bytes.size, &about, &cause) != STK_OK) {
        status = fail_damaged(listing, STK_STAGED_ABOUT, cause.message, err);
    }
    if (status == STK_OK && !stk_json_u64(stk_json_get(about, "format"), &format)) {
        status = fail_damaged(listing, STK_STAGED_ABOUT, "it names no format", err);
    }
    if (status == STK_OK && format != STK_STAGED_FORMAT) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s was staged by another version of Stoker (format %llu, this one knows "
                          "%d); stage the data set again",
                          dataset->root, (unsigned long long)format, STK_STAGED_FORMAT);
    }
    STK_THEN(status, keep_text(listing, about, "id_name", &dataset->id_name, err));
    STK_THEN(status, keep_text(listing, about, "label_name", &dataset->label_name, err));
    stk_json_free(about);
    stk_bytes_free(&bytes);
    return status;
}

static stk_status check_table(const stk_listing *listing, const stk_csv *csv, stk_error *err) {
    const char *names = STK_STAGED_HEADER; /* those of the columns that were not compared yet */
    bool fits = csv->columns == COLUMNS || csv->columns == PART + 1;
    for (int i = 0; fits && i < COLUMNS; i++) {
        size_t length = strcspn(names, ",");
        fits = strlen(csv->header[i]) == length && memcmp(csv->header[i], names, length) == 0;
        names += length + (names[length] != '\0' ? 1 : 0);
    }
    return fits ? STK_OK
                : fail_damaged(listing, STK_STAGED_SAMPLES, "its columns have other names", err);
}

/* The column that was asked for must be the one that was staged. */
static stk_status check_part(const stk_listing *listing, const stk_csv *csv, stk_error *err) {
    const char *flag;
    const char *name = stk_division_column(listing->options, &flag);
    bool staged = csv->columns > PART;
    if (name == NULL || (staged && stk_str_equal_nocase(csv->header[PART], name))) {
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "%s %s: %s was staged %s%s; stage the data set again with %s %s", flag, name,
                    listing->dataset->root, staged ? "with column " : "without such a column",
                    staged ? csv->header[PART] : "", flag, name);
}

static stk_status add_row(stk_listing *listing, const split_list *split, const stk_csv *csv,
                          size_t row, stk_first_names *missing, stk_error *err) {
    const char *class_name = stk_csv_cell(csv, row, CLASS);
    const char *id = stk_csv_cell(csv, row, ID);
    const char *member = stk_csv_cell(csv, row, MEMBER);
    const char *flag;
    bool is_test = split->list == &listing->dataset->test;
    stk_sample sample = {.id = stk_listing_keep(listing, id, strlen(id)), .label = -1};
    stk_status status = sample.id != NULL ? STK_OK : STK_FAIL_MEMORY(err, STK_STAGED_SAMPLES);
    if (status == STK_OK && class_name[0] != '\0') {
        status = stk_listing_class(listing, class_name, &sample.label, err);
    } else if (status == STK_OK && !is_test) {
        status = fail_damaged(listing, STK_STAGED_SAMPLES, "a sample has no class", err);
    }
    if (status == STK_OK && split->list == &listing->dataset->train &&
        stk_division_column(listing->options, &flag) != NULL) {
        status = stk_division_add(listing, stk_csv_cell(csv, row, PART), &sample.part, err);
    }
    if (status == STK_OK && member[0] != '\0') {
        sample.path = stk_listing_join(listing, split->name, member);
        status = sample.path != NULL ? STK_OK : STK_FAIL_MEMORY(err, STK_STAGED_SAMPLES);
    } else if (is_test) {
        stk_first_names_add(missing, sample.id);
    }
    return status == STK_OK && (is_test || sample.path != NULL)
               ? stk_listing_add(split->list, split->capacity, sample, err)
               : status;
}

static stk_status add_rows(stk_listing *listing, const stk_csv *csv, bool only_test,
                           stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const split_list splits[] = {
        {"train", &dataset->train, &listing->train_capacity},
        {"val", &dataset->val, &listing->val_capacity},
        {"test", &dataset->test, &listing->test_capacity},
    };
    enum { SPLITS = STK_COUNT(splits), TEST = SPLITS - 1 };
    stk_first_names missing = {0};
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
        int s = 0;
        while (s < SPLITS && !stk_str_equal(splits[s].name, stk_csv_cell(csv, row, SPLIT))) {
            s++;
        }
        if (s == SPLITS) {
            status = fail_damaged(listing, STK_STAGED_SAMPLES, "a split has no known name", err);
        } else if (s == TEST || !only_test) {
            status = add_row(listing, &splits[s], csv, row, &missing, err);
        }
    }
    if (status == STK_OK && missing.count > 0) {
        stk_events_warning(listing->events,
                           "%zu of %zu test pictures were not there when %s was staged (first: "
                           "%s); their rows get class priors",
                           missing.count, dataset->test.count, dataset->root, missing.first[0]);
    }
    return status;
}

/* For callers that only want pictures: labels without classes are dropped. */
static void forget_classes(stk_dataset *dataset) {
    dataset->class_count = 0;
    for (size_t i = 0; i < dataset->test.count; i++) {
        dataset->test.items[i].label = -1;
    }
}

stk_status stk_staged_list(stk_listing *listing, bool only_test, stk_error *err) {
    stk_csv csv = {0};
    stk_status status = read_about(listing, err);
    STK_THEN(status, stk_listing_table(listing, STK_STAGED_SAMPLES, &csv, NULL, err));
    if (status != STK_OK) {
        return status;
    }
    status = check_table(listing, &csv, err);
    if (status == STK_OK && !only_test) {
        status = check_part(listing, &csv, err);
    }
    STK_THEN(status, add_rows(listing, &csv, only_test, err));
    STK_THEN(status, stk_testset_header(listing, listing->dataset->id_name, err));
    if (only_test) {
        forget_classes(listing->dataset);
    }
    stk_csv_free(&csv);
    return status;
}
