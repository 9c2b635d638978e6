/* test_supervise_progress.c - lines of trainings of many kinds, and what is understood of them. */
#include "check.h"

#include <dirent.h>
#include <stdint.h>

#include "supervise/output/command_progress.h"

#define UNSAID (-1.0)
#define GIB 0x1p30
#define MIB 0x1p20

static void hear_at(stk_command_progress *progress, double at_s, const char *line) {
    stk_progress_read_line(progress, line, strlen(line), at_s);
}

static stk_command_progress after(const char *line) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear_at(&progress, 1, line);
    return progress;
}

/* What can be asked for by name; NaN becomes -1, which is what the whole numbers say. */
static double ask(const stk_command_progress *progress, const char *name) {
    const struct {
        const char *name;
        double value;
    } answers[] = {
        {"epoch", progress->epoch},
        {"epochs", progress->epochs},
        {"step", (double)progress->step},
        {"steps", (double)progress->steps},
        {"loss", progress->loss},
        {"steps_per_second", progress->steps_per_second},
        {"images_per_second", progress->images_per_second},
        {"memory", progress->gpu_memory_used},
        {"memory_gib", progress->gpu_memory_used / GIB},
        {"memory_mib", progress->gpu_memory_used / MIB},
        {"total_gib", progress->gpu_memory_total / GIB},
        {"total_mib", progress->gpu_memory_total / MIB},
        {"batch", (double)progress->batch},
        {"workers", progress->workers},
        {"epoch_s", progress->epoch_s},
        {"progress_s", progress->progress_s},
        {"zero_based", progress->zero_based},
        {"whole", progress->steps_span_epochs},
        {"in_images", progress->in_images},
        {"told_late", progress->epoch_printed_at_end},
        {"out_of_memory", progress->out_of_memory},
        {"trouble", progress->error_line[0] != '\0'},
        {"rate", stk_progress_image_rate(progress, 0, 0, 1e9)},
        {"step_rate", stk_progress_step_rate(progress, 0, 1e9)},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (strcmp(answers[i].name, name) == 0) {
            return isnan(answers[i].value) ? UNSAID : answers[i].value;
        }
    }
    CHECK_FAIL("nothing is called %s", name);
    return UNSAID;
}

static bool is_near(double actual, double expected) {
    return actual == expected || fabs(actual - expected) <= 1e-6 * fabs(expected);
}

/* "epoch 3 epochs 30" against what is known. */
static void check_answers(const stk_command_progress *progress, const char *wanted,
                          const char *where) {
    char text[512];
    snprintf(text, sizeof text, "%s", wanted);
    char *rest = NULL;
    for (char *name = strtok_r(text, " \n", &rest); name != NULL;
         name = strtok_r(NULL, " \n", &rest)) {
        const char *value = strtok_r(NULL, " \n", &rest);
        double expected = value != NULL ? strtod(value, NULL) : NAN;
        if (!is_near(ask(progress, name), expected)) {
            CHECK_FAIL("%s: %s is %.9g, expected %s", where, name, ask(progress, name), value);
        }
    }
}

typedef struct line_case {
    const char *line;
    const char *wanted;
} line_case;

static void check_lines(const line_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_command_progress progress = after(cases[i].line);
        check_answers(&progress, cases[i].wanted, cases[i].line);
    }
}

#define CHECK_LINES(cases) check_lines((cases), sizeof(cases) / sizeof *(cases))

