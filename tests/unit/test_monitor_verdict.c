/*
 * test_monitor_verdict.c - every verdict, provoked by evidence, on both sides of each threshold.
 */
#include "check.h"

#include <math.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "monitor/shares.h"
#include "monitor/verdict.h"

/* A minute of which so many seconds were this and that; the rest is computing. */
static stk_times minute_of(double read_s, double decode_s, double queue_s, double copy_s,
                           double other_s) {
    stk_times t = {.read_s = read_s,
                   .decode_s = decode_s,
                   .queue_s = queue_s,
                   .copy_s = copy_s,
                   .other_s = other_s,
                   .update_s = 2,
                   .total_s = 60};
    t.compute_s = 58 - read_s - decode_s - queue_s - copy_s - other_s;
    return t;
}

/* A GPU that is fed well: nothing is wrong here. */
static stk_evidence gpu_evidence(void) {
    return (stk_evidence){.seconds = 60,
                          .steps = 3600,
                          .images_per_second = 7680,
                          .times = minute_of(0.3, 0.3, 0, 0.3, 0.6),
                          .rates = {.storage = 40000,
                                    .decode = 700,
                                    .workers = 16,
                                    .cores = 16,
                                    .copy = 80000,
                                    .step = 7700,
                                    .batch = 128,
                                    .fixed_s = 0.0002,
                                    .source_px = 220900,
                                    .img_size = 224,
                                    .images = 1000000},
                          .is_gpu = true,
                          .prefetch = 2,
                          .storage_share = 0.1,
                          .cache_hits = NAN,
                          .cache_room = NAN,
                          .gpu_util = 97,
                          .sm_activity = 88,
                          .gpu_memory_used = 9.1e9,
                          .gpu_memory_total = 24e9,
                          .gpu_clock = 0.98,
                          .throttled = "",
                          .throttled_share = 0,
                          .cpu = 60,
                          .cpu_own = 58,
                          .iowait = 0,
                          .precision = "fp16",
                          .largest_batch = 300};
}

/* Four cores that decode and compute. */
static stk_evidence cpu_evidence(void) {
    stk_evidence e = gpu_evidence();
    e.steps = 120;
    e.images_per_second = 64;
    e.rates = (stk_rates){.storage = INFINITY,
                          .decode = 100,
                          .workers = 4,
                          .cores = 4,
                          .copy = INFINITY,
                          .step = 76,
                          .on_host = true,
                          .batch = 32,
                          .fixed_s = 0,
                          .source_px = 64 * 64,
                          .img_size = 64,
                          .images = 10000};
    e.is_gpu = false;
    e.gpu_util = e.sm_activity = e.gpu_memory_used = e.gpu_memory_total = e.gpu_clock = NAN;
    e.throttled = NULL;
    e.throttled_share = NAN;
    e.cpu = 98;
    e.cpu_own = 97;
    e.precision = "fp32";
    e.largest_batch = -1;
    return e;
}

/* The issue's: decoding gives 2,900 where the GPU would take 7,700. */
static stk_evidence starved_evidence(void) {
    stk_evidence e = gpu_evidence();
    e.images_per_second = 2900;
    e.rates.decode = 2900 / 16.0;
    e.times = minute_of(1, 26.6, 0, 0, 0);
    e.gpu_util = 54;
    return e;
}

static stk_evidence far_evidence(void) {
    stk_evidence e = gpu_evidence();
    e.images_per_second = 1200;
    e.rates.storage = 1200;
    e.times = minute_of(40, 2, 0, 0, 0);
    e.is_remote = true;
    e.gpu_util = 20;
    return e;
}

static stk_verdict judged; /* the texts that an event points to must stay */

static stk_verdict_kind judge(stk_evidence e) {
    stk_verdict_judge(&e, false, &judged);
    return judged.kind;
}

static const stk_remedy *remedy_with(const char *flags) {
    for (int i = 0; i < judged.event.remedy_count; i++) {
        if (strstr(judged.event.remedies[i].flags, flags) != NULL) {
            return &judged.event.remedies[i];
        }
    }
    return NULL;
}

static void too_little_says_nothing(void) {
    stk_evidence e = gpu_evidence();
    e.steps = 2;
    CHECK_INT(judge(e), STK_VERDICT_UNKNOWN);
    CHECK_STR(judged.event.name, "unknown");
    e.steps = 3;
    e.times = minute_of(0, 0, 0, 0, 0);
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE); /* three steps a minute */
    e.times = (stk_times){.total_s = NAN};
    CHECK_INT(judge(e), STK_VERDICT_UNKNOWN);
    e.times = (stk_times){.total_s = 5, .validate_s = 3, .checkpoint_s = 2};
    CHECK_INT(judge(e), STK_VERDICT_UNKNOWN);
    CHECK_STR(judged.text, "unknown: too little was seen.");
}

