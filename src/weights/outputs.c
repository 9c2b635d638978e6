/* outputs.c - from logits to probabilities and numbers, and the text that a checkpoint keeps. */
#include "weights/outputs.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "metrics/probabilities.h"

stk_status stk_outputs_of(const stk_dataset *dataset, stk_outputs *outputs, stk_error *err) {
    const stk_targets *t = &dataset->targets;
    *outputs = (stk_outputs){.task = dataset->task, .count = dataset->class_count};
    if (dataset->task != STK_TASK_REGRESSION) {
        return STK_OK;
    }
    outputs->units = stk_mem_new((size_t)outputs->count, sizeof *outputs->units);
    if (outputs->units == NULL) {
        return STK_FAIL_MEMORY(err, "the numbers to predict");
    }
    for (int k = 0; k < outputs->count; k++) {
        outputs->units[k] =
            (stk_output_unit){t->mean[k], t->scale[k], t->least[k], t->most[k]};
    }
    return STK_OK;
}

void stk_outputs_free(stk_outputs *outputs) {
    stk_mem_free(outputs->units);
    memset(outputs, 0, sizeof *outputs);
}

void stk_outputs_values(const stk_outputs *outputs, const float *logits, double temperature,
                        double *values) {
    if (outputs->task == STK_TASK_MULTILABEL) {
        stk_sigmoids(logits, outputs->count, temperature, values);
    } else if (outputs->task == STK_TASK_REGRESSION) {
        for (int k = 0; k < outputs->count; k++) {
            const stk_output_unit *unit = &outputs->units[k];
            double value = logits[k] * unit->scale + unit->mean;
            values[k] = isnan(value) ? unit->mean : fmin(fmax(value, unit->least), unit->most);
        }
    } else {
        stk_softmax(logits, outputs->count, temperature, values);
    }
}

void stk_outputs_restore(const stk_outputs *outputs, const float *learned, float *values) {
    for (int k = 0; k < outputs->count; k++) {
        values[k] = outputs->units == NULL
                        ? learned[k]
                        : (float)(learned[k] * outputs->units[k].scale + outputs->units[k].mean);
    }
}

static void put_list(stk_json_writer *json, const stk_outputs *outputs, const char *key,
                     size_t offset) {
    stk_json_key(json, key);
    stk_json_begin_array(json);
    for (int k = 0; k < outputs->count; k++) {
        stk_json_put_double(json, *(const double *)((const char *)&outputs->units[k] + offset));
    }
    stk_json_end_array(json);
}

/* The members of a unit, as the JSON object calls them. */
static const struct {
    const char *key;
    size_t offset;
} members[] = {{"mean", offsetof(stk_output_unit, mean)},
               {"scale", offsetof(stk_output_unit, scale)},
               {"least", offsetof(stk_output_unit, least)},
               {"most", offsetof(stk_output_unit, most)}};

void stk_outputs_append(const stk_outputs *outputs, stk_str *out) {
    stk_json_writer json = stk_json_write_to(out, 0);
    stk_json_begin_object(&json);
    stk_json_key(&json, "task");
    stk_json_put_string(&json, stk_task_name(outputs->task));
    for (size_t i = 0; outputs->units != NULL && i < STK_COUNT(members); i++) {
        put_list(&json, outputs, members[i].key, members[i].offset);
    }
    stk_json_end_object(&json);
}

/* Reads one member of all units. */
static bool read_list(const stk_json *object, const char *key, size_t offset,
                      stk_outputs *outputs) {
    const stk_json *list = stk_json_get(object, key);
    if (stk_json_count(list) != (size_t)outputs->count) {
        return false;
    }
    const stk_json *item = stk_json_at(list, 0);
    for (int k = 0; k < outputs->count; k++, item = stk_json_next(list, item)) {
        double value = stk_json_number(item, NAN);
        if (!isfinite(value)) {
            return false;
        }
        *(double *)((char *)&outputs->units[k] + offset) = value;
    }
    return true;
}

static bool read_object(const stk_json *object, stk_outputs *outputs) {
    const char *task = stk_json_string(stk_json_get(object, "task"));
    bool known = false;
    for (int t = STK_TASK_AUTO; task != NULL && t <= STK_TASK_RANKING; t++) {
        if (strcmp(task, stk_task_name((stk_task)t)) == 0) {
            outputs->task = (stk_task)t;
            known = true;
        }
    }
    for (size_t i = 0; known && outputs->task == STK_TASK_REGRESSION && i < STK_COUNT(members);
         i++) {
        known = read_list(object, members[i].key, members[i].offset, outputs);
    }
    return known;
}

stk_status stk_outputs_read(const char *text, int count, stk_outputs *outputs, stk_error *err) {
    stk_json *object = NULL;
    *outputs = (stk_outputs){.count = count};
    if (text == NULL) {
        return STK_OK;
    }
    stk_status status = stk_json_parse(text, strlen(text), &object, NULL);
    outputs->units = stk_mem_new((size_t)count, sizeof *outputs->units);
    if (status == STK_ERR_MEMORY || outputs->units == NULL) {
        status = STK_FAIL_MEMORY(err, "a checkpoint");
    } else if (status != STK_OK || !read_object(object, outputs)) {
        status = STK_FAIL(err, STK_ERR_DATA, "the metadata 'outputs' are damaged");
    }
    stk_json_free(object);
    if (status == STK_OK && outputs->task != STK_TASK_REGRESSION) {
        stk_mem_free(outputs->units);
        outputs->units = NULL;
    }
    if (status != STK_OK) {
        stk_outputs_free(outputs);
    }
    return status;
}
