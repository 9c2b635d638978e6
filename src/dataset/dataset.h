/*
 * dataset.h - which samples exist: class folders, a Kaggle folder or a staged copy of one, and how
 * they are divided.
 *
 * stk_dataset_open() looks at a folder, decides which layout it has, checks it and lists it. Lists
 * are sorted, so the same folder gives the same data set. A data set is read-only after opening and
 * may be read by many threads. All texts belong to the data set.
 */
#ifndef STK_DATASET_DATASET_H
#define STK_DATASET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "events/events.h"
#include "options/options.h"
#include "storage/storage.h"

typedef struct stk_dataset_options {
    const char *data;              /* folder or address */
    const char *id_column;         /* NULL: found by its usual names */
    const char *label_column;      /* NULL: found by its usual names */
    const char *fold_column;       /* NULL: folds are dealt */
    const char *group_column;      /* NULL: every picture may go its own way */
    const char *sample_submission; /* NULL: found by its usual names; "none"; or a file */
    const char *image_ext;         /* NULL: any image extension; else "jpg" or ".jpg" */
    double val_fraction;           /* of each class, when no validation set is given */
    int mismatch;                  /* stk_mismatch: labels without files and files without labels */
    int rare_class; /* stk_rare_class: a class with one image when a split is needed */
    /* The subset; 0 or less, which auto is too: all. */
    int64_t classes;
    int64_t per_class; /* training pictures of each class */
    int64_t
        val_per_class; /* set apart from the training pictures when no validation set is given */
    int64_t subset_seed;
} stk_dataset_options;

typedef enum stk_mismatch { STK_MISMATCH_ERROR, STK_MISMATCH_SKIP } stk_mismatch;
typedef enum stk_rare_class {
    STK_RARE_ERROR, /* say so and stop */
    STK_RARE_TRAIN, /* use it for training; nothing of it is validated */
    STK_RARE_DROP   /* leave the class out */
} stk_rare_class;

extern const stk_option_table stk_dataset_option_table;

typedef struct stk_sample {
    const char *path; /* below stk_dataset.root, or NULL: the picture of this test row is missing */
    const char *id;   /* as the table spells it; in class folders the path (train, val) or the file
                         name without extension, with folders where names repeat (test) */
    int label;        /* index into classes; -1: not known */
    int part;         /* of a training sample: index into parts, where there are any; -1: a fold
                         column says that it always trains */
} stk_sample;

typedef struct stk_sample_list {
    stk_sample *items;
    size_t count;
} stk_sample_list;

typedef enum stk_layout {
    STK_LAYOUT_FOLDERS,
    STK_LAYOUT_KAGGLE,
    STK_LAYOUT_WEBDATASET,
    STK_LAYOUT_STAGED /* what `stoker stage` wrote */
} stk_layout;

/* What decides which training samples validate together. */
typedef enum stk_division {
    STK_DIVIDE_CLASSES, /* nothing but their classes */
    STK_DIVIDE_FOLDS,   /* a column of the table: each value of it is a fold */
    STK_DIVIDE_GROUPS   /* a column of the table: what has the same value stays together */
} stk_division;

/* The tables of a staged data set; the first says how to read the second. The column that divides
 * the samples follows under its own name where one was asked for. */
#define STK_STAGED_ABOUT "stage.json"
#define STK_STAGED_SAMPLES "samples.csv"
#define STK_STAGED_HEADER "split,class,id,path,member"
#define STK_STAGED_FORMAT 1

typedef struct stk_dataset {
    stk_layout layout;
    stk_store *source;          /* owned: the place that paths are below */
    const char *root;           /* its name */
    const char *const *classes; /* sorted by bytes, or by value when all are whole numbers */
    int class_count;
    stk_sample_list train; /* sorted by path (folders) or id (Kaggle); staged: as it was there */
    stk_sample_list val;   /* given or set apart, in the same order; empty when there is none */
    stk_sample_list test;  /* in the order of the submission's rows */
    stk_division division;
    const char *part_column;  /* what its column is called; NULL with STK_DIVIDE_CLASSES */
    const char *const *parts; /* the values in it, sorted as classes are */
    int part_count;           /* 0 with STK_DIVIDE_CLASSES */
    /* Name and header of sample_submission.csv; NULL and 0 when there is none. */
    const char *template_file;
    const char *const *template_header;
    int template_columns;
    int template_id;     /* which column of it is the id */
    const char *id_name; /* what the id column is called in a submission without a sample file */
    const char *label_name;
    struct stk_dataset_store *store; /* owns every text and array above */
} stk_dataset;

