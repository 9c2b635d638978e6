/* judged.c - keeping what a validation said of each sample. */
#include "train/judged.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

stk_status stk_judged_open(stk_judged *judged, size_t capacity, stk_error *err) {
    *judged = (stk_judged){.capacity = capacity};
    judged->items = stk_mem_raw(capacity, sizeof *judged->items);
    return judged->items != NULL ? STK_OK : STK_FAIL_MEMORY(err, "validation");
}

void stk_judged_free(stk_judged *judged) {
    stk_mem_free(judged->items);
    memset(judged, 0, sizeof *judged);
}

void stk_judged_reset(stk_judged *judged) {
    judged->count = 0;
}

/* The label, unless another class is as likely: then the likeliest of the others. */
static int predict(const float *logits, int classes, int label) {
    int as_likely = 0; /* the label itself counts */
    int predicted = label;
    for (int c = 0; c < classes; c++) {
        as_likely += !(logits[c] < logits[label]);
    }
    for (int c = 0; c < classes && as_likely > 1; c++) {
        if (c != label && (predicted == label || logits[c] > logits[predicted])) {
            predicted = c;
        }
    }
    return predicted;
}

void stk_judged_add(stk_judged *judged, size_t sample, const float *logits, int classes, int label,
                    double loss) {
    double probability = exp(-loss);
    assert(judged->count < judged->capacity);
    judged->items[judged->count++] =
        (stk_judgement){.sample = sample,
                        .predicted = predict(logits, classes, label),
                        .probability = probability >= 0 ? (float)fmin(probability, 1) : 0};
}

static int by_sample(const void *a, const void *b) {
    size_t x = ((const stk_judgement *)a)->sample;
    size_t y = ((const stk_judgement *)b)->sample;
    return (x > y) - (x < y);
}

void stk_judged_sort(stk_judged *judged) {
    if (judged->count > 1) {
        qsort(judged->items, judged->count, sizeof *judged->items, by_sample);
    }
}
