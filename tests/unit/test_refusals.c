/*
 * test_refusals.c - the system refuses threads, descriptors and processes: whoever needs one says
 * so, whoever can do without does, and nothing is left open.
 *
 * Each case is tried with the Nth request refused, and all later ones, for every N until nothing is
 * refused any more.
 */
#include "check.h"
#include "job_runs.h"
#include "loader_runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/threads/pool.h"
#include "base/threads/process.h"
#include "base/threads/thread.h"
#include "monitor/machine_sampler.h"
#include "report/observers/metrics_file.h"
#include "stage/picture_queue.h"
#include "storage/cache/cache.h"
#include "storage/io_threads.h"
#include "storage/reading/reader.h"
#include "supervise/process/guardian.h"
#include "supervise/output/output.h"
#ifdef STK_HAVE_S3
#include "storage/http/engine.h"
#include "storage/s3/providers.h"
#endif

#define MOST 9      /* requests of anything smaller than a run */
#define MOST_RUN 40 /* and of a run */

static int open_files(void) {
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* Runs a case until nothing is refused; it says whether it has what it needs. Each time as many
 * files are open afterwards as before. Returns how many requests it could not do without. */
static int try_each(stk_startable kind, bool (*attempt)(stk_error *err)) {
    int needed = 0;
    (void)attempt(NULL); /* what is opened once stays open */
    for (int n = 0; n < MOST; n++) {
        stk_error err = {0};
        int before = open_files();
        stk_start_fail_after(kind, n);
        bool good = attempt(&err);
        stk_start_fail_after(kind, -1);
        CHECK_INT(open_files(), before);
        if (!good) {
            needed = n + 1;
            CHECK(stk_status_exit_code(err.status) == 4);
            CHECK(strstr(err.message, "cannot") != NULL);
        }
    }
    CHECK(needed < MOST);
    return needed;
}

/* ---- base ---- */

static void *nothing(void *argument) {
    return argument;
}

static void a_thread_that_is_refused_leaves_no_trace(void) {
    pthread_t none;
    pthread_t thread;
    memset(&none, 0x5a, sizeof none);
    memset(&thread, 0x5a, sizeof thread);
    stk_error err = {0};
    const stk_thread_config config = {.what = "tests"};
    stk_start_fail_after(STK_START_THREAD, 0);
    CHECK_INT(stk_thread_start(&thread, &config, nothing, NULL, &err), STK_ERR_DEVICE);
    stk_start_fail_after(STK_START_THREAD, -1);
    CHECK(memcmp(&thread, &none, sizeof none) == 0);
    CHECK_CONTAINS(err.message, "cannot start a thread that tests: ");
    CHECK_CONTAINS(err.message, "ulimit -u");
    err = (stk_error){0};
    REQUIRE_OK(stk_thread_start(&thread, &config, nothing, NULL, &err), &err);
    pthread_join(thread, NULL);
}

static void descriptors_and_processes_can_be_refused(void) {
    int ends[2] = {-1, -1};
    char program[] = "true";
    char *const words[] = {program, NULL};
    pid_t pid = 0;
    stk_start_fail_after(STK_START_DESCRIPTOR, 0);
    CHECK(stk_pipe(ends, 0) < 0 && errno == EMFILE && ends[0] == -1);
    CHECK(stk_socket_pair(ends) < 0 && errno == EMFILE && ends[0] == -1);
    CHECK(stk_event_fd() < 0 && errno == EMFILE);
    CHECK(stk_epoll_fd() < 0 && errno == EMFILE);
    stk_start_fail_after(STK_START_DESCRIPTOR, -1);
    stk_start_fail_after(STK_START_PROCESS, 0);
    CHECK(stk_fork() < 0 && errno == EAGAIN);
    CHECK_INT(stk_process_start(words, STDOUT_FILENO, &pid), EAGAIN);
    stk_start_fail_after(STK_START_PROCESS, -1);
}

static void add_one(void *context, size_t task, int thread) {
    int *counts = context;
    (void)thread;
    counts[task]++;
}

static void a_pool_does_with_fewer_threads(void) {
    for (int n = 0; n < 4; n++) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        int counts[100] = {0};
        stk_start_fail_after(STK_START_THREAD, n);
        stk_status status = stk_pool_new(&pool, 4, &err);
        stk_start_fail_after(STK_START_THREAD, -1);
        REQUIRE_OK(status, &err);
        CHECK_INT(stk_pool_threads(pool), n < 3 ? n + 1 : 4);
        stk_pool_run(pool, 100, add_one, counts);
        for (int i = 0; i < 100; i++) {
            CHECK_INT(counts[i], 1);
        }
        stk_pool_free(pool);
    }
}

/* ---- storage ---- */

static bool open_io_threads(stk_error *err) {
    stk_io_threads *io_threads = NULL;
    bool good = stk_io_threads_open(&io_threads, 4, err) == STK_OK;
    stk_io_threads_close(good ? io_threads : NULL, NULL, NULL);
    return good;
}

