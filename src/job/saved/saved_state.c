/* saved_state.c - the numbers of a saved state as metadata of a safetensors file, and back. */
#include "job/saved/saved_state.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "weights/train_state.h"

typedef enum note_kind {
    COUNT,      /* int */
    COUNT64,    /* int64_t */
    LATER64,    /* int64_t; 0 in files of older versions, which lack it */
    NUMBER,     /* double, to the last bit */
    LATER,      /* double; 0 in files of older versions, which lack it */
    TRUTH,      /* bool */
    LATER_TRUTH /* bool; false in files of older versions, which lack it */
} note_kind;

typedef struct note {
    const char *key;
    note_kind kind;
    size_t offset; /* in stk_saved_state */
} note;

#define AT(field) offsetof(stk_saved_state, field)

static const note notes[] = {
    {"fold", COUNT, AT(fold)},
    {"epoch", COUNT, AT(position.epoch)},
    {"step", COUNT64, AT(position.step)},
    {"steps_per_epoch", COUNT64, AT(position.steps_per_epoch)},
    {"batch", LATER64, AT(position.batch)},
    {"accumulate", LATER64, AT(position.accumulate)},
    {"micro_steps", COUNT64, AT(position.steps_waiting)},
    {"steps_done", COUNT64, AT(position.steps_done)},
    {"total_steps", COUNT64, AT(position.total_steps)},
    {"updates", COUNT64, AT(position.updates)},
    {"schedule", NUMBER, AT(position.schedule)},
    {"lr_scale", NUMBER, AT(position.lr_scale)},
    {"setbacks", COUNT, AT(position.setbacks)},
    {"epochs_done", COUNT, AT(position.epochs_done)},
    {"since_best", COUNT, AT(position.since_best)},
    {"has_best", TRUTH, AT(position.has_best)},
    {"best_epoch", COUNT, AT(position.best.epoch)},
    {"best_train_acc1", LATER, AT(position.best.train_acc1)},
    {"best_val_loss", NUMBER, AT(position.best.val_loss)},
    {"best_val_acc1", NUMBER, AT(position.best.val_acc1)},
    {"best_val_acc5", NUMBER, AT(position.best.val_acc5)},
    {"best_metric", NUMBER, AT(position.best_metric)},
    {"small", LATER_TRUTH, AT(position.small)},
    {"best_small", LATER_TRUTH, AT(position.best_small)},
    {"top_metric", LATER, AT(position.top_metric)},
    {"top_epoch", LATER64, AT(position.top_epoch)},
    {"loss_floor", NUMBER, AT(position.watch.floor)},
    {"loss_smooth", NUMBER, AT(position.watch.smooth)},
    {"loss_lowest", NUMBER, AT(position.watch.lowest)},
    {"loss_steps", COUNT64, AT(position.watch.steps)},
    {"loss_sum", NUMBER, AT(position.loss_sum)},
    {"correct", NUMBER, AT(position.correct)},
    {"images", NUMBER, AT(position.images)},
    {"folds_done", COUNT, AT(folds_done)},
    {"folds_epochs", COUNT, AT(epochs_before)},
    {"folds_acc1", NUMBER, AT(best_acc1)},
    {"folds_metric", NUMBER, AT(best_metric)},
    {"cut", TRUTH, AT(cut)},
    {"used_s", NUMBER, AT(used_s)},
    {"best_sum", LATER64, AT(best_sum)},
    {"classes", COUNT, AT(classes)},
    {"train_images", COUNT64, AT(train_images)},
    {"val_images", COUNT64, AT(val_images)},
    {"seed", COUNT64, AT(seed)},
};

#define NOTES STK_COUNT(notes)
#define TEXT_NOTES 4 /* samples, given, run, pretrained */
#define NOTE_TEXT 32 /* 17 digits, sign, point and exponent */

void stk_saved_state_free(stk_saved_state *state) {
    stk_mem_free(state->given);
    memset(state, 0, sizeof *state);
}

int64_t stk_saved_state_sum(const char *path) {
    uint64_t sum = 0;
    return stk_checksum_file(path, &sum, NULL) == STK_OK ? (int64_t)(sum >> 1 | 1) : 0;
}