static void a_fed_gpu_is_fine(void) {
    CHECK_INT(judge(gpu_evidence()), STK_VERDICT_FINE);
    CHECK_STR(judged.event.name, "fine");
    CHECK_STR(judged.text, "fine: GPU waits 1 % for data; 7,680 img/s, 3,600 batches a minute, GPU "
                           "utilisation 97 %.");
    CHECK(judged.event.fine);
    CHECK_INT(judged.event.remedy_count, 0);
    CHECK(judged.event.batch == NULL);
    CHECK_NEAR(judged.event.wait_fraction, 0.01, 1e-9);
    CHECK_NEAR(judged.event.gpu_memory_used, 9.1e9, 1);
    CHECK_STR(judged.evidence,
              "60 s: read 0.5 %, decode 0.5 %, queue 0.0 %, copy 0.5 %, compute 97.5 %, other 1.0 "
              "%; 7,680 img/s, 3,600 batches a minute; GPU 97 %, SM activity 88 %, clock 98 %; CPU "
              "60 %, by this run 58 %, iowait 0 %");
}

/* Below 5 % of training time, of which validations and checkpoints are no part. */
static void waiting_counts_from_five_percent_on(void) {
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 2.9, 0, 0, 0);
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.times = minute_of(0, 3.1, 0, 0, 0);
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e.times = minute_of(1.1, 1.0, 1.0, 0, 0);
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    e.times = minute_of(0, 2.9, 0, 0, 0);
    e.times.validate_s = 1.5; /* 2.9 of 56.5 s */
    e.times.checkpoint_s = 2;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
}

static void the_sentence_of_a_starved_gpu(void) {
    CHECK_INT(judge(starved_evidence()), STK_VERDICT_DECODE);
    CHECK_STR(judged.event.name, "decode-bound");
    CHECK(!judged.event.fine);
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 16 workers give 2,900 img/s, the GPU takes "
              "7,700. Remedies: stage at 256 px (predicted 2.1x).");
    CHECK_STR(judged.event.remedies[0].flags,
              "stoker stage SRC DEST --max-side 342; stoker train --data DEST");
    CHECK_NEAR(judged.event.remedies[0].gain, 2.1, 0.01);
    stk_evidence e = starved_evidence();
    e.rates.cores = 24;
    judge(e);
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 16 workers give 2,900 img/s, the GPU takes "
              "7,700. Remedies: stage at 256 px (predicted 2.1x), 24 workers (predicted 1.5x).");
    CHECK_STR(judged.event.remedies[1].flags, "--workers 24");
}

static void storage_or_decoding_by_the_larger_part(void) {
    stk_evidence e = starved_evidence();
    e.times = minute_of(10, 9.9, 0, 0, 0);
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    e.times = minute_of(9.9, 10, 0, 0, 0);
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e.times = minute_of(0, 0, 10, 0, 0); /* then the loader's workers know */
    e.storage_share = 0.6;
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    e.storage_share = 0.4;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e.storage_share = NAN;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    const stk_remedy *ahead = remedy_with("--prefetch 4");
    REQUIRE(ahead != NULL);
    CHECK_NEAR(ahead->gain, 1.2, 1e-6);
}

static void far_data_wants_a_cache_or_staging(void) {
    CHECK_INT(judge(far_evidence()), STK_VERDICT_STORAGE);
    CHECK_STR(judged.event.name, "storage-bound");
    CHECK_STR(judged.text,
              "input-bound: GPU waits 70 % (storage); storage gives 1,200 img/s, the GPU takes "
              "7,700. Remedies: stage at 256 px (predicted 6.4x), keep what was read near by "
              "(predicted 6.4x).");
    CHECK(remedy_with("--cache auto") != NULL);
    stk_evidence e = far_evidence();
    e.rates.source_px = 200 * 200; /* already as small as that */
    judge(e);
    CHECK(remedy_with("--max-side") == NULL);
    CHECK_STR(judged.event.remedies[0].text, "stage near by");
    e.is_remote = false; /* then it would be as far as it is */
    judge(e);
    CHECK(remedy_with("stoker stage") == NULL);
    CHECK(remedy_with("--cache ram") != NULL);
    e.has_cache = true;
    e.cache_hits = 0.95;
    judge(e);
    CHECK_INT(judged.event.remedy_count, 0);
    CHECK_STR(judged.text, "input-bound: GPU waits 70 % (storage); storage gives 1,200 img/s, the "
                           "GPU takes 7,700. Faster storage would help.");
    CHECK(!judged.event.fine);
}

static void a_cache_that_fills_is_waited_for(void) {
    stk_evidence e = far_evidence();
    e.has_cache = true;
    e.first_epoch = true;
    e.cache_hits = 0.12;
    CHECK_INT(judge(e), STK_VERDICT_WARMING);
    CHECK_STR(judged.event.name, "cache-warm-up");
    CHECK_STR(judged.text, "cache warm-up: GPU waits 70 % (storage) while the first epoch fills "
                           "the cache, which answers 12 % of the reads; predicted 6.4x once it is "
                           "full.");
    CHECK(judged.event.fine);
    e.cache_hits = 0.89;
    CHECK_INT(judge(e), STK_VERDICT_WARMING);
    e.cache_hits = NAN;
    CHECK_INT(judge(e), STK_VERDICT_WARMING);
    e.cache_hits = 0.91; /* filled by an earlier run */
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    e.cache_hits = 0.89;
    e.first_epoch = false;
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    CHECK(remedy_with("--cache-size") != NULL);
    e.cache_hits = 0.91;
    judge(e);
    CHECK(remedy_with("--cache-size") == NULL);
    e.cache_hits = 0.1;
    e.has_cache = false;
    e.first_epoch = true;
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
}

