/* storage_figures.c - pure functions of measured numbers. */
#include "probe/storage_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

#define AUTO_MOST 512

/* Twice the reads in flight for less than a tenth more of rate is no rise. */
#define RISE 1.1

/* What comes this near to the highest rate is as good: the rest is chance. */
#define NEARLY 0.95

stk_in_flight_list stk_in_flight_auto(void) {
    stk_in_flight_list list = {0};
    for (int64_t n = 1; n <= AUTO_MOST; n *= 2) {
        list.numbers[list.count++] = n;
    }
    return list;
}

static int compare_numbers(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the numbers and leaves each once. */
static void tidy(stk_in_flight_list *list) {
    size_t kept = 0;
    qsort(list->numbers, list->count, sizeof *list->numbers, compare_numbers);
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || list->numbers[i] != list->numbers[kept - 1]) {
            list->numbers[kept++] = list->numbers[i];
        }
    }
    list->count = kept;
}

stk_status stk_in_flight_parse(const char *text, stk_in_flight_list *list, stk_error *err) {
    memset(list, 0, sizeof *list);
    for (const char *at = text;; at += strcspn(at, ",") + 1) {
        char word[16];
        int64_t number = 0;
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), at);
        if (!stk_parse_int(word, &number) || number < 1 || number > STK_IN_FLIGHT_MOST) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--in-flight %s: expected auto, or numbers from 1 to %d with commas "
                            "between them, such as 1,8,64",
                            text, STK_IN_FLIGHT_MOST);
        }
        if (list->count == STK_STORAGE_STEPS_MOST) {
            return STK_FAIL(err, STK_ERR_USAGE, "--in-flight %s: %d numbers are the most", text,
                            STK_STORAGE_STEPS_MOST);
        }
        list->numbers[list->count++] = number;
        if (at[length] == '\0') {
            break;
        }
    }
    tidy(list);
    return STK_OK;
}

double stk_percentile(const int64_t *sorted, size_t count, double share) {
    if (count == 0) {
        return NAN;
    }
    double rank = ceil(share * (double)count);
    size_t index = rank > 1 ? (size_t)rank - 1 : 0;
    return (double)sorted[index < count ? index : count - 1];
}

static double highest(const stk_storage_step *steps, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = steps[i].objects_per_second > most ? steps[i].objects_per_second : most;
    }
    return most;
}

bool stk_storage_is_flat(const stk_storage_step *steps, size_t count) {
    if (count < 3) {
        return false;
    }
    return steps[count - 2].objects_per_second < RISE * highest(steps, count - 2) &&
           steps[count - 1].objects_per_second < RISE * highest(steps, count - 1);
}

static int64_t enough_for(const stk_storage_step *steps, size_t count, double wanted) {
    static const stk_storage_step nothing = {0};
    const stk_storage_step *below = &nothing; /* the last step that gave less */
    for (size_t i = 0; i < count; i++) {
        double gain = steps[i].objects_per_second - below->objects_per_second;
        if (steps[i].objects_per_second >= wanted && gain > 0) {
            double missing = (wanted - below->objects_per_second) / gain;
            return below->in_flight +
                   (int64_t)ceil(missing * (double)(steps[i].in_flight - below->in_flight));
        }
        below = &steps[i];
    }
    return 0;
}

stk_storage_choice stk_storage_choose(const stk_storage_step *steps, size_t count, double wanted) {
    size_t best = 0;
    double most = highest(steps, count);
    while (steps[best].objects_per_second < NEARLY * most) {
        best++;
    }
    return (stk_storage_choice){.enough = enough_for(steps, count, wanted),
                                .best_in_flight = steps[best].in_flight,
                                .best_rate = steps[best].objects_per_second,
                                .is_last = best + 1 == count};
}
