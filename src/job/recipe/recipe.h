/*
 * recipe.h - what a run will do, as one struct of numbers.
 *
 * Options say what was asked for, and much of that is "auto". The recipe says what will be done:
 * the model, the batch, the learning rate, the folds. It is made once, before the first event of a
 * run, in the order of the functions below: what the options say outright, the folds, the model
 * (model_search.h), the device, the batch that memory allows (batch_search.h), the rest. It depends
 * on the data set and the machine, not on timing, so that a run can be repeated. There are two
 * exceptions, after which the recipe is completed a second time: a batch chosen by measured speed,
 * and a budget that decides on the epochs (training/fitting.h). The callers: job.c has step 1,
 * prepare.c steps 2, 3 and 6, network.c step 4, batch_search.c step 5.
 *
 * Afterwards nobody writes to a recipe. Where a number must change (memory ran out, a learning rate
 * was found), a stk_recipe_with_...() function returns a new one, and the job holds that. A recipe
 * owns nothing and is copied by assignment. What "auto" became is also written back to the options,
 * with the reason, so that args.yaml and people can see it.
 */
#ifndef STK_JOB_RECIPE_RECIPE_H
#define STK_JOB_RECIPE_RECIPE_H

#include "backend/opened_device.h"
#include "budget/batch_choice.h"
#include "budget/training_choice.h"
#include "dataset/dataset.h"
#include "job/recipe/recipe_table.h"
#include "loader/loader.h"
#include "models/models.h"
#include "options/options.h"
#include "train/train.h"

/* A model, and where its first weights come from. */
typedef struct stk_model_source {
    const stk_model *model;
    const char *weights; /* as in the recipe */
} stk_model_source;

typedef struct stk_recipe {
    /* The network. */
    const stk_model *model;
    const char *weights; /* borrowed: path or name of pretrained weights; NULL: random ones */
    int img_size;        /* side of the square that the network sees in training, in pixels */
    /* The same in validation and prediction. Training sees parts of pictures, enlarged; a larger
     * square shows whole pictures with things as large as training saw them. */
    int eval_size;
    double eval_crop;     /* share of a picture's short side that this square shows */
    bool eval_as_trained; /* the square of training is used unless another was given */
    /* Both squares in the first half of the training; 0: they are the same. From scratch many steps
     * with little detail are a better beginning than few with much. */
    int early_size;
    int early_eval_size;
    /* Pictures are not scaled: all these squares are windows of their own pixels. */
    bool native;
    const char *native_why; /* for people; NULL: it was asked for */
    int native_px;          /* largest window that is chosen; 0: pictures are scaled */
    double dropout;
    double drop_path;
    int channels;      /* of the pictures; 0: 3 */
    stk_window window; /* for values of more than 8 bits; of all pictures */
    int features;      /* numbers beside each picture */
    /* What it learns. */
    stk_task task; /* AUTO: not known yet */
    stk_loss loss;
    const float *positive_weights; /* borrowed, of each label; NULL: 1 */
    stk_metric metric_found;       /* that the data set asks for; AUTO: nothing is known */
    const char *metric_phrase;     /* borrowed: stk_dataset.metric_phrase; NULL, "": none */
    bool metric_is_open;           /* --metric does not name it */
    stk_answer_kind answer;        /* what a row of the submission takes */
    /* How it learns. */
    const stk_recipe_row *row; /* of the table of recipes; `train` and `augment` have its values */
    double epochs_expected; /* of a model: what the row, the rate and the batch were chosen for */
    size_t pictures;        /* labelled pictures; 0: not known yet */
    size_t test_pictures;   /* those to predict */
    stk_sampling sampling;  /* how often classes are seen in training */
    bool may_freeze;        /* the head is new, and there is time to compile for it alone */
    double imbalance;       /* why it is not natural: the largest class has so many times as many
                               pictures as the others; 0: that was not the reason */
    /* The run. */
    int folds;           /* models that are validated; 1: no cross-validation */
    int refits;          /* models after them, trained on all pictures */
    int models_asked;    /* models that were asked for: fewer are a run that was cut short */
    int views;           /* views of each test picture (--tta) that are wanted; 0: not chosen yet */
    int least_views;     /* as many as were asked for: fewer are a run that was cut short. 1 where
                            the number was left to Stoker */
    uint64_t seed;       /* of the run; fold k uses seed + k */
    double val_fraction; /* share of the training samples to validate with, without folds */
    /* Steps. */
    size_t batch;              /* pictures of a training step */
    size_t infer_batch;        /* pictures of a step of validation and prediction */
    size_t batch_chosen;       /* `batch` as chosen, before memory ran out */
    size_t batch_rehearsed;    /* batch whose steps were rehearsed at this size; 0: none */
    int64_t accumulate_chosen; /* train.accumulate before memory ran out */
    double lr;                 /* highest learning rate; STK_AUTO_DOUBLE: a test has to find it */
    int epochs_wanted;         /* 0: as many as the budget allows */
    /* The options of training as they are used: "auto" is replaced, and `accumulate` is the present
     * one. Not so epochs, batch and lr: for these read the fields above. head_lr stays "auto" where
     * the head has the rate of the rest. */
    stk_train_options train;
    stk_loader_sizing loader; /* threads, slots and memory of the training's loader */
    stk_augment_options augment;
} stk_recipe;

/* Step 1: what the options say outright: folds, views, seed, the optimiser. */
stk_recipe stk_recipe_begin(const stk_options *options);

/* Chooses the row of the table for so many epochs of a model, and takes its values where none were
 * given. Steps 1 and 6 call it; whoever learns how many epochs fit calls it before step 5. */
