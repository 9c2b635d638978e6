/* fuzz_metric_words.c - whatever a description says, the metric found can rate the task, and its
 * phrase stands in the text. */
#include "fuzz.h"

#include <string.h>

#include "base/mem.h"
#include "metrics/metric_words.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("# Boats\n\n## Evaluation\n\nEntries are evaluated with the mean average precision @ "
              "5 (MAP@5), not with accuracy.\n\n## Prizes\n\nNone; macro F1.\n"),
    FUZZ_SEED("**Evaluation**\nThe quadratic weighted\nkappa, instead of log-loss, R\xC2\xB2 or "
              "F1-Score (micro averaged)."),
    FUZZ_SEED(
        "## Metric\n\nModels are evaluated for accuracy using mean F2; name up to five labels. "
        "mAP, Matthew\xE2\x80\x99s correlation (MCC), Kullback-Leibler."),
    FUZZ_SEED("Scored by AUC; the former metric was RMSE"),
};
FUZZ_PLAN(seeds)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = stk_mem_new(size + 1, 1);
    FUZZ_REQUIRE(text != NULL);
    memcpy(text, data, size);
    stk_task task = (stk_task)(size % (STK_TASK_RANKING + 1));
    stk_metric_mention found = stk_metric_find_in_text(text, task);
    FUZZ_REQUIRE(stk_metric_rates(found.metric, task));
    FUZZ_REQUIRE(found.k >= 0 && found.k < 1000);
    FUZZ_REQUIRE(memchr(found.phrase, '\0', sizeof found.phrase) != NULL);
    FUZZ_REQUIRE((found.metric == STK_METRIC_AUTO) == (found.phrase[0] == '\0'));
    (void)stk_metric_is_nearest(found.metric, found.phrase);
    stk_mem_free(text);
    return 0;
}
