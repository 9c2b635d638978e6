/* test_image_raw.c - pictures as plain pixels. */
#include "check.h"
#include "resize_picture.h"

#include "base/error.h"
#include "base/mem.h"
#include "image/decode/decoders.h"

static stk_image make_image(int width, int height) {
    stk_error err = {0};
    stk_image image = {0};
    if (stk_image_new(&image, width, height, &err) == STK_OK) {
        for (int i = 0; i < width * height * 3; i++) {
            image.pixels[i] = (uint8_t)(i * 7 + i / 11);
        }
    }
    return image;
}

static void pixels_come_back(void) {
    stk_error err = {0};
    stk_image image = make_image(13, 7);
    stk_image again = {0};
    stk_bytes raw = {0};
    int width = 0;
    int height = 0;
    REQUIRE_OK(stk_image_encode_raw(&image, &raw, &err), &err);
    CHECK(stk_image_is_raw(raw.data, raw.size));
    REQUIRE_OK(stk_image_size(raw.data, raw.size, &width, &height, &err), &err);
    CHECK_INT(width, 13);
    CHECK_INT(height, 7);
    REQUIRE_OK(stk_image_decode(raw.data, raw.size, &again, &err), &err);
    REQUIRE(again.width == 13 && again.height == 7);
    CHECK_INT(memcmp(again.pixels, image.pixels, (size_t)13 * 7 * 3), 0);
    stk_image_free(&image);
    stk_image_free(&again);
    stk_bytes_free(&raw);
}

/* The part that a transform takes from it is the part of the whole picture. */
static void a_transform_takes_the_same_part(void) {
    stk_error err = {0};
    stk_image image = make_image(60, 40);
    stk_bytes raw = {0};
    stk_image_scratch *scratch = NULL;
    stk_transform transform = {.size = 24, .train = true, .augment = {.crop_scale = 0.3}};
    uint8_t got[24 * 24 * 3];
    uint8_t want[24 * 24 * 3];
    REQUIRE_OK(stk_image_encode_raw(&image, &raw, &err), &err);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (uint64_t i = 0; i < 20; i++) {
        stk_rng rng = stk_rng_make(3, STK_RNG_TEST, 0, i);
        stk_rng same = rng;
        bool flip;
        REQUIRE_OK(
            stk_transform_apply(scratch, &transform, raw.data, raw.size, rng, got, NULL, &err),
            &err);
        stk_crop crop = stk_transform_draw(&transform, 60, 40, &same, &flip);
        REQUIRE_OK(resize_picture(&image, crop, 24, STK_BILINEAR, flip, want, &err), &err);
        CHECK_INT(memcmp(got, want, sizeof got), 0);
    }
    stk_image_scratch_free(scratch);
    stk_bytes_free(&raw);
    stk_image_free(&image);
}

static void damaged_heads_are_refused(void) {
    stk_error err = {0};
    stk_image image = make_image(5, 4);
    stk_image out = {0};
    stk_bytes raw = {0};
    REQUIRE_OK(stk_image_encode_raw(&image, &raw, &err), &err);
    for (size_t size = 8; size < raw.size; size++) {
        stk_error_clear(&err);
        CHECK_INT(stk_image_decode(raw.data, size, &out, &err), STK_ERR_DATA);
    }
    for (size_t at = 8; at < 16; at++) { /* another size than there are pixels for */
        raw.data[at] ^= 0x41;
        stk_error_clear(&err);
        CHECK_INT(stk_image_decode(raw.data, raw.size, &out, &err), STK_ERR_DATA);
        raw.data[at] ^= 0x41;
    }
    stk_mem_fail_after(0);
    stk_bytes other = {0};
    stk_error_clear(&err);
    CHECK_INT(stk_image_encode_raw(&image, &other, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    stk_bytes_free(&raw);
    stk_image_free(&image);
}

static const check_test tests[] = {
    TEST(pixels_come_back),
    TEST(a_transform_takes_the_same_part),
    TEST(damaged_heads_are_refused),
};

CHECK_MAIN(tests)