static void copies_that_are_waited_for(void) {
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 0, 0, 7.2, 0);
    e.rates.copy = 6000;
    e.images_per_second = 6000;
    CHECK_INT(judge(e), STK_VERDICT_COPY);
    CHECK_STR(judged.event.name, "copy-bound");
    CHECK_STR(judged.text,
              "copy-bound: GPU waits 12 % for copies from the host; they bring 6,000 img/s, the "
              "GPU takes 7,700. Remedies: train at 160 px (predicted 1.9x).");
    e.times = minute_of(0, 0, 0, 2.9, 0);
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.times = minute_of(0, 0, 0, 3.1, 0);
    CHECK_INT(judge(e), STK_VERDICT_COPY);
    e.times = minute_of(0, 7.1, 0, 7.2, 0);
    CHECK_INT(judge(e), STK_VERDICT_COPY);
    e.times = minute_of(0, 7.3, 0, 7.2, 0);
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e.times = minute_of(7.3, 0, 0, 7.2, 0);
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
}

static void a_clock_that_is_held_down(void) {
    stk_evidence e = gpu_evidence();
    e.throttled = "power";
    e.throttled_share = 0.8;
    e.gpu_clock = 0.71;
    CHECK_INT(judge(e), STK_VERDICT_THROTTLED);
    CHECK_STR(judged.event.name, "throttled-gpu");
    CHECK_STR(judged.text, "throttled GPU: power held its clock at 71 % of the highest in 80 % of "
                           "the samples. Remedies: train at 160 px (predicted 1.5x), raise the "
                           "GPU's power limit (predicted 1.4x).");
    CHECK(remedy_with("nvidia-smi -pl WATTS") != NULL);
    e.throttled = "power, heat";
    judge(e);
    CHECK_CONTAINS(judged.text, "cool the GPU better (predicted 1.4x)");
    e.throttled = "hardware";
    judge(e);
    CHECK_CONTAINS(judged.text, "look into what holds the GPU back");
    e.throttled_share = 0.33;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.throttled_share = 0.34;
    CHECK_INT(judge(e), STK_VERDICT_THROTTLED);
    e.gpu_clock = 0.89;
    CHECK_INT(judge(e), STK_VERDICT_THROTTLED);
    e.gpu_clock = 0.91;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.gpu_clock = NAN;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.gpu_clock = 0.71;
    e.throttled = NULL;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.throttled = "power";
    e.times = minute_of(0, 20, 0, 0, 0); /* first what it waits for */
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
}

static void others_on_the_same_cores(void) {
    stk_evidence e = starved_evidence();
    e.cpu = 98;
    e.cpu_own = 53;
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    CHECK_STR(judged.event.name, "noisy-neighbour");
    CHECK_STR(judged.text,
              "noisy neighbour: other programs use 45 % of the cores; GPU waits 46 % (decode); GPU "
              "utilisation is only 54 %. Remedies: stage at 256 px (predicted 2.1x), end what else "
              "runs on these cores (predicted 1.8x).");
    e.cpu_own = 72; /* 26 points */
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    e.cpu_own = 74;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e.cpu = 86;
    e.cpu_own = 50;
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    e.cpu = 84; /* there are cores left */
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e.cpu = NAN;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    e = far_evidence(); /* what waits for storage needs no cores */
    e.cpu = 98;
    e.cpu_own = 20;
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    e = gpu_evidence(); /* what does not wait does not either */
    e.cpu = 98;
    e.cpu_own = 20;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e = cpu_evidence(); /* but a training on these cores does */
    e.cpu_own = 50;
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    CHECK_STR(judged.text, "noisy neighbour: other programs use 48 % of the cores, training 50 %. "
                           "Remedies: end what else runs on these cores (predicted 1.9x).");
    CHECK_STR(judged.event.remedies[0].flags, "");
    e.times = minute_of(20, 0, 0, 0, 0); /* unless it waits for storage */
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    e.times = minute_of(0, 0, 0, 0, 0);
    e.rates.fixed_s = 0.5 * 32 / 76; /* or its steps are too small in any company */
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
}

/* Kernels so short that the host cannot launch them in time: a batch of 8. */
static stk_evidence small_steps(void) {
    stk_evidence e = gpu_evidence();
    e.images_per_second = 1600;
    e.rates.batch = 8;
    e.rates.step = 2600;
    e.rates.fixed_s = NAN;
    e.steps = 12000;
    e.times = minute_of(0, 0, 0, 0, 22);
    e.gpu_util = 62;
    e.sm_activity = 21;
    return e;
}

static void a_gpu_that_idles_between_kernels(void) {
    CHECK_INT(judge(small_steps()), STK_VERDICT_LAUNCH);
    CHECK_STR(judged.event.name, "launch-bound");
    CHECK_STR(judged.text,
              "launch-bound: the GPU idles between small pieces of work at 1,600 img/s, 37 % of a "
              "step is the same for any batch, SM activity 21 %, utilisation 62 %. Remedies: a "
              "batch of 128 (predicted 1.5x), train at 160 px (predicted 1.4x).");
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 0, 0, 0, 11.9);
    e.rates.images = 0;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE); /* a larger batch is predicted to be faster */
    e.rates.images = 3000;                    /* but an epoch has no steps to spare */
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.times = minute_of(0, 0, 0, 0, 12.1);
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
}

