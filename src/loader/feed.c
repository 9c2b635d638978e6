/*
 * feed.c - stoker/loader.h's way to a loader: a folder and options by name.
 *
 * The data set that was opened belongs to the loader and goes with it.
 */
#include "loader/loader.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"
#include "loader/feed.h"

#define FIELD(name) offsetof(stk_feed_options, name)

static const stk_option options[] = {
    {.name = "batch",
     .aliases = "batch_size",
     .type = STK_OPTION_INT,
     .offset = FIELD(batch),
     .fallback = "128",
     .min = 1,
     .max = 65536,
     .metavar = "N",
     .help = "pictures per batch"},
    {.name = "img-size",
     .aliases = "image_size",
     .type = STK_OPTION_INT,
     .offset = FIELD(img_size),
     .fallback = "224",
     .min = 8,
     .max = 4096,
     .metavar = "PX",
     .help = "side of the square pictures"},
    {.name = "split",
     .type = STK_OPTION_CHOICE,
     .offset = FIELD(split),
     .fallback = "all",
     .choices = "all train val test",
     .help = "which pictures: all that have a label (or all there are), or one split"},
    {.name = "train-transform",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(train),
     .fallback = "true",
     .help = "shuffle and augment; without it in order, resized, centre cropped"},
    {.name = "epochs",
     .type = STK_OPTION_INT,
     .offset = FIELD(epochs),
     .fallback = "0",
     .min = 0,
     .max = 9e15,
     .metavar = "N",
     .help = "passes over the pictures; 0 goes on for ever"},
    {.name = "seed",
     .type = STK_OPTION_INT,
     .offset = FIELD(seed),
     .fallback = "0",
     .min = 0,
     .max = 9e15,
     .metavar = "N",
     .help = "what every random choice derives from"},
    {.name = "rank",
     .type = STK_OPTION_INT,
     .offset = FIELD(rank),
     .fallback = "0",
     .min = 0,
     .max = 65535,
     .metavar = "N",
     .help = "which machine of --world this is, from 0"},
    {.name = "world",
     .aliases = "world_size",
     .type = STK_OPTION_INT,
     .offset = FIELD(world),
     .fallback = "1",
     .min = 1,
     .max = 65536,
     .metavar = "N",
     .help = "machines that share the pictures"},
};

const stk_option_table stk_feed_option_table = STK_OPTION_TABLE("Feed", options, stk_feed_options);

static const stk_option_table *const tables[] = {
    &stk_dataset_option_table,
    &stk_feed_option_table,
    &stk_loader_option_table,
    &stk_augment_option_table,
};

stk_status stk_options_for_loader(stk_options **out, stk_error *err) {
    return stk_options_new(out, "loader", tables, sizeof tables / sizeof *tables, err);
}
