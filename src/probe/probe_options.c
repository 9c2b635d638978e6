/* probe_options.c - the options of benchmarks, and which tables each of them has. */
#include "probe/probe_options.h"

#include "backend/opened_device.h"
#include "dataset/dataset.h"
#include "image/augment/augment.h"
#include "loader/folder_samples.h"
#include "loader/loader.h"
#include "report/report_options.h"
#include "storage/storage.h"

#define FIELD(name) offsetof(stk_probe_options, name)

static const stk_option options[] = {
    STK_OPTION(DOUBLE, "seconds", seconds, .fallback = "5", STK_OPTION_RANGE(0, 86400),
               .metavar = "N",
               .help = "least length of the measurement, warm-up aside; 0 measures nothing"),
    STK_OPTION(
        DOUBLE, "rate", rate, .fallback = "0", STK_OPTION_RANGE(0, 1e9), .metavar = "N",
        .help = "measure whole epochs with a consumer that takes this many images/s; 0: a consumer "
                "without a limit, for which whole epochs are measured only with --epochs"),
    STK_OPTION(TEXT, "sheet", sheet, .metavar = "FILE.png",
               .help =
                   "draw a contact sheet: pictures, each as validation and as training sees it"),
    STK_OPTION(TEXT, "device", device, .fallback = "cpu", .may_be_auto = true,
               .metavar = "cpu|cuda[:N]",
               .help = "whose memory the batches go to, and which may decode (--decode)"),
};

const stk_option_table stk_probe_option_table =
    STK_OPTION_TABLE("Measurement", options, stk_probe_options);

static const stk_option_table *const loader_tables[] = {
    &stk_dataset_option_table, &stk_storage_option_table, &stk_probe_option_table,
    &stk_folder_option_table,  &stk_loader_option_table,  &stk_augment_option_table,
    &stk_output_option_table,
};

#undef FIELD
#define FIELD(name) offsetof(stk_storage_probe_options, name)

static const stk_option storage_options[] = {
    STK_OPTION(TEXT, "data", data, .aliases = "data_root", .metavar = "PATH|URL",
               .help = "folder, shards or s3://bucket/prefix with pictures in it or below it"),
    STK_OPTION(TEXT, "in-flight", in_flight, STK_OPTION_AUTO, .metavar = "N,N...",
               .help = "how many reads at a time are tried; auto is 1, 2, 4 and so on up to 512, "
                       "or until more of them bring nothing"),
    STK_OPTION(DOUBLE, "rate", rate, .fallback = "1000", STK_OPTION_RANGE(0.001, 1e9),
               .metavar = "N",
               .help = "wanted images/s: the output says how many reads in flight are enough"),
    STK_OPTION(DOUBLE, "seconds", seconds, .fallback = "10", STK_OPTION_RANGE(0.01, 86400),
               .metavar = "N",
               .help = "length of the whole measurement; every number of reads in flight gets some "
                       "dozens of reads at least"),
};

const stk_option_table stk_storage_probe_option_table =
    STK_OPTION_TABLE("Measurement", storage_options, stk_storage_probe_options);

static const stk_option_table *const storage_tables[] = {
    &stk_storage_probe_option_table,
    &stk_storage_option_table,
    &stk_output_option_table,
};

#undef FIELD
#define FIELD(name) offsetof(stk_step_probe_options, name)

static const stk_option step_options[] = {
    STK_OPTION(TEXT, "model", model, .aliases = "model_name", .metavar = "NAME",
               .help = "network, by timm's name"),
    STK_OPTION(TEXT, "batch", batch, .fallback = "16", .aliases = "batch_size", .metavar = "N,N...",
               .help = "images per step; each value of a list is measured"),
    STK_OPTION(INT, "img-size", img_size, STK_OPTION_AUTO, STK_OPTION_RANGE(8, 2048),
               .aliases = "image_size", .metavar = "PX",
               .help = "side of the square that the network sees; auto is the model's"),
    STK_OPTION(INT, "classes", classes, .fallback = "1000", STK_OPTION_RANGE(2, 1e6),
               .metavar = "N", .help = "outputs of the network"),
    STK_OPTION(TEXT, "device", device, STK_OPTION_AUTO, .metavar = "cpu|cuda[:N]",
               .help = "where to compute"),
    STK_OPTION(BYTES, "assume-memory", assume_memory, .fallback = "0", .metavar = "SIZE",
               .help = STK_ASSUME_MEMORY_HELP),
    STK_OPTION(CHOICE, "precision", precision, .fallback = "auto", .aliases = "amp",
               .choices = STK_PRECISION_CHOICES,
               .help = "number format of the computation; auto is fp16 on a GPU and fp32 on a CPU"),
    STK_OPTION(BOOL, "deterministic", deterministic, .fallback = "false",
               .help = "measure what gives the same bits in every run"),
    STK_OPTION(INT, "threads", threads, STK_OPTION_AUTO, STK_OPTION_RANGE(1, 1024), .metavar = "N",
               .help = "threads of a CPU; auto is one per core"),
    STK_OPTION(DOUBLE, "seconds", seconds, .fallback = "10", STK_OPTION_RANGE(0, 86400),
               .metavar = "N",
               .help = "least length of the measurement of one batch; at least five windows of "
                       "steps are measured"),
    STK_OPTION(BOOL, "inference", inference, .fallback = "false",
               .help = "measure inference instead of training steps"),
    STK_OPTION(BOOL, "compile", compile, .fallback = "true",
               .help = "fuse what can be fused; --no-compile measures the unfused path"),
    STK_OPTION(BOOL, "profile", profile, .fallback = "false",
               .help = "say where the time of a step goes, by kernel; GPUs only"),
    STK_OPTION(
        TEXT, "compare", compare, .metavar = "torch",
        .help = "measure PyTorch as well, eagerly and compiled, where python3 has torch and timm"),
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
