/* sets.c - figures of several labels per sample. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "metrics/formulas.h"

stk_status stk_set_tally_open(stk_set_tally *tally, int labels, stk_error *err) {
    *tally = (stk_set_tally){.labels = labels};
    tally->hits = stk_mem_new((size_t)labels, sizeof *tally->hits);
    tally->named = stk_mem_new((size_t)labels, sizeof *tally->named);
    if (tally->hits == NULL || tally->named == NULL) {
        stk_set_tally_free(tally);
        return STK_FAIL_MEMORY(err, "counts of labels");
    }
    return STK_OK;
}

void stk_set_tally_free(stk_set_tally *tally) {
    stk_mem_free(tally->hits);
    stk_mem_free(tally->named);
    memset(tally, 0, sizeof *tally);
}

void stk_set_tally_reset(stk_set_tally *tally) {
    if (tally->hits != NULL) {
        memset(tally->hits, 0, (size_t)tally->labels * sizeof *tally->hits);
        memset(tally->named, 0, (size_t)tally->labels * sizeof *tally->named);
    }
    tally->count = tally->exact = 0;
    tally->samples_sum = 0;
}

/* Whether the next eight labels are neither true nor chosen. */
static bool are_all_absent(const int8_t *targets, const bool *chosen) {
    uint64_t of_targets, of_chosen;
    memcpy(&of_targets, targets, sizeof of_targets);
    memcpy(&of_chosen, chosen, sizeof of_chosen);
    return (of_targets | of_chosen) == 0;
}

void stk_set_tally_add(stk_set_tally *tally, const int8_t *targets, const bool *chosen) {
    size_t hits = 0;
    size_t named = 0;
    bool exact = true;
    for (int c = 0; c < tally->labels; c++) {
        while (c + 8 < tally->labels && are_all_absent(targets + c, chosen + c)) {
            c += 8; /* where there are many labels, nearly all are skipped here */
        }
        bool is = targets[c] == 1;
        bool said = chosen[c] && targets[c] != STK_TARGET_UNKNOWN;
        tally->hits[c] += is && said;
        tally->named[c] += (size_t)is + (size_t)said;
        hits += is && said;
        named += (size_t)is + (size_t)said;
        exact = exact && is == said;
    }
    tally->count++;
    tally->exact += exact;
    tally->samples_sum += named > 0 ? 2.0 * (double)hits / (double)named : 0;
}

static double macro_f1(const stk_set_tally *tally) {
    double sum = 0;
    for (int c = 0; c < tally->labels; c++) {
        sum += tally->named[c] > 0 ? 2.0 * (double)tally->hits[c] / (double)tally->named[c] : 0;
    }
    return sum / tally->labels;
}

static double micro_f1(const stk_set_tally *tally) {
    size_t hits = 0;
    size_t named = 0;
    for (int c = 0; c < tally->labels; c++) {
        hits += tally->hits[c];
        named += tally->named[c];
    }
    return named > 0 ? 2.0 * (double)hits / (double)named : 0;
}

double stk_set_tally_value(const stk_set_tally *tally, stk_metric metric) {
    double n = (double)tally->count;
    if (tally->count == 0) {
        return NAN;
    }
    return metric == STK_METRIC_MICRO_F1     ? micro_f1(tally)
           : metric == STK_METRIC_MACRO_F1   ? macro_f1(tally)
           : metric == STK_METRIC_SAMPLES_F1 ? tally->samples_sum / n
           : metric == STK_METRIC_ACC1       ? 100 * (double)tally->exact / n
           : metric == STK_METRIC_ERROR      ? 100 - 100 * (double)tally->exact / n
                                             : NAN;
}
