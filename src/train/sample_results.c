/* sample_results.c - the results of one validation, sample by sample. */
#include "train/sample_results.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

stk_status stk_sample_results_open(stk_sample_results *results, size_t capacity, stk_task task,
                                   int outputs, stk_error *err) {
    bool labels = task == STK_TASK_MULTILABEL;
    bool numbers = task == STK_TASK_REGRESSION;
    *results = (stk_sample_results){.capacity = capacity};
    results->width = numbers ? outputs
                     : labels
                         ? (outputs < STK_RESULT_MOST_LABELS ? outputs : STK_RESULT_MOST_LABELS)
                         : 0;
    size_t width = (size_t)results->width;
    results->items = stk_mem_raw(capacity, sizeof *results->items);
    results->labels = labels ? stk_mem_raw(capacity, width * sizeof *results->labels) : NULL;
    results->numbers = numbers ? stk_mem_raw(capacity, width * sizeof *results->numbers) : NULL;
    bool whole = results->items != NULL && labels == (results->labels != NULL) &&
                 numbers == (results->numbers != NULL);
    if (!whole) {
        stk_sample_results_free(results);
    }
    return whole ? STK_OK : STK_FAIL_MEMORY(err, "validation");
}

void stk_sample_results_free(stk_sample_results *results) {
    stk_mem_free(results->items);
    stk_mem_free(results->labels);
    stk_mem_free(results->numbers);
    memset(results, 0, sizeof *results);
}

void stk_sample_results_reset(stk_sample_results *results) {
    results->count = 0;
}

static void add(stk_sample_results *results, size_t sample, int predicted, double probability) {
    size_t place = results->count;
    assert(place < results->capacity);
    results->items[results->count++] = (stk_sample_result){.sample = sample,
                                                           .place = place,
                                                           .predicted = predicted,
                                                           .probability = (float)probability};
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
    add(results, sample, predict(logits, classes, label),
        probability >= 0 ? fmin(probability, 1) : 0);
}

/* Stores the label after those that are stored. Where there is no room, the least likely one of
 * them and the new one is left out. */
static void store_label(int *stored, int *count, int width, const float *logits, int label) {
    if (*count == width) {
        int out = 0;
        for (int i = 1; i < *count; i++) {
            out = logits[stored[i]] < logits[stored[out]] ? i : out;
        }
        if (!(logits[label] > logits[stored[out]])) {
            return;
        }
        memmove(stored + out, stored + out + 1, (size_t)(width - out - 1) * sizeof *stored);
        --*count;
    }
    stored[(*count)++] = label;
}

void stk_sample_results_add_labels(stk_sample_results *results, size_t sample, const float *logits,
                                   const float *targets, int labels) {
    int *stored = results->labels + results->count * (size_t)results->width;
    double all_sum = 0;
    double told_sum = 0; /* of the labels that are true or predicted */
    int all = 0;
    int told = 0;
    int count = 0;
    for (int l = 0; l < labels; l++) {
        bool predicted = logits[l] > 0;
        if (predicted) {
            store_label(stored, &count, results->width, logits, l);
        }
        if (isnan(targets[l])) {
            continue;
        }
        bool is_true = targets[l] > 0.5F;
        double right = 1 / (1 + exp(is_true ? -(double)logits[l] : (double)logits[l]));
        right = isnan(right) ? 0 : right;
        all_sum += right;
        all++;
        if (is_true || predicted) {
            told_sum += right;
            told++;
        }
    }
    add(results, sample, count, told > 0 ? told_sum / told : all > 0 ? all_sum / all : NAN);
}

void stk_sample_results_add_numbers(stk_sample_results *results, size_t sample,
                                    const float *numbers) {
    size_t width = (size_t)results->width;
    memcpy(results->numbers + results->count * width, numbers, width * sizeof *numbers);
    add(results, sample, 0, NAN);
}

const int *stk_sample_results_labels(const stk_sample_results *results,
                                     const stk_sample_result *result) {
    return results->labels + result->place * (size_t)results->width;
}

const float *stk_sample_results_numbers(const stk_sample_results *results,
                                        const stk_sample_result *result) {
    return results->numbers + result->place * (size_t)results->width;
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
