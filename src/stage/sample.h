/*
 * sample.h - `stoker sample`: a small data set of drawn pictures, for trials and tests without a
 * download.
 *
 * A class is a shape with a texture, such as disc_stripes. Position, size, rotation, colours and
 * the clutter behind the shape are random, so that a small convolutional network learns the classes
 * quickly and a linear model on pixels cannot. The same options give the same bytes, with any
 * number of threads.
 */
#ifndef STK_STAGE_SAMPLE_H
#define STK_STAGE_SAMPLE_H

#include <stdint.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "events/events.h"
#include "options/options.h"

#define STK_SAMPLE_MAX_CLASSES 48

/* Indexes in the option's list of choices. */
enum { STK_SAMPLE_FOLDER, STK_SAMPLE_KAGGLE };

typedef struct stk_sample_options {
    const char *dir;   /* borrowed: the folder to make; not an option, the caller sets it */
    int layout;        /* STK_SAMPLE_FOLDER or STK_SAMPLE_KAGGLE */
    int64_t classes;   /* 2 .. STK_SAMPLE_MAX_CLASSES */
    int64_t per_class; /* training pictures of each class; 2 .. 100000 */
    int64_t seed;
} stk_sample_options;

extern const stk_option_table stk_sample_option_table;

/*
 * Makes the data set in a hidden folder beside dir and renames it at the end. STK_ERR_USAGE: dir
 * exists and is not empty. Folder layout: train/CLASS/NNNN.jpg, val/CLASS/NNNN.jpg (a fifth as
 * many) and test/NNNN.jpg (a quarter as many, mixed). Kaggle layout: train/ID.jpg, test/ID.jpg,
 * train.csv, sample_submission.csv and solution.csv. STK_ERR_STOPPED: a request to stop; nothing is
 * left behind.
 */
STK_CHECKED stk_status stk_sample_make(const stk_sample_options *options, const stk_events *events,
                                       const stk_stop *stop, int threads, stk_error *err);

/* Writes "disc_stripes" into buf; returns buf. */
const char *stk_sample_class_name(int64_t class_index, char *buf, size_t size);

#endif
