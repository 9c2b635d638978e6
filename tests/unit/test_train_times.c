/* test_train_times.c - where a fold's time went, and what the pace sees and may do of it. */
#include <unistd.h>

#include "base/clock.h"
#include "scripted_place.h"
#include "sound_times.h"
#include "train_fold.h"

static double waiting(const stk_times *t) {
    return t->read_s + t->decode_s + t->queue_s;
}

#define SAVING_S 0.03

static int saves;
static stk_train_position first_saved;

static void save_slowly(void *user, const stk_train_position *position) {
    (void)user;
    first_saved = saves++ == 0 ? *position : first_saved;
    usleep((useconds_t)(SAVING_S * 1e6));
}

/* Every event of a training on the CPU, and all of them together. */
static void all_adds_up(void) {
    fold f;
    int64_t start = stk_clock_ns();
    open_fold(&f, norm_graph(), 1, false);
    f.config.hooks.save_state = save_slowly;
    f.config.hooks.save_every_s = 1e9;
    f.total = 6; /* three epochs */
    saves = 0;
    CHECK_INT(run_fold(&f), STK_OK);
    double passed = stk_clock_since_s(start);
    double sum = 0;
    CHECK_INT(f.epochs, 3);
    for (int e = 0; e < f.epochs; e++) {
        const stk_times *t = &f.epoch[e].times;
        check_sound(t, t->total_s);
        CHECK(t->compute_s > 0 && t->update_s > 0 && t->validate_s > 0 && waiting(t) > 0);
        CHECK(t->validate_s < f.epoch[e].seconds && t->total_s > f.epoch[e].seconds);
        CHECK_NEAR(t->copy_s, 0, 0);
        CHECK(t->checkpoint_s >= SAVING_S); /* the start's, then that of the epoch before */
        sum += t->total_s;
    }
    check_sound(&f.step.times, f.step.times.total_s);
    CHECK(f.step.times.total_s <= f.epoch[2].times.total_s);
    CHECK_NEAR(f.step.times.validate_s, 0, 0);      /* of the running epoch */
    const stk_times *seen = &f.last_progress.times; /* before the last step */
    check_sound(seen, seen->total_s);
    CHECK(seen->total_s > f.epoch[0].times.total_s + f.epoch[1].times.total_s);
    CHECK(seen->total_s < sum);
    const stk_times *all = &f.result.times;
    check_sound(all, all->total_s);
    CHECK(all->total_s >= sum && all->total_s <= passed);
    CHECK(all->checkpoint_s >= SAVING_S * saves);
    CHECK_INT(saves, 4);
    close_fold(&f);
}

/* What the events say of waiting is what they say of its parts. */
static void waiting_is_its_parts(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, false);
    CHECK_INT(run_fold(&f), STK_OK);
    double waited = 0;
    for (int e = 0; e < f.epochs; e++) {
        waited += waiting(&f.epoch[e].times);
    }
    CHECK(waited > 0);
    CHECK_NEAR(waited, f.result.wait_s, 1e-6);
    close_fold(&f);
}

/* A place that takes its time for every picture: longer than all else that is done before. */
static void slow_storage_shows_as_reading(void) {
    fold f;
    stk_error err = {0};
    stk_store *store = NULL;
    stk_sample samples[TRAIN + VAL];
    char paths[TRAIN + VAL][32];
    stk_storage_options options = {.cache = "off", .read_timeout_s = 60};
    open_fold(&f, plain_graph(), 1, false);
    scripted_place *place = scripted_new();
    place->folder = f.pictures.root;
    must(stk_store_open_on(&store, &scripted_source, place, &options, &err), &err);
    for (size_t i = 0; i < TRAIN + VAL; i++) {
        samples[i] = f.pictures.samples[i];
        snprintf(paths[i], sizeof paths[i], "%s?o500", samples[i].path);
        samples[i].path = paths[i];
    }
    f.config.train_data.store = store;
    f.config.train_data.samples = samples;
    f.total = 2;
    CHECK_INT(run_fold(&f), STK_OK);
    const stk_times *t = &f.epoch[0].times;
    check_sound(t, t->total_s);
    CHECK(t->read_s >= 0.1);
    CHECK(t->read_s > t->decode_s + t->queue_s);
    CHECK(f.last_progress.store == store);
    CHECK(f.last_progress.loader.read_wait_ns > 0);
    close_fold(&f);
    stk_store_close(store);
}

/* ---- a device that computes by itself ---- */

static stk_step_output told;

static stk_status step_with_times(stk_exec *exec, const stk_step_input *input,
                                  stk_step_output *output, stk_error *err) {
    stk_status status = scripted_step(exec, input, output, err);
    stk_step_output *last = &script.running[script.running_count - 1];
    last->busy_s = told.busy_s;
    last->update_s = told.update_s;
    last->copy_s = told.copy_s;
    last->copy_wait_s = told.copy_wait_s;
    return status;
}

static void run_with_times(fold *f, stk_step_output times) {
    told = times;
    open_fold(f, plain_graph(), 1, true);
    f->scripted.step = step_with_times;
    f->total = 4;
    script.lag = 1;
    CHECK_INT(run_fold(f), STK_OK);
    CHECK_INT(f->epochs, 2);
    for (int e = 0; e < f->epochs; e++) {
        check_sound(&f->epoch[e].times, f->epoch[e].times.total_s);
    }
    check_sound(&f->result.times, f->result.times.total_s);
}

