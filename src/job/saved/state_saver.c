/*
 * state_saver.c - three files that belong together: the state, the best weights, validation.csv.
 *
 * New best weights and their table are written before the state that refers to them. Until that
 * state is on the disk, the files that the previous state refers to are kept beside it under other
 * names (state/best.safetensors, state/validation.csv). So all three belong together whenever the
 * process ends. The table is kept first and removed first: kept weights without a kept table mean
 * that there was no table.
 *
 * A disk may take long for a state, so the tensors are copied and a thread writes the copy; the
 * same thread then removes the kept files of the previous state.
 */
#include "job/saved/state_saver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "weights/checkpoint.h"

#define SLOW_WRITE 200e6 /* bytes per second: assumed until a write was measured */
#define START_SHARE 0.1  /* share of the remaining time for saving before the first step */
#define ONCE_SHARE 0.05  /* share of the budget: limits an estimate from one measurement */
#define LOOK_NS 20000000 /* interval of checks whether a write has ended */
#define STOP_S 5.0       /* longest wait for a write after a request to stop */
#define SLOW_S 3.0       /* a write that took longer when the time was over: the disk hangs */
#define COPY_SHARE 8     /* a copy may take this part (one in so many) of the machine's memory */

void stk_state_saver_note_pretrained(stk_state_saver *saver, const char *sum) {
    memcpy(saver->numbers.pretrained, sum, sizeof saver->numbers.pretrained);
}

stk_status stk_state_saver_open(stk_state_saver *saver, const stk_run_folder *folder,
                                const stk_dataset *dataset, const stk_options *options,
                                const stk_json *given, const char *pretrained_sum, stk_error *err) {
    stk_str asked = {0};
    stk_saved_state *numbers = &saver->numbers;
    stk_options_given(options, given, &asked);
    numbers->given = stk_str_take(&asked);
    saver->path = stk_run_folder_file(folder, STK_SAVED_STATE_FILE);
    saver->epoch_path = stk_run_folder_file(folder, STK_SAVED_STATE_EPOCH);
    saver->best_copy = stk_run_folder_file(folder, STK_SAVED_STATE_BEST);
    stk_saved_state_describe(numbers, dataset);
    memcpy(numbers->run, folder->id, sizeof numbers->run);
    stk_state_saver_note_pretrained(saver, pretrained_sum);
    stk_status status = stk_seen_pictures_open(&saver->pictures, dataset,
                                               stk_run_folder_file(folder, STK_FINGERPRINTS_FILE),
                                               numbers->samples, err);
    if (status != STK_OK) {
        return status;
    }
    return numbers->given != NULL && saver->path != NULL && saver->epoch_path != NULL &&
                   saver->best_copy != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, "the state");
}

void stk_state_saver_continue(stk_state_saver *saver, const stk_train_position *position) {
    saver->exists = true;
    saver->position = *position;
}

void stk_state_saver_close(stk_state_saver *saver) {
    stk_state_saver_free_copy(saver);
    stk_mem_free(saver->path);
    stk_mem_free(saver->epoch_path);
    stk_mem_free(saver->best_copy);
    stk_seen_pictures_free(&saver->pictures);
    stk_saved_state_free(&saver->numbers);
}

/* ---- files of the previous state ---- */

void stk_state_saver_protect_best(stk_state_saver *saver, const char *best_path) {
    if (!stk_path_is_file(best_path) || stk_path_is_file(saver->best_copy)) {
        return; /* nothing to keep, or already kept */
    }
    if (stk_file_alias(saver->table->path, saver->table->kept, NULL) != STK_OK) {
        (void)stk_disk_remove(
            saver->table->kept); /* going back then removes the rows of this fold from the table */
    }
    if (stk_file_alias(best_path, saver->best_copy, NULL) != STK_OK) {
        (void)stk_disk_remove(saver->table->kept);
        stk_events_warning(saver->events,
                           "%s cannot be kept: after a resume the best weights may be those of an "
                           "epoch that was cut short",
                           best_path);
    }
}

