/* safetensors.c - the file format, with nothing taken on trust. */
#include "weights/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"

#define LENGTH_BYTES 8
#define MAX_HEADER_BYTES ((uint64_t)100 << 20) /* the format's own limit */

static size_t dtype_bytes(const char *dtype) {
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4},
                 {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2},
                 {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, dtype) == 0) {
            return types[i].bytes;
        }
    }
    return 0;
}

/* One entry of the header; false when it contradicts itself or the file's size. */
static bool read_entry(const stk_json *entry, const char *name, const char *data, uint64_t size,
                       stk_tensor *tensor) {
    const stk_json *shape = stk_json_get(entry, "shape");
    const stk_json *offsets = stk_json_get(entry, "data_offsets");
    uint64_t from;
    uint64_t to;
    tensor->name = name;
    tensor->dtype = stk_json_string(stk_json_get(entry, "dtype"));
    if (tensor->dtype == NULL || stk_json_kind_of(shape) != STK_JSON_ARRAY ||
        stk_json_count(shape) > STK_TENSOR_MAX_RANK || stk_json_count(offsets) != 2 ||
        !stk_json_u64(stk_json_at(offsets, 0), &from) ||
        !stk_json_u64(stk_json_at(offsets, 1), &to) || from > to || to > size) {
        return false;
    }
    uint64_t bytes = dtype_bytes(tensor->dtype);
    tensor->rank = (int)stk_json_count(shape);
    for (int i = 0; i < tensor->rank; i++) {
        if (!stk_json_u64(stk_json_at(shape, (size_t)i), &tensor->shape[i]) ||
            __builtin_mul_overflow(bytes, tensor->shape[i], &bytes)) {
            return false;
        }
    }
    tensor->data = data + from;
    tensor->bytes = (size_t)(to - from);
    return dtype_bytes(tensor->dtype) > 0 && bytes == to - from;
}

static int by_data(const void *a, const void *b) {
    const stk_tensor *x = a;
    const stk_tensor *y = b;
    if (x->data != y->data) {
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    }
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The entries become tensors, ordered by where their numbers lie. */
static stk_status read_entries(stk_tensor_file *file, const char *path, const char *data,
                               uint64_t size, stk_error *err) {
    size_t entries = stk_json_count(file->header);
    file->tensors = stk_mem_new(entries, sizeof *file->tensors);
    if (file->tensors == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    for (const stk_json *entry = stk_json_at(file->header, 0); entry != NULL;
         entry = stk_json_next(file->header, entry)) {
        const char *name = stk_json_key_of(entry);
        if (strcmp(name, "__metadata__") == 0) {
            continue;
        }
        if (!read_entry(entry, name, data, size, &file->tensors[file->count])) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s is damaged: what its header says of '%.200s' does not fit the file",
                            path, name);
        }
        file->count++;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_data);
    /* The format wants the numbers without overlaps, holes or a rest. */
    uint64_t at = 0;
    for (size_t i = 0; i < file->count; i++) {
        const stk_tensor *tensor = &file->tensors[i];
        uint64_t from = (uint64_t)((const char *)tensor->data - data);
        if (from != at) {
            return STK_FAIL(err, STK_ERR_DATA, "%s is damaged: the numbers of '%.200s' %s", path,
                            tensor->name, from < at ? "overlap others" : "have a gap before them");
        }
        at += tensor->bytes;
    }
    if (at != size) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s is damaged: %llu bytes at its end belong to no tensor", path,
                        (unsigned long long)(size - at));
    }
    return STK_OK;
}

static stk_status parse_file(stk_tensor_file *file, const char *path, size_t size, stk_error *err) {
    if (size < LENGTH_BYTES) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is not a safetensors file: it has %zu bytes", path,
                        size);
    }
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        length = length << 8 | (uint8_t)file->buffer[i];
    }
    if (length > MAX_HEADER_BYTES || length > size - LENGTH_BYTES) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s is not a whole safetensors file: it says that its header has %llu "
                        "bytes, the file has %zu",
                        path, (unsigned long long)length, size);
    }
    stk_error cause = {0};
    stk_status status =
        stk_json_parse(file->buffer + LENGTH_BYTES, (size_t)length, &file->header, &cause);
    if (status == STK_ERR_MEMORY) {
        return STK_FAIL_MEMORY(err, path);
    }
    if (status != STK_OK) {
        return STK_FAIL(err, status, "%s is damaged: its header is %s", path, cause.message);
    }
    if (stk_json_kind_of(file->header) != STK_JSON_OBJECT) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is damaged: its header is no object", path);
    }
    return read_entries(file, path, file->buffer + LENGTH_BYTES + length,
                        size - LENGTH_BYTES - length, err);
}

