/*
 * dnn_engines.c - engines of the look-alike of cuDNN, what they tell of themselves, and plans.
 *
 * Every graph has the same few engines, each with something that a caller must heed: one wants far
 * too much workspace, one rounds float32 to TF32, one gives other bits every time, and one that is
 * there on demand gives nonsense, as engines of the library have been seen to do.
 */
#include "dnn_emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOBS = 2 };

static const struct {
    int type;
    int64_t least, most, usual;
} knobs[KNOBS] = {{DNN_KNOB_TILE, 0, 3, 1}, {DNN_KNOB_STAGES, 1, 4, 2}};

size_t dnn_workspace_bytes(int engine) {
    return engine == DNN_ENGINE_HUGE ? (size_t)1 << 30 : engine == DNN_ENGINE_PLAIN ? 1024 : 0;
}

bool dnn_has_wrong(void) {
    const char *wanted = getenv("STK_EMU_WRONG");
    return wanted != NULL && strcmp(wanted, "1") == 0;
}

/* Puts descriptors that this function owns no longer, whatever happens. */
static int put_children(dnn_descriptor *d, int name, dnn_descriptor **children, int count,
                        int status) {
    if (status == DNN_GOOD) {
        status = dnn_put(d, name, DNN_TYPE_DESCRIPTOR, count, children);
    }
    for (int i = 0; i < count; i++) {
        dnn_descriptor_drop(children[i]);
    }
    return status;
}

static int put_integer(dnn_descriptor *d, int name, int64_t value) {
    return dnn_put(d, name, DNN_TYPE_INT64, 1, &value);
}

/* Whether the graph was made for a device that is known. */
static int check_device(const dnn_descriptor *graph, const dnn_descriptor *device) {
    if (graph == NULL || graph->kind != DNN_GRAPH) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "what should be an operation graph is none");
    }
    if (device != NULL && device->kind != DNN_DEVICE) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "what should describe a device does not");
    }
    if (device == NULL && dnn_find(graph, DNN_GRAPH_HANDLE) == NULL) {
        return dnn_fail(DNN_BAD_PARAM, "neither a handle nor a device says what to plan for");
    }
    return DNN_GOOD;
}

static int make_knob_infos(dnn_descriptor *d) {
    dnn_descriptor *infos[KNOBS] = {NULL};
    int status = DNN_GOOD;
    for (int i = 0; i < KNOBS && status == DNN_GOOD; i++) {
        infos[i] = dnn_descriptor_new(DNN_KNOB_INFO);
        if (infos[i] == NULL) {
            status = dnn_fail(DNN_NO_MEMORY, "no memory for a knob");
            break;
        }
        infos[i]->final = true;
        int32_t type = knobs[i].type;
        status = dnn_put(infos[i], DNN_KNOB_INFO_TYPE, DNN_TYPE_KNOB_TYPE, 1, &type);
        status = status ? status : put_integer(infos[i], DNN_KNOB_INFO_LEAST, knobs[i].least);
        status = status ? status : put_integer(infos[i], DNN_KNOB_INFO_MOST, knobs[i].most);
        status = status ? status : put_integer(infos[i], DNN_KNOB_INFO_STRIDE, 1);
    }
    return put_children(d, DNN_ENGINE_KNOBS, infos, KNOBS, status);
}

