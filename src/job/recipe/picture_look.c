/* picture_look.c - reads a few training pictures before the network is built. */
#include "job/recipe/picture_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"

/* Pictures that are read: their values stand for those of all. */
#define LOOKED_AT 48

/* Kinds of pictures that are always RGB of 8 bits. */
static bool is_plain(const stk_bytes *bytes) {
    const char *kind = stk_image_extension(bytes->data, bytes->size);
    return kind != NULL && (strcmp(kind, "jpg") == 0 || strcmp(kind, "webp") == 0 ||
                            strcmp(kind, "gif") == 0 || strcmp(kind, "bmp") == 0);
}

/* Most pictures: all but this share. */
#define FEW 0.1

typedef struct look_taker {
    const stk_dataset *dataset;
    stk_window_meter *meter;
    bool wants_sides;
    bool plain; /* the values of further pictures need no look */
    int sides[LOOKED_AT];
    int side_count;
    stk_picture_look *look;
} look_taker;

/* Values and channels of a picture. */
static stk_status look_at_values(look_taker *t, const stk_bytes *bytes, stk_error *why) {
    stk_picture_look *look = t->look;
    int channels = 0;
    t->plain = t->plain || (look->looked == 0 && is_plain(bytes));
    if (t->plain) {
        return STK_OK;
    }
    stk_status status = stk_image_channels(bytes->data, bytes->size, &channels, why);
    if (status == STK_OK) {
        /* Pictures that differ become RGB, or bad ones. */
        look->channels = look->looked == 0 ? channels : look->channels == channels ? channels : 3;
        look->looked++;
        status = stk_window_meter_add(t->meter, bytes->data, bytes->size, why);
    }
    return status;
}

static stk_status look_at_size(look_taker *t, const stk_bytes *bytes, stk_error *why) {
    int width = 0;
    int height = 0;
    if (!t->wants_sides) {
        return STK_OK;
    }
    stk_status status = stk_image_size(bytes->data, bytes->size, &width, &height, why);
    if (status == STK_OK && t->side_count < LOOKED_AT) {
        t->sides[t->side_count++] = width < height ? width : height;
    }
    return status;
}

static stk_status look_at(look_taker *t, const char *path, stk_error *err) {
    stk_bytes bytes = {0};
    stk_error why = {0};
    stk_status status = stk_store_read(t->dataset->store, path, &bytes, &why);
    STK_THEN(status, look_at_size(t, &bytes, &why));
    STK_THEN(status, look_at_values(t, &bytes, &why));
    stk_bytes_free(&bytes);
    return status == STK_ERR_MEMORY || status == STK_ERR_STOPPED
               ? STK_FAIL(err, status, "%s", why.message)
               : STK_OK;
}

static int by_size(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

stk_status stk_picture_look_at(const stk_dataset *dataset, bool sides, stk_picture_look *look,
                               stk_error *err) {
    size_t count = dataset->train.count;
    size_t step = count / LOOKED_AT + 1;
    look_taker t = {.dataset = dataset, .wants_sides = sides, .look = look};
    *look = (stk_picture_look){.channels = 3};
    stk_status status = stk_window_meter_new(&t.meter, err);
    for (size_t i = 0; status == STK_OK && (!t.plain || sides) && i < count; i += step) {
        status = look_at(&t, dataset->train.items[i].path, err);
    }
    if (status == STK_OK) {
        stk_window_meter_end(t.meter, &look->window);
        look->window.channels = look->window.channels == look->channels ? look->window.channels : 0;
    }
    if (t.side_count > 0) {
        qsort(t.sides, (size_t)t.side_count, sizeof *t.sides, by_size);
        look->side = t.sides[(int)(FEW * t.side_count)];
    }
    stk_window_meter_free(t.meter);
    return status;
}
