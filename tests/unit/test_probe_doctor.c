/* test_probe_doctor.c - what a diagnosis says of rates: changes, words and bars. Measures nothing.
 */
#include "check.h"

#include <math.h>

#include "base/files/file.h"
#include "probe/doctor/doctor.h"
#include "probe/doctor/phases.h"
#include "report/plots/plots.h"

/* A GPU beside 8 cores with 4 workers, which decoding holds back. */
static stk_rates rates_of_a_gpu(void) {
    return (stk_rates){.storage = 9000,
                       .decode = 200,
                       .workers = 4,
                       .cores = 8,
                       .copy = 50000,
                       .step = 4000,
                       .batch = 64,
                       .fixed_s = 0.004,
                       .source_px = 500000,
                       .img_size = 224,
                       .images = 100000};
}

static doctor_changes no_changes(void) {
    return (doctor_changes){.stage_side_px = 256,
                            .staged = NAN,
                            .decoded = NAN,
                            .all_cores = NAN,
                            .small_decode = NAN,
                            .small_step = NAN,
                            .double_step = NAN};
}

static stk_diagnosis diagnosis_of(const stk_rates *rates) {
    stk_diagnosis found = {.model = "resnet50",
                           .device = "cuda:0",
                           .about = "a GPU",
                           .precision = "fp16",
                           .cores = rates->cores,
                           .workers = rates->workers,
                           .batch = rates->batch,
                           .measured_batch = rates->batch,
                           .img_size = rates->img_size,
                           .images = rates->images,
                           .picture_bytes = 120e3,
                           .picture_px = rates->source_px,
                           .is_kept = true,
                           .storage_cold = 500,
                           .storage_warm = rates->storage,
                           .cold_bytes = 60e6,
                           .warm_bytes = 1e9,
                           .decode = stk_rates_of(rates, STK_STAGE_DECODE),
                           .decode_worker = rates->decode,
                           .core_share = 1,
                           .loader = 780,
                           .copy = rates->copy,
                           .copy_bytes = 7e9,
                           .step = rates->step,
                           .step_ms = 16,
                           .fixed_ms = 4,
                           .together = 790,
                           .epoch_s = 126,
                           .wait_fraction = 0.8};
    return found;
}

/* The row whose words begin so; NULL: there is none. */
static const stk_what_if *row_of(const stk_diagnosis *found, const char *what) {
    for (int i = 0; i < found->what_if_count; i++) {
        if (strncmp(found->what_ifs[i].what, what, strlen(what)) == 0) {
            return &found->what_ifs[i];
        }
    }
    return NULL;
}

static void check_row(const stk_diagnosis *found, const char *what, double rate,
                      const char *narrowest, const char *basis) {
    const stk_what_if *row = row_of(found, what);
    if (row == NULL) {
        CHECK_FAIL("there is no row '%s'", what);
        return;
    }
    CHECK_NEAR(row->images_per_second, rate, 1e-6 * rate);
    CHECK_NEAR(row->epoch_s, (double)found->images / rate, 1e-3);
    CHECK_STR(row->narrowest, narrowest);
    CHECK_STR(row->basis, basis);
}

