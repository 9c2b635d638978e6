/* png_guard.c - libpng's callbacks for memory, errors and warnings. */
#include "image/decode/png_guard.h"

#include "base/error.h"
#include "base/mem.h"

static png_voidp take_memory(png_structp png, png_alloc_size_t size) {
    stk_png_guard *guard = png_get_mem_ptr(png);
    void *block = stk_mem_raw(size, 1);
    guard->no_memory = guard->no_memory || block == NULL;
    return block;
}

static void give_memory(png_structp png, png_voidp block) {
    (void)png;
    stk_mem_free(block);
}

static PNG_NORETURN void on_error(png_structp png, png_const_charp text) {
    stk_png_guard *guard = png_get_error_ptr(png);
    guard->status = guard->no_memory
                        ? STK_FAIL_MEMORY(guard->err, guard->purpose)
                        : STK_FAIL(guard->err, STK_ERR_DATA, "%s: %s", guard->refusal, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

png_structp stk_png_new_read(stk_png_guard *guard) {
    return png_create_read_struct_2(PNG_LIBPNG_VER_STRING, guard, on_error, on_warning, guard,
                                    take_memory, give_memory);
}

png_structp stk_png_new_write(stk_png_guard *guard) {
    return png_create_write_struct_2(PNG_LIBPNG_VER_STRING, guard, on_error, on_warning, guard,
                                     take_memory, give_memory);
}
