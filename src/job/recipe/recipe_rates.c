/* recipe_rates.c - the learning rates of a recipe: given ones, or those of the table. */
#include "job/recipe/recipe_rates.h"

#include <math.h>

static stk_rate_facts rate_facts(const stk_recipe *recipe, size_t train_count) {
    /* An update never spans epochs: it accumulates at most the batches of one epoch. */
    size_t batches = train_count / recipe->batch > 0 ? train_count / recipe->batch : 1;
    double steps = fmin((double)recipe->train.accumulate, (double)batches);
    return (stk_rate_facts){.optimizer = (stk_optimizer)recipe->train.optimizer,
                            .pretrained = recipe->weights != NULL,
                            .images = (double)recipe->batch * steps,
                            .updates = (double)batches / steps * recipe->epochs_expected,
                            .kept_stats = recipe->train.norm_stats == STK_NORM_STATS_KEPT};
}

double stk_recipe_default_lr(const stk_recipe *recipe, size_t train_count) {
    stk_rate_facts facts = rate_facts(recipe, train_count);
    return stk_as_shown(stk_recipe_rate(&facts));
}

static stk_status scale_head_rate(stk_recipe *recipe, stk_options *options, double scale,
                                  stk_error *err) {
    double *rate = &recipe->train.head_lr;
    if (stk_is_auto_double(*rate) || scale == 1) {
        return STK_OK;
    }
    *rate = stk_as_shown(*rate * scale);
    return stk_options_resolve_number(options, "head-lr", *rate, "scaled with the batch", err);
}

/* The head's own rate; "auto" where it is that of the rest. */
static stk_status take_head_rate(stk_recipe *recipe, stk_options *options,
                                 const stk_rate_facts *facts, bool to_be_measured, stk_error *err) {
    double rate = stk_as_shown(stk_recipe_head_rate(facts));
    bool own = rate != recipe->lr;
    recipe->train.head_lr = own ? rate : STK_AUTO_DOUBLE;
    if (to_be_measured) {
        return STK_OK;
    }
    return own ? stk_options_resolve_number(options, "head-lr", rate, "auto", err)
               : stk_options_resolve(options, "head-lr", "auto", "auto", err);
}

static stk_status take_default_rates(stk_recipe *recipe, stk_options *options, double scale,
                                     size_t train_count, bool to_be_measured, stk_error *err) {
    stk_rate_facts facts = rate_facts(recipe, train_count);
    bool given = !stk_is_auto_double(recipe->train.head_lr);
    recipe->lr = stk_as_shown(stk_recipe_rate(&facts));
    stk_status status = facts.kept_stats && !given
                            ? take_head_rate(recipe, options, &facts, to_be_measured, err)
                            : scale_head_rate(recipe, options, scale, err);
    return status == STK_OK && !to_be_measured
               ? stk_options_resolve_number(options, "lr", recipe->lr, "default", err)
               : status;
}

stk_status stk_recipe_choose_rates(stk_recipe *recipe, stk_options *options, double scale,
                                   size_t train_count, bool to_be_measured, stk_error *err) {
    stk_train_options *train = &recipe->train;
    stk_status status = STK_OK;
    recipe->lr = train->lr;
    if (stk_is_default_double(train->lr)) {
        return take_default_rates(recipe, options, scale, train_count, to_be_measured, err);
    }
    if (!stk_is_auto_double(train->lr) && scale != 1) {
        recipe->lr = stk_as_shown(train->lr * scale);
        status =
            stk_options_resolve_number(options, "lr", recipe->lr, "scaled with the batch", err);
    }
    return status == STK_OK ? scale_head_rate(recipe, options, scale, err) : status;
}
