/* pretrained.c - compares a file of pretrained weights with a model, tensor by tensor. */
#include "weights/pretrained.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "weights/fill.h"

/* An error names at most so many tensors of each kind of mismatch, in so many bytes altogether. */
#define MOST_NAMED 20
#define MOST_NAMED_BYTES 750

/* Prefixes that wrappers and training scripts put before names, alone or in pairs. */
static const char *const prefixes[] = {"", "module.", "model.", "state_dict."};
#define PREFIXES STK_COUNT(prefixes)

/* The tensors of one kind of mismatch. */
typedef struct mismatch {
    stk_str names; /* of the first ones, divided by ", " */
    size_t count;
    size_t named;            /* how many are in `names`, at most MOST_NAMED */
    size_t ends[MOST_NAMED]; /* of each name in `names` */
} mismatch;

typedef struct weights_match {
    const stk_tensor_file *file;
    const stk_graph *graph;
    char prefix[24]; /* before the names in the file */
    size_t *from;    /* owned: per parameter its tensor or STK_NO_TENSOR */
    bool *used;      /* owned: per tensor */
    mismatch shape, missing, unknown;
} weights_match;

static void free_match(weights_match *m) {
    stk_mem_free(m->from);
    stk_mem_free(m->used);
    stk_str_free(&m->shape.names);
    stk_str_free(&m->missing.names);
    stk_str_free(&m->unknown.names);
}

/* Copies the beginning of a text from a file for people, without control characters. */
static void copy_plain(char *out, size_t size, const char *text) {
    size_t length = 0;
    for (; length < size - 1 && text[length] != '\0'; length++) {
        unsigned char c = (unsigned char)text[length];
        out[length] = c < ' ' || c == 0x7F ? '?' : text[length];
    }
    out[length] = '\0';
}

static void add_mismatch(mismatch *t, const char *name, const char *detail) {
    char shown[104];
    t->count++;
    if (t->named == MOST_NAMED) {
        return;
    }
    copy_plain(shown, sizeof shown, name);
    stk_str_appendf(&t->names, "%s%s%s", t->named > 0 ? ", " : "", shown, detail);
    t->ends[t->named++] = t->names.length;
}

static size_t find_tensor(const weights_match *m, const char *prefix, int param) {
    char name[160];
    snprintf(name, sizeof name, "%s%s", prefix, m->graph->params[param].name);
    const stk_tensor *tensor = stk_tensors_find(m->file, name);
    return tensor != NULL ? (size_t)(tensor - m->file->tensors) : STK_NO_TENSOR;
}

/* The prefix under which most parameters are found; none where it makes no difference. */
static void find_prefix(weights_match *m) {
    int most = 0;
    for (size_t i = 0; i < PREFIXES * PREFIXES && most < m->graph->param_count; i++) {
        char prefix[sizeof m->prefix];
        int found = 0;
        snprintf(prefix, sizeof prefix, "%s%s", prefixes[i / PREFIXES], prefixes[i % PREFIXES]);
        for (int p = 0; p < m->graph->param_count; p++) {
            found += find_tensor(m, prefix, p) != STK_NO_TENSOR;
        }
        if (found > most) {
            most = found;
            memcpy(m->prefix, prefix, sizeof prefix);
        }
    }
}

/* "64x3x7x7"; a number alone has no shape. */
static void show_shape(char *buf, size_t size, int rank, const uint64_t *shape) {
    size_t used = 0;
    snprintf(buf, size, "one number");
    for (int d = 0; d < rank && used < size; d++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%llu", d > 0 ? "x" : "",
                                 (unsigned long long)shape[d]);
    }
}

static void add_shape_mismatch(weights_match *m, const stk_param *param, const stk_tensor *tensor) {
    char detail[160];
    char theirs[64];
    char ours[64];
    uint64_t shape[4] = {0};
    for (int d = 0; d < param->rank; d++) {
        shape[d] = (uint64_t)param->shape[d];
    }
    show_shape(theirs, sizeof theirs, tensor->rank, tensor->shape);
    show_shape(ours, sizeof ours, param->rank, shape);
    if (stk_fill_same_shape(param, tensor)) {
        snprintf(detail, sizeof detail, " (the file has %s, which are no weights)", tensor->dtype);
    } else {
        snprintf(detail, sizeof detail, " (the file has %s, the model %s)", theirs, ours);
    }
    add_mismatch(&m->shape, param->name, detail);
}

