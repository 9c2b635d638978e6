/* calibration.c - temperatures and label rules: their use, their text, their mean over models. */
#include "weights/calibration.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/json.h"

/* In the order of stk_label_rule_kind. */
static const char *const rule_names[STK_LABEL_RULE_KINDS] = {"likeliest",  "weights", "cuts",
                                                             "thresholds", "step",    "stranger"};

/* Of pool_scores. */
static const char *const score_keys[STK_POOL_WAYS] = {"mean_score", "max_score"};

#define DECIMALS 1e4

/* A score of n pictures has a noise of about 1 / sqrt(n). Rules have to gain such a part of it; the
 * same pictures with and without a rule differ by less than others would. */
#define LEAST_GAIN 0.2

void stk_calibration_free(stk_calibration *calibration) {
    stk_mem_free(calibration->rule.numbers);
    memset(calibration, 0, sizeof *calibration);
}

double stk_calibration_temperature(const stk_calibration *calibration) {
    return calibration->temperature > 0 ? calibration->temperature : 1;
}

double stk_calibration_round(double value) {
    return round(value * DECIMALS) / DECIMALS;
}

/* Whether rules gain enough, as a sum over pictures, or over rows of pictures. */
static bool is_enough(double gain, double scored) {
    return gain > LEAST_GAIN * sqrt(scored);
}

/* What both scores are of. */
static double scored_of(const stk_calibration *c) {
    return (double)(c->rows > 0 ? c->rows : c->pictures);
}

bool stk_calibration_is_ruled(const stk_calibration *c) {
    double scored = scored_of(c);
    return c->rule.count > 0 && is_enough(scored * (c->score - c->plain_score), scored);
}

/* ---- text ---- */

static void put_number(stk_json_writer *json, const char *key, double value) {
    stk_json_key(json, key);
    stk_json_put_double(json, value);
}

/* Says how rows are pooled, where there are any. */
static void append_pool(const stk_calibration *c, stk_json_writer *json) {
    if (c->pool == STK_POOL_MEAN && c->rows == 0) {
        return;
    }
    stk_json_key(json, "pool");
    stk_json_put_string(json, stk_pooling_name(c->pool));
    stk_json_key(json, "rows");
    stk_json_put_int(json, (int64_t)c->rows);
    for (int p = 0; p < STK_POOL_WAYS && c->rows > 0; p++) {
        put_number(json, score_keys[p], c->pool_scores[p]);
    }
}

void stk_calibration_append(const stk_calibration *c, stk_str *out) {
    if (!(c->temperature > 0) && c->pool == STK_POOL_MEAN && !(c->means > 0)) {
        return;
    }
    stk_json_writer json = stk_json_write_to(out, 0);
    stk_json_begin_object(&json);
    put_number(&json, "temperature", stk_calibration_temperature(c));
    stk_json_key(&json, "rule");
    stk_json_put_string(&json, rule_names[c->rule.kind]);
    stk_json_key(&json, "numbers");
    stk_json_begin_array(&json);
    for (int i = 0; i < c->rule.count; i++) {
        stk_json_put_double(&json, c->rule.numbers[i]);
    }
    stk_json_end_array(&json);
    stk_json_key(&json, "pictures");
    stk_json_put_int(&json, (int64_t)c->pictures);
    put_number(&json, "plain_loss", c->plain_loss);
    put_number(&json, "loss", c->loss);
    put_number(&json, "plain_score", c->plain_score);
    put_number(&json, "score", c->score);
    append_pool(c, &json);
    if (c->means > 0) {
        put_number(&json, "means", c->means);
        put_number(&json, "means_gain", c->means_gain);
    }
    stk_json_end_object(&json);
}

