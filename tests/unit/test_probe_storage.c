/* test_probe_storage.c - `bench storage`: its arithmetic, what it walks over, and a measurement. */
#include "check.h"
#include "small_pictures.h"

#include "base/error.h"
#include "probe/cold_pages.h"
#include "probe/picture_walk.h"
#include "probe/probe_options.h"
#include "probe/storage_probe.h"

/* ---- arithmetic ---- */

static void percentiles_are_values_that_came(void) {
    const int64_t values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 100};
    CHECK_NEAR(stk_percentile(values, 10, 0.5), 5, 0);
    CHECK_NEAR(stk_percentile(values, 10, 0.9), 9, 0);
    CHECK_NEAR(stk_percentile(values, 10, 0.91), 100, 0);
    CHECK_NEAR(stk_percentile(values, 10, 0.99), 100, 0);
    CHECK_NEAR(stk_percentile(values, 10, 0), 1, 0);
    CHECK_NEAR(stk_percentile(values, 10, 1), 100, 0);
    CHECK_NEAR(stk_percentile(values, 1, 0.5), 1, 0);
    CHECK_NEAR(stk_percentile(values, 3, 0.5), 2, 0);
    CHECK(isnan(stk_percentile(values, 0, 0.5)));
}

static void lists_are_sorted_and_checked(void) {
    static const char *const wrong[] = {"",
                                        ",",
                                        "1,",
                                        ",1",
                                        "0",
                                        "-1",
                                        "1,,2",
                                        "4097",
                                        "x",
                                        "1;2",
                                        "1.5",
                                        "auto",
                                        "123456789012345678901234567890"};
    stk_in_flight_list list;
    stk_error err = {0};
    REQUIRE_OK(stk_in_flight_parse("64,8, 1,8", &list, &err), &err);
    REQUIRE(list.count == 3);
    CHECK_INT(list.numbers[0], 1);
    CHECK_INT(list.numbers[1], 8);
    CHECK_INT(list.numbers[2], 64);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        stk_error_clear(&err);
        CHECK_INT(stk_in_flight_parse(wrong[i], &list, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, "--in-flight");
    }
    char many[4 * STK_STORAGE_STEPS_MOST + 8] = "1";
    for (int i = 1; i <= STK_STORAGE_STEPS_MOST; i++) {
        size_t length = strlen(many);
        snprintf(many + length, sizeof many - length, ",%d", i);
    }
    stk_error_clear(&err);
    CHECK_INT(stk_in_flight_parse(many, &list, &err), STK_ERR_USAGE);
    list = stk_in_flight_auto();
    REQUIRE(list.count == 10);
    CHECK_INT(list.numbers[0], 1);
    CHECK_INT(list.numbers[9], 512);
}

static size_t make_steps(stk_storage_step *steps, const double *rates, size_t count) {
    for (size_t i = 0; i < count; i++) {
        steps[i] = (stk_storage_step){.in_flight = (int64_t)1 << i, .objects_per_second = rates[i]};
    }
    return count;
}

static void flat_is_two_steps_without_a_rise(void) {
    static const double rates[] = {30, 60, 120, 125, 128, 118, 140};
    stk_storage_step steps[7];
    make_steps(steps, rates, 7);
    CHECK(!stk_storage_is_flat(steps, 0));
    CHECK(!stk_storage_is_flat(steps, 2));
    CHECK(!stk_storage_is_flat(steps, 3));
    CHECK(!stk_storage_is_flat(steps, 4)); /* one step without a rise may be chance */
    CHECK(stk_storage_is_flat(steps, 5));
    CHECK(stk_storage_is_flat(steps, 6));
    CHECK(stk_storage_is_flat(steps, 7)); /* a tenth more than the best before is needed */
    steps[6].objects_per_second = 141;
    CHECK(!stk_storage_is_flat(steps, 7));
    static const double dead[] = {0, 0, 0};
    make_steps(steps, dead, 3);
    CHECK(!stk_storage_is_flat(steps, 3)); /* nothing came yet: nothing is known */
}

