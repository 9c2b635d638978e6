/* members.c - finds the models of run folders, and checks that they have the same classes. */
#include "job/members.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "dataset/dataset.h"
#include "metrics/task.h"
#include "predict/ensemble.h"
#include "predict/predict.h"
#include "run/run_folder.h"

/* Reads args.json. A file that is missing or no JSON is an error of usage: the folder is no run
 * folder. */
static stk_status read_args(const char *run, stk_json **args, stk_error *err) {
    if (!stk_path_is_dir(run)) {
        stk_status answers = stk_path_check_answer(run, err);
        return answers != STK_OK
                   ? answers
                   : STK_FAIL(err, STK_ERR_USAGE, "--run %s: there is no such folder", run);
    }
    stk_error cause = {0};
    stk_status status = stk_json_read_in(run, "args.json", args, &cause);
    if (status == STK_OK) {
        return STK_OK;
    }
    stk_status answers = stk_path_check_answer(run, err);
    if (answers != STK_OK) {
        return answers;
    }
    if (status == STK_ERR_MEMORY ||
        (status != STK_ERR_DATA && stk_path_has_file(run, "args.json"))) {
        return STK_FAIL(err, status, "--run %s: %s", run, cause.message);
    }
    return STK_FAIL(err, STK_ERR_USAGE, "--run %s%s: %s", run,
                    status == STK_ERR_DATA ? ": args.json is damaged" : " is not a run folder",
                    cause.message);
}

/* Reads the options that a run was trained with. */
static stk_status read_options(const char *run, stk_options **options, stk_error *err) {
    static const stk_option_table *const tables[] = {&stk_dataset_option_table,
                                                     &stk_job_option_table, &stk_view_option_table};
    stk_json *args = NULL;
    stk_error cause = {0};
    stk_status status = read_args(run, &args, err);
    STK_THEN(status,
             stk_options_new(options, "train", tables, sizeof tables / sizeof *tables, err));
    if (status == STK_OK &&
        stk_options_recall(*options, args, NULL, NULL, NULL, &cause) != STK_OK) {
        status = STK_FAIL(err, cause.status, "%s/args.json: %s", run, cause.message);
    }
    stk_json_free(args);
    return status;
}

static void free_member(stk_member *member) {
    stk_mem_free(member->path);
    stk_mem_free(member->order);
    stk_checkpoint_info_free(&member->info);
}

void stk_members_leave_out(stk_members *members, const stk_error *why, const stk_events *events) {
    (void)STK_FAIL(&members->error, why->status, "%s", why->message);
    stk_events_warning(events, "a model is left out: %s", why->message);
}

/* A class that only `one` has; NULL: there is none, or no memory to find it. */
static const char *only_known_to(const stk_checkpoint_info *one, const stk_checkpoint_info *other) {
    stk_map map = {0};
    const char *only = NULL;
    bool ok = true;
    for (int c = 0; ok && c < other->class_count; c++) {
        bool added;
        ok = stk_map_add(&map, other->classes[c], 0, &added);
    }
    for (int c = 0; ok && only == NULL && c < one->class_count; c++) {
        only = stk_map_find(&map, one->classes[c], NULL) ? NULL : one->classes[c];
    }
    stk_map_free(&map);
    return only;
}

/* What the outputs of a model are. */
static const char *kind_of_outputs(const stk_member *member) {
    return stk_task_outputs(member->info.outputs.task, 2);
}

/* Models of classes, of labels and of numbers cannot be averaged with each other. */
static stk_status check_task(const stk_member *first, const stk_member *member, stk_error *err) {
    const char *one = kind_of_outputs(first);
    const char *other = kind_of_outputs(member);
    return strcmp(one, other) == 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_DATA,
                          "%s predicts %s and %s predicts %s, so that their predictions cannot be "
                          "averaged; predict with each alone",
                          first->run, one, member->run, other);
}

static stk_status refuse_classes(const stk_member *first, const stk_member *member,
                                 stk_error *err) {
    bool runs = strcmp(first->run, member->run) != 0;
    const char *names[] = {runs ? first->run : first->path, runs ? member->run : member->path};
    const char *of_first = only_known_to(&first->info, &member->info);
    const char *only = of_first != NULL ? of_first : only_known_to(&member->info, &first->info);
    char example[400] = "";
    if (only != NULL) {
        snprintf(example, sizeof example, "; only %.200s has '%.160s'", names[of_first == NULL],
                 only);
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s and %s do not know the same %s (%d and %d%s), so that their "
                    "predictions cannot be averaged; predict with each alone",
                    names[0], names[1], kind_of_outputs(first), first->info.class_count,
                    member->info.class_count, example);
}

