/* other_kinds.c - says what a location without pictures holds instead: sound, videos, numbers of
 * pictures in tables, archives in archives. People learn then that it is not done, or what to do.
 */
#include "dataset/listing.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Folders are looked into this deep, and so many files are counted. */
#define DEEPEST 4
#define MOST_FILES 5000

/* A table with more columns, or a cell with more numbers, holds pictures. */
#define MANY_COLUMNS 200
#define MANY_NUMBERS 200

typedef enum kind { SOUND, VIDEO, ARCHIVE, KINDS } kind;

static const char *const tails[KINDS][12] = {
    [SOUND] = {".wav", ".ogg", ".flac", ".mp3", ".m4a", ".aac", NULL},
    [VIDEO] = {".mp4", ".avi", ".mov", ".mkv", ".webm", ".mpg", NULL},
    [ARCHIVE] = {".zip", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz", NULL},
};

typedef struct kinds {
    size_t counts[KINDS];
    char first[KINDS][100];
    size_t files;
} kinds;

static void note_file(kinds *k, const char *path) {
    k->files++;
    for (int i = 0; i < KINDS; i++) {
        for (const char *const *tail = tails[i]; *tail != NULL; tail++) {
            if (stk_str_ends_with_nocase(path, *tail)) {
                if (k->counts[i]++ == 0) {
                    snprintf(k->first[i], sizeof k->first[i], "%.90s", path);
                }
                return;
            }
        }
    }
}

static void count_below(kinds *k, stk_listing *listing, const char *folder, int depth) {
    stk_dir_list list = {0};
    bool by_stoker;
    if (stk_listing_dir(listing, folder, &list, &by_stoker, NULL) != STK_OK) {
        return;
    }
    for (size_t i = 0; i < list.count && k->files < MOST_FILES; i++) {
        const char *path = stk_listing_join(listing, folder, list.entries[i].name);
        if (path != NULL && !list.entries[i].is_dir) {
            note_file(k, path);
        } else if (path != NULL && depth < DEEPEST) {
            count_below(k, listing, path, depth + 1);
        }
    }
    stk_dir_list_free(&list);
}

static bool has_many_numbers(const char *cell) {
    size_t words = 0;
    while (*cell != '\0' && words < MANY_NUMBERS) {
        size_t length = strspn(cell, "0123456789.-+e");
        if (length == 0) {
            return false;
        }
        words++;
        cell += length;
        cell += strspn(cell, " ,;");
    }
    return words >= MANY_NUMBERS;
}

/* Whether a table holds the numbers of pictures. */
static bool holds_pixels(const stk_listing *listing, const char *file, char *where, size_t size) {
    stk_csv csv = {0};
    bool found = false;
    if (stk_listing_table(listing, file, &csv, NULL, NULL) != STK_OK) {
        return false;
    }
    if (csv.columns > MANY_COLUMNS) {
        snprintf(where, size, "%.90s has %zu columns", file, csv.columns);
        found = true;
    }
    for (size_t c = 0; !found && csv.rows > 0 && c < csv.columns; c++) {
        found = has_many_numbers(stk_csv_cell(&csv, 0, c));
        if (found) {
            snprintf(where, size, "%.90s has hundreds of numbers in a cell of its column %.60s",
                     file, csv.header[c]);
        }
    }
    stk_csv_free(&csv);
    return found;
}

const char *stk_listing_other_kinds(stk_listing *listing, char *buf, size_t size) {
    kinds k = {0};
    char where[300] = "";
    bool pixels = false;
    buf[0] = '\0';
    count_below(&k, listing, "", 0);
    for (size_t i = 0; !pixels && i < listing->top.count; i++) {
        const stk_dir_entry *e = &listing->top.entries[i];
        pixels = !e->is_dir && stk_table_is_name(e->name) && !stk_table_is_json(e->name) &&
                 holds_pixels(listing, e->name, where, sizeof where);
    }
    bool sound = k.counts[SOUND] > k.counts[VIDEO];
    if (k.counts[SOUND] + k.counts[VIDEO] > 0) {
        snprintf(buf, size, "; there are %s (%s), which Stoker does not train on",
                 sound ? "sound files" : "videos", k.first[sound ? SOUND : VIDEO]);
    } else if (pixels) {
        snprintf(buf, size,
                 "; %s, as if they were the pixels of pictures, and Stoker takes pictures from "
                 "files only",
                 where);
    } else if (k.counts[ARCHIVE] > 0) {
        snprintf(buf, size,
                 "; there is the archive %s, and archives inside archives or folders are not "
                 "opened: unpack the outer one, or put it at the top",
                 k.first[ARCHIVE]);
    }
    return buf;
}
