/*
 * train_state.h - everything that training remembers of its parameters, in one file.
 *
 * A safetensors file with a tensor per parameter and kind, called "value/NAME", "momentum/NAME",
 * "second/NAME", "ema/NAME" and, where gradients wait to be used, "gradient/NAME". The numbers are
 * in the state's own order, a convolution's being (O, kh, kw, I): nothing is turned on the way, and
 * what is read back is what was there bit for bit. What a backend remembers besides is "extras".
 * What else is to be kept goes into the notes. The last tensor, "checksum", is one of all the
 * others and of the notes.
 */
#ifndef STK_WEIGHTS_TRAIN_STATE_H
#define STK_WEIGHTS_TRAIN_STATE_H

#include "engine/backend.h"
#include "weights/safetensors.h"

/*
 * Takes the writer: the file is committed or, after an error, discarded. Tensor by tensor: memory
 * for the largest one is all it takes besides what the writer gathers.
 */
STK_CHECKED stk_status stk_train_state_save(stk_file_writer *writer, const stk_backend *backend,
                                            stk_state *state, const stk_graph *graph,
                                            bool gradients, const stk_tensor_note *notes,
                                            size_t note_count, stk_error *err);

/*
 * Reads all of the file: STK_ERR_DATA when its numbers or notes are not those that were written. A
 * file without a checksum, of an older version, is not looked at.
 */
STK_CHECKED stk_status stk_train_state_verify(const stk_tensor_file *file, const char *path,
                                              stk_error *err);

/* Whether the file has every tensor of the state, by name and shape; STK_ERR_DATA names one. */
STK_CHECKED stk_status stk_train_state_fits(const stk_tensor_file *file, const char *path,
                                            const stk_backend *backend, const stk_state *state,
                                            const stk_graph *graph, bool gradients, stk_error *err);

/* Every kind that the state has from a file that is open; a file that lacks one is refused. */
STK_CHECKED stk_status stk_train_state_load(const stk_tensor_file *file, const char *path,
                                            const stk_backend *backend, stk_state *state,
                                            const stk_graph *graph, bool gradients, stk_error *err);

#endif
