/* sample_results.c - the results of one validation, sample by sample. */
#include "train/sample_results.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

stk_status stk_sample_results_open(stk_sample_results *results, size_t capacity, stk_error *err) {
    *results = (stk_sample_results){.capacity = capacity};
    results->items = stk_mem_raw(capacity, sizeof *results->items);
    return results->items != NULL ? STK_OK : STK_FAIL_MEMORY(err, "validation");
}

void stk_sample_results_free(stk_sample_results *results) {
    stk_mem_free(results->items);
    memset(results, 0, sizeof *results);
}

void stk_sample_results_reset(stk_sample_results *results) {
    results->count = 0;
}

/* The label if it is the only most likely class; otherwise the most likely of the others. */
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

void stk_sample_results_add(stk_sample_results *results, size_t sample, const float *logits,
                            int classes, int label, double loss) {
    double probability = exp(-loss);
    assert(results->count < results->capacity);
    results->items[results->count++] =
        (stk_sample_result){.sample = sample,
                            .predicted = predict(logits, classes, label),
                            .probability = probability >= 0 ? (float)fmin(probability, 1) : 0};
}

static int by_sample(const void *a, const void *b) {
    size_t x = ((const stk_sample_result *)a)->sample;
    size_t y = ((const stk_sample_result *)b)->sample;
    return (x > y) - (x < y);
}

void stk_sample_results_sort(stk_sample_results *results) {
    if (results->count > 1) {
        qsort(results->items, results->count, sizeof *results->items, by_sample);
    }
}
