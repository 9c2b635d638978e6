/*
 * train_state.h - everything that training remembers of its parameters, in one file.
 *
 * A safetensors file with a tensor per parameter and kind, called "value/NAME", "momentum/NAME",
 * "second/NAME", "ema/NAME" and, where gradients wait to be used, "gradient/NAME". The numbers
 * keep the state's own layout, (O, kh, kw, I) for a convolution, so that a state comes back bit for
 * bit. Further state of the backend is "extras"; the caller's own goes into the notes. The last
 * tensor, "checksum", covers all other tensors and the notes.
 */
#ifndef STK_WEIGHTS_TRAIN_STATE_H
#define STK_WEIGHTS_TRAIN_STATE_H

#include "engine/backend.h"
#include "weights/safetensors.h"

/*
 * Takes the writer: the file is committed or, after an error, discarded. Needs memory for the
 * largest tensor, beside what the writer gathers.
 */
STK_CHECKED stk_status stk_train_state_save(stk_file_writer *writer, const stk_backend *backend,
                                            stk_state *state, const stk_graph *graph,
                                            bool gradients, const stk_tensor_note *notes,
                                            size_t note_count, stk_error *err);

/*
 * Reads the whole file and checks its checksum: STK_ERR_DATA where numbers or notes have changed. A
 * file of an older version, without a checksum, passes.
 */
STK_CHECKED stk_status stk_train_state_verify(const stk_tensor_file *file, const char *path,
                                              stk_error *err);

/* Checks that the file has every tensor of the state, by name and shape; STK_ERR_DATA names one. */
STK_CHECKED stk_status stk_train_state_fits(const stk_tensor_file *file, const char *path,
                                            const stk_backend *backend, const stk_state *state,
                                            const stk_graph *graph, bool gradients, stk_error *err);

/* Loads all tensors that the state has; a file that lacks one is STK_ERR_DATA. */
STK_CHECKED stk_status stk_train_state_load(const stk_tensor_file *file, const char *path,
                                            const stk_backend *backend, stk_state *state,
                                            const stk_graph *graph, bool gradients, stk_error *err);

#endif
