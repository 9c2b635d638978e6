/*
 * test_storage_reader.c - reads in flight over a place that does what it is told: slow, busy,
 * damaged, silent, gone.
 */
#include "check.h"

#include "reader_desk.h"

/* ---- one read ---- */

static void every_read_arrives(void) {
    desk d;
    char paths[READS][24];
    open_desk(&d, TIMEOUT_S);
    for (int i = 0; i < READS; i++) {
        snprintf(paths[i], sizeof paths[i], "f%d?o%d", i, i % 5);
        submit(&d, paths[i]);
        stk_reader_hurry(d.reader);
    }
    wait_for_all(&d);
    for (int i = 0; i < READS; i++) {
        expect_bytes(&d.in.reads[i]);
        CHECK_INT(scripted_seen(d.place, paths[i]).attempts, 1);
    }
    CHECK_INT(stats(&d).retries, 0);
    CHECK_INT(stats(&d).timeouts, 0);
    close_desk(&d);
}

static void a_block_is_used_again(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    stk_read *read = submit(&d, "something-long?o");
    wait_for(&d.in, 1);
    const uint8_t *block = read->bytes.data;
    read->path = "short";
    CHECK(stk_reader_submit(d.reader, read));
    wait_for(&d.in, 2);
    expect_bytes(read);
    CHECK(read->bytes.data == block);
    read->path = "bad?n";
    CHECK(stk_reader_submit(d.reader, read));
    wait_for(&d.in, 3);
    expect_error(read, STK_ERR_STORAGE, "bad failed");
    read->path = "good"; /* the error of before is gone */
    CHECK(stk_reader_submit(d.reader, read));
    wait_for(&d.in, 4);
    expect_bytes(read);
    d.in.told[0] = 1;
    close_desk(&d);
}

static void busy_places_are_asked_again(void) {
    desk d;
    open_desk(&d, 5);
    const stk_read *once = submit(&d, "once?a,o");
    const stk_read *thrice = submit(&d, "thrice?a,a,a,o");
    const stk_read *mixed = read_now(&d, "mixed?d,a,d,o");
    expect_bytes(once);
    expect_bytes(thrice);
    expect_bytes(mixed);
    CHECK_INT(scripted_seen(d.place, once->path).attempts, 2);
    CHECK_INT(scripted_seen(d.place, thrice->path).attempts, 4);
    CHECK_INT(scripted_seen(d.place, thrice->path).most, 1);
    CHECK_INT(scripted_seen(d.place, mixed->path).attempts, 4);
    CHECK_INT(stats(&d).retries, 1 + 3 + 3);
    close_desk(&d);
}

static void a_place_says_when_to_come_back(void) {
    desk d;
    open_desk(&d, 5);
    const stk_read *read = read_now(&d, "later?w400,o");
    expect_bytes(read);
    CHECK(read->ns >= 400 * SCRIPTED_MS);
    close_desk(&d);
}

static void there_is_an_end_to_asking_again(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *read = read_now(&d, "busy?a");
    expect_error(read, STK_ERR_STORAGE, "busy failed with 'a'");
    int attempts = scripted_seen(d.place, read->path).attempts;
    CHECK(attempts >= 2 && attempts <= 12);
    CHECK_INT(stats(&d).retries, attempts - 1);
    close_desk(&d);
}

static void damage_is_tried_four_times(void) {
    desk d;
    open_desk(&d, 5);
    const stk_read *bad = submit(&d, "bad?d");
    const stk_read *good = read_now(&d, "good?d,d,d,o");
    expect_error(bad, STK_ERR_STORAGE, "bad failed with 'd'");
    CHECK_INT(scripted_seen(d.place, bad->path).attempts, 4);
    expect_bytes(good);
    CHECK_INT(scripted_seen(d.place, good->path).attempts, 4);
    close_desk(&d);
}

static void what_is_not_there_is_asked_for_once(void) {
    desk d;
    open_desk(&d, 5);
    const stk_read *read = read_now(&d, "none?n");
    expect_error(read, STK_ERR_STORAGE, "none failed with 'n'");
    CHECK_INT(scripted_seen(d.place, read->path).attempts, 1);
    CHECK_INT(stats(&d).retries, 0);
    close_desk(&d);
}

