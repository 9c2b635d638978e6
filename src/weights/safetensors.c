/* safetensors.c - reads and writes the format; nothing in a file is trusted before it is checked.
 */
#include "weights/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define LENGTH_BYTES 8
/* The header of our largest network has a third of a megabyte. A hostile one costs forty times its
 * size in memory. */
#define MAX_HEADER_BYTES ((uint64_t)16 << 20)
#define PIECE_BYTES 16384 /* of numbers that are converted on their way */

static const struct {
    const char *name;
    size_t bytes;
    bool is_float; /* widen.c knows it */
} types[] = {
    {"F64", 8, true},      {"F32", 4, true},   {"F16", 2, true},      {"BF16", 2, true},
    {"I64", 8, false},     {"U64", 8, false},  {"C64", 8, false},     {"I32", 4, false},
    {"U32", 4, false},     {"I16", 2, false},  {"U16", 2, false},     {"I8", 1, false},
    {"U8", 1, false},      {"BOOL", 1, false}, {"F8_E4M3", 1, false}, {"F8_E5M2", 1, false},
    {"F8_E8M0", 1, false},
};
#define TYPES STK_COUNT(types)

/* The index of a type in the table; TYPES: there is none. */
static size_t find_type(const char *dtype) {
    size_t i = 0;
    while (i < TYPES && strcmp(types[i].name, dtype) != 0) {
        i++;
    }
    return i;
}

/* One entry of the header; false when it contradicts itself or the file's size. */
static bool read_entry(const stk_json *entry, const char *name, uint64_t size, stk_tensor *tensor) {
    const stk_json *shape = stk_json_get(entry, "shape");
    const stk_json *offsets = stk_json_get(entry, "data_offsets");
    uint64_t to;
    tensor->name = name;
    tensor->dtype = stk_json_string(stk_json_get(entry, "dtype"));
    if (tensor->dtype == NULL || stk_json_kind_of(shape) != STK_JSON_ARRAY ||
        stk_json_count(shape) > STK_TENSOR_MAX_RANK ||
        stk_json_kind_of(offsets) != STK_JSON_ARRAY || stk_json_count(offsets) != 2 ||
        !stk_json_u64(stk_json_at(offsets, 0), &tensor->offset) ||
        !stk_json_u64(stk_json_at(offsets, 1), &to) || tensor->offset > to || to > size) {
        return false;
    }
    size_t type = find_type(tensor->dtype);
    if (type == TYPES) {
        return false;
    }
    uint64_t bytes = types[type].bytes;
    tensor->rank = (int)stk_json_count(shape);
    for (int i = 0; i < tensor->rank; i++) {
        if (!stk_json_u64(stk_json_at(shape, (size_t)i), &tensor->shape[i]) ||
            __builtin_mul_overflow(bytes, tensor->shape[i], &bytes)) {
            return false;
        }
    }
    tensor->bytes = to - tensor->offset;
    return bytes == tensor->bytes;
}

