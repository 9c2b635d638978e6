/* job_options.c - options of whole runs, and which tables each verb has. */
#include "job/recipe/job_options.h"

#include "backend/opened_device.h"
#include "base/mem.h"
#include "budget/budget.h"
#include "dataset/dataset.h"
#include "job/recipe/recipe_table.h"
#include "loader/loader.h"
#include "models/models.h"
#include "predict/predict.h"
#include "probe/doctor/doctor.h"
#include "report/report_options.h"
#include "stage/sample.h"
#include "stage/stage.h"
#include "train/train.h"

#define FIELD(name) offsetof(stk_job_options, name)

static const stk_option job_options[] = {
    STK_OPTION(TEXT, "model", model, STK_OPTION_AUTO, .aliases = "model_name", .metavar = "NAME",
               .help = "network: " STK_MODEL_NAMES "; timm's tags are accepted; auto: the best one "
                       "with pretrained weights on this machine that fits device and time, or "
                       "convnet_s from random weights"),
    STK_OPTION(TEXT, "pretrained", pretrained, .metavar = "FILE|NAME",
               .help =
                   "weights to start from: a safetensors file, or a timm name that is looked "
                   "for on this machine; true: the model's own; false: none; without --model the "
                   "weights say the model"),
    STK_OPTION(
        INT, "img-size", img_size, STK_OPTION_AUTO, STK_OPTION_RANGE(8, 2048),
        .aliases = "image_size", .metavar = "PX",
        .help = "side of the square that the network sees; auto: the model's own; where a budget "
                "decides on the epochs smaller or larger if that pays (docs/recipes.md)"),
    STK_OPTION(INT, "eval-size", eval_size, STK_OPTION_AUTO, STK_OPTION_RANGE(8, 2048),
               .aliases = "test_input_size", .metavar = "PX",
               .help = "side of the square in validation and prediction; auto: where training "
                       "begins with pretrained weights and sees random parts of pictures, 8/7 of "
                       "--img-size, rounded up, and the whole short side"),
    STK_OPTION(INT, "early-size", early_size, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 2048),
               .metavar = "PX",
               .help = "side of the square in the first half of the training (progressive "
                       "resizing); 0: as --img-size; auto: half of it where a budget allows a "
                       "single model from scratch 3 to 30 epochs (docs/recipes.md)"),
    STK_OPTION(DOUBLE, "dropout", dropout, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 0.9),
               .metavar = "SHARE",
               .help = "share of the numbers before the classifier that is set to 0 in training; "
                       "auto: as the model's original was trained"),
    STK_OPTION(DOUBLE, "drop-path", drop_path, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 0.9),
               .metavar = "SHARE",
               .help = "stochastic depth: how often the last block is skipped in training, earlier "
                       "ones less; auto: as the model's original was trained"),
    STK_OPTION(CHOICE, "recipe", recipe, .fallback = "auto", .choices = STK_RECIPE_CHOICES,
               .help = "augmentation, regularisation and optimiser that fit together "
                       "(docs/recipes.md); auto: by the first weights and the numbers of epochs "
                       "and pictures; "
                       "an option that is given wins over the recipe"),
    STK_OPTION(INT, "folds", folds, STK_OPTION_AUTO, STK_OPTION_RANGE(1, STK_MOST_FOLDS),
               .aliases = "cv_folds n_folds", .metavar = "N",
               .help = "cross-validation: train N models on stratified folds and average them; "
                       "auto: 1, or as many as --fold-column has"),
    STK_OPTION(
        INT, "refit", refit, STK_OPTION_AUTO, STK_OPTION_RANGE(0, STK_MOST_REFITS), .metavar = "N",
        .help = "models that are trained on all pictures after those that were validated, "
                "and averaged with them; auto: where a budget decides on the epochs, as many "
                "as get enough of them (docs/recipes.md); otherwise one from pretrained "
                "weights; none with --folds, a validation set or --val-fraction 0"),
    STK_OPTION(TEXT, "device", device, STK_OPTION_AUTO, .may_change = true,
               .metavar = "cpu|cuda[:N]", .help = "where to compute"),
    STK_OPTION(BYTES, "assume-memory", assume_memory, .fallback = "0", .may_change = true,
               .metavar = "SIZE", .help = STK_ASSUME_MEMORY_HELP),
    STK_OPTION(CHOICE, "precision", precision, .fallback = "auto", .aliases = "amp",
               .choices = STK_PRECISION_CHOICES,
               .help = "number format of the computation; auto is fp16 on a GPU and fp32 on a CPU, "
                       "fp32 allows TF32, fp32-strict does not"),
    STK_OPTION(BOOL, "deterministic", deterministic, .fallback = "false",
               .help = "the same bits in every run on the same GPU, somewhat slower; on a CPU they "
                       "always are"),
    STK_OPTION(BOOL, "compile", compile, .fallback = "true", .aliases = "compile_model",
               .help = "compute layers together where the device can; --no-compile goes layer by "
                       "layer, to compare"),
    STK_OPTION(INT, "seed", seed, .fallback = "0", STK_OPTION_RANGE(0, 9e15), .metavar = "N",
               .help = "what every random choice derives from"),
    STK_OPTION(TEXT, "out", out, .metavar = "DIR",
               .help = "the run folder itself; an earlier run in it is moved aside"),
    STK_OPTION(TEXT, "name", name, .aliases = "wandb_name", .metavar = "NAME",
               .help = "without --out the run folder is runs/NAME, numbered when taken; without "
                       "--name it is called after the verb"),
    STK_OPTION(TEXT, "resume", resume, .momentary = true, .metavar = "RUN",
               .help =
                   "continue the training of this run folder, in that folder and with its options"),
    STK_OPTION(DURATION, "save-every", save_every_s, .fallback = "5m", STK_OPTION_RANGE(0, 1e9),
               .may_change = true, .metavar = "T",
               .help = "how often the state for --resume is saved within an epoch; it is always "
                       "saved after an epoch that was validated"),
    STK_OPTION(BOOL, "tune", tune, .fallback = "false",
               .help = "while training waits for pictures, try more workers, more batches ahead "
                       "and a cache in memory, one at a time, and keep what makes it faster"),
    STK_NOTED_OPTION(BOOL, "no-wandb", .help = "accepted, without effect"),
    STK_NOTED_OPTION(TEXT, "wandb-project", .metavar = "NAME", .help = "accepted, without effect"),
    STK_NOTED_OPTION(BOOL, "pin-memory",
                     .help = "accepted, without effect: memory is pinned where a device needs it"),
    STK_NOTED_OPTION(BOOL, "persistent-workers",
                     .help = "accepted, without effect: workers always persist"),
};

