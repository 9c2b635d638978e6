/* test_monitor_rates.c - what stages give together, and what a change would bring. */
#include "check.h"

#include <math.h>

#include "monitor/rates.h"

/* A GPU beside 16 cores: pictures of 640 by 480 px, 181 of them a second and worker. */
static stk_rates gpu_rates(void) {
    return (stk_rates){.storage = 50000,
                       .decode = 181.25,
                       .workers = 16,
                       .cores = 16,
                       .copy = 80000,
                       .step = 7700,
                       .batch = 128,
                       .fixed_s = 0.002,
                       .source_px = 640 * 480,
                       .img_size = 224,
                       .images = 50000};
}

/* Four cores that do everything. */
static stk_rates cpu_rates(void) {
    return (stk_rates){.storage = INFINITY,
                       .decode = 100,
                       .workers = 4,
                       .cores = 4,
                       .copy = INFINITY,
                       .step = 100,
                       .on_host = true,
                       .batch = 32,
                       .fixed_s = 0,
                       .source_px = 640 * 480,
                       .img_size = 224,
                       .images = 1000};
}

static void on_a_gpu_the_narrowest_stage_decides(void) {
    static const struct {
        double storage, decode, copy, step, together;
        stk_stage_kind narrowest;
    } cases[] = {
        {50000, 181.25, 80000, 7700, 2900, STK_STAGE_DECODE},
        {1000, 181.25, 80000, 7700, 1000, STK_STAGE_STORAGE},
        {50000, 1000, 4000, 7700, 4000, STK_STAGE_COPY},
        {50000, 1000, 80000, 7700, 7700, STK_STAGE_STEP},
        {INFINITY, INFINITY, INFINITY, 7700, 7700, STK_STAGE_STEP},
        {NAN, NAN, NAN, 7700, 7700, STK_STAGE_STEP},
        {NAN, 181.25, NAN, NAN, 2900, STK_STAGE_DECODE},
        {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, STK_STAGE_STORAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_rates r = gpu_rates();
        r.storage = cases[i].storage;
        r.decode = cases[i].decode;
        r.copy = cases[i].copy;
        r.step = cases[i].step;
        stk_stage_kind narrowest = STK_STAGE_COUNT;
        double together = stk_rates_together(&r, &narrowest);
        if (together != cases[i].together || narrowest != cases[i].narrowest) {
            CHECK_FAIL("case %zu: %g by %s", i, together, stk_stage_name(narrowest));
        }
    }
    stk_rates nothing = {
        .storage = NAN, .decode = NAN, .copy = NAN, .step = NAN, .workers = -1, .cores = 1};
    CHECK(isnan(stk_rates_together(&nothing, NULL)));
}

/* 1/100 s of all cores for the step and 1/400 s for decoding: 80 images a second. */
static void on_a_cpu_the_seconds_of_an_image_add_up(void) {
    stk_rates r = cpu_rates();
    stk_stage_kind narrowest = STK_STAGE_COUNT;
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 80, 1e-9);
    CHECK_INT(narrowest, STK_STAGE_STEP);
    r.decode = 10; /* 40 on all cores */
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 1 / (1 / 100.0 + 1 / 40.0), 1e-9);
    CHECK_INT(narrowest, STK_STAGE_DECODE);
    r.workers = 1; /* decodes 10, however many cores are free */
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 10, 1e-9);
    CHECK_INT(narrowest, STK_STAGE_DECODE);
    r.storage = 5;
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 5, 1e-9);
    CHECK_INT(narrowest, STK_STAGE_STORAGE);
    r = cpu_rates(); /* 2 workers on 4 cores: 2.5 ms of decoding hold it up for a quarter more */
    r.workers = 2;
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 1 / (0.01 + 1.25 * 0.0025), 1e-9);
    r = cpu_rates();
    r.decode = INFINITY; /* from a cache of decoded pictures */
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 100, 1e-9);
    r.decode = NAN;
    CHECK_NEAR(stk_rates_together(&r, &narrowest), 100, 1e-9);
}