/* Reads the rule. *good becomes false where it is damaged; the answer is false without memory. */
static bool read_rule(const stk_json *root, int classes, stk_label_rule *rule, bool *good) {
    const char *name = stk_json_string(stk_json_get(root, "rule"));
    const stk_json *list = stk_json_get(root, "numbers");
    size_t kind = 0;
    while (name != NULL && kind < STK_COUNT(rule_names) && strcmp(name, rule_names[kind]) != 0) {
        kind++;
    }
    *good = name != NULL && kind < STK_COUNT(rule_names);
    int count = *good ? stk_label_rule_count((stk_label_rule_kind)kind, classes) : 0;
    *good =
        *good && stk_json_kind_of(list) == STK_JSON_ARRAY && stk_json_count(list) == (size_t)count;
    if (!*good || count == 0) {
        return true;
    }
    double *numbers = stk_mem_raw((size_t)count, sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }
    *rule = (stk_label_rule){(stk_label_rule_kind)kind, count, numbers};
    const stk_json *number = stk_json_at(list, 0);
    for (int i = 0; i < count; i++, number = stk_json_next(list, number)) {
        numbers[i] = stk_json_number(number, NAN);
    }
    *good = stk_label_rule_is_sound(rule);
    return true;
}

/* Reads how rows are pooled; texts of an earlier version do not say. */
static void read_pool(const stk_json *root, stk_calibration *c) {
    const char *name = stk_json_string(stk_json_get(root, "pool"));
    uint64_t rows = 0;
    c->pool = name != NULL && strcmp(name, stk_pooling_name(STK_POOL_MAX)) == 0 ? STK_POOL_MAX
                                                                                : STK_POOL_MEAN;
    c->rows = stk_json_u64(stk_json_get(root, "rows"), &rows) ? (size_t)rows : 0;
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        c->pool_scores[p] = stk_json_number(stk_json_get(root, score_keys[p]), NAN);
    }
}

stk_status stk_calibration_read(const char *text, int classes, stk_calibration *calibration,
                                stk_error *err) {
    stk_calibration c = {0};
    stk_json *root = NULL;
    uint64_t pictures = 0;
    bool good = false;
    *calibration = c;
    stk_status status =
        text != NULL ? stk_json_parse(text, strlen(text), &root, NULL) : STK_ERR_DATA;
    bool memory =
        status != STK_ERR_MEMORY && (status != STK_OK || read_rule(root, classes, &c.rule, &good));
    c.temperature = stk_json_number(stk_json_get(root, "temperature"), NAN);
    good = good && c.temperature >= STK_LEAST_TEMPERATURE && c.temperature <= STK_MOST_TEMPERATURE;
    c.pictures = stk_json_u64(stk_json_get(root, "pictures"), &pictures) ? (size_t)pictures : 0;
    c.plain_loss = stk_json_number(stk_json_get(root, "plain_loss"), NAN);
    c.loss = stk_json_number(stk_json_get(root, "loss"), NAN);
    c.plain_score = stk_json_number(stk_json_get(root, "plain_score"), NAN);
    c.score = stk_json_number(stk_json_get(root, "score"), NAN);
    read_pool(root, &c);
    c.means = stk_json_number(stk_json_get(root, "means"), 0);
    c.means_gain = stk_json_number(stk_json_get(root, "means_gain"), 0);
    stk_json_free(root);
    if (good && memory) {
        *calibration = c;
    } else {
        stk_calibration_free(&c);
    }
    return memory ? STK_OK : STK_FAIL_MEMORY(err, "the calibration of a model");
}

/* ---- the mean over models ---- */

stk_status stk_calibration_mean_open(stk_calibration_mean *mean, int classes, stk_error *err) {
    *mean = (stk_calibration_mean){.classes = classes};
    mean->sums = stk_mem_new((size_t)classes + 1, sizeof *mean->sums);
    mean->rule.numbers = stk_mem_new((size_t)classes + 1, sizeof *mean->rule.numbers);
    if (mean->sums == NULL || mean->rule.numbers == NULL) {
        stk_calibration_mean_free(mean);
        return STK_FAIL_MEMORY(err, "the calibration of models");
    }
    return STK_OK;
}