static int by_offset(const void *a, const void *b) {
    const stk_tensor *x = a;
    const stk_tensor *y = b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Text by name and nothing else, as the format has it. */
static bool is_metadata(const stk_json *notes) {
    bool good = stk_json_kind_of(notes) == STK_JSON_OBJECT;
    for (const stk_json *note = stk_json_at(notes, 0); good && note != NULL;
         note = stk_json_next(notes, note)) {
        good = stk_json_kind_of(note) == STK_JSON_STRING;
    }
    return good;
}

/* Makes tensors of the entries, in the order of their offsets. */
static stk_status read_entries(stk_tensor_file *file, const char *path, uint64_t size,
                               stk_error *err) {
    size_t entries = stk_json_count(file->header);
    file->tensors = stk_mem_new(entries, sizeof *file->tensors);
    if (file->tensors == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    for (const stk_json *entry = stk_json_at(file->header, 0); entry != NULL;
         entry = stk_json_next(file->header, entry)) {
        const char *name = stk_json_key_of(entry);
        bool notes = strcmp(name, "__metadata__") == 0;
        if (notes ? !is_metadata(entry)
                  : !read_entry(entry, name, size, &file->tensors[file->count])) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s is damaged: what its header says of '%.200s' does not fit the %s",
                            path, name, notes ? "format" : "file");
        }
        file->count += notes ? 0 : 1;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    return STK_OK;
}

/* The format allows no overlaps, no gaps and no bytes after the last tensor. */
static stk_status check_offsets(const stk_tensor_file *file, const char *path, uint64_t size,
                                stk_error *err) {
    uint64_t at = 0;
    for (size_t i = 0; i < file->count; i++) {
        const stk_tensor *tensor = &file->tensors[i];
        if (tensor->offset != at) {
            return STK_FAIL(err, STK_ERR_DATA, "%s is damaged: the numbers of '%.200s' %s", path,
                            tensor->name,
                            tensor->offset < at ? "overlap others" : "have a gap before them");
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

/* Parses the header of a file with `size` bytes of numbers, and checks it. The text is not kept. */
static stk_status parse_header(stk_tensor_file *file, const char *path, const char *text,
                               size_t length, uint64_t size, stk_error *err) {
    /* Blanks may stand after the header, not before it. */
    if (length == 0 || text[0] != '{') {
        return STK_FAIL(err, STK_ERR_DATA, "%s is damaged: its header is no object", path);
    }
    stk_error cause = {0};
    stk_status status = stk_json_parse(text, length, &file->header, &cause);
    if (status == STK_ERR_MEMORY) {
        return STK_FAIL_MEMORY(err, path);
    }
    if (status != STK_OK) {
        return STK_FAIL(err, status, "%s is damaged: its header is %s", path, cause.message);
    }
    status = read_entries(file, path, size, err);
    STK_THEN(status, check_offsets(file, path, size, err));
    for (size_t i = 0; i < file->count && status == STK_OK; i++) {
        bool added; /* the header's reader has refused repeated names */
        status = stk_map_add(&file->names, file->tensors[i].name, i, &added)
                     ? STK_OK
                     : STK_FAIL_MEMORY(err, path);
    }
    return status;
}

/* Reads bytes that the caller knows to be within the file. */
static stk_status read_bytes(const stk_tensor_file *file, uint64_t from, void *bytes, size_t count,
                             stk_error *err) {
    if (file->reader != NULL) {
        return stk_file_read_at(file->reader, from, bytes, count, err);
    }
    if (count > 0) {
        memcpy(bytes, file->memory + from, count);
    }
    return STK_OK;
}

/* PyTorch's own files: zip archives or pickles. */
static bool is_pickle(const uint8_t *begin) {
    return memcmp(begin, "PK\3\4", 4) == 0 || (begin[0] == 0x80 && begin[1] >= 2 && begin[1] <= 5);
}

static stk_status fail_pickle(const char *path, stk_error *err) {
    return STK_FAIL(
        err, STK_ERR_DATA,
        "%s is a PyTorch pickle, which can run programs when it is read, not a safetensors file; "
        "convert it once: python3 -c \"import sys, torch, safetensors.torch as s; "
        "d = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
        "s.save_file({k: v.clone() for k, v in d.get('state_dict', d).items()}, sys.argv[2])\" "
        "IN.pth OUT.safetensors",
        path);
}

static stk_status read_header(stk_tensor_file *file, const char *path, uint64_t size,
                              stk_error *err) {
    uint8_t begin[LENGTH_BYTES];
    if (size < LENGTH_BYTES) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is not a safetensors file: it has %llu bytes", path,
                        (unsigned long long)size);
    }
    stk_status status = read_bytes(file, 0, begin, sizeof begin, err);
    if (status != STK_OK) {
        return status;
    }
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        length = length << 8 | begin[i];
    }
    if (length > MAX_HEADER_BYTES || length > size - LENGTH_BYTES) {
        if (is_pickle(begin)) {
            return fail_pickle(path, err);
        }
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s is not a whole safetensors file: it says that its header has %llu "
                        "bytes, the file has %llu",
                        path, (unsigned long long)length, (unsigned long long)size);
    }
    char *text = stk_mem_raw((size_t)length + 1, 1);
    if (text == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    file->start = LENGTH_BYTES + length;
    status = read_bytes(file, LENGTH_BYTES, text, (size_t)length, err);
    if (status == STK_OK && is_pickle(begin) && (length == 0 || text[0] != '{')) {
        status = fail_pickle(path, err);
    }
    STK_THEN(status, parse_header(file, path, text, (size_t)length, size - file->start, err));
    stk_mem_free(text);
    return status;
}

stk_status stk_tensors_parse(stk_tensor_file *file, const char *name, const void *bytes,
                             size_t size, stk_error *err) {
    memset(file, 0, sizeof *file);
    file->memory = bytes;
    stk_status status = read_header(file, name, size, err);
    if (status != STK_OK) {
        stk_tensors_close(file);
    }
    return status;
}

stk_status stk_tensors_open(stk_tensor_file *file, const char *path, stk_error *err) {
    memset(file, 0, sizeof *file);
    stk_status status = stk_file_open(&file->reader, path, err);
    STK_THEN(status, read_header(file, path, stk_file_size(file->reader), err));
    if (status != STK_OK) {
        stk_tensors_close(file);
    }
    return status;
}

void stk_tensors_close(stk_tensor_file *file) {
    stk_map_free(&file->names);
    stk_json_free(file->header);
    stk_mem_free(file->tensors);
    stk_file_close(file->reader);
    memset(file, 0, sizeof *file);
}

const stk_tensor *stk_tensors_find(const stk_tensor_file *file, const char *name) {
    size_t at;
    return stk_map_find(&file->names, name, &at) ? &file->tensors[at] : NULL;
}

const char *stk_tensors_note(const stk_tensor_file *file, const char *key) {
    return stk_json_string(stk_json_get(stk_json_get(file->header, "__metadata__"), key));
}

stk_status stk_tensors_read(const stk_tensor_file *file, const stk_tensor *tensor, void *bytes,
                            stk_error *err) {
    return read_bytes(file, file->start + tensor->offset, bytes, (size_t)tensor->bytes, err);
}

bool stk_tensor_is_float(const stk_tensor *tensor) {
    size_t type = find_type(tensor->dtype);
    return type < TYPES && types[type].is_float;
}

uint64_t stk_tensor_count(const stk_tensor *tensor) {
    size_t type = find_type(tensor->dtype);
    return type < TYPES ? tensor->bytes / types[type].bytes : 0;
}

stk_status stk_tensors_read_floats(const stk_tensor_file *file, const stk_tensor *tensor,
                                   float *values, stk_error *err) {
    if (strcmp(tensor->dtype, "F32") == 0) {
        return stk_tensors_read(file, tensor, values, err);
    }
    size_t each = types[find_type(tensor->dtype)].bytes;
    uint64_t left = tensor->bytes;
    uint64_t from = file->start + tensor->offset;
    stk_status status = STK_OK;
    while (left > 0 && status == STK_OK) {
        char piece[PIECE_BYTES];
        size_t size = left < sizeof piece ? (size_t)left : sizeof piece;
        status = read_bytes(file, from, piece, size, err);
        if (status == STK_OK && !stk_widen(tensor->dtype, piece, size / each, values)) {
            status = STK_FAIL(err, STK_ERR_INTERNAL, "'%.200s' has no floats", tensor->name);
        }
        values += size / each;
        from += size;
        left -= size;
    }
    return status;
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
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        stk_json_key(&writer, tensors[i].name);
        stk_json_begin_object(&writer);
        stk_json_key(&writer, "dtype");
        stk_json_put_string(&writer, tensors[i].dtype);
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

stk_status stk_tensors_begin(stk_file_writer *writer, const stk_tensor *tensors, size_t count,
                             const stk_tensor_note *notes, size_t note_count, stk_error *err) {
    stk_str header = {0};
    write_header(&header, tensors, count, notes, note_count);
    if (!stk_str_ok(&header)) {
        stk_str_free(&header);
        return STK_FAIL_MEMORY(err, "the header of a file of tensors");
    }
    uint8_t length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) {
        length[i] = (uint8_t)((uint64_t)header.length >> (8 * i));
    }
    stk_status status = stk_file_append(writer, length, sizeof length, err);
    STK_THEN(status, stk_file_append(writer, header.text, header.length, err));
    stk_str_free(&header);
    return status;
}

stk_status stk_tensors_create(stk_file_writer **out, const char *path, const stk_tensor *tensors,
                              size_t count, const stk_tensor_note *notes, size_t note_count,
                              stk_error *err) {
    stk_file_writer *writer = NULL;
    stk_status status = stk_file_create(&writer, path, err);
    STK_THEN(status, stk_tensors_begin(writer, tensors, count, notes, note_count, err));
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    *out = writer;
    return STK_OK;
}
