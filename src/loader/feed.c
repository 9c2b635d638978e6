/*
 * feed.c - stoker/loader.h's way to a loader: a folder and options by name.
 *
 * The data set that was opened belongs to the loader and goes with it.
 */
#include "loader/loader.h"

#include <string.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/str.h"
#include "loader/feed.h"
#include "loader/pipeline.h"

/* What RandomResizedCrop does everywhere unless it is told otherwise (Szegedy et al., 2015). */
#define USUAL_CROP_SCALE 0.08

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
    {.name = "drop-last",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(drop_last),
     .fallback = "true",
     .help = "leave out the last batch of an epoch when it is not full (shuffled batches only)"},
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
    &stk_dataset_option_table, &stk_storage_option_table, &stk_feed_option_table,
    &stk_loader_option_table,  &stk_augment_option_table,
};

stk_status stk_options_for_loader(stk_options **out, stk_error *err) {
    return stk_options_new(out, "bench loader", tables, sizeof tables / sizeof *tables, err);
}

stk_augment_options stk_feed_augment(const stk_options *given) {
    const stk_augment_options *augment = stk_options_values(given, &stk_augment_option_table);
    stk_augment_options open = *augment;
    open.crop_scale = stk_is_auto_double(open.crop_scale) ? USUAL_CROP_SCALE : open.crop_scale;
    return open;
}

static stk_status choose(stk_feed_samples *f, const stk_dataset_options *data,
                         const stk_feed_options *feed, stk_error *err) {
    const stk_dataset *d = f->dataset;
    bool whole = feed->split == STK_FEED_ALL;
    if (whole || feed->split == STK_FEED_TEST) {
        f->list = whole && d->train.count > 0 ? &d->train : &d->test;
        f->count = f->list->count;
    } else {
        stk_status status =
            stk_dataset_split(d, data->val_fraction, 1, 0, (uint64_t)feed->seed, &f->split, err);
        if (status != STK_OK) {
            return status;
        }
        bool val = feed->split == STK_FEED_VAL;
        bool given = val && d->val.count > 0;
        f->list = given ? &d->val : &d->train;
        f->indices = given ? NULL : val ? f->split.val : f->split.train;
        f->count = given ? d->val.count : val ? f->split.val_count : f->split.train_count;
    }
    static const char *const names[] = {"labelled", "training", "validation", "test"};
    return f->count > 0 ? STK_OK
                        : STK_FAIL(err, STK_ERR_DATA, "there are no %s pictures in %s",
                                   names[feed->split], data->data);
}

stk_status stk_feed_samples_open(stk_feed_samples *f, const stk_options *given,
                                 const stk_stop *stop, const stk_events *events, stk_error *err) {
    const stk_dataset_options *asked = stk_options_values(given, &stk_dataset_option_table);
    const stk_storage_options *far = stk_options_values(given, &stk_storage_option_table);
    const stk_feed_options *feed = stk_options_values(given, &stk_feed_option_table);
    stk_dataset_options data = *asked;
    stk_storage_options storage = *far;
    storage.stop = stop;
    memset(f, 0, sizeof *f);
    if (data.data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "--data is missing: the folder of pictures to load");
    }
    bool divided = feed->split == STK_FEED_TRAIN || feed->split == STK_FEED_VAL;
    if (!divided && data.rare_class == STK_RARE_ERROR) {
        data.rare_class = STK_RARE_TRAIN; /* nothing is validated, so one picture is no problem */
    }
    stk_status status = feed->split == STK_FEED_ALL
                            ? stk_dataset_open_any(&f->dataset, &data, &storage, events, err)
                            : stk_dataset_open(&f->dataset, &data, &storage, events, err);
    if (status == STK_OK) {
        status = choose(f, &data, feed, err);
    }
    if (status != STK_OK) {
        stk_feed_samples_close(f);
    }
    return status;
}

void stk_feed_samples_close(stk_feed_samples *f) {
    stk_split_free(&f->split);
    stk_dataset_free(f->dataset);
    memset(f, 0, sizeof *f);
}

