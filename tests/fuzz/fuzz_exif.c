/* fuzz_exif.c - any bytes have an orientation from 1 to 8, and that is always the same one. */
#include "fuzz.h"

#include "image/decoders.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"),
    FUZZ_SEED("MM\0*\0\0\0\x08\0\x02\x01\x0F\0\x02\0\0\0\x04"
              "abc\0\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0"),
    FUZZ_SEED("II*\0\x1A\0\0\0abcdefghijklmnopqr\x01\0\x12\x01\x04\0\x01\0\0\0\x03\0\0\0\0\0\0\0"),
};
FUZZ_PLAN(seeds)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int orientation = stk_image_orientation(data, size);
    FUZZ_REQUIRE(orientation >= 1 && orientation <= 8);
    FUZZ_REQUIRE(stk_image_orientation(data, size) == orientation);
    return 0;
}