/* An attempt that ends by itself without a reason is no success. */
static void nothing_is_not_an_answer(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *never = submit(&d, "never?c");
    const stk_read *at_last = read_now(&d, "at-last?c,o");
    expect_error(never, STK_ERR_STORAGE, "scripted/never?c");
    expect_bytes(at_last);
    close_desk(&d);
}

/* ---- slow and silent ---- */

static void silence_is_timed_and_asked_again(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *read = read_now(&d, "silent?h,o");
    expect_bytes(read);
    CHECK_INT(scripted_seen(d.place, read->path).attempts, 2);
    CHECK_INT(scripted_seen(d.place, read->path).cancelled, 1);
    CHECK_INT(stats(&d).timeouts, 1);
    CHECK_INT(stats(&d).retries, 1);
    close_desk(&d);
}

static void silence_for_good_is_an_error(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *read = read_now(&d, "silent?h");
    expect_error(read, STK_ERR_STORAGE, "cannot read scripted/silent?h: no answer within 0.2 s");
    CHECK_INT(scripted_seen(d.place, read->path).attempts, 2);
    CHECK_INT(stats(&d).timeouts, 2);
    close_desk(&d);
}

static void waiting_for_a_turn_ends_too(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *read = read_now(&d, "queued?u");
    expect_error(read, STK_ERR_STORAGE, "no answer");
    CHECK(read->ns >= 400 * SCRIPTED_MS); /* longer than one that was at work */
    close_desk(&d);
}

static void a_slow_answer_that_comes_is_waited_for(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *read = read_now(&d, "slow?s700");
    expect_bytes(read);
    CHECK_INT(scripted_seen(d.place, read->path).attempts, 1);
    const stk_read *endless = read_now(&d, "endless?s60000");
    expect_error(endless, STK_ERR_STORAGE, "no answer");
    close_desk(&d);
}

/* What gave no answer is left alone for twenty time-outs. */
static void silent_objects_are_not_asked_for_in_every_epoch(void) {
    desk d;
    open_desk(&d, 0.1);
    stk_read *read = submit(&d, "silent?h,h,o");
    wait_for_all(&d);
    expect_error(read, STK_ERR_STORAGE, "no answer within 0.1 s");
    const stk_read *again = read_now(&d, "silent?h,h,o");
    expect_error(again, STK_ERR_STORAGE, "no answer within 0.1 s");
    CHECK_INT(scripted_seen(d.place, read->path).attempts, 2);
    struct timespec rest = {.tv_sec = 2, .tv_nsec = 100 * SCRIPTED_MS};
    nanosleep(&rest, NULL);
    expect_bytes(read_now(&d, "silent?h,h,o"));
    close_desk(&d);
}

static void the_second_of_two_may_win(void) {
    desk d;
    open_desk(&d, 20);
    read_peers(&d, 20);
    const stk_read *read = read_now(&d, "slow?h,o");
    expect_bytes(read);
    scripted_object seen = scripted_seen(d.place, read->path);
    CHECK_INT(seen.attempts, 2);
    CHECK_INT(seen.most, 2);
    CHECK_INT(seen.cancelled, 1); /* the loser */
    CHECK_INT(stats(&d).hedges, 1);
    CHECK_INT(stats(&d).retries, 0);
    CHECK_INT(stats(&d).timeouts, 0);
    close_desk(&d);
}

/* The loser answers although it was cancelled, when its read is long over. */
static void a_late_answer_is_dropped(void) {
    desk d;
    open_desk(&d, 20);
    read_peers(&d, 20);
    stk_read *read = submit(&d, "slow?f300,o");
    wait_for_all(&d);
    expect_bytes(read);
    stk_bytes_free(&read->bytes);
    read->path = "another"; /* the read is the caller's again, and used for something else */
    CHECK(stk_reader_submit(d.reader, read));
    wait_for(&d.in, d.in.used + 1);
    expect_bytes(read);
    d.in.told[read - d.in.reads] = 1;
    close_desk(&d); /* waits for the late one */
}

