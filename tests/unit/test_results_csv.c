/* test_results_csv.c - the column of a metric in results.csv, written and read back. */
#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "report/text/results_csv.h"

static const stk_event_epoch rows[] = {
    {.epoch = 1, .train_loss = 1, .val_loss = 0.5, .val_acc1 = 50, .val_metric = 0.25},
    {.epoch = 2, .train_loss = 1, .val_loss = NAN, .val_acc1 = NAN, .val_metric = NAN},
    {.epoch = 3, .train_loss = 1, .val_loss = 0.5, .val_acc1 = 50, .val_metric = -0.1234567},
};

static char *write_rows(const char *metric) {
    stk_str text = {0};
    stk_error err = {0};
    char *path = stk_path_join(check_folder(), "results.csv");
    stk_results_csv_put(&text, rows, STK_COUNT(rows), metric);
    if (stk_file_write(path, stk_str_text(&text), text.length, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    stk_str_free(&text);
    return path;
}

static void metrics_without_a_fixed_column_get_one(void) {
    stk_event_epoch *read = NULL;
    size_t count = 0;
    stk_error err = {0};
    char *path = write_rows("qwk");
    char *text = NULL;
    REQUIRE_OK(stk_file_read(path, 4096, &text, &count, &err), &err);
    CHECK(strstr(text, ",seconds,val/qwk\n0,1,") != NULL); /* at the end */
    CHECK(strstr(text, ",0.25\n0,2,") != NULL);
    CHECK(strstr(text, ",-0.123457\n") != NULL);
    REQUIRE_OK(stk_results_csv_read(path, &read, &count, &err), &err);
    REQUIRE(count == 3);
    CHECK_NEAR(read[0].val_metric, 0.25, 0);
    CHECK(isnan(read[1].val_metric));
    CHECK_NEAR(read[2].val_metric, -0.123457, 1e-12);
    CHECK_NEAR(read[2].val_acc1, 50, 0);
    stk_mem_free(text);
    stk_mem_free(read);
    stk_mem_free(path);
}

static void other_files_have_none(void) {
    stk_event_epoch *read = NULL;
    size_t count = 0;
    stk_error err = {0};
    char *path = write_rows(NULL);
    REQUIRE_OK(stk_results_csv_read(path, &read, &count, &err), &err);
    REQUIRE(count == 3);
    CHECK(isnan(read[0].val_metric));
    stk_mem_free(read);
    static const char foreign[] = "fold,epoch,val/speed,val/f1,val/rmse\n0,1,9,8,7\n";
    REQUIRE_OK(stk_file_write(path, foreign, sizeof foreign - 1, &err), &err);
    REQUIRE_OK(stk_results_csv_read(path, &read, &count, &err), &err);
    REQUIRE(count == 1);
    CHECK_NEAR(read[0].val_metric, 7, 0);
    stk_mem_free(read);
    stk_mem_free(path);
}

static void a_start_names_the_metric(void) {
    CHECK(stk_results_metric(NULL) == NULL);
    CHECK(stk_results_metric(&(stk_event_start){0}) == NULL);
    CHECK(stk_results_metric(&(stk_event_start){.metric = "acc1"}) == NULL);
    CHECK(stk_results_metric(&(stk_event_start){.metric = "<script>"}) == NULL);
    CHECK_STR(stk_results_metric(&(stk_event_start){.metric = "pf1"}), "pf1");
}

static const check_test tests[] = {
    TEST(metrics_without_a_fixed_column_get_one),
    TEST(other_files_have_none),
    TEST(a_start_names_the_metric),
};

CHECK_MAIN(tests)
