/* The page of a run, from what its events told. */
#include "check.h"

#include "base/mem.h"
#include "base/text/json.h"
#include "report/page/page.h"
#include "report/text/text.h"
#include "told_run.h"

/* A page and what it is made from. */
typedef struct sheet {
    stk_run_history history;
    stk_confusion confusion;
    stk_thumbs thumbs;
    stk_page page;
    stk_str html;
    stk_error err;
} sheet;

static void open_sheet(sheet *s) {
    memset(s, 0, sizeof *s);
    stk_run_history_open(&s->history);
    s->page = (stk_page){.name = "demo", .history = &s->history};
}

static void close_sheet(sheet *s) {
    stk_run_history_close(&s->history);
    stk_confusion_free(&s->confusion);
    stk_thumbs_free(&s->thumbs);
    stk_str_free(&s->html);
}

static const char *render(sheet *s) {
    stk_str_clear(&s->html);
    if (stk_page_put(&s->page, &s->html, &s->err) != STK_OK) {
        CHECK_FAIL("no page: %s", s->err.message);
    }
    return stk_str_text(&s->html);
}

static void tell_epochs(sheet *s, int folds, int epochs) {
    for (int fold = 0; fold < folds; fold++) {
        for (int epoch = 1; epoch <= epochs; epoch++) {
            stk_event_epoch event = told_epoch(fold, epoch);
            s->history.sink.observer.epoch(&s->history.sink, &event);
        }
    }
}

static void tell_samples(sheet *s, int count) {
    const float cores[2] = {20, 90};
    for (int i = 0; i < count; i++) {
        stk_event_sample event = told_sample(i, cores, 2);
        s->history.sink.observer.sample(&s->history.sink, &event);
    }
}

static void take_table(sheet *s, const char *text) {
    stk_csv table;
    REQUIRE(stk_csv_parse("validation.csv", text, strlen(text), &table, &s->err) == STK_OK);
    REQUIRE(stk_confusion_make(&s->confusion, &table, "validation.csv", &s->err) == STK_OK);
    s->page.confusion = &s->confusion;
}

/* Everything that a run can tell. */
static void tell_all(sheet *s) {
    const stk_observer *to = &s->history.sink.observer;
    stk_event_start start = told_start();
    stk_event_plan plan = {.epochs = 10, .total_s = 100, .left_s = 500, .reserve_s = 60};
    stk_event_decision decision = {"batch 32", "the training set has 480 images"};
    stk_event_bad_image bad = {"train/1.jpg", "train", "no picture"};
    stk_event_verdict verdict = told_verdict();
    to->start(to->user, &start);
    to->plan(to->user, &plan);
    to->decision(to->user, &decision);
    to->warning(to->user, "a class is rare");
    to->bad_image(to->user, &bad);
    to->verdict(to->user, &verdict);
    tell_samples(s, 50);
    tell_epochs(s, 1, 7);
    stk_summary summary = told_summary();
    stk_run_history_set_time_s(&s->history, 120);
    to->stop(to->user, &summary);
}

