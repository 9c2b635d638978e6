/*
 * folder_samples.c - the options of a loader on a folder, and which samples they mean: the whole
 * training set, or one set.
 */
#include "loader/folder_samples.h"

#include <string.h>

#include "base/error.h"

/* The usual least share of the area of RandomResizedCrop (Szegedy et al., 2015). */
#define USUAL_CROP_SCALE 0.08

#define FIELD(name) offsetof(stk_folder_options, name)

static const stk_option options[] = {
    STK_OPTION(INT, "batch", batch, .fallback = "128", STK_OPTION_RANGE(1, 65536),
               .aliases = "batch_size", .metavar = "N", .help = "pictures per batch"),
    STK_OPTION(INT, "img-size", img_size, .fallback = "224", STK_OPTION_RANGE(8, 4096),
               .aliases = "image_size", .metavar = "PX", .help = "side of the square pictures"),
    STK_OPTION(CHOICE, "split", split, .fallback = "all", .choices = "all train val test",
               .help = "which pictures: the whole training set (or, without labels, all there "
                       "are), or one set"),
    STK_OPTION(BOOL, "train-transform", train, .fallback = "true",
               .help = "shuffle and augment; without it in order, resized, centre cropped"),
    STK_OPTION(
        BOOL, "drop-last", drop_last, .fallback = "true",
        .help = "leave out the last batch of an epoch when it is not full (shuffled batches only)"),
    STK_OPTION(INT, "epochs", epochs, .fallback = "0", STK_OPTION_RANGE(0, 9e15), .metavar = "N",
               .help = "passes over the pictures; 0 goes on for ever"),
    STK_OPTION(INT, "seed", seed, .fallback = "0", STK_OPTION_RANGE(0, 9e15), .metavar = "N",
               .help = "what every random choice derives from"),
    STK_OPTION(INT, "rank", rank, .fallback = "0", STK_OPTION_RANGE(0, 65535), .metavar = "N",
               .help = "which machine of --world this is, from 0"),
    STK_OPTION(INT, "world", world, .fallback = "1", STK_OPTION_RANGE(1, 65536),
               .aliases = "world_size", .metavar = "N", .help = "machines that share the pictures"),
};

const stk_option_table stk_folder_option_table =
    STK_OPTION_TABLE("Feed", options, stk_folder_options);

stk_augment_options stk_folder_augment(const stk_options *given) {
    const stk_augment_options *augment = stk_options_values(given, &stk_augment_option_table);
    stk_augment_options open = *augment;
    open.crop_scale = stk_is_auto_double(open.crop_scale) ? USUAL_CROP_SCALE : open.crop_scale;
    return open;
}

static stk_status choose(stk_folder_samples *f, const stk_dataset_options *data,
                         const stk_folder_options *folder, stk_error *err) {
    const stk_dataset *d = f->dataset;
    bool whole = folder->split == STK_FOLDER_ALL;
    if (whole || folder->split == STK_FOLDER_TEST) {
        f->list = whole && d->train.count > 0 ? &d->train : &d->test;
        f->count = f->list->count;
    } else {
        stk_status status =
            stk_dataset_split(d, data->val_fraction, 1, 0, (uint64_t)folder->seed, &f->split, err);
        if (status != STK_OK) {
            return status;
        }
        bool val = folder->split == STK_FOLDER_VAL;
        bool given = val && d->val.count > 0;
        f->list = given ? &d->val : &d->train;
        f->indices = given ? NULL : val ? f->split.val : f->split.train;
        f->count = given ? d->val.count : val ? f->split.val_count : f->split.train_count;
    }
    static const char *const names[] = {"labelled", "training", "validation", "test"};
    return f->count > 0 ? STK_OK
                        : STK_FAIL(err, STK_ERR_DATA, "there are no %s pictures in %s",
                                   names[folder->split], data->data);
}

stk_status stk_folder_samples_open(stk_folder_samples *f, const stk_options *given,
                                   const stk_stop *stop, const stk_events *events, stk_error *err) {
    const stk_dataset_options *asked = stk_options_values(given, &stk_dataset_option_table);
    const stk_storage_options *far = stk_options_values(given, &stk_storage_option_table);
    const stk_folder_options *folder = stk_options_values(given, &stk_folder_option_table);
    stk_dataset_options data = *asked;
    stk_storage_options storage = *far;
    storage.stop = stop;
    memset(f, 0, sizeof *f);
    if (data.data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "--data is missing: the folder of pictures to load");
    }
    bool divided = folder->split == STK_FOLDER_TRAIN || folder->split == STK_FOLDER_VAL;
    if (!divided && (data.rare_class == STK_RARE_ERROR || data.rare_class == STK_RARE_AUTO)) {
        data.rare_class = STK_RARE_TRAIN; /* nothing is validated, so one picture is no problem */
    }
    stk_status status = folder->split == STK_FOLDER_ALL
                            ? stk_dataset_open_any(&f->dataset, &data, &storage, events, err)
                            : stk_dataset_open(&f->dataset, &data, &storage, events, err);
    STK_THEN(status, choose(f, &data, folder, err));
    if (status != STK_OK) {
        stk_folder_samples_close(f);
    }
    return status;
}

void stk_folder_samples_close(stk_folder_samples *f) {
    stk_split_free(&f->split);
    stk_dataset_free(f->dataset);
    memset(f, 0, sizeof *f);
}
