/*
 * dnn_descriptors.c - the exported functions of the look-alike of cuDNN: descriptors by the rules,
 * and errors in sentences.
 */
#include "dnn_emulated.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu_enqueue.h"

static _Thread_local char last_error[512];

int dnn_fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

static bool is_descriptor(const dnn_descriptor *d) {
    return d != NULL && d->seal == DNN_DESCRIPTOR_SEAL;
}

static bool is_handle(const dnn_handle *handle) {
    return handle != NULL && handle->seal == DNN_HANDLE_SEAL;
}

dnn_descriptor *dnn_descriptor_new(int kind) {
    dnn_descriptor *d = calloc(1, sizeof *d);
    if (d != NULL) {
        d->seal = DNN_DESCRIPTOR_SEAL;
        d->kind = kind;
        d->users = 1;
    }
    return d;
}

static void attribute_free(dnn_attribute *attribute) {
    if (attribute->type == DNN_TYPE_DESCRIPTOR) {
        dnn_descriptor **children = attribute->data;
        for (int64_t i = 0; i < attribute->count; i++) {
            dnn_descriptor_drop(children[i]);
        }
    }
    free(attribute->data);
}

static void descriptor_empty(dnn_descriptor *d) {
    for (int i = 0; i < d->attribute_count; i++) {
        attribute_free(&d->attributes[i]);
    }
    d->attribute_count = 0;
    free(d->program);
    d->program = NULL;
    d->final = false;
}

