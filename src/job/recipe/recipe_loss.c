/* recipe_loss.c - the table of losses: what each is called, what it is for, its numbers. */
#include "job/recipe/recipe_loss.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* What a loss is for. */
enum { CLASSES = 1, LABELS = 2, NUMBERS = 4, STEPS = 8 };

/* Errors beyond so many standard deviations of the targets count linearly in Huber's loss. */
#define HUBER_DELTA 0.5f

/* Weights of --positive-weight auto are within 1 / MOST_WEIGHT and MOST_WEIGHT: of a label with one
 * positive in a thousand the weighted loss would be little but noise. */
#define MOST_WEIGHT 20.0

/* In the order of stk_loss_choice. Focal as Lin et al. (2017) have it, without their balancing
 * factor; asymmetric as Ridnik et al. (2021) do. */
static const struct {
    const char *name;
    unsigned is_for;
    stk_loss loss;
} losses[] = {
    {"auto", CLASSES | LABELS | NUMBERS | STEPS, {.kind = STK_LOSS_SOFTMAX}},
    {"ce", CLASSES | STEPS, {.kind = STK_LOSS_SOFTMAX}},
    {"bce", LABELS | NUMBERS, {.kind = STK_LOSS_SIGMOID}},
    {"focal", LABELS, {.kind = STK_LOSS_SIGMOID, .gamma_pos = 2, .gamma_neg = 2}},
    {"asymmetric", LABELS, {.kind = STK_LOSS_SIGMOID, .gamma_neg = 4, .margin = 0.05f}},
    {"mse", NUMBERS | STEPS, {.kind = STK_LOSS_SQUARED}}, /* of steps STK_LOSS_STEPS */
    {"mae", NUMBERS, {.kind = STK_LOSS_ABSOLUTE}},
    {"huber", NUMBERS, {.kind = STK_LOSS_HUBER, .huber_delta = HUBER_DELTA}},
};

static unsigned wanted_for(stk_task task) {
    return task == STK_TASK_MULTILABEL   ? LABELS
           : task == STK_TASK_REGRESSION ? NUMBERS
           : task == STK_TASK_ORDINAL    ? STEPS
                                         : CLASSES;
}

stk_loss_choice stk_recipe_loss_choice(const stk_recipe *recipe) {
    if (recipe->task == STK_TASK_AUTO) {
        return STK_LOSS_CHOICE_CE;
    }
    if (recipe->train.loss != STK_LOSS_CHOICE_AUTO) {
        return (stk_loss_choice)recipe->train.loss;
    }
    switch (wanted_for(recipe->task)) {
    case LABELS:
        return STK_LOSS_CHOICE_BCE;
    case NUMBERS:
        return recipe->train.metric == STK_METRIC_MAE ? STK_LOSS_CHOICE_HUBER : STK_LOSS_CHOICE_MSE;
    case STEPS: /* kappa counts squared distances */
        return recipe->train.metric == STK_METRIC_QWK ? STK_LOSS_CHOICE_MSE : STK_LOSS_CHOICE_CE;
    default:
        return STK_LOSS_CHOICE_CE;
    }
}

stk_loss stk_recipe_loss(const stk_recipe *recipe) {
    stk_loss loss = losses[stk_recipe_loss_choice(recipe)].loss;
    if (loss.kind == STK_LOSS_SQUARED && wanted_for(recipe->task) == STEPS) {
        loss.kind = STK_LOSS_STEPS;
    }
    loss.positive_weights = recipe->positive_weights;
    return loss;
}

/* "bce, focal, asymmetric" */
static stk_status refuse(stk_loss_choice choice, stk_task task, stk_error *err) {
    stk_str names = {0};
    for (size_t i = STK_LOSS_CHOICE_CE; i < STK_COUNT(losses); i++) {
        if ((losses[i].is_for & wanted_for(task)) != 0) {
            stk_str_appendf(&names, "%s%s", names.length > 0 ? ", " : "", losses[i].name);
        }
    }
    stk_status status =
        STK_FAIL(err, STK_ERR_USAGE,
                 "--loss %s does not go with the task %s, which is learned with one "
                 "of these: %s",
                 losses[choice].name, stk_task_name(task), stk_str_text(&names));
    stk_str_free(&names);
    return status;
}

stk_status stk_recipe_take_loss(const stk_recipe *recipe, stk_options *options, stk_error *err) {
    stk_loss_choice choice = stk_recipe_loss_choice(recipe);
    if ((losses[choice].is_for & wanted_for(recipe->task)) == 0) {
        return refuse(choice, recipe->task, err);
    }
    if (recipe->train.positive_weight != 1 && recipe->task != STK_TASK_MULTILABEL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--positive-weight is for several labels, and the task is %s; leave it out",
                        stk_task_name(recipe->task));
    }
    return recipe->train.loss == STK_LOSS_CHOICE_AUTO
               ? stk_options_resolve(options, "loss", losses[choice].name, "auto", err)
               : STK_OK;
}

stk_status stk_recipe_weigh_positives(const stk_recipe *recipe, const stk_targets *targets,
                                      float **weights, stk_error *err) {
    double given = recipe->train.positive_weight;
    size_t count = (size_t)targets->outputs;
    *weights = NULL;
    if (given == 1) {
        return STK_OK;
    }
    double *shares = stk_mem_new(count, sizeof *shares);
    float *made = stk_mem_new(count, sizeof *made);
    if (shares == NULL || made == NULL) {
        stk_mem_free(shares);
        stk_mem_free(made);
        return STK_FAIL_MEMORY(err, "the weights of labels");
    }
    stk_targets_means(targets, shares);
    for (size_t k = 0; k < count; k++) {
        double own = (1 - shares[k]) / shares[k]; /* infinite for a label that never holds */
        own = fmin(fmax(own, 1 / MOST_WEIGHT), MOST_WEIGHT);
        made[k] = (float)(stk_is_auto_double(given) ? own : given);
    }
    stk_mem_free(shares);
    *weights = made;
    return STK_OK;
}
