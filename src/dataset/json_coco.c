/*
 * json_coco.c - images joined with their annotations.
 *
 * Both are tables already; ids are compared as they are written. The annotations of an image are a
 * chain of rows in the order of the file.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/json_record.h"
#include "dataset/listing.h"

/* Ends a chain of annotations. */
#define NONE UINT32_MAX

typedef struct join {
    const char *name;
    stk_csv images;
    stk_csv annotations;
    size_t image_id;  /* column of `images` */
    size_t owner;     /* column of `annotations`: the image's id */
    stk_map by_id;    /* row of an image */
    uint32_t *first;  /* owned; for each image its first annotation */
    uint32_t *next;   /* owned; for each annotation the next one of the image */
    size_t *target;   /* owned; for each column of the annotations that of the table, or SIZE_MAX */
    const char **own; /* owned; cells of an image's first annotation; NULL: others have others */
    stk_csv_rows rows;
} join;

static void free_join(join *j) {
    stk_csv_free(&j->images);
    stk_csv_free(&j->annotations);
    stk_map_free(&j->by_id);
    stk_csv_rows_free(&j->rows);
    stk_mem_free(j->first);
    stk_mem_free(j->next);
    stk_mem_free(j->target);
    stk_mem_free(j->own);
}

static stk_status find_keys(join *j, stk_error *err) {
    j->image_id = stk_csv_column(&j->images, "id");
    j->owner = stk_csv_column(&j->annotations, "image_id");
    if (j->image_id == SIZE_MAX) {
        j->image_id = stk_csv_column(&j->images, "image_id");
    }
    return j->image_id != SIZE_MAX && j->owner != SIZE_MAX
               ? STK_OK
               : STK_FAIL(err, STK_ERR_DATA,
                          "%s: its annotations cannot be assigned to its images: the %s no %s",
                          j->name, j->owner == SIZE_MAX ? "annotations have" : "images have",
                          j->owner == SIZE_MAX ? "image_id" : "id");
}

static stk_status map_images(join *j, stk_error *err) {
    for (size_t row = 0; row < j->images.rows; row++) {
        bool added = true;
        const char *id = stk_csv_cell(&j->images, row, j->image_id);
        if (!stk_map_add(&j->by_id, id, row, &added)) {
            return STK_FAIL_MEMORY(err, j->name);
        }
        if (!added) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s: two images have the id \"%.100s\"; remove one of them", j->name,
                            id);
        }
    }
    return STK_OK;
}

/* Chains the annotations, the last first. */
static stk_status chain(join *j, size_t *strays, stk_error *err) {
    j->first = stk_mem_raw(j->images.rows, sizeof *j->first);
    j->next = stk_mem_raw(j->annotations.rows, sizeof *j->next);
    if (j->first == NULL || j->next == NULL) {
        return STK_FAIL_MEMORY(err, j->name);
    }
    memset(j->first, 0xFF, j->images.rows * sizeof *j->first); /* NONE */
    for (size_t row = j->annotations.rows; row-- > 0;) {
        size_t image = 0;
        if (!stk_map_find(&j->by_id, stk_csv_cell(&j->annotations, row, j->owner), &image)) {
            ++*strays;
            continue;
        }
        j->next[row] = j->first[image];
        j->first[image] = (uint32_t)row;
    }
    return STK_OK;
}

/* The columns of the table: those of the images, then those of the annotations that are new. */
static stk_status make_columns(join *j, stk_error *err) {
    size_t column = 0;
    stk_status status = STK_OK;
    j->target = stk_mem_raw(j->annotations.columns, sizeof *j->target);
    j->own = stk_mem_raw(j->annotations.columns, sizeof *j->own);
    if (j->target == NULL || j->own == NULL) {
        return STK_FAIL_MEMORY(err, j->name);
    }
    for (size_t i = 0; status == STK_OK && i < j->images.columns; i++) {
        const char *name = j->images.header[i];
        status = stk_csv_rows_column_of(&j->rows, name, strlen(name), &column, err);
    }
    for (size_t i = 0; status == STK_OK && i < j->annotations.columns; i++) {
        const char *name = j->annotations.header[i];
        size_t known;
        bool is_new = i != j->owner && !stk_str_equal(name, "id") &&
                      !stk_map_find(&j->rows.by_name, name, &known);
        j->target[i] = SIZE_MAX;
        if (is_new) {
            status = stk_csv_rows_column_of(&j->rows, name, strlen(name), &j->target[i], err);
        }
    }
    return status;
}

/* Whether several values of a column are a list: those of a label. */
static bool is_joined(const char *name) {
    return stk_str_equal(name, "category_id") || stk_table_is_label_name(name);
}

/* The labels of all annotations of an image, each once. */
static stk_status put_labels(join *j, size_t column, uint32_t first, stk_error *err) {
    stk_map seen = {0};
    size_t target = j->target[column];
    stk_status status = STK_OK;
    for (uint32_t row = first; status == STK_OK && row != NONE; row = j->next[row]) {
        const char *cell = stk_csv_cell(&j->annotations, row, column);
        bool added = false;
        if (cell[0] == '\0') {
            continue;
        }
        if (!stk_map_add(&seen, cell, 0, &added)) {
            status = STK_FAIL_MEMORY(err, j->name);
        } else if (added) {
            status = seen.count == 1 ? stk_csv_rows_put(&j->rows, target, cell, strlen(cell), err)
                                     : stk_csv_rows_join(&j->rows, target, cell, strlen(cell), err);
        }
    }
    stk_map_free(&seen);
    return status;
}

