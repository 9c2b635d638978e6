/*
 * changes.c - launches of kernels/changes.cu, and what that kernel has in common with
 * image/augment.
 */
#include "backend/cuda/emit/changes.h"

#include <assert.h>

#define THREADS 512 /* this and COPIES are as in the kernel */
#define COPIES 8
#define LEVELS 256

_Static_assert(CUDA_FILL_RED == STK_FILL_RED && CUDA_FILL_GREEN == STK_FILL_GREEN &&
                   CUDA_FILL_BLUE == STK_FILL_BLUE,
               "kernels fill with another colour");
_Static_assert(CUDA_GREY_RED == STK_GREY_RED && CUDA_GREY_GREEN == STK_GREY_GREEN &&
                   CUDA_GREY_BLUE == STK_GREY_BLUE,
               "kernels have another grey");
_Static_assert(CUDA_MOST_CHANGES >= STK_DRAW_CHANGES, "a cuda_picture cannot have all changes");

/* The units that the kernel's shifts by 16 bits are made for. */
_Static_assert(STK_FACTOR_ONE * 128 == 65536 << 5, "a factor has other units");
_Static_assert(STK_HUE_SIXTH * 128 == 65536 << 4, "a turn has other units");

/* No default: the compiler then misses kinds that are new. */
static int kind_of(stk_change_kind kind) {
#define SAME(name)          \
    case STK_CHANGE_##name: \
        return CUDA_CHANGE_##name
    switch (kind) {
        SAME(IDENTITY);
    case STK_CHANGE_SHEAR_X:
    case STK_CHANGE_SHEAR_Y:
    case STK_CHANGE_ROTATE:
        return CUDA_CHANGE_MAP;
        SAME(TRANSLATE_X);
        SAME(TRANSLATE_Y);
        SAME(BRIGHTNESS);
        SAME(SATURATION);
        SAME(CONTRAST);
        SAME(SHARPNESS);
        SAME(POSTERIZE);
        SAME(SOLARIZE);
        SAME(AUTOCONTRAST);
        SAME(EQUALIZE);
        SAME(HUE);
        SAME(ERASE);
    }
#undef SAME
    return CUDA_CHANGE_IDENTITY;
}

void stk_cuda_change_of(const stk_change *change, int size, cuda_change *to) {
    stk_augment_map map;
    assert(size >= 1 && size <= CUDA_MOST_SIDE);
    if (stk_augment_map_of(change, size, &map)) {
        assert(map.x_x == map.y_y);
        *to = (cuda_change){.kind = kind_of(change->kind),
                            .amount = (int)map.x_x,
                            .x = (int)map.x_y,
                            .y = (int)map.y_x,
                            .width = (int)map.x_at,
                            .height = (int)map.y_at};
        return;
    }
    *to = (cuda_change){.kind = kind_of(change->kind),
                        .amount = change->amount,
                        .x = change->x,
                        .y = change->y,
                        .width = change->width,
                        .height = change->height};
}

void stk_cuda_picture_changes(cuda_program *p, int pictures, cuda_ref table) {
    unsigned shared = 3 * LEVELS * (COPIES * 4 + 4 + 1); /* counts, their totals, new values */
    cuda_launch *l =
        stk_cuda_launch(p, "changes", "picture_changes", (unsigned)pictures, 1, THREADS, shared);
    CUDA_ARGS(l, table);
}
