/* listing.c - the texts, classes and samples of a data set that is being listed. */
#include "dataset/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/names.h"

void stk_first_names_add(stk_first_names *few, const char *name) {
    if (few->count < sizeof few->first / sizeof *few->first) {
        few->first[few->count] = name;
    }
    few->count++;
}

const char *stk_first_names_text(const stk_first_names *few, char *buf, size_t size) {
    size_t length = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < few->count && i < 3 && length < size; i++) {
        length += (size_t)snprintf(buf + length, size - length, "%s%.80s", i > 0 ? ", " : "",
                                   few->first[i]);
    }
    if (few->count > 3 && length < size) {
        snprintf(buf + length, size - length, " ...");
    }
    return buf;
}

const char *stk_plural(size_t count) {
    return count == 1 ? "" : "s";
}

char *stk_listing_keep(stk_listing *listing, const char *text, size_t length) {
    return stk_text_blocks_keep(&listing->dataset->texts->blocks, text, length);
}

char *stk_listing_join(stk_listing *listing, const char *folder, const char *name) {
    size_t n = strlen(folder);
    size_t m = strlen(name);
    if (n == 0) {
        return stk_listing_keep(listing, name, m);
    }
    char *joined = stk_text_blocks_cut(&listing->dataset->texts->blocks, n + m + 2);
    if (joined != NULL) {
        memcpy(joined, folder, n);
        joined[n] = '/';
        memcpy(joined + n + 1, name, m + 1);
    }
    return joined;
}

char *stk_listing_full(const stk_listing *listing, const char *below) {
    return below[0] != '\0' ? stk_path_join(listing->dataset->root, below)
                            : stk_mem_strdup(listing->dataset->root);
}

const char *stk_listing_entry(const stk_listing *listing, const char *const *names, bool is_dir) {
    for (int pass = 0; pass < 2; pass++) {
        for (const char *const *name = names; *name != NULL; name++) {
            for (size_t i = 0; i < listing->top.count; i++) {
                const stk_dir_entry *entry = &listing->top.entries[i];
                if (entry->is_dir == is_dir &&
                    (pass == 0 ? stk_str_equal(entry->name, *name)
                               : stk_str_equal_nocase(entry->name, *name))) {
                    return entry->name;
                }
            }
        }
    }
    return NULL;
}

stk_status stk_listing_class(stk_listing *listing, const char *name, int *label, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    size_t number;
    if (stk_map_find(&listing->class_labels, name, &number)) {
        *label = (int)number;
        return STK_OK;
    }
    number = (size_t)dataset->class_count;
    bool added;
    const char *copy = stk_listing_keep(listing, name, strlen(name));
    bool has_room =
        copy != NULL && STK_RESERVE(dataset->texts->classes, listing->class_capacity, number + 1);
    dataset->classes = dataset->texts->classes; /* the array may have moved */
    if (!has_room || !stk_map_add(&listing->class_labels, copy, number, &added)) {
        return STK_FAIL_MEMORY(err, "the class names");
    }
    dataset->texts->classes[dataset->class_count++] = copy;
    *label = (int)number;
    return STK_OK;
}

stk_status stk_listing_add(stk_sample_list *list, size_t *capacity, stk_sample sample,
                           stk_error *err) {
    if (!STK_RESERVE(list->items, *capacity, list->count + 1)) {
        return STK_FAIL_MEMORY(err, "the list of samples");
    }
    list->items[list->count++] = sample;
    return STK_OK;
}

stk_status stk_listing_add_row(stk_listing *listing, stk_row row, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    if (!STK_RESERVE(dataset->rows, listing->row_capacity, dataset->row_count + 1)) {
        return STK_FAIL_MEMORY(err, "the rows of the submission");
    }
    dataset->rows[dataset->row_count++] = row;
    return STK_OK;
}

const char *stk_listing_ext_note(const stk_listing *listing, char *buf, size_t size) {
    buf[0] = '\0';
    if (listing->ext[0] != '\0') {
        snprintf(buf, size, " (only %s files count, as --image-ext says)", listing->ext);
    }
    return buf;
}

stk_status stk_listing_dir(stk_listing *listing, const char *folder, stk_dir_list *list,
                           bool *by_stoker, stk_error *err) {
    return stk_data_list(listing->dataset->store, folder, &listing->skipped, list, by_stoker, err);
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(((const stk_sample *)a)->path, ((const stk_sample *)b)->path);
}

void stk_listing_sort(stk_sample_list *list) {
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof *list->items, compare_paths);
    }
}

static void relabel(stk_sample_list *list, const int *new_labels) {
    for (size_t i = 0; i < list->count; i++) {
        int label = list->items[i].label;
        list->items[i].label = label >= 0 ? new_labels[label] : -1;
    }
}

stk_status stk_listing_sort_classes(stk_dataset *dataset, stk_error *err) {
    size_t count = (size_t)dataset->class_count;
    int *new_labels = stk_mem_new(count, sizeof *new_labels);
    stk_status status = new_labels != NULL
                            ? stk_names_sort(dataset->texts->classes, count, new_labels, err)
                            : STK_FAIL_MEMORY(err, "the class names");
    if (status == STK_OK) {
        relabel(&dataset->train, new_labels);
        relabel(&dataset->val, new_labels);
        relabel(&dataset->test, new_labels);
    }
    stk_mem_free(new_labels);
    return status;
}

/* Takes out the samples without a label. */
static void drop_unlabelled(stk_sample_list *list) {
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].label >= 0) {
            list->items[left++] = list->items[i];
        }
    }
    list->count = left;
}

stk_status stk_listing_drop_classes(stk_dataset *dataset, const bool *dropped, stk_error *err) {
    int *new_labels = stk_mem_new((size_t)dataset->class_count, sizeof *new_labels);
    if (new_labels == NULL) {
        return STK_FAIL_MEMORY(err, "the class names");
    }
    int kept = 0;
    for (int c = 0; c < dataset->class_count; c++) {
        new_labels[c] = dropped[c] ? -1 : kept;
        if (!dropped[c]) {
            dataset->texts->classes[kept++] = dataset->classes[c];
        }
    }
    dataset->class_count = kept;
    relabel(&dataset->train, new_labels);
    relabel(&dataset->val, new_labels);
    relabel(&dataset->test, new_labels);
    drop_unlabelled(&dataset->train);
    drop_unlabelled(&dataset->val);
    stk_mem_free(new_labels);
    return STK_OK;
}