/* Whether a classifier's tensor differs from the model's in the number of classes alone. */
static bool other_classes(const stk_param *param, const stk_tensor *tensor) {
    bool same = tensor->rank == param->rank && tensor->shape[0] != (uint64_t)param->shape[0];
    for (int d = 1; same && d < param->rank; d++) {
        same = tensor->shape[d] == (uint64_t)param->shape[d];
    }
    return same;
}

/*
 * The head starts anew when the file has none, or a complete one for another number of classes;
 * with features also when any part of it differs. The file's tensors of it then count as used.
 */
static void judge_head(weights_match *m, stk_pretrained_report *report) {
    int parts = 0;
    int absent = 0;
    int other = 0;
    int misfits = 0;
    uint64_t classes = 0;
    for (int p = 0; p < m->graph->param_count; p++) {
        if (m->graph->params[p].head) {
            parts++;
            absent += m->from[p] == STK_NO_TENSOR;
            misfits += m->from[p] == STK_NO_TENSOR ||
                       !stk_fill_same_shape(&m->graph->params[p], &m->file->tensors[m->from[p]]);
            if (m->from[p] != STK_NO_TENSOR) {
                const stk_tensor *tensor = &m->file->tensors[m->from[p]];
                bool first = classes == 0;
                other += other_classes(&m->graph->params[p], tensor) &&
                         (first || tensor->shape[0] == classes);
                classes = first && tensor->rank > 0 ? tensor->shape[0] : classes;
            }
        }
    }
    bool features = stk_graph_feature_count(m->graph) > 0;
    report->head_anew =
        parts > 0 && (absent == parts || other == parts || (features && misfits > 0));
    report->file_classes = report->head_anew ? classes : 0;
    for (int p = 0; report->head_anew && p < m->graph->param_count; p++) {
        if (m->graph->params[p].head) {
            m->from[p] = STK_NO_TENSOR;
        }
    }
}

/* Finds each parameter's tensor and notes mismatches. */
static void match_params(weights_match *m, stk_pretrained_report *report) {
    for (int p = 0; p < m->graph->param_count; p++) {
        m->from[p] = find_tensor(m, m->prefix, p);
        if (m->from[p] != STK_NO_TENSOR) {
            m->used[m->from[p]] = true;
        }
    }
    judge_head(m, report);
    for (int p = 0; p < m->graph->param_count; p++) {
        const stk_param *param = &m->graph->params[p];
        if (report->head_anew && param->head) {
            continue;
        }
        if (m->from[p] == STK_NO_TENSOR) {
            add_mismatch(&m->missing, param->name, "");
            continue;
        }
        const stk_tensor *tensor = &m->file->tensors[m->from[p]];
        if (!stk_fill_fits(m->graph, p, tensor) || !stk_tensor_is_float(tensor)) {
            add_shape_mismatch(m, param, tensor);
        } else if (!stk_fill_same_shape(param, tensor)) {
            report->channels = m->graph->channels;
        }
        report->tensors++;
        if (strcmp(tensor->dtype, "F32") != 0) {
            if (report->converted == 0) {
                snprintf(report->type, sizeof report->type, "%s", tensor->dtype);
            }
            report->converted++;
        }
    }
}

/* Tensors without a parameter: PyTorch's counters of batches are ignored, others are a mismatch. */
static void match_rest(weights_match *m, stk_pretrained_report *report) {
    for (size_t t = 0; t < m->file->count; t++) {
        const char *name = m->file->tensors[t].name;
        if (m->used[t]) {
            continue;
        }
        if (stk_str_ends_with_nocase(name, ".num_batches_tracked")) {
            report->ignored++;
        } else {
            add_mismatch(&m->unknown, name, "");
        }
    }
}

/* A model's name without the tag. */
static size_t bare_length(const char *name) {
    return strcspn(name, ".");
}

/* Appends as many names as fit into so many bytes, at least one, and the number of the others. */
static void add_list(stk_str *out, const char *heading, const mismatch *t, size_t bytes) {
    size_t shown = t->named;
    while (shown > 1 && t->ends[shown - 1] > bytes) {
        shown--;
    }
    if (shown > 0) {
        stk_str_appendf(out, "\n  %s: %.*s", heading, (int)t->ends[shown - 1],
                        stk_str_text(&t->names));
    }
    if (t->count > shown) {
        stk_str_appendf(out, " and %zu more", t->count - shown);
    }
}

