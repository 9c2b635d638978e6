/*
 * checkpoint.h - a model's parameters as a safetensors file with timm's names and layouts.
 *
 * A checkpoint carries in its metadata what is needed to use it alone: the model's name, the
 * classes, the image size, mean and std, how pictures are cropped and scaled, and how its outputs
 * become probabilities and labels, and how columns beside the pictures become numbers.
 */
#ifndef STK_WEIGHTS_CHECKPOINT_H
#define STK_WEIGHTS_CHECKPOINT_H

#include "engine/backend.h"
#include "image/image.h"
#include "weights/calibration.h"
#include "weights/columns.h"
#include "weights/outputs.h"

typedef struct stk_checkpoint_info {
    char *model;    /* owned when read */
    char **classes; /* owned when read */
    int class_count;
    int img_size;
    double crop_fraction;
    bool native; /* it sees windows of pictures that are not scaled: stk_transform.native */
    stk_interpolation interpolation; /* bilinear where the file has none */
    int features;                    /* numbers beside each picture; saving takes the graph's */
    stk_feature_code columns; /* owned when read: how those come to be; empty in older files */
    stk_window window;        /* of all pictures; 0 channels: each has its own */
    int channels;             /* of pictures; saving takes the graph's */
    float mean[STK_MOST_CHANNELS];
    float std[STK_MOST_CHANNELS];
    stk_outputs outputs;         /* owned when read; zeros: a single class */
    stk_calibration calibration; /* owned when read; zeros: there is none */
    double acc1;                 /* percent on the validation set; NaN when not known */
    int epoch;                   /* from 1; 0 when not known */
    bool averaged; /* saving: write the averaged parameters, which the state must have */
} stk_checkpoint_info;

STK_CHECKED stk_status stk_checkpoint_save(const char *path, const stk_backend *backend,
                                           stk_state *state, const stk_graph *graph,
                                           const stk_checkpoint_info *info, stk_error *err);

/* Reads the metadata alone. */
STK_CHECKED stk_status stk_checkpoint_info_read(const char *path, stk_checkpoint_info *info,
                                                stk_error *err);
void stk_checkpoint_info_free(stk_checkpoint_info *info);

/* Loads every parameter of the graph; the error names the tensors that do not fit. */
STK_CHECKED stk_status stk_checkpoint_load(const char *path, const stk_backend *backend,
                                           stk_state *state, const stk_graph *graph,
                                           stk_error *err);

#endif