/* What cannot work is told before threads start, and before the kernel's killer comes. */
static stk_status check_request(const stk_feed_samples *samples, const stk_loader_options *loader,
                                const stk_feed_options *feed, const stk_loader_sizing *sizing,
                                size_t batch, uint64_t memory, stk_error *err) {
    uint64_t bytes = (uint64_t)sizing->slots * sizing->slot_bytes;
    if (bytes > memory / 2) {
        char need[32];
        char have[32];
        return STK_FAIL(err, STK_ERR_MEMORY,
                        "%d batches of %zu pictures at %d px need %s of memory, this process may "
                        "use %s; use a smaller --batch or --img-size",
                        sizing->slots, batch, (int)feed->img_size,
                        stk_format_bytes(need, sizeof need, bytes),
                        stk_format_bytes(have, sizeof have, memory));
    }
    if (feed->train && loader->sampling != STK_SAMPLING_NATURAL &&
        samples->dataset->class_count == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "sampling by class needs labels, and %s has none: sort the pictures into "
                        "one folder per class, or leave --sampling natural",
                        samples->dataset->root);
    }
    return STK_OK;
}

stk_status stk_loader_open(stk_loader **out, stk_options *given, stk_error *err) {
    return stk_loader_open_stoppable(out, given, NULL, NULL, err);
}

stk_status stk_loader_open_stoppable(stk_loader **out, stk_options *given, const stk_stop *stop,
                                     const stk_events *events, stk_error *err) {
    const stk_feed_options *feed = stk_options_values(given, &stk_feed_option_table);
    const stk_loader_options *loader = stk_options_values(given, &stk_loader_option_table);
    stk_feed_samples samples;
    stk_status status = stk_feed_samples_open(&samples, given, stop, events, err);
    if (status != STK_OK) {
        return status;
    }
    int size = (int)feed->img_size;
    size_t batch = (size_t)feed->batch < samples.count ? (size_t)feed->batch : samples.count;
    uint64_t memory = stk_machine_memory();
    stk_loader_sizing sizing =
        stk_loader_sizing_make(loader, batch, size, stk_machine_cores(), memory);
    status = check_request(&samples, loader, feed, &sizing, batch, memory, err);
    if (status != STK_OK) {
        stk_feed_samples_close(&samples);
        return status;
    }
    stk_loader_config config = {.store = samples.dataset->source,
                                .samples = samples.list->items,
                                .indices = samples.indices,
                                .count = samples.count,
                                .transform = {.size = size,
                                              .train = feed->train,
                                              .augment = stk_feed_augment(given),
                                              .crop_fraction = STK_FEED_CROP_FRACTION},
                                .batch = batch,
                                .sizing = sizing,
                                .stop = stop,
                                .seed = (uint64_t)feed->seed,
                                .shuffle = feed->train,
                                .drop_last = feed->train && feed->drop_last,
                                .replace_bad = feed->train,
                                .stop_after_bad = stk_loader_bad_limit(loader, samples.count),
                                .epochs = (uint64_t)feed->epochs,
                                .sampling = feed->train ? (stk_sampling)loader->sampling
                                                        : STK_SAMPLING_NATURAL,
                                .rank = (size_t)feed->rank,
                                .world = (size_t)feed->world};
    status = stk_loader_start(out, &config, err);
    if (status != STK_OK) {
        stk_feed_samples_close(&samples);
        return status;
    }
    (*out)->feed = samples;
    return STK_OK;
}

const char *stk_loader_path(const stk_loader *l, size_t sample) {
    const stk_sample_list *list = l->feed.list;
    return list != NULL && sample < list->count ? list->items[sample].path : NULL;
}

const char *stk_loader_class(const stk_loader *l, int label) {
    const stk_dataset *d = l->feed.dataset;
    return d != NULL && label >= 0 && label < d->class_count ? d->classes[label] : NULL;
}
