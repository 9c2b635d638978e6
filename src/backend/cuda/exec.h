/*
 * exec.h - inside the CUDA backend: an executable, its training steps and inferences.
 *
 * An executable is a network compiled for one batch size: four programs, one allocation on the
 * device for all that they need, and the queue of steps that run ahead of the host. It belongs to
 * one thread at a time.
 */
#ifndef STK_BACKEND_CUDA_EXEC_H
#define STK_BACKEND_CUDA_EXEC_H

#include "backend/cuda/device.h"
#include "backend/cuda/player/player.h"
#include "engine/pieces.h"

/* Batches on the device: one is computed with while the next one arrives. */
#define CUDA_DEVICE_BATCHES 2

/* The programs of an executable. */
enum {
    PLAY_WEIGHTS, /* makes the copies of the weights; runs after a change of the parameters that
                     this executable's own update did not make */
    PLAY_MAIN,    /* forward and backward, or forward alone */
    PLAY_UPDATE,  /* gathers gradients and moves the parameters */
    PLAY_GATHER,  /* gathers gradients alone: they accumulate */
    PLAY_COUNT
};

/* Offsets of the parts in an executable's one allocation, in bytes. */
typedef struct cuda_parts {
    size_t fixed[CUDA_FIXED_COUNT]; /* SIZE_MAX: this buffer lies in the state */
    size_t images[CUDA_DEVICE_BATCHES];
    size_t labels[CUDA_DEVICE_BATCHES];
    size_t targets[CUDA_DEVICE_BATCHES]; /* of losses without labels */
    size_t features[CUDA_DEVICE_BATCHES];
    size_t arena;
    size_t bytes; /* of the allocation */
} cuda_parts;

/* Pinned memory of the host for steps that have not ended: one entry for each. */
typedef struct cuda_step_queue {
    cuda_step_constants constants[STK_STEPS_AHEAD];
    cuda_result results[STK_STEPS_AHEAD];
} cuda_step_queue;

/*
 * Events of one step or inference, in the order of the device. Between `ready` and `begun` the
 * device only waited for pictures.
 */
typedef struct cuda_step_events {
    cuda_event sending;  /* the copy of its pictures begins */
    cuda_event copied;   /* its pictures are on the device */
    cuda_event ready;    /* the steps before it have ended */
    cuda_event begun;    /* the steps before it have ended and its pictures are there */
    cuda_event updating; /* its gradients are computed */
    cuda_event done;
} cuda_step_events;

struct stk_exec {
    stk_state *state;
    stk_compile_config config;
    stk_pieces pieces;
    cuda_parameter_layout layout;
    cuda_program programs[PLAY_COUNT];
    cuda_ref logits; /* inference: float32 (batch, classes) */
    cuda_parts parts;
    cuda_pointer memory; /* the allocation; owned unless `home` is set */
    cuda_pointer fixed[CUDA_FIXED_COUNT];
    cuda_player players[PLAY_COUNT]; /* of the programs */
    cuda_step_queue *queue;          /* pinned */
    int *labels;                     /* pinned: (STK_STEPS_AHEAD, batch) */
    float *targets;                  /* pinned: (CUDA_DEVICE_BATCHES, batch, outputs); NULL with
                                        labels and in inference */
    float *features;                 /* pinned: (CUDA_DEVICE_BATCHES, batch, features) or NULL */
    float *answers;                  /* pinned: (CUDA_DEVICE_BATCHES, batch, classes); inference */
    size_t answer_bytes[CUDA_DEVICE_BATCHES]; /* written by the last inference of each */
    cuda_event used[CUDA_DEVICE_BATCHES];     /* the step that reads its pictures has ended */
    cuda_step_events events[STK_STEPS_AHEAD];
    bool is_noted[STK_STEPS_AHEAD]; /* `smaller` computed the step: its result is in `noted` */
    stk_step_output noted[STK_STEPS_AHEAD]; /* results of `smaller` */
    uint64_t started;                       /* steps so far */
    uint64_t collected;                     /* steps whose results were returned */
    uint64_t version; /* of the state, when the copies of the weights were made */
    /* Owned: trains on batches of fewer samples; NULL before the first such batch. A loader drops
     * the last batch of an epoch when it is short, so only a fold with fewer pictures than its
     * batch sends one. */
    struct stk_exec *smaller;
    /* Of a smaller executable: the executable whose allocation it uses; NULL: it has its own. */
    struct stk_exec *home;
};

/*
 * step.c: step, collect, infer and fetch of engine/backend.h. A step may still run when
 * stk_cuda_step() returns; stk_cuda_collect() returns its result later.
 */

/* As step() of the interface, for exactly the batch that the executable was compiled for. */
STK_CHECKED stk_status stk_cuda_step(stk_exec *exec, const stk_step_input *input,
                                     stk_step_output *output, stk_error *err);

/* Queues a result that the smaller executable has computed; collect() returns it in its turn. */
STK_CHECKED stk_status stk_cuda_step_note(stk_exec *exec, const stk_step_output *output,
                                          stk_error *err);

STK_CHECKED stk_status stk_cuda_collect(stk_exec *exec, bool wait, stk_step_output *outputs,
                                        size_t room, size_t *count, stk_error *err);

STK_CHECKED stk_status stk_cuda_infer(stk_exec *exec, const uint8_t *images, const float *features,
                                      size_t count, float *logits, stk_error *err);
STK_CHECKED stk_status stk_cuda_fetch(stk_exec *exec, float *logits, stk_error *err);

/*
 * Functions of engine/backend.h that measure the device for people: where the time of a step goes
 * (profile.c), and bytes per second of copies on the device and to it (bandwidth.c).
 */
stk_status stk_cuda_profile(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                            stk_error *err);
double stk_cuda_bandwidth(stk_device *device);
double stk_cuda_copy_bandwidth(stk_device *device, size_t bytes);

#endif
