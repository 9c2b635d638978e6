/* test_recipe.c - what Stoker chooses by itself, and that it says so. */
#include "check.h"

#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "job/recipe/job_options.h"
#include "job/recipe/model_search.h"
#include "job/recipe/recipe.h"
#include "job/recipe/recipe_lines.h"
#include "job/recipe/recipe_sizes.h"
#include "weights/pretrained.h"

typedef struct setting {
    const char *name;
    const char *value;
} setting;

#define MOST_SETTINGS 5

static stk_error error;
static const stk_device_config device;
static char decisions[2048];

static void note_decision(void *user, const stk_event_decision *event) {
    (void)user;
    size_t length = strlen(decisions);
    snprintf(decisions + length, sizeof decisions - length, "%s: %s\n", event->what, event->why);
}

/* Options with these settings; freed by the caller. */
static stk_options *options_of(const setting *settings) {
    stk_options *options = NULL;
    error = (stk_error){0};
    decisions[0] = '\0';
    if (stk_options_for_train(&options, &error) != STK_OK) {
        exit(1);
    }
    for (int i = 0; i < MOST_SETTINGS && settings[i].name != NULL; i++) {
        if (stk_options_set(options, settings[i].name, settings[i].value, &error) != STK_OK) {
            printf("%s\n", error.message);
            exit(1);
        }
    }
    return options;
}

/* Any batch fits. */
static uint64_t no_need(void *user, size_t batch) {
    (void)user;
    (void)batch;
    return 0;
}

static stk_opened_device opened;
static stk_str line;
static size_t test_pictures; /* of the next recipes */
static bool versions;        /* their data set has versions of the same pictures */
static int side;             /* of its pictures, where they are not scaled */

/* A recipe by the rules, as prepare.c makes it; close_recipe() frees what comes with it. */
static stk_status make_recipe(stk_recipe *recipe, stk_options *options, size_t train_count) {
    *recipe = stk_recipe_begin(options);
    recipe->test_pictures = test_pictures;
    opened = (stk_opened_device){0};
    line = (stk_str){0};
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const char *name = job->model != NULL ? job->model : "convnet_s";
    stk_model_source source = {.weights = stk_pretrained_wanted(job->pretrained, name)};
    static const stk_events nobody = {0};
    stk_model_search named = {0};
    stk_status status = stk_recipe_choose_resize(recipe, options, versions, &error);
    if (status == STK_OK && recipe->native) {
        stk_recipe_take_side(recipe, side, stk_recipe_is_to_fit(options));
    }
    STK_THEN(status, stk_model_find(name, &source.model, &error));
    if (status == STK_OK && job->model != NULL) {
        status = stk_model_search_find(&named, recipe, options, 2, &nobody, &error);
        source = named.candidates[0];
    }
    if (status == STK_OK) {
        status = stk_recipe_take_model(recipe, options, &source, &error);
    }
    if (status == STK_OK) {
        status = stk_recipe_open_device(&opened, options, &device, &error);
    }
    if (status == STK_OK) {
        stk_batch_facts facts = stk_recipe_batch_facts(recipe, options, true, train_count);
        facts.need = no_need;
        stk_batch_choice batch = stk_batch_plan(&facts);
        status = stk_recipe_complete(recipe, options, &facts, &batch, recipe->infer_batch, false,
                                     &error);
        stk_recipe_describe(options, &line);
    }
    return status;
}

static void close_recipe(void) {
    stk_str_free(&line);
    stk_opened_device_close(&opened);
}

