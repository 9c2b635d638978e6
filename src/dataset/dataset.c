/*
 * dataset.c - opens a folder: checks that it can be read, decides its layout, and calls the
 * layout's list function. A staged copy has its own mark; a table whose ids name pictures wins over
 * class folders.
 */
#include "dataset/dataset.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/listing.h"
#include "storage/data_folders.h"

#define FIELD(name) offsetof(stk_dataset_options, name)

static const stk_option dataset_options[] = {
    STK_OPTION(TEXT, "data", data, .aliases = "data_root", .metavar = "PATH|URL",
               .help = "folder, s3://bucket/prefix or tar shards, with class folders, or with "
                       "labels.csv (or train.csv) and pictures"),
    STK_OPTION(TEXT, "id-column", id_column, .metavar = "NAME",
               .help =
                   "column of the labels' table that names the picture (found by its usual names)"),
    STK_OPTION(TEXT, "label-column", label_column, .metavar = "NAME,...",
               .help = "column of the labels' table that names the class, or several with commas "
                       "between (found by the sample submission or usual names)"),
    STK_OPTION(TEXT, "fold-column", fold_column, .metavar = "NAME",
               .help = "column of the labels' table that says in which fold a picture validates; "
                       "-1: it always trains"),
    STK_OPTION(TEXT, "group-column", group_column, .metavar = "none|NAME",
               .help = "column of the labels' table; pictures with the same value in it are never "
                       "divided between training and validation (found where the test table has "
                       "other values of it); none: look for no such column"),
    STK_OPTION(CHOICE, "task", task, .fallback = "auto", .choices = STK_TASK_NAMES,
               .help = "what is learned; auto finds it out from the labels, the sample submission "
                       "and the metric that description.md names"),
    STK_OPTION(TEXT, "positive", positive, .metavar = "NAME",
               .help =
                   "of two classes the one whose probability is written (found by its name, the "
                   "sample submission or the description)"),
    STK_OPTION(BOOL, "columns", columns, .fallback = "true",
               .help = "further columns that training and test table share are inputs beside the "
                       "pictures"),
    STK_OPTION(TEXT, "sample-submission", sample_submission, STK_OPTION_AUTO,
               .metavar = "none|FILE",
               .help = "file of the data set whose header and rows the submission gets; auto finds "
                       "it by its usual names"),
    STK_OPTION(TEXT, "image-ext", image_ext, .metavar = "EXT",
               .help = "count only pictures with this extension: " STK_PICTURE_EXTENSIONS),
    STK_OPTION(
        DOUBLE, "val-fraction", val_fraction, .fallback = "0.2", STK_OPTION_RANGE(0, 0.9),
        .metavar = "X",
        .help = "part of every class that validates when there is no validation set; 0.1 of 300 "
                "pictures or more where a budget decides on the epochs, this was not given and the "
                "metric has no rule for labels"),
    STK_OPTION(CHOICE, "mismatch", mismatch, .fallback = "auto", .choices = "error skip auto",
               .help = "labels without pictures, pictures without labels and rows of a table "
                       "without a label: stop, or leave them out; auto: leave out up to 1 % of a "
                       "table's rows, or of its pictures, and otherwise stop"),
    STK_OPTION(CHOICE, "rare-class", rare_class, .fallback = "train",
               .choices = "error train drop auto",
               .help = "a class with one image: stop, train on it without validating, or leave it "
                       "out; auto: train, or stop where most pictures are alone in their class"),
    STK_OPTION(INT, "classes", classes, .fallback = "0", STK_OPTION_RANGE(0, 1e9),
               .may_be_auto = true, .metavar = "N",
               .help = "use so many of the classes, chosen by --subset-seed; 0: all"),
    STK_OPTION(INT, "per-class", per_class, .fallback = "0", STK_OPTION_RANGE(0, 1e9),
               .may_be_auto = true, .metavar = "N",
               .help = "use at most so many training pictures of each class; 0: all"),
    STK_OPTION(INT, "val-per-class", val_per_class, .fallback = "0", STK_OPTION_RANGE(0, 1e9),
               .may_be_auto = true, .metavar = "N",
               .help = "so many validation pictures of each class, set apart from the training "
                       "pictures when no validation set is given; 0: all of it, or --val-fraction"),
    STK_OPTION(INT, "subset-seed", subset_seed, .fallback = "0", STK_OPTION_RANGE(0, 9e15),
               .metavar = "N", .help = "another number chooses other classes and pictures"),
};

