/*
 * dataset.h - which samples exist, and how they are divided: class folders, a Kaggle folder,
 * WebDataset tars, or a staged copy.
 *
 * stk_dataset_open() looks at a folder, decides which layout it has, checks it and lists it. Lists
 * have a fixed order, so the same folder gives the same data set. A data set is read-only after
 * opening and may be read by many threads. All texts belong to the data set.
 */
#ifndef STK_DATASET_DATASET_H
#define STK_DATASET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "dataset/features.h"
#include "dataset/targets.h"
#include "metrics/metric.h"
#include "events/events.h"
#include "options/options.h"
#include "storage/storage.h"

typedef struct stk_dataset_options {
    const char *data;              /* folder or address */
    const char *id_column;         /* NULL: found by its usual names */
    const char *label_column;      /* NULL: found; several with commas between */
    const char *fold_column;       /* NULL: folds are drawn from the seed */
    const char *group_column;      /* NULL: found where it shows; "none": there is none */
    const char *sample_submission; /* NULL: found by its usual names; "none"; or a file */
    const char *image_ext;         /* NULL: any image extension; else "jpg" or ".jpg" */
    int task;                      /* stk_task */
    const char *positive;          /* the positive one of two classes; NULL: found */
    bool columns;                  /* further columns of the tables are inputs, too */
    double val_fraction;           /* of each class, when no validation set is given */
    int mismatch;                  /* stk_mismatch: labels without files, files without labels,
                                      and rows of a table without a label */
    int rare_class; /* stk_rare_class: a class with one image when a split is needed */
    /* The subset. 0, negative numbers and auto mean all. */
    int64_t classes;
    int64_t per_class; /* training pictures of each class */
    /* Validation pictures of each class. Without a validation set they are taken from the training
     * pictures. */
    int64_t val_per_class;
    int64_t subset_seed;
    /* No options of this table. */
    bool keep_test_table; /* fill stk_dataset.test_table */
    bool metric_given;    /* --metric names a metric: it counts before that of the description */
    stk_metric metric;    /* where it does */
} stk_dataset_options;

typedef enum stk_mismatch {
    STK_MISMATCH_ERROR, /* fail */
    STK_MISMATCH_SKIP,  /* leave them out */
    STK_MISMATCH_AUTO   /* of a table: leave them out where they are few */
} stk_mismatch;
typedef enum stk_rare_class {
    STK_RARE_ERROR, /* fail */
    STK_RARE_TRAIN, /* train on it without validating it */
    STK_RARE_DROP,  /* leave out the class */
    STK_RARE_AUTO   /* train; fail where most pictures are alone in their class */
} stk_rare_class;

extern const stk_option_table stk_dataset_option_table;

typedef struct stk_sample {
    const char *path; /* below stk_dataset.root, or NULL: the picture of this test row is missing */
    const char *id;   /* as the table spells it; in class folders the path (train, val) or the file
                         name without extension, with folders where names repeat (test) */
    /* Index into classes; where the task has targets instead, into the strata: samples of one
     * stratum are alike. -1: not known. */
    int label;
    int part;       /* of a training sample: index into stk_dataset.parts, where there are any; -1:
                       the sample is in the training set of every fold */
    int64_t record; /* index into targets and features; -1: there are none */
    /* Of a training sample: pictures with the same number make one row, as the submission has rows;
     * 0: a row alone. */
    int64_t row;
} stk_sample;

/* A row of the submission. Its pictures lie one after another in stk_dataset.test. */
typedef struct stk_row {
    const char *id;
    const char *kept; /* the cell of the column without a name, copied; NULL: there is none */
    size_t first;     /* its first picture; one whose file is missing counts */
    size_t count;     /* of its pictures, at least 1 */
} stk_row;

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

/* What decides which training samples are in the same fold. */
typedef enum stk_division {
    STK_DIVIDE_CLASSES, /* the seed, class by class */
    STK_DIVIDE_FOLDS,   /* a column of the table: each value is a fold */
    STK_DIVIDE_GROUPS   /* a column of the table: samples with the same value stay together */
} stk_division;

/* The files of a staged data set: stage.json says how to read samples.csv. samples.csv has these
 * columns and, where one was asked for, the column that divides the samples, under its own name. */
#define STK_STAGED_ABOUT "stage.json"
#define STK_STAGED_SAMPLES "samples.csv"
#define STK_STAGED_HEADER "split,class,id,path,member"
#define STK_STAGED_FORMAT 1