static void memory_is_understood(void) {
    static const line_case cases[] = {
        {"GPU Memory Used: 18.3 GB / 24.0 GB (76.3%)", "memory_gib 18.3 total_gib 24"},
        {"GPU memory: 18.3/24.0 GB", "memory_gib 18.3 total_gib 24"},
        {"gpu memory 18.3/24.0", "memory_gib 18.3 total_gib 24"},
        {"mem 5.1G/24G", "memory_gib 5.1 total_gib 24"},
        {"GPU mem: 5123MiB / 24576MiB", "memory_mib 5123 total_mib 24576"},
        {"memory: 5123/24576", "memory_mib 5123 total_mib 24576"},
        {"GPU_mem 3.24G", "memory_gib 3.24 total_gib -1"},
        {"Epoch: [3]  [ 100/500]  loss: 0.5  max mem: 4321", "memory_mib 4321"},
        {"Epoch [3][100/500]\tlr: 1.0e-02, time: 0.2, memory: 5678, loss: 0.5", "memory_mib 5678"},
        {"eta: 1:00:00  iter: 99  total_loss: 0.5  lr: 0.01  max_mem: 4321M", "memory_mib 4321"},
        {"memory: 64 GB", "memory -1"},
        {"Epoch 5 | Loss 1.2 | mem 5.5GB", "memory_gib 5.5"},
        {"mem 5.5GB", "memory -1"},
        {"GPU Memory: 24.0 GB", "memory -1 total_gib 24"},
        {"step 5/9 loss='0.5', gpu_memory='3.5 GB'", "memory_gib 3.5 total_gib -1"},
        {"memory allocated: 2147483648", "memory_gib 2"},
        {"Peak memory: 5.5 GiB", "memory_gib 5.5"},
        {"CPU memory: 5.1/64 GB", "memory -1 total_gib -1"},
        {"mem -5/24", "memory -1 total_gib -1"},
        {"VRAM: 512 KB", "memory 524288"},
        {"GPU Memory Used: 100 B / 1 TB", "memory 100 total_gib 1024"},
    };
    CHECK_LINES(cases);
}

static void epochs_are_understood(void) {
    static const line_case cases[] = {
        {"Epoch 3/30", "epoch 3 epochs 30 zero_based 0"},
        {"epoch: 3/30", "epoch 3 epochs 30"},
        {"EPOCH 3 / 30", "epoch 3 epochs 30"},
        {"Epoch [3/30]", "epoch 3 epochs 30"},
        {"Epoch [3/30], Step [100/500], Loss: 0.25",
         "epoch 3 epochs 30 step 100 steps 500 loss 0.25"},
        {"Epoch [3][100/500]", "epoch 3 step 100 steps 500"},
        {"Epoch: [3][100/500]\tTime 0.2 (0.3)\tLoss 1.2e+00 (1.3e+00)",
         "epoch 3 step 100 steps 500 loss 1.2"},
        {"Epoch(train)  [3][ 100/500]  lr: 1.0e-02  loss: 0.5",
         "epoch 3 step 100 steps 500 loss 0.5"},
        {"Epoch(val)  [3][ 10/50]    acc: 0.5", "step -1 steps -1"},
        {"Epoch: [3]  [ 100/500]  eta: 0:01:23  img/s: 1234.5  loss: 0.5 (0.6)",
         "epoch 3 step 100 steps 500 images_per_second 1234.5 loss 0.5"},
        {"Epoch 3 of 30", "epoch 3 epochs 30"},
        {"[Epoch 3]", "epoch 3 epochs -1"},
        {"epoch=3", "epoch 3"},
        {"Epoch #3", "epoch 3"},
        {"ep 3", "epoch 3"},
        {"ep: 3/30", "epoch 3 epochs 30"},
        {"Epoch 0/30", "epoch 1 epochs 30 zero_based 1"},
        {"epoch 0", "epoch 1 zero_based 1"},
        {"Train: 3 [ 100/500 ( 20%)]  Loss: 4.5 (4.6)  Time: 0.104s, 1234.56/s  (0.1s, 1200.00/s)  "
         "LR: 1.000e-03  Data: 0.010 (0.012)",
         "epoch 3 step 100 steps 500 loss 4.5 images_per_second 1234.56"},
        {"Train Epoch: 3 [6400/60000 (11%)]\tLoss: 0.123456",
         "epoch 3 step 6400 steps 60000 in_images 1 loss 0.123456"},
        {"      3/30      3.24G      0.123      1.234        128        224:  45%|####5     | "
         "450/1000 [00:45<00:55, 10.00it/s]",
         "epoch 3 epochs 30 memory_gib 3.24 step 450 steps 1000 steps_per_second 10"},
        {"{'loss': 0.5, 'learning_rate': 2e-05, 'epoch': 1.25}", "loss 0.5 epoch 2"},
        {"{\"epoch\": 3, \"step\": 100, \"loss\": 0.5, \"lr\": 1e-3}", "epoch 3 step 100 loss 0.5"},
        {"epochs=30, lr=0.1", "epochs 30 epoch -1"},
        {"  Num Epochs = 30", "epochs 30 epoch -1"},
        {"--epochs 30", "epochs 30"},
        {"Starting training for 30 epochs...", "epochs 30"},
        {"warmup_epochs=5", "epochs -1"},
        {"warmup epochs: 5", "epochs -1"},
        {"no improvement for 5 epochs", "epochs -1"},
        {"Best epoch: 3", "epoch -1"},
        {"resumed from epoch 3", "epoch -1"},
        {"epoch 45%", "epoch -1"},
        {"Epochs:  10%|#         | 3/30 [05:00<45:00, 100.00s/it]",
         "epoch 4 epochs 30 steps_per_second -1 step -1"},
        {"epoch 99999999999", "epoch -1"},
        {"epoch -1", "epoch -1"},
        {"epoch nan", "epoch -1"},
        {"reepoch 3", "epoch -1"},
    };
    CHECK_LINES(cases);
}

