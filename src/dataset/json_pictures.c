/*
 * json_pictures.c - which lists are pictures, and finding or making their files.
 *
 * Single pictures are not synced, since that would take longer than all the rest. So a later run
 * looks at the size of each before it believes the .kept file.
 */
#include "dataset/json_pictures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file_lock.h"
#include "base/map.h"
#include "base/mem.h"
#include "dataset/listing.h"

/* Shorter lists are boxes and the like. */
#define NUMBERS_LEAST 16

/* A side of a picture. */
#define SIDE_MOST ((size_t)32768)

/* Bytes of a .kept file and of a .csv file of pictures. */
#define KEPT_BYTES_MOST ((size_t)16384)

/* The paths of the results, and what the .kept file says. */
typedef struct results {
    char *folder; /* of the pictures */
    char *csv;
    char *kept;
    char *lock;
    char *origin; /* the first lines of the .kept file */
} results;

void stk_json_pictures_free(stk_json_pictures *pictures) {
    stk_csv_free(&pictures->csv);
    stk_mem_free(pictures->folder);
    memset(pictures, 0, sizeof *pictures);
}

static void free_results(results *p) {
    stk_mem_free(p->folder);
    stk_mem_free(p->csv);
    stk_mem_free(p->kept);
    stk_mem_free(p->lock);
    stk_mem_free(p->origin);
}

static stk_status find_results(results *p, const stk_range_source *source, const char *version,
                               const char *folder, const char *stem, stk_error *err) {
    p->folder = stk_str_format("%s/pictures/%s", folder, stem);
    p->csv = stk_str_format("%s/pictures/%s.csv", folder, stem);
    p->kept = stk_str_format("%s/pictures/%s.kept", folder, stem);
    p->lock = stk_str_format("%s/pictures/%s.lock", folder, stem);
    p->origin = stk_str_format("pictures of JSON, 2\n%s\n", version);
    bool has = p->folder != NULL && p->csv != NULL && p->kept != NULL && p->lock != NULL &&
               p->origin != NULL;
    return has ? stk_dir_make(p->folder, err) : STK_FAIL_MEMORY(err, source->name);
}

/* ---- the shape ---- */

static bool could_be(const stk_json_array *array) {
    return array->length >= NUMBERS_LEAST &&
           (array->lists == 0 || (array->lists > 1 && array->length > array->lists));
}

/* The channels: all lists that are like the longest one. False: there is none. */
static bool find_channels(const stk_json_table_info *info, stk_json_shape *shape) {
    const stk_json_array *longest = NULL;
    memset(shape, 0, sizeof *shape);
    for (size_t i = 0; i < info->array_count; i++) {
        const stk_json_array *array = &info->arrays[i];
        if (could_be(array) && (longest == NULL || array->length > longest->length)) {
            longest = array;
        }
    }
    for (size_t i = 0; longest != NULL && i < info->array_count; i++) {
        const stk_json_array *array = &info->arrays[i];
        if (array->length == longest->length && array->lists == longest->lists) {
            shape->arrays[shape->channels++] = i;
        }
    }
    return longest != NULL;
}

bool stk_json_pictures_are_in(const stk_json_table_info *info) {
    stk_json_shape shape;
    return !info->is_coco && find_channels(info, &shape);
}

static stk_status find_shape(const char *name, const stk_json_table_info *info,
                             stk_json_shape *shape, stk_error *err) {
    if (!find_channels(info, shape)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: its records have no lists of equally many numbers, so no pictures",
                        name);
    }
    const stk_json_array *first = &info->arrays[shape->arrays[0]];
    size_t side = (size_t)sqrt((double)first->length);
    shape->height = first->lists > 0 ? first->lists : side;
    shape->width = first->lists > 0 ? first->length / first->lists : side;
    if (shape->height * shape->width != first->length) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: %s has %zu numbers, which are no square; write each picture as a list "
                        "of its rows",
                        name, first->name, first->length);
    }
    if (shape->height > SIDE_MOST || shape->width > SIDE_MOST) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: pictures of %zu x %zu numbers, more than Stoker reads", name,
                        shape->height, shape->width);
    }
    return STK_OK;
}

/* ---- ids ---- */

static size_t find_id(const stk_csv *csv) {
    for (size_t i = 0; i < csv->columns; i++) {
        if (stk_table_is_id_name(csv->header[i])) {
            return i;
        }
    }
    return 0;
}

static stk_status check_ids(const char *name, const stk_csv *csv, size_t column, stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
        bool added = true;
        const char *id = stk_csv_cell(csv, row, column);
        if (!stk_path_is_name(id)) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s: the %s \"%.100s\" of record %zu cannot name a picture; numbers "
                              "and short words can",
                              name, csv->header[column], id, row + 1);
        } else if (!stk_map_add(&seen, id, 0, &added)) {
            status = STK_FAIL_MEMORY(err, name);
        } else if (!added) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s: two records have the %s \"%.100s\"; remove one of them", name,
                              csv->header[column], id);
        }
    }
    stk_map_free(&seen);
    return status;
}

/* ---- what an earlier run has made ---- */

/* The shape in a .kept file of the same origin. */
static bool read_kept(const results *p, stk_json_shape *shape) {
    char *text = NULL;
    size_t size = 0;
    size_t length = strlen(p->origin);
    bool good =
        stk_path_is_file(p->kept) &&
        stk_file_read(p->kept, KEPT_BYTES_MOST, &text, &size, NULL) == STK_OK && size > length &&
        memcmp(text, p->origin, length) == 0 &&
        sscanf(text + length, "%zu %zu %zu", &shape->height, &shape->width, &shape->channels) == 3;
    good = good && shape->height <= SIDE_MOST && shape->width <= SIDE_MOST &&
           shape->channels <= STK_JSON_ARRAYS_MAX;
    stk_mem_free(text);
    return good;
}