static void add_samples(stk_sha256 *hash, const stk_sample_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const stk_sample *sample = &list->items[i];
        char label[16];
        int length = snprintf(label, sizeof label, "%d", sample->label);
        const char *path = sample->path != NULL ? sample->path : "";
        stk_sha256_add(hash, path, strlen(path) + 1);
        stk_sha256_add(hash, label, (size_t)length + 1);
    }
}

/* Adds the column that divides the samples (--fold-column, --group-column), where one does. */
static void add_division(stk_sha256 *hash, const stk_dataset *dataset) {
    if (dataset->division == STK_DIVIDE_CLASSES) {
        return;
    }
    stk_sha256_add(hash, dataset->division == STK_DIVIDE_FOLDS ? "folds" : "groups", 6);
    for (size_t i = 0; i < dataset->train.count; i++) {
        int part = dataset->train.items[i].part;
        const char *value = part >= 0 ? dataset->parts[part] : "";
        stk_sha256_add(hash, value, strlen(value) + 1);
    }
}

/* Adds what the samples of a list are trained to say, where that is more than a class, and the
 * numbers beside their pictures. */
static void add_records(stk_sha256 *hash, const stk_dataset *dataset, const stk_sample_list *list) {
    const stk_targets *t = &dataset->targets;
    const stk_features *f = &dataset->features;
    size_t outputs = (size_t)t->outputs;
    for (size_t i = 0; i < list->count; i++) {
        size_t record = (size_t)list->items[i].record; /* -1 is beyond all records */
        if (record < t->count && t->is_labels) {
            size_t first = t->starts[record];
            size_t count = t->starts[record + 1] - first;
            stk_sha256_add(hash, &count, sizeof count);
            stk_sha256_add(hash, t->labels + first, count * sizeof *t->labels);
        } else if (record < t->count) {
            stk_sha256_add(hash, t->numbers + record * outputs, outputs * sizeof *t->numbers);
        }
        if (record < f->rows) {
            stk_sha256_add(hash, stk_features_row(f, record), (size_t)f->count * sizeof(float));
        }
    }
}

/* The same of all lists. Data sets that have classes alone have the digest that older versions
 * gave them. */
static void add_targets(stk_sha256 *hash, const stk_dataset *dataset) {
    if (dataset->targets.outputs > 0 || dataset->features.count > 0) {
        stk_sha256_add(hash, "records", 8);
        add_records(hash, dataset, &dataset->train);
        add_records(hash, dataset, &dataset->val);
    }
}

/* Hashes classes, pictures, labels and folds in order, since every batch follows from them. */
static void hash_samples(const stk_dataset *dataset, char text[STK_SHA256_TEXT]) {
    uint8_t digest[STK_SHA256_BYTES];
    stk_sha256 hash;
    stk_sha256_begin(&hash);
    for (int c = 0; c < dataset->class_count; c++) {
        stk_sha256_add(&hash, dataset->classes[c], strlen(dataset->classes[c]) + 1);
    }
    add_samples(&hash, &dataset->train);
    add_samples(&hash, &dataset->val);
    add_division(&hash, dataset);
    add_targets(&hash, dataset);
    stk_sha256_end(&hash, digest);
    stk_hex(digest, sizeof digest, text);
}

void stk_saved_state_describe(stk_saved_state *state, const stk_dataset *dataset) {
    state->classes = dataset->class_count;
    state->train_images = (int64_t)dataset->train.count;
    state->val_images = (int64_t)dataset->val.count;
    hash_samples(dataset, state->samples);
}