const stk_option_table stk_dataset_option_table =
    STK_OPTION_TABLE("Data", dataset_options, stk_dataset_options);

/* "jpg", ".jpg" or ".JPG" becomes ".jpg". */
static stk_status set_ext(stk_listing *listing, stk_error *err) {
    const char *ext = listing->options->image_ext;
    if (ext == NULL || ext[0] == '\0') {
        return STK_OK;
    }
    char name[STK_EXT_MAX + 8];
    const char *letters = ext[0] == '.' ? ext + 1 : ext;
    int length = snprintf(name, sizeof name, "x.%s", letters);
    if (length < 0 || (size_t)length >= sizeof name || strchr(letters, '.') != NULL ||
        !stk_dataset_is_image_name(name)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--image-ext %s: no such kind of picture; use " STK_PICTURE_EXTENSIONS,
                        ext);
    }
    memcpy(listing->ext, name + 1, strlen(name + 1) + 1);
    return STK_OK;
}

/* Finds the folders of the sets. A folder that Stoker wrote is none, whatever its name. */
static stk_status find_sets(stk_listing *listing, stk_error *err) {
    stk_dir_list *top = &listing->top;
    stk_status status = STK_OK;
    size_t kept = 0;
    stk_listing_find_sets(listing);
    for (size_t i = 0; i < top->count; i++) {
        stk_dir_entry entry = top->entries[i];
        bool by_stoker = false;
        if (status == STK_OK && entry.is_dir && stk_listing_is_set(listing, entry.name)) {
            status = stk_data_is_by_stoker(listing->dataset->store, entry.name, &by_stoker, err);
        }
        if (by_stoker) {
            status = stk_skipped_folders_add(&listing->skipped, entry.name, err);
            stk_mem_free(entry.name);
        } else {
            top->entries[kept++] = entry;
        }
    }
    top->count = kept;
    stk_listing_find_sets(listing);
    return status;
}

/* Shows pictures that are in JSON files alone; the top folder has more entries then. */
static stk_status show_all(stk_listing *listing, stk_error *err) {
    bool by_stoker;
    stk_status status = stk_listing_unfold(listing, err);
    if (status == STK_OK && listing->unfolded_count > 0) {
        stk_dir_list_free(&listing->top);
        status = stk_listing_dir(listing, "", &listing->top, &by_stoker, err);
        STK_THEN(status, find_sets(listing, err));
    }
    return status;
}

/* Opens a location, and reads its top folder. */
static stk_status open_location(stk_listing *listing, const char *path,
                                const stk_storage_options *storage, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_error cause = {0};
    bool by_stoker;
    stk_store_close(dataset->store);
    dataset->store = NULL;
    stk_dir_list_free(&listing->top);
    stk_status status = stk_store_open(&dataset->store, path, storage, listing->events, &cause);
    if (status != STK_OK) {
        return STK_FAIL(err, status, "%s%s", cause.message,
                        status == STK_ERR_DATA ? "; check the path given with --data" : "");
    }
    dataset->root = stk_store_root(dataset->store);
    status = stk_listing_dir(listing, "", &listing->top, &by_stoker, err);
    STK_THEN(status, find_sets(listing, err));
    return status;
}

/* Where the location only holds the folder of the data set, that is opened instead. */
static stk_status open_inner(stk_listing *listing, const stk_storage_options *storage,
                             stk_error *err) {
    const char *inner;
    stk_status status = stk_listing_find_inner(listing, &inner, err);
    if (status != STK_OK || inner == NULL) {
        return status;
    }
    char *path = stk_path_join(listing->dataset->root, inner);
    status = path != NULL ? open_location(listing, path, storage, err)
                          : STK_FAIL_MEMORY(err, listing->dataset->root);
    stk_mem_free(path);
    return status;
}

/* Makes an empty data set on the folder and reads the top folder. */
static stk_status begin(stk_listing *listing, const stk_storage_options *storage, stk_error *err) {
    const char *path = listing->options->data;
    if (path == NULL || path[0] == '\0') {
        return STK_FAIL(err, STK_ERR_USAGE, "no data set was named; pass its folder with --data");
    }
    stk_dataset *dataset = stk_mem_new(1, sizeof *dataset);
    listing->dataset = dataset;
    if (dataset == NULL || (dataset->texts = stk_mem_new(1, sizeof *dataset->texts)) == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = set_ext(listing, err);
    STK_THEN(status, stk_division_check(listing->options, err));
    dataset->metric = STK_METRIC_AUTO;
    dataset->template_kept = -1;
    dataset->id_name = "id";
    dataset->label_name = "label";
    STK_THEN(status, open_location(listing, path, storage, err));
    STK_THEN(status, open_inner(listing, storage, err));
    if (status == STK_OK && listing->top.count == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "the folder %s %s; put class folders with pictures into it, or "
                          "check the path given with --data",
                          dataset->root,
                          listing->skipped.paths.count > 0 ? "has no data in it" : "is empty");
    }
    STK_THEN(status, show_all(listing, err));
    return status;
}

