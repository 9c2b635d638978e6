/* checkpoint.c - between a state on a device and a file. */
#include "weights/checkpoint.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "weights/safetensors.h"

#define MAX_IMG_SIZE 16384 /* px; larger ones are a damaged file */

/*
 * Between memory order (O, kh, kw, I) and the file's (O, I, kh, kw); other tensors are the same in
 * both.
 */
static void reorder(const stk_param *param, bool to_file, const float *from, float *to) {
    if (param->rank != 4) {
        memcpy(to, from, param->count * sizeof *to);
        return;
    }
    size_t inputs = (size_t)param->shape[1];
    size_t taps = (size_t)param->shape[2] * (size_t)param->shape[3];
    for (size_t o = 0; o < (size_t)param->shape[0]; o++) {
        for (size_t i = 0; i < inputs; i++) {
            for (size_t t = 0; t < taps; t++) {
                size_t memory = (o * taps + t) * inputs + i;
                size_t file = (o * inputs + i) * taps + t;
                to[to_file ? file : memory] = from[to_file ? memory : file];
            }
        }
    }
}

static stk_status collect(const stk_backend *backend, stk_state *state, const stk_graph *graph,
                          stk_tensor_kind kind, stk_tensor *tensors, float *numbers, float *scratch,
                          stk_error *err) {
    for (int p = 0; p < graph->param_count; p++) {
        const stk_param *param = &graph->params[p];
        stk_status status = backend->state_read(state, kind, p, scratch, err);
        if (status != STK_OK) {
            return status;
        }
        reorder(param, true, scratch, numbers + param->offset);
        tensors[p] = (stk_tensor){.name = param->name,
                                  .rank = param->rank,
                                  .data = numbers + param->offset,
                                  .bytes = param->count * sizeof(float)};
        for (int d = 0; d < param->rank; d++) {
            tensors[p].shape[d] = (uint64_t)param->shape[d];
        }
    }
    return STK_OK;
}

static void put_floats(stk_str *out, const float *values) {
    stk_str_appendf(out, "[%.9g, %.9g, %.9g]", values[0], values[1], values[2]);
}

/* The metadata's texts, in the order of `keys`; false without memory. */
static bool describe(const stk_checkpoint_info *info, stk_str *texts) {
    stk_json_writer classes = stk_json_write_to(&texts[1], 0);
    stk_str_append(&texts[0], info->model);
    stk_json_begin_array(&classes);
    for (int i = 0; i < info->class_count; i++) {
        stk_json_put_string(&classes, info->classes[i]);
    }
    stk_json_end_array(&classes);
    stk_str_appendf(&texts[2], "%d", info->img_size);
    put_floats(&texts[3], info->mean);
    put_floats(&texts[4], info->std);
    stk_str_appendf(&texts[5], "%.9g", info->crop_fraction);
    stk_str_appendf(&texts[6], "%d", info->epoch);
    if (!isnan(info->acc1)) {
        stk_str_appendf(&texts[7], "%.6g", info->acc1);
    }
    bool good = true;
    for (int i = 0; i < 8; i++) {
        good = good && stk_str_ok(&texts[i]);
    }
    return good;
}

stk_status stk_checkpoint_save(const char *path, const stk_backend *backend, stk_state *state,
                               const stk_graph *graph, const stk_checkpoint_info *info,
                               stk_error *err) {
    static const char *const keys[] = {"model", "classes",       "img_size", "mean",
                                       "std",   "crop_fraction", "epoch",    "val/acc1"};
    stk_str texts[8] = {{0}};
    stk_tensor_note notes[8];
    stk_tensor *tensors = stk_mem_new((size_t)graph->param_count, sizeof *tensors);
    float *numbers = stk_mem_raw(graph->param_elements, sizeof *numbers);
    float *scratch = stk_mem_raw(graph->param_elements, sizeof *scratch);
    stk_status status =
        tensors != NULL && numbers != NULL && scratch != NULL && describe(info, texts)
            ? STK_OK
            : STK_FAIL_MEMORY(err, path);
    if (status == STK_OK) {
        stk_tensor_kind kind = info->averaged ? STK_TENSOR_EMA : STK_TENSOR_VALUE;
        status = collect(backend, state, graph, kind, tensors, numbers, scratch, err);
    }
    if (status == STK_OK) {
        for (int i = 0; i < 8; i++) {
            notes[i] = (stk_tensor_note){keys[i], stk_str_text(&texts[i])};
        }
        status = stk_tensors_write(path, tensors, (size_t)graph->param_count, notes, 8, err);
    }
    for (int i = 0; i < 8; i++) {
        stk_str_free(&texts[i]);
    }
    stk_mem_free(tensors);
    stk_mem_free(numbers);
    stk_mem_free(scratch);
    return status;
}