static void batch_rate_and_epochs(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        size_t train;
        size_t batch;
        double lr;
        int epochs; /* wanted; 0: as the budget allows */
    } cases[] = {
        {{{0}}, 480, 32, 0.0625, 20}, /* 0.5 at 256 */
        {{{0}}, 479, 16, 0.03125, 20},
        {{{0}}, 100000, 128, 0.25, 20},
        {{{0}}, 100, 8, 0.015625, 20},
        {{{"img-size", "128"}}, 100000, 64, 0.125, 20}, /* a million pixels a step */
        {{{"img-size", "224"}}, 100000, 16, 0.03125, 20},
        {{{"img-size", "1000"}}, 100000, 8, 0.015625, 20},
        {{{0}}, 5, 5, 0.00976562, 20},
        {{{0}}, 1, 1, 0.00195312, 20},
        {{{"batch", "64"}}, 480, 64, 0.125, 20},
        {{{"batch", "256"}}, 480, 256, 0.5, 20},
        {{{"batch", "384"}}, 480, 384, 0.75, 20},
        {{{"batch", "64"}, {"lr", "0.1"}}, 480, 64, 0.1, 20},
        {{{"batch", "64"}, {"lr", "0.1"}}, 64, 64, 0.1, 20},
        {{{"batch", "64"}, {"lr", "0.1"}}, 40, 40, 0.0625, 20}, /* the batch was cut: so is lr */
        {{{"batch", "64"}}, 40, 40, 0.078125, 20},
        {{{"lr", "0.3"}}, 480, 32, 0.3, 20},
        {{{"lr", "default"}}, 480, 32, 0.0625, 20},
        {{{"batch", "8"}, {"accumulate", "4"}}, 480, 8, 0.0625, 20},
        /* An epoch has six batches: no more are ever added up. */
        {{{"batch", "8"}, {"accumulate", "512"}}, 48, 8, 0.09375, 20},
        {{{"batch", "256"}, {"opt", "adamw"}}, 480, 256, 0.008, 20},
        {{{"batch", "64"}, {"accumulate", "2"}, {"opt", "adamw"}}, 480, 64, 0.004, 20},
        {{{"lr", "0"}}, 480, 32, 0, 20},
        {{{"epochs", "7"}}, 480, 32, 0.0625, 7},
        {{{"budget", "60s"}}, 480, 32, 0.0625, 0},
        {{{"budget", "60s"}, {"epochs", "3"}}, 480, 32, 0.0625, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, cases[i].train), &error);
        if (recipe.batch != cases[i].batch || !(fabs(recipe.lr - cases[i].lr) < 1e-7) ||
            recipe.epochs_wanted != cases[i].epochs) {
            CHECK_FAIL("case %zu: batch %zu, lr %.8g, epochs %d", i, recipe.batch, recipe.lr,
                       recipe.epochs_wanted);
        }
        CHECK_NEAR(atof(stk_options_get(options, "lr")), cases[i].lr, 1e-6);
        CHECK_INT(atoi(stk_options_get(options, "batch")), cases[i].batch);
        close_recipe();
        stk_options_free(options);
    }
}