/* One error with all mismatches. */
static stk_status refuse(const char *path, const char *model, const weights_match *m,
                         const stk_pretrained_report *report, stk_error *err) {
    stk_str text = {0};
    const char *other = report->checkpoint_of;
    if (other[0] != '\0') {
        stk_str_appendf(&text, "is a checkpoint of %s and does not fit %s; use --model %s", other,
                        model, other);
    } else if (report->tensors == 0) {
        stk_str_appendf(&text, "has no weights of %s", model);
    } else {
        stk_str_appendf(&text, "does not fit %s", model);
    }
    size_t kinds = (m->shape.count > 0) + (m->missing.count > 0) + (m->unknown.count > 0);
    size_t each = MOST_NAMED_BYTES / (kinds > 0 ? kinds : 1);
    add_list(&text, "of another shape", &m->shape, each);
    add_list(&text, "missing in the file", &m->missing, each);
    add_list(&text, "not known to the model", &m->unknown, each);
    bool whole = stk_str_ok(&text) && stk_str_ok(&m->shape.names) &&
                 stk_str_ok(&m->missing.names) && stk_str_ok(&m->unknown.names);
    stk_status status =
        whole ? STK_FAIL(err, STK_ERR_DATA, "%s %s", path, text.text) : STK_FAIL_MEMORY(err, path);
    stk_str_free(&text);
    return status;
}

/* Compares the file with the model and fills m->from. */
static stk_status compare(weights_match *m, const char *path, const char *model,
                          stk_pretrained_report *report, stk_error *err) {
    memset(report, 0, sizeof *report);
    m->from = stk_mem_raw((size_t)m->graph->param_count, sizeof *m->from);
    m->used = stk_mem_new(m->file->count, sizeof *m->used);
    if (m->from == NULL || m->used == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    const char *of = stk_tensors_note(m->file, "model");
    if (of != NULL &&
        (bare_length(of) != bare_length(model) || strncmp(of, model, bare_length(model)) != 0)) {
        copy_plain(report->checkpoint_of, sizeof report->checkpoint_of, of);
    }
    find_prefix(m);
    memcpy(report->prefix, m->prefix, sizeof report->prefix);
    match_params(m, report);
    match_rest(m, report);
    return m->shape.count + m->missing.count + m->unknown.count == 0
               ? STK_OK
               : refuse(path, model, m, report, err);
}

/*
 * A new classifier becomes zero: the first predictions are then the same for all classes, and the
 * first gradients of the backbone are small. A random classifier would pull the pretrained weights
 * away from what they know before it has learned anything. Layers over features keep their first
 * weights: with zeros there too, no gradient would ever reach them.
 */
static stk_status clear_classifier(const stk_backend *backend, stk_state *state,
                                   const stk_graph *graph, stk_error *err) {
    stk_status status = STK_OK;
    const stk_node *classifier = stk_graph_classifier(graph);
    for (int i = 0; i < classifier->param_count && status == STK_OK; i++) {
        int p = classifier->params[i];
        float *zeros = stk_mem_new(graph->params[p].count, sizeof *zeros);
        status = zeros != NULL ? backend->state_write(state, STK_TENSOR_VALUE, p, zeros, err)
                               : STK_FAIL_MEMORY(err, "the head");
        stk_mem_free(zeros);
    }
    return status;
}

stk_status stk_pretrained_load(const char *path, const char *model, const stk_backend *backend,
                               stk_state *state, const stk_graph *graph,
                               stk_pretrained_report *report, stk_error *err) {
    stk_tensor_file file;
    stk_status status = stk_tensors_open(&file, path, err);
    if (status != STK_OK) {
        return status;
    }
    weights_match m = {.file = &file, .graph = graph};
    status = compare(&m, path, model, report, err);
    if (status == STK_OK && state != NULL) {
        status = stk_fill_state(&file, path, m.from, true, backend, state, graph, err);
    }
    if (status == STK_OK && state != NULL && report->head_anew) {
        status = clear_classifier(backend, state, graph, err);
    }
    free_match(&m);
    stk_tensors_close(&file);
    return status;
}

stk_status stk_pretrained_check(const char *path, const char *model, const stk_graph *graph,
                                stk_pretrained_report *report, stk_error *err) {
    return stk_pretrained_load(path, model, NULL, NULL, graph, report, err);
}
