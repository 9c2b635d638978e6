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
#include "image/device_decoder.h"

typedef struct stk_device stk_device;
typedef struct stk_state stk_state;
typedef struct stk_exec stk_exec;

typedef struct stk_device_config {
    int threads; /* host threads that may be used; a CPU computes with them; at least 1 */
    int index;   /* number of the device: 1 for "cuda:1" */
    /* The same bits in every run, at some cost in speed; a CPU's are always the same. */
    bool deterministic;
    /* There is little time: where a GPU finds nothing on disk from an earlier start, it compiles
     * what it needs and leaves out what only makes it faster. The next start makes up for that. */
    bool hurried;
    /* Limit of the device's memory; 0: all of it. A GPU allocates nothing beyond the limit. A CPU
     * only reports the limit as its memory. */
    uint64_t memory_bytes;
    /* True ends the step or inference with STK_ERR_STOPPED; next_s is the expected time of what
     * comes next. A CPU calls it between the passes of two pieces and, with 0, within a pass. A GPU
     * calls it with 0 before a step or an inference, and also while it compiles. NULL: steps are
     * never halted. */
    bool (*halted)(void *user, double next_s);
    void *user; /* borrowed: for `halted` */
} stk_device_config;

typedef enum stk_optimizer { STK_SGD, STK_ADAMW } stk_optimizer;

/* What the state of a model holds beside its parameters. */
typedef struct stk_state_config {
    bool train;              /* with gradients and optimiser state; otherwise parameters only */
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
    /* The network, where it is not that of the state: the same one for another size of pictures.
     * Borrowed; it must outlive the executable. NULL: that of the state. */
    const stk_graph *graph;
    size_t batch;            /* the most samples of one call */
    stk_precision precision; /* a CPU computes in float32 whatever is asked for */
    bool train;              /* with backward and optimiser; otherwise inference */
    bool frozen;     /* training: only the head learns; other layers behave as in inference */
    bool kept_stats; /* training: norms use their running statistics, which stay as they are */
    bool ema;        /* inference: with the averaged parameters; the state must have them */
    bool plain;      /* node by node, nothing fused: the check for the fused path */
} stk_compile_config;

/* The network that a config compiles; `usual` is that of the state. */
static inline const stk_graph *stk_compile_graph(const stk_compile_config *config,
                                                 const stk_graph *usual) {
    return config->graph != NULL ? config->graph : usual;
}

typedef enum stk_mix_kind { STK_MIX_NONE, STK_MIX_MIXUP, STK_MIX_CUTMIX } stk_mix_kind;

/* Sample i is mixed with sample count-1-i; targets and features in the same proportion. */
typedef struct stk_mix {
    stk_mix_kind kind;
    float keep;                   /* weight of sample i itself, 0 to 1 */
    int left, top, right, bottom; /* CutMix: the rectangle from the other sample, px */
} stk_mix;

/*
 * What the optimiser does with the gradients. SGD as in PyTorch: g = gradient + decay * w,
 * v = momentum * v + g, w -= lr * (nesterov ? g + momentum * v : v). AdamW as in PyTorch: decay
 * apart from the gradient, bias corrected by `updates`.
 */
typedef struct stk_update {
    stk_optimizer kind; /* that of the state */
    float lr;           /* of the backbone */
    float head_lr;      /* of the classifier */
    float momentum;     /* SGD; AdamW: the first moment's */
    bool nesterov;
    float beta2;   /* AdamW */
    float epsilon; /* AdamW */
    /* AdamW: updates of the backbone so far, this one included; from 1. Skipped updates count here;
     * the device, which knows them first, subtracts them. */
    int64_t updates;
    /* AdamW: updates of the classifier so far, this one included; more than `updates` after a
     * frozen phase. */
    int64_t head_updates;
    float weight_decay;
    float grad_scale; /* 1 / number of steps whose gradients were added up */
    float clip_norm;  /* gradients are scaled down to this norm, all taken together; 0: never */
    /* average = decay * average + (1 - decay) * parameter; of running statistics too */
    float ema_decay;
} stk_update;

