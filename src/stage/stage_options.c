/* stage_options.c - the options of staging. */
#include "stage/stage.h"

static const stk_option stage_options[] = {
    {.name = "max-side",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_stage_options, max_side),
     .fallback = "0",
     .min = 0,
     .max = 32768,
     .metavar = "PX",
     .help = "make pictures smaller whose longer side has more pixels, and JPEGs of those in other "
             "formats; 0: leave them"},
    {.name = "quality",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_stage_options, quality),
     .fallback = "0",
     .min = 0,
     .max = 100,
     .metavar = "Q",
     .help = "make every picture a JPEG of this quality; 0: only those that --max-side changes, "
             "with 90"},
    {.name = "shard-size",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_stage_options, shard_size),
     .fallback = "1000",
     .min = 1,
     .max = 1e6,
     .metavar = "N",
     .help = "pictures in one tar"},
    {.name = "workers",
     .aliases = "num_workers",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_stage_options, workers),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 0,
     .max = 1024,
     .metavar = "N",
     .help = "threads that make pictures smaller; auto is one per core"},
    {.name = "max-bad",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(stk_stage_options, max_bad),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 0,
     .max = 100,
     .metavar = "PERCENT",
     .help = "stop when more of the pictures than this cannot be used; auto is 5, and more than "
             "three pictures"},
    {.name = "overwrite",
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_stage_options, overwrite),
     .fallback = "false",
     .help = "replace what was staged before with other flags or from another source"},
};

const stk_option_table stk_stage_option_table =
    STK_OPTION_TABLE("Staging", stage_options, stk_stage_options);
