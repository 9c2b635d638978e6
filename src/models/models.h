/*
 * models.h - the networks, by timm's names.
 *
 * A family is one file with a table of stk_model; adding one means writing the file and naming its
 * table in models.c. Models are plain data: no state, safe for threads.
 */
#ifndef STK_MODELS_MODELS_H
#define STK_MODELS_MODELS_H

#include "engine/graph.h"

/* How timm scales pictures for a model, in evaluation. */
typedef enum stk_interpolation { STK_BILINEAR, STK_BICUBIC } stk_interpolation;

/* What a graph is built for. */
typedef struct stk_model_config {
    int img_size; /* px */
    int classes;
    double dropout;   /* STK_MODEL_OWN_RATE: the model's */
    double drop_path; /* the same */
} stk_model_config;

#define STK_MODEL_OWN_RATE (-1.0)

typedef struct stk_model {
    const char *name;
    const char *about;    /* a few words */
    int img_size;         /* px, what it is usually trained at */
    double crop_fraction; /* of the short side, in evaluation */
    stk_interpolation interpolation;
    float mean[3];
    float std[3];
    double dropout;   /* before the classifier, as the original was trained */
    double drop_path; /* stochastic depth of the last block */
    int variant;      /* what the family's builder makes of it */
    /* Adds the layers and returns the logits' value. */
    int (*build)(const struct stk_model *model, const stk_model_config *config, stk_graph *graph);
} stk_model;

typedef struct stk_model_family {
    const stk_model *models;
    size_t count;
} stk_model_family;

extern const stk_model_family stk_resnet_family;
extern const stk_model_family stk_convnet_family;

#define STK_IMAGENET_MEAN \
    { 0.485f, 0.456f, 0.406f }
#define STK_IMAGENET_STD \
    { 0.229f, 0.224f, 0.225f }

/* By name; a timm tag behind a point ("resnet18.a1_in1k") is passed over. The error names the
 * nearest models. */
STK_CHECKED stk_status stk_model_find(const char *name, const stk_model **model, stk_error *err);

STK_CHECKED stk_status stk_model_build(const stk_model *model, const stk_model_config *config,
                                       stk_graph **graph, stk_error *err);

#endif