/* Weights that are named with a tag bring the preparation of their pictures with them. */
static void tags_of_weights_choose_the_model(void) {
    static const struct {
        const char *model, *pretrained, *name;
        double dropout;
    } cases[] = {
        {"efficientnet_b0", "efficientnet_b0.ra4_e3600_r224_in1k",
         "efficientnet_b0.ra4_e3600_r224_in1k", 0.2},
        {"efficientnet_b0", "efficientnet_b0.ra_in1k", "efficientnet_b0", 0.2},
        {"efficientnet_b0", "efficientnet_b1.ft_in1k", "efficientnet_b0", 0.2},
        {"efficientnet_b0", "weights.safetensors", "efficientnet_b0", 0.2},
        {"resnet18", "false", "resnet18", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setting settings[MOST_SETTINGS] = {{"model", cases[i].model},
                                           {"pretrained", cases[i].pretrained}};
        stk_options *options = options_of(settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        CHECK_STR(recipe.model->name, cases[i].name);
        CHECK_NEAR(recipe.dropout, cases[i].dropout, 1e-9);
        CHECK_NEAR(atof(stk_options_get(options, "dropout")), cases[i].dropout, 1e-9);
        close_recipe();
        stk_options_free(options);
    }
}

static void everything_auto(void) {
    static const setting none[MOST_SETTINGS] = {{0}};
    stk_options *options = options_of(none);
    stk_recipe recipe;
    REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
    CHECK_STR(recipe.model->name, "convnet_s");
    CHECK_INT(recipe.img_size, 64);
    CHECK_STR(opened.name, "cpu");
    CHECK_INT(opened.precision, STK_PRECISION_FP32);
    CHECK(recipe.loader.workers >= 1 && recipe.loader.slots >= 2);
    CHECK_CONTAINS(stk_str_text(&line), "model convnet_s (auto)");
    CHECK_CONTAINS(stk_str_text(&line), "img-size 64 (auto)");
    CHECK_CONTAINS(stk_str_text(&line), "batch 32 (auto)");
    CHECK_CONTAINS(stk_str_text(&line), "epochs 20 (auto)");
    CHECK(strstr(stk_str_text(&line), "folds") == NULL); /* nobody asked */
    stk_observer observer = {.decision = note_decision};
    stk_events events = {0};
    stk_events_add(&events, &observer);
    stk_opened_decoder decoder = {.decode = STK_DECODE_CPU};
    stk_recipe_emit(&recipe, options, &opened, &decoder, "", 480, &events);
    CHECK_CONTAINS(decisions, "cpu: ");
    CHECK_CONTAINS(decisions, "(auto: ");
    CHECK(strchr(decisions, '\n') == decisions + strlen(decisions) - 1); /* nothing else */
    close_recipe();
    stk_options_free(options);
}

typedef struct recipe_case {
    setting settings[MOST_SETTINGS];
    double lr, head_lr, weight_decay;
    int64_t patience;
} recipe_case;

/* 480 pictures, batches of 32 unless the settings say more. */
static void recipe_by_optimiser_and_start(void) {
    static const recipe_case cases[] = {
        {{{0}}, 0.0625, NAN, 5e-4, 0},
        {{{"optimizer", "adamw"}}, 1e-3, NAN, 0.05, 0},
        {{{"pretrained", "w.safetensors"}}, 3e-4, NAN, 0.05, 0},
        {{{"pretrained", "w.safetensors"}, {"norm-stats", "batch"}}, 8.94427e-4, NAN, 0.05, 0},
        {{{"pretrained", "w.safetensors"}, {"opt", "sgd"}}, 0.003, NAN, 5e-4, 0},
        {{{"pretrained", "w"}, {"opt", "sgd"}, {"norm-stats", "batch"}}, 0.0223607, NAN, 5e-4, 0},
        {{{"pretrained", "false"}}, 0.0625, NAN, 5e-4, 0},
        {{{"pretrained", "true"}, {"opt", "adamw"}}, 3e-4, NAN, 0.05, 0},
        {{{"pretrained", "true"}, {"epochs", "30"}, {"backbone-lr-scale", "0.1"}},
         7.30297e-4,
         NAN,
         0.05,
         0},
        {{{"pretrained", "true"}, {"epochs", "4"}}, 3e-4, 1.5e-3, 0.05, 0},
        {{{"pretrained", "true"}, {"epochs", "4"}, {"norm-stats", "batch"}}, 2e-3, NAN, 0.05, 0},
        {{{"pretrained", "true"}, {"epochs", "1"}}, 3e-4, 3e-3, 0.05, 0},
        {{{"pretrained", "true"}, {"epochs", "4"}, {"head-lr", "0.01"}}, 3e-4, 0.01, 0.05, 0},
        {{{"pretrained", "true"}, {"recipe", "plain"}}, 0.0223607, NAN, 5e-4, 0},
        {{{"patience", "auto"}}, 0.0625, NAN, 5e-4, 0},
        {{{"patience", "5"}}, 0.0625, NAN, 5e-4, 5},
        {{{"pretrained", "true"}, {"patience", "4"}}, 3e-4, NAN, 0.05, 4},
        {{{"optimizer", "adamw"}, {"wd", "0.1"}}, 1e-3, NAN, 0.1, 0},
        {{{"lr", "1e-4"}, {"head-lr", "1e-2"}}, 1e-4, 1e-2, 5e-4, 0},
        {{{"lr", "auto"}}, NAN, NAN, 5e-4, 0},
        {{{"lr", "0.2"}, {"head-lr", "0.4"}, {"batch", "960"}}, 0.1, 0.2, 5e-4, 0}, /* cut */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const recipe_case *c = &cases[i];
        stk_options *options = options_of(c->settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        bool lr = isnan(c->lr) ? isnan(recipe.lr) : fabs(recipe.lr - c->lr) < 1e-9;
        bool head = isnan(c->head_lr) ? isnan(recipe.train.head_lr)
                                      : fabs(recipe.train.head_lr - c->head_lr) < 1e-9;
        if (!lr || !head || recipe.train.weight_decay != c->weight_decay ||
            recipe.train.patience != c->patience) {
            CHECK_FAIL("case %zu: lr %g, head %g, decay %g, patience %lld", i, recipe.lr,
                       recipe.train.head_lr, recipe.train.weight_decay,
                       (long long)recipe.train.patience);
        }
        CHECK_NEAR(atof(stk_options_get(options, "weight-decay")), c->weight_decay, 1e-9);
        close_recipe();
        stk_options_free(options);
    }
}

/* Only from pretrained weights, and where the rates are Stoker's. */
static void norms_keep_their_statistics(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        const char *stats; /* NULL: refused */
    } cases[] = {
        {{{0}}, "batch"},
        {{{"pretrained", "w"}}, "kept"},
        {{{"pretrained", "w"}, {"epochs", "3"}}, "kept"},
        {{{"pretrained", "w"}, {"recipe", "plain"}}, "batch"},
        {{{"pretrained", "w"}, {"lr", "0.001"}}, "batch"},
        {{{"pretrained", "w"}, {"lr", "auto"}}, "batch"},
        {{{"pretrained", "w"}, {"backbone-lr-scale", "0.1"}}, "batch"},
        {{{"pretrained", "w"}, {"lr", "0.001"}, {"norm-stats", "kept"}}, "kept"},
        {{{"pretrained", "w"}, {"norm-stats", "batch"}}, "batch"},
        {{{"recipe", "finetune"}}, "batch"},
        {{{"norm-stats", "batch"}}, "batch"},
        {{{"norm-stats", "kept"}}, NULL},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        stk_status status = make_recipe(&recipe, options, 480);
        CHECK_INT(status, cases[i].stats != NULL ? STK_OK : STK_ERR_USAGE);
        if (status == STK_OK) {
            CHECK_STR(stk_options_get(options, "norm-stats"), cases[i].stats);
        } else {
            CHECK_CONTAINS(error.message, "no statistics to keep");
        }
        close_recipe();
        stk_options_free(options);
    }
}

/* The row of the table by start and epochs, and that what is given wins over it. */
static void rows_of_the_table(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        const char *recipe;
        double crop_scale, smoothing, mixup, ema;
    } cases[] = {
        {{{0}}, "scratch", 0.7, 0, 0, 0},
        {{{"epochs", "40"}}, "scratch-long", 0.7, 0, 0.2, 0},
        {{{"epochs", "40"}, {"mixup", "0"}, {"crop-scale", "0.5"}}, "scratch-long", 0.5, 0, 0, 0},
        {{{"epochs", "40"}, {"recipe", "plain"}}, "plain", 0.7, 0, 0, 0},
        {{{"pretrained", "true"}, {"epochs", "7"}}, "touch", 0.6, 0.1, 0, 0},
        {{{"pretrained", "true"}, {"epochs", "8"}}, "finetune", 0.35, 0.1, 0, 0},
        {{{"pretrained", "true"}}, "finetune-long", 0.35, 0.1, 0, 0.998},
        {{{"pretrained", "true"}, {"ema", "0"}, {"label-smoothing", "0"}},
         "finetune-long",
         0.35,
         0,
         0,
         0},
        {{{"recipe", "touch"}, {"epochs", "100"}}, "touch", 0.6, 0.1, 0, 0},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        CHECK_STR(recipe.row->name, cases[i].recipe);
        CHECK_STR(stk_options_get(options, "recipe"), cases[i].recipe);
        CHECK_NEAR(recipe.augment.crop_scale, cases[i].crop_scale, 1e-9);
        CHECK_NEAR(atof(stk_options_get(options, "crop-scale")), cases[i].crop_scale, 1e-9);
        CHECK_NEAR(recipe.train.label_smoothing, cases[i].smoothing, 1e-9);
        CHECK_NEAR(recipe.train.mixup, cases[i].mixup, 1e-9);
        CHECK_NEAR(recipe.train.ema, cases[i].ema, 1e-9);
        close_recipe();
        stk_options_free(options);
    }
}

/* Averaged weights are for trainings with many updates. */
static void rows_by_the_pictures_seen(void) {
    CHECK_STR(stk_recipe_row_choose(0, true, 30, 31999)->name, "finetune");
    CHECK_STR(stk_recipe_row_choose(0, true, 30, 32000)->name, "finetune-long");
    CHECK_STR(stk_recipe_row_choose(0, true, 19, 1e6)->name, "finetune");
    CHECK_STR(stk_recipe_row_choose(0, true, 100, 0)->name, "finetune");
    CHECK_STR(stk_recipe_row_choose(0, false, 100, 0)->name, "scratch-long");
}

/* A short training begins with the head alone, for enough updates and at most half of it. */
static void the_head_learns_alone_at_first(void) {
    static const struct {
        const char *recipe;
        double epochs, updates;
        int frozen;
    } cases[] = {
        {"touch", 3, 100, 1},      {"touch", 0.5, 100, 1},  {"touch", 5, 6, 3},
        {"touch", 4, 1, 2},        {"finetune", 12, 40, 1}, {"finetune", 12, 4, 4},
        {"finetune", 17.9, 16, 1}, {"finetune", 18, 55, 1}, {"finetune", 18, 56, 0},
        {"finetune", 40, 4, 4},    {"scratch", 5, 10, 0},   {"plain", 5, 10, 0},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        const stk_recipe_row *row = NULL;
        for (int choice = 1; row == NULL || strcmp(row->name, cases[i].recipe) != 0; choice++) {
            row = stk_recipe_row_choose(choice, true, 0, 0);
        }
        int frozen = stk_recipe_freeze_epochs(row, cases[i].epochs, cases[i].updates);
        if (frozen != cases[i].frozen) {
            CHECK_FAIL("case %zu: %d epochs", i, frozen);
        }
    }
    static const struct {
        setting settings[MOST_SETTINGS];
        const char *frozen;
    } trainings[] = {
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"epochs", "5"}}, "1"},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"epochs", "1"}}, "0"},
        {{{"model", "efficientnet_b0"},
          {"pretrained", "w"},
          {"epochs", "30"},
          {"batch", "8"},
          {"recipe", "finetune"}},
         "0"},
        {{{"model", "efficientnet_b0"},
          {"pretrained", "w"},
          {"epochs", "30"},
          {"batch", "32"},
          {"recipe", "finetune"}},
         "1"},
        {{{"model", "efficientnet_b0"}, {"epochs", "5"}}, "0"},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"freeze-epochs", "3"}}, "3"},
    };
    for (size_t i = 0; i < STK_COUNT(trainings); i++) {
        stk_options *options = options_of(trainings[i].settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        CHECK_STR(stk_options_get(options, "freeze-epochs"), trainings[i].frozen);
        CHECK_INT(recipe.train.freeze_epochs, atoi(trainings[i].frozen));
        close_recipe();
        stk_options_free(options);
    }
}

