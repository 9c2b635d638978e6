/* verb_lr.c - `stoker lr`. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/error.h"
#include "options/options.h"
#include "report/text/event_json.h"

#define TABLE_ROWS 20 /* about; all points are in lr.csv */

#define FIELD(kind, key, member) STK_FIELD(stk_found_lr, kind, key, member)
#define POINT(member) STK_FIELD(stk_lr_point, NUMBER, #member, member)

static const stk_field found_rows[] = {
    FIELD(NUMBER, "suggestion", lr),
    FIELD(COUNT64, "batch", batch),
    FIELD(COUNT64, "accumulate", accumulate),
    FIELD(TRUTH, "exploded", exploded),
    FIELD(NUMBER, "seconds", seconds),
    FIELD(CHARS, "run_dir", run_dir),
    FIELD(CHARS, "plot", plot),
};

static const stk_field point_rows[] = {POINT(lr), POINT(loss), POINT(smoothed)};

static const stk_fields found_fields = STK_FIELDS(found_rows);
static const stk_fields point_fields = STK_FIELDS(point_rows);

static stk_status print_json(const stk_found_lr *found, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_fields_put(&writer, &found_fields, found);
    stk_json_key(&writer, "points");
    stk_json_begin_array(&writer);
    for (int i = 0; i < found->count; i++) {
        stk_json_begin_object(&writer);
        stk_fields_put(&writer, &point_fields, &found->points[i]);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

static void print_table(const stk_found_lr *found) {
    int every = (found->count + TABLE_ROWS - 1) / TABLE_ROWS;
    printf("\n%12s %10s %10s\n", "lr", "loss", "smoothed");
    for (int i = 0; i < found->count; i++) {
        if (i % every == 0 || i + 1 == found->count) {
            printf("%12.2e %10.4g %10.4g\n", found->points[i].lr, found->points[i].loss,
                   found->points[i].smoothed);
        }
    }
    printf("\n");
}

static void print_suggestion(const cli_session *session, const stk_found_lr *found) {
    printf("suggested: --lr %g for a batch of %lld", found->lr, (long long)found->batch);
    if (found->accumulate > 1) {
        printf(" x %lld", (long long)found->accumulate);
    }
    printf(", a third of the lowest rate that brought the loss near its minimum\ncurve: %s\n",
           cli_clean(found->plot));
    if (!session->quiet) {
        printf("train with it: stoker train, the same options, and --batch %lld --lr %g\n",
               (long long)found->batch, found->lr);
    }
}

static stk_status find(cli_session *session, stk_error *err) {
    stk_found_lr found = {.size = sizeof found};
    stk_run with = cli_run_for_object(session);
    stk_status status = stk_find_lr(session->options, &with, &found, err);
    if (status == STK_OK && session->json) {
        status = print_json(&found, err);
    } else if (status == STK_OK) {
        if (!session->quiet) {
            print_table(&found);
        }
        print_suggestion(session, &found);
    }
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_work(verb, argc, argv, "data", find);
}

const cli_verb cli_lr = {
    .name = "lr",
    .prints = true,
    .summary = "Finds a learning rate: trains some steps while it grows, and shows the loss.",
    .usage = "--data DIR [--model NAME] [--batch N] [options]",
    .options = stk_options_for_lr,
    .run = run,
};
