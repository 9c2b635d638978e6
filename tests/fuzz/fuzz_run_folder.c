/*
 * fuzz_run_folder.c - the run folder of somebody else: whatever stands in its files, it is read or
 * refused with a sentence, its page is sound, and so is what `stoker status` says of it.
 *
 * The parts of the input are args.json, events.jsonl, results.csv, summary.json, validation.csv.
 */
#include "fuzz_folder.h"

#include "report/page/confusion.h"
#include "report/page/page.h"
#include "report/state/run_read.h"
#include "report/status/run_status.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED(
        "{\"data\": \"k\", \"model\": \"<script>\", \"batch\": 4, \"metric\": \"acc1\"}" FUZZ_NEXT
        "{\"t\": 0.01, \"event\": \"start\", \"model\": \"m\", \"epochs\": 2}\n"
        "{\"t\": 0.2, \"event\": \"step\", \"step\": 1, \"loss\": 0.7, \"lr\": 0.1}\n" FUZZ_NEXT
        "fold,epoch,train/loss,train/acc1,val/loss,val/acc1,val/acc5,lr,images_per_second,"
        "wait_fraction,seconds\n0,1,0.7,50,0.6,75,100,0.1,800,0.1,1.5\n" FUZZ_NEXT
        "{\"status\": \"complete\", \"stop_reason\": \"epochs\", \"best_acc1\": 75, \"used_s\": "
        "2}\n" FUZZ_NEXT "fold,path,label,predicted,probability\n0,train/a.jpg,cat,dog,0.2\n"),
    FUZZ_SEED(
        "{}" FUZZ_NEXT
        "{\"event\": \"attempt\", \"ended\": true, \"number\": 1, \"part\": \"train\", "
        "\"stop_reason\": \"done\", \"seconds\": 1}\n{\"t\": 3, \"event\": \"stop\", \"status\": "
        "\"failed\"}\n{\"t\": 4, \"event\": \"sta" FUZZ_NEXT FUZZ_NEXT
        "{\"command\": \"<script>\", \"attempts\": [{\"number\": 1}, 7], \"exit_code\": "
        "5}" FUZZ_NEXT),
    FUZZ_SEED(FUZZ_NEXT "{\"event\": \"epoch\", \"fold\": 0, \"epoch\": 1, \"val_acc1\": 1e308, "
                        "\"best\": true}\n" FUZZ_NEXT "epoch,fold\n1,2\n" FUZZ_NEXT "[]" FUZZ_NEXT
                        "a,b\n"),
};
FUZZ_PLAN_FILES(seeds)

static void check_page(const stk_run_read *run) {
    stk_str html = {0};
    stk_error err = {0};
    const stk_page page = {.name = run->name, .history = &run->history};
    FUZZ_REQUIRE(stk_page_put(&page, &html, &err) == STK_OK);
    FUZZ_REQUIRE(strlen(html.text) == html.length);
    FUZZ_REQUIRE(strstr(html.text, "<script") == NULL && strstr(html.text, "</html>") != NULL);
    stk_str_free(&html);
}

static void check_read(void) {
    stk_run_read run;
    stk_error err = {0};
    if (stk_run_read_open(&run, fuzz_folder(), &err) == STK_OK) {
        check_page(&run);
        stk_run_read_close(&run);
    } else {
        FUZZ_REQUIRE(err.status == STK_ERR_USAGE || err.status == STK_ERR_DATA);
        FUZZ_REQUIRE(err.message[0] != '\0');
    }
}

static void check_status(void) {
    stk_run_status status;
    stk_error err = {0};
    FUZZ_REQUIRE(stk_run_status_open(&status, fuzz_folder(), true, &err) == STK_OK);
    for (int i = 0; i < 2; i++) { /* the second time there is nothing new */
        stk_status read = stk_run_status_read(&status, (int64_t)1794830400 * 1000000000, &err);
        FUZZ_REQUIRE(read == STK_OK || err.message[0] != '\0');
    }
    FUZZ_REQUIRE(status.losses.count >= 0 && status.losses.count <= STK_CURVE_POINTS);
    stk_summary summary = stk_run_status_summary(&status);
    FUZZ_REQUIRE(summary.attempt_count >= 0 && summary.attempt_count <= STK_VIEW_ATTEMPTS);
    stk_run_status_close(&status);
}

static void check_confusion(void) {
    stk_confusion confusion;
    stk_error err = {0};
    stk_confusion_cell pairs[8];
    stk_csv table;
    if (stk_csv_read(fuzz_path("validation.csv"), &table, &err) != STK_OK ||
        stk_confusion_make(&confusion, &table, "validation.csv", &err) != STK_OK) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    size_t sum = 0;
    for (size_t i = 0; i < confusion.cell_count; i++) {
        const stk_confusion_cell *cell = &confusion.cells[i];
        FUZZ_REQUIRE(cell->label >= 0 && cell->label < confusion.class_count);
        FUZZ_REQUIRE(cell->predicted >= 0 && cell->predicted < confusion.class_count);
        sum += cell->count;
    }
    FUZZ_REQUIRE(sum == confusion.pictures && confusion.right <= sum);
    FUZZ_REQUIRE(stk_confusion_pairs(&confusion, pairs, 8) <= 8);
    stk_confusion_free(&confusion);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"args.json", "events.jsonl", "results.csv", "summary.json",
                                        "validation.csv"};
    fuzz_seed parts[FUZZ_PARTS];
    fuzz_divide(data, size, parts);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fuzz_put(names[i], parts[i]);
    }
    check_read();
    check_status();
    check_confusion();
    return 0;
}
