/* test_report_aside.c - events that another thread tells, whole and in order, or counted. */
#include "check.h"
#include "folder_texts.h"
#include "told_command.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/threads/task_queue.h"
#include "report/observers/jsonl.h"
#include "report/observers/queued.h"

#define LONG_S 60.0

/* Of each kind that has something to point to. */
static void tell_more(const stk_events *events) {
    static const float cores[] = {10, 20, 30};
    stk_event_sample sample = {.at_s = 3, .gpu_throttled = "heat", .core_count = 3, .cores = cores};
    stk_event_verdict verdict = {
        .name = "decode-bound",
        .text = "the input limits",
        .evidence = "figures",
        .batch = "larger",
        .remedy_count = 2,
        .remedies = {{"more workers", "--workers 8", 1.5}, {"stage", "stoker stage", 2}}};
    stk_event_submission submission = {.path = "s.csv", .status = "complete", .rows = 3};
    stk_events_sample(events, &sample);
    stk_events_verdict(events, &verdict);
    stk_events_decision(events, "what", "why");
    stk_events_checkpoint(events, "weights", true);
    stk_events_bad_image(events, "a.jpg", "train", "torn");
    stk_events_plan(events, &(stk_event_plan){.epochs = 3});
    stk_events_epoch(events, &(stk_event_epoch){.epoch = 1});
    stk_events_submission(events, &submission);
    stk_events_warning(events, "a %s", "warning");
}

static int64_t noon(void) {
    return 43200;
}

static void keep_noon(void *user, int64_t moment_ns) {
    CHECK(moment_ns > 0);
    stk_jsonl_set_moment_ns(user, noon());
}

