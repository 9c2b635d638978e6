/*
 * exec.h - inside the CUDA backend: the parts of the interface, file by file, and what an
 * executable is.
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
/* The loss scale at its start: a moving one, or 1. How many updates were left out stays known. */
STK_CHECKED stk_status stk_cuda_state_scale(stk_state *state, bool moving, stk_error *err);

/* ---- profile.c ---- */

stk_status stk_cuda_profile(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                            stk_error *err);

/* ---- bandwidth.c ---- */

double stk_cuda_bandwidth(stk_device *device);
double stk_cuda_copy_bandwidth(stk_device *device, size_t bytes);

/* ---- exec.c ---- */

/* Batches that can be on their way to the device: one is computed with while the next arrives. */
#define CUDA_SLOTS 2

/* Where the parts of an executable's one allocation lie, and how large it is. */
typedef struct cuda_sizes {
    size_t fixed[CUDA_FIXED_COUNT]; /* offsets; SIZE_MAX: it lies in the state */
    size_t images[CUDA_SLOTS];
    size_t labels[CUDA_SLOTS];
    size_t arena;
    size_t bytes;
} cuda_sizes;

/* What the host keeps for each step on its way; in pinned memory. */
typedef struct cuda_ring {
    cuda_step_constants constants[STK_STEPS_AHEAD];
    cuda_result results[STK_STEPS_AHEAD];
} cuda_ring;

/*
 * Moments of a step, or of an inference, on the device. Between `ready` and `begun` it had nothing
 * to do but wait for pictures.
 */
typedef struct cuda_moments {
    cuda_event sending;  /* its pictures set out */
    cuda_event copied;   /* they have arrived */
    cuda_event ready;    /* the steps before it have ended */
    cuda_event begun;    /* they have, and its pictures are there */
    cuda_event updating; /* its gradients are there */
    cuda_event done;
} cuda_moments;

struct stk_exec {
    stk_state *state;
    stk_compile_config config;
    stk_pieces pieces;
    cuda_parameter_layout layout;
    cuda_program weights; /* after the parameters have changed */
    cuda_program main;
    cuda_program update; /* gather and optimise */
    cuda_program gather; /* gather alone: gradients are added up */
    cuda_ref logits;
    cuda_sizes sizes;
    cuda_pointer memory;
    cuda_pointer fixed[CUDA_FIXED_COUNT];
    cuda_player players[4]; /* of the programs above, in their order */
    cuda_ring *ring;
    int *labels;                     /* pinned: (STK_STEPS_AHEAD, batch) */
    float *answers;                  /* pinned: (CUDA_SLOTS, batch, classes); inference */
    size_t answer_bytes[CUDA_SLOTS]; /* of these, that the last one gave */
    cuda_event used[CUDA_SLOTS];     /* the step that reads these pictures has ended */
    cuda_moments moments[STK_STEPS_AHEAD];
    bool is_noted[STK_STEPS_AHEAD];         /* the smaller executable computed the step */
    stk_step_output noted[STK_STEPS_AHEAD]; /* what the smaller executable came to */
    uint64_t started;                       /* steps so far */
    uint64_t collected;                     /* of these, whose results were handed out */
    uint64_t version;         /* of the state's parameters that the copies were made from */
    struct stk_exec *smaller; /* for fewer samples than the batch; made when they are met */
    struct stk_exec *home;    /* whose memory it has, being the smaller one of it; NULL: its own */
};

#endif