/* Validation and prediction see whole pictures where training sees parts. */
static void sizes_of_evaluation(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        int img_size, eval_size;
        double crop;
    } cases[] = {
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}}, 224, 256, 1},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"img-size", "96"}}, 96, 112, 1},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"img-size", "128"}}, 128, 160, 1},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"img-size", "63"}}, 63, 63, 0.875},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}, {"crop-scale", "1"}}, 224, 224, 0.875},
        {{{"model", "efficientnet_b0"}}, 224, 224, 0.875}, /* from scratch: as trained */
        {{{"model", "efficientnet_b0"}, {"eval-size", "224"}}, 224, 224, 0.875},
        {{{"model", "efficientnet_b0"}, {"eval-size", "240"}}, 224, 240, 0.9375},
        {{{"model", "efficientnet_b0"}, {"eval-size", "160"}}, 224, 160, 0.875},
        {{{"model", "convnet_s"}, {"img-size", "96"}}, 96, 96, 1}, /* no part is cut off */
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        CHECK_INT(recipe.img_size, cases[i].img_size);
        CHECK_INT(recipe.eval_size, cases[i].eval_size);
        CHECK_INT(atoi(stk_options_get(options, "eval-size")), cases[i].eval_size);
        CHECK_NEAR(recipe.eval_crop, cases[i].crop, 1e-9);
        CHECK_NEAR(stk_recipe_eval_pixels(&recipe),
                   pow((double)cases[i].eval_size / cases[i].img_size, 2), 1e-9);
        close_recipe();
        stk_options_free(options);
    }
}