void dnn_descriptor_drop(dnn_descriptor *d) {
    /* Plans are made by several threads at a time, from descriptors that they may share. */
    if (d == NULL || __atomic_sub_fetch(&d->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    descriptor_empty(d);
    d->seal = 0;
    free(d);
}

const dnn_attribute *dnn_find(const dnn_descriptor *d, int name) {
    for (int i = 0; i < d->attribute_count; i++) {
        if (d->attributes[i].name == name) {
            return &d->attributes[i];
        }
    }
    return NULL;
}

int dnn_put(dnn_descriptor *d, int name, int type, int64_t count, const void *data) {
    size_t bytes = (size_t)count * dnn_type_bytes(type);
    dnn_attribute fresh = {name, type, count, malloc(bytes + 1)};
    if (fresh.data == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for an attribute of %zu bytes", bytes);
    }
    memcpy(fresh.data, data, bytes);
    if (type == DNN_TYPE_DESCRIPTOR) {
        dnn_descriptor **children = fresh.data;
        for (int64_t i = 0; i < count; i++) {
            __atomic_add_fetch(&children[i]->users, 1, __ATOMIC_ACQ_REL);
        }
    }
    for (int i = 0; i < d->attribute_count; i++) {
        if (d->attributes[i].name == name) {
            attribute_free(&d->attributes[i]);
            d->attributes[i] = fresh;
            return DNN_GOOD;
        }
    }
    d->attributes[d->attribute_count++] = fresh; /* there are fewer rules for any kind than room */
    return DNN_GOOD;
}

int64_t dnn_integer(const dnn_descriptor *d, int name, int64_t otherwise) {
    const dnn_attribute *found = dnn_find(d, name);
    if (found == NULL) {
        return otherwise;
    }
    size_t bytes = dnn_type_bytes(found->type);
    if (bytes == 8) {
        return *(const int64_t *)found->data;
    }
    return bytes == 4 ? *(const int32_t *)found->data : *(const unsigned char *)found->data;
}

float dnn_real(const dnn_descriptor *d, int name, float otherwise) {
    const dnn_attribute *found = dnn_find(d, name);
    if (found == NULL) {
        return otherwise;
    }
    return found->type == DNN_TYPE_DOUBLE ? (float)*(const double *)found->data
                                          : *(const float *)found->data;
}

dnn_descriptor *dnn_child(const dnn_descriptor *d, int name) {
    const dnn_attribute *found = dnn_find(d, name);
    return found != NULL ? *(dnn_descriptor **)found->data : NULL;
}

/* Makes `to` the same as `from`, which is how a caller is given a descriptor. */
static int descriptor_copy(dnn_descriptor *to, const dnn_descriptor *from) {
    descriptor_empty(to);
    for (int i = 0; i < from->attribute_count; i++) {
        const dnn_attribute *a = &from->attributes[i];
        int status = dnn_put(to, a->name, a->type, a->count, a->data);
        if (status != DNN_GOOD) {
            return status;
        }
    }
    if (from->program != NULL) {
        to->program = malloc(sizeof *to->program);
        if (to->program == NULL) {
            return dnn_fail(DNN_NO_MEMORY, "no memory for a program");
        }
        *to->program = *from->program;
    }
    to->final = from->final;
    return DNN_GOOD;
}

static int check_elements(const dnn_rule *rule, int64_t count, const void *elements) {
    if (rule->type == DNN_TYPE_DESCRIPTOR) {
        dnn_descriptor *const *children = elements;
        for (int64_t i = 0; i < count; i++) {
            if (!is_descriptor(children[i])) {
                return dnn_fail(DNN_BAD_PARAM, "element %d of attribute %d is no descriptor",
                                (int)i, rule->name);
            }
            if (!children[i]->final) {
                return dnn_fail(DNN_NOT_FINALIZED,
                                "element %d of attribute %d, a descriptor of kind %d, is not final",
                                (int)i, rule->name, children[i]->kind);
            }
        }
    } else if (rule->type == DNN_TYPE_HANDLE && !is_handle(*(dnn_handle *const *)elements)) {
        return dnn_fail(DNN_BAD_PARAM, "attribute %d is no handle", rule->name);
    }
    return DNN_GOOD;
}

/* Factors may be given as double too. */
static bool type_fits(const dnn_rule *rule, int type) {
    return type == rule->type || (rule->type == DNN_TYPE_FLOAT && type == DNN_TYPE_DOUBLE);
}

int cudnnBackendSetAttribute(dnn_descriptor *d, int name, int type, int64_t count,
                             const void *elements) {
    if (!is_descriptor(d)) {
        return dnn_fail(DNN_BAD_PARAM, "an attribute is set of what is no descriptor");
    }
    const dnn_rule *rule = dnn_rule_of(d->kind, name);
    if (d->final) {
        return dnn_fail(DNN_NOT_INITIALIZED, "attribute %d is set of a final descriptor of kind %d",
                        name, d->kind);
    }
    if (rule == NULL || rule->told) {
        return dnn_fail(DNN_BAD_PARAM, "a descriptor of kind %d has no attribute %d to set",
                        d->kind, name);
    }
    if (!type_fits(rule, type)) {
        return dnn_fail(DNN_ATTRIBUTE_TYPE, "attribute %d has type %d, but is set as %d", name,
                        rule->type, type);
    }
    if (count < 0 || count > rule->most || (count > 0 && elements == NULL)) {
        return dnn_fail(DNN_BAD_PARAM, "attribute %d is set with %lld elements, at most %d fit",
                        name, (long long)count, rule->most);
    }
    if (count == 0) { /* the same as not to set it */
        return DNN_GOOD;
    }
    int status = check_elements(rule, count, elements);
    return status == DNN_GOOD ? dnn_put(d, name, type, count, elements) : status;
}

int cudnnBackendGetAttribute(dnn_descriptor *d, int name, int type, int64_t room, int64_t *count,
                             void *elements) {
    if (!is_descriptor(d)) {
        return dnn_fail(DNN_BAD_PARAM, "an attribute is read of what is no descriptor");
    }
    const dnn_rule *rule = dnn_rule_of(d->kind, name);
    if (!d->final) {
        return dnn_fail(DNN_NOT_FINALIZED, "attribute %d is read of a descriptor that is not final",
                        name);
    }
    if (rule == NULL) {
        return dnn_fail(DNN_BAD_PARAM, "a descriptor of kind %d has no attribute %d", d->kind,
                        name);
    }
    if (!type_fits(rule, type)) {
        return dnn_fail(DNN_ATTRIBUTE_TYPE, "attribute %d has type %d, but is read as %d", name,
                        rule->type, type);
    }
    const dnn_attribute *found = dnn_find(d, name);
    int64_t all = found != NULL ? found->count : 0;
    if (count != NULL) {
        *count = all;
    }
    if (room == 0 || elements == NULL || all == 0) {
        return count != NULL ? DNN_GOOD : dnn_fail(DNN_NULL_POINTER, "nowhere to tell the count");
    }
    int64_t told = all < room ? all : room;
    if (rule->type != DNN_TYPE_DESCRIPTOR) {
        if (found->type != type) {
            return dnn_fail(DNN_ATTRIBUTE_TYPE, "attribute %d was set as type %d, read as %d", name,
                            found->type, type);
        }
        memcpy(elements, found->data, (size_t)told * dnn_type_bytes(type));
        return DNN_GOOD;
    }
    dnn_descriptor **theirs = elements;
    dnn_descriptor *const *ours = found->data;
    for (int64_t i = 0; i < told; i++) {
        if (!is_descriptor(theirs[i]) || theirs[i]->kind != ours[i]->kind) {
            return dnn_fail(DNN_DESCRIPTOR_TYPE,
                            "element %d of attribute %d must be a descriptor of kind %d made by "
                            "the caller",
                            (int)i, name, ours[i]->kind);
        }
        int status = descriptor_copy(theirs[i], ours[i]);
        if (status != DNN_GOOD) {
            return status;
        }
    }
    return DNN_GOOD;
}

static int finish(dnn_descriptor *d) {
    switch (d->kind) {
    case DNN_TENSOR:
        return dnn_check_tensor(d);
    case DNN_CONVOLUTION:
        return dnn_check_convolution(d);
    case DNN_POINTWISE:
        return dnn_check_pointwise(d);
    case DNN_OP_FORWARD:
    case DNN_OP_DATA:
    case DNN_OP_FILTER:
    case DNN_OP_POINTWISE:
    case DNN_OP_STATS:
        return dnn_check_operation(d);
    case DNN_GRAPH:
        return dnn_make_graph(d);
    case DNN_HEURISTIC:
        return dnn_make_heuristic(d);
    case DNN_ENGINE:
        return dnn_make_engine(d);
    case DNN_CONFIG:
        return dnn_make_config(d);
    case DNN_PLAN:
        return dnn_make_plan(d);
    case DNN_PACK:
        return dnn_find(d, DNN_PACK_IDS)->count == dnn_find(d, DNN_PACK_POINTERS)->count
                   ? DNN_GOOD
                   : dnn_fail(DNN_BAD_PARAM, "a variant pack has as many pointers as numbers");
    case DNN_KNOB_INFO:
        return dnn_fail(DNN_BAD_PARAM, "what a knob can be is told, not made");
    default: /* DNN_KNOB, DNN_DEVICE: nothing to check */
        return DNN_GOOD;
    }
}

int cudnnBackendFinalize(dnn_descriptor *d) {
    if (!is_descriptor(d)) {
        return dnn_fail(DNN_BAD_PARAM, "what is to be final is no descriptor");
    }
    if (d->final) {
        return dnn_fail(DNN_BAD_PARAM, "a descriptor of kind %d is final already", d->kind);
    }
    const dnn_rule *missing = dnn_rule_missing(d);
    if (missing != NULL) {
        return dnn_fail(DNN_BAD_PARAM, "a descriptor of kind %d lacks attribute %d", d->kind,
                        missing->name);
    }
    int status = finish(d);
    d->final = status == DNN_GOOD;
    return status;
}

int cudnnBackendCreateDescriptor(int kind, dnn_descriptor **descriptor) {
    if (descriptor == NULL || !dnn_kind_known(kind)) {
        return dnn_fail(DNN_NOT_SUPPORTED, "there is no descriptor of kind %d here", kind);
    }
    *descriptor = dnn_descriptor_new(kind);
    return *descriptor != NULL ? DNN_GOOD : dnn_fail(DNN_NO_MEMORY, "no memory for a descriptor");
}

int cudnnBackendDestroyDescriptor(dnn_descriptor *d) {
    if (d != NULL && !is_descriptor(d)) {
        return dnn_fail(DNN_BAD_PARAM, "what is destroyed is no descriptor");
    }
    dnn_descriptor_drop(d);
    return DNN_GOOD;
}

/* The pointers of a pack, by the tensors of a program. */
static int match_pointers(dnn_run *run, const dnn_descriptor *pack) {
    const dnn_attribute *ids = dnn_find(pack, DNN_PACK_IDS);
    const int64_t *id = ids->data;
    unsigned char *const *pointers = dnn_find(pack, DNN_PACK_POINTERS)->data;
    for (int t = 0; t < run->program.tensor_count; t++) {
        const dnn_tensor *tensor = &run->program.tensors[t];
        if (tensor->is_virtual) {
            continue;
        }
        for (int64_t i = 0; i < ids->count; i++) {
            if (id[i] == tensor->uid) {
                run->pointers[t] = pointers[i];
            }
        }
        if (run->pointers[t] == NULL) {
            return dnn_fail(DNN_NULL_POINTER, "the variant pack has no pointer for tensor %lld",
                            (long long)tensor->uid);
        }
        if ((uintptr_t)run->pointers[t] % (uintptr_t)tensor->alignment != 0) {
            return dnn_fail(DNN_MISALIGNED_POINTER, "tensor %lld does not lie on %lld bytes",
                            (long long)tensor->uid, (long long)tensor->alignment);
        }
    }
    return DNN_GOOD;
}

int cudnnBackendExecute(dnn_handle *handle, dnn_descriptor *plan, dnn_descriptor *pack) {
    if (!is_handle(handle) || !is_descriptor(plan) || !is_descriptor(pack) ||
        plan->kind != DNN_PLAN || pack->kind != DNN_PACK) {
        return dnn_fail(DNN_BAD_PARAM, "to run takes a handle, a plan and a variant pack");
    }
    if (!plan->final || !pack->final) {
        return dnn_fail(DNN_NOT_FINALIZED, "a plan or a variant pack is not final");
    }
    dnn_run run = {.program = *plan->program, .turn = handle->turns++};
    int status = match_pointers(&run, pack);
    if (status != DNN_GOOD) {
        return status;
    }
    const dnn_attribute *workspace = dnn_find(pack, DNN_PACK_WORKSPACE);
    run.workspace = workspace != NULL ? *(unsigned char **)workspace->data : NULL;
    if (run.workspace == NULL && dnn_workspace_bytes(run.program.engine) > 0) {
        return dnn_fail(DNN_NULL_POINTER, "the plan needs a workspace of %zu bytes",
                        dnn_workspace_bytes(run.program.engine));
    }
    if (emu_put_on_stream(handle->stream, dnn_compute, &run, sizeof run) != 0) {
        return dnn_fail(DNN_EXECUTION_FAILED, "the stream refuses a plan");
    }
    return DNN_GOOD;
}

int cudnnCreate(dnn_handle **handle) {
    if (handle == NULL) {
        return dnn_fail(DNN_NULL_POINTER, "nowhere to put a handle");
    }
    *handle = calloc(1, sizeof **handle);
    if (*handle == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for a handle");
    }
    (*handle)->seal = DNN_HANDLE_SEAL;
    return DNN_GOOD;
}

int cudnnDestroy(dnn_handle *handle) {
    if (!is_handle(handle)) {
        return dnn_fail(DNN_BAD_PARAM, "what is destroyed is no handle");
    }
    handle->seal = 0;
    free(handle);
    return DNN_GOOD;
}

int cudnnSetStream(dnn_handle *handle, void *stream) {
    if (!is_handle(handle)) {
        return dnn_fail(DNN_BAD_PARAM, "a stream is set of what is no handle");
    }
    handle->stream = stream;
    return DNN_GOOD;
}

int cudnnGetStream(dnn_handle *handle, void **stream) {
    if (!is_handle(handle) || stream == NULL) {
        return dnn_fail(DNN_BAD_PARAM, "a stream is asked of what is no handle");
    }
    *stream = handle->stream;
    return DNN_GOOD;
}

size_t cudnnGetVersion(void) {
    return DNN_VERSION;
}

const char *cudnnGetErrorString(int status) {
    switch (status / 1000 * 1000) {
    case DNN_GOOD:
        return "CUDNN_STATUS_SUCCESS";
    case 1000:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case DNN_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case DNN_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case DNN_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

void cudnnGetLastErrorString(char *message, size_t room) {
    snprintf(message, room, "%s", last_error);
    last_error[0] = '\0';
}