/*
 * `storage` NULL: the defaults, without a cache. Errors are STK_ERR_DATA, STK_ERR_USAGE for an
 * option or STK_ERR_STORAGE for a place that does not answer, and say what, where and what to do.
 */
STK_CHECKED stk_status stk_dataset_open(stk_dataset **dataset, const stk_dataset_options *options,
                                        const stk_storage_options *storage,
                                        const stk_events *events, stk_error *err);

/*
 * The pictures of a folder, in it and below it, as a list of test samples: what `predict --data`
 * takes. A Kaggle or class-folder data set gives its test set; any other folder all its pictures.
 * Such a data set has no classes, no labels and no training samples.
 */
STK_CHECKED stk_status stk_dataset_open_images(stk_dataset **dataset,
                                               const stk_dataset_options *options,
                                               const stk_storage_options *storage,
                                               const stk_events *events, stk_error *err);

/*
 * For those who take pictures with labels or without: a data set, or where the folder has neither
 * a table nor class folders, all pictures in and below it as test samples. Labels that are there
 * and wrong are an error.
 */
STK_CHECKED stk_status stk_dataset_open_any(stk_dataset **dataset,
                                            const stk_dataset_options *options,
                                            const stk_storage_options *storage,
                                            const stk_events *events, stk_error *err);
void stk_dataset_free(stk_dataset *dataset);

/*
 * The fold of every training sample: fold_of has one place for each. With folds <= 1: 0 is the
 * validating part, a stratified val_fraction of every class with at least one image of each class
 * that has two or more; where a validation set is given all is -1. With folds >= 2 every class is
 * dealt over the folds evenly. Groups are kept together, their classes as even as that allows. A
 * fold column decides alone: its values are the folds, whatever `folds` is. -1 always trains: so
 * does a class with one image, together with its group. Depends on nothing but the seed and the
 * samples.
 */
STK_CHECKED stk_status stk_dataset_deal(const stk_dataset *dataset, double val_fraction, int folds,
                                        uint64_t seed, int *fold_of, stk_error *err);

/*
 * Looks at all folds at once: STK_ERR_DATA for one that has nothing to validate or nothing to train
 * on. Tells which have no picture of some class, and how a column divides the samples.
 */
STK_CHECKED stk_status stk_dataset_check_folds(const stk_dataset *dataset, double val_fraction,
                                               int folds, uint64_t seed, const stk_events *events,
                                               stk_error *err);

/*
 * One of these divisions, as indices into dataset->train; both lists sorted: fold number `fold`
 * (from 0; without folds there is 0 only) is val. A division that leaves nothing to validate is
 * STK_ERR_DATA.
 */
typedef struct stk_split {
    size_t *train;
    size_t train_count;
    size_t *val;
    size_t val_count;
} stk_split;

STK_CHECKED stk_status stk_dataset_split(const stk_dataset *dataset, double val_fraction, int folds,
                                         int fold, uint64_t seed, stk_split *split, stk_error *err);
void stk_split_free(stk_split *split);

/* The share of each class among the training samples: class_count numbers that sum to 1. */
void stk_dataset_priors(const stk_dataset *dataset, double *priors);

/*
 * How many of `count` pictures may be bad before whoever goes through them stops: max_bad percent.
 * STK_AUTO_DOUBLE: 5, and three pictures at least, since a few are nobody's reason to stop.
 */
size_t stk_dataset_bad_allowed(double max_bad, size_t count);

/* True when the name ends as an image file's does (.jpg .jpeg .png .webp, any case). */
bool stk_dataset_is_image_name(const char *name);

#endif