static void measured_changes_are_taken_before_computed_ones(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    changes.all_cores = 150;
    changes.staged = 600;
    changes.staging_shrinks = true;
    changes.decoded = 900;
    changes.small_size = 160;
    changes.small_decode = 220;
    changes.small_step = 7000;
    changes.double_step = 4500;
    stk_doctor_predict(&rates, &changes, 0, &found);
    CHECK_NEAR(found.predicted, 800, 1e-6);
    CHECK_STR(found.narrowest, "decoding");
    check_row(&found, "8 workers", 1200, "decoding", "measured");
    check_row(&found, "16 cores", 3200, "decoding", "computed");
    check_row(&found, "staged at 256 px", 2400, "decoding", "measured");
    check_row(&found, "staged as it is", 800, "decoding", "computed");
    check_row(&found, "pictures kept", 800, "decoding", "computed");
    check_row(&found, "decoded pictures", 3600, "decoding", "measured");
    check_row(&found, "batch 128", 800, "decoding", "measured");
    check_row(&found, "training at 160 px", 880, "decoding", "measured");
    CHECK_STR(row_of(&found, "staged at")->flags, "stoker stage SRC DEST --max-side 342");
    CHECK_STR(row_of(&found, "8 workers")->flags, "--workers 8");
    CHECK_STR(row_of(&found, "16 cores")->flags, "");
    for (int i = 1; i < found.what_if_count; i++) {
        CHECK(found.what_ifs[i - 1].gain >= found.what_ifs[i].gain);
    }
    CHECK_NEAR(found.what_ifs[0].gain, 4.5, 1e-6);
}

static void what_was_not_measured_is_computed_or_left_out(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    rates.step = 500; /* narrower than decoding */
    changes.small_size = 112;
    stk_doctor_predict(&rates, &changes, 0, &found);
    CHECK_STR(found.narrowest, "training step");
    CHECK(row_of(&found, "staged at") == NULL);
    CHECK(row_of(&found, "decoded") == NULL);
    /* Of 128 ms 4 are fixed: twice the batch takes 252 ms. */
    check_row(&found, "batch 128", 128 / 0.252, "training step", "computed");
    stk_rates smaller = stk_rates_with_img_size(&rates, 112);
    check_row(&found, "training at 112 px", stk_rates_together(&smaller, NULL), "decoding",
              "computed");
    changes.small_size = 0;
    found = diagnosis_of(&rates);
    stk_doctor_predict(&rates, &changes, 0, &found);
    CHECK(row_of(&found, "training at") == NULL);
}

/* Steps of 16 were measured; what is told of changes is of the 64 that training has. */
static void changes_are_those_of_the_whole_batch(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    rates.batch = found.measured_batch = 16;
    rates.step = 400; /* 40 ms, 4 of them fixed: 64 take 148 ms */
    changes.double_step = 420;
    changes.small_size = 160;
    changes.small_step = 600;
    stk_doctor_predict(&rates, &changes, 0, &found);
    CHECK_NEAR(found.predicted, 400, 1e-6);
    check_row(&found, "staged as it is", 64 / 0.148, "training step", "computed");
    CHECK_NEAR(row_of(&found, "staged as it is")->gain, 1, 1e-6);
    check_row(&found, "batch 128", 128 / 0.292, "training step", "computed");
    check_row(&found, "training at 160 px", 600 * (64 / 0.148) / 400, "training step", "measured");
}

/* Half a millisecond beside 5 ms of decoding: it does not go away with smaller pictures. */
static void what_the_loader_costs_stays(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    changes.staged = 1000;
    changes.staging_shrinks = true;
    stk_doctor_predict(&rates, &changes, 0.0005, &found);
    CHECK_NEAR(found.predicted, 4 / 0.0055, 1e-6);
    check_row(&found, "staged at 256 px", 4 / 0.0015, "decoding", "measured");
    check_row(&found, "8 workers", 8 / 0.0055, "decoding", "measured");
}

static void the_first_epoch_is_cold(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    stk_doctor_predict(&rates, &changes, 0, &found);
    CHECK_NEAR(found.first_epoch_s, 200, 1e-6);
    found = diagnosis_of(&rates);
    found.storage_cold = NAN; /* too few pictures to tell */
    stk_doctor_predict(&rates, &changes, 0, &found);
    CHECK_NEAR(found.first_epoch_s, 125, 1e-6);
}

/* ---- words ---- */

