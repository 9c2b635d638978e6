/* features.c - columns of the tables as numbers that a network can take. */
#include "dataset/features.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static void name_columns(stk_features *f) {
    size_t length = 0;
    for (size_t i = 0; i < f->code.count && i < 3 && length < sizeof f->names; i++) {
        length += (size_t)snprintf(f->names + length, sizeof f->names - length, "%s%.30s",
                                   i > 0 ? ", " : "", f->code.columns[i].name);
    }
    if (f->code.count > 3 && length < sizeof f->names) {
        snprintf(f->names + length, sizeof f->names - length, " ...");
    }
}

/* Memory for so many rows, and the row of a record that is not known. */
static stk_status reserve(stk_features *f, const stk_feature_code *code, size_t first, size_t rows,
                          stk_error *err) {
    f->count = code->numbers;
    f->first = first;
    f->rows = rows;
    f->values = stk_mem_new(rows, (size_t)f->count * sizeof *f->values);
    f->missing = stk_mem_new((size_t)f->count, sizeof *f->missing);
    if ((f->values == NULL && rows > 0) || f->missing == NULL) {
        return STK_FAIL_MEMORY(err, "the columns of the table");
    }
    stk_feature_code_missing(code, f->missing);
    return STK_OK;
}

stk_status stk_features_make(stk_features *f, const stk_csv *train, const stk_csv *test,
                             const bool *wanted, stk_error *err) {
    memset(f, 0, sizeof *f);
    if (test == NULL) {
        return STK_OK;
    }
    stk_status status = stk_feature_code_make(&f->code, train, test, wanted, err);
    if (status == STK_OK && f->code.numbers > 0) {
        status = reserve(f, &f->code, 0, train->rows + test->rows, err);
        STK_THEN(status, stk_feature_code_apply(&f->code, train, f->values, NULL, err));
        STK_THEN(status,
                 stk_feature_code_apply(&f->code, test, f->values + train->rows * (size_t)f->count,
                                        NULL, err));
        name_columns(f);
    }
    if (status != STK_OK) {
        stk_features_free(f);
    }
    return status;
}

stk_status stk_features_of_code(stk_features *f, const stk_feature_code *code, const stk_csv *test,
                                size_t first, stk_features_absent *absent, stk_error *err) {
    memset(f, 0, sizeof *f);
    *absent = (stk_features_absent){0};
    stk_status status = reserve(f, code, first, test != NULL ? test->rows : 0, err);
    if (status == STK_OK && test != NULL) {
        status = stk_feature_code_apply(code, test, f->values, absent, err);
    }
    if (status != STK_OK) {
        stk_features_free(f);
    }
    return status;
}

void stk_features_free(stk_features *f) {
    stk_mem_free(f->values);
    stk_mem_free(f->missing);
    stk_feature_code_free(&f->code);
    memset(f, 0, sizeof *f);
}

const float *stk_features_row(const stk_features *f, size_t record) {
    bool known = record >= f->first && record - f->first < f->rows;
    return known ? f->values + (record - f->first) * (size_t)f->count : f->missing;
}