static void steps_are_understood(void) {
    static const line_case cases[] = {
        {"step 100/5000", "step 100 steps 5000"},
        {"Step: 100", "step 100 steps -1"},
        {"iter 100/5000", "step 100 steps 5000"},
        {"Iter [100/80000]", "step 100 steps 80000"},
        {"iteration 1,100", "step 1100"},
        {"Batch 10/500", "step 10 steps 500"},
        {"Batch [10/500]", "step 10 steps 500"},
        {"Epoch 2: [100/500] loss 0.5", "epoch 2 step 100 steps 500"},
        {"[3/30][100/500] loss: 0.5", "epoch 3 epochs 30 step 100 steps 500"},
        {"| epoch   3 |   200/ 2983 batches | lr 5.00 | loss  4.5", "epoch 3 step 200 steps 2983"},
        {"global step: 100/500", "step 100 steps 500 whole 1"},
        {"epoch 3 | 120/250 | loss 1.4", "epoch 3 step 120 steps 250"},
        {"| 120/250 | rows", "step -1"},
        {"[100/500] copying files", "step -1"},
        {"Epoch 2 batch 100 loss 0.5", "epoch 2 step 100 batch -1"},
        {"Step: 45ms | Tot: 10s | Loss: 0.5", "step -1 loss 0.5"},
        {" 45%|\xE2\x96\x88\xE2\x96\x88\xE2\x96\x8C     | 450/1000 [00:45<00:55, 10.00it/s, "
         "loss=0.123]",
         "step 450 steps 1000 steps_per_second 10 loss 0.123"},
        {" 45%|####5     | 450/1000 [00:45<00:55,  1.25s/it]", "step 450 steps_per_second 0.8"},
        {"  0%|          | 0/1000 [00:00<?, ?it/s]", "step 0 steps 1000 steps_per_second -1"},
        {"450it [00:45, 10.00it/s]", "step 450 steps -1 steps_per_second 10"},
        {"Epoch 3/30:  45%|####5     | 450/1000 [00:45<00:55, 10.00it/s]",
         "epoch 3 epochs 30 step 450 steps 1000"},
        {"Train epoch 3:  45%|####5     | 450/1000 [00:45<00:55, 10.00it/s]",
         "epoch 3 step 450 steps 1000"},
        {"Epoch 3:  45%|####5     | 45/100 [00:04<00:05, 10.0it/s, v_num=0, train_loss=0.5]",
         "epoch 3 step 45 steps 100 loss 0.5"},
        {"Epoch 3/29 \xE2\x94\x81\xE2\x94\x81\xE2\x95\xB8\xE2\x94\x81 45/100 0:00:10 4.50it/s",
         "epoch 3 epochs 29 step 45 steps 100 steps_per_second 4.5"},
        {" 450/1000 [=====>....] - ETA: 10s - loss: 0.12 - acc: 0.9",
         "step 450 steps 1000 loss 0.12"},
        {"450/1000 \xE2\x94\x81\xE2\x94\x81\xE2\x94\x81 10s 25ms/step - accuracy: 0.5 - loss: 0.12",
         "step 450 steps 1000 loss 0.12 steps_per_second 40"},
        {"Validating:  45%|####5     | 45/100 [00:04<00:05, 10.0it/s, loss=0.5]",
         "step -1 steps_per_second -1 loss -1"},
        {"Epoch 3 [val]:  45%|####5     | 45/100 [00:04<00:05, 10.0it/s]", "epoch 3 step -1"},
        {"Test: [ 10/50]\tTime 0.1\tLoss 0.5", "step -1 loss -1"},
        {"Sanity Checking DataLoader 0: 50%|##   | 1/2 [00:00<00:00, 3.0it/s]", "step -1"},
        {"Downloading: 45%|####5     | 45/100 [00:04<00:05, 10.0it/s]", "step -1"},
        {"Downloading: 45%|####5     | 45.0M/100M [00:04<00:05, 10.0MB/s]", "step -1"},
        {"step 2000/1000", "step -1"},
        {"step 5000000000/6000000000", "step 5000000000 steps 6000000000"},
        {"step 999999999999999999999", "step -1"},
        {"step 1.5", "step -1"},
        {"3 of 9 parts, 3/9", "step -1"},
        {"2026/11/16 10:00:00 started", "step -1 epoch -1"},
        {"Acc: 45.0% (450/1000)", "step -1"},
        {"Acc: 45% 450/1000", "step -1"},
        {" 45% 450/1000 [00:45<00:55, 10.00it/s]", "step 450 steps 1000"},
        {"45% \xE2\x94\x81\xE2\x94\x81 450/1000 10.0it/s", "step 450 steps 1000"},
    };
    CHECK_LINES(cases);
}

