/*
 * folder_samples.h - for stk_loader_open() (stoker/loader.h): the option table of a loader on a
 * folder, and the list of samples that the options choose. Threads: one at a time.
 */
#ifndef STK_LOADER_FOLDER_SAMPLES_H
#define STK_LOADER_FOLDER_SAMPLES_H

#include <stoker/stop.h>

#include "dataset/dataset.h"
#include "events/events.h"
#include "image/augment/augment.h"
#include "options/options.h"

typedef enum stk_folder_set {
    STK_FOLDER_ALL, /* all training samples, not divided; without training samples, all of the test
                       set. A given validation set is not among them */
    STK_FOLDER_TRAIN,
    STK_FOLDER_VAL,
    STK_FOLDER_TEST
} stk_folder_set;

typedef struct stk_folder_options {
    int64_t batch;
    int64_t img_size; /* px */
    int split;        /* stk_folder_set */
    bool train;       /* shuffled and augmented */
    bool drop_last;   /* in training: leave out a last batch that is not full */
    int64_t epochs;   /* 0: for ever */
    int64_t seed;
    int64_t rank;
    int64_t world;
} stk_folder_options;

extern const stk_option_table stk_folder_option_table;

/* Evaluation keeps this share of the short side, as most of timm's models ask for. */
#define STK_FOLDER_CROP_FRACTION 0.875

/* The augmentation that the options mean, with torchvision's crops where they leave it open. */
stk_augment_options stk_folder_augment(const stk_options *options);

/* The samples that the options of a loader mean. */
typedef struct stk_folder_samples {
    stk_dataset *dataset;
    stk_split split;
    const stk_sample_list *list; /* of the data set */
    const size_t *indices;       /* into the list, of the split; NULL: all of it */
    size_t count;                /* at least 1 */
} stk_folder_samples;

/*
 * A folder without a known layout gives every picture below it. `stop` ends waits for storage, also
 * later; it must outlive the samples. `events` get what is found now. Both may be NULL.
 */
STK_CHECKED stk_status stk_folder_samples_open(stk_folder_samples *samples,
                                               const stk_options *options, const stk_stop *stop,
                                               const stk_events *events, stk_error *err);
void stk_folder_samples_close(stk_folder_samples *samples);

#endif
