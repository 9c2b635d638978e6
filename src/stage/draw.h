/* draw.h - draws one picture of the sample data set. Not for other rooms. Threads: safe. */
#ifndef STK_STAGE_DRAW_H
#define STK_STAGE_DRAW_H

#include <stoker/status.h>

#include "base/numbers/rng.h"
#include "image/image.h"

#define STK_DRAW_SHAPES 8
#define STK_DRAW_TEXTURES 6

extern const char *const stk_draw_shape_names[STK_DRAW_SHAPES];
extern const char *const stk_draw_texture_names[STK_DRAW_TEXTURES];

/* Draws a new picture; size and all else come from rng. */
STK_CHECKED stk_status stk_draw_picture(stk_image *image, int shape, int texture, stk_rng rng,
                                        stk_error *err);

#endif
