/*
 * safetensors.h - named tensors in a file: an 8-byte length, a JSON header, the numbers.
 *
 * Reading checks everything the header claims before any of it is used: lengths, offsets, overlaps,
 * sizes against shapes. A file that was read is read-only and may be shared by threads.
 */
#ifndef STK_WEIGHTS_SAFETENSORS_H
#define STK_WEIGHTS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/json.h"

#define STK_TENSOR_MAX_RANK 8

typedef struct stk_tensor {
    const char *name;
    int rank;
    uint64_t shape[STK_TENSOR_MAX_RANK];
    const char *dtype; /* "F32" is the only one that is written */
    const void *data;
    size_t bytes;
} stk_tensor;

typedef struct stk_tensor_file {
    char *buffer;     /* owned: the file */
    stk_json *header; /* owned */
    stk_tensor *tensors;
    size_t count;
} stk_tensor_file;

/* Metadata: text by name. */
typedef struct stk_tensor_note {
    const char *key;
    const char *text;
} stk_tensor_note;

/* Errors: STK_ERR_DATA with what is wrong with the file, STK_ERR_STORAGE when it cannot be read. */
STK_CHECKED stk_status stk_tensors_read(stk_tensor_file *file, const char *path, stk_error *err);
/* The same from memory, which is copied; `name` stands for the path in errors. */
STK_CHECKED stk_status stk_tensors_parse(stk_tensor_file *file, const char *name, const void *bytes,
                                         size_t size, stk_error *err);
void stk_tensors_free(stk_tensor_file *file);

const stk_tensor *stk_tensors_find(const stk_tensor_file *file, const char *name); /* or NULL */
const char *stk_tensors_note(const stk_tensor_file *file, const char *key);        /* or NULL */

/* Writes F32 tensors atomically, in the order given. */
STK_CHECKED stk_status stk_tensors_write(const char *path, const stk_tensor *tensors, size_t count,
                                         const stk_tensor_note *notes, size_t note_count,
                                         stk_error *err);

#endif