static void speeds_are_understood(void) {
    static const line_case cases[] = {
        {"1,234img/s", "images_per_second 1234"},
        {"12,345.5 samples/s", "images_per_second 12345.5"},
        {"throughput: 832 imgs/sec", "images_per_second 832"},
        {"832 images/sec", "images_per_second 832"},
        {"832 examples/s", "images_per_second 832"},
        {"832 images per second", "images_per_second 832"},
        {"samples/s: 832", "images_per_second 832"},
        {"{'train_samples_per_second': 832.5, 'train_steps_per_second': 3.25}",
         "images_per_second 832.5 steps_per_second 3.25"},
        {"{'eval_loss': 0.4, 'eval_samples_per_second': 832.5, 'epoch': 1.0}",
         "images_per_second -1 loss -1"},
        {"10 it/s", "steps_per_second 10"},
        {"0.5 s/step", "steps_per_second 2"},
        {"250 ms/batch", "steps_per_second 4"},
        {"0 it/s", "steps_per_second -1"},
        {"0 s/it", "steps_per_second -1"},
        {"10 km/s, 3 s/mile", "steps_per_second -1 images_per_second -1"},
    };
    CHECK_LINES(cases);
}

static void losses_are_understood(void) {
    static const line_case cases[] = {
        {"loss: 0.123", "loss 0.123"},
        {"loss=0.123", "loss 0.123"},
        {"train_loss 0.12", "loss 0.12"},
        {"Training loss: 0.12", "loss 0.12"},
        {"Loss 1.2e+00 (1.3e+00)", "loss 1.2"},
        {"'loss': 0.5", "loss 0.5"},
        {"train/loss=0.5 val/loss=0.25", "loss 0.5"},
        {"val/loss=0.25 train/loss=0.5", "loss 0.5"},
        {"loss: tensor(0.5, device='cuda:0')", "loss 0.5"},
        {"loss: -0.5", "loss -0.5"},
        {"loss: inf", "loss inf"},
        {"val_loss: 0.5", "loss -1"},
        {"Val loss: 0.5", "loss -1"},
        {"validation | acc 0.9 | loss 0.5", "loss -1"},
        {"best loss: 0.5", "loss -1"},
        {"Epoch 3/30 - loss: 0.5 - val_loss: 0.25", "loss 0.5"},
        {"best_val=0.9, loss=0.5", "loss 0.5"},
        {"Epoch 3 | Train loss 0.5 | Val loss 0.25", "loss 0.5"},
        {"loss_scale: 65536", "loss -1"},
        {"losses: 3", "loss -1"},
    };
    CHECK_LINES(cases);
    stk_command_progress progress = after("loss: nan");
    CHECK(isnan(progress.loss));
    hear_at(&progress, 2, "loss: 0.5");
    hear_at(&progress, 3, "loss: nan");
    CHECK(isnan(progress.loss));
    CHECK_NEAR(progress.progress_s, 3, 0);
}