static int occurrences(const char *text, const char *part) {
    int count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

/* No request can leave the page, and it is UTF-8. */
static void check_sound(const char *html) {
    CHECK_INT(occurrences(html, "http:"), 0);
    CHECK_INT(occurrences(html, "https:"), 0);
    CHECK_INT(occurrences(html, "<script"), 0);
    CHECK_INT(occurrences(html, "url("), 0);
    CHECK_INT(occurrences(html, "@import"), 0);
    CHECK_INT(occurrences(html, " src="), occurrences(html, " src=\"data:image/jpeg;base64,"));
    CHECK_INT(occurrences(html, " href="), occurrences(html, " href=\"data:,\""));
    CHECK(strstr(html, ">nan") == NULL && strstr(html, "\"nan") == NULL &&
          strstr(html, "-nan") == NULL && strstr(html, "inf,") == NULL);
    CHECK_CONTAINS(html, "</html>");
    CHECK_INT(occurrences(html, "<section"), occurrences(html, "</section>"));
    CHECK_INT(occurrences(html, "<div"), occurrences(html, "</div>"));
    CHECK_INT(occurrences(html, "<svg"), occurrences(html, "</svg>"));
    size_t left = strlen(html);
    for (size_t length = 1; left > 0 && length > 0; html += length, left -= length) {
        length = stk_utf8_length(html, left);
        CHECK(length > 0);
    }
}

/* The ids of elements, each of which may be there once. */
static void check_once(const char *html, const char *id) {
    char attribute[64];
    snprintf(attribute, sizeof attribute, " id=\"%s\"", id);
    if (occurrences(html, attribute) != 1) {
        CHECK_FAIL("%s is there %d times", attribute, occurrences(html, attribute));
    }
}

static void a_page_has_every_section(void) {
    static const char *const ids[] = {
        "verdict",         "summary",    "curves",        "times",       "budget",
        "throughput",      "gpu",        "host",          "cores",       "confusion",
        "worst",           "notes",      "epochs",        "options",     "plot-loss",
        "plot-accuracy",   "plot-lr",    "plot-speed",    "plot-times",  "plot-budget",
        "plot-throughput", "plot-gpu",   "plot-waiting",  "plot-queue",  "plot-gpu-memory",
        "plot-gpu-power",  "plot-pcie",  "plot-cpu",      "plot-memory", "plot-disk",
        "plot-network",    "plot-cores", "plot-confusion"};
    static const char args[] = "{\"batch\": 32, \"lr\": 0.1, \"flip\": true, \"name\": null}";
    sheet s;
    stk_json *json = NULL;
    open_sheet(&s);
    tell_all(&s);
    take_table(&s, "path,label,predicted,probability,fold\n"
                   "a.jpg,cat,cat,0.9,0\nb.jpg,cat,dog,0.125,0\nc.jpg,dog,dog,0.8,0\n");
    s.thumbs.count = 1;
    s.thumbs.items[0].jpeg = stk_mem_new(1, 5);
    REQUIRE(s.thumbs.items[0].jpeg != NULL);
    memcpy(s.thumbs.items[0].jpeg, "\xff\xd8\xff\xd9!", 5);
    s.thumbs.items[0].size = 5;
    s.page.thumbs = &s.thumbs;
    REQUIRE_OK(stk_json_parse(args, sizeof args - 1, &json, &s.err), &s.err);
    s.page.args = json;
    s.page.args_yaml = "# Training\nbatch: 32  # auto: it fits\nlr: \"0.1  # \\\"no\"\n";
    const char *html = render(&s);
    check_sound(html);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        check_once(html, ids[i]);
    }
    CHECK(strstr(html, "id=\"verdict\"") < strstr(html, "id=\"summary\""));
    CHECK(strstr(html, "id=\"summary\"") < strstr(html, "id=\"curves\""));
    CHECK_CONTAINS(html, "Verdict: decode-bound");
    CHECK_CONTAINS(html, "stage at 256 px <strong>predicted 2.1 times as fast</strong>");
    CHECK_CONTAINS(html, "How busy each of 2 cores was on average: from 20 % to 90 %.");
    CHECK_CONTAINS(html, "<code>--workers 32</code>");
    CHECK_CONTAINS(html, "src=\"data:image/jpeg;base64,/9j/2SE=\"");
    CHECK_CONTAINS(html, "<strong>cat</strong> taken for <strong>dog</strong>");
    CHECK_CONTAINS(html, "<td>batch</td><td>32</td><td>auto: it fits</td>");
    CHECK_CONTAINS(html, "<td>lr</td><td>0.1</td><td></td>");
    CHECK_CONTAINS(html, "<td>flip</td><td>yes</td>");
    CHECK_CONTAINS(html, "Best macro_f1</dt><dd>0.875<");
    CHECK_CONTAINS(html, "every planned epoch was trained");
    CHECK_CONTAINS(html, "clock down in 100 % of the samples: power");
    stk_json_free(json);
    close_sheet(&s);
}

