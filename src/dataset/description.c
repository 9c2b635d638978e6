/* description.c - reads what the description of a competition says about its metric. */
#include "dataset/description.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "metrics/metric_words.h"

static const char *const file_names[] = {"description.md", "description.txt", NULL};

/* A description is prose; more than this is something else. */
#define MOST_BYTES ((size_t)1024 * 1024)

/* Names in a ranked list where the text does not say how many. */
#define USUAL_RANKED 5

/* What the metric rates; `k` is the length of a ranked list, 0 where it is not known. */
static void take_metric(stk_hints *h, stk_metric metric, int k) {
    h->metric = metric;
    h->k = k;
    h->probabilities = h->labels = h->steps = h->numbers = false;
    h->ranked = 0;
    switch (metric) {
    case STK_METRIC_LOGLOSS:
    case STK_METRIC_AUC:
    case STK_METRIC_AUC_MACRO:
    case STK_METRIC_WEIGHTED_AUC:
    case STK_METRIC_PF1:
        h->probabilities = true;
        break;
    case STK_METRIC_QWK:
        h->steps = true;
        h->labels = true;
        break;
    case STK_METRIC_RMSE:
    case STK_METRIC_MAE:
    case STK_METRIC_R2:
        h->numbers = true;
        break;
    case STK_METRIC_MAPK:
        h->ranked = k > 0 ? k : USUAL_RANKED;
        break;
    case STK_METRIC_AUTO:
        break;
    default:
        h->labels = true;
    }
}

static stk_status read_text(stk_hints *h, const stk_listing *listing, stk_error *err) {
    stk_bytes bytes = {0};
    h->file = stk_listing_entry(listing, file_names, false);
    if (h->file == NULL) {
        return STK_OK;
    }
    stk_status status = stk_store_read(listing->dataset->store, h->file, &bytes, err);
    if (status == STK_OK && bytes.size <= MOST_BYTES) {
        h->text = stk_mem_strndup((const char *)bytes.data, bytes.size);
        status = h->text != NULL ? STK_OK : STK_FAIL_MEMORY(err, h->file);
    }
    stk_bytes_free(&bytes);
    return status;
}

stk_status stk_hints_read(stk_hints *h, const stk_listing *listing, stk_error *err) {
    *h = (stk_hints){.metric = STK_METRIC_AUTO};
    stk_status status = read_text(h, listing, err);
    if (h->text != NULL) {
        stk_metric_mention mention = stk_metric_find_in_text(h->text, STK_TASK_AUTO);
        take_metric(h, mention.metric, mention.k);
        if (mention.is_open) {
            h->probabilities = false;
            h->ranked = 0;
        }
        snprintf(h->phrase, sizeof h->phrase, "%s", mention.phrase);
    }
    return status;
}

void stk_hints_name_metric(stk_hints *h, stk_metric metric) {
    take_metric(h, metric, h->metric == metric ? h->k : 0);
    snprintf(h->phrase, sizeof h->phrase, "--metric %s", stk_metric_info_of(metric)->name);
    h->given = true;
}

void stk_hints_free(stk_hints *h) {
    stk_mem_free(h->text);
    memset(h, 0, sizeof *h);
}

/* Whether a phrase stands in the text, not in the middle of a word. */
static bool has_phrase(const char *text, const char *phrase) {
    for (const char *at = text; (at = strcasestr(at, phrase)) != NULL; at++) {
        if (at == text || !isalnum((unsigned char)at[-1])) {
            return true;
        }
    }
    return false;
}

/* How often the text says that a class is 1, or asks for its probability. */
static int votes_for(const char *text, const char *class_name) {
    char phrase[120];
    int votes = 0;
    static const char *const patterns[] = {"1 = %.80s",         "1 for %.80s", "1 is %.80s",
                                           "1: %.80s",          "1 if %.80s",  "(1) %.80s",
                                           "1 if it is a %.80s"};
    for (size_t i = 0; i < STK_COUNT(patterns); i++) {
        snprintf(phrase, sizeof phrase, patterns[i], class_name);
        votes += has_phrase(text, phrase);
    }
    for (const char *at = text; (at = strcasestr(at, "probability")) != NULL; at++) {
        const char *name = strcasestr(at, class_name);
        const char *end = at + strcspn(at, ".\n");
        votes += name != NULL && name < end;
    }
    return votes;
}

int stk_hints_positive(const stk_hints *h, const char *first, const char *second) {
    int difference = h->text != NULL ? votes_for(h->text, first) - votes_for(h->text, second) : 0;
    return difference > 0 ? 0 : difference < 0 ? 1 : -1;
}