static bool read_a_file(stk_error *err) {
    stk_store *store = NULL;
    stk_bytes bytes = {0};
    stk_status status = stk_store_open(&store, shared_pictures()->root, NULL, NULL, err);
    if (status == STK_OK) {
        status = stk_store_read(store, "text.jpg", &bytes, err);
        CHECK(status != STK_OK || bytes.size == strlen("this is no picture"));
        stk_store_close(store);
    }
    stk_bytes_free(&bytes);
    return status == STK_OK;
}

static bool open_a_cache(stk_error *err) {
    static char folder[300];
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", check_folder());
    }
    stk_cache *cache = NULL;
    stk_cache_config config = {.folder = folder, .most_bytes = 1 << 20};
    bool good = stk_cache_open(&cache, &config, err) == STK_OK;
    stk_cache_close(good ? cache : NULL);
    return good;
}

static void reading_needs_its_first_threads(void) {
    CHECK_INT(try_each(STK_START_THREAD, open_io_threads), 1);
    CHECK_INT(try_each(STK_START_THREAD, read_a_file), 2); /* one that reads, one that watches */
    CHECK_INT(try_each(STK_START_THREAD, open_a_cache), 1);
}

#ifdef STK_HAVE_S3
static bool open_http(stk_error *err) {
    stk_http_engine *engine = NULL;
    stk_http_engine_config config = {.max_connections = 4, .connect.timeout_s = 1};
    bool good = stk_http_engine_open(&engine, &config, err) == STK_OK;
    stk_http_engine_close(good ? engine : NULL);
    return good;
}

static bool ask_a_process(stk_error *err) {
    stk_s3_credentials found = {0};
    stk_status status = stk_s3_from_process(
        "echo '{\"Version\": 1, \"AccessKeyId\": \"a\", \"SecretAccessKey\": \"b\"}'", "default",
        60, &found, err);
    stk_s3_credentials_free(&found);
    return status == STK_OK;
}

static void requests_need_a_thread_and_two_descriptors(void) {
    CHECK_INT(try_each(STK_START_THREAD, open_http), 1);
    CHECK_INT(try_each(STK_START_DESCRIPTOR, open_http), 2);
    CHECK_INT(try_each(STK_START_DESCRIPTOR, ask_a_process), 1);
    stk_error err = {0};
    stk_start_fail_after(STK_START_PROCESS, 0);
    CHECK(!ask_a_process(&err));
    stk_start_fail_after(STK_START_PROCESS, -1);
    CHECK_CONTAINS(err.message, "cannot run credential_process");
}
#else
static void requests_need_a_thread_and_two_descriptors(void) {
    CHECK_SKIP("this build has no S3");
}
#endif

/* ---- loader and stage ---- */

static uint64_t all_batches;

static bool load_all(stk_error *err) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_loader *loader = NULL;
    config.sizing.workers = 4;
    if (stk_loader_start(&loader, &config, err) != STK_OK) {
        return false;
    }
    uint64_t hash = hash_rest(loader);
    all_batches = all_batches != 0 ? all_batches : hash;
    CHECK(hash == all_batches);
    stk_loader_close(loader);
    return true;
}

static bool queue_all(stk_error *err) {
    static const char *paths[PICTURES];
    const picture_set *set = shared_pictures();
    for (size_t i = 0; i < PICTURES; i++) {
        paths[i] = set->samples[i].path;
    }
    stk_picture_queue_config config = {
        .store = set->store, .paths = paths, .count = PICTURES, .workers = 3};
    stk_picture_queue *queue = NULL;
    if (stk_picture_queue_open(&queue, &config, err) != STK_OK) {
        return false;
    }
    size_t got = 0;
    const stk_queued_picture *queued = NULL;
    while (got < PICTURES &&
           stk_picture_queue_next(queue, (int64_t)60 * 1000000000, &queued, NULL) == STK_OK &&
           queued != NULL) {
        got++;
        stk_picture_queue_release(queue);
    }
    CHECK_INT(got, PICTURES);
    stk_picture_queue_close(queue);
    return true;
}

static void one_worker_is_enough(void) {
    CHECK_INT(try_each(STK_START_THREAD, load_all),
              2); /* the reader's watch, and one that decodes */
    CHECK_INT(try_each(STK_START_THREAD, queue_all), 2);
}

/* ---- monitor and supervise ---- */

static bool look_around(stk_error *err) {
    stk_machine_sampler *sampler = NULL;
    stk_machine_sampler_config config = {.every_s = 60};
    bool good = stk_machine_sampler_start(&sampler, &config, err) == STK_OK;
    stk_event_sample sample;
    CHECK(good || sampler == NULL);
    CHECK(!stk_machine_sampler_take(sampler, &sample));
    CHECK(good || stk_machine_sampler_notes(sampler)[0] == '\0');
    stk_machine_sampler_stop(sampler);
    return good;
}