static void words_name_the_narrowest(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    stk_str text = {0};
    stk_doctor_predict(&rates, &changes, 0, &found);
    stk_doctor_print(&found, &text);
    const char *words = stk_str_text(&text);
    CHECK_CONTAINS(words, "resnet50 at 224 px, batch 64, fp16 on cuda:0: a GPU\n");
    CHECK_CONTAINS(words, "4 workers, 200 each  <- narrowest\n");
    CHECK_CONTAINS(words, "The narrowest is decoding. All together give 790 images/s: 126 s");
    CHECK_CONTAINS(words, "the first one about 200 s");
    CHECK_CONTAINS(words, "16 cores like these");
    CHECK(strstr(words, " \n") == NULL);
    CHECK(strstr(words, "others use the machine") == NULL);
    CHECK(strstr(words, "take too long") == NULL);
    CHECK(strstr(words, "nan") == NULL && strstr(words, "inf") == NULL);
    stk_str_free(&text);
    found.core_share = 0.4;
    found.measured_batch = 16;
    found.copy = INFINITY;
    found.copy_bytes = INFINITY;
    found.storage_cold = NAN;
    stk_doctor_print(&found, &text);
    words = stk_str_text(&text);
    CHECK_CONTAINS(words, "decoding had 40 % of its cores' time");
    CHECK_CONTAINS(words, "steps of batch 64 take too long for these --seconds: measured with 16");
    CHECK_CONTAINS(words, "none: the CPU computes where pictures are");
    CHECK(strstr(words, "nan") == NULL && strstr(words, "inf") == NULL);
    stk_str_free(&text);
}

static void the_picture_is_a_file(void) {
    stk_rates rates = rates_of_a_gpu();
    stk_diagnosis found = diagnosis_of(&rates);
    doctor_changes changes = no_changes();
    stk_error err = {0};
    char path[320];
    stk_doctor_predict(&rates, &changes, 0, &found);
    snprintf(path, sizeof path, "%s/bars.svg", check_folder());
    REQUIRE_OK(stk_doctor_draw(&found, path, NULL, &err), &err);
    CHECK(stk_path_is_file(path));
    snprintf(path, sizeof path, "%s/absent/bars.svg", check_folder());
    CHECK_INT(stk_doctor_draw(&found, path, NULL, &err), STK_ERR_STORAGE);
}

static void bars_are_in_proportion_and_cut_off(void) {
    const stk_bar bars[] = {{"a heading <&>", NULL, NAN, false},
                            {"half", "50", 50, false},
                            {"far longer", "1e9", 1e9, true},
                            {"nothing", "-", NAN, false}};
    stk_bar_plot plot = {.title = "bars", .below = "below", .bars = bars, .count = 4, .most = 100};
    stk_canvas *canvas = NULL;
    stk_error err = {0};
    stk_str svg = {0};
    REQUIRE_OK(stk_canvas_svg_new(&canvas, STK_BAR_PLOT_WIDTH_PX, stk_bar_plot_height(&plot), &err),
               &err);
    stk_bar_plot_draw(&plot, canvas);
    REQUIRE_OK(stk_canvas_finish(canvas, &svg, &err), &err);
    const char *text = stk_str_text(&svg);
    CHECK_CONTAINS(text, "a heading &lt;&amp;&gt;");
    CHECK_CONTAINS(text, "width=\"180.00\""); /* half of what is left beside labels and numbers */
    CHECK_CONTAINS(text, "width=\"360.00\"");
    CHECK(strstr(text, "nan") == NULL && strstr(text, "e+") == NULL);
    stk_canvas_free(canvas);
    stk_str_free(&svg);
}

static const check_test tests[] = {
    TEST(measured_changes_are_taken_before_computed_ones),
    TEST(what_was_not_measured_is_computed_or_left_out),
    TEST(changes_are_those_of_the_whole_batch),
    TEST(what_the_loader_costs_stays),
    TEST(the_first_epoch_is_cold),
    TEST(words_name_the_narrowest),
    TEST(the_picture_is_a_file),
    TEST(bars_are_in_proportion_and_cut_off),
};

CHECK_MAIN(tests)