/* All events as JSON lines in a file, told at once or by a queue's thread. */
static void write_lines(const char *folder, const char *name, bool aside) {
    stk_error err = {0};
    stk_jsonl *jsonl = NULL;
    stk_task_queue *queue = NULL;
    stk_queued *observer = NULL;
    stk_events events = {0};
    char *path = stk_path_join(folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    REQUIRE(fd >= 0);
    stk_jsonl_config config = {.fd = fd, .name = name, .now_ns = noon};
    REQUIRE_OK(stk_jsonl_new(&jsonl, &config, &err), &err);
    if (aside) {
        stk_queued_target told = {stk_jsonl_observer(jsonl), keep_noon, jsonl};
        REQUIRE_OK(stk_task_queue_open(&queue, "writes", 1 << 20, &err), &err);
        REQUIRE_OK(stk_queued_new(&observer, queue, &told, &err), &err);
        stk_events_add(&events, stk_queued_observer(observer));
    } else {
        stk_events_add(&events, stk_jsonl_observer(jsonl));
    }
    tell_command_half(&events);
    tell_more(&events);
    tell_command_rest(&events);
    if (aside) {
        CHECK(stk_task_queue_close(queue, LONG_S));
        CHECK_INT(stk_queued_lost_of(observer).events, 0);
        stk_queued_free(observer);
    }
    CHECK_INT(stk_jsonl_error(jsonl, &err), STK_OK);
    stk_jsonl_free(jsonl);
    close(fd);
    stk_mem_free(path);
}

/* The lines without their times: each telling has a start of its own. */
static char *get_untimed(const char *folder, const char *name) {
    char *text = get_file(folder, name);
    char *to = text;
    for (const char *from = text; from != NULL && *from != '\0';) {
        if (strncmp(from, "{\"t\": ", 6) == 0) {
            from += strcspn(from, ",");
        }
        *to++ = *from++;
    }
    if (to != NULL) {
        *to = '\0';
    }
    return text;
}

static void all_of_each_event_arrives(void) {
    const char *folder = check_folder();
    write_lines(folder, "at_once", false);
    write_lines(folder, "aside", true);
    char *at_once = get_untimed(folder, "at_once");
    char *aside = get_untimed(folder, "aside");
    CHECK(at_once != NULL && strlen(at_once) > 1000);
    CHECK_STR(aside, at_once);
    stk_mem_free(at_once);
    stk_mem_free(aside);
}

/* ---- a disk that hangs ---- */

static char heard[4096]; /* of the thread alone until it is settled */

static void hear_warning(void *user, const char *text) {
    (void)user;
    size_t length = strlen(heard);
    snprintf(heard + length, sizeof heard - length, "%s;", text);
}

static void hear_stop(void *user, const stk_summary *summary) {
    hear_warning(user, summary->status);
}

static void wait_for_byte(void *user) {
    char byte;
    while (read(*(int *)user, &byte, 1) != 1) {
    }
}

static void what_is_lost_is_counted_and_told(void) {
    stk_error err = {0};
    stk_task_queue *queue = NULL;
    stk_queued *observer = NULL;
    stk_events events = {0};
    const stk_observer to = {.warning = hear_warning, .stop = hear_stop};
    stk_queued_target told = {.observer = &to};
    stk_queue_task held = {.work = wait_for_byte, .bytes = 0};
    int ends[2];
    heard[0] = '\0';
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    held.user = &ends[0];
    REQUIRE_OK(stk_task_queue_open(&queue, "writes", 20000, &err), &err);
    REQUIRE_OK(stk_queued_new(&observer, queue, &told, &err), &err);
    stk_events_add(&events, stk_queued_observer(observer));
    CHECK_INT(stk_task_queue_put(queue, &held, 0), STK_OK);
    for (int i = 0; i < 1000; i++) {
        stk_events_warning(&events, "%d", i);
    }
    uint64_t lost = stk_queued_lost_of(observer).events;
    CHECK(lost > 900 && lost < 1000);
    CHECK(!stk_queued_lost_of(observer).memory);
    stk_events_stop(&events, &(stk_summary){.status = "complete"}); /* never lost */
    CHECK_INT(stk_queued_lost_of(observer).events, lost);
    REQUIRE(write(ends[1], "x", 1) == 1);
    CHECK(stk_task_queue_flush(queue, LONG_S));
    char wanted[120];
    snprintf(wanted, sizeof wanted,
             ";%d;%d events are missing here: the disk did not answer;complete;", 999 - (int)lost,
             (int)lost);
    CHECK_CONTAINS(heard, "0;1;2;");
    CHECK_CONTAINS(heard, wanted);
    CHECK(stk_task_queue_close(queue, LONG_S));
    stk_queued_free(observer);
    close(ends[0]);
    close(ends[1]);
}

static void lack_of_memory_loses_events_and_nothing_else(void) {
    for (int i = 0; i < 40; i++) {
        stk_error err = {0};
        stk_task_queue *queue = NULL;
        stk_queued *observer = NULL;
        stk_events events = {0};
        const stk_observer to = {.stop = hear_stop};
        stk_queued_target told = {.observer = &to};
        heard[0] = '\0';
        REQUIRE_OK(stk_task_queue_open(&queue, "writes", 1 << 20, &err), &err);
        REQUIRE_OK(stk_queued_new(&observer, queue, &told, &err), &err);
        stk_events_add(&events, stk_queued_observer(observer));
        stk_mem_fail_after(i);
        tell_command_half(&events);
        tell_command_rest(&events);
        stk_mem_fail_after(-1);
        CHECK(stk_task_queue_close(queue, LONG_S));
        stk_queued_lost lost = stk_queued_lost_of(observer);
        CHECK((lost.events > 0) == (heard[0] == '\0'));
        CHECK(lost.memory == (lost.events > 0));
        CHECK(lost.stop == (heard[0] == '\0'));
        stk_queued_free(observer);
    }
}

static const check_test tests[] = {
    TEST(all_of_each_event_arrives),
    TEST(what_is_lost_is_counted_and_told),
    TEST(lack_of_memory_loses_events_and_nothing_else),
};

CHECK_MAIN(tests)
