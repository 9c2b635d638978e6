/* fuzz_events.c - whatever stands in events.jsonl, the page of the run is sound. */
#include "fuzz.h"

#include <string.h>

#include "report/page/page.h"
#include "report/state/replay.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("{\"t\": 1, \"event\": \"start\", \"model\": \"<b>\", \"batch\": 32, \"folds\": 1, "
              "\"budget_s\": 60, \"device_bytes\": 24000000000}\n"
              "{\"t\": 2, \"event\": \"plan\", \"epochs\": 3, \"reserve_s\": 6}\n"),
    FUZZ_SEED("{\"t\": 3, \"event\": \"epoch\", \"fold\": 1, \"epoch\": 2, \"train_loss\": 1e-3, "
              "\"val_loss\": 1e300, \"val_acc1\": 90, \"lr\": 0.1, \"seconds\": 10, \"times\": "
              "{\"read_s\": 1, \"compute_s\": 8.5, \"other_s\": -1, \"total_s\": 10}}\n"),
    FUZZ_SEED("{\"t\": 3, \"event\": \"sample\", \"at_s\": 1e9, \"cpu\": 50, \"gpu_util\": null, "
              "\"images_per_second\": 0, \"gpu_throttled\": \"heat\", \"slots\": 8, \"cores\": "
              "[1, 200, null]}\n"),
    FUZZ_SEED("{\"t\": 4, \"event\": \"verdict\", \"name\": \"fine\", \"text\": \"\\u0000\", "
              "\"remedies\": [{\"text\": \"a\", \"flags\": \"--b\", \"gain\": 2}, 7]}\n"),
    FUZZ_SEED("{\"t\": 5, \"event\": \"stop\", \"status\": \"complete\", \"used_s\": 61, "
              "\"budget_s\": 60, \"best_acc1\": 12.5}\n{\"event\": \"warning\", \"text\": "
              "\"<script>\"}\n{\"event\": \"bad_image\", \"path\": \"\xff\"}\n"),
    FUZZ_SEED(
        "{\"t\": 1, \"event\": \"attempt\", \"number\": 1, \"part\": \"train\", \"command\": "
        "\"<script>\", \"batch\": 9e18, \"gpu_memory_used\": 1e300, \"gpu_memory_total\": 1}\n"
        "{\"event\": \"attempt\", \"ended\": true, \"number\": 1, \"part\": \"train\", "
        "\"stop_reason\": \"<script>\", \"seconds\": -1, \"exit_code\": 7}\n"),
    FUZZ_SEED("{\"event\": \"stop\", \"command\": \"<script>\", \"estimate\": \"<script>\", "
              "\"exit_code\": 1, \"attempts\": [{\"number\": 2, \"part\": \"predict\", "
              "\"signal\": 9, \"kept\": true}, 7, {}]}\n"),
};
FUZZ_PLAN(seeds)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_run_history history;
    stk_str html = {0};
    stk_error err = {0};
    stk_run_history_open(&history);
    stk_replay replay = {
        .observer = &history.sink.observer, .at = stk_run_history_set_time_s, .user = &history};
    for (size_t at = 0; at < size;) {
        const uint8_t *stop = memchr(data + at, '\n', size - at);
        size_t length = stop != NULL ? (size_t)(stop - data) - at : size - at;
        stk_replay_line(&replay, (const char *)data + at, length);
        at += length + 1;
    }
    const stk_page page = {.name = "fuzz", .history = &history};
    FUZZ_REQUIRE(stk_page_put(&page, &html, &err) == STK_OK);
    FUZZ_REQUIRE(strlen(html.text) == html.length);
    FUZZ_REQUIRE(strstr(html.text, "<script") == NULL && strstr(html.text, "</html>") != NULL);
    FUZZ_REQUIRE(strstr(html.text, "\"nan") == NULL && strstr(html.text, "inf\"") == NULL);
    stk_str_free(&html);
    stk_run_history_close(&history);
    return 0;
}
