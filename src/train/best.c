/* best.c - which epoch is the best, and since when no better one has come. */
#include "train/trainer.h"

#include <math.h>

/*
 * One standard error of a share of so many pictures or rows, in the metric's unit: two validations
 * whose metrics differ by less cannot be told apart by them. 0 for losses, which have their own
 * noise.
 */
static double noise_of(stk_metric metric, const stk_event_epoch *best, size_t count) {
    double share = best->val_acc1 / 100;
    double error = sqrt(share * (1 - share) / (double)count);
    const stk_metric_info *info = stk_metric_info_of(metric);
    return isnan(error) ? 0 : info->percent ? 100 * error : info->is_loss ? 0 : error;
}

/* How much better a metric is than the highest so far; NaN where one of them is not defined, or
 * where the one is that of plain answers and the other may be that of a rule's. */
static double gain_of(const stk_trainer *t, double metric) {
    double more = t->rated_plainly ? NAN : metric - t->top_metric;
    return stk_metric_is_loss((stk_metric)t->config->options->metric) ? -more : more;
}

/*
 * Among metrics that are equal to the highest within its noise the latest is taken: the learning
 * rate falls, and on few pictures an early epoch has the highest metric by chance. Under a constant
 * rate, and where the metric is not defined (an AUC with one class), the loss decides.
 */
static bool is_better(const stk_trainer *t, const stk_event_epoch *epoch) {
    const stk_train_result *r = t->result;
    const stk_train_options *o = t->config->options;
    if (!r->has_best || t->val_metrics.count == 0) {
        return true;
    }
    double gain = gain_of(t, epoch->val_metric);
    bool later = o->schedule != STK_SCHEDULE_CONSTANT && !isnan(gain);
    bool equal = !(gain < -noise_of((stk_metric)o->metric, &r->best, stk_trainer_val_scored(t)));
    return gain > 0 || (equal && (later || !(epoch->val_loss >= r->best.val_loss)));
}

bool stk_trainer_is_best(const stk_trainer *t, const stk_event_epoch *epoch) {
    bool by_loss = stk_metric_is_loss((stk_metric)t->config->options->metric);
    if (t->result->has_best && t->val_part && stk_same_pictures_shared(&t->same) > 0) {
        return !stk_same_pictures_is_worse(&t->same, by_loss);
    }
    return is_better(t, epoch);
}

/* Counts an epoch once, even if a part of it was validated before the rest was trained. */
static void count_patience(stk_trainer *t, bool gained) {
    if (gained || t->top_epoch == t->standing.epoch) {
        t->since_best = 0;
    } else if (!t->epoch_counted) {
        t->since_best++;
    }
}

void stk_trainer_note_gain(stk_trainer *t, bool best, double metric) {
    double gain = gain_of(t, metric);
    bool gained = best && (t->top_epoch == 0 || gain > 0 || isnan(gain));
    count_patience(t, gained);
    if (gained) {
        t->top_metric = metric;
        t->top_epoch = t->standing.epoch;
    }
}
