/* symbols.h - inside the CUDA backend: finds functions in an open library. */
#ifndef STK_BACKEND_CUDA_DRIVER_SYMBOLS_H
#define STK_BACKEND_CUDA_DRIVER_SYMBOLS_H

#include <stddef.h>

#include <stoker/status.h>

typedef struct cuda_symbol {
    const char *name;
    void *place; /* address of the function pointer to fill */
} cuda_symbol;

/* Fills all pointers. `what` names the library in the error where a function is missing. */
STK_CHECKED stk_status stk_cuda_symbols(void *library, const char *what, const cuda_symbol *symbols,
                                        size_t count, stk_error *err);

#endif
