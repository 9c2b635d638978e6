/*
 * network.h - the network of a run on its device: the opened device, the graph, and its weights.
 *
 * One struct holds what everything that trains or predicts in a run begins with. prepare.c opens it
 * and job.c closes it, by the functions below. In between only the tensors in `state` change:
 * measuring a batch, the first weights, training, a loaded checkpoint and a loaded saved state each
 * overwrite them. Threads: the job's, as a device belongs to one thread.
 */
#ifndef STK_JOB_RECIPE_NETWORK_H
#define STK_JOB_RECIPE_NETWORK_H

#include "backend/opened_decoder.h"
#include "backend/opened_device.h"
#include "base/random_id.h"
#include "dataset/dataset.h"
#include "engine/exec_cache.h"
#include "events/events.h"
#include "job/recipe/job_options.h"
#include "job/recipe/recipe.h"
#include "run/run_clock.h"
#include "train/host_memory.h"

typedef struct stk_job_network {
    stk_opened_device opened;    /* owned */
    stk_opened_decoder decoder;  /* owned; of that device, for all loaders of the run */
    stk_device_memory memory;    /* of the device, before the network was allocated; the decoder's
                                    is not free */
    stk_host_memory host;        /* allocates batches where the device reads them fastest */
    stk_graph *graph;            /* owned */
    stk_graph *eval_graph;       /* owned: the same for the size of validation and prediction */
    stk_graph *early_graph;      /* owned: for the small pictures of the first half; NULL: none */
    stk_graph *early_eval_graph; /* owned: for validation and prediction with these */
    stk_state_config state_config;
    stk_state *state; /* owned: weights, gradients, optimiser; NULL until there is memory for it */
    stk_exec_cache execs; /* of that state: what folds and predictions leave for the next */
    bool plain;           /* --no-compile: nothing is fused */
    char *pretrained;     /* owned: the file that every fold starts from; NULL: random weights */
    bool head_anew; /* the head of that file is for other classes: training starts without one */
    char pretrained_sum[STK_RANDOM_ID_TEXT]; /* checksum of that file; "": none was read */
} stk_job_network;

/* A network that the options ask for; its device is not open yet. */
stk_job_network stk_network_begin(const stk_job_options *options);

/* Fails, before anything is opened, where --decode asks for more than --device can. */
STK_CHECKED stk_status stk_network_check_decode(const stk_options *options, stk_error *err);

/* Opens the device and its decoder; the clock may halt the device's work. */
STK_CHECKED stk_status stk_network_open_device(stk_job_network *network, stk_options *options,
                                               stk_run_clock *clock, stk_error *err);

/* Closes both, after everything that was made from them. */
void stk_network_close_device(stk_job_network *network);

/* Notes the memory of the device, before the network is allocated. */
STK_CHECKED stk_status stk_network_note_memory(stk_job_network *network, stk_error *err);

/* Builds the graphs; the state is allocated by stk_network_allocate(), once the batch is known. */
STK_CHECKED stk_status stk_network_build(stk_job_network *network, const stk_recipe *recipe,
                                         int classes, stk_error *err);
STK_CHECKED stk_status stk_network_allocate(stk_job_network *network, stk_error *err);

/* Frees the state, if there is one. */
void stk_network_free_state(stk_job_network *network);

/* Frees the graphs and the state, so that another network can be built. */
void stk_network_free_graph(stk_job_network *network);

/* Frees everything except the device and its decoder. */
void stk_network_free(stk_job_network *network);

/* Builds the network whose inference gives the inputs of the head, too, for pictures of the
 * recipe's evaluation size. Freed with stk_graph_free(). */
STK_CHECKED stk_status stk_network_build_embedding(const stk_job_network *network,
                                                   const stk_recipe *recipe, stk_graph **graph,
                                                   stk_error *err);

/* How the network is compiled: for training, or for validation and prediction with pictures of the
 * recipe's size, which is the usual one or the early one. */
stk_compile_config stk_network_compile_config(const stk_job_network *network,
                                              const stk_recipe *recipe, bool train);

/*
 * Sets the weights that a fold begins with: random ones of this seed, or pretrained ones with a new
 * head. The optimiser's tensors become zero. STK_ERR_STOPPED: the clock left no time for it.
 */
STK_CHECKED stk_status stk_network_first_weights(stk_job_network *network, const stk_recipe *recipe,
                                                 int fold, stk_run_clock *clock, stk_error *err);

/*
 * Finds the pretrained weights of the recipe, and checks that they fit. `before` is the
 * checksum in the saved state of a resumed run ("": none); STK_ERR_DATA: the file has changed.
 */
STK_CHECKED stk_status stk_network_find_pretrained(stk_job_network *network,
                                                   const stk_recipe *recipe, stk_options *options,
                                                   int classes, const char *before,
                                                   const stk_events *events, stk_error *err);

/* Warns when the file of a resumed run's pretrained weights has changed, though it is not needed
 * any more. */
void stk_network_warn_replaced_pretrained(const stk_job_options *options, const char *before,
                                          const stk_events *events);

#endif
