/* fuzz_words.c - whatever a command says, what is understood of it makes sense. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "supervise/output/forecast.h"
#include "supervise/output/progress.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED(
        "Epoch 3/30:  45%|\xE2\x96\x88\xE2\x96\x88  | 450/1000 [00:45<00:55, 10.0it/s, loss=1]"),
    FUZZ_SEED("GPU Memory Used: 18.3 GB / 24.0 GB (76.3%)\nbatch_size=128 num_workers: 8\n"),
    FUZZ_SEED("Train: 0 [ 1/5 ( 20%)]  Loss: 4.5 (4.6)  Time: 0.1s, 1,234.56/s\nTest: [1/5]"),
    FUZZ_SEED("{'loss': 0.5, 'epoch': 1.25}\n 30%|#  | 3/9 [1:00<1:00, 1.2s/it]\nepoch 1 step 3\n"),
    FUZZ_SEED("\x1B[31mRuntimeError: CUDA out of memory\x1B[0m\n 4/9 [=>..] - 1s 25ms/step\n"),
    FUZZ_SEED("Epoch: [3][100/500]\tLoss 1.2e+00\n      3/30   3.24G   0.1  224: 5/9\nepoch 0\n"),
};
FUZZ_PLAN(seeds)

static void check(const stk_words *words, double at_s) {
    FUZZ_REQUIRE(words->epoch == -1 || words->epoch >= 1);
    FUZZ_REQUIRE(words->epochs == -1 || words->epochs >= 1);
    FUZZ_REQUIRE(words->epochs == -1 || words->epoch <= words->epochs);
    FUZZ_REQUIRE(words->step >= -1 && words->steps >= -1);
    FUZZ_REQUIRE(words->batch == -1 || words->batch >= 1);
    FUZZ_REQUIRE(words->workers >= -1);
    FUZZ_REQUIRE(!(words->gpu_memory_used < 0) && !(words->gpu_memory_total < 0));
    FUZZ_REQUIRE(isnan(words->epoch_s) || words->epoch_s >= 0);
    FUZZ_REQUIRE(words->done >= 0 && isfinite(words->done));
    FUZZ_REQUIRE(memchr(words->trouble, '\0', sizeof words->trouble) != NULL);
    FUZZ_REQUIRE(!words->out_of_memory || words->trouble[0] != '\0');
    double rate = stk_words_rate(words, 0, 0, at_s);
    FUZZ_REQUIRE(isnan(rate) || rate > 0);
    stk_forecast estimate;
    char text[200];
    if (stk_forecast_make(words, at_s, at_s + 5, &estimate)) {
        FUZZ_REQUIRE(!(estimate.left_s < 0) && !(estimate.epoch_s < 0));
        FUZZ_REQUIRE(estimate.fitting >= -1 && estimate.fitting <= estimate.epochs);
        stk_forecast_say(&estimate, 10, text, sizeof text);
        FUZZ_REQUIRE(text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    stk_words words;
    stk_words_begin(&words, 0);
    double at_s = 0;
    for (size_t from = 0; from < size;) {
        const char *end = memchr(text + from, '\n', size - from);
        size_t length = end != NULL ? (size_t)(end - text) - from : size - from;
        stk_words_hear(&words, text + from, length, at_s);
        at_s += 0.7;
        check(&words, at_s);
        from += length + 1;
    }
    return 0;
}
