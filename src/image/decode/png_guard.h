/*
 * png_guard.h - only for this room: what reading and writing PNG share. libpng's memory comes from
 * stk_mem, its errors become a status and leave by longjmp, its warnings are dropped.
 */
#ifndef STK_IMAGE_DECODE_PNG_GUARD_H
#define STK_IMAGE_DECODE_PNG_GUARD_H

#include <stdbool.h>

#include <png.h>

#include <stoker/status.h>

typedef struct stk_png_guard {
    const char *purpose; /* "decoding a PNG" */
    const char *refusal; /* "the PNG cannot be decoded" */
    bool no_memory;      /* an allocation failed; libpng may have continued */
    stk_status status;   /* the error that libpng ended with */
    stk_error *err;      /* borrowed */
} stk_png_guard;

/* Makes libpng's structs with the guard for errors; NULL: no memory. */
png_structp stk_png_new_read(stk_png_guard *guard);
png_structp stk_png_new_write(stk_png_guard *guard);

#endif
