/* fill.h - only for this room: copies parameters between the layouts of a state and of a file. */
#ifndef STK_WEIGHTS_FILL_H
#define STK_WEIGHTS_FILL_H

#include "engine/backend.h"
#include "weights/safetensors.h"

#define STK_NO_TENSOR SIZE_MAX

/* The element count of the largest parameter: a buffer of this size holds any one. */
size_t stk_fill_most(const stk_graph *graph);

/* The tensor of a parameter in a file, F32 in the file's order; its name is borrowed from the
 * graph. */
stk_tensor stk_fill_describe(const stk_param *param);

bool stk_fill_same_shape(const stk_param *param, const stk_tensor *tensor);

/* The same shape, or filters over RGB for the layer that reads pictures of other channels: these
 * become filters over its channels (channels.h). */
bool stk_fill_fits(const stk_graph *graph, int param, const stk_tensor *tensor);

/* From memory's order, a convolution's being (O, kh, kw, I), to the file's (O, I, kh, kw). */
void stk_fill_to_file(const stk_param *param, const float *from, float *to);

/*
 * Writes tensor number from[p] of the file into parameter p of the state, for every p that has one
 * (STK_NO_TENSOR: the parameter stays as it is). Shapes must fit as stk_fill_fits() says. With
 * `finite`, NaN and infinity are STK_ERR_DATA. Tensors are read in the order of the file.
 */
STK_CHECKED stk_status stk_fill_state(const stk_tensor_file *file, const char *path,
                                      const size_t *from, bool finite, const stk_backend *backend,
                                      stk_state *state, const stk_graph *graph, stk_error *err);

#endif
