/* true_answer.c - answers as cells of tables. */
#include "job/saved/true_answer.h"

#include <math.h>

#include "base/text/csv.h"

/* Names of labels that have columns of their own may have blanks in them. */
#define USUAL_DIVIDER '|'

void stk_labels_append(stk_str *out, const stk_dataset *dataset, const int *labels, size_t count) {
    bool listed = dataset->answer.kind == STK_ANSWER_LIST;
    const char divider[2] = {listed ? dataset->answer.divider : USUAL_DIVIDER, '\0'};
    stk_str cell = {0};
    for (size_t i = 0; i < count; i++) {
        stk_str_append(&cell, i > 0 ? divider : "");
        stk_str_append(&cell, dataset->classes[labels[i]]);
    }
    stk_csv_append(out, stk_str_text(&cell));
    stk_str_free_part(out, &cell);
}

void stk_numbers_append(stk_str *out, const float *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_str_append(out, i > 0 ? " " : "");
        /* Seven digits are those of the table; a number that is missing among others stays apart.
         */
        if (!isnan(numbers[i])) {
            stk_str_appendf(out, "%.7g", numbers[i]);
        } else if (count > 1) {
            stk_str_append(out, "nan");
        }
    }
}

void stk_true_answer_append(stk_str *out, const stk_dataset *dataset, const stk_sample *sample) {
    const stk_targets *t = &dataset->targets;
    size_t record = (size_t)sample->record;
    if (stk_task_has_classes(dataset->task)) {
        stk_csv_append(out, dataset->classes[sample->label]);
    } else if (sample->record < 0 || record >= t->count) {
        return;
    } else if (t->is_labels) {
        size_t first = t->starts[record];
        stk_labels_append(out, dataset, t->labels + first, t->starts[record + 1] - first);
    } else {
        stk_numbers_append(out, t->numbers + record * (size_t)t->outputs, (size_t)t->outputs);
    }
}