static void enough_lies_between_steps(void) {
    static const double rates[] = {32, 64, 128, 256, 512, 1024, 2000, 2950, 3000, 2400};
    stk_storage_step steps[10];
    size_t count = make_steps(steps, rates, 10);
    CHECK_INT(stk_storage_choose(steps, count, 300).enough, 10); /* 8 + 44/256 of 8, and up */
    CHECK_INT(stk_storage_choose(steps, count, 256).enough, 8);
    CHECK_INT(stk_storage_choose(steps, count, 257).enough, 9);
    CHECK_INT(stk_storage_choose(steps, count, 512).enough, 16);
    CHECK_INT(stk_storage_choose(steps, count, 1).enough, 1);
    CHECK_INT(stk_storage_choose(steps, count, 3000).enough, 256);
    CHECK_INT(stk_storage_choose(steps, count, 3001).enough, 0);
    /* A list that begins with many: fewer would do in proportion. */
    CHECK_INT(stk_storage_choose(steps + 5, 1, 320).enough, 10);
}

static void best_is_the_fewest_that_are_nearly_best(void) {
    static const double rates[] = {32, 64, 128, 256, 512, 1024, 2000, 2950, 3000, 2400};
    stk_storage_step steps[10];
    size_t count = make_steps(steps, rates, 10);
    stk_storage_choice choice = stk_storage_choose(steps, count, 300);
    CHECK_INT(choice.best_in_flight, 128);
    CHECK_NEAR(choice.best_rate, 2950, 0);
    CHECK(!choice.is_last);
    choice = stk_storage_choose(steps, 4, 300);
    CHECK_INT(choice.best_in_flight, 8);
    CHECK_INT(choice.enough, 0);
    CHECK(choice.is_last);
    static const double dead[] = {0, 0};
    count = make_steps(steps, dead, 2);
    choice = stk_storage_choose(steps, count, 300);
    CHECK_INT(choice.enough, 0);
    CHECK_NEAR(choice.best_rate, 0, 0);
}

/* ---- the walk ---- */

static stk_store *store_of(const char *folder) {
    stk_error err = {0};
    stk_store *store = NULL;
    must(stk_store_open(&store, folder, NULL, NULL, &err), &err);
    return store;
}

static void make_folder(const char *root, const char *name) {
    stk_error err = {0};
    char path[320];
    snprintf(path, sizeof path, "%s/%s", root, name);
    must(stk_dir_make(path, &err), &err);
}

static void walks_over_all_folders_and_no_link_twice(void) {
    char root[256];
    char path[320];
    stk_error err = {0};
    stk_texts paths;
    snprintf(root, sizeof root, "%s", check_folder());
    make_folder(root, "a/deep");
    make_folder(root, "empty");
    write_text(root, "top.jpg", "x");
    write_text(root, "labels.csv", "id,label");
    write_text(root, "a/one.PNG", "x");
    write_text(root, "a/deep/two.webp", "x");
    make_folder(root, "runs/train"); /* what Stoker wrote, and what a file system left behind */
    make_folder(root, "a/mine");
    make_folder(root, "lost+found");
    write_text(root, "runs/train/results.png", "x");
    write_text(root, "a/mine/args.json", "{}");
    write_text(root, "a/mine/results.png", "x");
    write_text(root, "lost+found/three.jpg", "x");
    snprintf(path, sizeof path, "%s/a/deep/back", root);
    REQUIRE(symlink("../..", path) == 0);
    stk_store *store = store_of(root);
    REQUIRE_OK(stk_picture_walk(store, 100, NULL, &paths, &err), &err);
    CHECK_INT(paths.count, 3);
    for (size_t i = 0; i < paths.count; i++) {
        CHECK(strcmp(paths.items[i], "top.jpg") == 0 || strcmp(paths.items[i], "a/one.PNG") == 0 ||
              strcmp(paths.items[i], "a/deep/two.webp") == 0);
    }
    stk_texts_free(&paths);
    REQUIRE_OK(stk_picture_walk(store, 2, NULL, &paths, &err), &err);
    CHECK_INT(paths.count, 2);
    stk_texts_free(&paths);
    stk_store_close(store);
}

