/* test_supervise_folder_writer.c - the sentence that says what a run folder lacks. */
#include "check.h"

#include <stoker/supervise.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "events/events.h"
#include "supervise/files/folder_writer.h"

#define LONG_S 60.0
#define TOO_MUCH ((size_t)5 << 20) /* bytes; more than the queue holds */
#define NO_ROOM "missing: its disk did not answer in between"

typedef struct loss {
    int events; /* for which the queue has no room */
    int files;  /* for which the queue has no room */
    bool stop;  /* there is no memory for the stop event */
    const char *said;
} loss;

/* Makes the queue refuse these events and files. */
static void lose(stk_folder_writer *writer, const loss *what) {
    stk_events events = {0};
    stk_events_add(&events, stk_folder_writer_observer(writer));
    char *large = stk_mem_new(TOO_MUCH, 1);
    REQUIRE(large != NULL);
    memset(large, 'x', TOO_MUCH - 1);
    for (int i = 0; i < what->events; i++) {
        stk_events_decision(&events, "batch", large);
    }
    for (int i = 0; i < what->files; i++) {
        stk_str text = {0};
        stk_str_append(&text, large);
        REQUIRE(stk_str_ok(&text));
        stk_folder_writer_put(writer, "hang-1.txt", &text);
    }
    stk_mem_free(large);
    if (what->stop) {
        stk_mem_fail_after(0);
        stk_events_stop(&events, &(stk_summary){.status = "complete"});
        stk_mem_fail_after(-1);
    }
}

static void check_loss(const loss *what) {
    stk_error err = {0};
    stk_options *options = NULL;
    stk_folder_writer *writer = NULL;
    stk_str text = {0};
    char *path = stk_path_join(check_folder(), "run");
    REQUIRE_OK(stk_options_for_run(&options, &err), &err);
    stk_folder_writer_config config = {
        .out = path, .name = "run", .options = options, .within_s = LONG_S};
    REQUIRE_OK(stk_folder_writer_open(&writer, &config, &err), &err);
    lose(writer, what);
    CHECK_INT(stk_folder_writer_flush(writer, LONG_S, &text), what->said == NULL);
    if (what->said != NULL) {
        stk_str wanted = {0};
        stk_str_appendf(&wanted, "of the run folder %s %s", path, what->said);
        CHECK_STR(stk_str_text(&text), stk_str_text(&wanted));
        stk_str_free(&wanted);
    }
    stk_folder_writer_close(writer, LONG_S);
    stk_str_free(&text);
    stk_options_free(options);
    stk_mem_free(path);
}

static void refused_files_are_no_lines(void) {
    static const loss losses[] = {
        {.said = NULL},
        {.files = 1, .said = "1 file is " NO_ROOM},
        {.files = 2, .said = "2 files are " NO_ROOM},
        {.events = 1, .said = "1 line of events.jsonl is " NO_ROOM},
        {.events = 2, .said = "2 lines of events.jsonl are " NO_ROOM},
        {.events = 2, .files = 1, .said = "2 lines of events.jsonl and 1 other file are " NO_ROOM},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        check_loss(&losses[i]);
    }
}

static void a_lost_stop_is_the_summary(void) {
    static const loss losses[] = {
        {.stop = true, .said = "summary.json is missing: there was no memory"},
        {.stop = true,
         .events = 1,
         .said = "summary.json and 1 line of events.jsonl are missing: there was no memory"},
        {.stop = true,
         .files = 1,
         .said = "summary.json and 1 other file are missing: there was no memory"},
        {.stop = true,
         .events = 1,
         .files = 2,
         .said = "summary.json, 1 line of events.jsonl and 2 other files are missing: there was no "
                 "memory"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        check_loss(&losses[i]);
    }
}

static const check_test tests[] = {
    TEST(refused_files_are_no_lines),
    TEST(a_lost_stop_is_the_summary),
};

CHECK_MAIN(tests)