const stk_option_table stk_job_option_table = STK_OPTION_TABLE("Run", job_options, stk_job_options);

#undef FIELD
#define FIELD(name) offsetof(stk_predict_options, name)

static const stk_option predict_options[] = {
    STK_OPTION(LIST, "run", runs, .metavar = "DIR",
               .help = "run folder whose models predict; given more than once, the models of all "
                       "of them are averaged"),
    STK_OPTION(TEXT, "out", out, .metavar = "FILE",
               .help = "file, pipe or device to write to; otherwise submission.csv in the run "
                       "folder, or predictions.csv there when --data names other images; of "
                       "several runs a new file of that name in the current folder"),
    STK_OPTION(CHOICE, "vote", vote, .fallback = "equal", .choices = "equal score",
               .help = "how models count in the average: all the same, or by how far their "
                       "validation accuracy is above guessing"),
    STK_OPTION(TEXT, "device", device, STK_OPTION_AUTO, .metavar = "cpu|cuda[:N]",
               .help = "where to compute"),
    STK_OPTION(CHOICE, "precision", precision, .fallback = "auto", .aliases = "amp",
               .choices = STK_PRECISION_CHOICES,
               .help = "number format of the computation; auto is fp16 on a GPU and fp32 on a CPU"),
    STK_OPTION(CHOICE, "decode", decode, .fallback = "auto", .choices = STK_DECODE_CHOICES,
               .help = STK_DECODE_HELP),
    STK_OPTION(BOOL, "deterministic", deterministic, .fallback = "false",
               .help = "the same bits in every run on the same GPU, somewhat slower; on a CPU they "
                       "always are"),
};