/* Windows of native pixels: when, how large, and with which crops. `side` 0: pictures are scaled.
 */
static void windows_of_native_pixels(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        bool versions;
        int side, img_size, eval_size;
        double crop_scale;
        const char *resize;
    } cases[] = {
        {{{"model", "resnet18"}}, false, 0, 224, 224, 0.7, "scale"},
        {{{"model", "resnet18"}}, true, 128, 128, 128, 1, "none"},
        {{{"model", "resnet18"}}, true, 512, 256, 256, 1, "none"},
        {{{"model", "convnet_s"}}, true, 100, 100, 100, 1, "none"},
        {{{"model", "resnet18"}, {"budget", "1m"}}, true, 512, 512, 512, 1, "none"},
        {{{"model", "resnet18"}, {"budget", "1m"}}, true, 3000, 512, 512, 1, "none"},
        {{{"model", "resnet18"}, {"budget", "1m"}}, true, 5, 32, 32, 1, "none"},
        {{{"model", "resnet18"}, {"budget", "1m"}}, false, 0, 224, 224, 0.7, "scale"},
        {{{"model", "resnet18"}, {"img-size", "96"}}, true, 128, 96, 96, 1, "none"},
        {{{"model", "resnet18"}, {"resize", "scale"}}, true, 0, 224, 224, 0.7, "scale"},
        {{{"model", "resnet18"}, {"crop-scale", "0.5"}}, true, 0, 224, 224, 0.5, "scale"},
        {{{"model", "resnet18"}, {"crop-scale", "1"}}, true, 128, 128, 128, 1, "none"},
        {{{"model", "resnet18"}, {"resize", "none"}}, false, 100, 100, 100, 1, "none"},
        {{{"model", "efficientnet_b0"}, {"pretrained", "w"}}, true, 200, 200, 200, 1, "none"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        versions = cases[i].versions;
        side = cases[i].side;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        if (recipe.native != (side > 0) || recipe.img_size != cases[i].img_size ||
            recipe.eval_size != cases[i].eval_size) {
            CHECK_FAIL("case %zu: native %d, %d px, validated at %d px", i, recipe.native,
                       recipe.img_size, recipe.eval_size);
        }
        CHECK_NEAR(recipe.augment.crop_scale, cases[i].crop_scale, 1e-9);
        CHECK_STR(stk_options_get(options, "resize"), cases[i].resize);
        CHECK_INT(recipe.early_size, 0);
        const stk_dataset none = {0};
        stk_training_facts facts = stk_recipe_training_facts(&recipe, options, &none);
        CHECK(facts.may_begin_small == (side == 0) || facts.img_size != recipe.img_size);
        CHECK(!(recipe.native && facts.may_grow));
        close_recipe();
        stk_options_free(options);
    }
    versions = false;
    side = 0;
    static const setting both[MOST_SETTINGS] = {{"resize", "none"}, {"crop-scale", "0.5"}};
    stk_options *options = options_of(both);
    stk_recipe recipe;
    CHECK_INT(make_recipe(&recipe, options, 480), STK_ERR_USAGE);
    CHECK(strstr(error.message, "--resize none and --crop-scale 0.5") != NULL);
    close_recipe();
    stk_options_free(options);
}

