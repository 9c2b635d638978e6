/*
 * ask_plain.c - gives the cells of label columns their plain form, and tells the answer's form.
 *
 * The answers of the submission are written as the cells of the sample are, or else as those of the
 * training table were.
 */
#include "dataset/ask.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void tell(const stk_cell_form *form, const stk_listing *listing, const char *name) {
    char what[200];
    if (form->commas) {
        snprintf(what, sizeof what, "numbers of %.80s with decimal points", name);
        stk_events_decision(listing->events, what, "every cell is a number with a decimal comma");
    }
    if (form->missing > 0) {
        snprintf(what, sizeof what, "%zu cell%s of %.80s that count%s as empty", form->missing,
                 form->missing == 1 ? "" : "s", name, form->missing == 1 ? "s" : "");
        stk_events_decision(listing->events, what,
                            "words such as 'nan', 'NA' and 'unknown' among numbers say that there "
                            "is none");
    }
}

void stk_ask_plain_cells(stk_ask *ask, const stk_listing *listing, stk_csv *train,
                         const stk_ask_tables *tables) {
    stk_task task = (stk_task)listing->options->task;
    size_t answer = stk_ask_only_answer(tables);
    const stk_csv *sample = answer != SIZE_MAX ? tables->sample : NULL;
    for (size_t i = 0; i < ask->count; i++) {
        stk_cell_form form;
        stk_cell_form_find(&form, train, ask->labels[i], task, sample, answer);
        if (ask->count > 1) { /* lists beside each other are no labels */
            form.bracket = '\0';
        }
        stk_cell_form_apply(&form, train, ask->labels[i]);
        tell(&form, listing, train->header[ask->labels[i]]);
        form.commas = form.commas || ask->form.commas;
        form.missing += ask->form.missing;
        ask->form = form;
    }
}