static void workers_count_up_to_the_cores(void) {
    stk_rates r = gpu_rates();
    stk_rates half = stk_rates_with_workers(&r, 8);
    stk_rates twice = stk_rates_with_workers(&r, 32);
    CHECK_NEAR(stk_rates_of(&half, STK_STAGE_DECODE), 1450, 1e-9);
    CHECK_NEAR(stk_rates_of(&twice, STK_STAGE_DECODE), 2900, 1e-9);
    CHECK_NEAR(stk_rates_together(&half, NULL), 1450, 1e-9);
}

static void cores_bring_workers_and_on_a_cpu_a_faster_step(void) {
    stk_rates gpu = gpu_rates();
    stk_rates more = stk_rates_with_cores(&gpu, 32);
    CHECK_INT(more.workers, 32);
    CHECK_NEAR(stk_rates_together(&more, NULL), 5800, 1e-9);
    CHECK_NEAR(more.step, 7700, 1e-9);
    stk_rates cpu = cpu_rates();
    more = stk_rates_with_cores(&cpu, 8);
    CHECK_NEAR(stk_rates_together(&more, NULL), 160, 1e-9);
    cpu.fixed_s = 0.16; /* of 0.32 s: more cores make the other half shorter */
    more = stk_rates_with_cores(&cpu, 8);
    CHECK_NEAR(more.step, 32 / 0.24, 1e-9);
}

/* A step of 128 images takes 16.6 ms, 2 ms of them whatever the batch is. */
static void a_larger_batch_shares_what_is_fixed(void) {
    stk_rates r = gpu_rates();
    double image_s = (128 / 7700.0 - 0.002) / 128;
    stk_rates larger = stk_rates_with_batch(&r, 512);
    CHECK_NEAR(larger.step, 512 / (0.002 + 512 * image_s), 1e-6);
    CHECK_INT(larger.batch, 512);
    CHECK_NEAR(stk_rates_with_batch(&larger, 128).step, 7700, 1e-6);
    r.fixed_s = NAN;
    CHECK_NEAR(stk_rates_with_batch(&r, 512).step, 7700, 1e-6);
    r.fixed_s = 1; /* more than a step takes: all of it is fixed */
    CHECK_NEAR(stk_rates_with_batch(&r, 256).step, 15400, 1e-6);
    r.step = NAN;
    CHECK(isnan(stk_rates_with_batch(&r, 256).step));
    r.step = INFINITY;
    CHECK(isinf(stk_rates_with_batch(&r, 256).step));
    r = gpu_rates();
    r.batch = -1;
    CHECK_NEAR(stk_rates_with_batch(&r, 256).step, 7700, 1e-6);
}

static void staging_makes_pictures_smaller_and_near(void) {
    stk_rates r = gpu_rates();
    r.storage = 100;
    stk_rates staged = stk_rates_staged(&r, 256);
    CHECK(isinf(staged.storage));
    CHECK_NEAR(staged.source_px, 256 * 256 * 4 / 3.0, 1e-6);
    CHECK_NEAR(staged.decode, 181.25 * 2.734022, 1e-3); /* 3.515625 to the power of 0.8 */
    CHECK(stk_rates_shrinks(&r, 479));
    r.native = true; /* their pixels count */
    CHECK(!stk_rates_shrinks(&r, 479));
    CHECK_NEAR(stk_rates_staged(&r, 256).decode, 181.25, 1e-9);
    r.native = false;
    CHECK(!stk_rates_shrinks(&r, 480)); /* as they are */
    CHECK(!stk_rates_shrinks(&r, 481)); /* never larger */
    staged = stk_rates_staged(&r, 600);
    CHECK_NEAR(staged.decode, 181.25, 1e-9);
    CHECK_NEAR(staged.source_px, 640 * 480, 1e-9);
    CHECK(isinf(staged.storage));
    r.source_px = NAN;
    CHECK(!stk_rates_shrinks(&r, 256));
    staged = stk_rates_staged(&r, 256);
    CHECK_NEAR(staged.decode, 181.25, 1e-9);
    CHECK_INT(stk_rates_stage_side(224), 256);
    CHECK_INT(stk_rates_stage_side(225), 258);
    CHECK_INT(stk_rates_max_side(256), 342);
    CHECK_INT(stk_rates_max_side(3), 4);
}

