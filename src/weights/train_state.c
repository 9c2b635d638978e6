/* train_state.c - the tensors of a training to and from a file, as they lie in the state. */
#include "weights/train_state.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "weights/fill.h"

static const char *const kind_names[STK_TENSOR_KINDS] = {[STK_TENSOR_VALUE] = "value",
                                                         [STK_TENSOR_GRADIENT] = "gradient",
                                                         [STK_TENSOR_MOMENTUM] = "momentum",
                                                         [STK_TENSOR_SECOND] = "second",
                                                         [STK_TENSOR_EMA] = "ema"};

static bool is_kept(const stk_backend *backend, const stk_state *state, int kind, bool gradients) {
    return backend->state_has(state, (stk_tensor_kind)kind) &&
           (kind != STK_TENSOR_GRADIENT || gradients);
}

/* Further state of a backend; files that another backend wrote lack it. */
#define EXTRAS_NAME "extras"

/*
 * The last tensor: a checksum of the notes, key and text each with its NUL, and of all numbers
 * before it, piece after piece, each seeded with the sum so far.
 */
#define CHECKSUM_NAME "checksum"

/* A writer and the checksum of what it has written. */
typedef struct summed_writer {
    stk_file_writer *file;
    uint64_t sum;
} summed_writer;

static void add_to_sum(uint64_t *sum, const void *bytes, size_t size) {
    *sum = stk_checksum_seeded(bytes, size, *sum);
}

static stk_status append(summed_writer *writer, const void *bytes, size_t size, stk_error *err) {
    add_to_sum(&writer->sum, bytes, size);
    return stk_file_append(writer->file, bytes, size, err);
}

/* Shape and size in the state's order; the name is owned by the tensor. */
static stk_tensor describe(const stk_param *param, int kind) {
    stk_tensor tensor = stk_fill_describe(param);
    tensor.name = stk_str_format("%s/%s", kind_names[kind], param->name);
    if (param->rank == 4) { /* (O, I, kh, kw) to (O, kh, kw, I) */
        tensor.shape[1] = (uint64_t)param->shape[2];
        tensor.shape[2] = (uint64_t)param->shape[3];
        tensor.shape[3] = (uint64_t)param->shape[1];
    }
    return tensor;
}

static void free_tensors(stk_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_mem_free((void *)(uintptr_t)tensors[i].name);
    }
    stk_mem_free(tensors);
}

/* The tensors of all parameters, kind after kind. */
static stk_status list(const stk_backend *backend, const stk_state *state, const stk_graph *graph,
                       bool gradients, stk_tensor **tensors, size_t *count, stk_error *err) {
    *count = 0;
    /* Two more: the extras and the checksum. */
    *tensors = stk_mem_new((size_t)graph->param_count * STK_TENSOR_KINDS + 2, sizeof **tensors);
    bool good = *tensors != NULL;
    for (int k = 0; k < STK_TENSOR_KINDS && good; k++) {
        for (int p = 0; p < graph->param_count && good && is_kept(backend, state, k, gradients);
             p++) {
            stk_tensor *tensor = &(*tensors)[(*count)++];
            *tensor = describe(&graph->params[p], k);
            good = tensor->name != NULL;
        }
    }
    return good ? STK_OK : STK_FAIL_MEMORY(err, "the training's state");
}

/* A vector of `length` numbers. */
static stk_status add_vector(const char *name, const char *dtype, uint64_t length, uint64_t bytes,
                             stk_tensor *tensors, size_t *count, stk_error *err) {
    stk_tensor *tensor = &tensors[(*count)++];
    *tensor = (stk_tensor){
        .name = stk_mem_strdup(name), .rank = 1, .shape = {length}, .dtype = dtype, .bytes = bytes};
    return tensor->name != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the training's state");
}

static stk_status write_extras(summed_writer *writer, const stk_backend *backend, stk_state *state,
                               stk_error *err) {
    float extras[STK_STATE_EXTRAS] = {0};
    stk_status status =
        backend->extras_read != NULL ? backend->extras_read(state, extras, err) : STK_OK;
    return status == STK_OK && backend->extras_read != NULL
               ? append(writer, extras, sizeof extras, err)
               : status;
}

static stk_status read_extras(const stk_tensor_file *file, const stk_backend *backend,
                              stk_state *state, stk_error *err) {
    float extras[STK_STATE_EXTRAS] = {0};
    const stk_tensor *found = stk_tensors_find(file, EXTRAS_NAME);
    if (backend->extras_write == NULL || found == NULL || found->bytes > sizeof extras) {
        return STK_OK;
    }
    stk_status status = stk_tensors_read(file, found, extras, err);
    return status == STK_OK ? backend->extras_write(state, extras, err) : status;
}

static stk_status write_numbers(summed_writer *writer, const stk_backend *backend, stk_state *state,
                                const stk_graph *graph, bool gradients, stk_error *err) {
    float *values = stk_mem_raw(stk_fill_most(graph), sizeof *values);
    stk_status status = values != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a parameter");
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        for (int p = 0;
             p < graph->param_count && status == STK_OK && is_kept(backend, state, k, gradients);
             p++) {
            status = backend->state_read(state, (stk_tensor_kind)k, p, values, err);
            STK_THEN(status, append(writer, values, graph->params[p].count * sizeof *values, err));
        }
    }
    stk_mem_free(values);
    return status;
}

