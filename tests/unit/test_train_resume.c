/*
 * test_train_resume.c - a training that is saved, taken up again or taken back.
 *
 * The hooks keep tensors and position in files as the job does, so that the same code is tried that
 * a run uses.
 */
#include "check.h"
#include "train_fold.h"

#include "job/saved/saved_state.h"
#include "train/loss_watch.h"
#include "weights/train_state.h"

#define TOTAL 9 /* steps: four epochs of two and a part of a fifth */

typedef struct keeper {
    fold f; /* first: the hooks are handed a pointer to it */
    char latest[512];
    char epoch[512]; /* the last one between epochs */
    int saved;
    int loaded;
    char decision[256];
} keeper;

static stk_file_writer *file_at(const char *path) {
    stk_error err = {0};
    stk_file_writer *writer = NULL;
    must(stk_file_create(&writer, path, &err), &err);
    return writer;
}

static void save_to(const keeper *k, const char *path, const stk_train_position *position) {
    stk_error err = {0};
    stk_saved_state run = {.position = *position};
    must(stk_saved_state_write(file_at(path), &run, k->f.backend, k->f.state, k->f.graph, &err),
         &err);
}

static void load_from(const keeper *k, const char *path, stk_train_position *position) {
    stk_error err = {0};
    stk_saved_state run;
    must(stk_saved_state_read(path, &run, &err), &err);
    must(stk_saved_state_load(path, &run, k->f.backend, k->f.state, k->f.graph, &err), &err);
    *position = run.position;
    stk_saved_state_free(&run);
}

static void save_state(void *user, const stk_train_position *position) {
    keeper *k = user;
    k->saved++;
    save_to(k, k->latest, position);
    if (position->step == 0) {
        save_to(k, k->epoch, position);
    }
}

static stk_status load_state(void *user, stk_train_position *position, bool *there,
                             stk_error *err) {
    keeper *k = user;
    (void)err;
    k->loaded++;
    *there = true;
    load_from(k, k->epoch, position);
    return STK_OK;
}

static void on_decision(void *user, const stk_event_decision *event) {
    keeper *k = user;
    if (strstr(event->what, "back to") != NULL) {
        snprintf(k->decision, sizeof k->decision, "%s: %s", event->what, event->why);
    }
}

/* One folder for all that take up what another has saved. */
static const char *state_folder(void) {
    static char dir[256];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s", check_folder());
    }
    return dir;
}

static void open_keeper(keeper *k, stk_graph *graph, bool scripted) {
    memset(k, 0, sizeof *k);
    open_fold(&k->f, graph, 2, scripted);
    k->f.observer.decision = on_decision;
    k->f.config.hooks.save_state = save_state;
    k->f.config.hooks.load_state = load_state;
    k->f.config.hooks.save_every_s = 1e9;
    k->f.total = TOTAL;
    snprintf(k->latest, sizeof k->latest, "%s/latest.safetensors", state_folder());
    snprintf(k->epoch, sizeof k->epoch, "%s/epoch.safetensors", state_folder());
}

/* Everything that a step can depend on at once. */
static void use_all(keeper *k) {
    k->f.options.optimizer = STK_ADAMW;
    k->f.options.ema = 0.9;
    k->f.options.mixup = 0.4;
    k->f.options.cutmix = 0.4;
    k->f.options.accumulate = 3;
    k->f.options.weight_decay = 0.01;
    k->f.options.clip_grad = 1;
    k->f.config.lr = 0.01;
    k->f.config.train_compile.batch = 4; /* four steps an epoch */
}

static void check_same(const fold *a, const fold *b) {
    CHECK(hash_weights(a) == hash_weights(b));
    CHECK(hash_tensors(a, STK_TENSOR_MOMENTUM) == hash_tensors(b, STK_TENSOR_MOMENTUM));
    CHECK(hash_tensors(a, STK_TENSOR_SECOND) == hash_tensors(b, STK_TENSOR_SECOND));
    CHECK(hash_tensors(a, STK_TENSOR_EMA) == hash_tensors(b, STK_TENSOR_EMA));
    CHECK_INT(a->result.epochs_done, b->result.epochs_done);
    CHECK_INT(a->result.best.epoch, b->result.best.epoch);
    CHECK_NEAR(a->result.best_metric, b->result.best_metric, 0);
    const stk_event_epoch *x = &a->epoch[a->epochs - 1];
    const stk_event_epoch *y = &b->epoch[b->epochs - 1];
    CHECK_NEAR(x->train_loss, y->train_loss, 0);
    CHECK_NEAR(x->train_acc1, y->train_acc1, 0);
    CHECK_NEAR(x->val_loss, y->val_loss, 0);
    CHECK_NEAR(x->lr, y->lr, 0);
}

