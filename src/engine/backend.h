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
    int threads; /* of the host that may be used: a CPU computes with them; at least 1 */
    int index;   /* which one, where there are several: 1 of "cuda:1" */
    /* The same bits in every run, at some cost in speed; a CPU's are always the same. */
    bool deterministic;
    /* All the memory that it is to have, as if there were no more; 0: what there is. A GPU
     * allocates nothing beyond it; a CPU, whose memory is everybody's, only says so. */
    uint64_t memory_bytes;
    /* Asked between the parts of a step or an inference, which may take long; next_s is what the
     * next part may take, by those before it. A CPU also asks in the middle of one, with 0. True
     * ends the call with STK_ERR_STOPPED; NULL never does. */
    bool (*halted)(void *user, double next_s);
    void *user; /* borrowed: for `halted` */
} stk_device_config;

typedef enum stk_optimizer { STK_SGD, STK_ADAMW } stk_optimizer;

/* What the state of a model holds beside its parameters. */
typedef struct stk_state_config {
    bool train;              /* gradients and the optimiser's memory; otherwise parameters only */
    stk_optimizer optimizer; /* AdamW keeps one tensor more than SGD */
    bool ema;                /* a moving average of the parameters */
} stk_state_config;

/* Which number format activations and products have; in the order of the option's choices. */
typedef enum stk_precision {
    STK_PRECISION_AUTO,
    STK_PRECISION_FP16,
    STK_PRECISION_BF16,
    STK_PRECISION_FP32,
    STK_PRECISION_FP32_STRICT
} stk_precision;

typedef struct stk_compile_config {
    size_t batch;            /* the most samples a call will have */
    stk_precision precision; /* a CPU computes in float32 whatever is asked for */
    bool train;              /* with backward and optimiser; otherwise inference */
    bool frozen; /* training: only the head learns, all before it behaves as in inference */
    bool ema;    /* inference: with the averaged parameters; the state must have them */
    bool plain;  /* node by node, nothing fused: the check for the fused path */
} stk_compile_config;

typedef enum stk_mix_kind { STK_MIX_NONE, STK_MIX_MIXUP, STK_MIX_CUTMIX } stk_mix_kind;

/* Sample i is mixed with sample count-1-i; targets in the same proportion. */
typedef struct stk_mix {
    stk_mix_kind kind;
    float keep;                   /* weight of sample i itself, 0 to 1 */
    int left, top, right, bottom; /* CutMix: the rectangle that comes from the other, px */
} stk_mix;

/*
 * What the optimiser does with the gradients. SGD as in PyTorch: g = gradient + decay * w,
 * v = momentum * v + g, w -= lr * (nesterov ? g + momentum * v : v). AdamW as in PyTorch: decay
 * apart from the gradient, bias corrected by `step`.
 */
typedef struct stk_update {
    stk_optimizer kind; /* that of the state */
    float lr;           /* of the backbone */
    float head_lr;      /* of the classifier */
    float momentum;     /* SGD; AdamW: the first moment's */
    bool nesterov;
    float beta2;   /* AdamW */
    float epsilon; /* AdamW */
    /* AdamW: updates of the backbone so far, this one included; from 1. Those that were left out
     * count here, and the device, which alone knows them in time, takes them off. */
    int64_t step;
    int64_t head_step; /* the same of the classifier: more where the backbone was frozen at first */
    float weight_decay;
    float grad_scale; /* 1 / number of steps whose gradients were added up */
    float clip_norm;  /* gradients are scaled down to this norm, all taken together; 0: never */
    /* average = decay * average + (1 - decay) * parameter; of running statistics too */
    float ema_decay;
} stk_update;

typedef struct stk_step_input {
    const uint8_t *images; /* (count, size, size, 3) */
    const int *labels;     /* count; each 0 .. classes-1 */
    size_t count;          /* 1 .. batch */
    stk_mix mix;
    float label_smoothing;
    uint64_t seed;            /* what is dropped derives from seed and step: see stk_drop_factor */
    uint64_t step;            /* steps of this training so far */
    bool keep_gradients;      /* add to the gradients that are there instead of starting anew */
    const stk_update *update; /* NULL: leave the parameters alone (accumulation) */
} stk_step_input;

