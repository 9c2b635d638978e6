/* table.c - finds columns of a CSV file by name, and splits names into words. */
#include "dataset/listing.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names != NULL; names++) {
        if (stk_str_equal_nocase(name, *names)) {
            return true;
        }
    }
    return false;
}

bool stk_table_is_id_name(const char *name) {
    static const char *const names[] = {"id",         "image",      "image_id",  "img",
                                        "file",       "filename",   "file_name", "path",
                                        "image_name", "image_path", "file_path", "filepath",
                                        "id_code",    "name",       NULL};
    return is_one_of(name, names);
}

bool stk_table_is_label_name(const char *name) {
    static const char *const names[] = {"label",  "labels", "class",   "category",
                                        "target", "breed",  "species", NULL};
    return is_one_of(name, names);
}

const char *stk_table_names(const stk_csv *csv, char *buf, size_t size) {
    size_t length = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < csv->columns && length < size; i++) {
        length += (size_t)snprintf(buf + length, size - length, "%s%.60s", i > 0 ? ", " : "",
                                   csv->header[i]);
        if (length + 80 > size && i + 1 < csv->columns) {
            snprintf(buf + length, size - length, " ...");
            break;
        }
    }
    return buf;
}

stk_status stk_table_column(const stk_csv *csv, const char *file, const char *flag,
                            const char *name, size_t *column, stk_error *err) {
    char names[400];
    *column = stk_csv_column(csv, name);
    if (*column != SIZE_MAX) {
        return STK_OK;
    }
    const char *near = stk_str_nearest(name, csv->header, csv->columns);
    return STK_FAIL(err, STK_ERR_USAGE, "%s %s: %s has no such column%s%s%s; its columns are %s",
                    flag, name, file, near != NULL ? " (did you mean '" : "",
                    near != NULL ? near : "", near != NULL ? "'?)" : "",
                    stk_table_names(csv, names, sizeof names));
}

bool stk_next_word(const char **at, char word[STK_WORD_MOST]) {
    const char *p = *at;
    size_t length = 0;
    while (*p == '_' || *p == '-' || *p == '.' || *p == ' ') {
        p++;
    }
    const char *start = p;
    bool number = isdigit((unsigned char)*p) != 0;
    while (number ? isdigit((unsigned char)*p) : isalpha((unsigned char)*p)) {
        if (p > start && isupper((unsigned char)*p) && islower((unsigned char)p[-1])) {
            break; /* "testSet" is two words */
        }
        if (length + 1 < STK_WORD_MOST) {
            word[length++] = (char)tolower((unsigned char)*p);
        }
        p++;
    }
    p += p == start && *p != '\0' ? 1 : 0; /* a character of no word makes an empty one */
    word[length] = '\0';
    *at = p;
    return p > start;
}