/* From the beginning or from what was saved last, until so many steps are done. */
static void run_part(keeper *k, bool all, bool from_saved, int64_t stop_at) {
    stk_train_position position;
    open_keeper(k, norm_graph(), false);
    if (all) {
        use_all(k);
    }
    if (from_saved) {
        load_from(k, k->latest, &position);
        k->f.config.resume = &position;
    }
    k->f.stop_at = stop_at;
    CHECK_INT(run_fold(&k->f), STK_OK);
    k->f.config.resume = NULL;
}

/* Stopped after any number of steps, and once more two steps later. */
static void taken_up_anywhere(void) {
    for (int all = 0; all < 2; all++) {
        keeper whole;
        run_part(&whole, all != 0, false, -1);
        CHECK_INT(whole.f.steps, TOTAL);
        for (int64_t stop = 0; stop <= TOTAL; stop += check_is_quick() ? 5 : all ? 1 : 3) {
            keeper k;
            run_part(&k, all != 0, false, stop);
            close_fold(&k.f);
            run_part(&k, all != 0, true, stop + 2);
            CHECK_INT(k.f.steps, stop + 2 <= TOTAL ? 2 : TOTAL - stop);
            close_fold(&k.f);
            run_part(&k, all != 0, true, -1);
            CHECK(hash_weights(&k.f) == hash_weights(&whole.f));
            if (stop + 2 < TOTAL) { /* otherwise the last part has no epoch to tell of */
                check_same(&k.f, &whole.f);
            }
            close_fold(&k.f);
        }
        close_fold(&whole.f);
    }
}

/* The fourth of five epochs is the first with pictures of the usual size. Wherever training was
 * stopped, it goes on with the size that it would have had. */
static void taken_up_with_small_pictures(void) {
    stk_graph *small = norm_graph_of(SIZE - 4);
    keeper whole;
    for (int64_t stop = -1; stop <= TOTAL; stop += check_is_quick() && stop > 0 ? 3 : 1) {
        keeper other;
        keeper *k = stop < 0 ? &whole : &other;
        for (int part = 0; part < (stop < 0 ? 1 : 2); part++) {
            stk_train_position position;
            open_keeper(k, norm_graph(), false);
            k->f.config.small_graph = k->f.config.small_val_graph = small;
            if (part == 1) {
                load_from(k, k->latest, &position);
                k->f.config.resume = &position;
            }
            k->f.stop_at = part == 0 ? stop : -1;
            CHECK_INT(run_fold(&k->f), STK_OK);
            if (part == 0 && stop >= 0) {
                CHECK(k->f.result.small == (stop <= 6));
                CHECK(k->f.result.best_small == (stop > 0 && stop <= 6));
                close_fold(&k->f);
            }
        }
        CHECK(!k->f.result.small);
        CHECK(hash_weights(&k->f) == hash_weights(&whole.f));
        CHECK_INT(k->f.result.best.epoch, whole.f.result.best.epoch);
        CHECK(k->f.result.best_small == whole.f.result.best_small);
        if (stop >= 0) {
            close_fold(&k->f);
        }
    }
    close_fold(&whole.f);
    stk_graph_free(small);
}

/* The first epoch of the usual size goes wrong: the state before it is that of the last small one,
 * and what was measured is converted once. */
static void taken_back_across_the_change_of_size(void) {
    keeper k;
    open_keeper(&k, norm_graph(), true);
    stk_graph *small = norm_graph_of(SIZE - 4);
    k.f.config.small_graph = k.f.config.small_val_graph = small;
    script.broken_step = 6;
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK_INT(k.loaded, 1);
    CHECK_CONTAINS(k.decision, "back to epoch 3 with half the learning rate");
    CHECK(!k.f.result.small && !k.f.result.diverged);
    CHECK_INT(k.f.result.epochs_done, 5);
    close_fold(&k.f);
    stk_graph_free(small);
}