/* Finds the index of every class of the first member in another one. */
static stk_status find_order(const stk_member *first, stk_member *member, stk_error *err) {
    const stk_checkpoint_info *a = &first->info;
    const stk_checkpoint_info *b = &member->info;
    bool same = a->class_count == b->class_count;
    for (int c = 0; same && c < a->class_count; c++) {
        same = strcmp(a->classes[c], b->classes[c]) == 0;
    }
    if (same) {
        return STK_OK;
    }
    stk_map map = {0};
    bool ok = true;
    bool known = a->class_count == b->class_count;
    member->order = stk_mem_new((size_t)a->class_count, sizeof *member->order);
    ok = member->order != NULL;
    for (int c = 0; ok && c < b->class_count; c++) {
        bool added;
        ok = stk_map_add(&map, b->classes[c], (size_t)c, &added);
    }
    for (int c = 0; ok && known && c < a->class_count; c++) {
        size_t at = 0;
        known = stk_map_find(&map, a->classes[c], &at);
        member->order[c] = (int)at;
    }
    stk_map_free(&map);
    if (!ok) {
        return STK_FAIL_MEMORY(err, "classes");
    }
    return known ? STK_OK : refuse_classes(first, member, err);
}

/* Puts the label rule of a member into the class order of the first one. Cut points in another
 * order mean nothing, nor does a step of the other class's probability. */
static stk_status arrange_rule(stk_member *member, stk_error *err) {
    stk_label_rule *rule = &member->info.calibration.rule;
    if (member->order == NULL || rule->count == 0) {
        return STK_OK;
    }
    if (rule->kind == STK_LABEL_STRANGER) {
        return STK_OK;
    }
    if (rule->kind == STK_LABEL_CUTS || rule->kind == STK_LABEL_STEP) {
        stk_mem_free(rule->numbers);
        *rule = (stk_label_rule){STK_LABEL_LIKELIEST, 0, NULL};
        return STK_OK;
    }
    /* The numbers of the classes are the last ones. */
    double *numbers = rule->numbers + (rule->count - member->info.class_count);
    stk_predictions row = {.rows = 1, .outputs = (size_t)member->info.class_count, .all = numbers};
    return stk_member_arrange(member, &row, err);
}

/* Adds a model of a run that used so many views if its file exists. *there: the file exists, even
 * if it cannot be read. */
static stk_status add_model(stk_members *v, const char *run, const char *name, int views,
                            const stk_events *events, bool *there, stk_error *err) {
    stk_member member = {.run = run, .path = stk_path_join(run, name), .weight = 1, .views = views};
    bool room = member.path != NULL && STK_RESERVE(v->items, v->capacity, v->count + 1);
    stk_status status = room ? STK_OK : STK_FAIL_MEMORY(err, "a path");
    *there = status == STK_OK && stk_path_is_file(member.path);
    stk_error why = {0};
    bool good = *there && stk_checkpoint_info_read(member.path, &member.info, &why) == STK_OK;
    if (why.status == STK_ERR_MEMORY) {
        status = STK_FAIL(err, why.status, "%s", why.message);
    } else if (*there && !good) {
        stk_members_leave_out(v, &why, events);
    }
    if (status == STK_OK && good && v->count > 0) {
        status = check_task(&v->items[0], &member, err);
        STK_THEN(status, find_order(&v->items[0], &member, err));
        STK_THEN(status, arrange_rule(&member, err));
    }
    if (status == STK_OK && good) {
        v->items[v->count++] = member;
    } else {
        free_member(&member);
    }
    return status;
}

/* Adds those of weights/KIND0, weights/KIND1 and so on that exist; *found grows by their number. */
static stk_status add_numbered(stk_members *v, const char *run, const char *kind, int count,
                               int views, const stk_events *events, int *found, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; i < count && status == STK_OK; i++) {
        char name[64];
        bool there = false;
        snprintf(name, sizeof name, "weights/%s%d/best.safetensors", kind, i);
        status = add_model(v, run, name, views, events, &there, err);
        *found += there;
    }
    return status;
}

/* Adds the models of a run: the single one or one per fold, then the refits. Missing ones are
 * skipped. */