static void the_first_of_two_may_still_win(void) {
    desk d;
    open_desk(&d, 20);
    read_peers(&d, 20);
    const stk_read *read = read_now(&d, "slow?o600,h");
    expect_bytes(read);
    CHECK_INT(scripted_seen(d.place, read->path).attempts, 2);
    CHECK_INT(scripted_seen(d.place, read->path).cancelled, 1);
    close_desk(&d);
}

static void one_of_two_may_fail(void) {
    desk d;
    open_desk(&d, 20);
    read_peers(&d, 20);
    const stk_read *read = read_now(&d, "slow?o700,a");
    expect_bytes(read);
    CHECK_INT(stats(&d).retries, 0);
    const stk_read *none = submit(&d, "none?h,n"); /* the second knows that there is nothing */
    wait_for_all(&d);
    expect_error(none, STK_ERR_STORAGE, "none failed");
    close_desk(&d);
}

static void a_place_that_is_slow_as_a_whole_is_not_asked_twice(void) {
    desk d;
    char paths[60][24];
    open_desk(&d, 20);
    read_peers(&d, 40);
    for (int i = 0; i < 60; i++) {
        snprintf(paths[i], sizeof paths[i], "s%d?o700", i);
        submit(&d, paths[i]);
    }
    wait_for_all(&d);
    stk_store_counters seen = stats(&d);
    CHECK(seen.hedges >= 1);
    CHECK(seen.hedges <= 1 + (40 + 60) / 20);
    CHECK_INT(d.place->attempts, 100 + (int)seen.hedges);
    close_desk(&d);
}

/* ---- a place that is gone ---- */

