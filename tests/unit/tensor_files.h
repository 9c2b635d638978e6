/* tensor_files.h - safetensors files with any tensors, for the tests of the weights room. */
#ifndef STK_TESTS_TENSOR_FILES_H
#define STK_TESTS_TENSOR_FILES_H

#include "check.h"

#include "base/mem.h"
#include "weights/safetensors.h"

/* A tensor with its numbers. */
typedef struct made_tensor {
    const char *name;
    int rank;
    uint64_t shape[STK_TENSOR_MAX_RANK];
    const char *dtype; /* NULL: F32 */
    const void *data;
    size_t bytes;
} made_tensor;

static inline stk_status write_tensors(const char *path, const made_tensor *made, size_t count,
                                       const stk_tensor_note *notes, size_t note_count,
                                       stk_error *err) {
    stk_tensor *tensors = stk_mem_new(count + 1, sizeof *tensors);
    stk_file_writer *writer = NULL;
    if (tensors == NULL) {
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        tensors[i] = (stk_tensor){.name = made[i].name,
                                  .rank = made[i].rank,
                                  .dtype = made[i].dtype != NULL ? made[i].dtype : "F32",
                                  .bytes = made[i].bytes};
        memcpy(tensors[i].shape, made[i].shape, sizeof tensors[i].shape);
    }
    stk_status status = stk_tensors_create(&writer, path, tensors, count, notes, note_count, err);
    stk_mem_free(tensors);
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        status = stk_file_append(writer, made[i].data, made[i].bytes, err);
    }
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}

/* All numbers of a tensor as they lie in the file; the caller frees. */
static inline void *numbers_of(const stk_tensor_file *file, const stk_tensor *tensor) {
    stk_error err = {0};
    void *bytes = stk_mem_raw((size_t)tensor->bytes + 1, 1);
    if (bytes == NULL || stk_tensors_read(file, tensor, bytes, &err) != STK_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return bytes;
}

#endif