static stk_status add_run(stk_members *v, const char *run, const stk_options *options,
                          const stk_events *events, stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_view_options *seen = stk_options_values(options, &stk_view_option_table);
    int folds = stk_is_auto_int(job->folds) ? 1 : (int)job->folds;
    int refits = stk_is_auto_int(job->refit) ? 0 : (int)job->refit;
    /* "auto" stands there if the run ended before anything was measured. */
    int views = stk_is_auto_int(seen->tta) ? 1 : (int)seen->tta;
    bool there = false;
    int found = 0;
    stk_status status = STK_OK;
    if (folds > 1) { /* weights/best.safetensors is then another name of the first one's */
        status = add_numbered(v, run, "fold", folds, views, events, &found, err);
    } else {
        status = add_model(v, run, "weights/best.safetensors", views, events, &there, err);
        found += there;
    }
    int of_folds = found;
    STK_THEN(status, add_numbered(v, run, "refit", refits, views, events, &found, err));
    v->wanted += found - of_folds + (of_folds > folds ? of_folds : folds);
    if (status == STK_OK && of_folds > 0 && of_folds < folds) {
        stk_events_warning(events, "%s has the models of %d of %d folds", run, of_folds, folds);
    }
    return status;
}

/* Index of the first run whose folder is that of run r: r, unless the folder was given before. */
static size_t first_given(const stk_option_list *runs, size_t r) {
    struct stat this;
    struct stat that;
    bool there = stk_disk_look(runs->items[r], &this) == 0;
    for (size_t i = 0; there && i < r; i++) {
        if (stk_disk_look(runs->items[i], &that) == 0 && this.st_dev == that.st_dev &&
            this.st_ino == that.st_ino) {
            return i;
        }
    }
    return r;
}

/* Warns of runs without any model when others have some; when none has, the caller reports it. */
static void warn_empty(const stk_members *v, const stk_option_list *runs,
                       const stk_events *events) {
    for (size_t r = 0; r < runs->count && v->count > 0; r++) {
        bool has = first_given(runs, r) < r;
        for (size_t i = 0; i < v->count && !has; i++) {
            has = v->items[i].run == runs->items[r];
        }
        if (!has) {
            stk_events_warning(events, "%s has no model that can be used: only the others predict",
                               runs->items[r]);
        }
    }
}

static stk_status weigh(stk_members *v, stk_error *err) {
    double *numbers = stk_mem_new(v->count, 2 * sizeof *numbers);
    if (numbers == NULL) {
        return STK_FAIL_MEMORY(err, "models");
    }
    for (size_t i = 0; i < v->count; i++) {
        numbers[i] = v->items[i].info.acc1;
    }
    stk_ensemble_weights(numbers, v->count, v->items[0].info.class_count, numbers + v->count);
    for (size_t i = 0; i < v->count; i++) {
        v->items[i].weight = numbers[v->count + i];
    }
    stk_mem_free(numbers);
    return STK_OK;
}

stk_status stk_members_find(stk_members *v, const stk_predict_options *options,
                            const stk_events *events, stk_error *err) {
    const stk_option_list *runs = &options->runs;
    stk_status status = STK_OK;
    if (runs->count == 0) {
        return STK_FAIL(err, STK_ERR_USAGE, "--run is missing: give the run folder of a training");
    }
    for (size_t r = 0; r < runs->count && status == STK_OK; r++) {
        stk_options *trained = NULL;
        size_t same = first_given(runs, r);
        if (same < r) {
            stk_events_warning(events, "%s is the same run as %s: its models count once",
                               runs->items[r], runs->items[same]);
            continue;
        }
        status = read_options(runs->items[r], &trained, err);
        STK_THEN(status, add_run(v, runs->items[r], trained, events, err));
        if (r == 0) {
            v->options = trained;
        } else {
            stk_options_free(trained);
        }
    }
    if (status == STK_OK && v->count == 0 && v->error.status != STK_OK) {
        status = STK_FAIL(err, v->error.status, "%s", v->error.message);
    }
    if (status == STK_OK) {
        warn_empty(v, runs, events);
    }
    return status == STK_OK && options->vote == STK_VOTE_SCORE && v->count > 0 ? weigh(v, err)
                                                                               : status;
}

stk_status stk_member_arrange(const stk_member *member, stk_predictions *probs, stk_error *err) {
    size_t classes = (size_t)member->info.class_count;
    if (member->order == NULL) {
        return STK_OK;
    }
    double *scratch = stk_mem_new(classes, sizeof *scratch);
    double *row = stk_mem_new(classes, sizeof *row);
    bool ok = scratch != NULL && row != NULL;
    for (size_t r = 0; ok && r < probs->rows; r++) {
        const double *own = stk_predictions_row(probs, r, scratch);
        for (size_t c = 0; c < classes; c++) {
            row[c] = own[member->order[c]];
        }
        stk_predictions_set(probs, r, row, -1);
    }
    stk_mem_free(scratch);
    stk_mem_free(row);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "predictions");
}

void stk_members_free(stk_members *v) {
    for (size_t i = 0; i < v->count; i++) {
        free_member(&v->items[i]);
    }
    stk_mem_free(v->items);
    stk_options_free(v->options);
    memset(v, 0, sizeof *v);
}