void stk_recipe_expect(stk_recipe *recipe, const stk_options *options, double epochs);

/* Step 2: how often classes are seen; the number of folds, where a column of the data set gives
 * them (--fold-column); the number of refits as far as no budget decides on it. */
STK_CHECKED stk_status stk_recipe_take_dataset(stk_recipe *recipe, stk_options *options,
                                               const stk_dataset *dataset, stk_error *err);

/* With these weights of positives, which the recipe borrows. */
void stk_recipe_take_positive_weights(stk_recipe *recipe, const float *weights);

/* What the choice of refits and the pictures' size depends on, except for time. */
stk_training_facts stk_recipe_training_facts(const stk_recipe *recipe, const stk_options *options,
                                             const stk_dataset *dataset);

/* Takes refits, size and epochs of a choice, and writes what was left to Stoker to the
 * options. The network has to be built again. */
STK_CHECKED stk_status stk_recipe_take_choice(stk_recipe *recipe, stk_options *options,
                                              const stk_training_choice *choice, stk_error *err);

/* The loader of a training in batches of this size, on this machine. */
stk_loader_sizing stk_recipe_sizing(const stk_recipe *recipe, const stk_loader_options *options,
                                    size_t batch);

/* Whether a budget or a deadline limits the run. */
bool stk_recipe_is_limited(const stk_options *options);

/* Whether the budget decides on the number of epochs, so that a rehearsal has to find out what
 * fits. */
bool stk_recipe_is_to_fit(const stk_options *options);

/* Before step 2: whether training starts from pretrained weights, and which. */
void stk_recipe_take_weights(stk_recipe *recipe, const stk_options *options, const char *weights);

/* Step 3: the model, its weights, its image size and its dropout. May be called again with another
 * model. */
STK_CHECKED stk_status stk_recipe_take_model(stk_recipe *recipe, stk_options *options,
                                             const stk_model_source *source, stk_error *err);

/* Where the number of views was left to Stoker: takes it, and writes it to the options. */
STK_CHECKED stk_status stk_recipe_take_views(stk_recipe *recipe, stk_options *options, int views,
                                             stk_error *err);

/* Pictures that the folds and so many refits predict in one view: each one the test set, and the
 * folds what validates them. */
size_t stk_recipe_predicted(const stk_recipe *recipe, int refits);

/* Pixels of a picture in validation and prediction, relative to one in training. */
double stk_recipe_eval_pixels(const stk_recipe *recipe);

/* Step 4: opens the device, and writes its name and precision to the options. `config`
 * says who may halt its work; threads and memory come from the options and the machine. */
STK_CHECKED stk_status stk_recipe_open_device(stk_opened_device *opened, stk_options *options,
                                              const stk_device_config *config, stk_error *err);

/* Step 5: what the batch depends on, except for memory; `train_count` is the number of training
 * images of one fold. */
stk_batch_facts stk_recipe_batch_facts(const stk_recipe *recipe, const stk_options *options,
                                       bool on_cpu, size_t train_count);

/* Chooses how many epochs the head learns alone; step 6 does so, too. May be called again when
 * recipe->may_freeze has changed. */
STK_CHECKED stk_status stk_recipe_choose_freeze(stk_recipe *recipe, stk_options *options,
                                                size_t train_count, stk_error *err);

/*
 * Step 6: everything else. `choice` was made from `facts`; `infer_batch` is what memory allows
 * validation. With `to_be_measured` the batch will change, and the options do not yet say what
 * depends on it. May be called again with another choice.
 */
STK_CHECKED stk_status stk_recipe_complete(stk_recipe *recipe, stk_options *options,
                                           const stk_batch_facts *facts,
                                           const stk_batch_choice *choice, size_t infer_batch,
                                           bool to_be_measured, stk_error *err);

/* The models that a run trains: folds and refits. Model k is fold k, or refit k - folds. */
int stk_recipe_models(const stk_recipe *recipe);
bool stk_recipe_is_refit(const stk_recipe *recipe, int model);

/* Whether Stoker has added models to those that were asked for. */
bool stk_recipe_has_chosen(const stk_recipe *recipe);

/* The same recipe with another batch, and the loader that fits it. batch_chosen stays. */
stk_recipe stk_recipe_with_batch(const stk_recipe *recipe, size_t batch, int64_t accumulate,
                                 const stk_loader_options *loader);
stk_recipe stk_recipe_with_infer_batch(const stk_recipe *recipe, size_t infer_batch);
/* With the sizes of the first half as those of training, validation and prediction; and with the
 * sizes of another recipe. */
stk_recipe stk_recipe_with_early_sizes(const stk_recipe *recipe);
stk_recipe stk_recipe_with_sizes_of(const stk_recipe *recipe, const stk_recipe *other);
stk_recipe stk_recipe_with_views(const stk_recipe *recipe, int views);
stk_recipe stk_recipe_with_lr(const stk_recipe *recipe, double lr);
stk_recipe stk_recipe_with_workers(const stk_recipe *recipe, int workers);

/*
 * A recipe that needs less memory, after memory ran out. Halves the batch of training and doubles
 * `accumulate`, so that an update has as many images as before; or, where `validating`, halves
 * infer_batch. If the first cannot be halved, the other is: both take memory at the same time.
 * `what` becomes the decision in words; "": nothing can be halved, and the recipe is the same.
 */
stk_recipe stk_recipe_shrink(const stk_recipe *recipe, const stk_loader_options *loader,
                             bool validating, char *what, size_t room);

/* "sgd" or "adamw": what the option became. */
const char *stk_recipe_optimizer(const stk_train_options *train);

#endif
