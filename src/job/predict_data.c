/* predict_data.c - opening the folder that is predicted: as a data set, or as a list of pictures.
 */
#include "job/predict_data.h"

#include <string.h>

#include "base/error.h"
#include "run/event_buffer.h"

static bool takes_features(const stk_members *members) {
    bool takes = false;
    for (size_t i = 0; i < members->count; i++) {
        takes = takes || members->items[i].info.features > 0;
    }
    return takes;
}

/* Whether a model of an earlier version does not say how its features come to be. */
static bool lacks_code(const stk_checkpoint_info *info) {
    return info->features > 0 && info->columns.count == 0;
}

/* The options that the first run opened its data set with, but for those that are given now. */
static stk_dataset_options run_data(const stk_predict_data *wanted) {
    const stk_dataset_options *run =
        stk_options_values(wanted->members->options, &stk_dataset_option_table);
    stk_dataset_options options = *run;
    const stk_dataset_options *given = wanted->given;
    options.data = given->data != NULL ? given->data : run->data;
    options.id_column = given->id_column != NULL ? given->id_column : run->id_column;
    options.label_column = given->label_column != NULL ? given->label_column : run->label_column;
    options.positive = given->positive != NULL ? given->positive : run->positive;
    options.image_ext = given->image_ext != NULL ? given->image_ext : run->image_ext;
    options.sample_submission = given->sample_submission;
    options.val_fraction = given->val_fraction;
    options.fold_column = NULL; /* how the training samples were split does not matter here */
    options.group_column = NULL;
    options.keep_test_table = takes_features(wanted->members);
    if (wanted->members->count > 0) {
        const stk_outputs *outputs = &wanted->members->items[0].info.outputs;
        options.metric_given = outputs->metric_given;
        options.metric = outputs->metric;
    }
    return options;
}

/* Whether a list of pictures may lack what the models need, or what their answer is made from. */
static bool needs_tables(const stk_members *members) {
    bool needs = false;
    for (size_t i = 0; i < members->count; i++) {
        const stk_checkpoint_info *info = &members->items[i].info;
        bool plain = info->outputs.task == STK_TASK_AUTO || info->outputs.task == STK_TASK_SINGLE;
        needs = needs || !plain || info->features > 0;
    }
    return needs;
}

/* Whether the data set asks for what the models answer, and has the numbers of those that do not
 * say how they come to be. */
static bool is_same_task(const stk_dataset *dataset, const stk_members *members) {
    const stk_checkpoint_info *first = &members->items[0].info;
    stk_task task = first->outputs.task != STK_TASK_AUTO ? first->outputs.task : STK_TASK_SINGLE;
    bool same = dataset->test.count > 0 && dataset->task == task &&
                dataset->class_count == first->class_count;
    for (int c = 0; same && c < first->class_count; c++) {
        same = strcmp(dataset->classes[c], first->classes[c]) == 0;
    }
    for (size_t i = 0; i < members->count; i++) {
        const stk_checkpoint_info *info = &members->items[i].info;
        same = same && (!lacks_code(info) || info->features == dataset->features.count);
    }
    return same;
}

/* Opens the folder as a data set; *dataset stays NULL where it is none of this task. What opening
 * has warned of counts only where it is one. */
static stk_status try_labels(const stk_predict_data *wanted, stk_dataset **dataset,
                             stk_error *err) {
    stk_dataset_options options = run_data(wanted);
    stk_error why = {0};
    stk_events events = {0};
    stk_event_buffer buffer;
    stk_event_buffer_open(&buffer);
    stk_events_add(&events, &buffer.observer);
    stk_status status = stk_dataset_open(dataset, &options, wanted->storage, &events, &why);
    if (status == STK_OK && is_same_task(*dataset, wanted->members)) {
        stk_event_buffer_emit(&buffer, wanted->events);
    } else {
        stk_dataset_free(*dataset);
        *dataset = NULL;
    }
    stk_event_buffer_free(&buffer);
    bool ends = status == STK_ERR_STOPPED || status == STK_ERR_MEMORY;
    return ends ? STK_FAIL(err, status, "%s", why.message) : STK_OK;
}

/* The data set of the first run. */
static stk_status open_own(const stk_predict_data *wanted, stk_dataset **dataset, stk_error *err) {
    stk_dataset_options options = run_data(wanted);
    stk_error cause = {0};
    if (options.data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s/args.json names no data; give --data", wanted->run);
    }
    stk_status status =
        stk_dataset_open(dataset, &options, wanted->storage, wanted->events, &cause);
    if (status != STK_OK && status != STK_ERR_STOPPED && wanted->members->count > 0) {
        /* The training pictures may be gone; trained models need the test pictures only. */
        status = stk_dataset_open_images(dataset, &options, wanted->storage, wanted->events, NULL);
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, cause.status, "%s", cause.message);
}

/* Where the folder is no data set of the models' task, its sample may want something else than they
 * can say: numbers for texts, or texts for numbers. Then it only tells the rows. */