static void smaller_images_make_the_step_faster_and_decoding_not(void) {
    stk_rates r = gpu_rates();
    r.fixed_s = 0;
    stk_rates smaller = stk_rates_with_img_size(&r, 112);
    CHECK_NEAR(smaller.step, 4 * 7700, 1e-6);
    CHECK_NEAR(smaller.copy, 4 * 80000, 1e-6);
    CHECK_NEAR(smaller.decode, 181.25, 1e-9);
    CHECK_INT(smaller.img_size, 112);
    r.fixed_s = 128 / 7700.0; /* nothing but that: images may be as small as they like */
    CHECK_NEAR(stk_rates_with_img_size(&r, 112).step, 7700, 1e-6);
    CHECK_NEAR(stk_rates_with_img_size(&r, 0).step, 7700, 1e-6);
}

static void a_cache_takes_storage_away(void) {
    stk_rates r = gpu_rates();
    r.storage = 10;
    stk_rates cached = stk_rates_cached(&r);
    CHECK_NEAR(stk_rates_together(&r, NULL), 10, 1e-9);
    CHECK_NEAR(stk_rates_together(&cached, NULL), 2900, 1e-9);
}

static void stages_have_names(void) {
    CHECK_STR(stk_stage_name(STK_STAGE_STORAGE), "storage");
    CHECK_STR(stk_stage_name(STK_STAGE_DECODE), "decoding");
    CHECK_STR(stk_stage_name(STK_STAGE_COPY), "copying");
    CHECK_STR(stk_stage_name(STK_STAGE_STEP), "training step");
}

static void decoded_pictures_are_only_scaled(void) {
    stk_rates r = gpu_rates();
    r.storage = 10;
    stk_rates decoded = stk_rates_decoded(&r);
    CHECK(isinf(decoded.storage));
    CHECK_NEAR(decoded.decode, 3 * 181.25, 1e-9);
}

/* Of 1000 pictures in two seconds; the workers decoded the others in four seconds of theirs. */
static stk_rates rates_with(double device_images, double jpeg_util) {
    stk_rates r = gpu_rates();
    stk_decoded decoded = {.images = 1000,
                           .device_images = device_images,
                           .cores_s = device_images < 1000 ? 4 : 0,
                           .seconds = 2,
                           .jpeg_util = jpeg_util};
    stk_rates_take_decoded(&r, &decoded);
    return r;
}

static void workers_are_measured_by_what_they_decoded(void) {
    stk_rates r = rates_with(0, 0);
    CHECK_NEAR(r.decode, 250, 1e-9);
    CHECK_NEAR(r.device_decode, 0, 0);
    CHECK_NEAR(r.device_share, 0, 0);
    CHECK_NEAR(stk_rates_of(&r, STK_STAGE_DECODE), 16 * 250, 1e-9);
    r = rates_with(500, 25);
    CHECK_NEAR(r.decode, 125, 1e-9);
    CHECK_NEAR(r.device_decode, 1000, 1e-9); /* 250 a second in a quarter of the time */
    CHECK_NEAR(r.device_share, 0.5, 1e-9);
    r = rates_with(1000, 50);
    CHECK(isnan(r.decode));
    CHECK_NEAR(r.device_decode, 1000, 1e-9);
    CHECK_NEAR(r.device_share, 1, 0);
    CHECK_NEAR(stk_rates_of(&r, STK_STAGE_DECODE), 1000, 1e-9);
    r = rates_with(1001, 50); /* counters are not read at one moment */
    CHECK(isnan(r.decode));
    CHECK_NEAR(r.device_share, 1, 0);
    r = rates_with(500, NAN);
    CHECK(isnan(r.device_decode));
    r = rates_with(500, 1); /* too little to say how fast they are */
    CHECK(isnan(r.device_decode));
    stk_decoded nothing = {.seconds = 2, .jpeg_util = 50};
    stk_rates_take_decoded(&r, &nothing);
    CHECK(isnan(r.decode) && isnan(r.device_share));
    CHECK(isnan(stk_rates_of(&r, STK_STAGE_DECODE)));
}