void stk_state_saver_best_saved(stk_state_saver *saver, const char *best_path, double seconds) {
    saver->numbers.best_sum = stk_saved_state_sum(best_path);
    stk_typical_note(&saver->best_s, seconds);
}

/* Keeps the last state between two epochs before one within an epoch replaces it. */
static void keep_epoch(stk_state_saver *saver) {
    if (saver->between_epochs) {
        if (stk_file_alias(saver->path, saver->epoch_path, NULL) != STK_OK) {
            stk_events_warning(saver->events, "%s cannot be kept: there is no going back",
                               saver->path);
        }
        saver->between_epochs = false;
    }
}

static void remove_kept_files(const stk_state_saver *saver) {
    (void)stk_disk_remove(saver->table->kept);
    (void)stk_disk_remove(saver->best_copy);
}

static uint64_t state_bytes(const stk_job_network *network) {
    return network->opened.backend->state_bytes(network->graph, &network->state_config);
}

/* Seconds of a write: measured, or estimated by its bytes. */
static double write_seconds(const stk_state_saver *saver) {
    return saver->write_s.count > 0 ? stk_typical_value(&saver->write_s)
                                    : (double)state_bytes(saver->network) / SLOW_WRITE;
}

/* Short time is kept for predictions, and before the first step for steps. */
static bool has_time(stk_state_saver *saver, const stk_train_position *position) {
    double seconds = write_seconds(saver);
    double all_s = stk_state_saver_wait_s(saver) + STK_MARGIN_SAFETY * seconds;
    return !stk_run_clock_must_halt(saver->clock, all_s) &&
           (position->steps_done > 0 ||
            seconds <= START_SHARE * stk_run_clock_before_writing(saver->clock));
}

/* Seconds until the running write ends, if it takes `times` as long as usual or as it has taken so
 * far. */
static double rest_seconds(const stk_state_saver *saver, double times) {
    if (!stk_write_behind_is_pending(&saver->writer) || stk_write_behind_is_done(&saver->writer)) {
        return 0;
    }
    double age_s = stk_write_behind_age(&saver->writer);
    return times * fmax(write_seconds(saver), age_s) - age_s;
}

double stk_state_saver_wait_s(const stk_state_saver *saver) {
    return rest_seconds(saver, STK_MARGIN_SAFETY);
}

double stk_state_saver_likely_wait_s(const stk_state_saver *saver) {
    return rest_seconds(saver, 1);
}

/* Typical seconds; 0: never measured. A single measurement may have been a stall, so it is limited:
 * it must not end a training. */
static double usual(const stk_state_saver *saver, const stk_typical *seconds) {
    double once_s = seconds->count < 2 ? ONCE_SHARE * saver->clock->budget_s : NAN;
    return seconds->count > 0 ? fmin(stk_typical_value(seconds), once_s) : 0;
}

/*
 * A state contains the weights. So if saving the weights took longer than saving a state, something
 * else held it up, and the shorter time counts. Before either was written the number of bytes
 * decides.
 */
double stk_state_saver_best_s(const stk_state_saver *saver) {
    double state_s = usual(saver, &saver->write_s);
    double best_s = usual(saver, &saver->best_s);
    if (state_s <= 0 && best_s <= 0 && saver->network->graph != NULL) {
        return (double)(saver->network->graph->param_elements * sizeof(float)) / SLOW_WRITE;
    }
    return best_s > 0 && state_s > 0 ? fmin(best_s, state_s) : fmax(best_s, state_s);
}

double stk_state_saver_write_s(const stk_state_saver *saver) {
    return STK_MARGIN_SAFETY * usual(saver, &saver->write_s);
}

double stk_state_saver_pause_s(const stk_state_saver *saver) {
    return stk_state_saver_best_s(saver) + usual(saver, &saver->copy_s) +
           usual(saver, &saver->wait_s);
}