static void a_lost_place_ends_all_reads_of_all_readers(void) {
    desk d;
    inbox others;
    open_desk(&d, 20);
    open_inbox(&others);
    stk_reader *other = open_reader(&d, &others);
    const stk_read *waiting = submit(&d, "waiting?h");
    const stk_read *pausing = submit(&d, "pausing?w5000");
    const stk_read *elsewhere = submit_to(other, &others, "elsewhere?h");
    wait_until_begun(&d, "elsewhere?h", 1);
    const stk_read *lost = read_now(&d, "lost?l50");
    wait_for(&others, 1);
    expect_lost(lost, "lost failed with 'l'");
    expect_lost(waiting, "lost failed");
    expect_lost(pausing, "lost failed");
    expect_lost(elsewhere, "lost failed");
    int attempts = d.place->attempts;
    expect_lost(read_now(&d, "more"), "lost failed");
    const stk_read *more = submit_to(other, &others, "more");
    wait_for(&others, 2);
    expect_lost(more, "lost failed");
    stk_bytes bytes = {0};
    stk_error err = {0};
    CHECK_INT(stk_store_read(d.store, "single", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "lost failed");
    CHECK(d.place->attempts <= attempts + 1); /* nobody asks it any more */
    stk_bytes_free(&bytes);
    stk_reader_close(other);
    close_inbox(&others);
    close_desk(&d);
}

static void a_place_that_is_silent_is_lost(void) {
    desk d;
    char paths[12][24];
    open_desk(&d, TIMEOUT_S);
    read_peers(&d, 10);
    for (int i = 0; i < 12; i++) {
        snprintf(paths[i], sizeof paths[i], "s%d?%s", i, i % 2 == 0 ? "h" : "a");
        submit(&d, paths[i]);
    }
    wait_for_all(&d);
    for (int i = 0; i < 12; i++) { /* all of them: none was told before that was known */
        const stk_read *read = &d.in.reads[10 + i];
        expect_lost(read, "nothing can be read from scripted any more");
        CHECK_CONTAINS(read->error.message, "4 reads in a row");
        CHECK_CONTAINS(read->error.message, "the last one: ");
    }
    close_desk(&d);
}

/* One after the other, as those do who wait for each. */
static void a_place_is_lost_by_single_reads_too(void) {
    desk d;
    stk_bytes bytes = {0};
    open_desk(&d, TIMEOUT_S);
    for (int i = 0; i < 4; i++) {
        static const char *const paths[] = {"a?h", "b?h", "c?h", "d?h"};
        stk_error err = {0};
        CHECK_INT(stk_store_read(d.store, paths[i], &bytes, &err), STK_ERR_STORAGE);
        CHECK_CONTAINS(err.message, i < 3 ? "no answer within" : "nothing can be read from");
    }
    expect_lost(read_now(&d, "any"), "nothing can be read");
    stk_bytes_free(&bytes);
    close_desk(&d);
}

static void one_bad_object_is_not_the_place(void) {
    desk d;
    open_desk(&d, TIMEOUT_S);
    const stk_read *bad = submit(&d, "bad?h");
    for (int i = 0; i < 100; i++) { /* for longer than the bad one is tried */
        const stk_read *good = submit(&d, "good?o10");
        wait_until_told(&d.in, good);
        expect_bytes(good);
    }
    wait_for_all(&d);
    expect_error(bad, STK_ERR_STORAGE, "no answer");
    close_desk(&d);
}

/*
 * More of them than lose a place, given up at the same time, when nothing else is left to be read:
 * the reader itself finds out that the place is there.
 */
static void many_bad_objects_are_not_the_place(void) {
    desk d;
    char paths[48][24];
    open_desk(&d, TIMEOUT_S);
    for (int i = 0; i < 48; i++) {
        snprintf(paths[i], sizeof paths[i], i % 6 == 0 ? "bad%d?h" : "good%d?o%d", i, 2 * i);
        submit(&d, paths[i]);
    }
    wait_for_all(&d);
    for (int i = 0; i < 48; i++) {
        if (i % 6 == 0) {
            expect_error(&d.in.reads[i], STK_ERR_STORAGE, "no answer");
        } else {
            expect_bytes(&d.in.reads[i]);
        }
    }
    expect_bytes(read_now(&d, "after"));
    close_desk(&d);
}

/* ---- the cache ---- */

/* Every read asks the place for the object's version first, which is an attempt of its own. */
static void what_was_read_comes_from_the_cache(void) {
    desk d;
    stk_error err = {0};
    stk_cache_config config = {.most_bytes = 1 << 20};
    open_desk(&d, 5);
    REQUIRE_OK(stk_cache_open(&d.store->cache, &config, &err), &err);
    REQUIRE_OK(stk_io_threads_open(&d.store->cache_io_threads, 2, &err), &err);
    for (int i = 0; i < 3; i++) {
        expect_bytes(read_now(&d, "kept"));
        CHECK_INT(scripted_seen(d.place, "kept").attempts, i + 2);
    }
    expect_bytes(read_now(&d, "late?a,o,d,o")); /* the version at last, then the object */
    CHECK_INT(scripted_seen(d.place, "late?a,o,d,o").attempts, 4);
    expect_bytes(read_now(&d, "late?a,o,d,o"));
    CHECK_INT(scripted_seen(d.place, "late?a,o,d,o").attempts, 5);
    expect_error(read_now(&d, "none?n"), STK_ERR_STORAGE, "none failed");
    stk_store_counters seen = stats(&d);
    CHECK_INT(seen.cache_hits, 3);
    close_desk(&d);
}

/* ---- stopping ---- */

/* A read in each state there is. */
static const char *const states[] = {"running?h",   "unheard?f50", "queued?u",
                                     "pausing?a,h", "again?h,h",   "slow?o5000"};
#define STATES (sizeof states / sizeof *states)

static void submit_states(desk *d) {
    read_peers(d, 20); /* so that some get a second attempt */
    for (size_t i = 0; i < STATES; i++) {
        submit(d, states[i]);
    }
    wait_until_begun(d, states[STATES - 1], 1);
    struct timespec moment = {.tv_nsec = 290 * SCRIPTED_MS};
    nanosleep(&moment, NULL);
}

static void any_read_can_be_cancelled(void) {
    desk d;
    open_desk(&d, 20);
    submit_states(&d);
    stk_reader_cancel(d.reader);
    const stk_read *later = submit(&d, "later?o20"); /* is not meant */
    wait_for_all(&d);
    for (size_t i = 0; i < STATES; i++) {
        expect_error(&d.in.reads[20 + i], STK_ERR_STOPPED, states[i]);
    }
    expect_bytes(later);
    stk_reader_cancel(d.reader); /* nothing is under way */
    expect_bytes(read_now(&d, "more"));
    close_desk(&d);
}

static void close_ends_what_is_under_way(void) {
    desk d;
    open_desk(&d, 20);
    submit_states(&d);
    stk_reader_close(d.reader);
    CHECK_INT(d.in.count, d.in.used);
    for (size_t i = 0; i < STATES; i++) {
        expect_error(&d.in.reads[20 + i], STK_ERR_STOPPED, states[i]);
    }
    d.reader = NULL;
    close_desk(&d);
    stk_reader_close(NULL);
}

static void close_at_once(void) {
    for (int reads = 0; reads < 40; reads++) {
        desk d;
        char paths[40][24];
        open_desk(&d, 20);
        for (int i = 0; i < reads; i++) {
            snprintf(paths[i], sizeof paths[i], "r%d?%s", i, i % 3 == 0 ? "h" : "o1");
            submit(&d, paths[i]);
        }
        stk_reader_close(d.reader);
        CHECK_INT(d.in.count, reads);
        d.reader = NULL;
        close_desk(&d);
    }
}

static void who_waits_for_one_answer_can_stop(void) {
    desk d;
    stk_stop stop = {0};
    stk_bytes bytes = {0};
    stk_error err = {0};
    open_desk(&d, 60);
    d.store->options.stop = &stop;
    CHECK_INT(stk_store_read(d.store, "good", &bytes, &err), STK_OK);
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_store_read(d.store, "slow?o300", &bytes, &err), STK_OK); /* it does answer */
    CHECK_INT(stk_store_read(d.store, "silent?h", &bytes, &err), STK_ERR_STOPPED);
    CHECK_CONTAINS(err.message, "scripted/silent?h");
    stk_bytes_free(&bytes);
    close_desk(&d);
}

