/* box_columns.c - tells boxes by names of columns and by cells. */
#include "dataset/box_columns.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "dataset/column_profile.h"
#include "dataset/listing.h"

#define MOST_NAME 32
#define NEARLY_ALL 0.95

/* Cells after which a column of other things is left. */
#define FIRST_CELLS 20

/* Four columns that are a box, without "bbox", blanks and signs in their names. */
static const char *const box_names[][4] = {
    {"xmin", "ymin", "xmax", "ymax"},
    {"x1", "y1", "x2", "y2"},
    {"x0", "y0", "x1", "y1"},
    {"left", "top", "right", "bottom"},
    {"left", "top", "width", "height"},
    {"x", "y", "w", "h"},
    {"x", "y", "width", "height"},
    {"xmin", "ymin", "width", "height"},
    {"xcenter", "ycenter", "width", "height"},
    {"xc", "yc", "w", "h"},
    {"cx", "cy", "w", "h"},
    {"xmin", "ymin", "w", "h"},
    {"minx", "miny", "maxx", "maxy"},
};

static const char *const box_words[] = {
    "bbox", "bboxes", "box", "boxes", "annotation", "annotations", "rectangle", "rectangles", NULL};

/* "bbox_x_min" and "BoxXMin" become "xmin". */
static void plain_name(const char *name, char plain[MOST_NAME]) {
    size_t length = 0;
    for (; *name != '\0' && length + 1 < MOST_NAME; name++) {
        if (isalnum((unsigned char)*name)) {
            plain[length++] = (char)tolower((unsigned char)*name);
        }
    }
    plain[length] = '\0';
    const char *rest = strncmp(plain, "bbox", 4) == 0  ? plain + 4
                       : strncmp(plain, "box", 3) == 0 ? plain + 3
                                                       : plain;
    memmove(plain, rest, strlen(rest) + 1);
}

static size_t column_named(const stk_csv *csv, const char *wanted) {
    for (size_t c = 0; c < csv->columns; c++) {
        char plain[MOST_NAME];
        plain_name(csv->header[c], plain);
        if (stk_str_equal(plain, wanted)) {
            return c;
        }
    }
    return SIZE_MAX;
}

void stk_box_columns_find(stk_box_columns *boxes, const stk_csv *csv) {
    boxes->count = 0;
    for (size_t i = 0; boxes->count == 0 && i < STK_COUNT(box_names); i++) {
        size_t found = 0;
        for (size_t k = 0; k < 4; k++) {
            boxes->columns[k] = column_named(csv, box_names[i][k]);
            found += boxes->columns[k] != SIZE_MAX;
        }
        boxes->count = found == 4 ? 4 : 0;
    }
    for (size_t c = 0; boxes->count == 0 && c < csv->columns; c++) {
        if (stk_cells_are_boxes(csv, c)) {
            boxes->columns[0] = c;
            boxes->count = 1;
        }
    }
}

bool stk_box_columns_have(const stk_box_columns *boxes, size_t column) {
    bool found = false;
    for (size_t i = 0; i < boxes->count; i++) {
        found = found || boxes->columns[i] == column;
    }
    return found;
}

/* ---- cells ---- */

static const char separators[] = " \t,;[](){}";

/* How the words of a cell are spread: 'n' for a number, 'f' for one with a point, 'w' for others. A
 * long cell is cut off. */
static size_t kinds_of(const char *cell, char *kinds, size_t size) {
    size_t count = 0;
    while (*(cell += strspn(cell, separators)) != '\0' && count < size) {
        char word[MOST_NAME];
        size_t length = strcspn(cell, separators);
        size_t kept = length < sizeof word ? length : sizeof word - 1;
        double x;
        memcpy(word, cell, kept);
        word[kept] = '\0';
        bool number = kept == length && stk_cell_number(word, &x);
        kinds[count++] = (char)(!number ? 'w' : strchr(word, '.') != NULL ? 'f' : 'n');
        cell += length;
    }
    return count;
}

/* Whether the words come in groups of so many that begin like `head`, and numbers follow. */
static bool has_groups(const char *kinds, size_t count, const char *head, size_t group) {
    size_t heads = strlen(head);
    bool fits = count > 0 && count % group == 0;
    for (size_t i = 0; fits && i < count; i++) {
        size_t at = i % group;
        fits = at < heads ? kinds[i] == head[at] || (head[at] == '*') : kinds[i] != 'w';
    }
    return fits;
}

#define MOST_KINDS 60 /* a multiple of 4, 5 and 6 */

/* A record with a width and a height, as Python and JSON write it. */
static bool is_record(const char *cell) {
    bool sizes = strstr(cell, "width") != NULL && strstr(cell, "height") != NULL;
    bool corners = strstr(cell, "xmin") != NULL && strstr(cell, "ymax") != NULL;
    return strchr(cell, '{') != NULL && (sizes || corners);
}

bool stk_cells_are_boxes(const stk_csv *csv, size_t column) {
    size_t filled = 0;
    size_t records = 0;
    size_t fours = 0;
    size_t named = 0;
    for (size_t row = 0; row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        char kinds[MOST_KINDS];
        size_t count = kinds_of(cell, kinds, sizeof kinds);
        if (count == 0) {
            continue; /* [] as well */
        }
        filled++;
        records += is_record(cell);
        fours += has_groups(kinds, count, "", 4);
        named += has_groups(kinds, count, "w", 5);
        if (filled == FIRST_CELLS && records + fours + named == 0) {
            return false; /* of very many columns few are looked at in full */
        }
    }
    double most = NEARLY_ALL * (double)filled;
    bool called = stk_has_word_of(csv->header[column], box_words);
    return filled > 0 &&
           ((double)records >= most || (double)named >= most || (called && (double)fours >= most));
}

bool stk_cells_ask_for_boxes(const stk_csv *sample, size_t column, bool known) {
    size_t filled = 0;
    size_t certain = 0;
    size_t likely = 0;
    for (size_t row = 0; row < sample->rows; row++) {
        const char *cell = stk_csv_cell(sample, row, column);
        char kinds[MOST_KINDS];
        size_t count = kinds_of(cell, kinds, sizeof kinds);
        if (count == 0) {
            continue;
        }
        bool sure = has_groups(kinds, count, "wf", 6) || has_groups(kinds, count, "f", 5);
        filled++;
        certain += sure || is_record(cell);
        likely += sure || has_groups(kinds, count, "*", 5) || has_groups(kinds, count, "*", 6) ||
                  has_groups(kinds, count, "", 4);
    }
    return filled > 0 && (double)(known ? likely : certain) >= NEARLY_ALL * (double)filled;
}