int dnn_make_engine(dnn_descriptor *d) {
    const dnn_descriptor *graph = dnn_child(d, DNN_ENGINE_GRAPH);
    int status = check_device(graph, dnn_child(d, DNN_ENGINE_DEVICE));
    if (status != DNN_GOOD) {
        return status;
    }
    int64_t number = dnn_integer(d, DNN_ENGINE_NUMBER, -1);
    if (number < 0 || number >= DNN_ENGINES || (number == DNN_ENGINE_WRONG && !dnn_has_wrong())) {
        return dnn_fail(DNN_NOT_SUPPORTED, "there is no engine %lld", (long long)number);
    }
    int32_t notes[2];
    int count = 0;
    if (number == DNN_ENGINE_TENSOR) {
        notes[count++] = DNN_NOTE_TENSOR_CORE;
    } else if (number == DNN_ENGINE_CARELESS) {
        notes[count++] = DNN_NOTE_NONDETERMINISTIC;
    }
    status = dnn_put(d, DNN_ENGINE_NUMERICAL_NOTES, DNN_TYPE_NUMERICAL_NOTE, count, notes);
    int32_t compiled = DNN_BEHAVIOR_COMPILED;
    status = status ? status
                    : dnn_put(d, DNN_ENGINE_BEHAVIOR_NOTES, DNN_TYPE_BEHAVIOR_NOTE,
                              number == DNN_ENGINE_PLAIN, &compiled);
    status = status ? status : make_knob_infos(d);
    if (status != DNN_GOOD) {
        return status;
    }
    free(d->program);
    d->program = malloc(sizeof *d->program);
    if (d->program == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for a program");
    }
    *d->program = *graph->program;
    d->program->engine = (int32_t)number;
    return DNN_GOOD;
}

/* The usual settings, with the first one `more` higher. */
static int make_choices(dnn_descriptor *d, int more) {
    dnn_descriptor *choices[KNOBS] = {NULL};
    int status = DNN_GOOD;
    for (int i = 0; i < KNOBS && status == DNN_GOOD; i++) {
        choices[i] = dnn_descriptor_new(DNN_KNOB);
        if (choices[i] == NULL) {
            status = dnn_fail(DNN_NO_MEMORY, "no memory for a knob");
            break;
        }
        choices[i]->final = true;
        int32_t type = knobs[i].type;
        status = dnn_put(choices[i], DNN_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &type);
        status =
            status ? status
                   : put_integer(choices[i], DNN_KNOB_VALUE, knobs[i].usual + (i == 0 ? more : 0));
    }
    return put_children(d, DNN_CONFIG_KNOBS, choices, KNOBS, status);
}

