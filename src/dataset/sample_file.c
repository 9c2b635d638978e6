/* sample_file.c - finds the sample submission by its name, and reads it. */
#include "dataset/column_profile.h"
#include "dataset/listing.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const template_names[] = {"sample_submission.csv", "sampleSubmission.csv", NULL};

/* Endings of packed files. */
static const char *const packed_tails[] = {".zip", ".gz", ".7z", ".bz2", ".xz", ".zst", ".tar"};

/* Words that make a sample of a submission, beside the word itself. */
static bool is_submission_of(const char *name) {
    static const char *const submission[] = {"submission", "submissions", NULL};
    static const char *const like[] = {"format", "example", "template", "test", NULL};
    return stk_has_word_of(name, submission) && stk_has_word_of(name, like);
}

/*
 * Whether a file's name says that it is a sample submission: "kaggle_sample_submission.csv",
 * "SampleSub-stage2.csv", "submission_sample.csv", "submission_format.csv", but not
 * "subsample.csv". *packed is set when it has to be unpacked first.
 */
bool stk_template_is_name(const char *name, bool *packed) {
    size_t length = strlen(name);
    *packed = false;
    for (size_t i = 0; !*packed && i < STK_COUNT(packed_tails); i++) {
        *packed = stk_str_ends_with_nocase(name, packed_tails[i]);
        length -= *packed ? strlen(packed_tails[i]) : 0;
    }
    const char *sample = strcasestr(name, "sample");
    const char *sub = sample != NULL ? strcasestr(sample, "sub") : NULL;
    sub = sample != NULL && sub == NULL ? strcasestr(name, "submission") : sub;
    const char *csv = name + length - (length < 4 ? length : 4);
    bool says = (sub != NULL && sub < csv) || is_submission_of(name);
    return says && strncasecmp(csv, ".csv", 4) == 0;
}

/* The file that --sample-submission names. */
static stk_status named_template(stk_listing *listing, const char **file, stk_error *err) {
    const char *wanted = listing->options->sample_submission;
    bool there = false;
    stk_status status = stk_store_has(listing->dataset->store, wanted, &there, err);
    if (status == STK_OK && !there) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "--sample-submission %s: there is no such file in %s; name one that is "
                          "there, or pass none",
                          wanted, listing->dataset->root);
    }
    *file = wanted;
    return status;
}

static stk_status fail_several(const stk_listing *listing, const stk_first_names *found,
                               stk_error *err) {
    char names[300];
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has %zu files that could be the sample submission: %s; say which with "
                    "--sample-submission FILE, or pass --sample-submission none",
                    listing->dataset->root, found->count,
                    stk_first_names_text(found, names, sizeof names));
}

/* A table at the top that is called a submission: it has the rows and the columns of one. */
static const char *only_submission(const stk_listing *listing) {
    static const char *const submission[] = {"submission", "submissions", NULL};
    const char *found = NULL;
    for (size_t i = 0; i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        if (!entry->is_dir && stk_str_ends_with_nocase(entry->name, ".csv") &&
            stk_has_word_of(entry->name, submission)) {
            if (found != NULL) {
                return NULL;
            }
            found = entry->name;
        }
    }
    return found;
}

/* A sample in a folder of the location, or one that is only called a submission: better than none.
 */
static stk_status find_other(stk_listing *listing, const char **file, stk_error *err) {
    const stk_first_names *below = &listing->samples_below;
    if (below->count > 1) {
        return fail_several(listing, below, err);
    }
    *file = below->count == 1 ? below->first[0] : only_submission(listing);
    if (*file != NULL && !listing->told_sample) {
        char what[300];
        listing->told_sample = true;
        snprintf(what, sizeof what, "the sample submission from %.250s", *file);
        stk_events_decision(listing->events, what, "no other file could be it");
    }
    return STK_OK;
}

void stk_template_note(stk_listing *listing, const char *path) {
    bool packed;
    if (strchr(path, '/') != NULL && stk_template_is_name(stk_path_base(path), &packed)) {
        stk_first_names_add(&listing->samples_below, path);
    }
}

stk_status stk_template_find(stk_listing *listing, const char **file, stk_error *err) {
    const char *wanted = listing->options->sample_submission;
    stk_first_names plain = {0};
    stk_first_names packed = {0};
    *file = NULL;
    if (wanted != NULL && stk_str_equal_nocase(wanted, "none")) {
        return STK_OK;
    }
    if (wanted != NULL) {
        return named_template(listing, file, err);
    }
    *file = stk_listing_entry(listing, template_names, false);
    for (size_t i = 0; *file == NULL && i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        bool is_packed;
        if (!entry->is_dir && stk_template_is_name(entry->name, &is_packed)) {
            stk_first_names_add(is_packed ? &packed : &plain, entry->name);
        }
    }
    if (plain.count > 1) {
        return fail_several(listing, &plain, err);
    }
    if (plain.count == 0 && packed.count > 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s/%s is packed, so nobody knows which rows the submission needs; unpack "
                        "it, or pass --sample-submission none to do without it",
                        listing->dataset->root, packed.first[0]);
    }
    *file = plain.count == 1 ? plain.first[0] : *file;
    return *file == NULL ? find_other(listing, file, err) : STK_OK;
}

stk_status stk_testset_open_sample(stk_listing *listing, stk_sample_file *sample, stk_error *err) {
    *sample = (stk_sample_file){.further = -1};
    stk_status status = stk_template_find(listing, &sample->file, err);
    if (status == STK_OK && sample->file != NULL) {
        status = stk_listing_table(listing, sample->file, &sample->csv, NULL, err);
        sample->file = status == STK_OK ? sample->file : NULL;
    }
    return status;
}

void stk_testset_close_sample(stk_sample_file *sample) {
    if (sample->file != NULL) {
        stk_csv_free(&sample->csv);
    }
    memset(sample, 0, sizeof *sample);
}

int stk_template_kept(const stk_sample_file *sample, size_t id_column) {
    for (size_t i = 0; i < sample->csv.columns; i++) {
        if (sample->csv.header[i][0] == '\0' && i != id_column) {
            return (int)i;
        }
    }
    return sample->further;
}

/* Whether a column of the sample holds what no model could know: Usage, or one of few texts. */
static bool is_further(const stk_csv *csv, size_t column) {
    static const char *const words[] = {"usage", "confidence", "conf", "split", "public", NULL};
    double x;
    bool texts = csv->rows > 0;
    for (size_t row = 0; texts && row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        texts = cell[0] != '\0' && !stk_cell_number(cell, &x);
    }
    return texts || stk_has_word_of(csv->header[column], words);
}

void stk_sample_find_further(stk_sample_file *sample, size_t id, const stk_csv *train,
                             const stk_events *told) {
    const stk_csv *csv = &sample->csv;
    size_t known = SIZE_MAX;
    size_t other = SIZE_MAX;
    for (size_t c = 0; c < csv->columns; c++) {
        bool trains = stk_csv_column(train, csv->header[c]) != SIZE_MAX;
        known = c != id && trains ? c : known;
        other = c != id && !trains ? c : other;
    }
    if (csv->columns != 3 || known == SIZE_MAX || other == SIZE_MAX ||
        stk_template_kept(sample, id) >= 0 || !is_further(csv, other)) {
        return;
    }
    sample->further = (int)other;
    stk_events_warning(told,
                       "column '%s' of %s is in no table of labels: its cells are copied, and "
                       "column '%s' takes the answers",
                       csv->header[other], sample->file, csv->header[known]);
}