stk_status stk_train_state_save(stk_file_writer *writer, const stk_backend *backend,
                                stk_state *state, const stk_graph *graph, bool gradients,
                                const stk_tensor_note *notes, size_t note_count, stk_error *err) {
    stk_tensor *tensors = NULL;
    size_t count = 0;
    summed_writer summed = {.file = writer};
    for (size_t i = 0; i < note_count; i++) {
        add_to_sum(&summed.sum, notes[i].key, strlen(notes[i].key) + 1);
        add_to_sum(&summed.sum, notes[i].text, strlen(notes[i].text) + 1);
    }
    stk_status status = list(backend, state, graph, gradients, &tensors, &count, err);
    if (status == STK_OK && backend->extras_read != NULL) {
        status = add_vector(EXTRAS_NAME, "F32", STK_STATE_EXTRAS, STK_STATE_EXTRAS * sizeof(float),
                            tensors, &count, err);
    }
    STK_THEN(status, add_vector(CHECKSUM_NAME, "U64", 1, sizeof(uint64_t), tensors, &count, err));
    STK_THEN(status, stk_tensors_begin(writer, tensors, count, notes, note_count, err));
    STK_THEN(status, write_numbers(&summed, backend, state, graph, gradients, err));
    STK_THEN(status, write_extras(&summed, backend, state, err));
    STK_THEN(status, stk_file_append(writer, &summed.sum, sizeof summed.sum, err));
    free_tensors(tensors, count);
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}

/* The sum of the notes of a file, in their order. */
static uint64_t sum_notes(const stk_tensor_file *file) {
    const stk_json *notes = stk_json_get(file->header, "__metadata__");
    uint64_t sum = 0;
    for (const stk_json *note = stk_json_at(notes, 0); note != NULL;
         note = stk_json_next(notes, note)) {
        const char *key = stk_json_key_of(note);
        const char *text = stk_json_string(note);
        add_to_sum(&sum, key, strlen(key) + 1);
        add_to_sum(&sum, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
    }
    return sum;
}

stk_status stk_train_state_verify(const stk_tensor_file *file, const char *path, stk_error *err) {
    const stk_tensor *last = stk_tensors_find(file, CHECKSUM_NAME);
    uint64_t written = 0;
    uint64_t most = 0;
    if (last == NULL) {
        return STK_OK;
    }
    size_t before = (size_t)(last - file->tensors);
    for (size_t i = 0; i < before; i++) {
        most = file->tensors[i].bytes > most ? file->tensors[i].bytes : most;
    }
    void *bytes = stk_mem_raw((size_t)most + 1, 1);
    stk_status status = bytes != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    uint64_t sum = sum_notes(file);
    for (size_t i = 0; i < before && status == STK_OK; i++) {
        status = stk_tensors_read(file, &file->tensors[i], bytes, err);
        if (status == STK_OK) {
            add_to_sum(&sum, bytes, (size_t)file->tensors[i].bytes);
        }
    }
    stk_mem_free(bytes);
    bool whole = last->bytes == sizeof written && before + 1 == file->count;
    if (status == STK_OK && whole) {
        status = stk_tensors_read(file, last, &written, err);
    }
    if (status == STK_OK && (!whole || written != sum)) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s is damaged: its bytes are not those that were written", path);
    }
    return status;
}

static bool same_tensor(const stk_tensor *a, const stk_tensor *b) {
    bool same = a != NULL && strcmp(a->dtype, b->dtype) == 0 && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++) {
        same = a->shape[d] == b->shape[d];
    }
    return same;
}

/* Lists the tensors that the state wants, which the file must have. */
static stk_status list_fitting(const stk_tensor_file *file, const char *path,
                               const stk_backend *backend, const stk_state *state,
                               const stk_graph *graph, bool gradients, stk_tensor **tensors,
                               size_t *count, stk_error *err) {
    stk_status status = list(backend, state, graph, gradients, tensors, count, err);
    for (size_t i = 0; i < *count && status == STK_OK; i++) {
        const stk_tensor *wanted = &(*tensors)[i];
        const stk_tensor *found = stk_tensors_find(file, wanted->name);
        if (!same_tensor(found, wanted)) {
            status = STK_FAIL(err, STK_ERR_DATA, "%s does not fit the model: '%.200s' is %s", path,
                              wanted->name, found == NULL ? "missing" : "of another shape");
        }
    }
    return status;
}

stk_status stk_train_state_fits(const stk_tensor_file *file, const char *path,
                                const stk_backend *backend, const stk_state *state,
                                const stk_graph *graph, bool gradients, stk_error *err) {
    stk_tensor *tensors = NULL;
    size_t count = 0;
    stk_status status =
        list_fitting(file, path, backend, state, graph, gradients, &tensors, &count, err);
    free_tensors(tensors, count);
    return status;
}

stk_status stk_train_state_load(const stk_tensor_file *file, const char *path,
                                const stk_backend *backend, stk_state *state,
                                const stk_graph *graph, bool gradients, stk_error *err) {
    stk_tensor *tensors = NULL;
    size_t count = 0;
    stk_status status =
        list_fitting(file, path, backend, state, graph, gradients, &tensors, &count, err);
    float *values = stk_mem_raw(stk_fill_most(graph), sizeof *values);
    if (status == STK_OK && values == NULL) {
        status = STK_FAIL_MEMORY(err, "a parameter");
    }
    size_t next = 0;
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        for (int p = 0;
             p < graph->param_count && status == STK_OK && is_kept(backend, state, k, gradients);
             p++, next++) {
            const stk_tensor *found = stk_tensors_find(file, tensors[next].name);
            status = stk_tensors_read(file, found, values, err);
            STK_THEN(status, backend->state_write(state, (stk_tensor_kind)k, p, values, err));
        }
    }
    STK_THEN(status, read_extras(file, backend, state, err));
    stk_mem_free(values);
    free_tensors(tensors, count);
    return status;
}
