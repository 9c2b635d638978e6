/* probe_options.c - the options of benchmarks, and which tables each of them has. */
#include "probe/probe_options.h"

#include "dataset/dataset.h"
#include "image/augment.h"
#include "loader/feed.h"
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
    &stk_feed_option_table,    &stk_loader_option_table,  &stk_augment_option_table,
    &stk_output_option_table,
};

stk_status stk_options_for_bench_loader(stk_options **out, stk_error *err) {
    return stk_options_new(out, "bench loader", loader_tables,
                           sizeof loader_tables / sizeof *loader_tables, err);
}