/* A warning before an error may never be shown, so the error repeats it. */
static void tell_skipped(const stk_listing *listing, stk_status status, stk_error *err) {
    if (status == STK_ERR_DATA) {
        stk_skipped_folders_explain(&listing->skipped, err);
    } else if (listing->skipped.paths.count > 0) {
        stk_skipped_folders_report(&listing->skipped, listing->dataset->root, listing->events);
    }
}

static stk_status end(stk_listing *listing, stk_status status, stk_dataset **dataset,
                      stk_error *err) {
    stk_map_free(&listing->class_labels);
    stk_map_free(&listing->part_numbers);
    stk_dir_list_free(&listing->top);
    stk_mem_free(listing->unfolded);
    tell_skipped(listing, status, err);
    stk_skipped_folders_free(&listing->skipped);
    if (status == STK_OK) {
        *dataset = listing->dataset;
    } else {
        stk_dataset_free(listing->dataset);
    }
    return status;
}

/* Without a table of labels no column can be the label. A column of ids may be the sample's. */
static stk_status need_label_table(stk_listing *listing, stk_error *err) {
    const char *label = listing->options->label_column;
    const char *id = listing->options->id_column;
    stk_sample_file sample = {.file = NULL};
    bool has = label == NULL && id == NULL;
    stk_status status = STK_OK;
    if (label == NULL && id != NULL) {
        status = stk_testset_open_sample(listing, &sample, err);
        has =
            status == STK_OK && sample.file != NULL && stk_csv_column(&sample.csv, id) != SIZE_MAX;
        stk_testset_close_sample(&sample);
    }
    return status != STK_OK || has
               ? status
               : STK_FAIL(err, STK_ERR_USAGE,
                          "%s %s: no table of %s that leads to its pictures has such a column; "
                          "name one that is there, or leave the flag out where folders or names "
                          "of pictures are the classes",
                          label != NULL ? "--label-column" : "--id-column",
                          label != NULL ? label : id, listing->dataset->root);
}

static stk_status list_layout(stk_listing *listing, stk_error *err) {
    if (stk_staged_exists(listing)) {
        listing->dataset->layout = STK_LAYOUT_STAGED;
        return stk_staged_list(listing, false, err);
    }
    bool fits;
    stk_status status = stk_kaggle_list(listing, &fits, err);
    if (status != STK_OK || fits) {
        listing->dataset->layout = STK_LAYOUT_KAGGLE;
        return status;
    }
    bool samples = false;
    STK_THEN(status, need_label_table(listing, err));
    STK_THEN(status, stk_places_check(listing, err));
    STK_THEN(status, stk_named_classes_list(listing, &fits, err));
    if (status != STK_OK || fits) {
        listing->dataset->layout = STK_LAYOUT_FOLDERS;
        return status;
    }
    status = stk_division_need_table(listing, err);
    STK_THEN(status, stk_webdataset_exists(listing, &samples, err));
    if (status != STK_OK || samples) {
        listing->dataset->layout = STK_LAYOUT_WEBDATASET;
        return status == STK_OK ? stk_webdataset_list(listing, err) : status;
    }
    listing->dataset->layout = STK_LAYOUT_FOLDERS;
    return stk_folders_list(listing, err);
}

stk_status stk_dataset_open(stk_dataset **dataset, const stk_dataset_options *options,
                            const stk_storage_options *storage, const stk_events *events,
                            stk_error *err) {
    stk_listing listing = {.options = options, .events = events};
    *dataset = NULL;
    stk_status status = begin(&listing, storage, err);
    STK_THEN(status, list_layout(&listing, err));
    STK_THEN(status, stk_listing_finish(&listing, err));
    return end(&listing, status, dataset, err);
}

static stk_status list_all_pictures(stk_listing *listing, stk_error *err) {
    stk_pictures pictures = {0};
    stk_status status = stk_pictures_scan(listing, "", NULL, &pictures, err);
    STK_THEN(status, stk_testset_from_files(listing, &pictures, false, err));
    stk_pictures_free(&pictures);
    return status;
}

