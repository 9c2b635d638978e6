/* table.c - finds columns of a CSV file by name, and reads names word by word. */
#include "dataset/listing.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

/* The next of the names between commas, without blanks around it; NULL at the end. */
static const char *next_name(const char **at, size_t *length) {
    const char *name = *at + strspn(*at, ", \t");
    if (*name == '\0') {
        return NULL;
    }
    *length = strcspn(name, ",");
    *at = name + *length;
    while (name[*length - 1] == ' ' || name[*length - 1] == '\t') {
        --*length;
    }
    return name;
}

/* The column of a name that is a part of a text; exact spelling first. */
static size_t find_part(const stk_csv *csv, const char *name, size_t length) {
    for (int pass = 0; pass < 2; pass++) {
        for (size_t c = 0; c < csv->columns; c++) {
            const char *header = csv->header[c];
            if (strlen(header) == length && (pass == 0 ? strncmp(header, name, length) == 0
                                                       : strncasecmp(header, name, length) == 0)) {
                return c;
            }
        }
    }
    return SIZE_MAX;
}

bool stk_table_has_columns(const stk_csv *csv, const char *names) {
    const char *name;
    size_t length;
    bool all = true;
    if (stk_csv_column(csv, names) != SIZE_MAX) { /* its name may have a comma */
        return true;
    }
    for (const char *at = names; all && (name = next_name(&at, &length)) != NULL;) {
        all = find_part(csv, name, length) != SIZE_MAX;
    }
    return all;
}

bool stk_table_is_named(const stk_csv *csv, const char *names, size_t column) {
    size_t whole = names != NULL ? stk_csv_column(csv, names) : SIZE_MAX;
    const char *name;
    size_t length;
    if (names == NULL || whole != SIZE_MAX) {
        return whole == column;
    }
    for (const char *at = names; (name = next_name(&at, &length)) != NULL;) {
        if (find_part(csv, name, length) == column) {
            return true;
        }
    }
    return false;
}

bool stk_table_is_in(const size_t *list, size_t count, size_t value) {
    for (size_t i = 0; i < count; i++) {
        if (list[i] == value) {
            return true;
        }
    }
    return false;
}

stk_status stk_table_label_columns(const stk_csv *csv, const char *file, const char *names,
                                   size_t *columns, size_t *count, stk_error *err) {
    static const char flag[] = "--label-column";
    const char *name;
    size_t length;
    *count = 0;
    if (stk_csv_column(csv, names) != SIZE_MAX || strchr(names, ',') == NULL) {
        *count = 1;
        return stk_table_column(csv, file, flag, names, &columns[0], err);
    }
    for (const char *at = names; (name = next_name(&at, &length)) != NULL;) {
        size_t column = find_part(csv, name, length);
        if (column == SIZE_MAX) {
            char one[200];
            snprintf(one, sizeof one, "%.*s", (int)(length < 199 ? length : 199), name);
            return stk_table_column(csv, file, flag, one, &column, err);
        }
        if (stk_table_is_in(columns, *count, column)) {
            return STK_FAIL(err, STK_ERR_USAGE, "%s %s: %s is there twice; name each column once",
                            flag, names, csv->header[column]);
        }
        columns[(*count)++] = column;
    }
    return *count > 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_USAGE, "%s %s names no column of %s", flag, names, file);
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

bool stk_has_word_of(const char *name, const char *const *words) {
    char word[STK_WORD_MOST];
    for (const char *at = name; stk_next_word(&at, word);) {
        for (const char *const *known = words; *known != NULL; known++) {
            if (stk_str_equal(word, *known)) {
                return true;
            }
        }
    }
    return false;
}

bool stk_table_is_measure_name(const char *name) {
    static const char *const words[] = {
        "age",      "ages",   "years",   "year",       "months", "days",     "hours",
        "minutes",  "price",  "prices",  "cost",       "salary", "income",   "amount",
        "count",    "counts", "score",   "scores",     "rating", "height",   "weight",
        "width",    "length", "size",    "area",       "volume", "depth",    "temperature",
        "distance", "speed",  "percent", "percentage", "ratio",  "quantity", "seconds",
        "duration", "bmi",    "boneage", NULL};
    return stk_has_word_of(name, words);
}

bool stk_table_is_group_name(const char *name) {
    static const char *const words[] = {
        "patient", "subject",  "person",    "individual", "participant", "location",
        "seq",     "sequence", "session",   "video",      "scene",       "camera",
        "slide",   "group",    "patientid", "patients",   NULL};
    return stk_has_word_of(name, words);
}