/* A part of an epoch is validated when training stops, but is no epoch of the run. */
static void part_of_an_epoch_leaves_no_trace(void) {
    keeper k;
    stk_train_position position;
    open_keeper(&k, plain_graph(), true);
    script.wrong[0] = 4;
    script.wrong[1] = 1; /* the part looks better than the first epoch */
    k.f.options.patience = 5;
    k.f.stop_at = 3;
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK_INT(k.f.result.best.epoch, 2);
    CHECK_INT(k.f.result.epochs_done, 2);
    load_from(&k, k.latest, &position);
    CHECK_INT(position.epoch, 1);
    CHECK_INT(position.step, 1);
    CHECK_INT(position.steps_done, 3);
    CHECK_INT(position.epochs_done, 1);
    CHECK_INT(position.since_best, 0);
    CHECK(position.has_best);
    CHECK_INT(position.best.epoch, 1);
    CHECK_NEAR(position.best_metric, 50, 0);
    CHECK_NEAR(position.images, 8, 0);
    CHECK_INT(k.saved, 3); /* before the first step, after an epoch, at the stop */
    close_fold(&k.f);
}

/* What is saved in the second half of an epoch whose first half was judged. */
static void the_rest_of_an_epoch_counts_once(void) {
    keeper k;
    stk_train_position position;
    open_keeper(&k, plain_graph(), true);
    script.wrong[1] = 4;
    k.f.config.train_compile.batch = 4; /* four steps an epoch */
    k.f.total = 6;
    k.f.more = 20;
    k.f.stop_at = 7;
    CHECK_INT(run_fold(&k.f), STK_OK);
    load_from(&k, k.latest, &position);
    CHECK_INT(position.steps_done, 7);
    CHECK_INT(position.epochs_done, 1);
    CHECK_INT(position.since_best, 0);
    close_fold(&k.f);
}

static void saved_within_epochs_when_it_is_time(void) {
    keeper k;
    open_keeper(&k, plain_graph(), true);
    k.f.config.hooks.save_every_s = 0;
    k.f.total = 4;
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK_INT(k.saved, 5); /* at the beginning and after each of four steps */
    close_fold(&k.f);
}

/* A validation that was cut off is made up for, and nothing is trained twice. */
static void validation_is_made_up_for(void) {
    keeper k;
    stk_train_position position;
    open_keeper(&k, plain_graph(), true);
    k.f.total = 4;
    k.f.halt_after = true;
    k.f.halt_infers = 1; /* the second validation is not begun */
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK_INT(k.f.result.epochs_done, 1);
    close_fold(&k.f);

    open_keeper(&k, plain_graph(), true);
    k.f.total = 4;
    load_from(&k, k.latest, &position);
    CHECK_INT(position.epoch, 1);
    CHECK_INT(position.step, 2);
    k.f.config.resume = &position;
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK_INT(script.step_count, 0);
    CHECK_INT(script.infers, 1);
    CHECK_INT(k.f.result.epochs_done, 2);
    CHECK_INT(k.f.epoch[0].epoch, 2);
    close_fold(&k.f);
}

/* A training whose patience had run out, or that had all its steps, has nothing left to do. */
static void finished_training_stays_finished(void) {
    for (int by_patience = 0; by_patience < 2; by_patience++) {
        keeper k;
        stk_train_position position;
        for (int again = 0; again < 2; again++) {
            open_keeper(&k, plain_graph(), true);
            script.wrong[1] = script.wrong[2] = 4;
            k.f.options.patience = by_patience ? 2 : 0;
            k.f.total = by_patience ? 100 : 6;
            if (again) {
                load_from(&k, k.latest, &position);
                k.f.config.resume = &position;
            }
            CHECK_INT(run_fold(&k.f), STK_OK);
            CHECK_INT(script.step_count, again ? 0 : 6);
            CHECK_INT(k.f.result.epochs_done, 3);
            CHECK_INT(k.f.result.best.epoch, 1);
            CHECK_INT(k.f.result.ran_out_of_patience, by_patience);
            close_fold(&k.f);
        }
    }
}

static void wrong_step_goes_back_with_half_the_rate(void) {
    keeper k;
    open_keeper(&k, plain_graph(), true);
    k.f.total = 8;
    script.broken_step = 5; /* the second of the third epoch */
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK(!k.f.result.diverged && k.f.result.has_best);
    CHECK_INT(k.loaded, 1);
    CHECK_INT(script.step_count, 10); /* the third epoch twice */
    CHECK_INT(k.f.result.epochs_done, 4);
    CHECK_NEAR(k.f.result.lr_scale, 0.5, 0);
    CHECK_NEAR(script.steps[6].lr, 0.5 * script.steps[4].lr, 1e-9);
    CHECK_NEAR(script.steps[7].lr, 0.5 * script.steps[5].lr, 1e-9);
    CHECK_STR(k.decision,
              "back to epoch 2 with half the learning rate: the loss became NaN at step "
              "2 of epoch 3");
    stk_train_position position;
    load_from(&k, k.latest, &position);
    CHECK_INT(position.setbacks, 1);
    CHECK_NEAR(position.lr_scale, 0.5, 0);
    CHECK_INT(position.steps_done, 8);
    close_fold(&k.f);
}

