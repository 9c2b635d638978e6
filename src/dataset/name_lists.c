/*
 * name_lists.c - lists of picture names in text files at the top say which rows train and which are
 * test rows: train_val_list.txt and test_list.txt beside one table of all pictures.
 *
 * The lists become a column of the table, which is then read like one that the table has.
 */
#include "dataset/name_lists.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The share of the listed names that must be ids of the table. */
#define NEARLY_ALL 0.9

static const char *const set_names[STK_SET_KINDS] = {
    [STK_SET_TRAIN] = "train", [STK_SET_VAL] = "val", [STK_SET_TEST] = "test"};

/* The lists of a location. */
typedef struct name_lists {
    stk_map names; /* owned: from a name without folders and ending to its set */
    stk_text_blocks texts;
    stk_first_names files;
    bool has[STK_SET_KINDS];
    bool fits; /* each line is one name */
} name_lists;

/* The part of a name that ids and lists have in common. */
static const char *core(const char *name, size_t *length) {
    const char *base = stk_path_base(name);
    const char *ext = stk_picture_extension(base);
    *length = strlen(base) - (ext != NULL ? strlen(ext) : 0);
    return base;
}

static bool note_line(name_lists *lists, char *line, stk_set_kind set) {
    size_t length;
    bool added;
    line += strspn(line, " \t\r");
    line[strcspn(line, "\r")] = '\0';
    if (line[0] == '\0') {
        return true;
    }
    lists->fits = lists->fits && line[strcspn(line, " \t,;")] == '\0';
    const char *name = core(line, &length);
    name = stk_text_blocks_keep(&lists->texts, name, length);
    return name != NULL && stk_map_add(&lists->names, name, (size_t)set, &added);
}

static stk_status read_list(name_lists *lists, const stk_listing *listing, const char *file,
                            stk_set_kind set, stk_error *err) {
    stk_bytes bytes = {0};
    stk_status status = stk_store_read(listing->dataset->store, file, &bytes, err);
    char *text = status == STK_OK ? stk_mem_strndup((const char *)bytes.data, bytes.size) : NULL;
    bool ok = text != NULL;
    for (char *line = text; ok && line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        ok = note_line(lists, line, set);
        line = end;
    }
    stk_first_names_add(&lists->files, file);
    lists->has[set] = true;
    stk_mem_free(text);
    stk_bytes_free(&bytes);
    return status == STK_OK && !ok ? STK_FAIL_MEMORY(err, file) : status;
}

/* The set of a row; rows in no list train where no list says which do. */
static stk_set_kind set_of_row(const name_lists *lists, const stk_csv *csv, size_t row, size_t id,
                               bool *listed) {
    char name[256];
    size_t length;
    size_t set;
    const char *base = core(stk_csv_cell(csv, row, id), &length);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), base);
    *listed = stk_map_find(&lists->names, name, &set);
    return *listed ? (stk_set_kind)set : lists->has[STK_SET_TRAIN] ? STK_SET_NONE : STK_SET_TRAIN;
}

/* Whether the lists divide the rows. */
static bool divide(const name_lists *lists, const stk_csv *csv, size_t id) {
    size_t counts[STK_SET_KINDS] = {0};
    size_t known = 0;
    if (!lists->fits || !(lists->has[STK_SET_TEST] || lists->has[STK_SET_VAL])) {
        return false;
    }
    for (size_t row = 0; row < csv->rows; row++) {
        bool listed;
        counts[set_of_row(lists, csv, row, id, &listed)]++;
        known += listed;
    }
    return counts[STK_SET_NONE] == 0 && counts[STK_SET_TRAIN] > 0 &&
           (double)known >= NEARLY_ALL * (double)lists->names.count;
}

/* Replaces the table by one with a column more. */
static stk_status add_column(const name_lists *lists, stk_label_table *table, size_t id,
                             stk_error *err) {
    stk_csv *csv = &table->csv;
    stk_csv wider = {0};
    stk_str text = {0};
    char files[300];
    for (size_t row = 0; row <= csv->rows; row++) {
        for (size_t c = 0; c < csv->columns; c++) {
            stk_csv_append(&text, row == 0 ? csv->header[c] : stk_csv_cell(csv, row - 1, c));
            stk_str_append(&text, ",");
        }
        bool listed;
        stk_csv_append(&text, row == 0 ? stk_first_names_text(&lists->files, files, sizeof files)
                                       : set_names[set_of_row(lists, csv, row - 1, id, &listed)]);
        stk_str_append(&text, "\n");
    }
    stk_status status = stk_str_ok(&text) ? stk_csv_parse(table->file, stk_str_text(&text),
                                                          text.length, &wider, err)
                                          : STK_FAIL_MEMORY(err, table->file);
    stk_str_free(&text);
    if (status == STK_OK) {
        stk_csv_free(csv);
        *csv = wider;
    }
    return status;
}

stk_status stk_name_lists_add(stk_label_table *table, const stk_listing *listing, size_t id,
                              stk_error *err) {
    name_lists lists = {.fits = true};
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        stk_set_kind set = stk_set_of_table(entry->name);
        if (!entry->is_dir && set != STK_SET_NONE &&
            stk_str_ends_with_nocase(entry->name, ".txt")) {
            status = read_list(&lists, listing, entry->name, set, err);
        }
    }
    if (status == STK_OK && divide(&lists, &table->csv, id)) {
        status = add_column(&lists, table, id, err);
    }
    stk_map_free(&lists.names);
    stk_text_blocks_free(&lists.texts);
    return status;
}