static void settings_are_understood(void) {
    static const line_case cases[] = {
        {"RESOURCES: 32 CPU cores, batch=128, GPU=NVIDIA A10, Mixed Precision=ON", "batch 128"},
        {"batch_size=128", "batch 128"},
        {"batch size: 128", "batch 128"},
        {"BATCH_SIZE = 128", "batch 128"},
        {"--batch-size 128", "batch 128"},
        {"Model: resnet50, Batch: 128", "batch 128"},
        {"  Instantaneous batch size per device = 128", "batch 128"},
        {"  Total train batch size (w. parallel, distributed & accumulation) = 256", "batch 256"},
        {"VALIDATION: If <50% memory, batch_size=128 is TOO SMALL - should be 256+", "batch 128"},
        {"val_batch_size=256", "batch -1"},
        {"--test-batch-size 1000", "batch -1"},
        {"eval batch size: 64", "batch -1"},
        {"batch_size=0", "batch -1"},
        {"batch_size=auto", "batch -1"},
        {"DataLoader: num_workers=10, prefetch_factor=4", "workers 10"},
        {"num_workers: 8", "workers 8"},
        {"workers=8", "workers 8"},
        {"workers=0", "workers 0"},
        {"This DataLoader will create 12 worker processes in total.", "workers 12"},
        {"workers=-1", "workers -1"},
    };
    CHECK_LINES(cases);
}

static void out_of_memory_is_understood(void) {
    static const line_case cases[] = {
        {"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
         "out_of_memory 1 trouble 1"},
        {"torch.cuda.OutOfMemoryError: CUDA out of memory.", "out_of_memory 1"},
        {"torch.OutOfMemoryError", "out_of_memory 1"},
        {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "out_of_memory 1"},
        {"CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", "out_of_memory 1"},
        {"jaxlib: RESOURCE_EXHAUSTED: Out of memory while trying", "out_of_memory 1"},
        {"ResourceExhaustedError: OOM when allocating tensor", "out_of_memory 1"},
        {"cudaErrorMemoryAllocation", "out_of_memory 1"},
        {"CUDA_ERROR_OUT_OF_MEMORY: out of memory", "out_of_memory 1"},
        {"HIP out of memory", "out_of_memory 1"},
        {"MPS backend out of memory", "out_of_memory 1"},
        {"CUDA error: out of memory", "out_of_memory 1"},
        {"OOM, skipping batch", "out_of_memory 1"},
        {"increase to 192 if no OOM", "out_of_memory 0"},
        {"out of memory", "out_of_memory 0"},
        {"MemoryError", "out_of_memory 0 trouble 1"},
        {"RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.",
         "out_of_memory 0 trouble 1"},
        {"slurmstepd: Detected 1 oom-kill event(s)", "out_of_memory 0 trouble 1"},
        {"oom_count=0, cuda_oom=0", "out_of_memory 0"},
        {"bloom filters", "out_of_memory 0"},
    };
    CHECK_LINES(cases);
}

static void trouble_is_understood(void) {
    static const line_case cases[] = {
        {"ValueError: nothing to train on", "trouble 1"},
        {"train.py: error: unrecognized arguments: --batches", "trouble 1"},
        {"Error: no such file", "trouble 1"},
        {"[ERROR] no such file", "trouble 1"},
        {"Traceback (most recent call last):", "trouble 1"},
        {"Segmentation fault (core dumped)", "trouble 1"},
        {"Killed", "trouble 1"},
        {"bus error", "trouble 1"},
        {"Aborted", "trouble 1"},
        {"Floating point exception (core dumped)", "trouble 1"},
        {"Illegal instruction", "trouble 1"},
        {"terminate called after throwing an instance of 'std::bad_alloc'", "trouble 1"},
        {"top1 error: 23.5", "trouble 0"},
        {"mean_squared_error: 0.5", "trouble 0"},
        {"error: 0.25", "trouble 0"},
        {"killed the lights", "trouble 0"},
        {"terror reigns", "trouble 0"},
    };
    CHECK_LINES(cases);
    stk_command_progress progress = after("Traceback (most recent call last):");
    hear_at(&progress, 2, "\x1B[31m  ValueError\x1B[0m: caf\xC3\xA9 \xFF\x01 ");
    CHECK_STR(progress.error_line, "ValueError: caf\xC3\xA9 ?");
    hear_at(&progress, 3, "CUDA out of memory");
    hear_at(&progress, 4, "RuntimeError: the workers are gone");
    CHECK_STR(progress.error_line, "CUDA out of memory");
}