/* The line of the recipe says why. */
static void native_pixels_are_told(void) {
    static const setting settings[][MOST_SETTINGS] = {{{"epochs", "2"}},
                                                      {{"resize", "none"}, {"epochs", "2"}}};
    static const char *const told[] = {
        "sgd, native pixels: the classes are versions of the same pictures\n",
        "sgd, native pixels\n"};
    const stk_observer observer = {.decision = note_decision};
    for (size_t i = 0; i < STK_COUNT(told); i++) {
        stk_options *options = options_of(settings[i]);
        stk_events events = {0};
        stk_recipe recipe;
        versions = true;
        side = 64;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        stk_events_add(&events, &observer);
        stk_recipe_emit_row(&recipe, options, &events);
        CHECK(strstr(decisions, told[i]) != NULL);
        close_recipe();
        stk_options_free(options);
    }
    versions = false;
    side = 0;
}

/* Small pictures in the first half, as given; a size that is not smaller is none. */
static void early_sizes(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        int early, early_eval;
    } cases[] = {
        {{{"model", "resnet18"}}, 0, 0},
        {{{"model", "resnet18"}, {"early-size", "112"}}, 112, 112},
        {{{"model", "resnet18"}, {"early-size", "112"}, {"pretrained", "w"}}, 112, 128},
        {{{"model", "resnet18"}, {"early-size", "224"}}, 0, 0},
        {{{"model", "resnet18"}, {"early-size", "0"}}, 0, 0},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        CHECK_INT(recipe.early_size, cases[i].early);
        CHECK_INT(recipe.early_eval_size, cases[i].early_eval);
        close_recipe();
        stk_options_free(options);
    }
}

/*
 * Views of runs that train 480 pictures in 20 epochs or as given: with 1454 test pictures a view
 * takes 480 of these 9600, with one more it is too much. Time decides only later, where a budget
 * decides on the epochs.
 */