typedef struct stk_step_input {
    const uint8_t *images; /* (count, size, size, channels) */
    const int *labels;     /* softmax and steps: count; each 0 .. classes-1 */
    const float *targets;  /* all other losses: (count, outputs), see loss.h; NULL with labels */
    const float *features; /* (count, graph features); NULL without */
    size_t count;          /* 1 .. batch */
    stk_mix mix;
    float label_smoothing; /* of softmax; of sigmoid: pulls targets towards 0.5; others ignore it */
    uint64_t seed;         /* dropout derives from seed and step: see stk_drop_factor */
    uint64_t step;         /* steps of this training so far */
    bool keep_gradients;   /* add to the existing gradients instead of clearing them */
    const stk_update *update; /* NULL: no update (accumulation); only running statistics move */
} stk_step_input;

/* Check that the input of a step, or of an inference, has what the graph needs. */
STK_CHECKED stk_status stk_step_check(const stk_graph *graph, const stk_step_input *input,
                                      stk_error *err);
STK_CHECKED stk_status stk_features_check(const stk_graph *graph, const float *features,
                                          stk_error *err);

typedef struct stk_step_output {
    double loss_sum; /* over the samples; not finite when training has diverged */
    /* Samples classified right; a mixed sample has its larger part's label. Sigmoid: samples all of
     * whose known outputs are on the right side of 0.5. Regression: 0. */
    size_t correct;
    double grad_norm;   /* of all gradients, before clipping; NaN unless clipping asked for it */
    bool skipped;       /* no update: a gradient exceeded the range of fp16 */
    float loss_scale;   /* of the gradients; 1 unless the precision is fp16 */
    double busy_s;      /* seconds that the device computed, the optimiser included */
    double update_s;    /* part of busy_s: the optimiser */
    double copy_s;      /* seconds of copying pictures to the device; 0 on a CPU */
    double copy_wait_s; /* part of copy_s in which the device was idle */
} stk_step_output;

typedef struct stk_device_memory {
    uint64_t total_bytes;
    uint64_t free_bytes; /* now; memory that this process uses is not free */
} stk_device_memory;

/* Kernels and convolutions since the device was opened: made here, or loaded from disk. */
typedef struct stk_device_counts {
    int kernels_compiled;
    int kernels_loaded; /* from disk */
    int plans_timed;    /* candidates for convolutions that were timed */
    int plans_loaded;   /* convolutions whose candidate came from disk */
    const char *unkept; /* why the results cannot be stored for the next start; NULL: they are.
                           Valid while the device is open */
} stk_device_counts;

/* The most steps whose results are not collected yet. */
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

/* Whether a state with this config holds tensors of this kind. */
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

/* A kernel's share of one step or inference. */
typedef struct stk_profile_line {
    char what[128]; /* a kernel, or a convolution with its shape */
    int calls;      /* in one step */
    double ms;      /* milliseconds of all calls */
    double bytes;   /* that the calls read and write at least */
} stk_profile_line;

