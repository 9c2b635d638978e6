/*
 * json_pixels.c - reads lists of numbers at their places in a JSON file and writes .npy files.
 *
 * Rows are independent, so several threads take them. A number with at most 19 digits and a small
 * exponent is computed from its digits in double, which is exact enough for a float; all others
 * take strtod.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/threads/pool.h"
#include "dataset/json_pictures.h"

/* A multiple of 64, with room for the dictionary of any shape. */
#define HEAD_BYTES 128

/* More threads do not help: the file system takes its time for each file. */
#define THREADS_MOST 8

/* Digits that a number of 64 bits holds in any case. */
#define DIGITS_MOST 19

typedef struct pixels {
    const stk_range_source *source;
    const stk_csv *csv;
    size_t id_column;
    const stk_json_table_info *info;
    const stk_json_shape *shape;
    const char *folder;
    stk_bytes texts[THREADS_MOST]; /* owned, of each thread: a list as it stands in the file */
    stk_bytes files[THREADS_MOST]; /* owned, of each thread: a picture as a file */
    stk_error errors[THREADS_MOST];
} pixels;

/* ---- numbers ---- */

static double power_of_ten(int exponent) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return powers[exponent];
}

/* The digits of a number and its point. */
typedef struct digits {
    uint64_t value;
    int count;
    int behind; /* the point */
} digits;

static const char *take_digits(const char *p, digits *d, bool behind) {
    while (*p >= '0' && *p <= '9') {
        if (d->count < DIGITS_MOST) {
            d->value = d->value * 10 + (uint64_t)(*p - '0');
            d->behind += behind;
        }
        d->count += d->count > 0 || *p != '0'; /* zeros in front are no digits */
        p++;
    }
    return p;
}

/* The number at *text, which moves behind it; NAN where none is. */
static double take_number(const char **text) {
    const char *p = *text;
    bool negative = *p == '-';
    digits d = {0};
    p += negative;
    const char *first = p;
    p = take_digits(p, &d, false);
    if (p == first) {
        return NAN;
    }
    if (*p == '.') {
        p = take_digits(p + 1, &d, true);
    }
    if (*p == 'e' || *p == 'E' || d.count > DIGITS_MOST || d.behind > 22) {
        char *end = NULL;
        double value = strtod(*text, &end);
        *text = end;
        return value;
    }
    *text = p;
    double value = (double)d.value / power_of_ten(d.behind);
    return negative ? -value : value;
}

bool stk_json_pixels_parse(const char *text, size_t count, float *out, size_t step) {
    size_t found = 0;
    const char *p = text;
    while (*p != '\0') {
        if (*p == '-' || (*p >= '0' && *p <= '9')) {
            float value = (float)take_number(&p);
            if (found == count || !isfinite(value)) {
                return false;
            }
            out[found++ * step] = value;
        } else if (strchr("[], \t\r\n", *p) != NULL) {
            p++;
        } else {
            return false;
        }
    }
    return found == count;
}

/* ---- files ---- */

uint64_t stk_json_pixels_file_bytes(const stk_json_shape *shape) {
    return HEAD_BYTES + (uint64_t)shape->height * shape->width * shape->channels * sizeof(float);
}

/* The head of a .npy file, format 1.0: its length is the last thing before the dictionary. */
static void write_head(char *head, const stk_json_shape *shape) {
    char text[HEAD_BYTES];
    int length = snprintf(text, sizeof text,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu, %zu), }",
                          shape->height, shape->width, shape->channels);
    memset(head, ' ', HEAD_BYTES);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)(HEAD_BYTES - 10);
    head[9] = 0;
    memcpy(head + 10, text, (size_t)length);
    head[HEAD_BYTES - 1] = '\n';
}

/* The floats of a machine with the other order of bytes are turned. */
static void order_bytes(uint8_t *data, size_t count) {
    const uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    for (size_t i = 0; low == 0 && i < count; i++) {
        uint8_t *f = data + 4 * i;
        uint8_t swapped[4] = {f[3], f[2], f[1], f[0]};
        memcpy(f, swapped, 4);
    }
}

