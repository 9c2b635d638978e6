/* train_options.c - the options of training. */
#include "train/train.h"

#define FIELD(name) offsetof(stk_train_options, name)

static const stk_option options[] = {
    STK_OPTION(
        INT, "epochs", epochs, STK_OPTION_AUTO, STK_OPTION_RANGE(1, 100000), .may_change = true,
        .aliases = "max_epochs", .metavar = "N",
        .help =
            "passes over the training set; auto is 20, or what the budget allows, at most 1000"),
    STK_OPTION(INT, "batch", batch, STK_OPTION_AUTO, STK_OPTION_RANGE(1, 1000000),
               .aliases = "batch_size", .metavar = "N",
               .help = "images per step; auto: as --batch-policy says. What does not fit into the "
                       "memory is divided into steps whose gradients are added up"),
    STK_OPTION(CHOICE, "batch-policy", batch_policy, .fallback = "speed", .choices = "speed fill",
               .help =
                   "how --batch auto chooses: speed is the smallest batch within 3 % of the best "
                   "images/s, measured (on a CPU a rule instead; from pretrained weights it begins "
                   "with 16, 32 or 64 by the number of pictures); fill is the largest that fits "
                   "into 85 % of the memory. Otherwise an epoch has 15 steps where that can be"),
    STK_OPTION(
        DOUBLE, "lr", lr, .fallback = "default", STK_OPTION_RANGE(0, 100), .may_be_auto = true,
        .may_be_default = true, .aliases = "learning_rate", .metavar = "X",
        .help = "highest learning rate, used as given; default: by the start, the images of an "
                "update and the number of updates (docs/recipes.md); auto: found by the test of "
                "`stoker lr` before training"),
    STK_OPTION(CHOICE, "optimizer", optimizer, .fallback = "auto", .aliases = "opt",
               .choices = "sgd adamw auto",
               .help = "what moves the weights; auto: as the recipe says"),
    STK_OPTION(CHOICE, "schedule", schedule, .fallback = "cosine",
               .aliases = "scheduler lr_scheduler sched", .choices = "cosine linear step constant",
               .help =
                   "how the learning rate goes on after the warm-up: down to 0 along a cosine or a "
                   "line, to a tenth at 30, 60 and 90 % of the training each, or not at all"),
    STK_OPTION(DOUBLE, "warmup", warmup, .fallback = "0.05", STK_OPTION_RANGE(0, 0.9),
               .metavar = "X",
               .help = "share of the training during which the learning rate rises"),
    STK_OPTION(DOUBLE, "momentum", momentum, .fallback = "0.9", STK_OPTION_RANGE(0, 0.9999),
               .aliases = "beta1", .metavar = "X", .help = "momentum of sgd, beta1 of adamw"),
    STK_OPTION(BOOL, "nesterov", nesterov, .fallback = "true", .help = "Nesterov's momentum (sgd)"),
    STK_OPTION(DOUBLE, "beta2", beta2, .fallback = "0.999", STK_OPTION_RANGE(0, 0.999999),
               .metavar = "X", .help = "beta2 of adamw"),
    STK_OPTION(DOUBLE, "weight-decay", weight_decay, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 1),
               .aliases = "wd", .metavar = "X",
               .help = "weight decay, not applied to norms and biases; auto: as the recipe says"),
    STK_OPTION(
        DOUBLE, "head-lr", head_lr, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 100), .aliases = "lr_head",
        .metavar = "X",
        .help =
            "highest learning rate of the classifier; auto is --lr, or with the default rate as "
            "the recipe says"),
    STK_OPTION(DOUBLE, "backbone-lr-scale", backbone_lr_scale, .fallback = "1",
               STK_OPTION_RANGE(0, 100), .aliases = "backbone_lr_mult backbone_lr_factor",
               .metavar = "X", .help = "factor on --lr for all layers but the classifier"),
    STK_OPTION(INT, "freeze-epochs", freeze_epochs, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 100000),
               .aliases = "freeze_backbone_epochs", .metavar = "N",
               .help = "epochs at the beginning in which only the classifier learns; auto: as the "
                       "recipe says"),
    STK_OPTION(
        CHOICE, "norm-stats", norm_stats, .fallback = "auto", .choices = "auto batch kept",
        .help =
            "mean and deviation that batch norms use in training: those of the batch, or "
            "those that came with the pretrained weights, kept as they are; auto: as "
            "the recipe says, and batch where --lr (also auto) or --backbone-lr-scale is given"),
    STK_OPTION(
        DOUBLE, "clip-grad", clip_grad, .fallback = "0", STK_OPTION_RANGE(0, 1e9),
        .aliases = "clip_grad_norm gradient_clip_val max_grad_norm", .metavar = "X",
        .help = "greatest norm of all gradients together; larger ones are scaled down; 0 is off"),
    STK_OPTION(DOUBLE, "ema", ema, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 0.999999),
               .aliases = "model_ema_decay ema_decay", .metavar = "X",
               .help = "decay of a moving average of the weights, which validation, checkpoints "
                       "and predictions then use; 0 is off; auto: as the recipe says"),
    STK_OPTION(CHOICE, "loss", loss, .fallback = "auto", .aliases = "loss_fn criterion",
               .choices = "auto ce bce focal asymmetric mse mae huber",
               .help = "what is made small (docs/training.md): ce for classes, of steps of a "
                       "scale also mse; bce, focal or asymmetric for several labels; mse, mae, "
                       "huber or bce for numbers; auto: ce, of steps with --metric qwk mse; bce; "
                       "and for numbers mse, or huber with --metric mae"),
    STK_OPTION(DOUBLE, "positive-weight", positive_weight, .fallback = "1",
               STK_OPTION_RANGE(0.001, 1000), .may_be_auto = true, .aliases = "pos_weight",
               .metavar = "X",
               .help = "several labels: so many times as much as one that does not hold counts a "
                       "label that holds; auto: as many times as it is rarer, 20 at most"),
    STK_OPTION(DOUBLE, "label-smoothing", label_smoothing, STK_OPTION_AUTO,
               STK_OPTION_RANGE(0, 0.9), .metavar = "X",
               .help = "share of each target that is spread over all classes; auto: as the recipe "
                       "says"),
    STK_OPTION(INT, "accumulate", accumulate, .fallback = "1",
               STK_OPTION_RANGE(1, STK_MOST_ACCUMULATE), .aliases = "accumulation_steps",
               .metavar = "N",
               .help = "batches whose gradients are added up before the weights move"),
    STK_OPTION(INT, "patience", patience, .fallback = "0", STK_OPTION_RANGE(0, 100000),
               .may_be_auto = true, .may_change = true, .metavar = "N",
               .help = "stop after that many epochs without a better one; 0 and auto never do: a "
                       "rate that falls to zero makes the last epochs the best"),
    STK_OPTION(DOUBLE, "mixup", mixup, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 100),
               .aliases = "mixup_alpha", .metavar = "A",
               .help = "mixup strength (the Beta distribution's parameter); 0 is off; auto: as the "
                       "recipe says"),
    STK_OPTION(DOUBLE, "cutmix", cutmix, .fallback = "0", STK_OPTION_RANGE(0, 100),
               .aliases = "cutmix_alpha", .metavar = "A",
               .help = "CutMix strength; 0 is off; with mixup every batch gets one of the two"),
    STK_OPTION(CHOICE, "metric", metric, .fallback = "auto", .choices = STK_METRIC_NAMES,
               .help =
                   "what picks the best weights, ends the patience, and decides what is written "
                   "(docs/metrics.md, docs/tasks.md); auto: what the description names, or the "
                   "usual one of the task"),
    STK_OPTION(BOOL, "calibrate", calibrate, .fallback = "true",
               .help =
                   "with every best epoch, fit a temperature for the probabilities and, where the "
                   "metric has one, a rule for the answers to the validation pictures"),
    STK_OPTION(BOOL, "class-means", class_means, .fallback = "true",
               .help =
                   "where most classes have few pictures, the best weights' head takes the mean "
                   "features of each class's pictures as far as the validation gets better"),
    STK_OPTION(CHOICE, "pool", pool, .fallback = "auto", .choices = STK_POOL_NAMES,
               .help = "what a row of several pictures gets: the mean of their probabilities, or "
                       "the largest one of each class; auto: max where it is clearly better on "
                       "the validation, as far as the training pictures have such rows"),
};

const stk_option_table stk_train_option_table =
    STK_OPTION_TABLE("Training", options, stk_train_options);