stk_status stk_saved_state_check(const stk_saved_state *state, const stk_dataset *dataset,
                                 stk_error *err) {
    char samples[STK_SHA256_TEXT];
    if (state->classes != dataset->class_count) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "class count changed between train and resume: the run has %d classes, %s "
                        "has %d now; begin a new run",
                        state->classes, dataset->root, dataset->class_count);
    }
    if (state->train_images != (int64_t)dataset->train.count ||
        state->val_images != (int64_t)dataset->val.count) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the number of images changed between train and resume: the run has %lld "
                        "for training and %lld for validation, %s has %zu and %zu now; begin a new "
                        "run",
                        (long long)state->train_images, (long long)state->val_images, dataset->root,
                        dataset->train.count, dataset->val.count);
    }
    hash_samples(dataset, samples);
    if (strcmp(samples, state->samples) != 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "names or labels of the images of %s%s%s%s changed between train and "
                        "resume; begin a new run",
                        dataset->root,
                        dataset->features.count > 0 ? ", or columns beside them" : "",
                        dataset->part_column != NULL ? ", or its column " : "",
                        dataset->part_column != NULL ? dataset->part_column : "");
    }
    return STK_OK;
}

static void write_note(const note *n, const stk_saved_state *run, char text[NOTE_TEXT]) {
    const void *at = (const char *)run + n->offset;
    switch (n->kind) {
    case COUNT:
        snprintf(text, NOTE_TEXT, "%d", *(const int *)at);
        break;
    case COUNT64:
    case LATER64:
        snprintf(text, NOTE_TEXT, "%lld", (long long)*(const int64_t *)at);
        break;
    case NUMBER:
    case LATER:
        snprintf(text, NOTE_TEXT, "%.17g", *(const double *)at);
        break;
    case TRUTH:
    case LATER_TRUTH:
        snprintf(text, NOTE_TEXT, "%s", *(const bool *)at ? "true" : "false");
        break;
    }
}

/* False: the text is no value of this kind. Counts are never negative; a number may be NaN or
 * infinite. */
static bool read_note(const note *n, const char *text, stk_saved_state *run) {
    void *at = (char *)run + n->offset;
    char *end = NULL;
    int64_t whole = 0;
    if (text == NULL) {
        return n->kind == LATER64 || n->kind == LATER || n->kind == LATER_TRUTH;
    }
    switch (n->kind) {
    case COUNT:
        if (!stk_parse_int(text, &whole) || whole < 0 || whole > INT_MAX) {
            return false;
        }
        *(int *)at = (int)whole;
        return true;
    case COUNT64:
    case LATER64:
        if (!stk_parse_int(text, &whole) || whole < 0) {
            return false;
        }
        *(int64_t *)at = whole;
        return true;
    case NUMBER:
    case LATER:
        *(double *)at = strtod(text, &end);
        return end != text && *end == '\0';
    case TRUTH:
    case LATER_TRUTH:
        return stk_parse_bool(text, (bool *)at);
    }
    return false;
}

/* Limits that no training comes near. Numbers below them can be added and multiplied without
 * overflow. */
#define MOST_EPOCHS 1000000000
#define MOST_STEPS ((int64_t)1 << 53)
#define MOST_BATCH 1000000
#define MOST_SECONDS 1e9

/* Whether the sums of losses are usable: a loss watch with a NaN would never warn again. */
static bool sums_are_sound(const stk_train_position *p) {
    const stk_loss_watch *w = &p->watch;
    return isfinite(w->floor) && isfinite(w->smooth) && !isnan(w->lowest) &&
           w->steps <= MOST_STEPS && isfinite(p->loss_sum) && isfinite(p->images) &&
           p->correct >= 0 && p->correct <= p->images;
}

static bool counts_are_sound(const stk_saved_state *run) {
    const stk_train_position *p = &run->position;
    int counts[] = {run->fold,   run->folds_done, run->epochs_before, p->epoch,
                    p->setbacks, p->epochs_done,  p->since_best,      p->best.epoch};
    bool sound = p->steps_per_epoch <= MOST_STEPS && p->batch <= MOST_BATCH &&
                 p->accumulate <= MOST_STEPS && (p->accumulate > 0) == (p->batch > 0) &&
                 (double)p->steps_done <= ((double)p->epoch + 1) * (double)p->steps_per_epoch &&
                 p->steps_done <= MOST_STEPS;
    for (size_t i = 0; i < STK_COUNT(counts); i++) {
        sound = sound && counts[i] < MOST_EPOCHS;
    }
    return sound;
}

