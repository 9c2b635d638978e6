/* outputs.c - from logits to probabilities and numbers, and the text that a checkpoint keeps. */
#include "weights/outputs.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "metrics/probabilities.h"

static stk_status copy_units(stk_outputs *outputs, const stk_targets *t, stk_error *err) {
    outputs->units = stk_mem_new((size_t)outputs->count, sizeof *outputs->units);
    if (outputs->units == NULL) {
        return STK_FAIL_MEMORY(err, "the numbers to predict");
    }
    for (int k = 0; k < outputs->count; k++) {
        outputs->units[k] = (stk_output_unit){t->mean[k], t->scale[k], t->least[k], t->most[k]};
    }
    return STK_OK;
}

static stk_status copy_exclusive(stk_outputs *outputs, const stk_targets *t, stk_error *err) {
    size_t count = (size_t)outputs->count;
    outputs->exclusive = stk_mem_new(count, sizeof *outputs->exclusive);
    if (outputs->exclusive == NULL) {
        return STK_FAIL_MEMORY(err, "the labels to predict");
    }
    memcpy(outputs->exclusive, t->exclusive, count * sizeof *outputs->exclusive);
    return STK_OK;
}

stk_status stk_outputs_of(const stk_dataset *dataset, stk_outputs *outputs, stk_error *err) {
    const stk_targets *t = &dataset->targets;
    *outputs = (stk_outputs){.task = dataset->task,
                             .count = dataset->class_count,
                             .pictures = dataset->train.count,
                             .steps = dataset->task == STK_TASK_ORDINAL,
                             .has_answer = true,
                             .answer = dataset->answer,
                             .metric_given = dataset->metric_given,
                             .metric = dataset->metric};
    return dataset->task == STK_TASK_REGRESSION ? copy_units(outputs, t, err)
           : t->exclusive != NULL               ? copy_exclusive(outputs, t, err)
                                                : STK_OK;
}

void stk_outputs_free(stk_outputs *outputs) {
    stk_mem_free(outputs->units);
    stk_mem_free(outputs->exclusive);
    memset(outputs, 0, sizeof *outputs);
}

/* A number as it was learned, in its unit. */
static double restored(const stk_outputs *outputs, int k, double learned) {
    const stk_output_unit *unit = &outputs->units[k];
    return outputs->shares ? unit->least + learned * (unit->most - unit->least)
                           : learned * unit->scale + unit->mean;
}

void stk_outputs_values(const stk_outputs *outputs, const float *logits, double temperature,
                        double *values) {
    if (outputs->task == STK_TASK_MULTILABEL) {
        stk_sigmoids(logits, outputs->count, temperature, values);
    } else if (outputs->task == STK_TASK_REGRESSION) {
        for (int k = 0; k < outputs->count; k++) {
            const stk_output_unit *unit = &outputs->units[k];
            double output = logits[k];
            double value = restored(outputs, k, outputs->shares ? 1 / (1 + exp(-output)) : output);
            values[k] = isnan(value) ? unit->mean : fmin(fmax(value, unit->least), unit->most);
        }
    } else {
        stk_softmax(logits, outputs->count, temperature, values);
    }
}

void stk_outputs_restore(const stk_outputs *outputs, const float *learned, float *values) {
    for (int k = 0; k < outputs->count; k++) {
        values[k] = outputs->units == NULL ? learned[k] : (float)restored(outputs, k, learned[k]);
    }
}

/* The members of a unit, as the JSON object calls them. */
static const char *const members[] = {"mean", "scale", "least", "most"};

static double *member_of(stk_output_unit *unit, size_t member) {
    double *const places[] = {&unit->mean, &unit->scale, &unit->least, &unit->most};
    return places[member];
}

static void put_list(stk_json_writer *json, const stk_outputs *outputs, size_t member) {
    stk_json_key(json, members[member]);
    stk_json_begin_array(json);
    for (int k = 0; k < outputs->count; k++) {
        stk_json_put_double(json, *member_of(&outputs->units[k], member));
    }
    stk_json_end_array(json);
}