static void low_activity_counts_where_much_of_a_step_is_fixed(void) {
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 0, 0, 0, 0);
    e.rates.fixed_s = NAN;
    e.sm_activity = 41;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.sm_activity = 39;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    e.rates.images = 1000; /* no larger batch is possible */
    e.rates.fixed_s = 0.29 * 128 / 7700;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.rates.fixed_s = 0.31 * 128 / 7700;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    e.sm_activity = NAN;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
}

static void low_utilisation_is_not_fine(void) {
    stk_evidence e = gpu_evidence();
    e.gpu_util = 71;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.gpu_util = 69;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    e.times.total_s += 14; /* samples of long validations say nothing of training */
    e.times.validate_s = 14;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    e.times.total_s += 2;
    e.times.validate_s += 2;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
}

/* Who is told that training is fine would not look for what takes the time. */
static void most_of_the_time_is_not_training(void) {
    stk_evidence e = cpu_evidence();
    double training_s = e.times.total_s;
    for (int i = 0; i < 3; i++) {
        e.times.validate_s = i == 0 ? 0.9 * training_s : 3 * training_s;
        e.times.total_s = training_s + e.times.validate_s;
        stk_verdict_judge(&e, i == 2, &judged);
        bool told =
            strstr(judged.text, "; validations and checkpoints take 75 % of all time") != NULL;
        CHECK_INT(told, i == 1);
    }
}

/* On a CPU too: much of a step of two images is the same for any number. */
static void small_steps_on_a_cpu(void) {
    stk_evidence e = cpu_evidence();
    e.steps = 1500;
    e.rates.batch = 2;
    e.rates.step = 60;
    e.rates.fixed_s = 0.31 * 2 / 60;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    CHECK_CONTAINS(judged.text, "launch-bound: steps are too small for the cores at 64 img/s, 3");
    CHECK(remedy_with("--batch 16") != NULL);
    e.times = minute_of(0, 0, 0, 0, 0);
    e.rates.fixed_s = 0.29 * 2 / 60;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE);
    CHECK(remedy_with("--batch 16") != NULL);
}

static stk_evidence full_memory(void) {
    stk_evidence e = gpu_evidence();
    e.rates.batch = 32;
    e.rates.step = 6724;
    e.rates.fixed_s = 0.00186; /* of 4.76 ms */
    e.images_per_second = 6700;
    e.steps = 12600;
    e.largest_batch = 32;
    e.gpu_memory_used = 22.1e9;
    return e;
}

static void a_batch_that_memory_limits(void) {
    CHECK_INT(judge(full_memory()), STK_VERDICT_MEMORY);
    CHECK_STR(judged.event.name, "memory-bound-batch");
    CHECK_CONTAINS(judged.text,
                   "memory-bound batch: a batch of 512 is predicted 1.6x as fast and ");
    CHECK_CONTAINS(judged.text, "and does not fit (22.1 of 24.0 GB used)");
    CHECK(remedy_with("--batch") == NULL);
    stk_evidence e = full_memory();
    e.precision = "fp32";
    judge(e);
    const stk_remedy *half = remedy_with("--precision fp16");
    REQUIRE(half != NULL);
    CHECK_NEAR(half->gain, 1.5, 1e-6);
    e = full_memory();
    e.largest_batch = 64; /* one that is faster has room */
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    CHECK(remedy_with("--batch 64") != NULL);
    e.largest_batch = -1;
    e.gpu_memory_used = 0.86 * 24e9;
    CHECK_INT(judge(e), STK_VERDICT_MEMORY);
    e.gpu_memory_used = 0.84 * 24e9;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    CHECK(remedy_with("--batch") == NULL); /* twice as much has no room there either */
    e.gpu_memory_used = 0.21 * 24e9;
    judge(e);
    CHECK(remedy_with("--batch 128") != NULL);
    e.gpu_memory_used = NAN; /* nothing is promised where nothing is known */
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    CHECK(remedy_with("--batch") == NULL);
    e = full_memory();
    e.rates.fixed_s = 0.02 * 0.00476; /* a larger batch would bring next to nothing */
    CHECK_INT(judge(e), STK_VERDICT_FINE);
}

/* A larger batch counts from 10 % on, is a remedy from 5 % on. */
static void how_much_a_larger_batch_has_to_bring(void) {
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 0, 0, 0, 0);
    e.largest_batch = 256; /* with twice the batch half of what is fixed goes */
    e.rates.images = 30000;
    e.rates.fixed_s = 0.17 * 128 / 7700;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.rates.fixed_s = 0.19 * 128 / 7700;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE);
    CHECK(remedy_with("--batch 256") != NULL);
    e.steps = 90; /* compute-bound in any case */
    e.rates.fixed_s = 0.09 * 128 / 7700;
    judge(e);
    CHECK(remedy_with("--batch") == NULL);
    e.rates.fixed_s = 0.11 * 128 / 7700;
    judge(e);
    CHECK(remedy_with("--batch 256") != NULL);
    e.rates.images = 256 * 99; /* and leaves an epoch a hundred steps */
    judge(e);
    CHECK(remedy_with("--batch") == NULL);
}

