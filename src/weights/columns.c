/* columns.c - the code of features to JSON and back. */
#include "weights/columns.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/json.h"

void stk_columns_append(const stk_feature_code *code, stk_str *out) {
    stk_json_writer json = stk_json_write_to(out, 0);
    json.exact = true; /* cells may hold any bytes */
    stk_json_begin_array(&json);
    for (size_t i = 0; i < code->count; i++) {
        const stk_coded_column *c = &code->columns[i];
        stk_json_begin_object(&json);
        stk_json_key(&json, "name");
        stk_json_put_string(&json, c->name);
        if (c->amount) {
            stk_json_key(&json, "mean");
            stk_json_put_double(&json, c->mean);
            stk_json_key(&json, "scale");
            stk_json_put_double(&json, c->scale);
            stk_json_key(&json, "gaps");
            stk_json_put_bool(&json, c->gaps);
        }
        if (c->text_count > 0) {
            stk_json_key(&json, "texts");
            stk_json_begin_array(&json);
            for (size_t k = 0; k < c->text_count; k++) {
                stk_json_put_string(&json, c->texts[k]);
            }
            stk_json_end_array(&json);
        }
        stk_json_end_object(&json);
    }
    stk_json_end_array(&json);
}

/* Reads one column, whose texts stay the object's; false: it is damaged. */
static bool read_column(const stk_json *object, stk_coded_column *c) {
    const stk_json *mean = stk_json_get(object, "mean");
    const stk_json *texts = stk_json_get(object, "texts");
    c->name = stk_json_string(stk_json_get(object, "name"));
    c->amount = mean != NULL;
    c->gaps = c->amount && stk_json_bool(stk_json_get(object, "gaps"), false);
    c->mean = stk_json_number(mean, c->amount ? NAN : 0);
    c->scale = stk_json_number(stk_json_get(object, "scale"), c->amount ? NAN : 1);
    bool good = c->name != NULL && isfinite(c->mean) && isfinite(c->scale) && c->scale > 0 &&
                stk_json_count(texts) <= STK_CODED_TEXTS;
    const stk_json *text = stk_json_at(texts, 0);
    for (; good && text != NULL; text = stk_json_next(texts, text)) {
        c->texts[c->text_count] = stk_json_string(text);
        good = c->texts[c->text_count++] != NULL;
    }
    return good;
}

static stk_status read_all(const stk_json *list, stk_feature_code *code, bool *good,
                           stk_error *err) {
    stk_status status = STK_OK;
    const stk_json *object = stk_json_at(list, 0);
    for (; status == STK_OK && *good && object != NULL; object = stk_json_next(list, object)) {
        stk_coded_column column = {0};
        *good = read_column(object, &column);
        if (*good) {
            status = stk_feature_code_add(code, &column, good, err);
        }
    }
    return status;
}

stk_status stk_columns_read(const char *text, int features, stk_feature_code *code,
                            stk_error *err) {
    stk_json *list = NULL;
    *code = (stk_feature_code){0};
    if (text == NULL || text[0] == '\0') {
        return STK_OK;
    }
    stk_status status = stk_json_parse(text, strlen(text), &list, NULL);
    if (status == STK_ERR_MEMORY) {
        return STK_FAIL_MEMORY(err, "a checkpoint");
    }
    bool good = status == STK_OK && stk_json_kind_of(list) == STK_JSON_ARRAY;
    status = good ? read_all(list, code, &good, err) : STK_OK;
    if (status == STK_OK && (!good || code->numbers != features)) {
        status = STK_FAIL(err, STK_ERR_DATA, "the metadata 'columns' are damaged");
    }
    stk_json_free(list);
    if (status != STK_OK) {
        stk_feature_code_free(code);
    }
    return status;
}
