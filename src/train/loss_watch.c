/* loss_watch.c - a moving mean of the loss and the limit that it must not pass. */
#include "train/loss_watch.h"

#include <math.h>

#define WEIGHT 0.05    /* of one step in the moving mean, once there are enough of them */
#define LEAST_STEPS 20 /* before that the mean is too young to judge by */
#define RISE 4.0       /* over the lowest mean */
#define GUESSES 2.0    /* times ln(classes), what guessing costs */
#define MARGIN 3.0
#define MOST_OF_LIMIT 2.0     /* what one step counts for at most */
#define ABSURD 10.0           /* times the limit, for an epoch */
#define ABSURD_VALIDATION 1e4 /* times the floor */

stk_loss_watch stk_loss_watch_new(int classes) {
    return (stk_loss_watch){.floor = GUESSES * log(classes) + MARGIN, .lowest = INFINITY};
}

static double limit_of(const stk_loss_watch *watch) {
    return fmax(RISE * watch->lowest, watch->floor);
}

bool stk_loss_watch_is_calm(const stk_loss_watch *watch) {
    return watch->steps == 0 || watch->smooth <= limit_of(watch);
}

stk_loss_verdict stk_loss_watch_add(stk_loss_watch *watch, double loss) {
    if (!isfinite(loss)) {
        return STK_LOSS_NOT_FINITE;
    }
    watch->steps++;
    if (watch->steps == 1) {
        watch->smooth = loss;
    } else {
        double limit = limit_of(watch);
        double counted = fmin(loss, MOST_OF_LIMIT * limit);
        double weight = fmax(WEIGHT, 1.0 / (double)watch->steps);
        watch->smooth += weight * (counted - watch->smooth);
        if (watch->steps > LEAST_STEPS && watch->smooth > limit) {
            return STK_LOSS_EXPLODED;
        }
    }
    watch->lowest = fmin(watch->lowest, watch->smooth);
    return STK_LOSS_FINE;
}

bool stk_loss_watch_is_absurd(const stk_loss_watch *watch, double train_loss) {
    return !stk_loss_watch_is_calm(watch) && train_loss > ABSURD * limit_of(watch);
}

bool stk_loss_watch_is_absurd_validation(const stk_loss_watch *watch, double val_loss) {
    return val_loss > ABSURD_VALIDATION * watch->floor;
}
