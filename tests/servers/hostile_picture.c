/*
 * hostile_picture.c - writes a picture that is legal and takes long to decode.
 *
 *     hostile_picture KIND FILE
 *
 * KIND is `rows` (a PNG of 256 million pixels in some kilobytes), `scans` (a progressive JPEG of
 * 108 million pixels, which takes seconds to make) or `markers` (a JPEG with a million markers that
 * are empty).
 */
#include "unit/image_files.h"

#include "base/files/file.h"

#define MARKERS 1000000
#define MARKER_BYTES 4

static blob make_markers(void) {
    stk_image image = quarters(64, 64);
    blob jpeg = make_rgb_jpeg(&image, false);
    blob out = {stk_mem_raw(jpeg.size + MARKERS * MARKER_BYTES, 1),
                jpeg.size + MARKERS * MARKER_BYTES};
    if (out.bytes == NULL) {
        exit(1);
    }
    memcpy(out.bytes, jpeg.bytes, 2);
    for (size_t i = 0; i < MARKERS; i++) {
        memcpy(out.bytes + 2 + i * MARKER_BYTES, "\xFF\xE1\0\x02", MARKER_BYTES);
    }
    memcpy(out.bytes + 2 + (size_t)MARKERS * MARKER_BYTES, jpeg.bytes + 2, jpeg.size - 2);
    free_blob(&jpeg);
    stk_image_free(&image);
    return out;
}

/* Some noise, so that its scans have something in them. */
static blob make_scans(void) {
    stk_image small = noise(500, 9000, 3);
    stk_image image = quarters(12000, 9000);
    for (int y = 0; y < image.height; y++) {
        for (int x = 0; x < image.width; x++) {
            memcpy(pixel(&image, x, y), pixel(&small, x / 24, y / 12 * 12), 3);
        }
    }
    blob jpeg = make_rgb_jpeg(&image, true);
    stk_image_free(&image);
    stk_image_free(&small);
    return jpeg;
}

int main(int argc, char **argv) {
    stk_error err = {0};
    const char *kind = argc == 3 ? argv[1] : "";
    blob file = {0};
    if (strcmp(kind, "rows") == 0) {
        file = make_slow_png();
    } else if (strcmp(kind, "scans") == 0) {
        file = make_scans();
    } else if (strcmp(kind, "markers") == 0) {
        file = make_markers();
    } else {
        fprintf(stderr, "usage: hostile_picture rows|scans|markers FILE\n");
        return 2;
    }
    stk_status status = stk_file_write(argv[2], file.bytes, file.size, &err);
    if (status != STK_OK) {
        fprintf(stderr, "hostile_picture: %s\n", err.message);
    }
    free_blob(&file);
    return status == STK_OK ? 0 : 1;
}