static void colours_are_no_words(void) {
    static const line_case cases[] = {
        {"\x1B[1mEpoch \x1B[32m3\x1B[0m/\x1B[38;5;10m30\x1B[0m", "epoch 3 epochs 30"},
        {"\x1B]0;a title 5/6\x07step 3/9", "step 3 steps 9"},
        {"\x1B]0;a title\x1B\\step 3/9", "step 3 steps 9"},
        {"\x1B(Bstep 3/9", "step 3"},
        {"step 3/9\x1B[", "step 3 steps 9"},
        {"step 3/9\x1B", "step 3 steps 9"},
        {"\b\b\b 3/9 [=>...] - loss: 0.5", "step 3 steps 9 loss 0.5"},
    };
    CHECK_LINES(cases);
}

static void nothing_is_known_at_first(void) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 7);
    check_answers(&progress,
                  "epoch -1 epochs -1 step -1 steps -1 loss -1 steps_per_second -1 "
                  "images_per_second -1 memory -1 total_gib -1 batch -1 workers -1 epoch_s -1 "
                  "progress_s -1 zero_based 0 out_of_memory 0 trouble 0 rate -1 step_rate -1",
                  "at first");
    CHECK_NEAR(progress.began_s, 7, 0);
    CHECK(isnan(progress.epoch_began_s));
    hear_at(&progress, 8, "");
    hear_at(&progress, 8, "nothing of interest");
    CHECK(isnan(progress.progress_s));
}

static void a_rate_needs_progress_and_time(void) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear_at(&progress, 1, "step 10");
    CHECK(isnan(stk_progress_step_rate(&progress, 0, 100)));
    hear_at(&progress, 1.9, "step 19");
    CHECK(isnan(stk_progress_step_rate(&progress, 0, 100)));
    hear_at(&progress, 11, "step 110");
    CHECK_NEAR(stk_progress_step_rate(&progress, 0, 100), 10, 1e-9);
    CHECK(isnan(stk_progress_step_rate(&progress, 5, 100)));
    CHECK(isnan(stk_progress_step_rate(&progress, 0, 5)));
    CHECK(isnan(stk_progress_image_rate(&progress, 0, 0, 100)));
    CHECK_NEAR(stk_progress_image_rate(&progress, 64, 0, 100), 640, 1e-9);
    hear_at(&progress, 12, "batch_size=32");
    CHECK_NEAR(stk_progress_image_rate(&progress, 0, 0, 100), 320, 1e-9);
    CHECK_NEAR(stk_progress_image_rate(&progress, 64, 0, 100), 640, 1e-9);
    hear_at(&progress, 13, "500 img/s");
    CHECK_NEAR(stk_progress_image_rate(&progress, 64, 0, 100), 500, 1e-9);
    CHECK_NEAR(stk_progress_image_rate(&progress, 64, 0, 12.5), 640, 1e-9);
}

static void a_speed_that_was_said_counts_without_progress(void) {
    stk_command_progress progress = after("10 it/s");
    CHECK_NEAR(stk_progress_step_rate(&progress, 0, 100), 10, 1e-9);
    CHECK_NEAR(stk_progress_image_rate(&progress, 8, 0, 100), 80, 1e-9);
    CHECK(isnan(stk_progress_step_rate(&progress, 2, 100)));
    CHECK(isnan(stk_progress_image_rate(&progress, 8, 2, 100)));
}

