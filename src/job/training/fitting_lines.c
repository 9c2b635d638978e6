/* fitting_lines.c - what a run does with its time, in the words that people read. */
#include "job/training/fitting.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "job/training/folds.h"

/* A model that gets fewer epochs is hardly trained: from pretrained weights, and from scratch. */
#define HOPELESS_TUNE 1.0
#define HOPELESS_SCRATCH 4.0
#define FAIR_PART 3.0 /* times as many are a fair number */

typedef struct time_text {
    char text[96];
} time_text;

/* "there is time for 2.4 epochs". */
static time_text time_for(const stk_fit *fit, double epochs) {
    time_text result;
    if (epochs > 0) {
        snprintf(result.text, sizeof result.text, "there is time for %s%s",
                 fit->rehearsal.is_least ? "at most " : "",
                 stk_format_amount(epochs, 2, "epoch").text);
    } else {
        bool predicts = fit->facts.left_s > 0 && fit->facts.predict_s > 0;
        snprintf(result.text, sizeof result.text, "%s",
                 predicts ? "predicting alone takes the time" : "no time is left to train");
    }
    return result;
}

static void emit_size(const stk_job *job, const stk_fit *fit) {
    const stk_training_facts *facts = &fit->facts;
    const stk_training_choice *choice = &fit->choice;
    char what[96];
    char why[240];
    if (choice->img_size != facts->img_size) {
        snprintf(what, sizeof what, "img-size %d instead of %d", choice->img_size, facts->img_size);
        if (choice->img_size < facts->img_size) {
            snprintf(why, sizeof why, "at %d px %s, at %d px %s", facts->img_size,
                     time_for(fit, choice->epochs_full).text, choice->img_size,
                     time_for(fit, choice->epochs).text);
        } else {
            snprintf(why, sizeof why,
                     "there is time for %.0f epochs at %d px, and the pictures have the detail",
                     choice->epochs_full, facts->img_size);
        }
        stk_events_decision(&job->events, what, why);
    }
    if (choice->early_size > 0) {
        snprintf(what, sizeof what, "pictures of %d px in the first half of the time",
                 choice->early_size);
        snprintf(why, sizeof why, "from scratch many steps count first: about %s instead of %.2g",
                 stk_format_amount(choice->epochs, 2, "epoch").text, choice->epochs_full);
        stk_events_decision(&job->events, what, why);
    }
}

/* "1 validated model and 2 refits of about 24 epochs". */
static void emit_models(const stk_job *job, const stk_fit *fit) {
    const stk_training_facts *facts = &fit->facts;
    const stk_training_choice *choice = &fit->choice;
    char refits[64] = "";
    char what[128];
    char why[200];
    if (fit->models < 2 || isnan(facts->picture_s)) {
        return;
    }
    if (choice->refits > 0) {
        snprintf(refits, sizeof refits, " and %d refit%s on all pictures", choice->refits,
                 choice->refits == 1 ? "" : "s");
    }
    snprintf(what, sizeof what, "%d %s%s, about %.0f epochs each", facts->folds,
             facts->folds > 1 ? "folds" : "validated model", refits, choice->epochs);
    snprintf(why, sizeof why, "one model alone would get %.0f epochs over all %zu pictures",
             facts->left_s / (choice->picture_s * (double)facts->pictures), facts->pictures);
    stk_events_decision(&job->events, what, why);
    /* Observers count models from the first step on. */
    stk_event_plan plan = {.epochs = (int)fmax(floor(choice->epochs), 1),
                           .steps_per_epoch = stk_fold_steps(fit->train, job->recipe.batch),
                           .seconds_per_epoch = facts->left_s / (fit->models * choice->epochs),
                           .total_s = facts->left_s / fit->models,
                           .left_s = stk_run_clock_left(&job->clock),
                           .reserve_s = NAN,
                           .folds = facts->folds,
                           .refits = choice->refits};
    stk_events_plan(&job->events, &plan);
}

static void emit_val_part(const stk_job *job, const stk_fit *fit) {
    char what[64];
    char why[96];
    if (fit->choice.val_part < fit->facts.val_part) {
        double all = (double)fit->facts.pictures;
        snprintf(what, sizeof what, "%.0f %% of the pictures validate", 100 * fit->choice.val_part);
        snprintf(why, sizeof why, "the validated model trains on about %.0f of %.0f",
                 round(all * (1 - fit->choice.val_part)), all);
        stk_events_decision(&job->events, what, why);
    }
}

static void warn_hopeless(const stk_job *job, const stk_fit *fit) {
    const stk_training_facts *facts = &fit->facts;
    const stk_training_choice *choice = &fit->choice;
    double least = facts->pretrained ? HOPELESS_TUNE : HOPELESS_SCRATCH;
    double wanted = FAIR_PART * least;
    char faster[64] = "";
    char over[64] = "";
    if (choice->epochs >= least) {
        return;
    }
    if (isnan(facts->picture_s)) { /* then epochs are 0 only for want of time */
        stk_events_warning(&job->events,
                           "the budget is short: it was nearly over before a step was timed");
        return;
    }
    if (stk_options_source(job->options, "model") != STK_FROM_DEFAULT) {
        snprintf(faster, sizeof faster, " a faster --model than %s,", job->recipe.model->name);
    }
    double pictures = (double)facts->pictures * (1 - choice->val_part);
    if (choice->epochs > 0) {
        snprintf(over, sizeof over, " over %s",
                 stk_format_amount(round(pictures), 3, "picture").text);
    }
    double models_s =
        job->recipe.folds * (wanted * pictures * choice->picture_s + choice->predict_s);
    double need_s = stk_run_clock_elapsed(&job->clock) + models_s / STK_FIT_TRAINING_SHARE;
    stk_events_warning(&job->events,
                       "the budget is short: at %d px %s%s; for %.0f epochs give a --budget of %s "
                       "%s,%s or --per-class for fewer pictures",
                       choice->img_size, time_for(fit, choice->epochs).text, over, wanted,
                       fit->rehearsal.is_least ? "more than" : "about",
                       stk_format_span(need_s).text, faster);
}

void stk_job_emit_fit(const stk_job *job, const stk_fit *fit) {
    int asked = stk_recipe_models(&job->recipe);
    if (!fit->done) {
        return;
    }
    if (stk_model_search_is_open(&job->models)) {
        stk_model_search_emit(&job->models, &fit->model,
                              stk_opened_device_is_cpu(&job->network.opened), &job->events);
    }
    emit_size(job, fit);
    if (fit->models < asked) {
        stk_time_plan_emit_folds(&job->recipe, &fit->fewer, true, &job->events);
    } else {
        emit_models(job, fit);
    }
    emit_val_part(job, fit);
    warn_hopeless(job, fit);
}
