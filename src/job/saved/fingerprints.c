/* fingerprints.c - fingerprints of pictures to and from a file of the run's state. */
#include "job/saved/fingerprints.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "weights/safetensors.h"

#define SUM_TEXT 17 /* 16 hexadecimal digits and the NUL */

static bool make_list(stk_seen_list *list, size_t count) {
    list->count = count;
    list->before = stk_mem_new(count + 1, sizeof *list->before);
    list->now = stk_mem_new(count + 1, sizeof *list->now);
    return list->before != NULL && list->now != NULL;
}

stk_status stk_seen_pictures_open(stk_seen_pictures *pictures, const stk_dataset *dataset,
                                  char *path, const char *samples, stk_error *err) {
    *pictures = (stk_seen_pictures){.path = path, .samples = samples};
    bool made = make_list(&pictures->train, dataset->train.count) &&
                make_list(&pictures->val, dataset->val.count) && path != NULL;
    return made ? STK_OK : STK_FAIL_MEMORY(err, "the fingerprints of pictures");
}

/* Nanoseconds that the end of a run waits for the file. */
#define END_WAIT_NS 1000000000

static void end_writing(stk_write_behind *writer) {
    if (stk_write_behind_is_pending(writer)) {
        stk_error unused = {0};
        stk_status status = stk_write_behind_wait(writer, stk_clock_ns() + END_WAIT_NS)
                                ? stk_write_behind_finish(writer, &unused)
                                : stk_write_behind_give_up(writer, &unused);
        (void)status;
    }
    stk_write_behind_free(writer);
}

static void free_list(stk_seen_list *list) {
    stk_mem_free(list->before);
    stk_mem_free((void *)list->now);
}

void stk_seen_pictures_free(stk_seen_pictures *pictures) {
    end_writing(&pictures->writer);
    free_list(&pictures->train);
    free_list(&pictures->val);
    stk_mem_free(pictures->path);
    memset(pictures, 0, sizeof *pictures);
}

stk_fingerprints stk_seen_pictures_of(const stk_seen_list *list) {
    return (stk_fingerprints){.before = list->before, .now = list->now};
}

/* Fills in what is known of each picture: its fingerprint of this process or, if this process has
 * not read it yet, that of an earlier one. Returns how many are known. */
static size_t known(const stk_seen_list *list, uint64_t *values) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t now = atomic_load_explicit(&list->now[i], memory_order_relaxed);
        values[i] = now != 0 ? now : list->before[i];
        count += values[i] != 0 ? 1 : 0;
    }
    return count;
}

static void sum_text(const uint64_t *values, size_t count, char text[SUM_TEXT]) {
    snprintf(text, SUM_TEXT, "%016llx",
             (unsigned long long)stk_checksum(values, count * sizeof *values));
}

static stk_tensor describe(const char *name, const stk_seen_list *list) {
    return (stk_tensor){.name = name,
                        .rank = 1,
                        .shape = {list->count},
                        .dtype = "U64",
                        .bytes = list->count * sizeof(uint64_t)};
}

static stk_status write_file(stk_seen_pictures *pictures, const uint64_t *values, stk_error *err) {
    size_t count = pictures->train.count + pictures->val.count;
    char sum[SUM_TEXT];
    sum_text(values, count, sum);
    stk_tensor tensors[] = {describe("train", &pictures->train), describe("val", &pictures->val)};
    stk_tensor_note notes[] = {{"samples", pictures->samples}, {"checksum", sum}};
    stk_file_writer *file = NULL;
    stk_status status = stk_write_behind_begin(&pictures->writer, &file, pictures->path, true, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_tensors_begin(file, tensors, 2, notes, 2, err);
    STK_THEN(status, stk_file_append(file, values, count * sizeof *values, err));
    if (status != STK_OK) {
        stk_file_discard(file);
        return status;
    }
    status = stk_file_commit(file, err);
    if (status == STK_OK) {
        stk_write_behind_start(&pictures->writer);
    }
    return status;
}

stk_status stk_seen_pictures_save(stk_seen_pictures *pictures, stk_error *err) {
    if (stk_write_behind_is_pending(&pictures->writer) &&
        !stk_write_behind_is_done(&pictures->writer)) {
        return STK_OK;
    }
    stk_status status = stk_write_behind_finish(&pictures->writer, err);
    size_t train = pictures->train.count;
    uint64_t *values = stk_mem_raw(train + pictures->val.count + 1, sizeof *values);
    if (status == STK_OK && values == NULL) {
        status = STK_FAIL_MEMORY(err, pictures->path);
    }
    if (status == STK_OK) {
        size_t count = known(&pictures->train, values) + known(&pictures->val, values + train);
        status = count > pictures->saved ? write_file(pictures, values, err) : STK_OK;
        pictures->saved = status == STK_OK ? count : pictures->saved;
    }
    stk_mem_free(values);
    return status;
}

/* Reads the fingerprints of a list from its tensor, which must have one per sample. */
static stk_status read_list(const stk_tensor_file *file, const char *name, const char *path,
                            const stk_seen_list *list, uint64_t *values, stk_error *err) {
    const stk_tensor *tensor = stk_tensors_find(file, name);
    if (tensor == NULL || tensor->bytes != list->count * sizeof *values) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is not of these pictures", path);
    }
    return list->count > 0 ? stk_tensors_read(file, tensor, values, err) : STK_OK;
}

static stk_status read_file(const stk_seen_pictures *pictures, const stk_tensor_file *file,
                            uint64_t *values, stk_error *err) {
    const char *path = pictures->path;
    const char *samples = stk_tensors_note(file, "samples");
    const char *written = stk_tensors_note(file, "checksum");
    char sum[SUM_TEXT];
    size_t train = pictures->train.count;
    if (samples == NULL || strcmp(samples, pictures->samples) != 0) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is not of these pictures", path);
    }
    stk_status status = read_list(file, "train", path, &pictures->train, values, err);
    STK_THEN(status, read_list(file, "val", path, &pictures->val, values + train, err));
    sum_text(values, train + pictures->val.count, sum);
    if (status == STK_OK && (written == NULL || strcmp(written, sum) != 0)) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s is damaged", path);
    }
    return status;
}

stk_status stk_seen_pictures_recall(stk_seen_pictures *pictures, stk_error *err) {
    stk_tensor_file file;
    size_t train = pictures->train.count;
    size_t count = train + pictures->val.count;
    if (!stk_path_is_file(pictures->path)) {
        return STK_OK;
    }
    uint64_t *values = stk_mem_new(count + 1, sizeof *values);
    stk_status status = values != NULL ? stk_tensors_open(&file, pictures->path, err)
                                       : STK_FAIL_MEMORY(err, pictures->path);
    if (status == STK_OK) {
        status = read_file(pictures, &file, values, err);
        stk_tensors_close(&file);
    }
    if (status == STK_OK) {
        memcpy(pictures->train.before, values, train * sizeof *values);
        memcpy(pictures->val.before, values + train, pictures->val.count * sizeof *values);
        for (size_t i = 0; i < count; i++) {
            pictures->saved += values[i] != 0 ? 1 : 0;
        }
    }
    stk_mem_free(values);
    return status;
}