/* Broken validations are as many setbacks as there may be, and one more. */
static void three_setbacks_are_enough(void) {
    keeper k;
    open_keeper(&k, plain_graph(), false);
    k.f.config.lr = 1e30;
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK(k.f.result.diverged);
    CHECK_INT(k.loaded, 3);
    CHECK_NEAR(k.f.result.lr_scale, 0.125, 0);
    CHECK_CONTAINS(k.decision, "back to the start");
    CHECK_CONTAINS(k.f.result.trouble, "NaN");
    close_fold(&k.f);
}

/* Without validation only the weights themselves tell that the last step broke them. */
static void broken_weights_are_never_kept(void) {
    keeper k;
    stk_error err = {0};
    bool finite = false;
    open_keeper(&k, plain_graph(), false);
    k.f.config.val_data.count = 0;
    k.f.config.lr = INFINITY;
    k.f.options.warmup = 0;
    k.f.config.train_compile.batch = TRAIN; /* one step an epoch */
    k.f.total = 1;
    CHECK_INT(run_fold(&k.f), STK_OK);
    CHECK(k.f.result.diverged && !k.f.result.has_best);
    CHECK_INT(k.f.epochs, 0);
    CHECK_INT(k.saved, 1);
    CHECK_CONTAINS(k.f.result.trouble, "the weights became NaN");
    stk_train_position position;
    load_from(&k, k.latest, &position);
    must(stk_train_finite(k.f.backend, k.f.state, k.f.graph, &finite, &err), &err);
    CHECK(finite);
    close_fold(&k.f);
}

static stk_loss_verdict feed(stk_loss_watch *watch, double loss, int steps) {
    stk_loss_verdict verdict = STK_LOSS_FINE;
    for (int i = 0; i < steps && verdict == STK_LOSS_FINE; i++) {
        verdict = stk_loss_watch_add(watch, loss);
    }
    return verdict;
}

static void loss_is_watched(void) {
    stk_loss_watch watch = stk_loss_watch_new(10);
    CHECK(stk_loss_watch_is_calm(&watch));
    CHECK_INT(feed(&watch, 2.3, 100), STK_LOSS_FINE);
    CHECK_INT(feed(&watch, 1e30, 1), STK_LOSS_FINE); /* one bad batch */
    CHECK(stk_loss_watch_is_calm(&watch));
    CHECK_INT(feed(&watch, 0.1, 400), STK_LOSS_FINE);
    CHECK_INT(feed(&watch, 7, 1000), STK_LOSS_FINE); /* bad, but not out of bounds */
    CHECK_INT(feed(&watch, 0.1, 400), STK_LOSS_FINE);
    CHECK_INT(feed(&watch, 1e9, 30), STK_LOSS_EXPLODED);
    CHECK(!stk_loss_watch_is_calm(&watch));
    CHECK_INT(feed(&watch, INFINITY, 1), STK_LOSS_NOT_FINITE);
    watch = stk_loss_watch_new(2);
    CHECK_INT(feed(&watch, 30, 500), STK_LOSS_FINE); /* where it began is no explosion */
    CHECK_INT(feed(&watch, 200, 500), STK_LOSS_EXPLODED);
    CHECK_INT(feed(&watch, NAN, 1), STK_LOSS_NOT_FINITE);
}

/* A training of few steps is over before the moving mean is old enough. */
static void epochs_of_few_steps_are_judged(void) {
    stk_loss_watch watch = stk_loss_watch_new(10);
    CHECK(!stk_loss_watch_is_absurd(&watch, 1e9)); /* no step, no measure */
    CHECK_INT(feed(&watch, 2.3, 4), STK_LOSS_FINE);
    CHECK_INT(feed(&watch, 1e30, 1), STK_LOSS_FINE);
    CHECK(!stk_loss_watch_is_absurd(&watch, 2e29)); /* one bad batch of five */
    CHECK_INT(feed(&watch, 1e8, 5), STK_LOSS_FINE);
    CHECK(stk_loss_watch_is_absurd(&watch, 1e8));
    CHECK(!stk_loss_watch_is_absurd(&watch, 50)); /* high, but a training may come down from it */
    CHECK(stk_loss_watch_is_absurd_validation(&watch, 1e34));
    CHECK(!stk_loss_watch_is_absurd_validation(&watch, 3000)); /* young running statistics */
    CHECK(!stk_loss_watch_is_absurd_validation(&watch, NAN));
}