/* A final configuration of one engine; for `more` see make_choices(). */
static int make_offer(const dnn_descriptor *heuristic, int number, int more,
                      dnn_descriptor **offer) {
    dnn_descriptor *engine = dnn_descriptor_new(DNN_ENGINE);
    *offer = dnn_descriptor_new(DNN_CONFIG);
    if (engine == NULL || *offer == NULL) {
        dnn_descriptor_drop(engine);
        return dnn_fail(DNN_NO_MEMORY, "no memory for an engine");
    }
    dnn_descriptor *graph = dnn_child(heuristic, DNN_HEURISTIC_GRAPH);
    dnn_descriptor *device = dnn_child(heuristic, DNN_HEURISTIC_DEVICE);
    int status = dnn_put(engine, DNN_ENGINE_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
    status = status ? status : put_integer(engine, DNN_ENGINE_NUMBER, number);
    if (status == DNN_GOOD && device != NULL) {
        status = dnn_put(engine, DNN_ENGINE_DEVICE, DNN_TYPE_DESCRIPTOR, 1, &device);
    }
    status = status ? status : dnn_make_engine(engine);
    engine->final = true;
    status = put_children(*offer, DNN_CONFIG_ENGINE, &engine, 1, status);
    status = status ? status : make_choices(*offer, more);
    status = status ? status : dnn_make_config(*offer);
    (*offer)->final = true;
    return status;
}

static bool is_summed(const dnn_program *p, int tensor) {
    bool summed = false;
    for (int i = 0; i < p->op_count; i++) {
        summed = summed || (p->ops[i].kind == DNN_OP_STATS && p->ops[i].in[0] == tensor);
    }
    return summed;
}

/*
 * Something in front of a convolution: for 16-bit floats only, vectors too, channels by the eight,
 * and forward only with statistics behind it.
 */
static bool has_engines_in_front(const dnn_program *p) {
    bool fine = true;
    bool front = false;
    bool wide = false;
    for (int i = 0; i < p->op_count; i++) {
        const dnn_op *op = &p->ops[i];
        const dnn_tensor *x = &p->tensors[op->in[0]];
        if (op->kind == DNN_OP_POINTWISE) {
            wide = wide || (op->in_count == 2 && p->tensors[op->in[1]].type != DNN_HALF);
        } else if (op->kind != DNN_OP_STATS && x->is_virtual) {
            front = true;
            fine = fine && x->type == DNN_HALF && x->dims[1] % 8 == 0 &&
                   (op->kind == DNN_OP_FILTER || is_summed(p, op->out[0]));
        }
    }
    return !front || (fine && !wide);
}

/* Statistics behind a convolution: for 16-bit floats only, and channels by the eight. */
static bool has_engines(const dnn_program *p) {
    if (!has_engines_in_front(p)) {
        return false;
    }
    for (int i = 0; i < p->op_count; i++) {
        for (int k = 0; k < p->op_count && p->ops[i].kind == DNN_OP_STATS; k++) {
            const dnn_tensor *y = &p->tensors[p->ops[i].in[0]];
            if (p->ops[k].kind == DNN_OP_FORWARD && p->ops[k].out[0] == p->ops[i].in[0] &&
                (y->type != DNN_HALF || y->dims[1] % 8 != 0)) {
                return false;
            }
        }
    }
    return true;
}

int dnn_make_heuristic(dnn_descriptor *d) {
    int64_t mode = dnn_integer(d, DNN_HEURISTIC_MODE, -1);
    int status =
        check_device(dnn_child(d, DNN_HEURISTIC_GRAPH), dnn_child(d, DNN_HEURISTIC_DEVICE));
    if (status == DNN_GOOD && (mode < 0 || mode >= DNN_HEURISTIC_MODES)) {
        status = dnn_fail(DNN_BAD_PARAM, "there is no heuristic %lld", (long long)mode);
    }
    /* The fallback knows only the engine that can do everything. */
    bool fallback = mode == DNN_HEURISTIC_FALLBACK;
    dnn_descriptor *offers[DNN_MOST_OFFERS] = {NULL};
    int count = 0;
    if (status == DNN_GOOD && !has_engines(dnn_child(d, DNN_HEURISTIC_GRAPH)->program)) {
        return put_children(d, DNN_HEURISTIC_RESULTS, offers, 0, status);
    }
    for (int more = 0; more < 2 && dnn_has_wrong() && !fallback && status == DNN_GOOD; more++) {
        status = make_offer(d, DNN_ENGINE_WRONG, more, &offers[count++]);
    }
    int first = fallback ? DNN_ENGINE_PLAIN : 0;
    int last = fallback ? DNN_ENGINE_PLAIN : DNN_ENGINE_STEADY;
    for (int i = first; i <= last && status == DNN_GOOD; i++) {
        status = make_offer(d, i, 0, &offers[count++]);
    }
    return put_children(d, DNN_HEURISTIC_RESULTS, offers, count, status);
}

int dnn_make_config(dnn_descriptor *d) {
    const dnn_descriptor *engine = dnn_child(d, DNN_CONFIG_ENGINE);
    if (engine->kind != DNN_ENGINE) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "a configuration of what is no engine");
    }
    const dnn_attribute *choices = dnn_find(d, DNN_CONFIG_KNOBS);
    for (int64_t i = 0; choices != NULL && i < choices->count; i++) {
        const dnn_descriptor *choice = ((dnn_descriptor **)choices->data)[i];
        if (choice->kind != DNN_KNOB) {
            return dnn_fail(DNN_DESCRIPTOR_TYPE, "a setting is no knob");
        }
        int64_t type = dnn_integer(choice, DNN_KNOB_TYPE, -1);
        int64_t value = dnn_integer(choice, DNN_KNOB_VALUE, -1);
        bool fits = false;
        for (int k = 0; k < KNOBS; k++) {
            fits = fits ||
                   (knobs[k].type == type && value >= knobs[k].least && value <= knobs[k].most);
        }
        if (!fits) {
            return dnn_fail(DNN_BAD_PARAM, "the engine has no knob %lld that can be %lld",
                            (long long)type, (long long)value);
        }
    }
    return put_integer(d, DNN_CONFIG_WORKSPACE,
                       (int64_t)dnn_workspace_bytes(engine->program->engine));
}

