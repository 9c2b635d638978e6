/* scratch.c - making and freeing the scratch, and the gate for large pictures. */
#include "image/crop/scratch.h"

#include "base/error.h"
#include "base/mem.h"

stk_status stk_image_scratch_new(stk_image_scratch **out, const stk_heavy_gate *gate,
                                 stk_error *err) {
    stk_image_scratch *scratch = stk_mem_new(1, sizeof *scratch);
    if (scratch == NULL) {
        return STK_FAIL_MEMORY(err, "decoding pictures");
    }
    if (gate != NULL) {
        scratch->gate = *gate;
    }
    *out = scratch;
    return STK_OK;
}

void stk_image_scratch_free(stk_image_scratch *scratch) {
    if (scratch != NULL) {
        stk_resampler_free(&scratch->resampler);
        stk_mem_free(scratch->spare);
        stk_mem_free(scratch);
    }
}

void stk_image_scratch_limit(stk_image_scratch *scratch, const stk_image_limit *limit) {
    scratch->limit = *limit;
}

uint64_t stk_image_scratch_source_px(const stk_image_scratch *scratch) {
    return scratch->source_px;
}

stk_status stk_image_scratch_enter(stk_image_scratch *scratch, uint64_t bytes, stk_error *err) {
    if (scratch->heavy || bytes < STK_IMAGE_HEAVY_BYTES || scratch->gate.enter == NULL) {
        return STK_OK;
    }
    stk_status status = scratch->gate.enter(scratch->gate.user, bytes, err);
    scratch->heavy = status == STK_OK;
    return status;
}

void stk_image_scratch_leave(stk_image_scratch *scratch) {
    if (scratch->heavy) {
        scratch->heavy = false;
        scratch->gate.leave(scratch->gate.user);
    }
}