static stk_status lacks(const char *path, const char *what, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has no usable '%s' in its metadata; it was not written by Stoker", path,
                    what);
}

/* A list of JSON in a note of the metadata; STK_ERR_DATA when it is none. */
static stk_status read_list(const char *path, const stk_tensor_file *file, const char *key,
                            stk_json **list, stk_error *err) {
    const char *text = stk_tensors_note(file, key);
    if (text == NULL) {
        return lacks(path, key, err);
    }
    stk_status status = stk_json_parse(text, strlen(text), list, NULL);
    if (status == STK_ERR_MEMORY) {
        return STK_FAIL_MEMORY(err, path);
    }
    if (status != STK_OK || stk_json_kind_of(*list) != STK_JSON_ARRAY) {
        return lacks(path, key, err);
    }
    return STK_OK;
}

/* Three numbers of at least `least`. */
static stk_status read_floats(const char *path, const stk_tensor_file *file, const char *key,
                              float least, float *values, stk_error *err) {
    stk_json *list = NULL;
    stk_status status = read_list(path, file, key, &list, err);
    if (status == STK_OK && stk_json_count(list) != 3) {
        status = lacks(path, key, err);
    }
    for (size_t c = 0; c < 3 && status == STK_OK; c++) {
        values[c] = (float)stk_json_number(stk_json_at(list, c), NAN);
        status = isfinite(values[c]) && values[c] >= least ? STK_OK : lacks(path, key, err);
    }
    stk_json_free(list);
    return status;
}

static stk_status read_classes(const char *path, const stk_tensor_file *file,
                               stk_checkpoint_info *info, stk_error *err) {
    stk_json *list = NULL;
    stk_status status = read_list(path, file, "classes", &list, err);
    size_t count = stk_json_count(list);
    if (status == STK_OK && count < 1) {
        status = lacks(path, "classes", err);
    }
    if (status == STK_OK) {
        info->classes = stk_mem_new(count, sizeof *info->classes);
        status = info->classes != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    }
    const stk_json *class = stk_json_at(list, 0);
    for (size_t i = 0; i < count && status == STK_OK; i++, class = stk_json_next(list, class)) {
        const char *name = stk_json_string(class);
        if (name == NULL) {
            status = STK_FAIL(err, STK_ERR_DATA, "%s is damaged: class %zu is no text", path, i);
        } else {
            info->classes[i] = stk_mem_strdup(name);
            info->class_count++;
            status = info->classes[i] != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
        }
    }
    stk_json_free(list);
    return status;
}

/* What stands as a plain text in the metadata. */
static stk_status read_plain(const char *path, const stk_tensor_file *file,
                             stk_checkpoint_info *info, stk_error *err) {
    const char *model = stk_tensors_note(file, "model");
    const char *img_size = stk_tensors_note(file, "img_size");
    const char *crop = stk_tensors_note(file, "crop_fraction");
    const char *acc1 = stk_tensors_note(file, "val/acc1");
    const char *epoch = stk_tensors_note(file, "epoch");
    int64_t whole = 0;
    double number = 0;
    if (model == NULL) {
        return lacks(path, "model", err);
    }
    if (img_size == NULL || !stk_parse_int(img_size, &whole) || whole < 1 || whole > MAX_IMG_SIZE) {
        return lacks(path, "img_size", err);
    }
    info->img_size = (int)whole;
    bool good = crop != NULL && stk_parse_double(crop, &number) && number > 0 && number <= 1;
    info->crop_fraction = good ? number : 1;
    info->acc1 = acc1 != NULL && stk_parse_double(acc1, &number) ? number : NAN;
    good = epoch != NULL && stk_parse_int(epoch, &whole) && whole >= 0 && whole <= INT_MAX;
    info->epoch = good ? (int)whole : 0;
    info->model = stk_mem_strdup(model);
    return info->model != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
}

