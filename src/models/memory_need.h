/*
 * memory_need.h - how much memory a model needs, without allocating it.
 *
 * The answer is exact: what stk_model_memory_need() says is what a state and an executable of that
 * kind allocate on the device. It is arithmetic on the graph and takes milliseconds for any batch.
 */
#ifndef STK_MODELS_MEMORY_NEED_H
#define STK_MODELS_MEMORY_NEED_H

#include "engine/backend.h"
#include "models/models.h"

typedef struct stk_memory_need {
    uint64_t exec_bytes;  /* of the executable: activations, their gradients, workspace */
    uint64_t state_bytes; /* parameters, their gradients, the optimiser's memory */
    uint64_t bytes;       /* the sum */
} stk_memory_need;

/* What the need depends on, beside model, batch, image size and precision. */
typedef struct stk_memory_need_config {
    int classes;
    stk_state_config state;
    bool infer;  /* for inference; otherwise for a training step */
    bool frozen; /* only the head learns */
    bool plain;  /* nothing is fused */
} stk_memory_need_config;

STK_CHECKED stk_status stk_model_memory_need(const stk_model *model, size_t batch, int img_size,
                                             stk_precision precision,
                                             const stk_memory_need_config *config,
                                             const stk_backend *backend, stk_device *device,
                                             stk_memory_need *need, stk_error *err);

#endif
