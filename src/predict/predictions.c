/* predictions.c - rows of values in full, or the largest values of each row. */
#include "predict/predictions.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* Values of a row that are kept at least. A label that is named is one of them: rows with more
 * labels than that are not known. */
#define LEAST_KEPT 64

size_t stk_predictions_kept(const stk_answer *answer, size_t rows, size_t outputs) {
    bool few = answer->kind == STK_ANSWER_LABEL || answer->kind == STK_ANSWER_RANKED ||
               answer->kind == STK_ANSWER_LIST || answer->kind == STK_ANSWER_FLAGS;
    size_t most = answer->most > 0 ? (size_t)answer->most : 0;
    size_t kept = 2 * most > LEAST_KEPT ? 2 * most : LEAST_KEPT;
    bool fits = rows == 0 || outputs <= STK_PREDICTIONS_FULL / rows;
    return few && !fits && 2 * kept < outputs ? kept : 0;
}

stk_status stk_predictions_open(stk_predictions *p, size_t rows, size_t outputs, size_t kept,
                                stk_error *err) {
    *p = (stk_predictions){.rows = rows, .outputs = outputs, .kept = kept};
    bool ok;
    if (kept == 0) {
        p->all = stk_mem_new(rows, outputs * sizeof *p->all);
        ok = p->all != NULL;
    } else {
        p->places = stk_mem_new(rows, kept * sizeof *p->places);
        p->values = stk_mem_new(rows, (kept + 1) * sizeof *p->values);
        ok = p->places != NULL && p->values != NULL;
    }
    if (!ok) {
        stk_predictions_free(p);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    return STK_OK;
}

void stk_predictions_free(stk_predictions *p) {
    stk_mem_free(p->all);
    stk_mem_free(p->places);
    stk_mem_free(p->values);
    memset(p, 0, sizeof *p);
}

const double *stk_predictions_row(const stk_predictions *p, size_t row, double *scratch) {
    if (p->kept == 0) {
        return p->all + row * p->outputs;
    }
    const int32_t *places = p->places + row * p->kept;
    const float *values = p->values + row * (p->kept + 1);
    for (size_t i = 0; i < p->outputs; i++) {
        scratch[i] = values[p->kept];
    }
    for (size_t i = 0; i < p->kept; i++) {
        scratch[places[i]] = values[i];
    }
    return scratch;
}

/* Moves the place at the root of a heap, whose smallest value is on top, to where it belongs. */
static void sift_down(const double *values, int32_t *heap, size_t count) {
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < count && values[heap[child + 1]] < values[heap[child]]) {
            child++;
        }
        if (child >= count || !(values[heap[child]] < values[heap[at]])) {
            return;
        }
        int32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* Fills the heap with the places of the largest values; of equal ones the first are kept. */
static void find_largest(const double *values, size_t outputs, int32_t *heap, size_t kept) {
    for (size_t i = 0; i < kept; i++) { /* up from a leaf */
        size_t at = i;
        heap[at] = (int32_t)i;
        while (at > 0 && values[heap[at]] < values[heap[(at - 1) / 2]]) {
            size_t up = (at - 1) / 2;
            int32_t moved = heap[at];
            heap[at] = heap[up];
            heap[up] = moved;
            at = up;
        }
    }
    for (size_t i = kept; i < outputs; i++) {
        if (values[i] > values[heap[0]]) {
            heap[0] = (int32_t)i;
            sift_down(values, heap, kept);
        }
    }
}

static bool has_place(const int32_t *places, size_t count, int place) {
    bool has = false;
    for (size_t i = 0; i < count; i++) {
        has = has || places[i] == place;
    }
    return has;
}

void stk_predictions_set(stk_predictions *p, size_t row, const double *values, int also) {
    if (p->kept == 0) {
        memmove(p->all + row * p->outputs, values, p->outputs * sizeof *values);
        return;
    }
    int32_t *places = p->places + row * p->kept;
    float *few = p->values + row * (p->kept + 1);
    double others = 0;
    find_largest(values, p->outputs, places, p->kept);
    if (also >= 0 && !has_place(places, p->kept, also)) {
        places[0] = also; /* instead of the smallest */
    }
    for (size_t i = 0; i < p->outputs; i++) {
        others += values[i];
    }
    for (size_t i = 0; i < p->kept; i++) {
        few[i] = (float)values[places[i]];
        others -= values[places[i]];
    }
    /* What is left may be less than nothing by rounding. */
    few[p->kept] = others > 0 ? (float)(others / (double)(p->outputs - p->kept)) : 0;
}

void stk_predictions_copy(stk_predictions *p, size_t row, const stk_predictions *from,
                          size_t from_row) {
    size_t kept = p->kept;
    if (kept == 0) {
        memcpy(p->all + row * p->outputs, from->all + from_row * p->outputs,
               p->outputs * sizeof *p->all);
    } else {
        memcpy(p->places + row * kept, from->places + from_row * kept, kept * sizeof *p->places);
        memcpy(p->values + row * (kept + 1), from->values + from_row * (kept + 1),
               (kept + 1) * sizeof *p->values);
    }
}