stk_status stk_tensors_parse(stk_tensor_file *file, const char *name, const void *bytes,
                             size_t size, stk_error *err) {
    memset(file, 0, sizeof *file);
    file->buffer = stk_mem_raw(size, 1);
    if (file->buffer == NULL) {
        return STK_FAIL_MEMORY(err, name);
    }
    if (size > 0) {
        memcpy(file->buffer, bytes, size);
    }
    stk_status status = parse_file(file, name, size, err);
    if (status != STK_OK) {
        stk_tensors_free(file);
    }
    return status;
}

stk_status stk_tensors_read(stk_tensor_file *file, const char *path, stk_error *err) {
    memset(file, 0, sizeof *file);
    size_t size = 0;
    stk_status status = stk_file_read(path, 0, &file->buffer, &size, err);
    if (status == STK_OK) {
        status = parse_file(file, path, size, err);
    }
    if (status != STK_OK) {
        stk_tensors_free(file);
    }
    return status;
}

void stk_tensors_free(stk_tensor_file *file) {
    stk_json_free(file->header);
    stk_mem_free(file->tensors);
    stk_mem_free(file->buffer);
    memset(file, 0, sizeof *file);
}

const stk_tensor *stk_tensors_find(const stk_tensor_file *file, const char *name) {
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].name, name) == 0) {
            return &file->tensors[i];
        }
    }
    return NULL;
}

const char *stk_tensors_note(const stk_tensor_file *file, const char *key) {
    return stk_json_string(stk_json_get(stk_json_get(file->header, "__metadata__"), key));
}

/* The JSON header, padded with blanks so that the numbers start on an 8-byte boundary. */
static void write_header(stk_str *out, const stk_tensor *tensors, size_t count,
                         const stk_tensor_note *notes, size_t note_count) {
    stk_json_writer writer = stk_json_write_to(out, 0);
    stk_json_begin_object(&writer);
    if (note_count > 0) {
        stk_json_key(&writer, "__metadata__");
        stk_json_begin_object(&writer);
        for (size_t i = 0; i < note_count; i++) {
            stk_json_key(&writer, notes[i].key);
            stk_json_put_string(&writer, notes[i].text);
        }
        stk_json_end_object(&writer);
    }
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        stk_json_key(&writer, tensors[i].name);
        stk_json_begin_object(&writer);
        stk_json_key(&writer, "dtype");
        stk_json_put_string(&writer, "F32");
        stk_json_key(&writer, "shape");
        stk_json_begin_array(&writer);
        for (int d = 0; d < tensors[i].rank; d++) {
            stk_json_put_int(&writer, (int64_t)tensors[i].shape[d]);
        }
        stk_json_end_array(&writer);
        stk_json_key(&writer, "data_offsets");
        stk_json_begin_array(&writer);
        stk_json_put_int(&writer, (int64_t)offset);
        offset += tensors[i].bytes;
        stk_json_put_int(&writer, (int64_t)offset);
        stk_json_end_array(&writer);
        stk_json_end_object(&writer);
    }
    stk_json_end_object(&writer);
    while (out->length % 8 != 0 && stk_str_ok(out)) {
        stk_str_append(out, " ");
    }
}

stk_status stk_tensors_write(const char *path, const stk_tensor *tensors, size_t count,
                             const stk_tensor_note *notes, size_t note_count, stk_error *err) {
    stk_str header = {0};
    write_header(&header, tensors, count, notes, note_count);
    if (!stk_str_ok(&header)) {
        stk_str_free(&header);
        return STK_FAIL_MEMORY(err, path);
    }
    uint8_t length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) {
        length[i] = (uint8_t)((uint64_t)header.length >> (8 * i));
    }
    stk_file_writer *writer = NULL;
    stk_status status = stk_file_create(&writer, path, err);
    if (status == STK_OK) {
        status = stk_file_append(writer, length, sizeof length, err);
    }
    if (status == STK_OK) {
        status = stk_file_append(writer, header.text, header.length, err);
    }
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        status = stk_file_append(writer, tensors[i].data, tensors[i].bytes, err);
    }
    stk_str_free(&header);
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}