static void foreign_text_is_no_markup(void) {
    static const char args[] = "{\"<b>key\": \"<b>value\", \"list\": [1], \"batch\": \"</td>\"}";
    sheet s;
    stk_json *json = NULL;
    open_sheet(&s);
    const stk_observer *to = &s.history.sink.observer;
    stk_event_start start = told_start();
    start.chosen = start.run_dir = start.data = start.model = start.device = start.precision =
        start.device_name = TOLD_EVIL;
    stk_event_decision decision = {TOLD_EVIL, TOLD_EVIL};
    stk_event_bad_image bad = {TOLD_EVIL, TOLD_EVIL, TOLD_EVIL};
    stk_event_verdict verdict = told_verdict();
    verdict.name = verdict.text = verdict.evidence = verdict.batch = TOLD_EVIL;
    verdict.remedies[0] = (stk_remedy){TOLD_EVIL, TOLD_EVIL, 2};
    stk_summary summary = told_summary();
    summary.status = summary.stop_reason = summary.metric = summary.device = summary.precision =
        summary.verdict = summary.submission = TOLD_EVIL;
    stk_event_sample sample = told_sample(1, NULL, 0);
    sample.gpu_throttled = TOLD_EVIL;
    to->start(to->user, &start);
    to->decision(to->user, &decision);
    to->warning(to->user, TOLD_EVIL);
    to->bad_image(to->user, &bad);
    to->verdict(to->user, &verdict);
    to->sample(to->user, &sample);
    to->stop(to->user, &summary);
    take_table(&s, "path,label,predicted,probability,fold\n"
                   "<script>1,<script>2,<script>3,0.5,0\n\xff<b>,\xfe<i>,<script>2,0.5,0\n");
    REQUIRE_OK(stk_json_parse(args, sizeof args - 1, &json, &s.err), &s.err);
    s.page.name = TOLD_EVIL;
    s.page.args = json;
    s.page.args_yaml = "batch: x  # <script>\xff";
    const char *html = render(&s);
    check_sound(html);
    CHECK(strstr(html, "<b>") == NULL && strstr(html, "<i>") == NULL);
    CHECK_CONTAINS(html, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;");
    stk_json_free(json);
    close_sheet(&s);
}

/* Who decoded is told where something is known of a device that decodes. */
static void who_decoded_is_told(void) {
    static const struct {
        double share, jpeg_util;
        const char *line;
    } cases[] = {
        {0.923, 41.4, "<p>Pictures: decoded by the GPU 92 %, engines busy 41 % on average.</p>"},
        {0, 0, "<p>Pictures: decoded by the GPU 0 %, engines busy 0 % on average.</p>"},
        {1, NAN, "<p>Pictures: decoded by the GPU 100 %.</p>"},
        {0, NAN, NULL},
        {NAN, 41, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sheet s;
        open_sheet(&s);
        const stk_observer *to = &s.history.sink.observer;
        stk_event_verdict verdict = told_verdict();
        verdict.device_decoded = cases[i].share;
        verdict.jpeg_util = cases[i].jpeg_util;
        to->verdict(to->user, &verdict);
        const char *html = render(&s);
        check_sound(html);
        if (cases[i].line != NULL) {
            CHECK_CONTAINS(html, cases[i].line);
        } else {
            CHECK(strstr(html, "decoded by the GPU") == NULL);
        }
        close_sheet(&s);
    }
}

static void an_empty_run_has_a_page(void) {
    sheet s;
    open_sheet(&s);
    s.page.name = NULL;
    const char *html = render(&s);
    check_sound(html);
    CHECK_CONTAINS(html, "Too little was seen");
    CHECK_CONTAINS(html, "no end was written");
    CHECK(strstr(html, "id=\"curves\"") == NULL && strstr(html, "id=\"budget\"") == NULL &&
          strstr(html, "id=\"times\"") == NULL && strstr(html, "id=\"notes\"") == NULL);
    close_sheet(&s);
}

static void one_epoch_is_drawn(void) {
    sheet s;
    open_sheet(&s);
    tell_epochs(&s, 1, 1);
    const char *html = render(&s);
    check_sound(html);
    check_once(html, "plot-loss");
    CHECK(strstr(strstr(html, "id=\"plot-loss\""), "<circle") != NULL);
    close_sheet(&s);
}

static void what_is_not_finite_is_left_out(void) {
    sheet s;
    open_sheet(&s);
    for (int epoch = 1; epoch <= 3; epoch++) {
        stk_event_epoch event = told_epoch(0, epoch);
        event.train_loss = epoch == 2 ? INFINITY : 1e300;
        event.val_loss = event.val_acc1 = event.val_acc5 = NAN;
        event.times.decode_s = event.times.total_s = NAN;
        s.history.sink.observer.epoch(&s.history.sink, &event);
    }
    stk_event_sample sample = {.at_s = NAN, .cpu = INFINITY, .gpu_util = NAN, .slots = -1};
    s.history.sink.observer.sample(&s.history.sink, &sample);
    check_sound(render(&s));
    close_sheet(&s);
}

static void folds_have_their_colours(void) {
    sheet s;
    open_sheet(&s);
    tell_epochs(&s, 3, 4);
    const char *html = render(&s);
    check_sound(html);
    CHECK_CONTAINS(html, "fold 3</li>");
    CHECK(strstr(html, "fold 4</li>") == NULL);
    CHECK(strstr(html, "Best epoch") == NULL); /* each fold has its own */
    CHECK_CONTAINS(html, "All 12 epochs as a table");
    close_sheet(&s);
    open_sheet(&s);
    tell_epochs(&s, 30, 2);
    html = render(&s);
    check_sound(html);
    CHECK_CONTAINS(html, "The first folds are drawn");
    close_sheet(&s);
}

static void many_samples_and_epochs_make_no_large_page(void) {
    sheet s;
    open_sheet(&s);
    tell_samples(&s, 20000);
    tell_epochs(&s, 1, 3000);
    for (int i = 0; i < 5000; i++) {
        s.history.sink.observer.warning(&s.history.sink, "the same again");
    }
    const char *html = render(&s);
    check_sound(html);
    CHECK(s.html.length < 900000);
    CHECK_CONTAINS(html, "Warnings (5,000)");
    CHECK_INT(occurrences(html, "the same again"), STK_HISTORY_NOTES);
    CHECK_CONTAINS(html, "The last 300 epochs");
    CHECK_INT(s.history.samples, 20000);
    close_sheet(&s);
}

/* The percents of a bar's key add up to 100, however odd the parts are. */
static double sum_of_key(const char *html, const char *id) {
    double sum = 0;
    const char *at = strstr(html, id);
    const char *end = at != NULL ? strstr(at, "</ul>") : NULL;
    at = at != NULL ? strstr(at, "<ul") : NULL;
    while (at != NULL && (at = strstr(at, " % (")) != NULL && at < end) {
        const char *number = at;
        while (number[-1] != ' ') {
            number--;
        }
        sum += strtod(number, NULL);
        at++;
    }
    return sum;
}

static void times_add_up_to_a_hundred(void) {
    for (int i = 1; i < 50; i++) {
        sheet s;
        open_sheet(&s);
        stk_event_epoch event = told_epoch(0, 1);
        event.times.decode_s = 0.37 * i;
        event.times.compute_s = 11.0 / i;
        event.times.other_s = 1e-7;
        s.history.sink.observer.epoch(&s.history.sink, &event);
        CHECK_NEAR(sum_of_key(render(&s), "id=\"plot-times\""), 100, 1e-6);
        close_sheet(&s);
    }
}

/* An epoch that is being trained counts as well. */
static void times_of_a_killed_run_have_its_last_steps(void) {
    sheet s;
    open_sheet(&s);
    tell_epochs(&s, 1, 2);
    stk_event_step step = {.epoch = 3, .times = told_epoch(0, 3).times};
    s.history.sink.observer.step(&s.history.sink, &step);
    CHECK_NEAR(stk_run_history_times(&s.history).total_s, 30, 1e-9);
    CHECK_NEAR(stk_run_history_times(&s.history).compute_s, 15, 1e-9);
    stk_event_epoch third = told_epoch(0, 3);
    s.history.sink.observer.epoch(&s.history.sink, &third);
    CHECK_NEAR(stk_run_history_times(&s.history).total_s, 30, 1e-9);
    close_sheet(&s);
}

static void the_budget_has_its_reserve_until_the_end(void) {
    sheet s;
    open_sheet(&s);
    stk_event_start start = told_start();
    stk_event_plan plan = {.reserve_s = 60};
    s.history.sink.observer.start(&s.history.sink, &start);
    s.history.sink.observer.plan(&s.history.sink, &plan);
    stk_run_history_set_time_s(&s.history, 150);
    const char *html = render(&s);
    CHECK_CONTAINS(html, "used 25.0 %");
    CHECK_CONTAINS(html, "left 65.0 %");
    CHECK_CONTAINS(html, "kept for prediction 10.0 %");
    stk_summary summary = told_summary();
    s.history.sink.observer.stop(&s.history.sink, &summary);
    html = render(&s);
    CHECK_CONTAINS(html, "used 20.0 %");
    CHECK_CONTAINS(html, "left 80.0 %");
    CHECK(strstr(html, "kept for prediction") == NULL);
    summary.used_s = 700; /* late */
    s.history.sink.observer.stop(&s.history.sink, &summary);
    CHECK_NEAR(sum_of_key(render(&s), "id=\"plot-budget\""), 100, 1e-6);
    close_sheet(&s);
}

static void many_classes_share_cells(void) {
    sheet s;
    stk_str text = {0};
    open_sheet(&s);
    stk_str_append(&text, "path,label,predicted,probability,fold\n");
    for (int i = 0; i < 1000; i++) {
        stk_str_appendf(&text, "%d.jpg,class%03d,class%03d,0.5,0\n", i, i % 500,
                        i < 500 || i % 100 == 99 ? i % 500 : (i + 1) % 500);
    }
    take_table(&s, stk_str_text(&text));
    stk_str_free(&text);
    const char *html = render(&s);
    check_sound(html);
    CHECK_CONTAINS(html, "neighbouring classes share a cell");
    CHECK_CONTAINS(html, "Mixed up most often");
    const char *plot = strstr(html, "id=\"plot-confusion\"");
    REQUIRE(plot != NULL);
    CHECK(strstr(plot, "<text") == NULL || strstr(plot, "<text") > strstr(plot, "</svg>"));
    CHECK(s.html.length < 200000);
    close_sheet(&s);
}

/* ---- the record ---- */

static void moments_are_means_in_order(void) {
    sheet s;
    open_sheet(&s);
    tell_samples(&s, 10 * STK_HISTORY_MOMENTS + 7);
    const stk_run_history *r = &s.history;
    CHECK(r->moment_count > STK_HISTORY_MOMENTS / 3 && r->moment_count <= STK_HISTORY_MOMENTS);
    CHECK_INT(r->per_moment, 16);
    for (size_t i = 0; i < r->moment_count; i++) {
        const stk_moment *moment = &r->moments[i];
        CHECK(i == 0 || moment->at_s > moment[-1].at_s);
        CHECK_NEAR(moment->values[STK_GAUGE_GPU_UTIL], 80, 1e-9);
        CHECK_NEAR(moment->values[STK_GAUGE_IMAGES_PER_SECOND], 400 + moment->at_s, 1e-6);
        CHECK_NEAR(moment->values[STK_GAUGE_WORKERS], 4, 1e-9);
    }
    CHECK_NEAR(r->moments[0].at_s, 7.5, 1e-9);
    CHECK_NEAR(r->core_sums[1] / (double)r->core_samples, 90, 1e-6);
    CHECK_INT(r->throttled, r->samples);
    close_sheet(&s);
}

static void an_unknown_gauge_does_not_spoil_its_neighbours(void) {
    sheet s;
    open_sheet(&s);
    for (int i = 0; i < 2 * STK_HISTORY_MOMENTS + 2; i++) {
        stk_event_sample event = told_sample(i, NULL, 0);
        event.gpu_util = i % 2 == 0 ? NAN : 50;
        event.sm_activity = NAN;
        s.history.sink.observer.sample(&s.history.sink, &event);
    }
    CHECK_NEAR(s.history.moments[3].values[STK_GAUGE_GPU_UTIL], 50, 1e-9);
    CHECK(isnan(s.history.moments[3].values[STK_GAUGE_SM_ACTIVITY]));
    close_sheet(&s);
}

static void epochs_that_are_trained_again_take_the_place_of_those_before(void) {
    sheet s;
    open_sheet(&s);
    tell_epochs(&s, 2, 4);
    stk_event_epoch again = told_epoch(1, 3);
    again.train_loss = 42;
    s.history.sink.observer.epoch(&s.history.sink, &again);
    CHECK_INT(s.history.row_count, 7);
    CHECK_NEAR(s.history.rows[6].train_loss, 42, 0);
    stk_event_epoch odd = told_epoch(-1, 1);
    s.history.sink.observer.epoch(&s.history.sink, &odd);
    odd = told_epoch(2000000000, 1);
    s.history.sink.observer.epoch(&s.history.sink, &odd);
    CHECK_INT(s.history.row_count, 7);
    CHECK_INT(stk_run_history_folds(&s.history), 2);
    close_sheet(&s);
}

static void rows_from_elsewhere_keep_what_events_said(void) {
    sheet s;
    open_sheet(&s);
    tell_epochs(&s, 1, 3);
    stk_event_epoch rows[4];
    for (int i = 0; i < 4; i++) {
        rows[i] = told_epoch(0, i + 1);
        rows[i].times = (stk_times){0};
        rows[i].best = false;
        rows[i].train_loss = 7;
    }
    REQUIRE(stk_run_history_take_rows(&s.history, rows, 4));
    CHECK_INT(s.history.row_count, 4);
    CHECK_NEAR(s.history.rows[2].train_loss, 7, 0);
    CHECK_NEAR(s.history.rows[2].times.total_s, 10, 0);
    CHECK_NEAR(s.history.rows[3].times.total_s, 0, 0);
    REQUIRE(stk_run_history_best(&s.history) != NULL);
    CHECK_INT(stk_run_history_best(&s.history)->epoch, 3);
    REQUIRE(stk_run_history_take_rows(&s.history, NULL, 0));
    CHECK(stk_run_history_best(&s.history) == NULL);
    close_sheet(&s);
}

/* Whatever request for memory fails, there is an error and no crash. */
static void a_page_without_memory_is_an_error(void) {
    bool done = false;
    for (int64_t n = 0; n < 3000 && !done; n += n < 200 ? 1 : 37) {
        sheet s;
        open_sheet(&s);
        stk_mem_fail_after(n);
        tell_all(&s);
        stk_status status = stk_page_put(&s.page, &s.html, &s.err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        done = status == STK_OK;
        close_sheet(&s);
    }
    CHECK(done);
}

static const check_test tests[] = {
    TEST(a_page_has_every_section),
    TEST(foreign_text_is_no_markup),
    TEST(who_decoded_is_told),
    TEST(an_empty_run_has_a_page),
    TEST(one_epoch_is_drawn),
    TEST(what_is_not_finite_is_left_out),
    TEST(folds_have_their_colours),
    TEST(many_samples_and_epochs_make_no_large_page),
    TEST(times_add_up_to_a_hundred),
    TEST(times_of_a_killed_run_have_its_last_steps),
    TEST(the_budget_has_its_reserve_until_the_end),
    TEST(many_classes_share_cells),
    TEST(moments_are_means_in_order),
    TEST(an_unknown_gauge_does_not_spoil_its_neighbours),
    TEST(epochs_that_are_trained_again_take_the_place_of_those_before),
    TEST(rows_from_elsewhere_keep_what_events_said),
    TEST(a_page_without_memory_is_an_error),
};

CHECK_MAIN(tests)
