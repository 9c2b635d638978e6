/* checkpoint.c - saves and loads a model's parameters and the metadata to use them alone. */
#include "weights/checkpoint.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "weights/fill.h"

#define MAX_IMG_SIZE 16384 /* px; larger ones are a damaged file */
#define NOTES 17           /* in the metadata */
#define BICUBIC "bicubic"  /* in the metadata; anything else is bilinear */
#define NATIVE "none"      /* as a way to resize; with anything else pictures are scaled */

/* The parameters that are saved. */
typedef struct weights_source {
    const stk_backend *backend;
    stk_state *state;
    const stk_graph *graph;
    stk_tensor_kind kind;
} weights_source;

/* Writes one parameter after the other, so that memory for the largest one is enough. */
static stk_status append_numbers(stk_file_writer *writer, const char *path,
                                 const weights_source *from, stk_error *err) {
    const stk_graph *graph = from->graph;
    size_t most = stk_fill_most(graph);
    float *read = stk_mem_raw(most, sizeof *read);
    float *turned = stk_mem_raw(most, sizeof *turned);
    stk_status status = read != NULL && turned != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    for (int p = 0; p < graph->param_count && status == STK_OK; p++) {
        const stk_param *param = &graph->params[p];
        status = from->backend->state_read(from->state, from->kind, p, read, err);
        if (status == STK_OK) {
            stk_fill_to_file(param, read, turned);
            status = stk_file_append(writer, turned, param->count * sizeof *turned, err);
        }
    }
    stk_mem_free(read);
    stk_mem_free(turned);
    return status;
}