/* `out_of_time`: the time of the run ended so soon that it was no fault of the disk. */
static void warn_unsaved(stk_state_saver *saver, const stk_error *why, bool out_of_time) {
    saver->unfinished = saver->unfinished || out_of_time;
    if (!saver->loss_warned) {
        saver->loss_warned = true;
        stk_events_warning(saver->events,
                           "the last state was not saved, so a resume would start before it: %s",
                           out_of_time ? "the time was over before it was written" : why->message);
    }
    /* After a second request to stop nobody waits for the last state: that is no failure. */
    if (!out_of_time && stk_stop_asked(saver->clock->stop) != STK_STOP_NOW) {
        (void)STK_FAIL(saver->late_error, why->status, "%s", why->message);
    }
}

/*
 * Waits for the running write; false: the disk seems to hang. The wait ends when the time that
 * prediction needs is all that is left, and some seconds after a request to stop.
 */
static bool wait_for_state(stk_state_saver *saver) {
    double predict_s = STK_MARGIN_SAFETY * saver->clock->predict_s;
    int64_t stop_ns = 0;
    while (!stk_write_behind_wait(&saver->writer, stk_clock_ns() + LOOK_NS)) {
        if (stk_run_clock_stopping(saver->clock) && stop_ns == 0) {
            stop_ns = stk_clock_ns();
        }
        bool stopped = stop_ns != 0 && stk_clock_since_s(stop_ns) >= STOP_S;
        if (stopped || stk_run_clock_must_halt(saver->clock, predict_s) ||
            stk_write_behind_age(&saver->writer) >= STK_DISK_MOVE_S) {
            return false;
        }
    }
    return true;
}

void stk_state_saver_wait(stk_state_saver *saver) {
    stk_error why = {0};
    if (!stk_write_behind_is_pending(&saver->writer)) {
        return;
    }
    int64_t start = stk_clock_ns();
    bool in_time = wait_for_state(saver);
    bool out_of_time = !in_time && stk_write_behind_age(&saver->writer) < SLOW_S;
    stk_status status = in_time ? stk_write_behind_finish(&saver->writer, &why)
                                : stk_write_behind_give_up(&saver->writer, &why);
    stk_typical_note(&saver->wait_s, stk_clock_since_s(start));
    if (status != STK_OK) {
        warn_unsaved(saver, &why, out_of_time);
        return;
    }
    stk_typical_note(&saver->write_s, stk_write_behind_seconds(&saver->writer));
    saver->exists = true;
    saver->position = saver->writing;
    saver->between_epochs = saver->between_epochs || saver->writing.step == 0;
}

void stk_state_saver_poll(stk_state_saver *saver) {
    if (stk_write_behind_is_done(&saver->writer)) {
        stk_state_saver_wait(saver);
    }
}

void stk_state_saver_free_copy(stk_state_saver *saver) {
    stk_state_saver_wait(saver);
    stk_write_behind_free(&saver->writer);
}

/* Once the new state is written, the files kept for the previous one are not needed: the new state
 * refers to the best weights in their usual place. */
static void remove_kept_later(stk_state_saver *saver) {
    stk_write_behind_remove(&saver->writer, saver->table->kept);
    stk_write_behind_remove(&saver->writer, saver->best_copy);
    if (saver->writing.step == 0) {
        stk_write_behind_remove(&saver->writer, saver->epoch_path);
    }
}

/* Seconds for which the writer thread may wait for fsync; 0: no limit. */
static double sync_limit(stk_state_saver *saver) {
    double sync_s = stk_run_clock_sync_limit(saver->clock, 0);
    return isfinite(sync_s) ? sync_s : 0;
}

/* Saves the fingerprints of the pictures read so far. */
static void save_pictures(stk_state_saver *saver) {
    stk_error why = {0};
    saver->pictures.writer.sync_s = sync_limit(saver);
    if (!saver->pictures_warned && stk_seen_pictures_save(&saver->pictures, &why) != STK_OK) {
        saver->pictures_warned = true;
        stk_events_warning(saver->events,
                           "after a resume pictures that were replaced would not be noticed: %s",
                           why.message);
    }
}

bool stk_state_saver_copies(const stk_job_network *network) {
    return state_bytes(network) <= stk_machine_memory() / COPY_SHARE;
}

