/* probe_options.c - the options of benchmarks, and which tables each of them has. */
#include "probe/probe_options.h"

#include "backend/opened_device.h"
#include "dataset/dataset.h"
#include "image/augment/augment.h"
#include "loader/folder_samples.h"
#include "loader/loader.h"
#include "report/report_options.h"
#include "storage/storage.h"

static const stk_option options[] = {
    {.name = "seconds",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(stk_probe_options, seconds),
     .fallback = "5",
     .min = 0,
     .max = 86400,
     .metavar = "N",
     .help = "least length of the measurement, warm-up aside; 0 measures nothing"},
    {.name = "rate",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(stk_probe_options, rate),
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .metavar = "N",
     .help = "measure whole epochs with a consumer that takes this many images/s; 0: a consumer "
             "without a limit, for which whole epochs are measured only with --epochs"},
    {.name = "sheet",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_probe_options, sheet),
     .metavar = "FILE.png",
     .help = "draw a contact sheet: pictures, each as validation and as training sees it"},
};

const stk_option_table stk_probe_option_table =
    STK_OPTION_TABLE("Measurement", options, stk_probe_options);

static const stk_option_table *const loader_tables[] = {
    &stk_dataset_option_table, &stk_storage_option_table, &stk_probe_option_table,
    &stk_folder_option_table,  &stk_loader_option_table,  &stk_augment_option_table,
    &stk_output_option_table,
};

static const stk_option storage_options[] = {
    {.name = "data",
     .aliases = "data_root",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_storage_probe_options, data),
     .metavar = "PATH|URL",
     .help = "folder, shards or s3://bucket/prefix with pictures in it or below it"},
    {.name = "in-flight",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_storage_probe_options, in_flight),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "N,N...",
     .help = "how many reads at a time are tried; auto is 1, 2, 4 and so on up to 512, or until "
             "more of them bring nothing"},
    {.name = "rate",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(stk_storage_probe_options, rate),
     .fallback = "1000",
     .min = 0.001,
     .max = 1e9,
     .metavar = "N",
     .help = "wanted images/s: the output says how many reads in flight are enough"},
    {.name = "seconds",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(stk_storage_probe_options, seconds),
     .fallback = "10",
     .min = 0.01,
     .max = 86400,
     .metavar = "N",
     .help = "length of the whole measurement; every number of reads in flight gets some dozens of "
             "reads at least"},
};

const stk_option_table stk_storage_probe_option_table =
    STK_OPTION_TABLE("Measurement", storage_options, stk_storage_probe_options);

static const stk_option_table *const storage_tables[] = {
    &stk_storage_probe_option_table,
    &stk_storage_option_table,
    &stk_output_option_table,
};

#define STEP(name) offsetof(stk_step_probe_options, name)

static const stk_option step_options[] = {
    {.name = "model",
     .aliases = "model_name",
     .type = STK_OPTION_TEXT,
     .offset = STEP(model),
     .metavar = "NAME",
     .help = "network, by timm's name"},
    {.name = "batch",
     .aliases = "batch_size",
     .type = STK_OPTION_TEXT,
     .offset = STEP(batch),
     .fallback = "16",
     .metavar = "N,N...",
     .help = "images per step; each value of a list is measured"},
    {.name = "img-size",
     .aliases = "image_size",
     .type = STK_OPTION_INT,
     .offset = STEP(img_size),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 8,
     .max = 2048,
     .metavar = "PX",
     .help = "side of the square that the network sees; auto is the model's"},
    {.name = "classes",
     .type = STK_OPTION_INT,
     .offset = STEP(classes),
     .fallback = "1000",
     .min = 2,
     .max = 1e6,
     .metavar = "N",
     .help = "outputs of the network"},
    {.name = "device",
     .type = STK_OPTION_TEXT,
     .offset = STEP(device),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "cpu|cuda[:N]",
     .help = "where to compute"},
    {.name = "assume-memory",
     .type = STK_OPTION_BYTES,
     .offset = STEP(assume_memory),
     .fallback = "0",
     .metavar = "SIZE",
     .help = STK_ASSUME_MEMORY_HELP},
    {.name = "precision",
     .aliases = "amp",
     .type = STK_OPTION_CHOICE,
     .offset = STEP(precision),
     .fallback = "auto",
     .choices = STK_PRECISION_CHOICES,
     .help = "number format of the computation; auto is fp16 on a GPU and fp32 on a CPU"},
    {.name = "deterministic",
     .type = STK_OPTION_BOOL,
     .offset = STEP(deterministic),
     .fallback = "false",
     .help = "measure what gives the same bits in every run"},
    {.name = "threads",
     .type = STK_OPTION_INT,
     .offset = STEP(threads),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 1,
     .max = 1024,
     .metavar = "N",
     .help = "threads of a CPU; auto is one per core"},
    {.name = "seconds",
     .type = STK_OPTION_DOUBLE,
     .offset = STEP(seconds),
     .fallback = "10",
     .min = 0,
     .max = 86400,
     .metavar = "N",
     .help = "least length of the measurement of one batch; at least five windows of steps are "
             "measured"},
    {.name = "inference",
     .type = STK_OPTION_BOOL,
     .offset = STEP(inference),
     .fallback = "false",
     .help = "measure inference instead of training steps"},
    {.name = "compile",
     .type = STK_OPTION_BOOL,
     .offset = STEP(compile),
     .fallback = "true",
     .help = "fuse what can be fused; --no-compile measures the unfused path"},
    {.name = "profile",
     .type = STK_OPTION_BOOL,
     .offset = STEP(profile),
     .fallback = "false",
     .help = "say where the time of a step goes, by kernel; GPUs only"},
    {.name = "compare",
     .type = STK_OPTION_TEXT,
     .offset = STEP(compare),
     .metavar = "torch",
     .help = "measure PyTorch as well, eagerly and compiled, where python3 has torch and timm"},
};

const stk_option_table stk_step_probe_option_table =
    STK_OPTION_TABLE("Measurement", step_options, stk_step_probe_options);

static const stk_option_table *const step_tables[] = {
    &stk_step_probe_option_table,
    &stk_output_option_table,
};

stk_status stk_options_for_bench_step(stk_options **out, stk_error *err) {
    return stk_options_new(out, "bench step", step_tables, sizeof step_tables / sizeof *step_tables,
                           err);
}

stk_status stk_options_for_bench_loader(stk_options **out, stk_error *err) {
    return stk_options_new(out, "bench loader", loader_tables,
                           sizeof loader_tables / sizeof *loader_tables, err);
}

stk_status stk_options_for_bench_storage(stk_options **out, stk_error *err) {
    return stk_options_new(out, "bench storage", storage_tables,
                           sizeof storage_tables / sizeof *storage_tables, err);
}
