/*
 * fake_nvidia.c - libraries that have the names of NVIDIA's functions and do nothing.
 *
 * Compiled several times, into one small library each, for tests of how libraries are found:
 * FAKE_DRIVER, FAKE_NVRTC (a version such as 1300), FAKE_CUDNN (the version of CUDA that it is for,
 * such as 13000) or FAKE_CUBLASLT.
 */
#include "backend/cuda/driver/api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#ifdef FAKE_DRIVER
/* Its version stays what the caller put there: it is none. */
#define X(name, symbol, parameters)             \
    int fake_##name parameters __asm__(symbol); \
    int fake_##name parameters {                \
        return 0;                               \
    }
CUDA_DRIVER_FUNCTIONS(X)
#endif

#ifdef FAKE_NVRTC
int nvrtcVersion(int *major, int *minor) {
    *major = FAKE_NVRTC / 100;
    *minor = FAKE_NVRTC % 100;
    return 0;
}
#define nothing(name) \
    int name(void) {  \
        return 1;     \
    }
nothing(nvrtcGetNumSupportedArchs) nothing(nvrtcGetSupportedArchs) nothing(nvrtcCreateProgram)
    nothing(nvrtcCompileProgram) nothing(nvrtcGetCUBINSize) nothing(nvrtcGetCUBIN)
        nothing(nvrtcGetPTXSize) nothing(nvrtcGetPTX) nothing(nvrtcGetProgramLogSize)
            nothing(nvrtcGetProgramLog) nothing(nvrtcDestroyProgram)
#endif

#ifdef FAKE_CUDNN
                size_t cudnnGetVersion(void) {
    return 91900;
}
size_t cudnnGetCudartVersion(void) {
    return FAKE_CUDNN;
}
#endif

#ifdef FAKE_CUBLASLT
size_t cublasLtGetVersion(void) {
    return FAKE_CUBLASLT;
}
#endif