stk_status stk_checkpoint_info_read(const char *path, stk_checkpoint_info *info, stk_error *err) {
    memset(info, 0, sizeof *info);
    stk_tensor_file file;
    stk_status status = stk_tensors_read(&file, path, err);
    if (status != STK_OK) {
        return status;
    }
    status = read_classes(path, &file, info, err);
    if (status == STK_OK) {
        status = read_plain(path, &file, info, err);
    }
    if (status == STK_OK) {
        status = read_floats(path, &file, "mean", -FLT_MAX, info->mean, err);
    }
    if (status == STK_OK) {
        status = read_floats(path, &file, "std", FLT_MIN, info->std, err);
    }
    stk_tensors_free(&file);
    if (status != STK_OK) {
        stk_checkpoint_info_free(info);
    }
    return status;
}

void stk_checkpoint_info_free(stk_checkpoint_info *info) {
    for (int i = 0; i < info->class_count; i++) {
        stk_mem_free(info->classes[i]);
    }
    stk_mem_free(info->classes);
    stk_mem_free(info->model);
    memset(info, 0, sizeof *info);
}

static bool fits(const stk_param *param, const stk_tensor *tensor) {
    bool same = strcmp(tensor->dtype, "F32") == 0 && tensor->rank == param->rank;
    for (int d = 0; same && d < param->rank; d++) {
        same = tensor->shape[d] == (uint64_t)param->shape[d];
    }
    return same;
}

/* Lists what is missing or of another shape, so that nothing is loaded by half. */
static stk_status compare(const char *path, const stk_tensor_file *file, const stk_graph *graph,
                          stk_error *err) {
    stk_str wrong = {0};
    int count = 0;
    for (int p = 0; p < graph->param_count; p++) {
        const stk_tensor *tensor = stk_tensors_find(file, graph->params[p].name);
        if (tensor == NULL || !fits(&graph->params[p], tensor)) {
            count++;
            if (count <= 5) {
                stk_str_appendf(&wrong, "%s%s (%s)", count > 1 ? ", " : "", graph->params[p].name,
                                tensor == NULL ? "missing" : "another shape or type");
            }
        }
    }
    stk_status status = STK_OK;
    if (count > 0) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s does not fit the model: %d tensors differ: %s%s",
                          path, count, stk_str_text(&wrong), count > 5 ? " and more" : "");
    }
    stk_str_free(&wrong);
    return status;
}

stk_status stk_checkpoint_load(const char *path, const stk_backend *backend, stk_state *state,
                               const stk_graph *graph, stk_error *err) {
    stk_tensor_file file;
    stk_status status = stk_tensors_read(&file, path, err);
    if (status != STK_OK) {
        return status;
    }
    float *from = stk_mem_raw(graph->param_elements, sizeof *from);
    float *to = stk_mem_raw(graph->param_elements, sizeof *to);
    status =
        from != NULL && to != NULL ? compare(path, &file, graph, err) : STK_FAIL_MEMORY(err, path);
    for (int p = 0; p < graph->param_count && status == STK_OK; p++) {
        const stk_param *param = &graph->params[p];
        /* The file's numbers need not be aligned for floats. */
        memcpy(from, stk_tensors_find(&file, param->name)->data, param->count * sizeof *from);
        reorder(param, false, from, to);
        status = backend->state_write(state, STK_TENSOR_VALUE, p, to, err);
    }
    stk_mem_free(from);
    stk_mem_free(to);
    stk_tensors_free(&file);
    return status;
}