/* Remembers the cells of the first annotation, and forgets those that another one contradicts. */
static void compare_annotations(join *j, uint32_t first) {
    size_t columns = j->annotations.columns;
    for (uint32_t row = first; row != NONE; row = j->next[row]) {
        const char *cell = stk_csv_cell(&j->annotations, row, 0);
        for (size_t i = 0; i < columns; i++) {
            if (row == first) {
                j->own[i] = cell;
            } else if (j->own[i] != NULL && strcmp(j->own[i], cell) != 0) {
                j->own[i] = NULL;
            }
            cell = i + 1 < columns ? stk_csv_next(cell) : cell;
        }
    }
}

static stk_status put_annotations(join *j, uint32_t first, stk_error *err) {
    stk_status status = STK_OK;
    compare_annotations(j, first);
    for (size_t i = 0; status == STK_OK && i < j->annotations.columns; i++) {
        if (j->target[i] == SIZE_MAX) {
            continue;
        }
        if (j->own[i] != NULL) {
            status = stk_csv_rows_put(&j->rows, j->target[i], j->own[i], strlen(j->own[i]), err);
        } else if (is_joined(j->annotations.header[i])) {
            status = put_labels(j, i, first, err);
        }
    }
    return status;
}

static stk_status put_image(join *j, size_t row, stk_error *err) {
    const char *cell = stk_csv_cell(&j->images, row, 0);
    stk_status status = stk_csv_rows_begin(&j->rows, stk_csv_line(&j->images, row), err);
    for (size_t i = 0; status == STK_OK && i < j->images.columns; i++) {
        size_t length = strlen(cell);
        status = stk_csv_rows_put(&j->rows, i, cell, length, err);
        cell = i + 1 < j->images.columns ? cell + length + 1 : cell;
    }
    if (status == STK_OK && j->first[row] != NONE) {
        status = put_annotations(j, j->first[row], err);
    }
    STK_THEN(status, stk_csv_rows_end(&j->rows, err));
    return status;
}

/* Joins two tables that both have rows. */
static stk_status join_all(join *j, stk_csv *csv, stk_json_table_info *info, stk_error *err) {
    stk_status status = find_keys(j, err);
    STK_THEN(status, map_images(j, err));
    STK_THEN(status, chain(j, &info->strays, err));
    STK_THEN(status, make_columns(j, err));
    for (size_t row = 0; status == STK_OK && row < j->images.rows; row++) {
        status = put_image(j, row, err);
    }
    if (status == STK_OK) { /* the texts are copied: what remains needs the memory */
        stk_csv_free(&j->images);
        stk_csv_free(&j->annotations);
        status = stk_csv_rows_finish(&j->rows, csv, err);
    }
    return status;
}

stk_status stk_json_coco_join(const char *name, stk_json_records *images,
                              stk_json_records *annotations, stk_csv *csv,
                              stk_json_table_info *info, stk_error *err) {
    join j = {.name = name, .rows.name = name};
    if (annotations->rows.rows == 0) {
        return stk_json_records_finish(images, csv, info, err);
    }
    if (images->rows.rows == 0) {
        return stk_json_records_finish(annotations, csv, info, err);
    }
    stk_status status = stk_json_records_finish(images, &j.images, info, err);
    STK_THEN(status, stk_json_records_finish(annotations, &j.annotations, info, err));
    STK_THEN(status, join_all(&j, csv, info, err));
    free_join(&j);
    return status;
}

stk_status stk_json_coco_categories(stk_json_records *categories, stk_json_table_info *info,
                                    stk_error *err) {
    static const char *const ids[] = {"id", "category_id"};
    static const char *const names[] = {"name", "category_name", "scientificName",
                                        "scientific_name"};
    stk_csv *csv = &info->categories;
    size_t id = SIZE_MAX;
    size_t name = SIZE_MAX;
    if (categories->rows.rows == 0 || categories->rows.column_count == 0) {
        stk_json_records_free(categories);
        return STK_OK;
    }
    stk_status status = stk_json_records_finish(categories, csv, info, err);
    if (status != STK_OK) {
        return status;
    }
    for (size_t i = 0; id == SIZE_MAX && i < STK_COUNT(ids); i++) {
        id = stk_csv_column(csv, ids[i]);
    }
    for (size_t i = 0; name == SIZE_MAX && i < STK_COUNT(names); i++) {
        name = stk_csv_column(csv, names[i]);
    }
    if (id == SIZE_MAX) {
        return STK_OK;
    }
    info->category_ids = stk_mem_raw(csv->rows, sizeof *info->category_ids);
    info->category_names = stk_mem_raw(csv->rows, sizeof *info->category_names);
    if (info->category_ids == NULL || info->category_names == NULL) {
        return STK_FAIL_MEMORY(err, "the categories");
    }
    info->category_count = csv->rows;
    for (size_t row = 0; row < csv->rows; row++) {
        info->category_ids[row] = stk_csv_cell(csv, row, id);
        info->category_names[row] = stk_csv_cell(csv, row, name != SIZE_MAX ? name : id);
    }
    return STK_OK;
}
