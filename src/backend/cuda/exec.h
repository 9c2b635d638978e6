/*
 * exec.h - inside the CUDA backend: an executable, and functions of stk_backend by file.
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

/* ---- state.c ---- */

stk_status stk_cuda_state_new(stk_state **state, stk_device *device, const stk_graph *graph,
                              const stk_state_config *config, stk_error *err);
void stk_cuda_state_free(stk_state *state);
uint64_t stk_cuda_state_bytes(const stk_graph *graph, const stk_state_config *config);
bool stk_cuda_state_has(const stk_state *state, stk_tensor_kind kind);
stk_status stk_cuda_state_read(stk_state *state, stk_tensor_kind kind, int param, float *values,
                               stk_error *err);
stk_status stk_cuda_state_write(stk_state *state, stk_tensor_kind kind, int param,
                                const float *values, stk_error *err);
stk_status stk_cuda_state_extras_read(stk_state *state, float extras[STK_STATE_EXTRAS],
                                      stk_error *err);
stk_status stk_cuda_state_extras_write(stk_state *state, const float extras[STK_STATE_EXTRAS],
                                       stk_error *err);
/* Resets the loss scale, dynamic or 1. The count of skipped updates stays. */
STK_CHECKED stk_status stk_cuda_state_scale(stk_state *state, bool moving, stk_error *err);

/* ---- profile.c: where the time of a step goes ---- */

stk_status stk_cuda_profile(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                            stk_error *err);

/* ---- bandwidth.c: bytes per second of copies on the device, and to it ---- */

double stk_cuda_bandwidth(stk_device *device);
double stk_cuda_copy_bandwidth(stk_device *device, size_t bytes);

/* ---- exec.c ---- */

/* Batches on the device: one is computed with while the next one arrives. */
#define CUDA_SLOTS 2

/* Offsets of the parts in an executable's one allocation, in bytes. */
typedef struct cuda_sizes {
    size_t fixed[CUDA_FIXED_COUNT]; /* SIZE_MAX: this buffer lies in the state */
    size_t images[CUDA_SLOTS];
    size_t labels[CUDA_SLOTS];
    size_t arena;
    size_t bytes; /* of the allocation */
} cuda_sizes;

/* Pinned memory of the host for steps that have not ended: one entry for each. */
typedef struct cuda_ring {
    cuda_step_constants constants[STK_STEPS_AHEAD];
    cuda_result results[STK_STEPS_AHEAD];
} cuda_ring;

/*
 * Events of one step or inference, in the order of the device. Between `ready` and `begun` the
 * device only waited for pictures.
 */
typedef struct cuda_moments {
    cuda_event sending;  /* the copy of its pictures begins */
    cuda_event copied;   /* its pictures are on the device */
    cuda_event ready;    /* the steps before it have ended */
    cuda_event begun;    /* the steps before it have ended and its pictures are there */
    cuda_event updating; /* its gradients are computed */
    cuda_event done;
} cuda_moments;

struct stk_exec {
    stk_state *state;
    stk_compile_config config;
    stk_pieces pieces;
    cuda_parameter_layout layout;
    cuda_program weights; /* runs after every change of the parameters: copies of the weights */
    cuda_program main;    /* forward and backward, or forward alone */
    cuda_program update;  /* gathers gradients and moves the parameters */
    cuda_program gather;  /* gathers gradients alone: they accumulate */
    cuda_ref logits;      /* inference: float32 (batch, classes) */
    cuda_sizes sizes;
    cuda_pointer memory; /* the allocation; owned unless `home` is set */
    cuda_pointer fixed[CUDA_FIXED_COUNT];
    cuda_player players[4]; /* of weights, main, update, gather, in this order */
    cuda_ring *ring;
    int *labels;                     /* pinned: (STK_STEPS_AHEAD, batch) */
    float *answers;                  /* pinned: (CUDA_SLOTS, batch, classes); inference */
    size_t answer_bytes[CUDA_SLOTS]; /* of each slot's answers, that the last inference wrote */
    cuda_event used[CUDA_SLOTS];     /* the step that reads the slot's pictures has ended */
    cuda_moments moments[STK_STEPS_AHEAD];
    bool is_noted[STK_STEPS_AHEAD]; /* `smaller` computed the step: its result is in `noted` */
    stk_step_output noted[STK_STEPS_AHEAD]; /* results of `smaller` */
    uint64_t started;                       /* steps so far */
    uint64_t collected;                     /* steps whose results were returned */
    uint64_t version;         /* of the state, when the copies of the weights were made */
    struct stk_exec *smaller; /* owned: for batches with fewer samples; made for the first */
    struct stk_exec
        *home; /* of a smaller executable: the one whose allocation it uses; NULL: its own */
};

#endif
