/* fuzz_words.c - whatever a command says, what is understood of it makes sense. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "supervise/decide/forecast.h"
#include "supervise/output/command_progress.h"

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

static void check(const stk_command_progress *progress, double at_s) {
    FUZZ_REQUIRE(progress->epoch == -1 || progress->epoch >= 1);
    FUZZ_REQUIRE(progress->epochs == -1 || progress->epochs >= 1);
    FUZZ_REQUIRE(progress->epochs == -1 || progress->epoch <= progress->epochs);
    FUZZ_REQUIRE(progress->step >= -1 && progress->steps >= -1);
    FUZZ_REQUIRE(progress->batch == -1 || progress->batch >= 1);
    FUZZ_REQUIRE(progress->workers >= -1);
    FUZZ_REQUIRE(!(progress->gpu_memory_used < 0) && !(progress->gpu_memory_total < 0));
    FUZZ_REQUIRE(isnan(progress->epoch_s) || progress->epoch_s >= 0);
    FUZZ_REQUIRE(progress->done >= 0 && isfinite(progress->done));
    FUZZ_REQUIRE(memchr(progress->error_line, '\0', sizeof progress->error_line) != NULL);
    FUZZ_REQUIRE(!progress->out_of_memory || progress->error_line[0] != '\0');
    double rate = stk_progress_image_rate(progress, 0, 0, at_s);
    FUZZ_REQUIRE(isnan(rate) || rate > 0);
    stk_forecast estimate;
    char text[200];
    if (stk_forecast_make(progress, at_s, at_s + 5, &estimate)) {
        FUZZ_REQUIRE(!(estimate.left_s < 0) && !(estimate.epoch_s < 0));
        FUZZ_REQUIRE(estimate.fitting >= -1 && estimate.fitting <= estimate.epochs);
        stk_forecast_say(&estimate, 10, text, sizeof text);
        FUZZ_REQUIRE(text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    double at_s = 0;
    for (size_t from = 0; from < size;) {
        const char *end = memchr(text + from, '\n', size - from);
        size_t length = end != NULL ? (size_t)(end - text) - from : size - from;
        stk_progress_read_line(&progress, text + from, length, at_s);
        at_s += 0.7;
        check(&progress, at_s);
        from += length + 1;
    }
    return 0;
}