static void moments_are_kept_for_a_minute(void) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    for (int i = 0; i <= 10000; i++) { /* 100 a second, at 50 a second later on */
        char line[40];
        snprintf(line, sizeof line, "step %d", i);
        hear_at(&progress, i < 2000 ? i * 0.01 : 20 + (i - 2000) * 0.02, line);
    }
    CHECK_INT(progress.step, 10000);
    CHECK(progress.point_count > STK_PROGRESS_POINTS);
    CHECK_NEAR(stk_progress_step_rate(&progress, 0, 180), 50, 0.01);
    CHECK_NEAR(stk_progress_step_rate(&progress, 120, 180), 50, 0.01);
}

static void steps_go_on_over_epochs(void) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear_at(&progress, 0, "Epoch 1/3");
    hear_at(&progress, 1, "step 10/100");
    hear_at(&progress, 9, "step 90/100");
    hear_at(&progress, 10, "Epoch 2/3");
    CHECK_INT(progress.step, 0);
    hear_at(&progress, 11, "step 10/100");
    CHECK_NEAR(stk_progress_step_rate(&progress, 0, 100), 10, 1e-9);
    CHECK_NEAR(progress.epoch_s, 10, 1e-9);
    hear_at(&progress, 12, "step 10/100"); /* the same again is no progress */
    CHECK_NEAR(progress.progress_s, 11, 0);
}

static void a_mention_of_an_epoch_before_is_no_beginning(void) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear_at(&progress, 0, "Epoch 1/9");
    hear_at(&progress, 10, "Epoch 2/9");
    hear_at(&progress, 20, "Epoch 3/9");
    hear_at(&progress, 21, "model.pt is that of epoch 2");
    CHECK_INT(progress.epoch, 3);
    hear_at(&progress, 30, "Epoch 1/9");
    CHECK_INT(progress.epoch, 1);
    CHECK(isnan(progress.epoch_s));
    CHECK_INT(progress.point_count, 0);
}

static void the_last_epoch_counted_from_zero_fits(void) {
    stk_command_progress progress = after("Epoch 0/30");
    hear_at(&progress, 2, "Epoch 29/30");
    CHECK_INT(progress.epoch, 30);
    CHECK_INT(progress.epochs, 30);
    progress = after("Epoch 0/29");
    hear_at(&progress, 2, "Epoch 29/29");
    CHECK_INT(progress.epoch, 30);
    CHECK_INT(progress.epochs, 30);
}

static void memory_is_the_largest(void) {
    stk_command_progress progress = after("GPU memory: 3.5/24.0 GB");
    hear_at(&progress, 2, "GPU memory: 2.5/24.0 GB");
    CHECK_NEAR(progress.gpu_memory_used, 3.5 * GIB, 1);
}

static void an_epoch_told_with_its_loss_is_over(void) {
    stk_command_progress progress = after("Epoch 1: loss 0.5");
    CHECK(progress.epoch_printed_at_end);
    CHECK_INT(progress.epoch, 2);
    hear_at(&progress, 2, "Epoch 1: val loss 0.7");
    CHECK_INT(progress.epoch, 2);
    hear_at(&progress, 3, "Epoch 1: loss 0.4"); /* it was not */
    CHECK(!progress.epoch_printed_at_end);
    CHECK_INT(progress.epoch, 1);
    progress = after("Epoch 1: loss 0.5");
    hear_at(&progress, 3, "Epoch 2: step 3 loss 0.4");
    CHECK_INT(progress.epoch, 2);
    progress = after("Epoch 1/9");
    hear_at(&progress, 3, "Epoch 1/9: loss 0.4");
    CHECK_INT(progress.epoch, 1);
}

/* Reads a line that has exactly its bytes, so that a sanitizer sees a step too far. */
static void hear_bytes(stk_command_progress *progress, const char *bytes, size_t length,
                       double at_s) {
    char *copy = malloc(length > 0 ? length : 1);
    if (copy != NULL) {
        memcpy(copy, bytes, length);
        stk_progress_read_line(progress, copy, length, at_s);
        free(copy);
    }
}

