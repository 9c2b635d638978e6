/* stage_options.c - the options of staging. */
#include "stage/stage.h"

#define FIELD(name) offsetof(stk_stage_options, name)

static const stk_option stage_options[] = {
    STK_OPTION(INT, "max-side", max_side, .fallback = "0", STK_OPTION_RANGE(0, 32768),
               .metavar = "PX",
               .help = "make pictures smaller whose longer side has more pixels, and JPEGs of "
                       "those in other formats; 0: leave them"),
    STK_OPTION(INT, "quality", quality, .fallback = "0", STK_OPTION_RANGE(0, 100), .metavar = "Q",
               .help = "make every picture a JPEG of this quality; 0: only those that --max-side "
                       "changes, with 90"),
    STK_OPTION(INT, "shard-size", shard_size, .fallback = "1000", STK_OPTION_RANGE(1, 1e6),
               .metavar = "N", .help = "pictures in one tar"),
    STK_OPTION(INT, "workers", workers, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 1024),
               .aliases = "num_workers", .metavar = "N",
               .help = "threads that make pictures smaller; auto is one per core"),
    STK_OPTION(DOUBLE, "max-bad", max_bad, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 100),
               .metavar = "PERCENT",
               .help = "stop when more of the pictures than this cannot be used; auto is 5, and "
                       "more than three pictures"),
    STK_OPTION(BOOL, "overwrite", overwrite, .fallback = "false",
               .help = "replace what was staged before with other flags or from another source"),
};

const stk_option_table stk_stage_option_table =
    STK_OPTION_TABLE("Staging", stage_options, stk_stage_options);