static void views_where_they_are_cheap(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        size_t test;
        int views, least;
        const char *resolved;
    } cases[] = {
        {{{0}}, 1454, 2, 1, "2"},
        {{{0}}, 1455, 1, 1, "1"},
        {{{0}}, 0, 2, 1, "2"},
        {{{"epochs", "2"}}, 145, 2, 1, "2"},
        {{{"epochs", "2"}}, 146, 1, 1, "1"},
        {{{"epochs", "2"}, {"budget", "60s"}}, 145, 2, 1, "2"},
        {{{"epochs", "2"}, {"budget", "60s"}}, 146, 1, 1, "1"},
        {{{"budget", "60s"}}, 0, 1, 1, "auto"},
        {{{"deadline", "12:00"}}, 0, 1, 1, "auto"},
        {{{"flip", "false"}}, 0, 1, 1, "1"},
        {{{"flip", "false"}, {"tta", "2"}}, 0, 2, 2, "2"},
        {{{"tta", "1"}}, 0, 1, 1, "1"},
        {{{"tta", "5"}}, 100000, 5, 5, "5"},
        {{{"tta", "auto"}}, 0, 2, 1, "2"},
        {{{"folds", "3"}}, 1454, 2, 1, "2"}, /* three times as much of both */
        {{{"folds", "3"}}, 1455, 1, 1, "1"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        test_pictures = cases[i].test;
        REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
        if (recipe.views != cases[i].views || recipe.least_views != cases[i].least) {
            CHECK_FAIL("case %zu: %d views, at least %d", i, recipe.views, recipe.least_views);
        }
        CHECK_STR(stk_options_get(options, "tta"), cases[i].resolved);
        close_recipe();
        stk_options_free(options);
    }
    test_pictures = 0;
}

/* Models predict the test set, and folds what validates them: every labelled picture once. */
static void pictures_that_are_predicted(void) {
    stk_recipe recipe = {.folds = 1, .pictures = 1000, .test_pictures = 30};
    CHECK_INT(stk_recipe_predicted(&recipe, 0), 30);
    CHECK_INT(stk_recipe_predicted(&recipe, 2), 90);
    recipe.folds = 5;
    CHECK_INT(stk_recipe_predicted(&recipe, 0), 1150);
    CHECK_INT(stk_recipe_predicted(&recipe, 2), 1210);
}

/* So many pictures in all, from pretrained weights: the images of an update. */
static void batches_of_fine_tuning(void) {
    CHECK_INT(stk_recipe_batch_bounds(true, 1000).most, 16);
    CHECK_INT(stk_recipe_batch_bounds(true, 1920).most, 32);
    CHECK_INT(stk_recipe_batch_bounds(true, 31999).least, 32);
    CHECK_INT(stk_recipe_batch_bounds(true, 32000).least, 64);
    CHECK_INT(stk_recipe_batch_bounds(true, 1e6).most, 0);
    CHECK_INT(stk_recipe_batch_bounds(false, 1000).most, 0);
}

/* A GPU would have to compile for another batch. */
static void a_rehearsed_batch_stays(void) {
    static const setting given[MOST_SETTINGS] = {{"pretrained", "true"}, {"epochs", "10"}};
    stk_options *options = options_of(given);
    stk_recipe recipe;
    REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
    CHECK_INT(stk_recipe_batch_facts(&recipe, options, false, 480).learns_most, 32);
    recipe.batch_rehearsed = 64;
    CHECK_INT(stk_recipe_batch_facts(&recipe, options, false, 480).learns_most, 64);
    CHECK_INT(stk_recipe_batch_facts(&recipe, options, false, 480).least, 64);
    CHECK_INT(stk_recipe_batch_facts(&recipe, options, true, 480).learns_most, 32);
    recipe.batch_rehearsed = 128;
    CHECK_INT(stk_recipe_batch_facts(&recipe, options, false, 480).learns_most, 32);
    recipe.batch_rehearsed = 8;
    CHECK_INT(stk_recipe_batch_facts(&recipe, options, false, 480).least, 32);
    close_recipe();
    stk_options_free(options);
}

static void the_line_tells_the_recipe(void) {
    static const setting given[MOST_SETTINGS] = {
        {"opt", "adamw"}, {"lr", "auto"}, {"ema", "0.99"}, {"freeze-epochs", "2"}};
    stk_options *options = options_of(given);
    stk_recipe recipe;
    REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
    CHECK_CONTAINS(stk_str_text(&line), "optimizer adamw, lr to be found (auto)");
    CHECK_CONTAINS(stk_str_text(&line), "freeze-epochs 2, ema 0.99");
    CHECK(strstr(stk_str_text(&line), "clip-grad") == NULL); /* nobody asked */
    close_recipe();
    stk_options_free(options);
}

/* "default" is a word of the rate alone. */
static void words_for_the_rate(void) {
    static const setting none[MOST_SETTINGS] = {{0}};
    stk_options *options = options_of(none);
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    CHECK(stk_is_default_double(train->lr) && !stk_is_auto_double(train->lr));
    REQUIRE_OK(stk_options_set(options, "lr", "auto", &error), &error);
    CHECK(stk_is_auto_double(train->lr) && !stk_is_default_double(train->lr));
    REQUIRE_OK(stk_options_set(options, "lr", "Default", &error), &error);
    CHECK(stk_is_default_double(train->lr));
    CHECK_INT(stk_options_set(options, "head-lr", "default", &error), STK_ERR_USAGE);
    error = (stk_error){0};
    CHECK_INT(stk_options_set(options, "lr", "fast", &error), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "default, auto or a number from 0 to 100");
    stk_options_free(options);
}

