/* recipe_sizes.c - how pictures come to the size that the network sees, and which sizes these are.
 */
#include "job/recipe/recipe_sizes.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "job/recipe/job_options.h"

/* Validation and prediction: the side of their square relative to that of training, and what it is
 * rounded up to. Smaller pictures have no room to lose. */
#define EVAL_PART (8.0 / 7.0)
#define EVAL_UNIT 16
#define EVAL_LEAST 64
#define EVAL_MOST 2048

/* Windows of pictures that are not scaled: the largest, where time makes them smaller and where
 * none does; and the least. */
#define WINDOW_MOST 512
#define WINDOW_MOST_UNTIMED 256
#define WINDOW_LEAST 32

stk_status stk_recipe_choose_resize(stk_recipe *recipe, stk_options *options, bool versions,
                                    stk_error *err) {
    const stk_augment_options *given = stk_options_values(options, &stk_augment_option_table);
    bool scaled_crops = !stk_is_auto_double(given->crop_scale) && given->crop_scale < 1;
    stk_status status = STK_OK;
    recipe->native = given->resize == STK_RESIZE_NONE;
    if (recipe->native && scaled_crops) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--resize none and --crop-scale %.3g: crops of other sizes than the "
                        "network's would have to be scaled; leave one of them out",
                        given->crop_scale);
    }
    if (given->resize == STK_RESIZE_AUTO) {
        recipe->native = versions && !scaled_crops;
        recipe->native_why =
            recipe->native ? "the classes are versions of the same pictures" : NULL;
        status = stk_options_resolve(options, "resize", recipe->native ? "none" : "scale",
                                     recipe->native ? recipe->native_why : "auto", err);
    }
    return status;
}

void stk_recipe_take_side(stk_recipe *recipe, int side, bool timed) {
    int limit = timed ? WINDOW_MOST : WINDOW_MOST_UNTIMED;
    int most = side < limit ? side : limit;
    recipe->native_px = most > WINDOW_LEAST ? most : WINDOW_LEAST;
}

int stk_recipe_size_for(const stk_recipe *recipe, const stk_options *options,
                        const stk_model *model) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    int own = recipe->native_px > 0 ? recipe->native_px : model->img_size;
    return stk_is_auto_int(job->img_size) ? own : (int)job->img_size;
}

/* The size for validation that is best for weights that were trained with pictures of `size`.
 * Weights that started from scratch have seen no larger ones, and know nothing else well. */
static int best_eval_size(const stk_recipe *recipe, int size) {
    bool parts = recipe->model->crop_fraction < 1 && recipe->augment.crop_scale < 1;
    if (!parts || recipe->weights == NULL || recipe->eval_as_trained || size < EVAL_LEAST) {
        return size;
    }
    int larger = (int)ceil(EVAL_PART * size / EVAL_UNIT) * EVAL_UNIT;
    return larger < EVAL_MOST ? larger : EVAL_MOST;
}

stk_status stk_recipe_take_early_size(stk_recipe *recipe, stk_options *options, int size,
                                      stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    bool given = !stk_is_auto_int(job->early_size);
    recipe->early_size = given ? (int)job->early_size : size;
    if (recipe->early_size >= recipe->img_size) {
        recipe->early_size = 0;
    }
    recipe->early_eval_size =
        recipe->early_size > 0 ? best_eval_size(recipe, recipe->early_size) : 0;
    bool known = given && atoi(stk_options_get(options, "early-size")) == recipe->early_size;
    const char *why = !given ? "auto" : recipe->early_size > 0 ? "given" : "not below --img-size";
    return known ? STK_OK
                 : stk_options_resolve_number(options, "early-size", recipe->early_size, why, err);
}

stk_status stk_recipe_choose_eval_size(stk_recipe *recipe, stk_options *options, stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    double own_crop = recipe->model->crop_fraction;
    bool given = !stk_is_auto_int(job->eval_size);
    recipe->eval_size = given ? (int)job->eval_size : best_eval_size(recipe, recipe->img_size);
    recipe->eval_crop = fmin(own_crop * fmax((double)recipe->eval_size / recipe->img_size, 1), 1);
    return given ? STK_OK
                 : stk_options_resolve_number(options, "eval-size", recipe->eval_size, "auto", err);
}
