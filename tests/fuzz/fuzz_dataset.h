/* fuzz_dataset.h - what must hold for a data set that was made from somebody's tables. */
#ifndef STK_TESTS_FUZZ_DATASET_H
#define STK_TESTS_FUZZ_DATASET_H

#include "fuzz_folder.h"

#include "base/error.h"
#include "base/mem.h"
#include "dataset/dataset.h"

static inline void fuzz_check_samples(const stk_dataset *dataset, const stk_sample_list *list,
                                      bool is_test) {
    for (size_t i = 0; i < list->count; i++) {
        const stk_sample *sample = &list->items[i];
        FUZZ_REQUIRE(sample->label >= (is_test ? -1 : 0) && sample->label < dataset->class_count);
        FUZZ_REQUIRE(sample->id != NULL && (is_test || sample->path != NULL));
        /* What is read lies below the data set. */
        FUZZ_REQUIRE(sample->path == NULL || (sample->path[0] != '/' && sample->path[0] != '\0' &&
                                              strncmp(sample->path, "../", 3) != 0 &&
                                              strstr(sample->path, "/../") == NULL));
    }
}

static inline void fuzz_check_folds(const stk_dataset *dataset) {
    int *fold_of = stk_mem_new(dataset->train.count, sizeof *fold_of);
    stk_error err = {0};
    FUZZ_REQUIRE(fold_of != NULL);
    for (int folds = 1; folds <= 3; folds += 2) {
        if (stk_dataset_deal(dataset, 0.2, folds, 1, fold_of, &err) == STK_OK) {
            for (size_t i = 0; i < dataset->train.count; i++) {
                FUZZ_REQUIRE(fold_of[i] >= -1 &&
                             fold_of[i] <
                                 (folds > dataset->part_count ? folds : dataset->part_count));
            }
        } else {
            FUZZ_REQUIRE(err.message[0] != '\0');
            stk_error_clear(&err);
        }
    }
    stk_mem_free(fold_of);
}

/* Opens the folder of the program with these options, which need no data. */
static inline void fuzz_open_dataset(stk_dataset_options options) {
    stk_dataset *dataset = NULL;
    stk_error err = {0};
    char folder[600];
    snprintf(folder, sizeof folder, "%s", fuzz_folder());
    options.data = folder;
    options.val_fraction = 0.2;
    if (stk_dataset_open(&dataset, &options, NULL, NULL, &err) != STK_OK) {
        FUZZ_REQUIRE(err.status == STK_ERR_DATA || err.status == STK_ERR_USAGE ||
                     err.status == STK_ERR_STORAGE);
        FUZZ_REQUIRE(err.message[0] != '\0' && dataset == NULL);
        return;
    }
    FUZZ_REQUIRE(dataset->class_count > 0 && dataset->train.count > 0);
    fuzz_check_samples(dataset, &dataset->train, false);
    fuzz_check_samples(dataset, &dataset->val, false);
    fuzz_check_samples(dataset, &dataset->test, true);
    fuzz_check_folds(dataset);
    stk_dataset_free(dataset);
}

#endif