static void computing_is_all_there_is(void) {
    stk_evidence e = gpu_evidence();
    e.steps = 90;
    e.times = minute_of(0, 0, 0, 0, 0.6);
    e.rates.fixed_s = NAN;
    e.images_per_second = 192;
    e.rates.step = 195;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE);
    CHECK_STR(judged.event.name, "compute-bound");
    CHECK_STR(judged.text, "compute-bound: the GPU computes 99 % of the time at 192 img/s; only 90 "
                           "batches a minute. Remedies: train at 160 px (predicted 1.9x).");
    CHECK(!judged.event.fine);
    e.precision = "fp32-strict";
    judge(e);
    CHECK(remedy_with("--precision fp16") != NULL);
    e.precision = "bf16";
    judge(e);
    CHECK(remedy_with("--precision") == NULL);
    e.steps = 99;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE);
    e.steps = 101;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    e.steps = 90;
    e.rates.img_size = 96;
    judge(e);
    CHECK(remedy_with("--img-size 64") != NULL);
    e.rates.img_size = 64; /* nothing can be done: nobody is warned */
    e.rates.source_px = 64 * 64;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE);
    CHECK_STR(judged.text, "compute-bound: the GPU computes 99 % of the time at 192 img/s.");
    CHECK(judged.event.fine);
}

static void a_machine_without_a_gpu(void) {
    stk_evidence e = cpu_evidence();
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    CHECK_STR(judged.text, "fine: training waits 1 % for data; 64 img/s, 120 batches a minute.");
    e.steps = 90;
    CHECK_INT(judge(e), STK_VERDICT_COMPUTE);
    CHECK_CONTAINS(judged.text, "compute-bound: the machine computes ");
    CHECK(remedy_with("--precision") == NULL);
    e.rates.decode = 20; /* shares the cores: a smaller source helps the step */
    e.rates.source_px = 640 * 480;
    judge(e);
    CHECK(remedy_with("--max-side") != NULL);
    e = cpu_evidence(); /* one slow worker */
    e.times = minute_of(0, 27.6, 0, 0, 0);
    e.rates.workers = 1;
    e.rates.decode = 7.4;
    e.images_per_second = 7.4;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    CHECK_STR(judged.text, "input-bound: training waits 46 % (decode); 1 worker gives 7.4 img/s, "
                           "the step takes 76. Remedies: 4 workers (predicted 2.9x).");
    e.may_tune_workers = true; /* which Stoker does by itself */
    judge(e);
    CHECK_STR(judged.text, "input-bound: training waits 46 % (decode); 1 worker gives 7.4 img/s, "
                           "the step takes 76. More cores would help.");
}

static void decoded_pictures_are_kept_where_there_is_room(void) {
    stk_evidence e = starved_evidence();
    e.is_staged = true;
    e.rates.images = 10000;
    e.cache_room = 10000.0 * 220900 * 3 + 1;
    judge(e);
    const stk_remedy *decoded = remedy_with("--cache decoded");
    REQUIRE(decoded != NULL);
    CHECK_NEAR(decoded->gain, 7700 / 2900.0, 1e-6); /* then the GPU limits */
    CHECK(remedy_with("stoker stage") == NULL);
    e.cache_room -= 2;
    judge(e);
    CHECK(remedy_with("--cache decoded") == NULL);
    CHECK_STR(judged.text, "input-bound: GPU waits 46 % (decode); 16 workers give 2,900 img/s, the "
                           "GPU takes 7,700. More cores would help.");
}

/* Decoding gives 2,900 img/s, this share of them from the device's engines. */
static stk_evidence shared_evidence(double share, double jpeg_util) {
    stk_evidence e = starved_evidence();
    e.rates.cores = 24;
    e.rates.decode = share < 1 ? 2900 * (1 - share) / 16 : NAN;
    e.rates.device_decode = share > 0 ? 2900 * share / (jpeg_util / 100) : 0;
    e.device_decoded = share;
    e.jpeg_util = jpeg_util;
    e.device_decodes = true;
    e.device_used = true;
    e.decode_engines = 7;
    return e;
}

static void engines_that_stand_idle(void) {
    stk_evidence e = shared_evidence(0, 0);
    e.rates.cores = 16;
    e.device_used = false;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 16 workers give 2,900 img/s, the GPU takes "
              "7,700. Remedies: decode on the GPU too (predicted 2.7x), stage at 256 px (predicted "
              "2.1x).");
    CHECK_STR(judged.event.remedies[0].flags, "--decode both");
    CHECK_NEAR(judged.event.remedies[0].gain, 7700 / 2900.0, 1e-6); /* then the step limits */
    CHECK_NEAR(judged.event.device_decoded, 0, 0);
    e.decode_engines = 1; /* 3,571 a second, of somewhat smaller pictures */
    judge(e);
    CHECK_NEAR(remedy_with("--decode both")->gain,
               (2900 + 25000 / 7.0 * pow(187500 / 220900.0, 0.8)) / 2900, 1e-6);
    e.decode_engines = 0;
    judge(e);
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 16 workers give 2,900 img/s, the GPU takes "
              "7,700. Remedies: decode on the GPU too: the GPU then does not wait for decoding, "
              "stage at 256 px (predicted 2.1x).");
    CHECK(isnan(remedy_with("--decode both")->gain));
    e.device_used = true; /* and it could decode none of these pictures */
    judge(e);
    CHECK(remedy_with("--decode") == NULL);
    e.device_used = false;
    e.device_decodes = false;
    judge(e);
    CHECK(remedy_with("--decode") == NULL);
    e = far_evidence(); /* what waits for storage is not made faster */
    e.device_decodes = true;
    judge(e);
    CHECK(remedy_with("--decode") == NULL);
    e = cpu_evidence();
    e.times = minute_of(0, 27.6, 0, 0, 0);
    e.device_decodes = true;
    judge(e);
    CHECK(remedy_with("--decode") == NULL);
}