static void silence_does_not_mean_that_an_object_is_missing(void) {
    desk d;
    bool has = false;
    stk_error err = {0};
    open_desk(&d, 0.1);
    CHECK_INT(stk_store_has(d.store, "there", &has, &err), STK_OK);
    CHECK(has);
    CHECK_INT(stk_store_has(d.store, "missing?n", &has, &err), STK_OK);
    CHECK(!has);
    CHECK_INT(stk_store_has(d.store, "silent?h", &has, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "no answer within 0.1 s");
    close_desk(&d);
}

/* ---- memory and crowds ---- */

/* Whatever fails, everything that was handed over comes back. */
static void no_allocation_is_needed_to_end(void) {
    static const char *const paths[] = {"a?d,o", "b?o", "c?n", "d?o5", "e?a,o", "f?h,o"};
    for (int64_t n = 0; n < 60; n++) {
        desk d;
        open_desk(&d, TIMEOUT_S);
        stk_mem_fail_after(n);
        for (size_t i = 0; i < (n % 10 == 9 ? 6 : 4); i++) { /* the last take their time */
            stk_read *read = &d.in.reads[d.in.used];
            read->path = paths[i];
            d.in.used += stk_reader_submit(d.reader, read);
        }
        wait_for_all(&d);
        stk_mem_fail_after(-1);
        for (int i = 0; i < d.in.used; i++) {
            const stk_read *read = &d.in.reads[i];
            CHECK(read->error.status == STK_OK || read->error.status == STK_ERR_MEMORY ||
                  read->error.status == STK_ERR_STORAGE);
        }
        stk_read *after = &d.in.reads[READS - 1]; /* it goes on when there is memory again */
        after->path = "after";
        CHECK(stk_reader_submit(d.reader, after));
        wait_for(&d.in, d.in.used + 1);
        expect_bytes(after);
        stk_bytes_free(&after->bytes);
        close_desk(&d);
    }
}

static void open_without_memory(void) {
    desk d;
    stk_error err = {0};
    stk_reader *reader = NULL;
    open_desk(&d, TIMEOUT_S);
    stk_reader_config config = {.store = d.store, .done = note, .user = &d.in};
    stk_mem_fail_after(0);
    CHECK_INT(stk_reader_open(&reader, &config, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    CHECK(reader == NULL);
    close_desk(&d);
    for (int64_t n = 0; n < 4; n++) {
        stk_store *store = NULL;
        stk_error_clear(&err);
        stk_mem_fail_after(n);
        CHECK_INT(stk_store_open_on(&store, &scripted_source, scripted_new(), NULL, &err),
                  STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
    }
}

/* Threads that submit, cancel, open and close at the same time. */
typedef struct crowd {
    desk *desk;
    int number;
} crowd;

static void *submit_and_cancel(void *argument) {
    static const char *const scripts[] = {"o", "o3", "a,o", "d,o", "n", "h", "f5", "s9"};
    const crowd *c = argument;
    for (int round = 0; round < 12; round++) {
        inbox *in = calloc(1, sizeof *in);
        char(*paths)[24] = calloc(READS, sizeof *paths);
        if (in == NULL || paths == NULL) {
            abort();
        }
        open_inbox(in);
        stk_reader *reader = open_reader(c->desk, in);
        for (int i = 0; i < 48; i++) {
            snprintf(paths[i], sizeof paths[i], "t%d?%s", i % 8, scripts[(i + round) % 8]);
            submit_to(reader, in, paths[i]);
            if (i % 16 == 15 && round % 2 == 0) {
                stk_reader_cancel(reader);
            }
            if (i % 8 == 0) {
                stk_bytes bytes = {0};
                stk_error err = {0};
                CHECK_INT(stk_store_read(c->desk->store, "single?o1", &bytes, &err), STK_OK);
                stk_bytes_free(&bytes);
            }
        }
        stk_reader_close(reader);
        CHECK_INT(in->count, in->used);
        close_inbox(in);
        free(in);
        free(paths);
    }
    return NULL;
}

static void many_submit_cancel_and_close_at_once(void) {
    desk d;
    pthread_t threads[4];
    crowd crowds[4];
    open_desk(&d, 10);
    for (int i = 0; i < 4; i++) {
        crowds[i] = (crowd){.desk = &d, .number = i};
        if (pthread_create(&threads[i], NULL, submit_and_cancel, &crowds[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    close_desk(&d);
}

static const check_test tests[] = {
    TEST(every_read_arrives),
    TEST(a_block_is_used_again),
    TEST(busy_places_are_asked_again),
    TEST(a_place_says_when_to_come_back),
    TEST(there_is_an_end_to_asking_again),
    TEST(damage_is_tried_four_times),
    TEST(what_is_not_there_is_asked_for_once),
    TEST(nothing_is_not_an_answer),
    TEST(silence_is_timed_and_asked_again),
    TEST(silence_for_good_is_an_error),
    TEST(silent_objects_are_not_asked_for_in_every_epoch),
    TEST(waiting_for_a_turn_ends_too),
    TEST(a_slow_answer_that_comes_is_waited_for),
    TEST(the_second_of_two_may_win),
    TEST(a_late_answer_is_dropped),
    TEST(the_first_of_two_may_still_win),
    TEST(one_of_two_may_fail),
    TEST(a_place_that_is_slow_as_a_whole_is_not_asked_twice),
    TEST(a_lost_place_ends_all_reads_of_all_readers),
    TEST(a_place_that_is_silent_is_lost),
    TEST(a_place_is_lost_by_single_reads_too),
    TEST(one_bad_object_is_not_the_place),
    TEST(many_bad_objects_are_not_the_place),
    TEST(what_was_read_comes_from_the_cache),
    TEST(any_read_can_be_cancelled),
    TEST(close_ends_what_is_under_way),
    TEST(close_at_once),
    TEST(who_waits_for_one_answer_can_stop),
    TEST(silence_does_not_mean_that_an_object_is_missing),
    TEST(no_allocation_is_needed_to_end),
    TEST(open_without_memory),
    TEST(many_submit_cancel_and_close_at_once),
};

CHECK_MAIN(tests)
