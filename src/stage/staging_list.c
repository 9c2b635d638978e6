/* staging_list.c - numbers the pictures, divides them into shards, and computes the checksum. */
#include "stage/staging_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"

const char *const stk_stage_split_names[STK_STAGE_SPLITS] = {"train", "val", "test"};

const stk_sample_list *stk_stage_samples(const stk_dataset *dataset, stk_stage_split split) {
    return split == STK_STAGE_TRAIN ? &dataset->train
           : split == STK_STAGE_VAL ? &dataset->val
                                    : &dataset->test;
}

const char *stk_stage_part(const stk_dataset *dataset, const stk_sample *sample) {
    return dataset->division == STK_DIVIDE_CLASSES ? ""
           : sample->part < 0                      ? "-1"
                                                   : dataset->parts[sample->part];
}

static void add_pictures(stk_staging_list *list, stk_stage_split split) {
    const stk_sample_list *samples = stk_stage_samples(list->dataset, split);
    size_t number = 0;
    for (size_t i = 0; i < samples->count; i++) {
        if (samples->items[i].path != NULL) {
            list->pictures[list->picture_count] =
                (stk_stage_picture){.sample = &samples->items[i], .split = split, .number = number};
            list->picture_count++;
            number++;
        }
    }
}

static void add_shards(stk_staging_list *list, stk_stage_split split, size_t first, size_t size) {
    size_t number = 0;
    for (size_t at = first; at < list->picture_count; at += size) {
        size_t left = list->picture_count - at;
        list->shards[list->shard_count] = (stk_stage_shard){
            .split = split, .number = number, .first = at, .count = left < size ? left : size};
        list->shard_count++;
        number++;
    }
}

/* The real path of a local folder; an address as it is. */
static stk_status name_source(stk_staging_list *list, stk_error *err) {
    const char *root = list->dataset->root;
    char *real = realpath(root, NULL);
    list->source = stk_mem_strdup(real != NULL ? real : root);
    free(real);
    return list->source != NULL ? STK_OK : STK_FAIL_MEMORY(err, root);
}

/* The NUL separates texts. */
static void sum_text(uint64_t *sum, const char *text) {
    *sum = text != NULL ? stk_checksum_seeded(text, strlen(text) + 1, *sum)
                        : stk_checksum_seeded(NULL, 0, *sum);
}

static void sum_number(uint64_t *sum, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    sum_text(sum, text);
}

static void sum_up(stk_staging_list *list, const stk_stage_options *options) {
    const stk_dataset *dataset = list->dataset;
    uint64_t sum = 0;
    sum_number(&sum, STK_STAGED_FORMAT);
    sum_text(&sum, list->source);
    sum_number(&sum, options->max_side);
    sum_number(&sum, options->quality);
    sum_number(&sum, options->shard_size);
    sum_text(&sum, dataset->id_name);
    sum_text(&sum, dataset->label_name);
    if (dataset->part_column != NULL) {
        sum_text(&sum, dataset->part_column);
    }
    for (int i = 0; i < dataset->template_columns; i++) {
        sum_text(&sum, dataset->template_header[i]);
    }
    sum_number(&sum, dataset->class_count);
    for (int c = 0; c < dataset->class_count; c++) {
        sum_text(&sum, dataset->classes[c]);
    }
    for (int s = 0; s < STK_STAGE_SPLITS; s++) {
        const stk_sample_list *samples = stk_stage_samples(dataset, (stk_stage_split)s);
        sum_number(&sum, (int64_t)samples->count);
        for (size_t i = 0; i < samples->count; i++) {
            sum_text(&sum, samples->items[i].id);
            sum_text(&sum, samples->items[i].path);
            sum_number(&sum, samples->items[i].label);
            if (s == STK_STAGE_TRAIN && dataset->part_column != NULL) {
                sum_text(&sum, stk_stage_part(dataset, &samples->items[i]));
            }
        }
    }
    snprintf(list->checksum, sizeof list->checksum, "%016" PRIx64, sum);
}

stk_status stk_staging_list_make(stk_staging_list *list, const stk_dataset *dataset,
                                 const stk_stage_options *options, stk_error *err) {
    size_t rows = dataset->train.count + dataset->val.count + dataset->test.count;
    size_t size = (size_t)options->shard_size;
    *list = (stk_staging_list){.dataset = dataset};
    list->pictures = stk_mem_new(rows, sizeof *list->pictures);
    list->shards = stk_mem_new(rows / size + STK_STAGE_SPLITS, sizeof *list->shards);
    stk_status status = list->pictures != NULL && list->shards != NULL
                            ? name_source(list, err)
                            : STK_FAIL_MEMORY(err, "the staging list");
    for (int s = 0; status == STK_OK && s < STK_STAGE_SPLITS; s++) {
        size_t first = list->picture_count;
        add_pictures(list, (stk_stage_split)s);
        add_shards(list, (stk_stage_split)s, first, size);
    }
    if (status == STK_OK) {
        sum_up(list, options);
    } else {
        stk_staging_list_free(list);
    }
    return status;
}

void stk_staging_list_free(stk_staging_list *list) {
    stk_mem_free(list->pictures);
    stk_mem_free(list->shards);
    stk_mem_free(list->source);
    memset(list, 0, sizeof *list);
}

const char *stk_stage_shard_name(const stk_stage_shard *shard, char buf[STK_STAGE_NAME_SIZE]) {
    snprintf(buf, STK_STAGE_NAME_SIZE, "%s-%0*zu.tar", stk_stage_split_names[shard->split],
             STK_STAGE_SHARD_DIGITS, shard->number);
    return buf;
}
