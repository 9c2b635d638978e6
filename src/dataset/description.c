/* description.c - reads what the description of a competition says about its metric. */
#include "dataset/description.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const file_names[] = {"description.md", "description.txt", NULL};

/* A description is prose; more than this is something else. */
#define MOST_BYTES ((size_t)1024 * 1024)

/* What a metric rates. */
typedef enum rated { PROBABILITIES, LABELS, STEPS, NUMBERS, RANKED } rated;

/* Metrics as descriptions call them. */
static const struct {
    const char *phrase;
    rated what;
} metrics[] = {
    {"weighted kappa", STEPS},
    {"mean average precision @", RANKED},
    {"MAP@", RANKED},
    {"root mean squared error", NUMBERS},
    {"root mean square error", NUMBERS},
    {"RMSE", NUMBERS},
    {"mean absolute error", NUMBERS},
    {"mean squared error", NUMBERS},
    {"area under the", PROBABILITIES},
    {"ROC AUC", PROBABILITIES},
    {"AUC", PROBABILITIES},
    {"log loss", PROBABILITIES},
    {"logarithmic loss", PROBABILITIES},
    {"log-loss", PROBABILITIES},
    {"logloss", PROBABILITIES},
    {"cross-entropy", PROBABILITIES},
    {"probabilistic F1", PROBABILITIES},
    {"pF1", PROBABILITIES},
    {"F1", LABELS},
    {"F-score", LABELS},
    {"accuracy", LABELS},
    {"classification error", LABELS},
    {"top-1", LABELS},
};

/* The section that names the metric, or the whole text. */
static const char *evaluation_of(const char *text, size_t *length) {
    const char *start = text;
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t size = end != NULL ? (size_t)(end - line) : strlen(line);
        const char *word = line + strspn(line, "#* \t");
        if (word > line && strncasecmp(word, "evaluation", 10) == 0) {
            start = line;
            const char *next = end != NULL ? strstr(end, "\n#") : NULL;
            /* Sections below it belong to it. */
            while (next != NULL && next[1 + strspn(next + 1, "#")] != '\0' &&
                   strspn(next + 1, "#") > strspn(line, "#")) {
                next = strstr(next + 1, "\n#");
            }
            *length = next != NULL ? (size_t)(next - start) : strlen(start);
            return start;
        }
        line = end != NULL ? line + size + 1 : NULL;
    }
    *length = strlen(start);
    return start;
}

/* The first place where a phrase stands in the section; NULL: nowhere. */
static const char *find_phrase(const char *section, size_t length, const char *phrase) {
    size_t size = strlen(phrase);
    for (size_t i = 0; i + size <= length; i++) {
        bool begins = i == 0 || !isalnum((unsigned char)section[i - 1]);
        if (begins && strncasecmp(section + i, phrase, size) == 0) {
            return section + i;
        }
    }
    return NULL;
}

static int ranked_names(const char *at, size_t length) {
    size_t skip = strcspn(at, "@") + 1;
    skip += skip < length ? strspn(at + skip, " {k=") : 0;
    long count = skip < length ? strtol(at + skip, NULL, 10) : 0;
    return count > 0 && count <= 100 ? (int)count : 5;
}

static void read_metric(stk_hints *h) {
    size_t length;
    const char *section = evaluation_of(h->text, &length);
    const char *first = NULL;
    size_t which = 0;
    for (size_t i = 0; i < STK_COUNT(metrics); i++) {
        const char *at = find_phrase(section, length, metrics[i].phrase);
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            which = i;
        }
    }
    if (first == NULL) {
        return;
    }
    snprintf(h->phrase, sizeof h->phrase, "%.60s", metrics[which].phrase);
    h->probabilities = metrics[which].what == PROBABILITIES;
    h->labels = metrics[which].what == LABELS || metrics[which].what == STEPS;
    h->steps = metrics[which].what == STEPS;
    h->numbers = metrics[which].what == NUMBERS;
    h->ranked =
        metrics[which].what == RANKED ? ranked_names(first, length - (size_t)(first - section)) : 0;
}

stk_status stk_hints_read(stk_hints *h, const stk_listing *listing, stk_error *err) {
    stk_bytes bytes = {0};
    memset(h, 0, sizeof *h);
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
    if (h->text != NULL) {
        read_metric(h);
    }
    return status;
}

void stk_hints_free(stk_hints *h) {
    stk_mem_free(h->text);
    memset(h, 0, sizeof *h);
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
        votes += find_phrase(text, strlen(text), phrase) != NULL;
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
