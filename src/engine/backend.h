/*
 * backend.h - the interface that every device implements.
 *
 * A backend compiles a whole graph: for one batch size it returns an executable that knows its
 * exact memory need and runs a training step or an inference. How it fuses, orders or autotunes is
 * its own business. Life cycle: open a device; make the state (the parameters of one model on that
 * device); compile one executable for training and one for inference on the same state; run; close
 * in the opposite order. A device and what was made from it belong to one thread at a time.
 */
#ifndef STK_ENGINE_BACKEND_H
#define STK_ENGINE_BACKEND_H

#include "engine/graph.h"

typedef struct stk_device stk_device;
typedef struct stk_state stk_state;
typedef struct stk_exec stk_exec;

typedef struct stk_device_config {
    int threads; /* for a CPU: how many; at least 1 */
    /* Asked between the parts of a step or an inference, which may take long; next_s is what the
     * next part may take, by those before it. True ends the call with STK_ERR_STOPPED; NULL never
     * does. */
    bool (*halted)(void *user, double next_s);
    void *user; /* borrowed: for `halted` */
} stk_device_config;

typedef struct stk_compile_config {
    size_t batch; /* the most samples a call will have */
    bool train;   /* with backward and optimiser; otherwise inference */
} stk_compile_config;

typedef enum stk_mix_kind { STK_MIX_NONE, STK_MIX_MIXUP, STK_MIX_CUTMIX } stk_mix_kind;

/* Sample i is mixed with sample count-1-i; targets in the same proportion. */
typedef struct stk_mix {
    stk_mix_kind kind;
    float keep;                   /* weight of sample i itself, 0 to 1 */
    int left, top, right, bottom; /* CutMix: the rectangle that comes from the other, px */
} stk_mix;

/* What the optimiser does with the gradients: SGD with momentum. */
typedef struct stk_update {
    float lr;
    float momentum;
    float weight_decay;
    bool nesterov;
    float grad_scale; /* 1 / number of steps whose gradients were added up */
} stk_update;

typedef struct stk_step_input {
    const uint8_t *images; /* (count, size, size, 3) */
    const int *labels;     /* count; each 0 .. classes-1 */
    size_t count;          /* 1 .. batch */
    stk_mix mix;
    float label_smoothing;
    bool keep_gradients;      /* add to the gradients that are there instead of starting anew */
    const stk_update *update; /* NULL: leave the parameters alone (accumulation) */
} stk_step_input;

typedef struct stk_step_output {
    double loss_sum; /* over the samples; not finite when training has diverged */
    size_t correct;  /* samples whose likeliest class is their label */
} stk_step_output;

/* Which of a parameter's tensors is read or written. */
typedef enum stk_tensor_kind {
    STK_TENSOR_VALUE,
    STK_TENSOR_GRADIENT,
    STK_TENSOR_MOMENTUM
} stk_tensor_kind;

typedef struct stk_backend {
    const char *name; /* "cpu" */

    stk_status (*device_open)(stk_device **device, const stk_device_config *config, stk_error *err);
    void (*device_close)(stk_device *device);

    /* Parameters start as zeros; the graph is kept and must outlive the state. */
    stk_status (*state_new)(stk_state **state, stk_device *device, const stk_graph *graph,
                            stk_error *err);
    void (*state_free)(stk_state *state);
    uint64_t (*state_bytes)(const stk_state *state);
    /* In the graph's memory order, stk_param.count numbers. */
    stk_status (*state_read)(stk_state *state, stk_tensor_kind kind, int param, float *values,
                             stk_error *err);
    stk_status (*state_write)(stk_state *state, stk_tensor_kind kind, int param,
                              const float *values, stk_error *err);

    /* The bytes that compile() would allocate, without allocating them. */
    stk_status (*plan_bytes)(stk_device *device, const stk_graph *graph,
                             const stk_compile_config *config, uint64_t *bytes, stk_error *err);
    stk_status (*compile)(stk_exec **exec, stk_state *state, const stk_compile_config *config,
                          stk_error *err);
    void (*exec_free)(stk_exec *exec);
    uint64_t (*exec_bytes)(const stk_exec *exec);

    /* One forward and backward and, when input->update is given, the optimiser. A step that is
     * halted leaves the parameters alone; gradients and running statistics are then of no use. */
    stk_status (*step)(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                       stk_error *err);
    /* logits is (count, classes). Batch norm uses the running statistics. */
    stk_status (*infer)(stk_exec *exec, const uint8_t *images /* (count, size, size, 3) */,
                        size_t count, float *logits, stk_error *err);
} stk_backend;

#endif