/* Whatever its clock says. */
static void a_device_tells_its_own_time(void) {
    fold f;
    run_with_times(&f, (stk_step_output){.busy_s = 3600, .update_s = 900, .copy_s = 5});
    for (int e = 0; e < f.epochs; e++) {
        const stk_times *t = &f.epoch[e].times;
        CHECK_NEAR(waiting(t) + t->copy_s, 0, 0);
        CHECK(t->compute_s > 0 && t->other_s > 0); /* it computes in steps only */
        CHECK_NEAR(t->compute_s, 3 * t->update_s, 1e-9);
    }
    CHECK_NEAR(f.last_progress.copy_s, 10, 1e-9); /* the steps whose results had come */
    close_fold(&f);

    run_with_times(&f, (stk_step_output){.copy_s = 3600, .copy_wait_s = 1800});
    for (int e = 0; e < f.epochs; e++) {
        const stk_times *t = &f.epoch[e].times;
        CHECK(t->copy_s > 0);
        CHECK_NEAR(t->compute_s + t->update_s + t->other_s, 0, 1e-9);
    }
    close_fold(&f);
}

/* ---- the first batch ---- */

static int batches;

static void on_batch(void *user, const stk_event_batch *event) {
    const fold *f = user;
    batches++;
    CHECK_INT(event->fold, 2);
    CHECK_INT(event->count, f->config.train_compile.batch);
    CHECK_INT(event->size, SIZE);
    int lightest = 0;
    for (size_t i = 0; i < event->count * SIZE * SIZE * 3; i++) {
        lightest = event->images[i] > lightest ? event->images[i] : lightest;
    }
    CHECK(lightest > 100);
    for (size_t i = 0; i < event->count; i++) {
        CHECK(event->labels[i] >= 0 && event->labels[i] < PICTURE_CLASSES);
    }
    CHECK_INT(f->steps, 0);
}

static void the_first_batch_is_told_once(void) {
    fold f;
    batches = 0;
    open_fold(&f, plain_graph(), 1, true);
    f.observer.batch = on_batch;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.epochs, 3);
    CHECK_INT(batches, 1);
    close_fold(&f);
}

/* ---- the loader ---- */

static int workers_seen[16];
static int slots_seen[16];
static int paces;

/* Asks for more before the second step and for fewer before the fourth. */
static stk_train_orders pace_and_resize(void *user, const stk_train_standing *progress) {
    stk_train_orders answer = pace(user, progress);
    if (progress->over) {
        return answer;
    }
    if (paces < 16) {
        workers_seen[paces] = progress->loader.workers;
        slots_seen[paces] = progress->loader.slots;
    }
    paces++;
    answer.workers = paces == 2 ? 4 : paces == 4 ? 1 : 0;
    answer.slots = paces == 2 ? 100 : 0;
    return answer;
}

static void the_pace_resizes_the_loader(void) {
    static const int workers[] = {2, 2, 4, 4, 1, 1};
    static const int slots[] = {3, 3, 5, 5, 5, 5};
    fold f;
    open_fold(&f, plain_graph(), 1, false);
    uint64_t expected = 0;
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            open_fold(&f, plain_graph(), 1, false);
            f.config.train_data.sizing.room_workers = 4;
            f.config.train_data.sizing.room_slots = 5;
            f.config.hooks.pace = pace_and_resize;
            paces = 0;
        }
        CHECK_INT(run_fold(&f), STK_OK);
        CHECK(round == 0 || hash_weights(&f) == expected);
        expected = hash_weights(&f);
        CHECK_INT(f.decisions, 0); /* who asked for it tells it */
        close_fold(&f);
    }
    CHECK_INT(paces, 6);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(workers_seen[i], workers[i]);
        CHECK_INT(slots_seen[i], slots[i]);
    }
    CHECK_INT(f.result.workers, 1);
    CHECK_INT(f.result.slots, 5);
}

static stk_status load_start(void *user, stk_train_position *position, bool *there,
                             stk_error *err) {
    (void)user;
    (void)err;
    *position = first_saved;
    *there = true;
    return STK_OK;
}

/* A training that goes back has another loader, and loses none of the time. */
static void going_back_loses_nothing(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.train_data.sizing.room_workers = 4;
    f.config.train_data.sizing.room_slots = 5;
    f.config.hooks.pace = pace_and_resize;
    f.config.hooks.save_state = save_slowly;
    f.config.hooks.load_state = load_start;
    f.config.hooks.save_every_s = 1e9;
    f.observer.batch = on_batch;
    f.total = 4;
    script.broken_step = 1;
    paces = batches = saves = 0;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.epochs, 2);
    CHECK_INT(workers_seen[2], 4); /* the first pace of the second try */
    CHECK_INT(slots_seen[2], 5);
    double sum = 0;
    for (int e = 0; e < f.epochs; e++) {
        check_sound(&f.epoch[e].times, f.epoch[e].times.total_s);
        sum += f.epoch[e].times.total_s;
    }
    CHECK(f.epoch[0].times.total_s > f.epoch[0].seconds); /* the first try is part of it */
    CHECK(f.result.times.total_s >= sum);
    CHECK_INT(batches, 1);
    close_fold(&f);
}

static const check_test tests[] = {
    TEST(all_adds_up),
    TEST(waiting_is_its_parts),
    TEST(slow_storage_shows_as_reading),
    TEST(a_device_tells_its_own_time),
    TEST(the_first_batch_is_told_once),
    TEST(the_pace_resizes_the_loader),
    TEST(going_back_loses_nothing),
};

CHECK_MAIN(tests)
