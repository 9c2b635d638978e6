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
#include "loader/pipeline.h"

/* Evaluation keeps this share of the short side, as most of timm's models ask for. */
#define CROP_FRACTION 0.875

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

/* What a feed is made of; handed to the loader in the end. */
typedef struct feed {
    const stk_dataset_options *data;
    const stk_feed_options *feed;
    const stk_loader_options *loader;
    const stk_augment_options *augment;
    stk_dataset *dataset;
    stk_split split;
    const stk_sample_list *list; /* of the data set */
    const size_t *indices;       /* into the list; NULL: all of it */
    size_t count;
} feed;

/* Class folders or a Kaggle folder; where it is neither, every picture below it will do. */
static stk_status open_dataset(feed *f, stk_error *err) {
    stk_error why = {0};
    stk_status status = stk_dataset_open(&f->dataset, f->data, NULL, &why);
    if (status == STK_ERR_DATA && f->feed->split == STK_FEED_ALL) {
        stk_error other = {0};
        if (stk_dataset_open_images(&f->dataset, f->data, NULL, &other) == STK_OK) {
            return STK_OK;
        }
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

static stk_status choose_samples(feed *f, stk_error *err) {
    const stk_dataset *d = f->dataset;
    bool whole = f->feed->split == STK_FEED_ALL;
    if (whole || f->feed->split == STK_FEED_TEST) {
        f->list = whole && d->train.count > 0 ? &d->train : &d->test;
        f->count = f->list->count;
    } else {
        stk_status status = stk_dataset_split(d, f->data->val_fraction, 1, 0,
                                              (uint64_t)f->feed->seed, &f->split, err);
        if (status != STK_OK) {
            return status;
        }
        bool val = f->feed->split == STK_FEED_VAL;
        bool given = val && d->val.count > 0;
        f->list = given ? &d->val : &d->train;
        f->indices = given ? NULL : val ? f->split.val : f->split.train;
        f->count = given ? d->val.count : val ? f->split.val_count : f->split.train_count;
    }
    if (f->count == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "there are no pictures in this part of %s",
                        f->data->data);
    }
    return STK_OK;
}

static stk_status start(feed *f, stk_loader **out, stk_error *err) {
    bool train = f->feed->train;
    size_t batch = (size_t)f->feed->batch < f->count ? (size_t)f->feed->batch : f->count;
    stk_loader_config config = {
        .root = f->dataset->root,
        .samples = f->list->items,
        .indices = f->indices,
        .count = f->count,
        .transform = {.size = (int)f->feed->img_size,
                      .train = train,
                      .augment = *f->augment,
                      .crop_fraction = CROP_FRACTION},
        .batch = batch,
        .plan = stk_loader_plan_make(f->loader, batch, (int)f->feed->img_size, stk_machine_cores(),
                                     stk_machine_memory()),
        .seed = (uint64_t)f->feed->seed,
        .shuffle = train,
        .drop_last = train,
        .replace_bad = train,
        .stop_after_bad = stk_loader_bad_limit(f->loader, f->count),
        .epochs = (uint64_t)f->feed->epochs,
        .sampling = train ? (stk_sampling)f->loader->sampling : STK_SAMPLING_NATURAL,
        .rank = (size_t)f->feed->rank,
        .world = (size_t)f->feed->world};
    return stk_loader_start(out, &config, err);
}

stk_status stk_loader_open(stk_loader **out, stk_options *given, stk_error *err) {
    feed f = {.data = stk_options_values(given, &stk_dataset_option_table),
              .feed = stk_options_values(given, &stk_feed_option_table),
              .loader = stk_options_values(given, &stk_loader_option_table),
              .augment = stk_options_values(given, &stk_augment_option_table)};
    if (f.data->data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "--data is missing: the folder of pictures to load");
    }
    stk_loader *l = NULL;
    stk_status status = open_dataset(&f, err);
    if (status == STK_OK) {
        status = choose_samples(&f, err);
    }
    if (status == STK_OK) {
        status = start(&f, &l, err);
    }
    if (status != STK_OK) {
        stk_split_free(&f.split);
        stk_dataset_free(f.dataset);
        return status;
    }
    l->dataset = f.dataset;
    l->split = f.split;
    *out = l;
    return STK_OK;
}

const char *stk_loader_path(const stk_loader *l, size_t sample) {
    const stk_dataset *d = l->dataset;
    if (d == NULL) {
        return NULL;
    }
    const stk_sample_list *lists[] = {&d->train, &d->val, &d->test};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i]->items == l->config.samples) {
            return sample < lists[i]->count ? lists[i]->items[sample].path : NULL;
        }
    }
    return NULL;
}

const char *stk_loader_class(const stk_loader *l, int label) {
    const stk_dataset *d = l->dataset;
    return d != NULL && label >= 0 && label < d->class_count ? d->classes[label] : NULL;
}