typedef struct stk_step_output {
    double loss_sum;    /* over the samples; not finite when training has diverged */
    size_t correct;     /* samples whose likeliest class is their label, mixed: the larger part's */
    double grad_norm;   /* of all gradients, before clipping; NaN unless clipping asked for it */
    bool skipped;       /* the update was left out: a gradient left the range of fp16 */
    float loss_scale;   /* that gradients were computed with; 1 unless the precision is fp16 */
    double busy_s;      /* the device computed it that long, the optimiser included */
    double update_s;    /* of these: the optimiser */
    double copy_s;      /* the pictures travelled to the device that long; 0 on a CPU */
    double copy_wait_s; /* of these: it had nothing else to do */
} stk_step_output;

/* What a device has. */
typedef struct stk_device_memory {
    uint64_t total_bytes;
    uint64_t free_bytes; /* now; what is in use by this process is not */
} stk_device_memory;

/* What a device has made for itself since it was opened, and what it found on disk instead. */
typedef struct stk_device_counts {
    int kernels_compiled;
    int kernels_loaded; /* from disk */
    int plans_timed;    /* ways to compute convolutions that were tried */
    int plans_loaded;   /* convolutions whose way came from disk */
    const char *unkept; /* why nothing of it can be kept for the next start; NULL: it is. Lives as
                           the device does */
} stk_device_counts;

/* Steps whose results have not been collected: never more. */
#define STK_STEPS_AHEAD 8

/* Which of a parameter's tensors is read or written. */
typedef enum stk_tensor_kind {
    STK_TENSOR_VALUE,
    STK_TENSOR_GRADIENT,
    STK_TENSOR_MOMENTUM, /* AdamW: the first moment */
    STK_TENSOR_SECOND,   /* AdamW: the second moment */
    STK_TENSOR_EMA,
    STK_TENSOR_KINDS
} stk_tensor_kind;

/* Whether a state of this kind holds such tensors. */
static inline bool stk_state_keeps(const stk_state_config *config, stk_tensor_kind kind) {
    switch (kind) {
    case STK_TENSOR_VALUE:
        return true;
    case STK_TENSOR_SECOND:
        return config->train && config->optimizer == STK_ADAMW;
    case STK_TENSOR_EMA:
        return config->ema;
    default:
        return config->train;
    }
}

#define STK_STATE_EXTRAS 5

/* Where the time of one step or inference goes. */
typedef struct stk_profile_line {
    char what[128]; /* a kernel, or a convolution with its shape */
    int calls;      /* of one step */
    double ms;      /* of all of them */
    double bytes;   /* of the values that they name: what they read and write at least */
} stk_profile_line;

