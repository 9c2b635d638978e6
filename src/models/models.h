/*
 * models.h - the networks, by timm's names.
 *
 * A family is one file with a table of stk_model; adding one means writing the file and naming its
 * table in models.c. Models are plain data: no state, safe for threads.
 */
#ifndef STK_MODELS_MODELS_H
#define STK_MODELS_MODELS_H

#include "engine/graph.h"
#include "image/image.h"

/* What a graph is built for. */
typedef struct stk_model_config {
    int img_size; /* px */
    int classes;
    int channels;         /* of pictures; 0: 3, with the model's mean and std */
    int features;         /* numbers beside each picture */
    const stk_loss *loss; /* NULL: softmax */
    double dropout;       /* STK_MODEL_OWN_RATE: the model's own rate */
    double drop_path;     /* STK_MODEL_OWN_RATE: the model's own rate */
    bool embeds;          /* an inference gives the head's inputs after the outputs */
    bool steps;           /* the classes are steps of a scale, of which the head says the place */
} stk_model_config;

#define STK_MODEL_OWN_RATE (-1.0)

typedef struct stk_model {
    const char *name;
    const char *about;               /* a few words */
    int img_size;                    /* px, what it is usually trained at */
    double crop_fraction;            /* of the short side, in evaluation */
    stk_interpolation interpolation; /* how pictures are scaled, in evaluation */
    float mean[3];
    float std[3];
    double dropout;   /* before the classifier, as the original was trained */
    double drop_path; /* stochastic depth of the last block */
    double top1;      /* ImageNet-1k accuracy of timm's default weights in percent, as published;
                         0: there are none */
    int variant;      /* which network of the family; only its builder reads it */
    /* Adds the layers and returns the logits' value. */
    int (*build)(const struct stk_model *model, const stk_model_config *config, stk_graph *graph);
} stk_model;

typedef struct stk_model_family {
    const stk_model *models;
    size_t count;
} stk_model_family;

extern const stk_model_family stk_convnet_family;
extern const stk_model_family stk_resnet_family;
extern const stk_model_family stk_cifar_resnet_family;
extern const stk_model_family stk_efficientnet_family;
extern const stk_model_family stk_mobilenet_family;

/* The names of all models, shortened, for help and errors. */
#define STK_MODEL_NAMES                                                                   \
    "convnet_s, resnet18/34/50/101/152, cifar_resnet20/32/44/56, efficientnet_b0 to b7, " \
    "tf_efficientnet_b0 to b7 (also with _ns), tf_efficientnet_lite0 to lite4, mobilenetv2_100"

#define STK_IMAGENET_MEAN \
    { 0.485f, 0.456f, 0.406f }
#define STK_IMAGENET_STD \
    { 0.229f, 0.224f, 0.225f }
#define STK_HALVES_MEAN \
    { 0.5f, 0.5f, 0.5f }
#define STK_HALVES_STD \
    { 0.5f, 0.5f, 0.5f }

/* Every row of every family, in order; NULL past the last. */
const stk_model *stk_model_at(size_t index);

/*
 * Finds a model by name. A timm tag after a point ("resnet18.a1_in1k") is ignored, unless a row has
 * it in its name: weights that need another mean and std have such a row. The error names the
 * nearest models.
 */
STK_CHECKED stk_status stk_model_find(const char *name, const stk_model **model, stk_error *err);

/*
 * The last layer, for builders: from the averages of the last maps to the outputs, or to the place
 * on a scale that becomes the logits of its steps (engine/steps.h). Numbers beside
 * the picture pass a small layer of their own, whose outputs join the averages. `name` is the
 * classifier's.
 */
int stk_model_head(const stk_model_config *config, stk_graph *graph, int x, const char *name);

/* An image too small for the network is STK_ERR_USAGE; the message has the least size. */
STK_CHECKED stk_status stk_model_build(const stk_model *model, const stk_model_config *config,
                                       stk_graph **graph, stk_error *err);

#endif