void stk_calibration_mean_free(stk_calibration_mean *mean) {
    stk_mem_free(mean->sums);
    stk_mem_free(mean->rule.numbers);
    memset(mean, 0, sizeof *mean);
}

void stk_calibration_mean_add(stk_calibration_mean *mean, const stk_calibration *calibration,
                              double weight) {
    const stk_label_rule *rule = &calibration->rule;
    mean->pool = mean->weight > 0 ? mean->pool : calibration->pool;
    mean->weight += weight;
    mean->with_means += calibration->means > 0 ? weight : 0;
    mean->means += weight * calibration->means;
    mean->fitted += calibration->temperature > 0 ? weight : 0;
    mean->log_temperature += weight * log(stk_calibration_temperature(calibration));
    if (rule->count == 0 || rule->count != stk_label_rule_count(rule->kind, mean->classes) ||
        (mean->ruled > 0 && rule->kind != mean->rule.kind) || calibration->pool != mean->pool) {
        return;
    }
    mean->rule.kind = rule->kind;
    mean->rule.count = rule->count;
    mean->ruled += weight;
    if (isfinite(calibration->score) && isfinite(calibration->plain_score)) {
        double scored = scored_of(calibration);
        mean->pictures += scored;
        mean->plain_score += scored * calibration->plain_score;
        mean->score += scored * calibration->score;
    }
    for (int i = 0; i < rule->count; i++) {
        double number = rule->numbers[i];
        mean->sums[i] += weight * (rule->kind == STK_LABEL_WEIGHTS ? log(number) : number);
    }
}

double stk_calibration_mean_temperature(const stk_calibration_mean *mean) {
    return mean->fitted > 0 ? stk_calibration_round(exp(mean->log_temperature / mean->weight))
                            : NAN;
}

/* Both scores are sums over pictures. Rules that were taken over have none: they were found useful
 * before. */
static bool is_useful(const stk_calibration_mean *mean) {
    return mean->pictures <= 0 || is_enough(mean->score - mean->plain_score, mean->pictures);
}

const stk_label_rule *stk_calibration_mean_rule(stk_calibration_mean *mean) {
    static const stk_label_rule likeliest = {STK_LABEL_LIKELIEST, 0, NULL};
    if (!(2 * mean->ruled > mean->weight) || !is_useful(mean)) {
        return &likeliest;
    }
    for (int i = 0; i < mean->rule.count; i++) {
        double number = mean->sums[i] / mean->ruled;
        mean->rule.numbers[i] =
            stk_calibration_round(mean->rule.kind == STK_LABEL_WEIGHTS ? exp(number) : number);
    }
    return &mean->rule;
}

double stk_calibration_mean_means(const stk_calibration_mean *mean) {
    return 2 * mean->with_means > mean->weight ? mean->means / mean->with_means : 0;
}

stk_status stk_calibration_mean_take(stk_calibration_mean *mean, stk_calibration *calibration,
                                     stk_error *err) {
    *calibration = (stk_calibration){.pool = mean->pool};
    if (!(mean->fitted > 0)) {
        return STK_OK;
    }
    const stk_label_rule *rule = stk_calibration_mean_rule(mean);
    calibration->temperature = stk_calibration_mean_temperature(mean);
    calibration->plain_loss = calibration->loss = NAN;
    calibration->plain_score = calibration->score = NAN;
    if (rule->count == 0) {
        return STK_OK;
    }
    size_t bytes = (size_t)rule->count * sizeof *rule->numbers;
    double *numbers = stk_mem_raw((size_t)rule->count, sizeof *numbers);
    if (numbers == NULL) {
        return STK_FAIL_MEMORY(err, "the calibration of a model");
    }
    memcpy(numbers, rule->numbers, bytes);
    calibration->rule = (stk_label_rule){rule->kind, rule->count, numbers};
    return STK_OK;
}
