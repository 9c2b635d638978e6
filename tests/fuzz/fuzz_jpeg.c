/* fuzz_jpeg.c - any bytes are a picture or a reason, and the whole square is filled: JPEG. */
#include "fuzz_image.h"

fuzz_plan fuzz_prepare(void) {
    return fuzz_plan_pictures(FILE_JPEG, &stk_image_jpeg, 2000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    return 0;
}
