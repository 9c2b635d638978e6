/*
 * fuzz_saved_state.c - the state that a run is resumed from, and what a checkpoint says of itself:
 * the JSON head of a safetensors file. The input is that head; its length is put before it.
 */
#include "fuzz_folder.h"

#include <math.h>

#include "base/mem.h"
#include "job/saved/saved_state.h"
#include "weights/checkpoint.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED(
        "{\"__metadata__\": {\"fold\": \"0\", \"epoch\": \"1\", \"step\": \"0\", "
        "\"steps_per_epoch\": "
        "\"1\", \"batch\": \"4\", \"accumulate\": \"1\", \"micro_steps\": \"0\", \"steps_done\": "
        "\"1\", "
        "\"total_steps\": \"1\", \"updates\": \"1\", \"schedule\": \"1\", \"lr_scale\": \"1\", "
        "\"setbacks\": \"0\", \"epochs_done\": \"1\", \"since_best\": \"0\", \"has_best\": "
        "\"true\", "
        "\"best_epoch\": \"1\", \"best_val_loss\": \"0.62\", \"best_val_acc1\": \"50\", "
        "\"best_val_acc5\": \"100\", \"best_metric\": \"50\", \"loss_floor\": \"4.3\", "
        "\"loss_smooth\": \"1.0\", \"loss_lowest\": \"1.0\", \"loss_steps\": \"1\", \"loss_sum\": "
        "\"0\", \"correct\": \"0\", \"images\": \"0\", \"folds_done\": \"0\", \"folds_epochs\": "
        "\"0\", "
        "\"folds_acc1\": \"nan\", \"folds_metric\": \"nan\", \"cut\": \"false\", \"used_s\": "
        "\"0.17\", "
        "\"classes\": \"2\", \"train_images\": \"8\", \"val_images\": \"0\", \"seed\": \"0\", "
        "\"samples\": \"eb2f93261cce1f542016b6b7d9fefb4cd7527a6cfa702de3ebbbf6552147a664\", "
        "\"given\": \"{\\\"data\\\": \\\"k\\\"}\"}, \"value/a\": {\"dtype\": \"F32\", \"shape\": "
        "[1], "
        "\"data_offsets\": [0, 4]}}"),
    FUZZ_SEED(
        "{\"__metadata__\": {\"format\": \"pt\", \"model\": \"resnet18\", \"classes\": "
        "\"[\\\"a\\\", \\\"b\\\"]\", \"img_size\": \"64\", \"crop_fraction\": \"0.875\", "
        "\"interpolation\": \"bicubic\", \"mean\": \"[0.5, 0.5, 0.5]\", \"std\": \"[1, 1, 1]\", "
        "\"acc1\": \"91.5\", \"epoch\": \"3\"}, \"fc.bias\": {\"dtype\": \"F32\", \"shape\": [1], "
        "\"data_offsets\": [0, 4]}}"),
};
FUZZ_PLAN_FILES(seeds)

static void check_state(const char *path) {
    stk_saved_state run = {0};
    stk_error err = {0};
    stk_status status = stk_saved_state_read(path, &run, &err);
    if (status == STK_OK) {
        FUZZ_REQUIRE(run.fold >= 0 && run.folds_done >= 0 && run.epochs_before >= 0);
        FUZZ_REQUIRE(run.used_s >= 0 && isfinite(run.used_s));
        FUZZ_REQUIRE(memchr(run.samples, '\0', sizeof run.samples) != NULL);
        stk_saved_state_free(&run);
    } else {
        FUZZ_REQUIRE(err.message[0] != '\0');
    }
}

static void check_info(const char *path) {
    stk_checkpoint_info info = {0};
    stk_error err = {0};
    if (stk_checkpoint_info_read(path, &info, &err) == STK_OK) {
        FUZZ_REQUIRE(info.class_count >= 0 && info.img_size > 0);
        for (int i = 0; i < 3; i++) {
            FUZZ_REQUIRE(isfinite(info.mean[i]) && isfinite(info.std[i]) && info.std[i] != 0);
        }
        stk_checkpoint_info_free(&info);
    } else {
        FUZZ_REQUIRE(err.message[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t whole = 8 + size + 4;
    uint8_t *file = calloc(whole, 1);
    FUZZ_REQUIRE(file != NULL);
    for (int i = 0; i < 8; i++) {
        file[i] = (uint8_t)((uint64_t)size >> 8 * i);
    }
    if (size > 0) {
        memcpy(file + 8, data, size);
    }
    fuzz_put("train.safetensors", (fuzz_seed){(const char *)file, whole});
    free(file);
    check_state(fuzz_path("train.safetensors"));
    check_info(fuzz_path("train.safetensors"));
    return 0;
}
