/* symbols.h - inside the CUDA backend: functions of a library that is open. */
#ifndef STK_BACKEND_CUDA_DRIVER_SYMBOLS_H
#define STK_BACKEND_CUDA_DRIVER_SYMBOLS_H

#include <stddef.h>

#include <stoker/status.h>

typedef struct cuda_symbol {
    const char *name;
    void *place; /* of the pointer that is filled */
} cuda_symbol;

/* Fills all of them; `what` names the library in the error when one is not there. */
STK_CHECKED stk_status stk_cuda_symbols(void *library, const char *what, const cuda_symbol *symbols,
                                        size_t count, stk_error *err);

#endif