typedef struct stk_dataset {
    stk_layout layout;
    stk_store *store;   /* owned: the location that paths are relative to */
    const char *root;   /* the location's name, for people */
    stk_task task;      /* never AUTO */
    const char *reason; /* why this task and this answer, for people; NULL: nothing was chosen */
    stk_answer answer;
    stk_metric metric;         /* that decided on task and answer, by options or description;
                                  STK_METRIC_AUTO: nothing is known */
    bool metric_given;         /* by options */
    const char *metric_phrase; /* the description's words for it, or for a metric that cannot rate
                                  the task; "--metric auc" where the options name it; NULL, "":
                                  there are none */
    /* Classes or labels, sorted by bytes or, when all are whole numbers, by value; or the names of
     * the numbers to predict, in the order of their columns. */
    const char *const *classes;
    int class_count;
    int target_strata;     /* where the task has targets: values that a sample's label may have */
    stk_targets targets;   /* owned; of tasks without classes */
    stk_features features; /* owned; numbers beside the pictures */
    stk_csv test_table;    /* owned; where it was asked for: the table of the test rows, if any */
    size_t test_record;    /* the record of its first row */
    /* Sorted by path (folders, WebDataset) or id (Kaggle); staged: in the original's order. */
    stk_sample_list train;
    stk_sample_list val;  /* a given validation set, in the same order; empty without one */
    stk_sample_list test; /* in the order of the submission's rows */
    stk_row *rows;        /* owned: of the submission */
    size_t row_count;
    bool has_versions; /* its classes are versions of the same pictures: original and changed */
    const char *grouped_by; /* why a row has several pictures: a column's name; NULL: none has */
    bool train_has_rows;    /* the training pictures are grouped as those of the test rows */
    stk_division division;
    /* The column that divides, and its values: names of folds or groups, sorted as classes are.
     * NULL and 0 with STK_DIVIDE_CLASSES. */
    const char *part_column;
    const char *const *parts;
    int part_count;
    /* Name and header of sample_submission.csv; NULL and 0 when there is none. */
    const char *template_file;
    const char *const *template_header;
    int template_columns;
    int template_id;   /* index of its id column */
    int template_kept; /* index of a column without a name, whose cells are copied; -1: none */
    char template_separator; /* of its cells; 0: a comma */
    bool template_texts;     /* it has one column for answers, and no cell of it is a number */
    bool template_fractions; /* such a column has numbers alone, and some are fractions */
    const char *id_name;     /* the name of the id column of a submission without a sample file */
    const char *label_name;
    struct stk_dataset_texts *texts; /* owns every text and array above */
} stk_dataset;

/*
 * `storage` NULL: the defaults, without a cache. Errors are STK_ERR_DATA, STK_ERR_USAGE for an
 * option or STK_ERR_STORAGE for a location that does not answer.
 */
STK_CHECKED stk_status stk_dataset_open(stk_dataset **dataset, const stk_dataset_options *options,
                                        const stk_storage_options *storage,
                                        const stk_events *events, stk_error *err);

/*
 * The pictures of a folder, in it and below it, as a list of test samples: what `predict --data`
 * takes. A data set with a test set gives that set; any other folder gives all its pictures. The
 * result has no classes, no labels and no training samples.
 */
STK_CHECKED stk_status stk_dataset_open_images(stk_dataset **dataset,
                                               const stk_dataset_options *options,
                                               const stk_storage_options *storage,
                                               const stk_events *events, stk_error *err);

/*
 * For callers that need no labels: opens a data set or, where the folder is none, the pictures that
 * stk_dataset_open_images() lists. Wrong labels are an error.
 */
STK_CHECKED stk_status stk_dataset_open_any(stk_dataset **dataset,
                                            const stk_dataset_options *options,
                                            const stk_storage_options *storage,
                                            const stk_events *events, stk_error *err);
void stk_dataset_free(stk_dataset *dataset);

/* Values that the label of a training sample may have: classes, or strata. */
static inline int stk_dataset_strata(const stk_dataset *dataset) {
    return stk_task_has_classes(dataset->task) ? dataset->class_count : dataset->target_strata;
}

/* Whether some training samples validate: there are folds, or there is no validation set and
 * val_fraction is above 0. */
bool stk_dataset_is_divided(const stk_dataset *dataset, double val_fraction, int folds);

/*
 * Computes the fold of every training sample; fold_of has one element for each. -1: the sample is
 * in the training set of every fold.
 *
 * With folds <= 1, fold 0 is the validation set: a stratified val_fraction of every class, at least
 * one image of each class that has two or more. Where that would be more than one and a half times
 * the fraction, and the fraction is 30 images or more, small classes take turns instead. Where the
 * data set has a validation set of its own all samples get -1. With folds >= 2 every class is
 * divided evenly. Groups stay together, with classes as even as that allows. A fold column decides
 * alone, whatever `folds` is. A class with one image gets -1, together with its group. The result
 * depends only on the seed and the samples.
 */
STK_CHECKED stk_status stk_dataset_deal(const stk_dataset *dataset, double val_fraction, int folds,
                                        uint64_t seed, int *fold_of, stk_error *err);

/*
 * Checks all folds: STK_ERR_DATA for a fold without training or validation samples. Emits a warning
 * for folds that lack a class, and a line on how a column divides the samples.
 */
STK_CHECKED stk_status stk_dataset_check_folds(const stk_dataset *dataset, double val_fraction,
                                               int folds, uint64_t seed, const stk_events *events,
                                               stk_error *err);

/*
 * One fold as sorted indices into dataset->train: samples of fold `fold` (from 0) are in `val`, all
 * others in `train`. An empty `val` is STK_ERR_DATA, except with fewer than two folds and a
 * validation set in the data set.
 */
typedef struct stk_split {
    size_t *train;
    size_t train_count;
    size_t *val;
    size_t val_count;
} stk_split;

STK_CHECKED stk_status stk_dataset_split(const stk_dataset *dataset, double val_fraction, int folds,
                                         int fold, uint64_t seed, stk_split *split, stk_error *err);

/* All samples train, and none validates. */
STK_CHECKED stk_status stk_dataset_split_none(const stk_dataset *dataset, stk_split *split,
                                              stk_error *err);
void stk_split_free(stk_split *split);

/* The share of each class among the training samples: class_count numbers that sum to 1. Of several
 * labels the share of each, of numbers their means. */
void stk_dataset_priors(const stk_dataset *dataset, double *priors);

/*
 * How many of `count` pictures may be bad before the caller stops: max_bad percent.
 * STK_AUTO_DOUBLE: 5 percent, but at least three pictures.
 */
size_t stk_dataset_bad_allowed(double max_bad, size_t count);

/* True when the name ends as an image file's does (STK_PICTURE_EXTENSIONS, any case). */
bool stk_dataset_is_image_name(const char *name);

#endif