static void the_line_says_what_was_given(void) {
    static const setting given[MOST_SETTINGS] = {
        {"budget", "60s"}, {"folds", "3"}, {"img-size", "32"}, {"batch_size", "8"}};
    stk_options *options = options_of(given);
    stk_recipe recipe;
    REQUIRE_OK(make_recipe(&recipe, options, 480), &error);
    CHECK_INT(recipe.img_size, 32);
    CHECK_CONTAINS(stk_str_text(&line), "img-size 32,");
    CHECK_CONTAINS(stk_str_text(&line), "batch 8,");
    CHECK_CONTAINS(stk_str_text(&line), "epochs as the budget allows (auto)");
    CHECK_CONTAINS(stk_str_text(&line), "folds 3");
    CHECK_CONTAINS(stk_str_text(&line), "budget 60s");
    close_recipe();
    stk_options_free(options);
}

static void choices_with_reasons_are_told(void) {
    static const setting given[MOST_SETTINGS] = {
        {"batch", "64"}, {"loader-memory", "1K"}, {"precision", "fp16"}, {"no-wandb", "true"}};
    stk_options *options = options_of(given);
    stk_recipe recipe;
    stk_observer observer = {.decision = note_decision};
    stk_events events = {0};
    stk_events_add(&events, &observer);
    REQUIRE_OK(make_recipe(&recipe, options, 40), &error);
    stk_opened_decoder decoder = {.decode = STK_DECODE_BOTH, .why = "7 JPEG engines of the GPU"};
    stk_recipe_emit(&recipe, options, &opened, &decoder, "", 40, &events);
    CHECK_CONTAINS(decisions, "decode both: 7 JPEG engines of the GPU\n");
    CHECK_CONTAINS(decisions, "batch 40: there are 40 training images\n");
    CHECK_CONTAINS(decisions, "2 batches prepared ahead: ");
    CHECK_CONTAINS(decisions, "--loader-memory");
    CHECK_CONTAINS(decisions, "precision fp32: ");
    CHECK_CONTAINS(decisions, "accepted without effect: ");
    CHECK_CONTAINS(decisions, "no-wandb");
    CHECK_STR(stk_options_get(options, "precision"), "fp32");
    close_recipe();
    stk_options_free(options);
}

static void what_does_not_exist(void) {
    static const struct {
        setting settings[MOST_SETTINGS];
        stk_status status;
        const char *words;
    } cases[] = {
        {{{"model", "resnet81"}}, STK_ERR_USAGE, "resnet18"},
        {{{"model", ".a1_in1k"}}, STK_ERR_USAGE, "there is no such model"},
        {{{"device", "cuda"}}, STK_ERR_DEVICE, "--device cpu"},
        {{{"device", "cuda:1"}}, STK_ERR_DEVICE, "cuda:1"},
        {{{"device", "abacus"}}, STK_ERR_USAGE, "abacus"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_options *options = options_of(cases[i].settings);
        stk_recipe recipe;
        CHECK_INT(make_recipe(&recipe, options, 480), cases[i].status);
        CHECK_CONTAINS(error.message, cases[i].words);
        close_recipe(); /* harmless */
        stk_options_free(options);
    }
}

static const check_test tests[] = {
    TEST(batch_rate_and_epochs),
    TEST(recipe_by_optimiser_and_start),
    TEST(norms_keep_their_statistics),
    TEST(rows_of_the_table),
    TEST(rows_by_the_pictures_seen),
    TEST(the_head_learns_alone_at_first),
    TEST(sizes_of_evaluation),
    TEST(early_sizes),
    TEST(views_where_they_are_cheap),
    TEST(pictures_that_are_predicted),
    TEST(batches_of_fine_tuning),
    TEST(a_rehearsed_batch_stays),
    TEST(the_line_tells_the_recipe),
    TEST(words_for_the_rate),
    TEST(tags_of_weights_choose_the_model),
    TEST(everything_auto),
    TEST(the_line_says_what_was_given),
    TEST(choices_with_reasons_are_told),
    TEST(windows_of_native_pixels),
    TEST(native_pixels_are_told),
    TEST(what_does_not_exist),
};

CHECK_MAIN(tests)
