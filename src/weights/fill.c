/* fill.c - one parameter at a time, so that loading and saving need no copy of the model. */
#include "weights/fill.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "weights/channels.h"

/* Both orders are the same where a convolution has one tap or one input. */
static bool same_order(const stk_param *param) {
    return param->rank != 4 || param->shape[1] == 1 ||
           (param->shape[2] == 1 && param->shape[3] == 1);
}

/* Per output the numbers are a matrix of `rows` x `columns`, which is transposed. */
static void transpose(size_t outputs, size_t rows, size_t columns, const float *from, float *to) {
    for (size_t o = 0; o < outputs; o++) {
        for (size_t r = 0; r < rows; r++) {
            for (size_t c = 0; c < columns; c++) {
                to[c * rows + r] = from[r * columns + c];
            }
        }
        from += rows * columns;
        to += rows * columns;
    }
}

static size_t taps(const stk_param *param) {
    return (size_t)param->shape[2] * (size_t)param->shape[3];
}

static void to_memory(const stk_param *param, const float *from, float *to) {
    transpose((size_t)param->shape[0], (size_t)param->shape[1], taps(param), from, to);
}

size_t stk_fill_most(const stk_graph *graph) {
    size_t most = 0;
    for (int p = 0; p < graph->param_count; p++) {
        most = graph->params[p].count > most ? graph->params[p].count : most;
    }
    return most;
}

stk_tensor stk_fill_describe(const stk_param *param) {
    stk_tensor tensor = {.name = param->name,
                         .rank = param->rank,
                         .dtype = "F32",
                         .bytes = (uint64_t)param->count * sizeof(float)};
    for (int d = 0; d < param->rank; d++) {
        tensor.shape[d] = (uint64_t)param->shape[d];
    }
    return tensor;
}

bool stk_fill_same_shape(const stk_param *param, const stk_tensor *tensor) {
    bool same = tensor->rank == param->rank;
    for (int d = 0; same && d < param->rank; d++) {
        same = tensor->shape[d] == (uint64_t)param->shape[d];
    }
    return same;
}

bool stk_fill_fits(const stk_graph *graph, int p, const stk_tensor *tensor) {
    const stk_param *param = &graph->params[p];
    if (stk_fill_same_shape(param, tensor)) {
        return true;
    }
    return tensor->rank == 4 && param->rank == 4 && tensor->shape[1] == STK_PRETRAINED_CHANNELS &&
           tensor->shape[0] == (uint64_t)param->shape[0] &&
           tensor->shape[2] == (uint64_t)param->shape[2] &&
           tensor->shape[3] == (uint64_t)param->shape[3] && stk_weights_reads_pictures(graph, p);
}

void stk_fill_to_file(const stk_param *param, const float *from, float *to) {
    if (same_order(param)) {
        memcpy(to, from, param->count * sizeof *to);
    } else {
        transpose((size_t)param->shape[0], taps(param), (size_t)param->shape[1], from, to);
    }
}

/* Which parameter each tensor goes to, or -1; NULL without memory. */
static int *invert(const stk_tensor_file *file, const size_t *from, const stk_graph *graph) {
    int *to = stk_mem_raw(file->count, sizeof *to);
    for (size_t t = 0; to != NULL && t < file->count; t++) {
        to[t] = -1;
    }
    for (int p = 0; to != NULL && p < graph->param_count; p++) {
        if (from[p] != STK_NO_TENSOR) {
            to[from[p]] = p;
        }
    }
    return to;
}

/* Refuses NaN and infinity. Without this check only the loss would show them, later. */
static stk_status check_finite(const char *path, const stk_param *param, const float *values,
                               stk_error *err) {
    for (size_t i = 0; i < param->count; i++) {
        if (!isfinite(values[i])) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s cannot be used: %s holds numbers that are infinite or not numbers",
                            path, param->name);
        }
    }
    return STK_OK;
}

/* Reads a tensor for a parameter, in the file's order, into `values`; `room` is for as much. */
static stk_status read_tensor(const stk_tensor_file *file, const stk_tensor *tensor,
                              const stk_param *param, float *values, float *room, stk_error *err) {
    if (stk_fill_same_shape(param, tensor)) {
        return stk_tensors_read_floats(file, tensor, values, err);
    }
    stk_status status = stk_tensors_read_floats(file, tensor, room, err);
    if (status == STK_OK) {
        stk_weights_adapt_channels(room, (size_t)param->shape[0], taps(param), param->shape[1],
                                   values);
    }
    return status;
}

/* Room for any parameter, and for filters over RGB of pictures with fewer channels. */
static size_t room_for(const stk_graph *graph) {
    size_t most = stk_fill_most(graph);
    for (int p = 0; p < graph->param_count; p++) {
        size_t rgb = graph->params[p].count * STK_PRETRAINED_CHANNELS;
        bool fewer = graph->channels < STK_PRETRAINED_CHANNELS;
        if (fewer && rgb > most && stk_weights_reads_pictures(graph, p)) {
            most = rgb;
        }
    }
    return most;
}

stk_status stk_fill_state(const stk_tensor_file *file, const char *path, const size_t *from,
                          bool finite, const stk_backend *backend, stk_state *state,
                          const stk_graph *graph, stk_error *err) {
    size_t most = room_for(graph);
    int *to = invert(file, from, graph);
    float *read = stk_mem_raw(most, sizeof *read);
    float *turned = stk_mem_raw(most, sizeof *turned);
    stk_status status =
        to != NULL && read != NULL && turned != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    for (size_t t = 0; t < file->count && status == STK_OK; t++) {
        if (to[t] < 0) {
            continue;
        }
        const stk_param *param = &graph->params[to[t]];
        status = read_tensor(file, &file->tensors[t], param, read, turned, err);
        if (status == STK_OK && finite) {
            status = check_finite(path, param, read, err);
        }
        if (status == STK_OK) {
            bool same = same_order(param);
            if (!same) {
                to_memory(param, read, turned);
            }
            status =
                backend->state_write(state, STK_TENSOR_VALUE, to[t], same ? read : turned, err);
        }
    }
    stk_mem_free(to);
    stk_mem_free(read);
    stk_mem_free(turned);
    return status;
}
