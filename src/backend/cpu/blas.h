/* blas.h - sets up the linked CBLAS library: its threads, its buffer, its kernels. */
#ifndef STK_BACKEND_CPU_BLAS_H
#define STK_BACKEND_CPU_BLAS_H

#include <stoker/status.h>

/*
 * Makes the library compute on the calling thread only: the pool has the cores. OpenBLAS asks for
 * its buffer again and again, for ever, where the system refuses it (ulimit -v). The buffer is
 * therefore made here, after a look whether there is room for it; STK_ERR_MEMORY where there is
 * not.
 */
STK_CHECKED stk_status stk_cpu_blas_begin(stk_error *err);

/*
 * OpenBLAS chooses its kernels when it is loaded, from the processors that it knew when it was
 * released; on a newer one it falls back to SSE3, three times slower than it could be. Returns the
 * value of OPENBLAS_CORETYPE that a process should be started with, or NULL when all is well.
 */
const char *stk_cpu_blas_core_type(void);

#endif
