/* test_top_draw.c - the picture of a run: what it shows, and that it fits any terminal. */
#include "check.h"
#include "told_lines.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/status/top_draw.h"

/* A status without a folder behind it. */
static stk_run_status told(const char *lines, bool running) {
    stk_error err = {0};
    stk_run_status status;
    if (stk_run_status_open(&status, "runs/demo", true, &err) != STK_OK) {
        printf("cannot prepare the test: %s\n", err.message);
        exit(1);
    }
    status.running = running;
    status.pid = 123;
    status.silent_s = 1;
    for (const char *p = lines; *p != '\0';) {
        size_t length = strcspn(p, "\n");
        stk_run_status_take(&status, p, length);
        p += length + 1;
    }
    return status;
}

static const char all_lines[] = START_LINE EPOCH_LINE(2.0, 2, 64.5, true) STEP_LINE(4.0, 1, 2.5)
    STEP_LINE(5.0, 20, 2.0) STEP_LINE(6.0, 40, 1.25) SAMPLE_LINE(7.0)
        VERDICT_LINE(8.0, "input-bound: GPU waits 46 % (decode); 16 workers give 2,900 img/s, "
                          "the GPU takes 7,700. Remedies: stage at 256 px (predicted 2.1x)")
            DECISION_LINE(9.0) WARNING_LINE(9.0);

static char *draw(const stk_run_status *status, stk_top_look look) {
    stk_str text = {0};
    stk_top_draw(status, &look, &text);
    return stk_str_take(&text);
}

/* Columns of the widest line, colours left out, when every character takes one; lines in *count. */
static int widest(const char *text, int *count) {
    int most = 0;
    int column = 0;
    *count = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\x1b') {
            p += strcspn(p, "m");
        } else if (*p == '\n') {
            column = 0;
            (*count)++;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            column++;
            most = column > most ? column : most;
        }
    }
    return most;
}