typedef struct stk_backend {
    const char *name; /* "cpu" */

    stk_status (*device_open)(stk_device **device, const stk_device_config *config, stk_error *err);
    void (*device_close)(stk_device *device);
    /* In words, for people: "NVIDIA H200, 139.8 GiB"; lives as the device does. */
    const char *(*describe)(const stk_device *device);
    /* Where on the PCI bus it is, by which other libraries know it: "0000:19:00.0"; lives as the
     * device does. NULL, or a call that gives NULL: it is on none. */
    const char *(*bus_id)(const stk_device *device);
    stk_status (*memory)(stk_device *device, stk_device_memory *memory, stk_error *err);
    /* Bytes per second that reading and writing the device's memory reaches, measured by a copy of
     * something large: what is read counts and what is written. NULL, or NaN: not known. */
    double (*bandwidth)(stk_device *device);
    /* Bytes per second that pictures in memory of host_take reach the device with, measured by a
     * copy of so many bytes. NULL: they need not be copied; NaN: not known. */
    double (*copy_bandwidth)(stk_device *device, size_t bytes);
    /* NULL: nothing is made that could be kept. */
    void (*counts)(const stk_device *device, stk_device_counts *counts);
    /* What STK_PRECISION_AUTO means here, and what a precision that it does not have becomes. */
    stk_precision (*precision)(const stk_device *device, stk_precision asked);
    /* Memory of the host from which pictures reach the device fastest; NULL: there is none. Both
     * may be called by any thread while the device is open; host_free accepts NULL. */
    void *(*host_take)(stk_device *device, size_t bytes);
    void (*host_free)(stk_device *device, void *memory);

    /* Everything starts as zeros; the graph is kept and must outlive the state. */
    stk_status (*state_new)(stk_state **state, stk_device *device, const stk_graph *graph,
                            const stk_state_config *config, stk_error *err);
    void (*state_free)(stk_state *state);
    uint64_t (*state_bytes)(const stk_graph *graph, const stk_state_config *config);
    bool (*state_has)(const stk_state *state, stk_tensor_kind kind);
    /* In the graph's memory order, stk_param.count numbers; of a kind that the state has. */
    stk_status (*state_read)(stk_state *state, stk_tensor_kind kind, int param, float *values,
                             stk_error *err);
    stk_status (*state_write)(stk_state *state, stk_tensor_kind kind, int param,
                              const float *values, stk_error *err);
    /* What else training remembers, such as a loss scale: numbers that mean something to the
     * backend alone, zeros where an older file has fewer of them; extras_write without any: as in a
     * new state. NULL: nothing. */
    stk_status (*extras_read)(stk_state *state, float extras[STK_STATE_EXTRAS], stk_error *err);
    stk_status (*extras_write)(stk_state *state, const float extras[STK_STATE_EXTRAS],
                               stk_error *err);

    /* The bytes that compile() would allocate, without allocating them; *workspace, unless it is
     * NULL, is how many of them single operations use for themselves, one after the other. */
    stk_status (*arena_bytes)(stk_device *device, const stk_graph *graph,
                              const stk_compile_config *config, uint64_t *bytes,
                              uint64_t *workspace, stk_error *err);
    stk_status (*compile)(stk_exec **exec, stk_state *state, const stk_compile_config *config,
                          stk_error *err);
    void (*exec_free)(stk_exec *exec); /* waits for steps that still run; NULL is fine */
    uint64_t (*exec_bytes)(const stk_exec *exec);

    /* One forward and backward and, when input->update is given, the optimiser. A step that is
     * halted leaves the parameters alone; gradients and running statistics are then of no use.
     * With output NULL the step may still run when the call returns: what it came to is told by
     * collect(), and the pictures and labels must stay until that was told or the next step() has
     * returned. */
    stk_status (*step)(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                       stk_error *err);
    /* What steps without an output came to, in their order and each once: all of those that have
     * ended, up to `room`; with `wait` until none is running. Fewer than STK_STEPS_AHEAD run at any
     * time: step() waits where there are more. */
    stk_status (*collect)(stk_exec *exec, bool wait, stk_step_output *outputs, size_t room,
                          size_t *count, stk_error *err);
    /* logits is (count, classes). Batch norm uses the running statistics, nothing is dropped. With
     * logits NULL, where there is a fetch(), it may still run when the call returns. */
    stk_status (*infer)(stk_exec *exec, const uint8_t *images /* (count, size, size, 3) */,
                        size_t count, float *logits, stk_error *err);
    /* The logits of the oldest inference that has not given its own; at most two may be on their
     * way, and their pictures must stay until then. NULL: no inference runs ahead. */
    stk_status (*fetch)(stk_exec *exec, float *logits, stk_error *err);

    /* Runs the last step or inference some times more, one operation at a time, and says how long
     * each takes, the longest first; the parameters move. NULL: cannot be told. */
    stk_status (*profile)(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                          stk_error *err);
} stk_backend;

/* Gives every parameter its first values: see stk_graph_init_param(). */
STK_CHECKED stk_status stk_state_first_weights(const stk_backend *backend, stk_state *state,
                                               const stk_graph *graph, uint64_t seed,
                                               stk_error *err);

/* The same, ended with STK_ERR_STOPPED as soon as `halted` says so: a large model takes seconds. */
STK_CHECKED stk_status stk_state_first_weights_unless(const stk_backend *backend, stk_state *state,
                                                      const stk_graph *graph, uint64_t seed,
                                                      bool (*halted)(void *user), void *user,
                                                      stk_error *err);

#endif
