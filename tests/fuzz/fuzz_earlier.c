/*
 * fuzz_earlier.c - results.csv and events.jsonl of a run that is to go on: rows up to the point are
 * taken, what is behind it goes, and doing it twice changes nothing more.
 */
#include "fuzz_folder.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "report/state/earlier.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED(
        "fold,epoch,train/loss,train/acc1,val/loss,val/acc1,val/acc5,lr,images_per_second,"
        "wait_fraction,seconds\n0,1,0.7,50,0.6,75,100,0.1,800,0.1,1.5\n0,2,nan,,inf,75,100,0.1,"
        "8e2,0,1\n0,3,1,2,3,4,5,6,7,8,9\n" FUZZ_NEXT
        "{\"t\": 1, \"event\": \"step\", \"fold\": 0, \"step\": 3}\n{\"t\": 2, \"event\": "
        "\"epoch\", \"fold\": 0, \"epoch\": 2}\n{\"t\": 3, \"event\": \"epoch\", \"fold\": 0, "
        "\"epoch\": 3}\n{\"t\": 4, \"event\": \"step\", \"fold\": 0, \"step\": 99}\n{\"t\": 5, "
        "\"ev"),
    FUZZ_SEED(FUZZ_NEXT "{\"t\": 1, \"event\": \"stop\"}\n\n{\"t\": 1e300, \"event\": \"epoch\", "
                        "\"fold\": 1e9, \"epoch\": -1}\n"),
    FUZZ_SEED("epoch,fold\n\"1\",\"0\"\n" FUZZ_NEXT "no JSON\n"),
};
FUZZ_PLAN_FILES(seeds)

static const stk_resume_point point = {.fold = 0, .steps_done = 10, .epoch = 2, .best_epoch = 1};

static void check_rows(void) {
    stk_event_epoch *rows = NULL;
    size_t count = 0;
    stk_error err = {0};
    if (stk_earlier_rows(fuzz_path("results.csv"), &point, &rows, &count, &err) != STK_OK) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    for (size_t i = 0; i < count; i++) {
        FUZZ_REQUIRE(rows[i].fold < point.fold ||
                     (rows[i].fold == point.fold && rows[i].epoch <= point.epoch));
    }
    stk_mem_free(rows);
}

static void check_events(void) {
    char *first = NULL;
    char *second = NULL;
    size_t sizes[2] = {0};
    double last_t = 0;
    stk_error err = {0};
    if (stk_earlier_events(fuzz_path("events.jsonl"), &point, &last_t, &err) != STK_OK) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    FUZZ_REQUIRE(stk_file_read(fuzz_path("events.jsonl"), (size_t)8 << 20, &first, &sizes[0],
                               &err) == STK_OK);
    FUZZ_REQUIRE(sizes[0] == 0 || first[sizes[0] - 1] == '\n');
    FUZZ_REQUIRE(stk_earlier_events(fuzz_path("events.jsonl"), &point, &last_t, &err) == STK_OK);
    FUZZ_REQUIRE(stk_file_read(fuzz_path("events.jsonl"), (size_t)8 << 20, &second, &sizes[1],
                               &err) == STK_OK);
    FUZZ_REQUIRE(sizes[0] == sizes[1] && memcmp(first, second, sizes[0]) == 0);
    stk_mem_free(first);
    stk_mem_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_seed parts[FUZZ_PARTS];
    stk_error err = {0};
    fuzz_divide(data, size, parts);
    fuzz_put("results.csv", parts[0]);
    fuzz_put("events.jsonl", parts[1]);
    fuzz_put("bad_images.csv", parts[0]);
    check_rows();
    check_events();
    FUZZ_REQUIRE(stk_earlier_lines(fuzz_path("bad_images.csv"), &err) == STK_OK);
    return 0;
}