/* Whether every picture of the table is there and whole. */
static bool are_whole(const results *p, const stk_csv *csv, size_t column,
                      const stk_json_shape *shape) {
    bool good = true;
    for (size_t row = 0; good && row < csv->rows; row++) {
        struct stat info;
        char *path = stk_str_format("%s/%s.npy", p->folder, stk_csv_cell(csv, row, column));
        good = path != NULL && stk_disk_look(path, &info) == 0 &&
               (uint64_t)info.st_size == stk_json_pixels_file_bytes(shape);
        stk_mem_free(path);
    }
    return good;
}

/* Takes what is there; false: it must be made. */
static bool recall(const results *p, stk_json_pictures *pictures) {
    stk_json_shape shape = {0};
    bool good = read_kept(p, &shape) && stk_csv_read(p->csv, &pictures->csv, NULL) == STK_OK;
    if (!good) {
        return false;
    }
    pictures->id_column = find_id(&pictures->csv);
    pictures->height = shape.height;
    pictures->width = shape.width;
    pictures->channels = shape.channels;
    pictures->is_recalled = are_whole(p, &pictures->csv, pictures->id_column, &shape);
    if (!pictures->is_recalled) {
        stk_csv_free(&pictures->csv);
    }
    return pictures->is_recalled;
}

/* ---- making them ---- */

/* Removes the pictures of an earlier file, of which the new one may lack some. */
static stk_status remove_old(const results *p, stk_error *err) {
    stk_dir_list list = {0};
    (void)stk_disk_remove(p->kept);
    stk_status status = stk_dir_read(p->folder, &list, err);
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        char *path = stk_path_join(p->folder, list.entries[i].name);
        if (path != NULL && stk_str_ends_with_nocase(path, ".npy")) {
            (void)stk_disk_remove(path);
        }
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
    return status;
}

static stk_status write_table(const char *path, const stk_csv *csv, stk_error *err) {
    stk_str out = {0};
    stk_csv_format(csv, &out);
    stk_status status = stk_str_ok(&out) ? stk_file_write(path, out.text, out.length, err)
                                         : STK_FAIL_MEMORY(err, path);
    stk_str_free(&out);
    return status;
}

static stk_status write_kept(const results *p, const stk_json_shape *shape, stk_error *err) {
    char *text =
        stk_str_format("%s%zu %zu %zu\n", p->origin, shape->height, shape->width, shape->channels);
    stk_status status = text != NULL ? stk_file_write(p->kept, text, strlen(text), err)
                                     : STK_FAIL_MEMORY(err, p->kept);
    stk_mem_free(text);
    return status;
}

static void tell(const stk_events *events, const char *name, const stk_json_shape *shape,
                 size_t count) {
    char what[80];
    snprintf(what, sizeof what, "making %zu pictures of %s", count, stk_path_base(name));
    char why[120];
    snprintf(why, sizeof why,
             "its records hold their %zu x %zu x %zu numbers; they are kept for "
             "the next run",
             shape->height, shape->width, shape->channels);
    stk_events_decision(events, what, why);
}

static stk_status make(const results *p, const stk_range_source *source, const stk_events *events,
                       stk_json_pictures *pictures, stk_error *err) {
    stk_json_table_info info = {0};
    stk_json_shape shape;
    stk_status status = stk_json_table_read(source, &pictures->csv, &info, err);
    pictures->none = status == STK_OK ? !stk_json_pictures_are_in(&info) : status == STK_ERR_DATA;
    STK_THEN(status, find_shape(source->name, &info, &shape, err));
    if (status == STK_OK) {
        pictures->id_column = find_id(&pictures->csv);
        status = check_ids(source->name, &pictures->csv, pictures->id_column, err);
    }
    STK_THEN(status, remove_old(p, err));
    if (status == STK_OK) {
        tell(events, source->name, &shape, pictures->csv.rows);
        status = stk_json_pixels_write(source, &pictures->csv, pictures->id_column, &info, &shape,
                                       p->folder, err);
    }
    STK_THEN(status, write_table(p->csv, &pictures->csv, err));
    STK_THEN(status, write_kept(p, &shape, err));
    if (status == STK_OK) {
        pictures->height = shape.height;
        pictures->width = shape.width;
        pictures->channels = shape.channels;
    }
    stk_json_table_info_free(&info);
    return status;
}

static stk_status take_lock(const results *p, int *fd, stk_error *err) {
    bool taken = false;
    stk_status status = stk_file_lock(p->lock, fd, &taken, err);
    if (status == STK_OK && !taken) {
        status = STK_FAIL(err, STK_ERR_STORAGE,
                          "another run is making the pictures in %s; wait for it and run again",
                          p->folder);
    }
    return status;
}

stk_status stk_json_pictures_convert(const stk_range_source *source, const char *version,
                                     const char *folder, const char *stem, const stk_events *events,
                                     stk_json_pictures *pictures, stk_error *err) {
    results p = {0};
    int fd = -1;
    memset(pictures, 0, sizeof *pictures);
    stk_status status = find_results(&p, source, version, folder, stem, err);
    if (status == STK_OK && !recall(&p, pictures)) {
        status = take_lock(&p, &fd, err);
        /* Another run may have made them in the meantime. */
        if (status == STK_OK && !recall(&p, pictures)) {
            status = make(&p, source, events, pictures, err);
        }
        stk_file_unlock(fd, p.lock);
    }
    if (status == STK_OK) {
        pictures->folder = p.folder;
        p.folder = NULL;
    } else {
        bool none = pictures->none;
        stk_json_pictures_free(pictures);
        pictures->none = none;
    }
    free_results(&p);
    return status;
}