/* Test rows, or all pictures where the folder is no data set. */
static stk_status list_images(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    char note[64];
    stk_status status = STK_OK;
    bool has_rows = false;
    bool listed = false;
    dataset->layout = stk_kaggle_table(listing) != NULL ? STK_LAYOUT_KAGGLE : STK_LAYOUT_FOLDERS;
    if (stk_staged_exists(listing)) {
        dataset->layout = STK_LAYOUT_STAGED;
        status = stk_staged_list(listing, true, err);
        has_rows = dataset->test.count > 0;
        listed = true;
    } else {
        status = listing->options->keep_test_table ? stk_kaggle_list_test(listing, &listed, err)
                                                   : STK_OK;
        has_rows = listed;
    }
    if (status == STK_OK && !listed) {
        status = stk_testset_exists(listing, &has_rows, err);
    }
    if (status == STK_OK && has_rows && !listed) {
        stk_sample_file sample;
        status = stk_testset_open_sample(listing, &sample, err);
        STK_THEN(status, stk_testset_list(listing, &sample, false, err));
        stk_testset_close_sample(&sample);
    }
    if (status == STK_OK && !has_rows) {
        status = list_all_pictures(listing, err);
    }
    size_t found = 0;
    for (size_t i = 0; i < dataset->test.count; i++) {
        found += dataset->test.items[i].path != NULL;
    }
    if (status == STK_OK && found == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "no pictures to predict in %s: Stoker looks for files that end "
                          "with " STK_PICTURE_EXTENSIONS
                          " in it and below it%s; check the path given with --data",
                          dataset->root, stk_listing_ext_note(listing, note, sizeof note));
    }
    return status;
}

stk_status stk_dataset_open_images(stk_dataset **dataset, const stk_dataset_options *options,
                                   const stk_storage_options *storage, const stk_events *events,
                                   stk_error *err) {
    stk_listing listing = {.options = options, .events = events};
    *dataset = NULL;
    stk_status status = begin(&listing, storage, err);
    STK_THEN(status, list_images(&listing, err));
    STK_THEN(status, stk_listing_make_rows(&listing, err));
    return end(&listing, status, dataset, err);
}

stk_status stk_dataset_open_any(stk_dataset **dataset, const stk_dataset_options *options,
                                const stk_storage_options *storage, const stk_events *events,
                                stk_error *err) {
    stk_listing listing = {.options = options, .events = events};
    *dataset = NULL;
    stk_status status = begin(&listing, storage, err);
    if (status == STK_OK) {
        bool labels = false;
        bool folders = false;
        status = stk_webdataset_exists(&listing, &labels, err);
        STK_THEN(status, stk_folders_exist(&listing, &folders, err));
        if (status != STK_OK) {
            return end(&listing, status, dataset, err);
        }
        labels =
            labels || folders || stk_staged_exists(&listing) || stk_kaggle_table(&listing) != NULL;
        status = labels ? list_layout(&listing, err) : list_images(&listing, err);
        STK_THEN(status, stk_listing_make_rows(&listing, err));
        if (status == STK_OK && listing.dataset->class_count > 0) {
            status = stk_listing_finish(&listing, err);
        }
    }
    return end(&listing, status, dataset, err);
}

#define AUTO_MAX_BAD 5.0 /* percent */
#define AUTO_BAD_ALLOWED 3

size_t stk_dataset_bad_allowed(double max_bad, size_t count) {
    bool open = stk_is_auto_double(max_bad);
    size_t allowed = (size_t)((open ? AUTO_MAX_BAD : max_bad) * (double)count / 100);
    return open && allowed < AUTO_BAD_ALLOWED ? AUTO_BAD_ALLOWED : allowed;
}

void stk_dataset_free(stk_dataset *dataset) {
    if (dataset == NULL) {
        return;
    }
    struct stk_dataset_texts *texts = dataset->texts;
    if (texts != NULL) {
        stk_text_blocks_free(&texts->blocks);
        stk_mem_free(texts->classes);
        stk_mem_free(texts->parts);
        stk_mem_free(texts->header);
        stk_mem_free(texts);
    }
    stk_mem_free(dataset->train.items);
    stk_mem_free(dataset->val.items);
    stk_mem_free(dataset->test.items);
    stk_mem_free(dataset->rows);
    stk_targets_free(&dataset->targets);
    stk_features_free(&dataset->features);
    stk_csv_free(&dataset->test_table);
    stk_store_close(dataset->store);
    stk_mem_free(dataset);
}