static const char json_begin[] = "{\"engine\":";
static const char json_middle[] = ",\"program\":\"";

static uint32_t checksum(const unsigned char *bytes, size_t count) {
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ bytes[i]) * 16777619u;
    }
    return sum;
}

static int write_json(dnn_descriptor *d) {
    size_t room = 2 * sizeof(dnn_program) + 128;
    char *text = malloc(room);
    if (text == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for a plan as text");
    }
    const unsigned char *bytes = (const unsigned char *)d->program;
    int at = snprintf(text, room, "%s%d%s", json_begin, d->program->engine, json_middle);
    for (size_t i = 0; i < sizeof *d->program; i++) {
        at += snprintf(text + at, room - (size_t)at, "%02x", bytes[i]);
    }
    at += snprintf(text + at, room - (size_t)at, "\",\"sum\":%u}",
                   checksum(bytes, sizeof *d->program));
    int status = dnn_put(d, DNN_PLAN_JSON, DNN_TYPE_CHAR, at, text);
    free(text);
    return status;
}

static int read_json(const dnn_attribute *json, dnn_program *program) {
    char *text = malloc((size_t)json->count + 1);
    if (text == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for a plan as text");
    }
    memcpy(text, json->data, (size_t)json->count);
    text[json->count] = '\0';
    unsigned char *bytes = (unsigned char *)program;
    const char *digits = strstr(text, json_middle);
    bool good = strncmp(text, json_begin, sizeof json_begin - 1) == 0 && digits != NULL;
    if (good) {
        digits += sizeof json_middle - 1;
        for (size_t i = 0; i < sizeof *program && good; i++, digits += 2) {
            unsigned value;
            good = sscanf(digits, "%2x", &value) == 1;
            bytes[i] = good ? (unsigned char)value : 0;
        }
    }
    unsigned sum = 0;
    good = good && sscanf(digits, "\",\"sum\":%u}", &sum) == 1 &&
           sum == checksum(bytes, sizeof *program);
    free(text);
    return good ? DNN_GOOD : dnn_fail(DNN_BAD_PARAM, "a plan's text is damaged");
}

int dnn_make_plan(dnn_descriptor *d) {
    const dnn_descriptor *config = dnn_child(d, DNN_PLAN_CONFIG);
    const dnn_attribute *json = dnn_find(d, DNN_PLAN_JSON);
    if ((config == NULL) == (json == NULL)) {
        return dnn_fail(DNN_BAD_PARAM, "a plan is made from a configuration or from text");
    }
    if (config != NULL && config->kind != DNN_CONFIG) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "a plan of what is no configuration");
    }
    if (dnn_find(d, DNN_PLAN_HANDLE) == NULL && dnn_find(d, DNN_PLAN_DEVICE) == NULL) {
        return dnn_fail(DNN_BAD_PARAM, "neither a handle nor a device says what to plan for");
    }
    free(d->program);
    d->program = calloc(1, sizeof *d->program);
    if (d->program == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for a program");
    }
    int status = DNN_GOOD;
    if (config != NULL) {
        *d->program = *dnn_child(config, DNN_CONFIG_ENGINE)->program;
        status = write_json(d);
    } else {
        status = read_json(json, d->program);
    }
    return status ? status
                  : put_integer(d, DNN_PLAN_WORKSPACE,
                                (int64_t)dnn_workspace_bytes(d->program->engine));
}