static void all_that_is_known_is_shown(void) {
    stk_run_status status = told(all_lines, true);
    char *text = draw(&status, (stk_top_look){.columns = 80, .live = true});
    CHECK_CONTAINS(text, "runs/demo  running  process 123\n");
    CHECK_CONTAINS(text, "resnet18 at 224 px, batch 128, fp16 on NVIDIA H200\n");
    CHECK_CONTAINS(text, "epoch    3/10 ############------------------  step 40/100, about 3:20");
    CHECK_CONTAINS(text, "budget   0:10 ------------------------------  of 11:00, 10:50 left\n");
    CHECK_CONTAINS(text, "GPU       54% ################--------------  310 W, 61 C, held down by");
    CHECK_CONTAINS(text, "SM        38% ###########-------------------\n");
    CHECK_CONTAINS(text, "GPU mem   76% ######################--------  18 GB of 24 GB\n");
    CHECK_CONTAINS(text, "CPU       97% #############################-  own 95%, iowait 1%, 3");
    CHECK_CONTAINS(text, "cores   9870\n");
    CHECK_CONTAINS(text,
                   "queue    3/32 ##----------------------------  batches ready, 8 workers\n");
    CHECK_CONTAINS(text, "wait      44% #############-----------------  2850 images/s\n");
    CHECK_CONTAINS(text, "loss 1.25  accuracy 61.5%  validation 64.5%  best 64.5%\n");
    CHECK_CONTAINS(text, "\n2.5     *");
    CHECK_CONTAINS(text, "\n1.25     ");
    CHECK_CONTAINS(text, "\nverdict: input-bound: GPU waits 46 % (decode);");
    CHECK_CONTAINS(text, "\nwarning: it is odd\n");
    CHECK_CONTAINS(text, "\nworkers 16: the queue is empty\n");
    CHECK_CONTAINS(text, "\nq ends this view");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

/* Nothing is known of a run that has just begun, or of a machine without a GPU. */
static void what_is_not_known_is_left_out(void) {
    stk_run_status status = told("", true);
    status.pid = -1;
    char *text = draw(&status, (stk_top_look){.columns = 80});
    CHECK_STR(text, "runs/demo  running\n");
    stk_mem_free(text);
    stk_run_status_close(&status);
    status = told(START_LINE "{\"t\": 1, \"event\": \"sample\", \"gpu_util\": null, \"cpu\": 12, "
                             "\"cores\": [], \"batches_ready\": null, \"slots\": 8}\n",
                  true);
    text = draw(&status, (stk_top_look){.columns = 80});
    CHECK(strstr(text, "GPU  ") == NULL && strstr(text, "queue") == NULL);
    CHECK(strstr(text, "cores") == NULL && strstr(text, "nan") == NULL);
    CHECK_CONTAINS(text, "CPU       12% ###");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

static void every_terminal_is_wide_enough(void) {
    stk_run_status status = told(all_lines, true);
    for (int columns = 20; columns <= 200; columns += columns < 90 ? 1 : 7) {
        for (int rows = 1; rows <= 50; rows += rows < 30 ? 1 : 5) {
            for (int kind = 0; kind < 4; kind++) {
                int count = 0;
                char *text = draw(&status, (stk_top_look){.columns = columns,
                                                          .rows = rows,
                                                          .utf8 = (kind & 1) != 0,
                                                          .colour = (kind & 2) != 0,
                                                          .live = true});
                REQUIRE(text != NULL && widest(text, &count) <= columns);
                REQUIRE(count <= rows);
                for (const char *p = text; *p != '\0'; p++) {
                    REQUIRE((kind & 1) != 0 || (unsigned char)*p < 0x80);
                    REQUIRE((kind & 2) != 0 || *p != '\x1b');
                }
                stk_mem_free(text);
            }
        }
    }
    stk_run_status_close(&status);
}

/* The curve has its place between bars and words, and the words come first. */
static void the_curve_takes_what_is_left(void) {
    stk_run_status status = told(all_lines, true);
    for (int rows = 15; rows <= 40; rows++) {
        int count = 0;
        char *text = draw(&status, (stk_top_look){.columns = 60, .rows = rows, .utf8 = true});
        widest(text, &count);
        bool curve = strstr(text, "\n2.5     ") != NULL;
        CHECK(curve == (rows >= 19)); /* 12 lines above it, 4 below it, itself 3 to 16 */
        CHECK_INT(count, rows < 19 ? (rows < 16 ? rows : 16) : rows < 32 ? rows : 32);
        stk_mem_free(text);
    }
    stk_run_status_close(&status);
}

static void letters_of_others(void) {
    stk_run_status status =
        told(START_LINE "{\"t\": 1, \"event\": \"warning\", \"text\": \"\\u001b[2J \\n \\u009b31m "
                        "\\u732b\\u732b\\u732b\\u732b\\u732b\\u732b caf\\u00e9\"}\n",
             true);
    char *text = draw(&status, (stk_top_look){.columns = 80, .utf8 = true});
    CHECK(strchr(text, '\x1b') == NULL && strstr(text, "\xc2\x9b") == NULL);
    CHECK_CONTAINS(text, "\xe7\x8c\xab caf\xc3\xa9\n");
    stk_mem_free(text);
    text = draw(&status, (stk_top_look){.columns = 80});
    CHECK_CONTAINS(text, "?????? caf?\n");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

/* Letters of two columns: eleven of them fit beside nine columns of 32, and none is cut. */
static void wide_letters(void) {
    stk_run_status status =
        told("{\"t\": 1, \"event\": \"verdict\", \"text\": \"\\u732b\\u732b\\u732b\\u732b\\u732b"
             "\\u732b\\u732b\\u732b\\u732b\\u732b\\u732b\\u732b\\u732b\"}\n",
             true);
    char *text = draw(&status, (stk_top_look){.columns = 32, .utf8 = true});
    CHECK_CONTAINS(text, "\nverdict: 猫猫猫猫猫猫猫猫猫猫猫\n猫猫\n");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

static void how_it_ended(void) {
    stk_run_status status = told(START_LINE STEP_LINE(4.0, 1, 2.5) STOP_LINE(9.0), false);
    char *text = draw(&status, (stk_top_look){.columns = 80, .colour = true});
    CHECK_CONTAINS(text, "\x1b[32mended\x1b[0m: partial, signal\n");
    CHECK_CONTAINS(text, "submission: submission.csv");
    CHECK_CONTAINS(text, "1:39");
    CHECK(strstr(text, "q ends") == NULL && strstr(text, "process") == NULL);
    stk_mem_free(text);
    stk_run_status_close(&status);
    status = told(START_LINE STEP_LINE(4.0, 1, 2.5), false);
    status.resumable = true;
    text = draw(&status, (stk_top_look){.columns = 80});
    CHECK_CONTAINS(text, "runs/demo  killed\n");
    CHECK_CONTAINS(text, "can be resumed with: stoker train --resume runs/demo\n");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

static void without_memory(void) {
    stk_run_status status = told(all_lines, true);
    for (int64_t n = 0; n < 60; n++) {
        stk_str text = {0};
        stk_mem_fail_after(n);
        stk_top_draw(&status, &(stk_top_look){.columns = 60, .rows = 30, .utf8 = true}, &text);
        stk_mem_fail_after(-1);
        stk_str_free(&text);
    }
    stk_run_status_close(&status);
}

static const check_test tests[] = {
    TEST(all_that_is_known_is_shown),
    TEST(what_is_not_known_is_left_out),
    TEST(every_terminal_is_wide_enough),
    TEST(the_curve_takes_what_is_left),
    TEST(letters_of_others),
    TEST(wide_letters),
    TEST(how_it_ended),
    TEST(without_memory),
};

CHECK_MAIN(tests)
