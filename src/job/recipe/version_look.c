/* version_look.c - compares versions of some training pictures. */
#include "job/recipe/version_look.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/files/file.h"
#include "image/image.h"

/* Pairs that are compared, each with so many pixels on its longer side. */
#define PAIRS 8
#define SMALL_PX 32

/* Levels of 255 by which the values of two small pictures differ on average: up to here they look
 * the same. Hidden messages and other patterns of single pixels make less than one, another
 * picture makes tens. */
#define MOST_DIFFERENCE 3.0

typedef struct version_look {
    const stk_dataset *dataset;
    stk_image_scratch *scratch;
} version_look;

/* A small picture of a sample, and the size of the stored one. */
static stk_status read_small(const version_look *look, const char *path, stk_image *small,
                             int size[2], stk_error *err) {
    stk_bytes bytes = {0};
    stk_status status = stk_store_read(look->dataset->store, path, &bytes, err);
    STK_THEN(status, stk_image_size(bytes.data, bytes.size, &size[0], &size[1], err));
    STK_THEN(status, stk_image_shrink(look->scratch, bytes.data, bytes.size, SMALL_PX, small, err));
    stk_bytes_free(&bytes);
    return status;
}

/* Whether both pictures have one size and look the same when small. */
static stk_status compare(const version_look *look, const stk_sample *a, const stk_sample *b,
                          bool *same, stk_error *err) {
    stk_image small[2] = {{0}};
    int sizes[2][2];
    stk_status status = read_small(look, a->path, &small[0], sizes[0], err);
    STK_THEN(status, read_small(look, b->path, &small[1], sizes[1], err));
    if (status == STK_OK) {
        bool equal = small[0].width == small[1].width && small[0].height == small[1].height &&
                     sizes[0][0] == sizes[1][0] && sizes[0][1] == sizes[1][1];
        int values = 3 * small[0].width * small[0].height;
        double difference = 0;
        for (int i = 0; equal && i < values; i++) {
            difference += abs(small[0].pixels[i] - small[1].pixels[i]);
        }
        *same = equal && difference <= MOST_DIFFERENCE * values;
    }
    stk_image_free(&small[0]);
    stk_image_free(&small[1]);
    return status;
}

/* A training sample of the same group and another class; NULL: there is none. */
static const stk_sample *version_of(const stk_dataset *dataset, const stk_sample *sample) {
    const stk_sample_list *train = &dataset->train;
    for (size_t i = 0; sample->part >= 0 && i < train->count; i++) {
        if (train->items[i].part == sample->part && train->items[i].label != sample->label) {
            return &train->items[i];
        }
    }
    return NULL;
}

stk_status stk_versions_look_at(const stk_dataset *dataset, bool *faint, stk_error *err) {
    const stk_sample_list *train = &dataset->train;
    version_look look = {.dataset = dataset};
    size_t step = train->count / PAIRS + 1;
    int compared = 0;
    int alike = 0;
    stk_status status = stk_image_scratch_new(&look.scratch, NULL, err);
    bool grouped = dataset->division == STK_DIVIDE_GROUPS;
    for (size_t i = 0; status == STK_OK && grouped && i < train->count; i += step) {
        const stk_sample *other = version_of(dataset, &train->items[i]);
        bool same = false;
        stk_error why = {0};
        stk_status fits =
            other != NULL ? compare(&look, &train->items[i], other, &same, &why) : STK_ERR_DATA;
        compared += fits == STK_OK;
        alike += same;
        if (fits == STK_ERR_MEMORY || fits == STK_ERR_STOPPED) {
            status = STK_FAIL(err, fits, "%s", why.message);
        }
    }
    stk_image_scratch_free(look.scratch);
    *faint = 2 * alike > compared;
    return status;
}
