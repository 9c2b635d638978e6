/* emu_image.h - what the emulated NVRTC calls machine code: this, and behind it a shared library.
 */
#ifndef STK_TESTS_EMU_IMAGE_H
#define STK_TESTS_EMU_IMAGE_H

#include <stdint.h>

static const char EMU_IMAGE_MAGIC[8] = "EMUGPU1";

typedef struct emu_image {
    char magic[8];
    uint64_t bytes; /* of the library */
} emu_image;

#endif