static void walking_says_that_there_is_nothing(void) {
    stk_error err = {0};
    stk_texts paths;
    char root[256];
    snprintf(root, sizeof root, "%s", check_folder());
    write_text(root, "notes.txt", "x");
    stk_store *store = store_of(root);
    CHECK_INT(stk_picture_walk(store, 100, NULL, &paths, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "no pictures");
    CHECK_CONTAINS(err.message, root);
    stk_texts_free(&paths);
    stk_store_close(store);
}

/* ---- measuring ---- */

#define PICTURES 20

static const char *shared_folder(void) {
    static char root[256];
    if (root[0] == '\0') {
        snprintf(root, sizeof root, "%s", check_folder());
        picture_set set = make_pictures(root, PICTURES);
        free_pictures(&set);
    }
    return root;
}

static stk_storage_question question_of(const char *root, const char *in_flight) {
    stk_error err = {0};
    stk_storage_question q = {.data = root,
                              .storage = {.cache_size = STK_AUTO_BYTES, .read_timeout_s = 30},
                              .seconds = 0.03,
                              .wanted = 1};
    must(stk_in_flight_parse(in_flight, &q.in_flight, &err), &err);
    return q;
}

static void measures_each_step(void) {
    static const int64_t numbers[] = {1, 4, 32};
    stk_error err = {0};
    stk_storage_findings f;
    stk_storage_question q = question_of(shared_folder(), "1,4,32");
    REQUIRE_OK(stk_probe_storage(&q, NULL, &f, &err), &err);
    REQUIRE(f.step_count == 3);
    int64_t reads = 0;
    for (size_t i = 0; i < f.step_count; i++) {
        const stk_storage_step *s = &f.steps[i];
        CHECK_INT(s->in_flight, numbers[i]);
        CHECK(s->reads >= 48);
        CHECK_INT(s->failed, 0);
        CHECK(s->seconds > 0);
        CHECK_NEAR(s->objects_per_second * s->seconds, s->reads, 1e-6 * (double)s->reads);
        CHECK(s->p50_ms > 0);
        CHECK(s->p50_ms <= s->p90_ms && s->p90_ms <= s->p99_ms && s->p99_ms <= s->max_ms);
        CHECK(s->bytes_per_second > s->objects_per_second); /* objects have more than a byte */
        reads += s->reads;
    }
    CHECK_INT(f.objects, PICTURES);
    CHECK(f.reads >= reads);
    CHECK(f.mean_bytes > 100);
    CHECK(f.list_s > 0);
    CHECK_INT(f.failed, 0);
    CHECK_INT(f.first_failure.status, STK_OK);
    CHECK_INT(f.choice.enough, 1);
    CHECK_INT(f.counters.cache_hits + f.counters.cache_misses, 0); /* no cache unless asked for */
}

/* With as many objects as one step reads, each is read once before any is read again. */
static void reads_each_object_before_any_again(void) {
    stk_error err = {0};
    stk_storage_findings f;
    stk_storage_question q = question_of(shared_folder(), "1");
    q.storage.cache = "ram";
    REQUIRE_OK(stk_probe_storage(&q, NULL, &f, &err), &err);
    CHECK_INT(f.counters.cache_misses, PICTURES);
    CHECK(f.counters.cache_hits >= (uint64_t)(f.reads - PICTURES));
}

/* Given pictures of an open place, each once: the steps end with the last of them. */
static void reads_given_pictures_once(void) {
    stk_error err = {0};
    stk_storage_findings f;
    stk_texts paths = {0};
    stk_storage_options options = {
        .cache = "ram", .cache_size = STK_AUTO_BYTES, .read_timeout_s = 30};
    stk_storage_question q = question_of(shared_folder(), "1,2,4");
    must(stk_store_open(&q.store, shared_folder(), &options, NULL, &err), &err);
    must(stk_picture_walk(q.store, PICTURES, NULL, &paths, &err), &err);
    q.paths = (const char *const *)paths.items;
    q.path_count = PICTURES - 3;
    q.once = true;
    REQUIRE_OK(stk_probe_storage(&q, NULL, &f, &err), &err);
    CHECK_INT(f.objects, PICTURES - 3);
    CHECK_INT(f.begun, PICTURES - 3);
    CHECK_INT(f.reads, PICTURES - 3);
    CHECK_INT(f.counters.cache_misses, PICTURES - 3);
    CHECK_INT(f.counters.cache_hits, 0);
    CHECK(f.step_count >= 1);
    q.once = false; /* the store is still open, and has them near now */
    REQUIRE_OK(stk_probe_storage(&q, NULL, &f, &err), &err);
    CHECK_INT(f.counters.cache_misses, PICTURES - 3);
    CHECK(f.reads >= 48);
    q.path_count = 1; /* fewer than are to be in flight */
    q.once = true;
    REQUIRE_OK(stk_probe_storage(&q, NULL, &f, &err), &err);
    CHECK_INT(f.reads, 1);
    stk_texts_free(&paths);
    stk_store_close(q.store);
}

static void forgets_files_and_leaves_them_alone(void) {
    static const char *const paths[20] = {"gone.jpg", "../gone.jpg", "a", "b", "c", "d", "e",
                                          "f",        "g",           "h", "i", "j", "k", "l",
                                          "m",        "n",           "o", "p", "q", "r"};
    stk_error err = {0};
    stk_store *store = NULL;
    stk_stop stop = {0};
    size_t count = 20;
    must(stk_store_open(&store, shared_folder(), NULL, NULL, &err), &err);
    REQUIRE_OK(stk_cold_pages_drop(store, paths, &count, 60, NULL, &err), &err);
    CHECK_INT(count, 20); /* what cannot be opened is nobody's to forget */
    REQUIRE_OK(stk_cold_pages_drop(store, paths, &count, -1, NULL, &err), &err);
    CHECK_INT(count, 16); /* there was no time for more */
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    REQUIRE_OK(stk_cold_pages_drop(store, paths, &count, 60, &stop, &err), &err);
    CHECK_INT(count, 0);
    stk_store_close(store);
}

static void counts_a_few_failures(void) {
    char root[256];
    char path[320];
    stk_error err = {0};
    stk_storage_findings f;
    snprintf(root, sizeof root, "%s", check_folder());
    picture_set set = make_pictures(root, 200);
    free_pictures(&set);
    snprintf(path, sizeof path, "%s/gone.jpg", root);
    REQUIRE(symlink("nowhere", path) == 0);
    stk_storage_question q = question_of(root, "8");
    REQUIRE_OK(stk_probe_storage(&q, NULL, &f, &err), &err);
    CHECK(f.reads > f.failed);
    CHECK(f.failed == 0 || f.first_failure.status != STK_OK);
    CHECK(f.reads + f.failed < 201 || f.failed > 0);
}

static void many_failures_are_an_error(void) {
    char root[256];
    stk_error err = {0};
    stk_storage_findings f;
    snprintf(root, sizeof root, "%s", check_folder());
    for (int i = 0; i < 3; i++) {
        char path[320];
        snprintf(path, sizeof path, "%s/p%d.jpg", root, i);
        REQUIRE(symlink("nowhere", path) == 0);
    }
    stk_storage_question q = question_of(root, "1,8");
    stk_status status = stk_probe_storage(&q, NULL, &f, &err);
    CHECK(status == STK_ERR_STORAGE || status == STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "reads failed");
    CHECK_CONTAINS(err.message, ".jpg");
    stk_error_clear(&err);
    q.data = "/nonexistent";
    CHECK_INT(stk_probe_storage(&q, NULL, &f, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "/nonexistent");
}

static void ends_when_asked(void) {
    stk_error err = {0};
    stk_storage_findings f;
    stk_stop stop = {0};
    stk_storage_question q = question_of(shared_folder(), "4");
    q.seconds = 3600;
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_probe_storage(&q, &stop, &f, &err), STK_ERR_STOPPED);
}

static void survives_lack_of_memory(void) {
    stk_status status = STK_ERR_MEMORY;
    for (int64_t requests = 0; status != STK_OK && requests < 400; requests += 3) {
        stk_error err = {0};
        stk_storage_findings f;
        stk_storage_question q = question_of(shared_folder(), "1,4");
        stk_mem_fail_after(requests);
        status = stk_probe_storage(&q, NULL, &f, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK_CONTAINS(err.message, "memory");
    }
}

static const check_test tests[] = {
    TEST(percentiles_are_values_that_came),
    TEST(lists_are_sorted_and_checked),
    TEST(flat_is_two_steps_without_a_rise),
    TEST(enough_lies_between_steps),
    TEST(best_is_the_fewest_that_are_nearly_best),
    TEST(walks_over_all_folders_and_no_link_twice),
    TEST(walking_says_that_there_is_nothing),
    TEST(measures_each_step),
    TEST(reads_each_object_before_any_again),
    TEST(reads_given_pictures_once),
    TEST(forgets_files_and_leaves_them_alone),
    TEST(counts_a_few_failures),
    TEST(many_failures_are_an_error),
    TEST(ends_when_asked),
    TEST(survives_lack_of_memory),
};

CHECK_MAIN(tests)