/* 16 workers decode 2,900. */
static void a_device_decodes_beside_the_workers(void) {
    static const struct {
        double device, share;
        bool first;
        double together;
    } cases[] = {
        {0, 0, false, 2900},    {1000, 0, false, 2900},         {1000, NAN, false, 2900},
        {1000, 1, false, 3900}, {1000, 0.5, false, 3900},       {9000, 0.5, false, 5800},
        {1000, 1, true, 1000},  {1000, 0.5, true, 2000},        {9000, 0.5, true, 5800},
        {NAN, 0.5, true, 5800}, {NAN, 0.5, false, 5800},        {NAN, 1, false, NAN},
        {NAN, 1, true, NAN},    {INFINITY, 1, false, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_rates r = gpu_rates();
        r.device_decode = cases[i].device;
        r.device_share = cases[i].share;
        r.device_first = cases[i].first;
        double rate = stk_rates_of(&r, STK_STAGE_DECODE);
        if (rate != cases[i].together && !(isnan(rate) && isnan(cases[i].together))) {
            CHECK_FAIL("case %zu: %g", i, rate);
        }
    }
    stk_rates alone = gpu_rates();
    alone.decode = NAN; /* the workers decoded nothing */
    alone = stk_rates_with_device(&alone, 1000);
    CHECK_NEAR(stk_rates_together(&alone, NULL), 1000, 1e-9);
    stk_rates more = stk_rates_with_workers(&alone, 1);
    CHECK_NEAR(stk_rates_together(&more, NULL), 1000, 1e-9);
}

static void changes_with_a_device(void) {
    stk_rates r = gpu_rates();
    CHECK(isnan(stk_rates_of_engines(&r, 0)));
    CHECK_NEAR(stk_rates_of_engines(&r, 7), 25000 * pow(187500 / 307200.0, 0.8), 1e-6);
    r.source_px = 500 * 375;
    CHECK_NEAR(stk_rates_of_engines(&r, 1), 25000 / 7.0, 1e-6);
    r.source_px = NAN;
    CHECK(isnan(stk_rates_of_engines(&r, 7)));
    r = gpu_rates();
    r.device_first = true;
    r = stk_rates_with_device(&r, 1000);
    CHECK(!r.device_first);
    CHECK_NEAR(stk_rates_together(&r, NULL), 3900, 1e-9);
    stk_rates staged = stk_rates_staged(&r, 256); /* smaller for engines, too */
    CHECK_NEAR(staged.device_decode, 1000 * 2.734022, 1e-2);
    stk_rates decoded = stk_rates_decoded(&r); /* the workers scale what is decoded already */
    CHECK_NEAR(stk_rates_of(&decoded, STK_STAGE_DECODE), 3 * 2900, 1e-9);
}

static void rates_read_well(void) {
    CHECK_STR(stk_rates_text(7700).text, "7,700");
    CHECK_STR(stk_rates_text(9.94).text, "9.9");
    CHECK_STR(stk_rates_text(9.96).text, "10");
    CHECK_STR(stk_rates_text(0).text, "0.0");
    CHECK_STR(stk_rates_text(1234567.6).text, "1,234,568");
    CHECK_STR(stk_rates_text(NAN).text, "?");
    CHECK_STR(stk_rates_text(INFINITY).text, "?");
}

static const check_test tests[] = {
    TEST(on_a_gpu_the_narrowest_stage_decides),
    TEST(on_a_cpu_the_seconds_of_an_image_add_up),
    TEST(workers_count_up_to_the_cores),
    TEST(cores_bring_workers_and_on_a_cpu_a_faster_step),
    TEST(a_larger_batch_shares_what_is_fixed),
    TEST(staging_makes_pictures_smaller_and_near),
    TEST(smaller_images_make_the_step_faster_and_decoding_not),
    TEST(a_cache_takes_storage_away),
    TEST(decoded_pictures_are_only_scaled),
    TEST(workers_are_measured_by_what_they_decoded),
    TEST(a_device_decodes_beside_the_workers),
    TEST(changes_with_a_device),
    TEST(rates_read_well),
    TEST(stages_have_names),
};

CHECK_MAIN(tests)
