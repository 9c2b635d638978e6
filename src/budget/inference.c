/* inference.c - estimates from validations or, before the first, from training steps. */
#include "budget/inference.h"

#include <math.h>

#include "budget/prediction_choice.h"

/* A training that waits for pictures for more than this share of its time is bound by them, and so
 * is inference: a picture then takes as long as in training. */
#define WAITS 0.1

/* Without a validation set: so many times what steps let one expect. */
#define UNSURE 2.0

/* Share of the budget up to which a first view may take longer than the last validations say: with
 * the third that the reserve has beyond it, this is the 15 % kept before anything was measured. */
#define CARE_SHARE 0.11

/* A validation's speed is known after one TELLING_PARTth of its pictures. Ending it early
 * matters while the pictures still to be validated are at least such a part of the test pictures.
 */
#define TELLING_PART 8

/* Batches after the first that must have been timed. */
#define TELLING_BATCHES 2

void stk_validations_note(stk_validations *past, double val_s, double even_s, double step_s) {
    int at = past->count++ % STK_VALIDATIONS_KEPT;
    past->val_s[at] = val_s;
    past->step_s[at] = step_s;
    past->even_s = even_s;
}

/* A single validation has no others to compare with: its slowest batch is evened out instead. */
double stk_validations_now(const stk_validations *past, double step_s) {
    double now_s[STK_VALIDATIONS_KEPT];
    int count = past->count < STK_VALIDATIONS_KEPT ? past->count : STK_VALIDATIONS_KEPT;
    for (int i = 0; i < count; i++) {
        double val_s = count == 1 ? past->even_s : past->val_s[i];
        now_s[i] = val_s * fmax(step_s / past->step_s[i], 1); /* fmax gives 1 if step_s is NaN */
    }
    return stk_typical_of(now_s, count);
}

static double picture_seconds(const stk_inference_facts *f) {
    if (f->val_images > 0 && !isnan(f->val_s)) {
        return f->val_s / (double)f->val_images;
    }
    double part = f->wait_s > WAITS * f->step_s ? 1 : STK_INFERENCE_PART * f->pixels;
    return part * f->step_s / (double)f->batch;
}

/* Seconds of the first view, whose pictures nobody has read yet. */
static double first_view(const stk_inference_facts *f, double view_s) {
    double care_s = f->val_images > 0 ? view_s : UNSURE * view_s;
    care_s = fmax(care_s, f->unread_s * (double)f->test_images); /* fmax ignores NaN */
    /* fmin ignores the NaN of a missing budget. */
    return fmax(view_s, fmin(care_s, CARE_SHARE * f->budget_s));
}

stk_inference stk_inference_estimate(const stk_inference_facts *f) {
    double picture_s = picture_seconds(f);
    double view_s = f->test_images > 0 ? picture_s * (double)f->test_images : 0;
    double first_s = isnan(view_s) ? NAN : first_view(f, view_s);
    stk_view_facts facts = {.budget_s = f->budget_s,
                            .view_s = view_s,
                            .all_s = picture_s * (double)f->predicted,
                            .views = f->views,
                            .least_views = f->least_views};
    int views = stk_views_in_reserve(&facts);
    return (stk_inference){.picture_s = picture_s,
                           .val_s = f->val_images > 0 ? picture_s * (double)f->val_images : 0,
                           .view_s = view_s,
                           .views = views,
                           .predict_s = first_s + (views - 1) * view_s,
                           .timed = f->test_images == 0 ||
                                    !isnan(f->val_images > 0 ? f->val_s : view_s)};
}

static void note_batch(stk_inference_watch *watch, size_t seen, double seconds) {
    if (watch->first == 0) {
        watch->first = seen;
        watch->first_s = seconds;
    } else {
        watch->picture_s.room = STK_TYPICAL_MOST;
        stk_typical_note(&watch->picture_s,
                         (seconds - watch->seen_s) / (double)(seen - watch->seen));
    }
    watch->seen = seen;
    watch->seen_s = seconds;
}

double stk_inference_look(stk_inference_watch *watch, size_t seen, double seconds) {
    if (seen > watch->seen) {
        note_batch(watch, seen, seconds);
    }
    bool tells = watch->picture_s.count >= TELLING_BATCHES &&
                 seen - watch->first >= watch->images / TELLING_PART;
    bool matters = (watch->images - seen) * TELLING_PART >= watch->test_images;
    return tells && matters ? stk_typical_value(&watch->picture_s) : NAN;
}
