/* same_pictures.c - paired differences of two validations, and their standard error. */
#include "train/same_pictures.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

stk_status stk_same_pictures_open(stk_same_pictures *same, size_t count, stk_error *err) {
    *same = (stk_same_pictures){.count = count};
    if (count == 0) {
        return STK_OK;
    }
    same->now = stk_mem_new(count, sizeof *same->now);
    same->best = stk_mem_new(count, sizeof *same->best);
    return same->now != NULL && same->best != NULL ? STK_OK : STK_FAIL_MEMORY(err, "validation");
}

void stk_same_pictures_free(stk_same_pictures *same) {
    stk_mem_free(same->now);
    stk_mem_free(same->best);
    *same = (stk_same_pictures){0};
}

void stk_same_pictures_reset(stk_same_pictures *same) {
    if (same->count > 0) {
        memset(same->now, 0, same->count * sizeof *same->now);
    }
}

void stk_same_pictures_add(stk_same_pictures *same, size_t at, bool right, double loss) {
    same->now[at] = (stk_picture_result){.loss = (float)loss, .seen = true, .right = right};
}

void stk_same_pictures_take_best(stk_same_pictures *same) {
    stk_picture_result *before = same->best;
    same->best = same->now;
    same->now = before;
}

size_t stk_same_pictures_shared(const stk_same_pictures *same) {
    size_t shared = 0;
    for (size_t i = 0; i < same->count; i++) {
        shared += same->now[i].seen && same->best[i].seen;
    }
    return shared;
}

void stk_same_pictures_differ(const stk_same_pictures *same, double *acc1, double *loss) {
    double shared = (double)stk_same_pictures_shared(same);
    *acc1 = *loss = 0;
    for (size_t i = 0; i < same->count; i++) {
        const stk_picture_result *now = &same->now[i];
        const stk_picture_result *best = &same->best[i];
        if (now->seen && best->seen) {
            *acc1 += 100 * ((double)now->right - best->right) / shared;
            *loss += ((double)now->loss - best->loss) / shared;
        }
    }
}

/*
 * The sum of n differences has the standard error sqrt(n) times their deviation. That deviation is
 * taken about 0, as if both weights were equally good: answers then differ as often one way as the
 * other, and their sum exceeds the square root of their number by chance in one of six cases
 * (McNemar's test).
 */
bool stk_same_pictures_is_worse(const stk_same_pictures *same, bool by_loss) {
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < same->count; i++) {
        const stk_picture_result *now = &same->now[i];
        const stk_picture_result *best = &same->best[i];
        if (now->seen && best->seen) {
            double more =
                by_loss ? (double)now->loss - best->loss : (double)best->right - now->right;
            sum += more;
            squares += more * more;
        }
    }
    return sum > sqrt(squares);
}
