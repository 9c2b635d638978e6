/* job_options.c - options of whole runs, and which tables each verb has. */
#include "job/recipe/job_options.h"

#include "backend/opened_device.h"
#include "budget/budget.h"
#include "dataset/dataset.h"
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
    {.name = "model",
     .aliases = "model_name",
     .type = STK_OPTION_TEXT,
     .offset = FIELD(model),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "NAME",
     .help = "network: " STK_MODEL_NAMES "; timm's tags are accepted"},
    {.name = "pretrained",
     .type = STK_OPTION_TEXT,
     .offset = FIELD(pretrained),
     .metavar = "FILE|NAME",
     .help = "weights to start from: a safetensors file, or a timm name that is looked for on this "
             "machine; true: the model's own"},
    {.name = "img-size",
     .aliases = "image_size",
     .type = STK_OPTION_INT,
     .offset = FIELD(img_size),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 8,
     .max = 2048,
     .metavar = "PX",
     .help = "side of the square that the network sees"},
    {.name = "dropout",
     .type = STK_OPTION_DOUBLE,
     .offset = FIELD(dropout),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 0,
     .max = 0.9,
     .metavar = "SHARE",
     .help =
         "share of the numbers before the classifier that is set to 0 in training; auto: as the "
         "model's original was trained"},
    {.name = "drop-path",
     .type = STK_OPTION_DOUBLE,
     .offset = FIELD(drop_path),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 0,
     .max = 0.9,
     .metavar = "SHARE",
     .help =
         "stochastic depth: how often the last block is skipped in training, earlier ones less; "
         "auto: as the model's original was trained"},
    {.name = "folds",
     .aliases = "cv_folds n_folds",
     .type = STK_OPTION_INT,
     .offset = FIELD(folds),
     .fallback = "1",
     .min = 1,
     .max = STK_MOST_FOLDS,
     .metavar = "N",
     .help = "cross-validation: train N models on stratified folds and average them"},
    {.name = "device",
     .may_change = true,
     .type = STK_OPTION_TEXT,
     .offset = FIELD(device),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "cpu|cuda[:N]",
     .help = "where to compute"},
    {.name = "assume-memory",
     .may_change = true,
     .type = STK_OPTION_BYTES,
     .offset = FIELD(assume_memory),
     .fallback = "0",
     .metavar = "SIZE",
     .help = STK_ASSUME_MEMORY_HELP},
    {.name = "precision",
     .aliases = "amp",
     .type = STK_OPTION_CHOICE,
     .offset = FIELD(precision),
     .fallback = "auto",
     .choices = STK_PRECISION_CHOICES,
     .help = "number format of the computation; auto is fp16 on a GPU and fp32 on a CPU, fp32 "
             "allows TF32, fp32-strict does not"},
    {.name = "deterministic",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(deterministic),
     .fallback = "false",
     .help =
         "the same bits in every run on the same GPU, somewhat slower; on a CPU they always are"},
    {.name = "compile",
     .aliases = "compile_model",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(compile),
     .fallback = "true",
     .help = "compute layers together where the device can; --no-compile goes layer by layer, to "
             "compare"},
    {.name = "seed",
     .type = STK_OPTION_INT,
     .offset = FIELD(seed),
     .fallback = "0",
     .min = 0,
     .max = 9e15,
     .metavar = "N",
     .help = "what every random choice derives from"},
    {.name = "out",
     .type = STK_OPTION_TEXT,
     .offset = FIELD(out),
     .metavar = "DIR",
     .help = "the run folder itself; an earlier run in it is moved aside"},
    {.name = "name",
     .aliases = "wandb_name",
     .type = STK_OPTION_TEXT,
     .offset = FIELD(name),
     .metavar = "NAME",
     .help = "without --out the run folder is runs/NAME, numbered when taken; without --name it is "
             "called after the verb"},
    {.name = "resume",
     .momentary = true,
     .type = STK_OPTION_TEXT,
     .offset = FIELD(resume),
     .metavar = "RUN",
     .help = "continue the training of this run folder, in that folder and with its options"},
    {.name = "save-every",
     .may_change = true,
     .type = STK_OPTION_DURATION,
     .offset = FIELD(save_every_s),
     .fallback = "5m",
     .min = 0,
     .max = 1e9,
     .metavar = "T",
     .help = "how often the state for --resume is saved within an epoch; it is always saved after "
             "an epoch"},
    {.name = "tune",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(tune),
     .fallback = "false",
     .help = "while training waits for pictures, try more workers, more batches ahead and a cache "
             "in memory, one at a time, and keep what makes it faster"},
    {.name = "no-wandb",
     .type = STK_OPTION_BOOL,
     .noted = true,
     .help = "accepted, without effect"},
    {.name = "wandb-project",
     .type = STK_OPTION_TEXT,
     .noted = true,
     .metavar = "NAME",
     .help = "accepted, without effect"},
    {.name = "pin-memory",
     .type = STK_OPTION_BOOL,
     .noted = true,
     .help = "accepted, without effect: memory is pinned where a device needs it"},
    {.name = "persistent-workers",
     .type = STK_OPTION_BOOL,
     .noted = true,
     .help = "accepted, without effect: workers always persist"},
};

const stk_option_table stk_job_option_table = STK_OPTION_TABLE("Run", job_options, stk_job_options);

