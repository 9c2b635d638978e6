/* label_columns.c - tells columns of 0 and 1 from columns of numbers. */
#include "dataset/label_columns.h"

#include "dataset/column_profile.h"

size_t stk_label_columns_numbers(const stk_csv *csv, size_t row, const size_t *columns,
                                 size_t count, size_t *ones) {
    size_t numbers = 0;
    *ones = 0;
    for (size_t i = 0; i < count; i++) {
        double x = 0;
        bool is_number = stk_cell_number(stk_csv_cell(csv, row, columns[i]), &x);
        numbers += is_number;
        *ones += is_number && x == 1;
    }
    return numbers;
}

stk_status stk_label_columns_look(stk_label_columns *found, const stk_csv *csv,
                                  const size_t *columns, size_t count, stk_error *err) {
    stk_status status = STK_OK;
    *found = (stk_label_columns){.flags = true, .numbers = true, .one_hot = true};
    for (size_t i = 0; status == STK_OK && i < count; i++) {
        stk_column_profile p;
        status = stk_column_profile_make(&p, csv, columns[i], err);
        if (status == STK_OK) {
            bool numeric = stk_column_is_numeric(&p);
            bool flags = numeric && !p.fractions && p.least >= 0 && p.most <= 1;
            found->flags = found->flags && flags;
            found->numbers = found->numbers && numeric;
            found->odd = !numeric && found->odd == NULL ? csv->header[columns[i]] : found->odd;
            stk_column_profile_free(&p);
        }
    }
    for (size_t row = 0; found->flags && found->one_hot && row < csv->rows; row++) {
        size_t ones;
        stk_label_columns_numbers(csv, row, columns, count, &ones);
        found->one_hot = ones == 1;
    }
    return status;
}
