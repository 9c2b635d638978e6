/*
 * safetensors.h - named tensors in a file: an 8-byte length, a JSON header, the numbers.
 *
 * Opening reads the header alone and checks everything it claims before any of it is used: lengths,
 * offsets, overlaps, sizes against shapes and the file's size. Numbers are then read tensor by
 * tensor, so that a file never needs memory for all of them. Files are read and not mapped: one
 * that is cut while it is mapped would end the process. An open file is read-only and may be shared
 * by threads.
 */
#ifndef STK_WEIGHTS_SAFETENSORS_H
#define STK_WEIGHTS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/map.h"
#include "base/text/json.h"

#define STK_TENSOR_MAX_RANK 8

typedef struct stk_tensor {
    const char *name;
    int rank;
    uint64_t shape[STK_TENSOR_MAX_RANK];
    const char *dtype; /* "F32" */
    uint64_t offset;   /* bytes from the end of the header to the numbers; not used in writing */
    uint64_t bytes;
} stk_tensor;

typedef struct stk_tensor_file {
    stk_file_reader *reader; /* owned; NULL: the file is in memory */
    const char *memory;      /* borrowed: the file's bytes, where it is in memory */
    uint64_t start;          /* offset of the first number in the file, bytes */
    stk_json *header;        /* owned */
    stk_tensor *tensors;     /* owned; in the order of their numbers */
    size_t count;
    stk_map names; /* from name to index in `tensors` */
} stk_tensor_file;

/* Metadata: text by name. */
typedef struct stk_tensor_note {
    const char *key;
    const char *text;
} stk_tensor_note;

/* Errors: STK_ERR_DATA with what is wrong with the file, STK_ERR_STORAGE when it cannot be read. */
STK_CHECKED stk_status stk_tensors_open(stk_tensor_file *file, const char *path, stk_error *err);
/* The same in memory, which is borrowed; `name` stands for the path in errors. */
STK_CHECKED stk_status stk_tensors_parse(stk_tensor_file *file, const char *name, const void *bytes,
                                         size_t size, stk_error *err);
void stk_tensors_close(stk_tensor_file *file);

const stk_tensor *stk_tensors_find(const stk_tensor_file *file, const char *name); /* or NULL */
const char *stk_tensors_note(const stk_tensor_file *file, const char *key);        /* or NULL */

/* The numbers as they lie in the file, tensor->bytes of them. */
STK_CHECKED stk_status stk_tensors_read(const stk_tensor_file *file, const stk_tensor *tensor,
                                        void *bytes, stk_error *err);

/* Whether the numbers can be had as floats: F32, F16, BF16 and F64. */
bool stk_tensor_is_float(const stk_tensor *tensor);
uint64_t stk_tensor_count(const stk_tensor *tensor); /* numbers */

/* Reads stk_tensor_count() numbers as floats; stk_tensor_is_float() must be true. */
STK_CHECKED stk_status stk_tensors_read_floats(const stk_tensor_file *file,
                                               const stk_tensor *tensor, float *values,
                                               stk_error *err);

/* Writes the header. The caller then appends the numbers of each tensor, in the order given. */
STK_CHECKED stk_status stk_tensors_begin(stk_file_writer *writer, const stk_tensor *tensors,
                                         size_t count, const stk_tensor_note *notes,
                                         size_t note_count, stk_error *err);

/*
 * Begins a file that is replaced in one step: the header is written, the numbers of each tensor in
 * the order given follow with stk_file_append, and stk_file_commit ends it.
 */
STK_CHECKED stk_status stk_tensors_create(stk_file_writer **writer, const char *path,
                                          const stk_tensor *tensors, size_t count,
                                          const stk_tensor_note *notes, size_t note_count,
                                          stk_error *err);

/*
 * widen.c, only for this room: converts `count` numbers of the type "F16", "BF16", "F64" or "F32",
 * little-endian and on any boundary, to float32. Every F16 and BF16 has an exact float; an F64
 * becomes the nearest one. False for another type.
 */
bool stk_widen(const char *dtype, const void *from, size_t count, float *to);

#endif