static stk_status save_with_notes(const char *path, const weights_source *from,
                                  const stk_tensor_note *notes, size_t note_count, stk_error *err) {
    const stk_graph *graph = from->graph;
    stk_tensor *tensors = stk_mem_new((size_t)graph->param_count, sizeof *tensors);
    stk_file_writer *writer = NULL;
    if (tensors == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    for (int p = 0; p < graph->param_count; p++) {
        tensors[p] = stk_fill_describe(&graph->params[p]);
    }
    stk_status status = stk_tensors_create(&writer, path, tensors, (size_t)graph->param_count,
                                           notes, note_count, err);
    stk_mem_free(tensors);
    STK_THEN(status, append_numbers(writer, path, from, err));
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}

static void put_floats(stk_str *out, const float *values, int count) {
    for (int i = 0; i < count; i++) {
        stk_str_appendf(out, "%s%.9g", i == 0 ? "[" : ", ", values[i]);
    }
    stk_str_append(out, "]");
}

/* The metadata's texts, in the order of `keys`; false without memory. */
static bool describe(const stk_checkpoint_info *info, int channels, size_t features,
                     stk_str *texts) {
    stk_json_writer classes = stk_json_write_to(&texts[1], 0);
    classes.exact = true; /* they may be names of folders */
    stk_str_append(&texts[0], info->model);
    stk_json_begin_array(&classes);
    for (int i = 0; i < info->class_count; i++) {
        stk_json_put_string(&classes, info->classes[i]);
    }
    stk_json_end_array(&classes);
    stk_str_appendf(&texts[2], "%d", info->img_size);
    put_floats(&texts[3], info->mean, channels);
    put_floats(&texts[4], info->std, channels);
    stk_str_appendf(&texts[5], "%.9g", info->crop_fraction);
    stk_str_appendf(&texts[6], "%d", info->epoch);
    if (!isnan(info->acc1)) {
        stk_str_appendf(&texts[7], "%.6g", info->acc1);
    }
    stk_str_append(&texts[8], info->interpolation == STK_BICUBIC ? BICUBIC : "bilinear");
    stk_calibration_append(&info->calibration, &texts[9]);
    stk_str_appendf(&texts[10], "%d", channels);
    stk_outputs_append(&info->outputs, &texts[11]);
    stk_str_appendf(&texts[12], "%zu", features);
    if (info->window.channels > 0) {
        put_floats(&texts[13], info->window.lo, info->window.channels);
        put_floats(&texts[14], info->window.hi, info->window.channels);
    }
    if (info->columns.count > 0) {
        stk_columns_append(&info->columns, &texts[15]);
    }
    stk_str_append(&texts[16], info->native ? NATIVE : "scale");
    bool good = true;
    for (int i = 0; i < NOTES; i++) {
        good = good && stk_str_ok(&texts[i]);
    }
    return good;
}

stk_status stk_checkpoint_save(const char *path, const stk_backend *backend, stk_state *state,
                               const stk_graph *graph, const stk_checkpoint_info *info,
                               stk_error *err) {
    static const char *const keys[] = {
        "model",    "classes",   "img_size",      "mean",        "std",      "crop_fraction",
        "epoch",    "val/acc1",  "interpolation", "calibration", "channels", "outputs",
        "features", "window_lo", "window_hi",     "columns",     "resize"};
    weights_source from = {backend, state, graph,
                           info->averaged ? STK_TENSOR_EMA : STK_TENSOR_VALUE};
    stk_str texts[NOTES] = {{0}};
    stk_tensor_note notes[NOTES];
    stk_status status = describe(info, graph->channels, stk_graph_feature_count(graph), texts)
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, path);
    if (status == STK_OK) {
        for (int i = 0; i < NOTES; i++) {
            notes[i] = (stk_tensor_note){keys[i], stk_str_text(&texts[i])};
        }
        status = save_with_notes(path, &from, notes, NOTES, err);
    }
    for (int i = 0; i < NOTES; i++) {
        stk_str_free(&texts[i]);
    }
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

/* So many numbers of at least `least`. */
static stk_status read_floats(const char *path, const stk_tensor_file *file, const char *key,
                              float least, float *values, int count, stk_error *err) {
    stk_json *list = NULL;
    stk_status status = read_list(path, file, key, &list, err);
    if (status == STK_OK && stk_json_count(list) != (size_t)count) {
        status = lacks(path, key, err);
    }
    for (size_t c = 0; c < (size_t)count && status == STK_OK; c++) {
        values[c] = (float)stk_json_number(stk_json_at(list, c), NAN);
        status = isfinite(values[c]) && values[c] >= least ? STK_OK : lacks(path, key, err);
    }
    stk_json_free(list);
    return status;
}

/* What is told of each channel. Files that do not say how many there are have three. */
static stk_status read_channels(const char *path, const stk_tensor_file *file,
                                stk_checkpoint_info *info, stk_error *err) {
    const char *text = stk_tensors_note(file, "channels");
    int64_t count = 3;
    if (text != NULL && (!stk_parse_int(text, &count) || count < 1 || count > STK_MOST_CHANNELS)) {
        return lacks(path, "channels", err);
    }
    info->channels = (int)count;
    const char *features = stk_tensors_note(file, "features");
    bool known = features != NULL && stk_parse_int(features, &count) && count >= 0 &&
                 count <= (int64_t)STK_CSV_COLUMNS_MAX;
    info->features = known ? (int)count : 0;
    stk_status status = read_floats(path, file, "mean", -FLT_MAX, info->mean, info->channels, err);
    STK_THEN(status, read_floats(path, file, "std", FLT_MIN, info->std, info->channels, err));
    return status;
}

/* The window that all pictures pass, if there is one. */
static stk_status read_window(const char *path, const stk_tensor_file *file,
                              stk_checkpoint_info *info, stk_error *err) {
    const char *text = stk_tensors_note(file, "window_lo");
    stk_window *window = &info->window;
    if (text == NULL || text[0] == '\0') {
        return STK_OK;
    }
    if (info->channels > STK_IMAGE_MAX_CHANNELS) {
        return lacks(path, "window_lo", err);
    }
    window->channels = info->channels;
    stk_status status =
        read_floats(path, file, "window_lo", -FLT_MAX, window->lo, info->channels, err);
    STK_THEN(status,
             read_floats(path, file, "window_hi", -FLT_MAX, window->hi, info->channels, err));
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

/* The metadata that is plain text. */
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
    const char *filter = stk_tensors_note(file, "interpolation");
    bool bicubic = filter != NULL && strcmp(filter, BICUBIC) == 0;
    info->interpolation = bicubic ? STK_BICUBIC : STK_BILINEAR;
    const char *resize = stk_tensors_note(file, "resize");
    info->native = resize != NULL && strcmp(resize, NATIVE) == 0;
    info->acc1 = acc1 != NULL && stk_parse_double(acc1, &number) ? number : NAN;
    good = epoch != NULL && stk_parse_int(epoch, &whole) && whole >= 0 && whole <= INT_MAX;
    info->epoch = good ? (int)whole : 0;
    info->model = stk_mem_strdup(model);
    return info->model != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
}

stk_status stk_checkpoint_info_read(const char *path, stk_checkpoint_info *info, stk_error *err) {
    memset(info, 0, sizeof *info);
    stk_tensor_file file;
    stk_status status = stk_tensors_open(&file, path, err);
    if (status != STK_OK) {
        return status;
    }
    status = read_classes(path, &file, info, err);
    STK_THEN(status, read_plain(path, &file, info, err));
    STK_THEN(status, read_channels(path, &file, info, err));
    STK_THEN(status, read_window(path, &file, info, err));
    STK_THEN(status, stk_calibration_read(stk_tensors_note(&file, "calibration"), info->class_count,
                                          &info->calibration, err));
    STK_THEN(status, stk_outputs_read(stk_tensors_note(&file, "outputs"), info->class_count,
                                      &info->outputs, err));
    STK_THEN(status, stk_columns_read(stk_tensors_note(&file, "columns"), info->features,
                                      &info->columns, err));
    stk_tensors_close(&file);
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
    stk_calibration_free(&info->calibration);
    stk_outputs_free(&info->outputs);
    stk_feature_code_free(&info->columns);
    memset(info, 0, sizeof *info);
}

static bool fits(const stk_param *param, const stk_tensor *tensor) {
    return strcmp(tensor->dtype, "F32") == 0 && stk_fill_same_shape(param, tensor);
}

/* Finds each parameter's tensor. An error lists all that are missing or of another shape; nothing
 * is loaded then. */
static stk_status match(const char *path, const stk_tensor_file *file, const stk_graph *graph,
                        size_t *from, stk_error *err) {
    stk_str wrong = {0};
    int count = 0;
    for (int p = 0; p < graph->param_count; p++) {
        const stk_tensor *tensor = stk_tensors_find(file, graph->params[p].name);
        from[p] = tensor != NULL ? (size_t)(tensor - file->tensors) : STK_NO_TENSOR;
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
    stk_status status = stk_tensors_open(&file, path, err);
    if (status != STK_OK) {
        return status;
    }
    size_t *from = stk_mem_raw((size_t)graph->param_count, sizeof *from);
    status = from != NULL ? match(path, &file, graph, from, err) : STK_FAIL_MEMORY(err, path);
    STK_THEN(status, stk_fill_state(&file, path, from, false, backend, state, graph, err));
    stk_mem_free(from);
    stk_tensors_close(&file);
    return status;
}