static stk_status copy_state(stk_state_saver *saver, stk_error *err) {
    stk_file_writer *file = NULL;
    saver->writer.sync_s = sync_limit(saver);
    stk_status status = stk_write_behind_begin(&saver->writer, &file, saver->path,
                                               stk_state_saver_copies(saver->network), err);
    STK_THEN(status, stk_saved_state_write(file, &saver->numbers, saver->network->opened.backend,
                                           saver->network->state, saver->network->graph, err));
    if (status == STK_OK) {
        remove_kept_later(saver);
        stk_write_behind_start(&saver->writer);
    }
    return status;
}

void stk_state_saver_save(stk_state_saver *saver, const stk_run_totals *totals,
                          const stk_train_position *position) {
    stk_saved_state *numbers = &saver->numbers;
    stk_error why = {0};
    if (!has_time(saver, position)) {
        return;
    }
    stk_state_saver_wait(saver);
    numbers->fold = totals->fold;
    numbers->position = *position;
    numbers->folds_done = totals->folds_done;
    numbers->epochs_before = totals->epochs_before;
    numbers->best_acc1 = totals->best_acc1;
    numbers->best_metric = totals->best_metric;
    numbers->cut = totals->cut;
    numbers->used_s = totals->used_s;
    numbers->seed = totals->seed;
    if (position->step > 0) {
        keep_epoch(saver);
    }
    int64_t start = stk_clock_ns();
    saver->writing = *position;
    if (copy_state(saver, &why) != STK_OK) {
        warn_unsaved(saver, &why, false);
    }
    stk_typical_note(&saver->copy_s, stk_clock_since_s(start));
    stk_state_saver_poll(saver);
    save_pictures(saver);
}

static stk_status put_back(const char *kept, const char *path, stk_error *err) {
    return stk_disk_rename(kept, path) == 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STORAGE, "cannot put %s back to %s: %s", kept, path,
                          stk_disk_reason(errno));
}

/* Restores the table that belongs to the restored best weights. */
static stk_status restore_validation(stk_state_saver *saver, stk_error *err) {
    saver->table->owed = false;
    return stk_path_is_file(saver->table->kept)
               ? put_back(saver->table->kept, saver->table->path, err)
               : stk_val_table_drop(saver->table, err);
}

static bool is_of_epoch(const char *path, int epoch, stk_error *why) {
    stk_checkpoint_info info;
    if (stk_checkpoint_info_read(path, &info, why) != STK_OK) {
        return false;
    }
    int found = info.epoch;
    stk_checkpoint_info_free(&info);
    if (found != epoch) {
        (void)STK_FAIL(why, STK_ERR_DATA, "%s is of epoch %d", path, found);
    }
    return found == epoch;
}

/* Whether the file of best weights is the one that the state refers to. */
static bool is_best(const char *path, const stk_saved_state *run, stk_error *why) {
    if (!is_of_epoch(path, run->position.best.epoch, why)) {
        return false;
    }
    bool same = run->best_sum == 0 || stk_saved_state_sum(path) == run->best_sum;
    if (!same) {
        (void)STK_FAIL(why, STK_ERR_DATA, "%s is damaged or was replaced", path);
    }
    return same;
}

/*
 * Restores the best weights that a state refers to, and their table. When the weights in place are
 * already the right ones, the process ended after the state was written and before the kept files
 * of the previous state were removed; those may be of another fold with the same epoch number.
 * Class means join the best weights after the last state: then the kept ones are those that it
 * knows.
 */
static stk_status restore_best(stk_state_saver *saver, const char *best_path,
                               const stk_saved_state *run, stk_error *err) {
    stk_error ignored = {0};
    if (!stk_path_is_file(
            saver->best_copy)) { /* a table alone: the process ended while it restored both */
        return stk_path_is_file(saver->table->kept) ? restore_validation(saver, err) : STK_OK;
    }
    if (!run->position.has_best || is_best(best_path, run, &ignored) ||
        !is_best(saver->best_copy, run, &ignored)) {
        remove_kept_files(saver);
        return STK_OK;
    }
    stk_status status = put_back(saver->best_copy, best_path, err);
    return status == STK_OK ? restore_validation(saver, err) : status;
}

