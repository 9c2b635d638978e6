/* recode.c - decides whether a picture has to change, and changes it. */
#include "stage/recode.h"

#include <string.h>

#include "base/str.h"

/* Whether the bytes can stay as they are; fails if the header of a JPEG cannot be read. */
static stk_status may_stay(const stk_recode *how, const uint8_t *bytes, size_t size,
                           const char *extension, bool *stays, stk_error *err) {
    int width = 0;
    int height = 0;
    *stays = how->max_side == 0 && how->quality == 0;
    if (*stays || how->quality != 0 || extension == NULL || !stk_str_equal(extension, "jpg")) {
        return STK_OK;
    }
    stk_status status = stk_image_size(bytes, size, &width, &height, err);
    *stays = status == STK_OK && width <= how->max_side && height <= how->max_side;
    return status;
}

stk_status stk_recode_picture(stk_image_scratch *scratch, const stk_recode *how,
                              const uint8_t *bytes, size_t size, stk_recoded *recoded,
                              stk_error *err) {
    bool stays = false;
    stk_image image = {0};
    memset(recoded, 0, sizeof *recoded);
    recoded->extension = stk_image_extension(bytes, size);
    stk_status status = may_stay(how, bytes, size, recoded->extension, &stays, err);
    if (status != STK_OK || stays) {
        return status;
    }
    status = stk_image_shrink(scratch, bytes, size, how->max_side, &image, err);
    if (status == STK_OK) {
        status = stk_image_encode_jpeg(&image, how->quality > 0 ? how->quality : STK_RECODE_QUALITY,
                                       &recoded->bytes, &recoded->size, err);
        recoded->extension = "jpg";
    }
    stk_image_free(&image);
    return status;
}
