/* picture_look.c - reads a few training pictures before the network is built. */
#include "job/recipe/picture_look.h"

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

/* Looks at one picture; *plain: no more are needed. */
static stk_status look_at(const stk_dataset *dataset, const char *path, stk_window_meter *meter,
                          stk_picture_look *look, bool *plain, stk_error *err) {
    stk_bytes bytes = {0};
    stk_error why = {0};
    int channels = 0;
    stk_status status = stk_store_read(dataset->store, path, &bytes, &why);
    if (status == STK_OK) {
        *plain = look->looked == 0 && is_plain(&bytes);
        status = *plain ? STK_OK : stk_image_channels(bytes.data, bytes.size, &channels, &why);
    }
    if (status == STK_OK && !*plain) {
        /* Pictures that differ become RGB, or bad ones. */
        look->channels = look->looked == 0 ? channels : look->channels == channels ? channels : 3;
        look->looked++;
        status = stk_window_meter_add(meter, bytes.data, bytes.size, &why);
    }
    stk_bytes_free(&bytes);
    return status == STK_ERR_MEMORY || status == STK_ERR_STOPPED
               ? STK_FAIL(err, status, "%s", why.message)
               : STK_OK;
}

stk_status stk_picture_look_at(const stk_dataset *dataset, stk_picture_look *look, stk_error *err) {
    size_t count = dataset->train.count;
    size_t step = count / LOOKED_AT + 1;
    stk_window_meter *meter = NULL;
    bool plain = false;
    *look = (stk_picture_look){.channels = 3};
    stk_status status = stk_window_meter_new(&meter, err);
    for (size_t i = 0; status == STK_OK && !plain && i < count; i += step) {
        status = look_at(dataset, dataset->train.items[i].path, meter, look, &plain, err);
    }
    if (status == STK_OK) {
        stk_window_meter_end(meter, &look->window);
        look->window.channels = look->window.channels == look->channels ? look->channels : 0;
    }
    stk_window_meter_free(meter);
    return status;
}