const stk_option_table stk_predict_option_table =
    STK_OPTION_TABLE("Prediction", predict_options, stk_predict_options);

#undef FIELD
#define FIELD(name) offsetof(stk_lr_options, name)

static const stk_option lr_options[] = {
    STK_OPTION(INT, "steps", steps, .fallback = "100", STK_OPTION_RANGE(50, STK_LR_MOST_STEPS),
               .metavar = "N", .help = "steps from the lowest to the highest rate"),
};

const stk_option_table stk_lr_option_table =
    STK_OPTION_TABLE("Learning-rate test", lr_options, stk_lr_options);

#undef FIELD
#define FIELD(name) offsetof(stk_detach_options, name)

static const stk_option detach_options[] = {
    STK_OPTION(BOOL, "detach", detach, .fallback = "false", .momentary = true,
               .help = "return as soon as training has begun; it continues in the background, and "
                       "its output goes to log.txt in the run folder"),
};

const stk_option_table stk_detach_option_table =
    STK_OPTION_TABLE("Background", detach_options, stk_detach_options);

/* The tables of training: of train, plan, lr and doctor. */
#define TRAINING_TABLES                                                               \
    &stk_dataset_option_table, &stk_storage_option_table, &stk_job_option_table,      \
        &stk_train_option_table, &stk_loader_option_table, &stk_augment_option_table, \
        &stk_view_option_table, &stk_budget_option_table

static const stk_option_table *const train_tables[] = {
    TRAINING_TABLES, &stk_tools_option_table, &stk_detach_option_table, &stk_output_option_table};

static const stk_option_table *const plan_tables[] = {TRAINING_TABLES, &stk_tools_option_table,
                                                      &stk_output_option_table};

/* All that train has, so that one configuration file serves both. */
static const stk_option_table *const lr_tables[] = {
    &stk_lr_option_table, TRAINING_TABLES, &stk_tools_option_table, &stk_output_option_table};

/* The same for the doctor. */
static const stk_option_table *const doctor_tables[] = {&stk_doctor_option_table, TRAINING_TABLES,
                                                        &stk_output_option_table};

static const stk_option_table *const predict_tables[] = {
    &stk_predict_option_table, &stk_view_option_table,    &stk_budget_option_table,
    &stk_dataset_option_table, &stk_storage_option_table, &stk_output_option_table};

static const stk_option_table *const sample_tables[] = {&stk_sample_option_table,
                                                        &stk_output_option_table};

static const stk_option_table *const stage_tables[] = {
    &stk_dataset_option_table, &stk_stage_option_table, &stk_storage_option_table,
    &stk_output_option_table};

stk_status stk_options_for_train(stk_options **options, stk_error *err) {
    return stk_options_new(options, "train", train_tables, STK_COUNT(train_tables), err);
}

stk_status stk_options_for_lr(stk_options **options, stk_error *err) {
    return stk_options_new(options, "lr", lr_tables, STK_COUNT(lr_tables), err);
}

stk_status stk_options_for_doctor(stk_options **options, stk_error *err) {
    return stk_options_new(options, "doctor", doctor_tables, STK_COUNT(doctor_tables), err);
}

stk_status stk_options_for_plan(stk_options **options, stk_error *err) {
    return stk_options_new(options, "plan", plan_tables, STK_COUNT(plan_tables), err);
}

stk_status stk_options_for_predict(stk_options **options, stk_error *err) {
    return stk_options_new(options, "predict", predict_tables, STK_COUNT(predict_tables), err);
}

stk_status stk_options_for_sample(stk_options **options, stk_error *err) {
    return stk_options_new(options, "sample", sample_tables, STK_COUNT(sample_tables), err);
}

stk_status stk_options_for_stage(stk_options **options, stk_error *err) {
    return stk_options_new(options, "stage", stage_tables, STK_COUNT(stage_tables), err);
}