/* Half of the pictures are of a kind that the engines cannot decode. */
static void cores_that_limit_beside_engines(void) {
    CHECK_INT(judge(shared_evidence(0.5, 40)), STK_VERDICT_DECODE);
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 50 % of the pictures are decoded by the GPU's "
              "engines; decoding gives 2,900 img/s, the GPU takes 7,700. Remedies: stage at 256 px "
              "(predicted 2.1x), 24 workers (predicted 1.5x).");
    CHECK_CONTAINS(judged.evidence, "; decoded by the GPU 50 %, engines busy 40 %");
    CHECK_NEAR(remedy_with("--workers 24")->gain, 1.5, 1e-6);
    CHECK_NEAR(judged.event.device_decoded, 0.5, 0);
    CHECK_NEAR(judged.event.jpeg_util, 40, 0);
    stk_evidence e = shared_evidence(0.5, 40);
    e.rates.device_first = true;
    judge(e);
    CHECK_NEAR(remedy_with("--workers 24")->gain, 1.5, 1e-6);
    CHECK(remedy_with("--decode") == NULL); /* the cores have enough to do */
    e.rates.decode *= 10;                   /* counters that miss something */
    judge(e);
    CHECK_NEAR(remedy_with("--workers 24")->gain, 1.5, 1e-6);
    e = shared_evidence(0.5, 40);
    e.cpu = 98;
    e.cpu_own = 50;
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    CHECK_CONTAINS(judged.text, "; 50 % of the pictures are decoded by the GPU's engines");
}

static void engines_that_limit(void) {
    CHECK_INT(judge(shared_evidence(0.5, 97)), STK_VERDICT_DECODE);
    CHECK_STR(judged.event.name, "decode-bound");
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 50 % of the pictures are decoded by the GPU's "
              "engines, which are the limit: they are busy 97 % of the time; decoding gives 2,900 "
              "img/s, the GPU takes 7,700. Remedies: stage at 256 px (predicted 2.1x), 24 workers "
              "(predicted 1.2x).");
    CHECK_NEAR(remedy_with("--workers 24")->gain, 1.25, 1e-6); /* half of 2,900, by half */
    stk_evidence e = shared_evidence(1, 97);
    e.cpu = 98; /* whoever has the cores */
    e.cpu_own = 20;
    e.rates.images = 10000;
    e.cache_room = 1e12;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    CHECK_STR(judged.text,
              "input-bound: GPU waits 46 % (decode); 100 % of the pictures are decoded by the "
              "GPU's engines, which are the limit: they are busy 97 % of the time; decoding gives "
              "2,900 img/s, the GPU takes 7,700. Remedies: keep decoded pictures in memory, stage "
              "at 256 px (predicted 2.1x).");
    CHECK(isnan(remedy_with("--cache decoded")->gain)); /* nobody knows what the cores can do */
    CHECK(strstr(judged.text, "nan") == NULL && strstr(judged.evidence, "nan") == NULL);
    e.rates.device_first = true;
    judge(e);
    CHECK_CONTAINS(judged.text, "decode on the cores too: the GPU then waits less for decoding");
    CHECK(remedy_with("--decode both") != NULL);
    e = shared_evidence(0.5, 97); /* first its share, and cores that stand idle */
    e.rates.device_first = true;
    e.rates.decode = 400;
    judge(e);
    CHECK_NEAR(remedy_with("--decode both")->gain, 7700 / 2900.0, 1e-6);
    CHECK(remedy_with("--workers") == NULL);
    e = shared_evidence(1, 97);
    e.is_staged = true;
    e.has_cache = true;
    e.cache_hits = 1;
    judge(e);
    CHECK_INT(judged.event.remedy_count, 0);
    CHECK_CONTAINS(judged.text, "the GPU takes 7,700. Smaller pictures would help.");
    judge(shared_evidence(0.49, 97));
    CHECK(strstr(judged.text, "the limit") == NULL);
    judge(shared_evidence(0.5, 90));
    CHECK(strstr(judged.text, "the limit") == NULL);
    e = shared_evidence(1, 97); /* its use is not known: it did what it could */
    e.jpeg_util = e.rates.device_decode = NAN;
    judge(e);
    CHECK(strstr(judged.text, "the limit") == NULL && strstr(judged.text, "nan") == NULL);
    CHECK_CONTAINS(judged.text, "decoding gives 2,900 img/s");
    CHECK_CONTAINS(judged.evidence, "; decoded by the GPU 100 %; CPU");
}

static void a_gpu_that_feeds_itself_is_fine(void) {
    stk_evidence e = gpu_evidence();
    e.device_decoded = 0.923;
    e.device_used = true;
    e.decode_engines = 7;
    e.jpeg_util = 41;
    e.rates.device_decode = NAN;
    CHECK_INT(judge(e), STK_VERDICT_FINE);
    CHECK_STR(judged.text, "fine: GPU waits 1 % for data; 7,680 img/s, 3,600 batches a minute, GPU "
                           "utilisation 97 %; 92 % of the pictures are decoded by the GPU's "
                           "engines.");
    e.decode_engines = 0;
    judge(e);
    CHECK_CONTAINS(judged.text, "; 92 % of the pictures are decoded by the GPU.");
    e.device_decoded = NAN;
    judge(e);
    CHECK(strstr(judged.text, "of the pictures") == NULL);
    CHECK(isnan(judged.event.device_decoded));
}

