/* fuzz_webp.c - any bytes are a picture or a reason, and the whole square is filled: WebP. */
#include "fuzz_image.h"

static const fuzz_seed refused[] = {FUZZ_SEED("RIFF\x08\0\0\0WEBPVP8 ")};

/* A build without libwebp refuses what it is given, and must do so properly. */
fuzz_plan fuzz_prepare(void) {
    fuzz_plan plan = fuzz_plan_pictures(FILE_WEBP, &stk_image_webp, 2000);
    if (plan.count == 0) {
        plan = (fuzz_plan){.seeds = refused, .count = 1, .prefixed = 1, .mutations = 2000};
    }
    return plan;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    return 0;
}