static void put_answer(stk_json_writer *json, const stk_answer *answer) {
    char divider[2] = {answer->divider, '\0'};
    stk_json_key(json, "answer");
    stk_json_begin_object(json);
    stk_json_key(json, "kind");
    stk_json_put_string(json, stk_answer_name(answer->kind));
    stk_json_key(json, "divider");
    stk_json_put_string(json, divider);
    stk_json_key(json, "most");
    stk_json_put_int(json, answer->most);
    stk_json_key(json, "positive");
    stk_json_put_int(json, answer->positive);
    stk_json_key(json, "stranger");
    stk_json_put_int(json, answer->stranger);
    if (answer->bracket != '\0') {
        const char bracket[2] = {answer->bracket, '\0'};
        const char quote[2] = {answer->quote, '\0'};
        stk_json_key(json, "bracket");
        stk_json_put_string(json, bracket);
        stk_json_key(json, "quote");
        stk_json_put_string(json, quote);
    }
    if (answer->shares) {
        stk_json_key(json, "shares");
        stk_json_put_bool(json, true);
    }
    stk_json_end_object(json);
}

/* The labels that stand alone, by number. */
static void put_exclusive(stk_json_writer *json, const stk_outputs *outputs) {
    stk_json_key(json, "exclusive");
    stk_json_begin_array(json);
    for (int k = 0; k < outputs->count; k++) {
        if (outputs->exclusive[k]) {
            stk_json_put_int(json, k);
        }
    }
    stk_json_end_array(json);
}

void stk_outputs_append(const stk_outputs *outputs, stk_str *out) {
    stk_json_writer json = stk_json_write_to(out, 0);
    stk_json_begin_object(&json);
    stk_json_key(&json, "task");
    stk_json_put_string(&json, stk_task_name(outputs->task));
    if (outputs->pictures > 0) {
        stk_json_key(&json, "pictures");
        stk_json_put_int(&json, (int64_t)outputs->pictures);
    }
    for (size_t i = 0; outputs->units != NULL && i < STK_COUNT(members); i++) {
        put_list(&json, outputs, i);
    }
    if (outputs->shares) {
        stk_json_key(&json, "shares");
        stk_json_put_bool(&json, true);
    }
    if (outputs->steps) {
        stk_json_key(&json, "steps");
        stk_json_put_bool(&json, true);
    }
    if (outputs->exclusive != NULL) {
        put_exclusive(&json, outputs);
    }
    if (outputs->has_answer) {
        put_answer(&json, &outputs->answer);
    }
    if (outputs->metric_given) {
        stk_json_key(&json, "metric");
        stk_json_put_string(&json, stk_metric_info_of(outputs->metric)->name);
    }
    stk_json_end_object(&json);
}

/* Reads one member of all units. */
static bool read_list(const stk_json *object, size_t member, stk_outputs *outputs) {
    const stk_json *list = stk_json_get(object, members[member]);
    if (stk_json_count(list) != (size_t)outputs->count) {
        return false;
    }
    const stk_json *item = stk_json_at(list, 0);
    for (int k = 0; k < outputs->count; k++, item = stk_json_next(list, item)) {
        double value = stk_json_number(item, NAN);
        if (!isfinite(value)) {
            return false;
        }
        *member_of(&outputs->units[k], member) = value;
    }
    return true;
}

/* A whole number from least to most; *good becomes false where there is none. */
static int read_int(const stk_json *object, const char *key, int least, int most, bool *good) {
    double number = stk_json_number(stk_json_get(object, key), NAN);
    bool fits = number >= least && number <= most && floor(number) >= number;
    *good = *good && fits;
    return fits ? (int)number : least;
}

/* Training pictures that a file may name. */
#define MOST_PICTURES 1e15

/* Names in one row of a ranked list, at most. */
#define MOST_RANKED 1000

/* The only character of a text; '\0': there is no text, or none that is one of these. */
static char read_character(const stk_json *object, const char *key, const char *known) {
    const char *text = stk_json_string(stk_json_get(object, key));
    bool fits = text != NULL && strlen(text) == 1 && strchr(known, text[0]) != NULL;
    return fits ? text[0] : '\0';
}

