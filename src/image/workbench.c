/* workbench.c - memory that is used for one picture after the other, and the gate for large ones.
 */
#include "image/workbench.h"

#include "base/error.h"
#include "base/mem.h"

stk_status stk_workbench_new(stk_workbench **out, const stk_heavy_gate *gate, stk_error *err) {
    stk_workbench *bench = stk_mem_new(1, sizeof *bench);
    if (bench == NULL) {
        return STK_FAIL_MEMORY(err, "decoding pictures");
    }
    if (gate != NULL) {
        bench->gate = *gate;
    }
    *out = bench;
    return STK_OK;
}

void stk_workbench_free(stk_workbench *bench) {
    if (bench != NULL) {
        stk_resampler_free(&bench->resampler);
        stk_mem_free(bench->spare);
        stk_mem_free(bench);
    }
}

void stk_workbench_limit(stk_workbench *bench, const stk_image_limit *limit) {
    bench->limit = *limit;
}

uint64_t stk_workbench_source_px(const stk_workbench *bench) {
    return bench->source_px;
}

stk_status stk_workbench_enter(stk_workbench *bench, uint64_t bytes, stk_error *err) {
    if (bench->heavy || bytes < STK_IMAGE_HEAVY_BYTES || bench->gate.enter == NULL) {
        return STK_OK;
    }
    stk_status status = bench->gate.enter(bench->gate.user, bytes, err);
    bench->heavy = status == STK_OK;
    return status;
}

void stk_workbench_leave(stk_workbench *bench) {
    if (bench->heavy) {
        bench->heavy = false;
        bench->gate.leave(bench->gate.user);
    }
}