typedef struct stk_backend {
    const char *name;  /* "cpu" */
    size_t most_batch; /* pictures that compile() takes at most; 0: as many as fit into memory */

    stk_status (*device_open)(stk_device **device, const stk_device_config *config, stk_error *err);
    void (*device_close)(stk_device *device);
    /* For people: "NVIDIA H200, 139.8 GiB". Valid while the device is open. */
    const char *(*describe)(const stk_device *device);
    /* The PCI address, by which other libraries know the device: "0000:19:00.0". Valid while the
     * device is open. NULL, as function or as result: the device has none. */
    const char *(*bus_id)(const stk_device *device);
    stk_status (*memory)(stk_device *device, stk_device_memory *memory, stk_error *err);
    /* Bandwidth of the device's memory in bytes per second, measured with a large copy; reads and
     * writes both count. NULL or NaN: not known. */
    double (*bandwidth)(stk_device *device);
    /* Bytes per second of copies from host_take memory to the device, measured with a copy of
     * `bytes`. NULL: the device needs no copies; NaN: not known. */
    double (*copy_bandwidth)(stk_device *device, size_t bytes);
    /* NULL: the backend compiles and times nothing. */
    void (*counts)(const stk_device *device, stk_device_counts *counts);
    /* The precision used for `asked`: resolves AUTO and replaces what the device does not have. */
    stk_precision (*precision)(const stk_device *device, stk_precision asked);
    /* Host memory from which pictures are copied fastest: pinned for a GPU, plain for a CPU. Any
     * thread may call both while the device is open; host_free accepts NULL. */
    void *(*host_take)(stk_device *device, size_t bytes);
    void (*host_free)(stk_device *device, void *memory);

    /*
     * A decoder of JPEGs on the device, for loaders whose memory is host_take's. Bytes of device
     * memory that it takes are decoder_bytes, before anything is opened. STK_ERR_DEVICE, and a
     * sentence that says why: this device cannot decode. NULL functions: no device of the backend
     * can. One for each device; closed before it, after all loaders that have the decoder.
     */
    uint64_t (*decoder_bytes)(stk_device *device);
    stk_status (*decoder_open)(stk_device_decoder *decoder, stk_device *device, stk_error *err);
    void (*decoder_close)(stk_device *device); /* none was opened: nothing happens */

    /* All tensors start as zeros. The graph is borrowed and must outlive the state. */
    stk_status (*state_new)(stk_state **state, stk_device *device, const stk_graph *graph,
                            const stk_state_config *config, stk_error *err);
    void (*state_free)(stk_state *state);
    uint64_t (*state_bytes)(const stk_graph *graph, const stk_state_config *config);
    bool (*state_has)(const stk_state *state, stk_tensor_kind kind);
    /* stk_param.count numbers in the graph's memory order; the state must have the kind. */
    stk_status (*state_read)(stk_state *state, stk_tensor_kind kind, int param, float *values,
                             stk_error *err);
    stk_status (*state_write)(stk_state *state, stk_tensor_kind kind, int param,
                              const float *values, stk_error *err);
    /* Further training state that only the backend understands, such as a loss scale. Numbers that
     * an older file lacks are zero. extras_write with NULL resets them. NULL functions: none. */
    stk_status (*extras_read)(stk_state *state, float extras[STK_STATE_EXTRAS], stk_error *err);
    stk_status (*extras_write)(stk_state *state, const float extras[STK_STATE_EXTRAS],
                               stk_error *err);

    /* All bytes that compile() would allocate for a state of `graph`. *workspace, unless NULL, is
     * the part of them that operations share as scratch. */
    stk_status (*exec_need)(stk_device *device, const stk_graph *graph,
                            const stk_compile_config *config, uint64_t *bytes, uint64_t *workspace,
                            stk_error *err);
    stk_status (*compile)(stk_exec **exec, stk_state *state, const stk_compile_config *config,
                          stk_error *err);
    void (*exec_free)(stk_exec *exec); /* waits for running steps; NULL is fine */
    uint64_t (*exec_bytes)(const stk_exec *exec);

    /* Forward, backward and, with input->update, the optimiser. A halted step updates no weights,
     * but gradients and running statistics are then useless. With output NULL the step may still
     * run when the call returns: collect() returns its result, and all that `input` points to must
     * stay valid until then or until the next step() has returned. */
    stk_status (*step)(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                       stk_error *err);
    /* Returns the results of steps without an output, in order and each once: of all that have
     * ended, up to `room`; with `wait`, of all that were begun. At most STK_STEPS_AHEAD results may
     * be uncollected; one more step() is an error. Also without `wait`, a device may wait here for
     * pictures that it still copies. */
    stk_status (*collect)(stk_exec *exec, bool wait, stk_step_output *outputs, size_t room,
                          size_t *count, stk_error *err);
    /* logits is (count, stk_graph_answers()). Batch norm uses the running statistics, dropout is
     * off. With logits NULL, which needs a fetch(), the inference may still run when the call
     * returns. */
    stk_status (*infer)(stk_exec *exec, const uint8_t *images /* (count, size, size, channels) */,
                        const float *features /* (count, graph features); NULL without */,
                        size_t count, float *logits, stk_error *err);
    /* Returns the logits of the oldest inference whose logits were not fetched. At most two
     * inferences may be in flight; their pictures must stay valid. NULL: none runs ahead. */
    stk_status (*fetch)(stk_exec *exec, float *logits, stk_error *err);

    /* Repeats the last step or inference one operation at a time and returns the times, the longest
     * first. The parameters change. NULL: the backend cannot measure that. */
    stk_status (*profile)(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                          stk_error *err);
} stk_backend;

/* Gives every parameter its first values: see stk_graph_init_part(). */
STK_CHECKED stk_status stk_state_first_weights(const stk_backend *backend, stk_state *state,
                                               const stk_graph *graph, uint64_t seed,
                                               stk_error *err);

/* The same; ends with STK_ERR_STOPPED once `halted` returns true. A large model takes seconds. */
STK_CHECKED stk_status stk_state_first_weights_unless(const stk_backend *backend, stk_state *state,
                                                      const stk_graph *graph, uint64_t seed,
                                                      bool (*halted)(void *user), void *user,
                                                      stk_error *err);

#endif