static bool read_answer(const stk_json *object, stk_outputs *outputs) {
    const char *kind = stk_json_string(stk_json_get(object, "kind"));
    const char *divider = stk_json_string(stk_json_get(object, "divider"));
    stk_answer *answer = &outputs->answer;
    bool good = divider != NULL && strlen(divider) <= 1;
    bool known = false;
    for (int k = 0; kind != NULL && k < STK_ANSWER_KINDS; k++) {
        if (strcmp(kind, stk_answer_name((stk_answer_kind)k)) == 0) {
            answer->kind = (stk_answer_kind)k;
            known = true;
        }
    }
    answer->divider = good ? divider[0] : ' ';
    answer->most = read_int(object, "most", 0, INT_MAX, &good);
    answer->most = answer->most < MOST_RANKED ? answer->most : MOST_RANKED;
    answer->positive = read_int(object, "positive", 0, outputs->count - 1, &good);
    answer->stranger = read_int(object, "stranger", -1, outputs->count - 1, &good);
    answer->bracket = read_character(object, "bracket", "[({");
    answer->quote = read_character(object, "quote", "'\"");
    answer->shares =
        stk_json_bool(stk_json_get(object, "shares"), false) && answer->kind == STK_ANSWER_NUMBERS;
    outputs->has_answer = good && known;
    return outputs->has_answer;
}

/* A metric that is not known, as of a later version, counts as none. */
static void read_metric(const stk_json *object, stk_outputs *outputs) {
    stk_metric metric = stk_metric_named(stk_json_string(stk_json_get(object, "metric")));
    if (metric != STK_METRIC_AUTO) {
        outputs->metric = metric;
        outputs->metric_given = true;
    }
}

static bool read_exclusive(const stk_json *list, stk_outputs *outputs) {
    bool good = true;
    for (const stk_json *item = stk_json_at(list, 0); good && item != NULL;
         item = stk_json_next(list, item)) {
        double label = stk_json_number(item, NAN);
        good = label >= 0 && label < outputs->count;
        if (good) {
            outputs->exclusive[(int)label] = true;
        }
    }
    return good;
}

static bool read_object(const stk_json *object, stk_outputs *outputs) {
    const char *task = stk_json_string(stk_json_get(object, "task"));
    outputs->task = stk_task_named(task);
    bool known = task != NULL && strcmp(task, stk_task_name(outputs->task)) == 0;
    for (size_t i = 0; known && outputs->task == STK_TASK_REGRESSION && i < STK_COUNT(members);
         i++) {
        known = read_list(object, i, outputs);
    }
    double pictures = stk_json_number(stk_json_get(object, "pictures"), 0);
    known = known && pictures >= 0 && pictures < MOST_PICTURES;
    outputs->pictures = known ? (size_t)pictures : 0;
    outputs->shares = stk_json_bool(stk_json_get(object, "shares"), false);
    outputs->steps = stk_json_bool(stk_json_get(object, "steps"), false);
    const stk_json *answer = stk_json_get(object, "answer");
    read_metric(object, outputs);
    known = known && (answer == NULL || read_answer(answer, outputs));
    return known && read_exclusive(stk_json_get(object, "exclusive"), outputs);
}

stk_status stk_outputs_read(const char *text, int count, stk_outputs *outputs, stk_error *err) {
    stk_json *object = NULL;
    *outputs = (stk_outputs){.count = count};
    if (text == NULL) {
        return STK_OK;
    }
    stk_status status = stk_json_parse(text, strlen(text), &object, NULL);
    outputs->units = stk_mem_new((size_t)count, sizeof *outputs->units);
    outputs->exclusive = stk_mem_new((size_t)count, sizeof *outputs->exclusive);
    if (status == STK_ERR_MEMORY || outputs->units == NULL || outputs->exclusive == NULL) {
        status = STK_FAIL_MEMORY(err, "a checkpoint");
    } else if (status != STK_OK || !read_object(object, outputs)) {
        status = STK_FAIL(err, STK_ERR_DATA, "the metadata 'outputs' are damaged");
    }
    stk_json_free(object);
    if (status == STK_OK && outputs->task != STK_TASK_REGRESSION) {
        stk_mem_free(outputs->units);
        outputs->units = NULL;
    }
    if (status == STK_OK && outputs->task != STK_TASK_MULTILABEL) {
        stk_mem_free(outputs->exclusive);
        outputs->exclusive = NULL;
    }
    if (status != STK_OK) {
        stk_outputs_free(outputs);
    }
    return status;
}