/* Whether a training can have these numbers; a damaged file may say anything. */
static bool is_sound(const stk_saved_state *run) {
    const stk_train_position *p = &run->position;
    return counts_are_sound(run) && sums_are_sound(p) && p->step <= p->steps_per_epoch &&
           p->step <= p->steps_done && p->steps_waiting <= p->step && p->updates <= p->steps_done &&
           p->schedule >= 0 && p->schedule <= 1.000001 && p->lr_scale > 0 && p->lr_scale <= 1 &&
           run->folds_done <= run->fold && run->used_s >= 0 && run->used_s <= MOST_SECONDS;
}

stk_status stk_saved_state_write(stk_file_writer *writer, const stk_saved_state *run,
                                 const stk_backend *backend, stk_state *state,
                                 const stk_graph *graph, stk_error *err) {
    char texts[NOTES][NOTE_TEXT];
    stk_tensor_note all[NOTES + TEXT_NOTES];
    for (size_t i = 0; i < NOTES; i++) {
        write_note(&notes[i], run, texts[i]);
        all[i] = (stk_tensor_note){notes[i].key, texts[i]};
    }
    all[NOTES] = (stk_tensor_note){"samples", run->samples};
    all[NOTES + 1] = (stk_tensor_note){"given", run->given != NULL ? run->given : "{}"};
    all[NOTES + 2] = (stk_tensor_note){"run", run->run};
    all[NOTES + 3] = (stk_tensor_note){"pretrained", run->pretrained};
    return stk_train_state_save(writer, backend, state, graph, run->position.steps_waiting > 0, all,
                                NOTES + TEXT_NOTES, err);
}

static stk_status read_notes(const stk_tensor_file *file, const char *path, stk_saved_state *run,
                             stk_error *err) {
    for (size_t i = 0; i < NOTES; i++) {
        if (!read_note(&notes[i], stk_tensors_note(file, notes[i].key), run)) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s has no usable '%s' in its metadata: another version of Stoker "
                            "wrote it, or it is damaged",
                            path, notes[i].key);
        }
    }
    const char *samples = stk_tensors_note(file, "samples");
    const char *given = stk_tensors_note(file, "given");
    const char *id = stk_tensors_note(file, "run");
    const char *pretrained = stk_tensors_note(file, "pretrained");
    if (samples == NULL || given == NULL || !is_sound(run)) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is damaged: its metadata contradict themselves",
                        path);
    }
    run->position.best.fold = run->fold;
    run->position.best.best = run->position.has_best;
    snprintf(run->samples, sizeof run->samples, "%s", samples);
    snprintf(run->run, sizeof run->run, "%s", id != NULL ? id : "");
    snprintf(run->pretrained, sizeof run->pretrained, "%s", pretrained != NULL ? pretrained : "");
    run->given = stk_mem_strdup(given);
    return run->given != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
}

stk_status stk_saved_state_read(const char *path, stk_saved_state *run, stk_error *err) {
    stk_tensor_file file;
    memset(run, 0, sizeof *run);
    stk_status status = stk_tensors_open(&file, path, err);
    if (status == STK_OK) {
        status = stk_train_state_verify(&file, path, err);
        STK_THEN(status, read_notes(&file, path, run, err));
        stk_tensors_close(&file);
    }
    if (status != STK_OK) {
        stk_saved_state_free(run);
    }
    return status;
}

stk_status stk_saved_state_fits(const char *path, const stk_saved_state *run,
                                const stk_backend *backend, const stk_state *state,
                                const stk_graph *graph, stk_error *err) {
    stk_tensor_file file;
    stk_status status = stk_tensors_open(&file, path, err);
    if (status == STK_OK) {
        status = stk_train_state_fits(&file, path, backend, state, graph,
                                      run->position.steps_waiting > 0, err);
        stk_tensors_close(&file);
    }
    return status;
}

stk_status stk_saved_state_load(const char *path, const stk_saved_state *run,
                                const stk_backend *backend, stk_state *state,
                                const stk_graph *graph, stk_error *err) {
    stk_tensor_file file;
    stk_status status = stk_tensors_open(&file, path, err);
    if (status == STK_OK) {
        status = stk_train_state_load(&file, path, backend, state, graph,
                                      run->position.steps_waiting > 0, err);
        stk_tensors_close(&file);
    }
    return status;
}