/* Counters that miss something do not hide what was measured. */
static void rates_that_are_not_known(void) {
    stk_evidence e = starved_evidence();
    e.rates.decode = NAN;
    judge(e);
    CHECK_STR(judged.text, "input-bound: GPU waits 46 % (decode). Remedies: stage at 256 px "
                           "(predicted 2.1x).");
    e.rates.decode = 1000; /* more than the GPU takes, and yet it waits */
    judge(e);
    CHECK_NEAR(judged.event.remedies[0].gain, 2.1, 0.01);
    e = far_evidence();
    e.rates.storage = NAN;
    judge(e);
    CHECK_CONTAINS(judged.text,
                   "GPU waits 70 % (storage). Remedies: stage at 256 px (predicted 6.4x");
    e.rates.step = NAN; /* what decoding gives is then the most */
    judge(e);
    CHECK(judged.event.remedy_count > 0);
    stk_evidence nothing = {.steps = 10,
                            .images_per_second = NAN,
                            .times = {.read_s = 5, .total_s = 10},
                            .rates = {.storage = NAN,
                                      .decode = NAN,
                                      .copy = NAN,
                                      .step = NAN,
                                      .fixed_s = NAN,
                                      .source_px = NAN,
                                      .batch = -1,
                                      .workers = -1,
                                      .images = -1},
                            .storage_share = NAN,
                            .cache_hits = NAN,
                            .cache_room = NAN,
                            .gpu_util = NAN,
                            .sm_activity = NAN,
                            .gpu_memory_used = NAN,
                            .gpu_memory_total = NAN,
                            .gpu_clock = NAN,
                            .throttled_share = NAN,
                            .cpu = NAN,
                            .cpu_own = NAN,
                            .iowait = NAN,
                            .largest_batch = -1};
    CHECK_INT(judge(nothing), STK_VERDICT_STORAGE);
    CHECK_STR(judged.text,
              "input-bound: training waits 50 % (storage). Faster storage would help.");
    nothing.times.read_s = 0;
    CHECK_INT(judge(nothing), STK_VERDICT_COMPUTE);
    stk_verdict_judge(&nothing, true, &judged);
    CHECK(judged.event.batch == NULL);
}

static const char *batch_of(stk_evidence e) {
    stk_verdict_judge(&e, true, &judged);
    CHECK(judged.event.first);
    return judged.event.batch;
}

static void a_quick_look_judges_the_batch(void) {
    stk_evidence e = gpu_evidence();
    CHECK_STR(batch_of(e), "batch_size=128 is fine: a larger one is not predicted to be faster");
    e = full_memory();
    CHECK_STR(batch_of(e), "batch_size=32 is fine: a larger one does not fit into the memory");
    e.largest_batch = 1000;
    e.rates.batch = 8;
    e.rates.step = 2600;
    CHECK_STR(batch_of(e), "batch_size=8 is TOO SMALL - should be 256+ (predicted 2.4x)");
    e.rates.images = 480;
    CHECK_STR(batch_of(e), "batch_size=8 is TOO SMALL - should be 32+ (predicted 1.8x)");
    e.rates.images = 160;
    CHECK_STR(batch_of(e), "batch_size=8 is fine: a larger one is not predicted to be faster");
    e = starved_evidence(); /* what waits is not made faster by larger batches */
    e.rates.batch = 8;
    e.rates.fixed_s = 0.0005;
    CHECK_STR(batch_of(e), "batch_size=8 is fine: a larger one is not predicted to be faster");
}

/* What the first steps prepare, and samples from before them, are held against nobody. */
static void a_quick_look_leaves_preparations_out(void) {
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 0, 0, 0, 30);
    e.gpu_util = 30;
    e.sm_activity = 10;
    CHECK_INT(judge(e), STK_VERDICT_LAUNCH);
    stk_verdict_judge(&e, true, &judged);
    CHECK_INT(judged.kind, STK_VERDICT_FINE);
    CHECK_STR(judged.event.batch,
              "batch_size=128 is fine: a larger one is not predicted to be faster");
}

static void every_verdict_has_a_name_of_its_own(void) {
    for (int i = 0; i < STK_VERDICT_COUNT; i++) {
        for (int k = 0; k < i; k++) {
            CHECK(strcmp(stk_verdict_name((stk_verdict_kind)i),
                         stk_verdict_name((stk_verdict_kind)k)) != 0);
        }
    }
    CHECK_STR(stk_verdict_name(STK_VERDICT_MEMORY), "memory-bound-batch");
}

static void every_verdict_is_in_the_documentation(void) {
    stk_error err = {0};
    char *page = NULL;
    size_t size = 0;
    REQUIRE_OK(stk_file_read(STK_DOCS_FOLDER "/verdicts.md", 1 << 20, &page, &size, &err), &err);
    for (int i = 0; i < STK_VERDICT_COUNT; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| `%s` | ", stk_verdict_name((stk_verdict_kind)i));
        CHECK_CONTAINS(page, row);
    }
    stk_mem_free(page);
}