static void leave_foreign_sample(const stk_predict_data *wanted, stk_dataset *dataset) {
    if (wanted->members->count == 0 || dataset->task != STK_TASK_AUTO ||
        dataset->template_header == NULL) {
        return;
    }
    const stk_checkpoint_info *first = &wanted->members->items[0].info;
    bool numbers = first->outputs.task == STK_TASK_REGRESSION;
    bool texts = !numbers && first->outputs.task != STK_TASK_AUTO;
    for (int c = 0; texts && c < first->class_count; c++) {
        const char *name = first->classes[c];
        texts = name[strspn(name, "0123456789.-")] != '\0';
    }
    bool positive = first->outputs.has_answer && first->outputs.answer.kind == STK_ANSWER_POSITIVE;
    if ((numbers && dataset->template_texts) ||
        (texts && !positive && dataset->template_fractions)) {
        stk_events_warning(wanted->events,
                           "%s asks for %s, and the models say %s: the file gets their own columns",
                           dataset->template_file, numbers ? "texts" : "numbers",
                           numbers ? "numbers" : "names of classes");
        dataset->template_header = NULL;
        dataset->template_file = NULL;
        dataset->template_columns = 0;
        dataset->template_separator = 0;
        dataset->template_kept = -1;
    }
}

stk_status stk_predict_data_open(const stk_predict_data *wanted, stk_dataset **dataset,
                                 stk_error *err) {
    stk_status status = STK_OK;
    *dataset = NULL;
    if (wanted->given->data == NULL) {
        return open_own(wanted, dataset, err);
    }
    if (needs_tables(wanted->members)) {
        status = try_labels(wanted, dataset, err);
    }
    if (status == STK_OK && *dataset == NULL) {
        stk_dataset_options options = *wanted->given;
        options.keep_test_table = takes_features(wanted->members);
        status = stk_dataset_open_images(dataset, &options, wanted->storage, wanted->events, err);
    }
    if (status == STK_OK) {
        leave_foreign_sample(wanted, *dataset);
    }
    return status;
}

/* ---- features ---- */

/* A model of an earlier version takes what the tables at hand give, where they give as many
 * numbers; where there are no tables every number is zero. */
static stk_status borrow_features(const stk_dataset *dataset, const stk_member *member,
                                  const stk_events *told, stk_features *features, stk_error *err) {
    int wanted = member->info.features;
    int there = dataset->features.count;
    if (there > 0 && wanted != there) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has learned from %d numbers beside each picture, and %s gives %d; "
                        "predict with the tables that the run was trained with, or train without "
                        "them (--no-columns)",
                        member->path, wanted, dataset->root, there);
    }
    if (there > 0) {
        stk_events_warning(told,
                           "%s was written by an earlier version, which did not keep how columns "
                           "become numbers: means and texts of the tables of %s are used; with "
                           "other tables than those of the training predictions are wrong",
                           member->path, dataset->root);
    } else {
        stk_events_warning(told,
                           "%s has learned from %d numbers beside each picture, and %s has no "
                           "table with them: each counts as its mean, and predictions may be worse",
                           member->path, wanted, dataset->root);
    }
    features->count = wanted;
    features->first = dataset->features.first;
    features->rows = dataset->features.rows;
    features->values = dataset->features.values;
    features->missing = dataset->features.missing;
    return STK_OK;
}

static void tell_absent(const stk_dataset *dataset, const stk_member *member,
                        const stk_features_absent *absent, const stk_events *told) {
    size_t all = member->info.columns.count;
    if (dataset->test_table.columns == 0) {
        stk_events_warning(told,
                           "%s has learned from %zu column%s beside the pictures, and %s has no "
                           "table of test rows: every column counts as empty, and predictions may "
                           "be worse",
                           member->path, all, all == 1 ? "" : "s", dataset->root);
    } else if (absent->columns > 0) {
        stk_events_warning(told,
                           "%zu of the %zu columns that %s has learned from %s not in the table of "
                           "test rows of %s (%s%s): they count as empty, and predictions may be "
                           "worse",
                           absent->columns, all, member->path, absent->columns == 1 ? "is" : "are",
                           dataset->root, absent->name, absent->columns > 1 ? " ..." : "");
    }
}

stk_status stk_predict_data_features(const stk_dataset *dataset, const stk_member *member,
                                     const stk_events *told, stk_features *features,
                                     stk_error *err) {
    const stk_checkpoint_info *info = &member->info;
    const stk_csv *table = dataset->test_table.columns > 0 ? &dataset->test_table : NULL;
    stk_features_absent absent;
    memset(features, 0, sizeof *features);
    if (info->features == 0) {
        return STK_OK;
    }
    if (lacks_code(info)) {
        return borrow_features(dataset, member, told, features, err);
    }
    stk_status status =
        stk_features_of_code(features, &info->columns, table, dataset->test_record, &absent, err);
    if (status == STK_OK) {
        tell_absent(dataset, member, &absent, told);
    }
    return status;
}

void stk_predict_data_features_free(stk_features *features, const stk_dataset *dataset) {
    if (features->values == dataset->features.values &&
        features->missing == dataset->features.missing) { /* borrowed */
        memset(features, 0, sizeof *features);
    }
    stk_features_free(features);
}
