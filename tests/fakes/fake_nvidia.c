/*
 * fake_nvidia.c - libraries that have the names of NVIDIA's functions and do nothing.
 *
 * Compiled several times, into one small library each, for tests of how libraries are found:
 * FAKE_DRIVER, FAKE_NVRTC (a version such as 1300), FAKE_CUDNN (the version of CUDA that it is for,
 * such as 13000), FAKE_CUBLASLT or FAKE_NVJPEG (a version such as 12; without newer functions).
 */
#include "backend/cuda/driver/jpeg_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NOTHING(name) \
    int name(void) {  \
        return 1;     \
    }

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
NOTHING(nvrtcGetNumSupportedArchs)
NOTHING(nvrtcGetSupportedArchs)
NOTHING(nvrtcCreateProgram)
NOTHING(nvrtcCompileProgram)
NOTHING(nvrtcGetCUBINSize)
NOTHING(nvrtcGetCUBIN)
NOTHING(nvrtcGetPTXSize)
NOTHING(nvrtcGetPTX)
NOTHING(nvrtcGetProgramLogSize)
NOTHING(nvrtcGetProgramLog)
NOTHING(nvrtcDestroyProgram)
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

#ifdef FAKE_NVJPEG
int nvjpegGetProperty(int property, int *value) {
    *value = property == CUDA_JPEG_VERSION_MAJOR ? FAKE_NVJPEG : 0;
    return 0;
}
NOTHING(nvjpegCreateEx)
NOTHING(nvjpegDestroy)
NOTHING(nvjpegJpegStateCreate)
NOTHING(nvjpegJpegStateDestroy)
NOTHING(nvjpegDecodeBatchedInitialize)
NOTHING(nvjpegDecodeBatched)
#endif