/* Eight steps in all, whose losses are numbers and beyond all measure. */
static void explosion_of_few_steps_goes_back(void) {
    for (int validated = 0; validated < 2; validated++) {
        keeper k;
        open_keeper(&k, plain_graph(), false);
        k.f.config.lr = 1e9;
        k.f.options.warmup = 0;
        k.f.total = 8;
        k.f.config.val_data.count = validated ? k.f.config.val_data.count : 0;
        CHECK_INT(run_fold(&k.f), STK_OK);
        CHECK(k.f.result.diverged && !k.f.result.has_best);
        CHECK_INT(k.loaded, 3);
        CHECK_CONTAINS(k.decision,
                       validated ? "the validation loss of epoch " : "the loss of epoch ");
        close_fold(&k.f);
    }
}

/* What is read back is what was written, whatever bits it has; anything else is refused. */
static void state_files_are_exact(void) {
    stk_error err = {0};
    keeper k;
    char path[512];
    open_keeper(&k, plain_graph(), true);
    snprintf(path, sizeof path, "%s/exact.safetensors", state_folder());
    stk_saved_state run = {.fold = 3,
                           .folds_done = 2,
                           .best_acc1 = NAN,
                           .used_s = 0.1 + 0.2,
                           .train_images = INT64_MAX,
                           .samples = "abc",
                           .given = stk_mem_strdup("{\"batch\": \"8\"}"),
                           .position = {.epoch = 7,
                                        .step = 2,
                                        .steps_per_epoch = 5,
                                        .steps_done = 37,
                                        .schedule = 1.0 / 3,
                                        .lr_scale = 0.25,
                                        .has_best = true,
                                        .best = {.epoch = 6, .val_loss = 1e-300},
                                        .watch = {.lowest = INFINITY}}};
    must(stk_saved_state_write(file_at(path), &run, k.f.backend, k.f.state, k.f.graph, &err), &err);
    stk_saved_state back;
    must(stk_saved_state_read(path, &back, &err), &err);
    CHECK_INT(back.fold, 3);
    CHECK(isnan(back.best_acc1) && isinf(back.position.watch.lowest));
    CHECK_NEAR(back.used_s, run.used_s, 0);
    CHECK_INT(back.train_images, INT64_MAX);
    CHECK_STR(back.samples, "abc");
    CHECK_STR(back.given, run.given);
    CHECK_NEAR(back.position.schedule, run.position.schedule, 0);
    CHECK_NEAR(back.position.best.val_loss, 1e-300, 0);
    CHECK_INT(back.position.best.epoch, 6);
    CHECK(back.position.has_best);
    stk_saved_state_free(&back);

    stk_graph *other = norm_graph();
    stk_state *state = NULL;
    must(
        k.f.backend->state_new(&state, k.f.device, other, &(stk_state_config){.train = true}, &err),
        &err);
    CHECK_INT(stk_saved_state_load(path, &run, k.f.backend, state, other, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "does not fit the model");
    k.f.backend->state_free(state);
    stk_graph_free(other);

    run.position.step = 6; /* more than an epoch has */
    err = (stk_error){0};
    must(stk_saved_state_write(file_at(path), &run, k.f.backend, k.f.state, k.f.graph, &err), &err);
    CHECK_INT(stk_saved_state_read(path, &back, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "contradict");
    stk_saved_state_free(&run);
    close_fold(&k.f);
}

/* A file with one byte changed at that place; what reading it says goes to err. */
static stk_status read_damaged(const char *path, size_t at, stk_error *err) {
    char damaged[600];
    char *text = NULL;
    size_t size = 0;
    stk_saved_state back;
    *err = (stk_error){0};
    snprintf(damaged, sizeof damaged, "%s.damaged", path);
    must(stk_file_read(path, 0, &text, &size, err), err);
    CHECK(at < size);
    text[at] ^= 1;
    must(stk_file_write(damaged, text, size, err), err);
    stk_mem_free(text);
    stk_status status = stk_saved_state_read(damaged, &back, err);
    if (status == STK_OK) {
        stk_saved_state_free(&back);
    }
    return status;
}

static void damaged_bytes_are_noticed(void) {
    stk_error err = {0};
    keeper k;
    char path[512];
    char *text = NULL;
    size_t size = 0;
    stk_saved_state run = {.position = {.lr_scale = 1}, .samples = "abc", .used_s = 12.5};
    open_keeper(&k, plain_graph(), true);
    snprintf(path, sizeof path, "%s/whole.safetensors", state_folder());
    must(stk_saved_state_write(file_at(path), &run, k.f.backend, k.f.state, k.f.graph, &err), &err);
    must(stk_file_read(path, 0, &text, &size, &err), &err);
    const char *note = memmem(text, size, "\"12.5\"", 6);
    CHECK(note != NULL);
    CHECK_INT(read_damaged(path, (size_t)(note - text) + 1, &err), STK_ERR_DATA); /* "02.5" */
    CHECK_CONTAINS(err.message, "is damaged");
    for (size_t back = 1; back < size / 2; back += size / 40) { /* numbers, and the sum itself */
        CHECK_INT(read_damaged(path, size - back, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "not those that were written");
    }
    stk_mem_free(text);
    close_fold(&k.f);
}

/* ---- what a backend remembers besides ---- */

static float remembered[STK_STATE_EXTRAS];

static stk_status read_remembered(stk_state *state, float extras[STK_STATE_EXTRAS],
                                  stk_error *err) {
    (void)state;
    (void)err;
    memcpy(extras, remembered, sizeof remembered);
    return STK_OK;
}

static stk_status write_remembered(stk_state *state, const float extras[STK_STATE_EXTRAS],
                                   stk_error *err) {
    (void)state;
    (void)err;
    memcpy(remembered, extras, sizeof remembered);
    return STK_OK;
}

/* Files that were written when there were fewer such numbers are read as well. */
static void what_a_backend_remembers_is_kept(void) {
    stk_error err = {0};
    keeper k;
    char path[512];
    open_keeper(&k, plain_graph(), true);
    stk_backend backend = *k.f.backend;
    backend.extras_read = read_remembered;
    backend.extras_write = write_remembered;
    snprintf(path, sizeof path, "%s/extras.safetensors", state_folder());
    for (int i = 0; i < STK_STATE_EXTRAS; i++) {
        remembered[i] = (float)(i + 1);
    }
    must(stk_train_state_save(file_at(path), &backend, k.f.state, k.f.graph, false, NULL, 0, &err),
         &err);
    stk_tensor_file file;
    must(stk_tensors_open(&file, path, &err), &err);
    stk_tensor *last = &file.tensors[file.count - 2]; /* the checksum is behind it */
    CHECK_STR(last->name, "extras");
    for (int count = STK_STATE_EXTRAS; count >= STK_STATE_EXTRAS - 1; count--) {
        last->shape[0] = (uint64_t)count;
        last->bytes = (uint64_t)count * sizeof(float);
        memset(remembered, 0xFF, sizeof remembered);
        must(stk_train_state_load(&file, path, &backend, k.f.state, k.f.graph, false, &err), &err);
        for (int i = 0; i < STK_STATE_EXTRAS; i++) {
            CHECK_NEAR(remembered[i], i < count ? i + 1 : 0, 0);
        }
    }
    stk_tensors_close(&file);
    close_fold(&k.f);
}

static const check_test tests[] = {
    TEST(taken_up_anywhere),
    TEST(taken_up_with_small_pictures),
    TEST(taken_back_across_the_change_of_size),
    TEST(part_of_an_epoch_leaves_no_trace),
    TEST(the_rest_of_an_epoch_counts_once),
    TEST(saved_within_epochs_when_it_is_time),
    TEST(validation_is_made_up_for),
    TEST(finished_training_stays_finished),
    TEST(wrong_step_goes_back_with_half_the_rate),
    TEST(three_setbacks_are_enough),
    TEST(broken_weights_are_never_kept),
    TEST(loss_is_watched),
    TEST(damaged_bytes_are_noticed),
    TEST(epochs_of_few_steps_are_judged),
    TEST(explosion_of_few_steps_goes_back),
    TEST(state_files_are_exact),
    TEST(what_a_backend_remembers_is_kept),
};

CHECK_MAIN(tests)