static const stk_option predict_options[] = {
    {.name = "run",
     .type = STK_OPTION_LIST,
     .offset = offsetof(stk_predict_options, runs),
     .metavar = "DIR",
     .help = "run folder whose models predict; given more than once, the models of all of them are "
             "averaged"},
    {.name = "out",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_predict_options, out),
     .metavar = "FILE",
     .help = "file, pipe or device to write to; otherwise submission.csv in the run folder, or "
             "predictions.csv there when --data names other images; of several runs a new file "
             "of that name in the current folder"},
    {.name = "vote",
     .type = STK_OPTION_CHOICE,
     .offset = offsetof(stk_predict_options, vote),
     .fallback = "equal",
     .choices = "equal score",
     .help = "how models count in the average: all the same, or by how far their validation "
             "accuracy is above guessing"},
    {.name = "device",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_predict_options, device),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "cpu|cuda[:N]",
     .help = "where to compute"},
    {.name = "precision",
     .aliases = "amp",
     .type = STK_OPTION_CHOICE,
     .offset = offsetof(stk_predict_options, precision),
     .fallback = "auto",
     .choices = STK_PRECISION_CHOICES,
     .help = "number format of the computation; auto is fp16 on a GPU and fp32 on a CPU"},
    {.name = "deterministic",
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_predict_options, deterministic),
     .fallback = "false",
     .help =
         "the same bits in every run on the same GPU, somewhat slower; on a CPU they always are"},
};

const stk_option_table stk_predict_option_table =
    STK_OPTION_TABLE("Prediction", predict_options, stk_predict_options);

static const stk_option lr_options[] = {
    {.name = "steps",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_lr_options, steps),
     .fallback = "100",
     .min = 50,
     .max = STK_LR_MOST_STEPS,
     .metavar = "N",
     .help = "steps from the lowest to the highest rate"},
};

const stk_option_table stk_lr_option_table =
    STK_OPTION_TABLE("Learning-rate test", lr_options, stk_lr_options);

static const stk_option detach_options[] = {
    {.name = "detach",
     .momentary = true,
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_detach_options, detach),
     .fallback = "false",
     .help = "return as soon as training has begun; it continues in the background, and its output "
             "goes to log.txt in the run folder"},
};

const stk_option_table stk_detach_option_table =
    STK_OPTION_TABLE("Background", detach_options, stk_detach_options);

static const stk_option_table *const train_tables[] = {
    &stk_dataset_option_table, &stk_storage_option_table, &stk_job_option_table,
    &stk_train_option_table,   &stk_loader_option_table,  &stk_augment_option_table,
    &stk_view_option_table,    &stk_budget_option_table,  &stk_tools_option_table,
    &stk_detach_option_table,  &stk_output_option_table,
};

static const stk_option_table *const plan_tables[] = {
    &stk_dataset_option_table, &stk_storage_option_table, &stk_job_option_table,
    &stk_train_option_table,   &stk_loader_option_table,  &stk_augment_option_table,
    &stk_view_option_table,    &stk_budget_option_table,  &stk_tools_option_table,
    &stk_output_option_table,
};

/* All that train has, so that one configuration file serves both. */
static const stk_option_table *const lr_tables[] = {
    &stk_lr_option_table,      &stk_dataset_option_table, &stk_storage_option_table,
    &stk_job_option_table,     &stk_train_option_table,   &stk_loader_option_table,
    &stk_augment_option_table, &stk_view_option_table,    &stk_budget_option_table,
    &stk_tools_option_table,   &stk_output_option_table,
};

/* The same for the doctor. */
static const stk_option_table *const doctor_tables[] = {
    &stk_doctor_option_table,  &stk_dataset_option_table, &stk_storage_option_table,
    &stk_job_option_table,     &stk_train_option_table,   &stk_loader_option_table,
    &stk_augment_option_table, &stk_view_option_table,    &stk_budget_option_table,
    &stk_output_option_table,
};

static const stk_option_table *const predict_tables[] = {
    &stk_predict_option_table, &stk_view_option_table,    &stk_budget_option_table,
    &stk_dataset_option_table, &stk_storage_option_table, &stk_output_option_table,
};

static const stk_option_table *const sample_tables[] = {
    &stk_sample_option_table,
    &stk_output_option_table,
};

static const stk_option_table *const stage_tables[] = {
    &stk_dataset_option_table,
    &stk_stage_option_table,
    &stk_storage_option_table,
    &stk_output_option_table,
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

stk_status stk_options_for_train(stk_options **options, stk_error *err) {
    return stk_options_new(options, "train", train_tables, COUNT(train_tables), err);
}

stk_status stk_options_for_lr(stk_options **options, stk_error *err) {
    return stk_options_new(options, "lr", lr_tables, COUNT(lr_tables), err);
}

stk_status stk_options_for_doctor(stk_options **options, stk_error *err) {
    return stk_options_new(options, "doctor", doctor_tables, COUNT(doctor_tables), err);
}

stk_status stk_options_for_plan(stk_options **options, stk_error *err) {
    return stk_options_new(options, "plan", plan_tables, COUNT(plan_tables), err);
}

stk_status stk_options_for_predict(stk_options **options, stk_error *err) {
    return stk_options_new(options, "predict", predict_tables, COUNT(predict_tables), err);
}

stk_status stk_options_for_sample(stk_options **options, stk_error *err) {
    return stk_options_new(options, "sample", sample_tables, COUNT(sample_tables), err);
}

stk_status stk_options_for_stage(stk_options **options, stk_error *err) {
    return stk_options_new(options, "stage", stage_tables, COUNT(stage_tables), err);
}