static void shares_are_those_of_training(void) {
    stk_times t = {.read_s = 1,
                   .decode_s = 2,
                   .queue_s = 1,
                   .copy_s = NAN,
                   .compute_s = 3,
                   .update_s = 1,
                   .validate_s = 5,
                   .checkpoint_s = 5,
                   .other_s = 2,
                   .total_s = 20};
    stk_shares s = stk_shares_of(&t);
    CHECK_NEAR(s.training_s, 10, 1e-9);
    CHECK_NEAR(s.wait, 0.4, 1e-9);
    CHECK_NEAR(s.copy, 0, 1e-9);
    CHECK_NEAR(s.compute, 0.4, 1e-9);
    CHECK_NEAR(s.other, 0.2, 1e-9);
    t.total_s = 9;
    CHECK_NEAR(stk_shares_of(&t).wait, 0, 1e-9);
}

/* A command that is supervised: seen from outside, it is told none of Stoker's flags. */
static void foreign_commands_get_remedies_of_their_own(void) {
    stk_evidence e = far_evidence();
    REQUIRE(judge(e) == STK_VERDICT_STORAGE && judged.event.remedy_count > 0);
    e.is_foreign = true;
    CHECK_INT(judge(e), STK_VERDICT_STORAGE);
    CHECK_INT(judged.event.remedy_count, 0);
    CHECK_CONTAINS(judged.text, "Faster storage would help.");
    e = starved_evidence();
    e.rates.workers = 4;
    e.rates.decode = 2900 / 4.0;
    e.is_foreign = true;
    CHECK_INT(judge(e), STK_VERDICT_DECODE);
    REQUIRE(judged.event.remedy_count == 1);
    CHECK_STR(judged.event.remedies[0].text, "16 loader workers (num_workers)");
    CHECK_STR(judged.event.remedies[0].flags, "");
}

/* Its quick look comes when preparations are over; and it may say nothing of its steps. */
/* A command that sleeps misses no cores, whoever has them. */
static void foreign_commands_have_neighbours_when_they_compute(void) {
    stk_evidence e = cpu_evidence();
    e.is_foreign = true;
    e.rates.step = NAN; /* so that its steps are not called small */
    e.cpu = 98;
    e.cpu_own = 50;
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    e.times = minute_of(0, 0, 0, 0, 44); /* 16 of 60 s */
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
    e.times = minute_of(0, 0, 0, 0, 46); /* 14 of 60 s */
    CHECK(judge(e) != STK_VERDICT_NEIGHBOUR);
    e.is_foreign = false;
    CHECK_INT(judge(e), STK_VERDICT_NEIGHBOUR);
}

static void foreign_commands_are_judged_from_outside(void) {
    stk_evidence e = gpu_evidence();
    e.times = minute_of(0, 0, 0, 0, 30);
    e.gpu_util = 50;
    stk_verdict_judge(&e, true, &judged);
    CHECK_INT(judged.kind, STK_VERDICT_FINE); /* of our own: the first steps prepare much */
    e.is_foreign = true;
    stk_verdict_judge(&e, true, &judged);
    CHECK_INT(judged.kind, STK_VERDICT_LAUNCH);
    e.steps = -1;
    stk_verdict_judge(&e, true, &judged);
    CHECK_INT(judged.kind, STK_VERDICT_LAUNCH);
    CHECK(strstr(judged.text, "nan") == NULL && strstr(judged.evidence, "nan") == NULL);
    e.seconds = 2.9;
    CHECK_INT(judge(e), STK_VERDICT_UNKNOWN);
    e.seconds = 60;
    e.is_foreign = false;
    CHECK_INT(judge(e), STK_VERDICT_UNKNOWN);
}

static const check_test tests[] = {
    TEST(too_little_says_nothing),
    TEST(a_fed_gpu_is_fine),
    TEST(waiting_counts_from_five_percent_on),
    TEST(the_sentence_of_a_starved_gpu),
    TEST(storage_or_decoding_by_the_larger_part),
    TEST(far_data_wants_a_cache_or_staging),
    TEST(a_cache_that_fills_is_waited_for),
    TEST(copies_that_are_waited_for),
    TEST(a_clock_that_is_held_down),
    TEST(others_on_the_same_cores),
    TEST(a_gpu_that_idles_between_kernels),
    TEST(low_activity_counts_where_much_of_a_step_is_fixed),
    TEST(low_utilisation_is_not_fine),
    TEST(most_of_the_time_is_not_training),
    TEST(small_steps_on_a_cpu),
    TEST(a_batch_that_memory_limits),
    TEST(how_much_a_larger_batch_has_to_bring),
    TEST(computing_is_all_there_is),
    TEST(a_machine_without_a_gpu),
    TEST(decoded_pictures_are_kept_where_there_is_room),
    TEST(engines_that_stand_idle),
    TEST(cores_that_limit_beside_engines),
    TEST(engines_that_limit),
    TEST(a_gpu_that_feeds_itself_is_fine),
    TEST(rates_that_are_not_known),
    TEST(a_quick_look_judges_the_batch),
    TEST(a_quick_look_leaves_preparations_out),
    TEST(every_verdict_has_a_name_of_its_own),
    TEST(every_verdict_is_in_the_documentation),
    TEST(shares_are_those_of_training),
    TEST(foreign_commands_get_remedies_of_their_own),
    TEST(foreign_commands_have_neighbours_when_they_compute),
    TEST(foreign_commands_are_judged_from_outside),
};

CHECK_MAIN(tests)