static void hear_nothing(void *user, const char *line, size_t length, double at_s) {
    (void)user;
    (void)line;
    (void)length;
    (void)at_s;
}

static bool pass_output_on(stk_error *err) {
    stk_output *output = NULL;
    int out_end = 7;
    int err_end = 7;
    stk_output_config config = {.out = -1, .err = -1, .on_line = hear_nothing};
    bool good = stk_output_open(&output, &config, &out_end, &err_end, err) == STK_OK;
    if (good) {
        close(out_end);
        close(err_end);
        stk_output_close(output, 60);
    }
    CHECK(good || (out_end == -1 && err_end == -1));
    return good;
}

static bool start_guardian(stk_error *err) {
    stk_guardian *guardian = NULL;
    const stk_guardian_config config = {.in = -1, .out = -1, .err = -1};
    bool good = stk_guardian_start(&guardian, &config, err) == STK_OK;
    CHECK(good || guardian == NULL);
    stk_guardian_stop(guardian, 10);
    return good;
}

static void threads_and_guardian_say_what_they_lack(void) {
    CHECK_INT(try_each(STK_START_THREAD, look_around), 1);
    CHECK_INT(try_each(STK_START_THREAD, pass_output_on), 2);
    CHECK_INT(try_each(STK_START_DESCRIPTOR, pass_output_on), 4);
    stk_error err = {0};
    stk_start_fail_after(STK_START_DESCRIPTOR, 0);
    CHECK(!start_guardian(&err));
    stk_start_fail_after(STK_START_DESCRIPTOR, -1);
    CHECK_CONTAINS(err.message, "cannot prepare the process that guards commands");
    err = (stk_error){0};
    stk_start_fail_after(STK_START_PROCESS, 0);
    CHECK(!start_guardian(&err));
    stk_start_fail_after(STK_START_PROCESS, -1);
    CHECK_CONTAINS(err.message, "cannot start the process that guards commands");
}

static void figures_are_written_without_a_thread(void) {
    char path[300];
    stk_error err = {0};
    stk_metrics_file *m = NULL;
    snprintf(path, sizeof path, "%s/figures", check_folder());
    stk_start_fail_after(STK_START_THREAD, 0);
    stk_status status = stk_metrics_file_new(&m, &(stk_metrics_file_config){.path = path}, &err);
    stk_start_fail_after(STK_START_THREAD, -1);
    REQUIRE_OK(status, &err);
    const stk_observer *observer = stk_metrics_file_observer(m);
    observer->start(observer->user, &(stk_event_start){.model = "resnet18"});
    CHECK(stk_path_is_file(path));
    stk_metrics_file_free(m);
}

/* ---- whole runs ---- */

/* Trains while one thread is refused, or all from there on; false: the run could not do without. */
static bool train_without(int n, bool all_later, bool *warned) {
    static run_story story;
    char out[300];
    memset(&story, 0, sizeof story);
    run_dir(out, sizeof out, check_folder(), "run");
    (all_later ? stk_start_fail_after : stk_start_fail_once)(STK_START_THREAD, n);
    train(&story, shared_data(), out, "epochs=1", (stk_run){0});
    stk_start_fail_after(STK_START_THREAD, -1);
    *warned = strstr(story.warnings, "refuse") != NULL ||
              strstr(story.warnings, "cannot start a thread") != NULL;
    if (story.status == STK_OK) {
        CHECK_INT(count_lines(out, "submission.csv"), 1 + TEST_ROWS);
        return true;
    }
    CHECK_INT(story.status, STK_ERR_DEVICE);
    CHECK_CONTAINS(story.err.message, "cannot start a thread that ");
    return false;
}

/* A training with each of its threads refused: it ends well, or says what is missing. */
static void a_run_survives_each_refusal(void) {
    int ended = 0;
    int without = 0;
    int silent = 0; /* runs in a row that ended well and said nothing */
    bool warned = false;
    int cores = stk_machine_cores(); /* a pool does with fewer threads and says nothing of it */
    for (int n = 0; n < MOST_RUN + cores && silent < 4 + cores; n++) {
        bool good = train_without(n, false, &warned);
        ended += !good;
        without += good && warned;
        silent = good && !warned ? silent + 1 : 0;
    }
    CHECK(ended > 0);
    CHECK(without > 0); /* fewer workers, no look at the machine */
    for (int n = 4; n < 12; n += 4) {
        (void)train_without(n, true, &warned);
    }
}

static const check_test tests[] = {
    TEST(a_thread_that_is_refused_leaves_no_trace),
    TEST(descriptors_and_processes_can_be_refused),
    TEST(a_pool_does_with_fewer_threads),
    TEST(reading_needs_its_first_threads),
    TEST(requests_need_a_thread_and_two_descriptors),
    TEST(one_worker_is_enough),
    TEST(threads_and_guardian_say_what_they_lack),
    TEST(figures_are_written_without_a_thread),
    TEST(a_run_survives_each_refusal),
};

CHECK_MAIN(tests)