/*
 * A position whose best weights are lost must forget them: otherwise no later, worse epoch would be
 * saved, and nothing could be delivered.
 */
static void forget_lost_best(stk_state_saver *saver, const char *best_path,
                             const stk_saved_state *run, stk_train_position *position) {
    stk_error why = {0};
    if (position->has_best && !is_best(best_path, run, &why)) {
        stk_events_warning(saver->events,
                           "the best weights so far, of epoch %d, are lost, and the next epoch "
                           "counts as the best: %s",
                           position->best.epoch, why.message);
        position->has_best = false;
        position->since_best = 0;
        position->best = (stk_event_epoch){0};
        position->best_metric = NAN;
    }
}

stk_status stk_state_saver_load(stk_state_saver *saver, const stk_state_wanted *wanted,
                                stk_train_position *position, bool *found, stk_error *err) {
    stk_saved_state run;
    const char *path = saver->path;
    stk_state_saver_wait(saver);
    *found = stk_path_is_file(path);
    if (!*found) {
        return STK_OK;
    }
    stk_error why = {0};
    stk_status status = stk_saved_state_read(path, &run, &why);
    bool damaged = status == STK_ERR_DATA && stk_path_is_file(saver->epoch_path);
    bool within = status == STK_OK && wanted->between_epochs && run.position.step > 0;
    if (within) {
        stk_saved_state_free(&run);
    }
    if (within || damaged) {
        path = saver->epoch_path;
        *found = stk_path_is_file(path);
        status = *found ? stk_saved_state_read(path, &run, err) : STK_OK;
    } else if (status != STK_OK) {
        return STK_FAIL(err, status, "%s", why.message);
    }
    if (status != STK_OK || !*found) {
        return status;
    }
    *found =
        run.fold == wanted->fold; /* a fold whose first state did not fit on the disk has none */
    *position = run.position;
    if (*found) {
        saver->between_epochs = path == saver->path && run.position.step == 0;
        status = stk_saved_state_load(path, &run, saver->network->opened.backend,
                                      saver->network->state, saver->network->graph, err);
    }
    if (status == STK_OK && *found) {
        status = restore_best(saver, wanted->best_path, &run, err);
    }
    if (status == STK_OK && *found) {
        forget_lost_best(saver, wanted->best_path, &run, position);
        saver->numbers.best_sum = run.best_sum;
        status = position->has_best ? STK_OK : stk_val_table_drop(saver->table, err);
    }
    if (status == STK_OK && *found) {
        stk_train_position_rebatch(position, (int64_t)wanted->batch, wanted->accumulate,
                                   wanted->steps_per_epoch);
    }
    stk_saved_state_free(&run);
    return status;
}

void stk_state_saver_explain(const stk_state_saver *saver, int folds_done, const char *run_folder,
                             stk_error *err) {
    const stk_train_position *at = &saver->position;
    size_t end = strlen(err->message);
    char where[96];
    bool device = err->status == STK_ERR_DEVICE || err->status == STK_ERR_MEMORY;
    if (!device || !saver->exists) {
        return;
    }
    if (at->step > 0) {
        snprintf(where, sizeof where, "what was learnt up to step %lld of epoch %d is kept",
                 (long long)at->step, at->epoch + 1);
    } else if (at->epoch > 0) {
        snprintf(where, sizeof where, "what was learnt up to epoch %d is kept", at->epoch);
    } else {
        snprintf(where, sizeof where, "%s",
                 folds_done > 0 ? "the folds that are done are kept" : "no epoch was done yet");
    }
    bool begun = at->step > 0 || at->epoch > 0 || folds_done > 0;
    snprintf(err->message + end, sizeof err->message - end, "; %s: `stoker train --resume %s` %s",
             where, run_folder, begun ? "goes on from there" : "begins again");
}
