/* model_choice.c - quality against the epochs that fit. */
#include "budget/model_choice.h"

#include <math.h>

/* Epochs over all pictures, or pictures seen, with which a pretrained model has learned most of
 * what it will. With fewer a smaller model learns more in the same time. */
#define ENOUGH_EPOCHS 12.0
#define ENOUGH_PICTURES 60000.0

/* Without a time limit: the least quality that is good on a CPU, and the most multiply-adds of a
 * model of ordinary size on a GPU. */
#define GOOD_QUALITY 70.0
#define ORDINARY_MULTIPLY_ADDS 5e9

/* How many bytes are moved in the time of one multiply-add of the forward pass, in float32. A CPU
 * is slow at both: measured for MobileNetV2, EfficientNet-B0, Lite0 and Lite2, ResNet-18 and 50 on
 * two cores, the estimate was within 8 %. A GPU is bound by its memory. */
#define CPU_BYTES 0.58
#define GPU_BYTES 0.025

double stk_model_cost(const stk_model_offer *offer, bool on_cpu) {
    return offer->bytes + (on_cpu ? CPU_BYTES : GPU_BYTES) * offer->multiply_adds;
}

/* Whether `a` comes before `b`: of better quality or, with equal quality, faster. */
static bool is_better(const stk_model_offer *a, const stk_model_offer *b, bool on_cpu) {
    return a->quality != b->quality ? a->quality > b->quality
                                    : stk_model_cost(a, on_cpu) < stk_model_cost(b, on_cpu);
}

static bool is_faster(const stk_model_offer *a, const stk_model_offer *b, bool on_cpu) {
    double ours = stk_model_cost(a, on_cpu);
    double theirs = stk_model_cost(b, on_cpu);
    return ours != theirs ? ours < theirs : a->quality > b->quality;
}

size_t stk_model_choose_untimed(const stk_model_offer *offers, size_t count, bool on_cpu) {
    size_t best = 0;
    bool suited = false; /* whether `best` is */
    for (size_t i = 0; i < count; i++) {
        const stk_model_offer *offer = &offers[i];
        bool suits = on_cpu ? offer->quality >= GOOD_QUALITY
                            : offer->multiply_adds <= ORDINARY_MULTIPLY_ADDS;
        bool before = !on_cpu && suits ? is_better(offer, &offers[best], on_cpu)
                                       : is_faster(offer, &offers[best], on_cpu);
        if (i == 0 || (suits && !suited) || (suits == suited && before)) {
            best = i;
            suited = suits;
        }
    }
    return best;
}

stk_training_facts stk_model_estimate(const stk_model_offer *offer, const stk_model_offer *measured,
                                      bool on_cpu, double compute_s,
                                      const stk_training_facts *facts) {
    stk_training_facts other = *facts;
    double times = stk_model_cost(offer, on_cpu) / stk_model_cost(measured, on_cpu);
    if (offer != measured) {
        other.picture_s = fmax(compute_s * times, facts->loader_s);
        other.predict_s = facts->predict_s * other.picture_s / facts->picture_s;
        other.img_size = offer->img_size;
    }
    return other;
}

static bool is_enough(double epochs, size_t pictures) {
    return epochs >= ENOUGH_EPOCHS || epochs * (double)pictures >= ENOUGH_PICTURES;
}

stk_model_choice stk_model_choose(const stk_model_offer *offers, size_t count, bool on_cpu,
                                  size_t measured, double compute_s,
                                  const stk_training_facts *facts) {
    stk_model_choice c = {.index = measured, .epochs = NAN, .better = measured};
    size_t best = count; /* of those that get too few epochs */
    double best_epochs = NAN;
    if (isnan(facts->left_s) || isnan(facts->picture_s)) {
        return c;
    }
    for (size_t i = 0; i < count; i++) {
        const stk_model_offer *offer = &offers[i];
        stk_training_facts own =
            stk_model_estimate(offer, &offers[measured], on_cpu, compute_s, facts);
        double epochs = stk_training_choose(&own).epochs_full;
        bool enough = is_enough(epochs, facts->pictures);
        bool first = isnan(c.epochs);
        bool before = enough               ? is_better(offer, &offers[c.index], on_cpu)
                      : epochs != c.epochs ? epochs > c.epochs
                                           : is_faster(offer, &offers[c.index], on_cpu);
        if (first || (enough && !c.enough) || (enough == c.enough && before)) {
            c.index = i;
            c.epochs = epochs;
            c.enough = enough;
        }
        if (!enough && (best == count || is_better(offer, &offers[best], on_cpu))) {
            best = i;
            best_epochs = epochs;
        }
    }
    bool lost = best < count && is_better(&offers[best], &offers[c.index], on_cpu);
    c.better = lost ? best : c.index;
    c.better_epochs = lost ? best_epochs : c.epochs;
    return c;
}