static void hostile_lines_do_no_harm(void) {
    static const char *const parts[] = {
        "1",           "123,",   "1%|",    "\xE2\x96\x88", "[",      "epoch ", "e",
        "batch_size(", "-",      "loss: ", "1/",           "nan",    "1e",     "\x1B[0",
        "\x1B]",       "\x1B",   ".1",     "\xFF",         "out_of", "\t",     "''",
        "1 it/",       "9e9999", "train ", "error:",       "3/30 1G"};
    static char line[10000];
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i]);
        for (size_t j = 0; j < sizeof line; j++) {
            line[j] = parts[i][j % length];
        }
        hear_bytes(&progress, line, sizeof line, 1);
        hear_bytes(&progress, line, 4096, 1);
        hear_bytes(&progress, line, 4097, 1);
        hear_bytes(&progress, line, 37, 1);
    }
    CHECK(memchr(progress.error_line, '\0', sizeof progress.error_line) != NULL);
    stk_progress_begin(&progress, 0);
    hear_bytes(&progress, "epoch\0 3/30\0loss\0\0: 0.5", 23, 1);
    CHECK_INT(progress.epochs, 30);
    CHECK_NEAR(progress.loss, 0.5, 0);
    hear_bytes(&progress, "", 0, 2);
}

static void numbers_of_any_size_are_read(void) {
    static const line_case cases[] = {
        {"loss: 1e400", "loss inf"},
        {"loss: 1e-400", "loss 0"},
        {"loss: 0.0000000000000001", "loss 1e-16"},
        {"loss: 123456789.125", "loss 123456789.125"},
        {"loss: .5", "loss 0.5"},
        {"loss: +2.5e-01", "loss 0.25"},
        {"loss: 1e", "loss -1"},
        {"loss: 1.", "loss 1"},
        {"loss: 12,34", "loss 12"},
        {"loss: 1,234,567.5", "loss 1234567.5"},
        {"loss: 1,2345", "loss 1"},
        {"loss: 1234,567", "loss 1234"},
        {"loss: 11111111111111111111111111111111111111111111111111111111111111", "loss -1"},
        {"loss: infinity", "loss inf"},
        {"loss: nano", "loss -1"},
        {"loss:", "loss -1"},
        {"loss: -", "loss -1"},
    };
    CHECK_LINES(cases);
}

/* A transcript: "SECONDS text" is heard, "= name value ..." is what is known then. */
static void play(const char *path) {
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    char line[1024];
    int number = 0;
    int checks = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char where[1200];
        snprintf(where, sizeof where, "%s:%d", path, ++number);
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '=') {
            check_answers(&progress, line + 1, where);
            checks++;
        } else if (line[0] != '#') {
            char *text = NULL;
            double at_s = strtod(line, &text);
            hear_at(&progress, at_s, text + (*text == ' ' ? 1 : 0));
        }
    }
    fclose(file);
    CHECK(checks > 0);
}

static void transcripts_are_understood(void) {
    static const char folder[] = STK_GOLDEN_FOLDER "/progress";
    DIR *dir = opendir(folder);
    REQUIRE(dir != NULL);
    int played = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[1024];
        if (strstr(entry->d_name, ".txt") != NULL) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            play(path);
            played++;
        }
    }
    closedir(dir);
    CHECK(played >= 10);
}

static const check_test tests[] = {
    TEST(memory_is_understood),
    TEST(epochs_are_understood),
    TEST(steps_are_understood),
    TEST(speeds_are_understood),
    TEST(losses_are_understood),
    TEST(settings_are_understood),
    TEST(out_of_memory_is_understood),
    TEST(trouble_is_understood),
    TEST(colours_are_no_words),
    TEST(transcripts_are_understood),
    TEST(nothing_is_known_at_first),
    TEST(a_rate_needs_progress_and_time),
    TEST(a_speed_that_was_said_counts_without_progress),
    TEST(moments_are_kept_for_a_minute),
    TEST(steps_go_on_over_epochs),
    TEST(a_mention_of_an_epoch_before_is_no_beginning),
    TEST(the_last_epoch_counted_from_zero_fits),
    TEST(memory_is_the_largest),
    TEST(an_epoch_told_with_its_loss_is_over),
    TEST(hostile_lines_do_no_harm),
    TEST(numbers_of_any_size_are_read),
};

CHECK_MAIN(tests)