static stk_status read_channel(const pixels *p, size_t row, size_t channel, stk_bytes *text,
                               float *out, stk_error *err) {
    const stk_json_shape *shape = p->shape;
    const stk_json_array *array = &p->info->arrays[shape->arrays[channel]];
    const stk_json_place *place = &array->places[row];
    const char *id = stk_csv_cell(p->csv, row, p->id_column);
    if (place->bytes == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: the record with the id \"%.100s\" has no %s; complete or remove it",
                        p->source->name, id, array->name);
    }
    size_t bytes = (size_t)place->bytes;
    if (!stk_bytes_reserve(text, bytes + 1)) {
        return STK_FAIL_MEMORY(err, p->source->name);
    }
    stk_status status = stk_range_read(p->source, place->offset, text->data, bytes, err);
    if (status != STK_OK) {
        return status;
    }
    text->data[bytes] = '\0';
    if (!stk_json_pixels_parse((const char *)text->data, shape->height * shape->width,
                               out + channel, shape->channels)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: the %s of the record with the id \"%.100s\", at byte %llu, is not %zu "
                        "numbers that fit a float; correct or remove the record",
                        p->source->name, array->name, id, (unsigned long long)place->offset,
                        shape->height * shape->width);
    }
    return STK_OK;
}

static stk_status write_row(pixels *p, size_t row, stk_bytes *text, stk_bytes *file,
                            stk_error *err) {
    static const stk_file_how how = {.passing = true}; /* the .kept file is synced, and checks */
    const stk_json_shape *shape = p->shape;
    stk_status status = STK_OK;
    float *out = (float *)(void *)(file->data + HEAD_BYTES);
    for (size_t c = 0; status == STK_OK && c < shape->channels; c++) {
        status = read_channel(p, row, c, text, out, err);
    }
    if (status != STK_OK) {
        return status;
    }
    order_bytes(file->data + HEAD_BYTES, shape->height * shape->width * shape->channels);
    char *path = stk_str_format("%s/%s.npy", p->folder, stk_csv_cell(p->csv, row, p->id_column));
    status = path != NULL ? stk_file_write_how(path, file->data, file->size, &how, err)
                          : STK_FAIL_MEMORY(err, p->source->name);
    stk_mem_free(path);
    return status;
}

static void write_task(void *context, size_t task, int thread) {
    pixels *p = context;
    stk_error *err = &p->errors[thread];
    stk_bytes *file = &p->files[thread];
    size_t bytes = (size_t)stk_json_pixels_file_bytes(p->shape);
    if (err->status != STK_OK) { /* after an error this thread's rows are passed over */
        return;
    }
    if (file->data == NULL) {
        if (!stk_bytes_reserve(file, bytes)) {
            (void)STK_FAIL_MEMORY(err, p->source->name);
            return;
        }
        file->size = bytes;
        write_head((char *)file->data, p->shape);
    }
    (void)(write_row(p, task, &p->texts[thread], file, err) == STK_OK);
}

stk_status stk_json_pixels_write(const stk_range_source *source, const stk_csv *csv,
                                 size_t id_column, const stk_json_table_info *info,
                                 const stk_json_shape *shape, const char *folder, stk_error *err) {
    stk_pool *pool = NULL;
    int cores = stk_machine_cores();
    pixels *p = stk_mem_new(1, sizeof *p);
    if (p == NULL) {
        return STK_FAIL_MEMORY(err, source->name);
    }
    *p = (pixels){.source = source,
                  .csv = csv,
                  .id_column = id_column,
                  .info = info,
                  .shape = shape,
                  .folder = folder};
    stk_status status = stk_pool_new(&pool, cores < THREADS_MOST ? cores : THREADS_MOST, err);
    if (status == STK_OK) {
        stk_pool_run(pool, csv->rows, write_task, p);
    }
    stk_pool_free(pool);
    for (int i = 0; i < THREADS_MOST; i++) {
        if (status == STK_OK && p->errors[i].status != STK_OK) {
            status = stk_error_pass(&p->errors[i], err);
        }
        stk_bytes_free(&p->texts[i]);
        stk_bytes_free(&p->files[i]);
    }
    stk_mem_free(p);
    return status;
}
