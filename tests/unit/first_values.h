/* first_values.h - the first values of one parameter, drawn on the test's own thread. */
#ifndef STK_TESTS_FIRST_VALUES_H
#define STK_TESTS_FIRST_VALUES_H

#include "engine/graph.h"

/* All values of a parameter, in memory order, as stk_state_first_weights() gives them. */
static inline void first_values(const stk_graph *graph, int param, uint64_t seed, float *values) {
    stk_graph_init_part(graph, param, seed, 0, graph->params[param].count, values);
}

#endif
