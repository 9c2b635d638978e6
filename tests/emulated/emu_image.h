/*
 * emu_image.h - what the emulated NVRTC calls machine code or PTX: this, and behind it a shared
 * library. Machine code runs on what it was compiled for and later devices of the same generation,
 * PTX on whatever is not older.
 */
#ifndef STK_TESTS_EMU_IMAGE_H
#define STK_TESTS_EMU_IMAGE_H

#include <stdint.h>

static const char EMU_IMAGE_MAGIC[8] = "EMUGPU3";

#define EMU_MOST_NUMBERS 48

typedef struct emu_image {
    char magic[8];
    int32_t arch;   /* compute capability times ten */
    int32_t ptx;    /* 0: it is machine code */
    uint64_t bytes; /* of the library */
    int32_t count;  /* of the numbers that the driver puts into the library's emu_numbers */
    int32_t numbers[EMU_MOST_NUMBERS];
} emu_image;

#endif
