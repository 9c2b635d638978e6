/* test_cuda_api.c - our numbers of CUDA's interface are NVIDIA's. */
#include "check.h"

#include "backend/cuda/driver/jpeg_api.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

/*
 * A function of theirs is cast to the type of ours: GCC complains where such a cast changes
 * more than the names of integers and of pointers. Nothing is called, nor linked.
 */
#define CALL(table, ours, theirs) compared += sizeof((__typeof__(((table *)0)->ours))(theirs)) > 0

#ifdef STK_HAVE_CUDA_H
#include <cuda.h>
#include <nvrtc.h>

SAME(CUDA_GOOD, CUDA_SUCCESS);
SAME(CUDA_ERROR_OUT_OF_MEMORY_, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_NO_DEVICE_, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_NOT_READY_, CUDA_ERROR_NOT_READY);
SAME(CUDA_ATTRIBUTE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CUDA_EVENT_BLOCKING, CU_EVENT_BLOCKING_SYNC);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
_Static_assert(sizeof(cuda_pointer) == sizeof(CUdeviceptr), "a device's addresses");

static void names_and_numbers_are_nvidias(void) {
    int compared = 0;
    int listed = 0;
#define X(name, symbol, parameters) listed++;
    CUDA_DRIVER_FUNCTIONS(X)
    CUDA_NVRTC_FUNCTIONS(X)
#undef X
    CALL(cuda_driver, init, cuInit);
    CALL(cuda_driver, driver_version, cuDriverGetVersion);
    CALL(cuda_driver, error_name, cuGetErrorName);
    CALL(cuda_driver, error_string, cuGetErrorString);
    CALL(cuda_driver, device_count, cuDeviceGetCount);
    CALL(cuda_driver, device_get, cuDeviceGet);
    CALL(cuda_driver, device_name, cuDeviceGetName);
    CALL(cuda_driver, device_bus_id, cuDeviceGetPCIBusId);
    CALL(cuda_driver, device_memory, cuDeviceTotalMem);
    CALL(cuda_driver, device_attribute, cuDeviceGetAttribute);
    CALL(cuda_driver, context_retain, cuDevicePrimaryCtxRetain);
    CALL(cuda_driver, context_release, cuDevicePrimaryCtxRelease);
    CALL(cuda_driver, context_use, cuCtxSetCurrent);
    CALL(cuda_driver, memory_info, cuMemGetInfo);
    CALL(cuda_driver, memory_take, cuMemAlloc);
    CALL(cuda_driver, memory_free, cuMemFree);
    CALL(cuda_driver, host_take, cuMemHostAlloc);
    CALL(cuda_driver, host_free, cuMemFreeHost);
    CALL(cuda_driver, copy_in, cuMemcpyHtoDAsync);
    CALL(cuda_driver, copy_out, cuMemcpyDtoHAsync);
    CALL(cuda_driver, copy, cuMemcpyDtoDAsync);
    CALL(cuda_driver, fill, cuMemsetD8Async);
    CALL(cuda_driver, stream_new, cuStreamCreate);
    CALL(cuda_driver, stream_new_first, cuStreamCreateWithPriority);
    CALL(cuda_driver, stream_free, cuStreamDestroy);
    CALL(cuda_driver, stream_wait, cuStreamSynchronize);
    CALL(cuda_driver, stream_wait_event, cuStreamWaitEvent);
    CALL(cuda_driver, event_new, cuEventCreate);
    CALL(cuda_driver, event_free, cuEventDestroy);
    CALL(cuda_driver, event_record, cuEventRecord);
    CALL(cuda_driver, event_wait, cuEventSynchronize);
    CALL(cuda_driver, event_query, cuEventQuery);
    CALL(cuda_driver, event_elapsed_ms, cuEventElapsedTime);
    CALL(cuda_driver, module_load, cuModuleLoadData);
    CALL(cuda_driver, module_free, cuModuleUnload);
    CALL(cuda_driver, module_function, cuModuleGetFunction);
    CALL(cuda_driver, function_set, cuFuncSetAttribute);
    CALL(cuda_driver, launch, cuLaunchKernel);
    CALL(cuda_driver, capture_begin, cuStreamBeginCapture);
    CALL(cuda_driver, capture_end, cuStreamEndCapture);
    CALL(cuda_driver, graph_make, cuGraphInstantiateWithFlags);
    CALL(cuda_driver, graph_launch, cuGraphLaunch);
    CALL(cuda_driver, graph_exec_free, cuGraphExecDestroy);
    CALL(cuda_driver, graph_free, cuGraphDestroy);
    CALL(cuda_nvrtc, version, nvrtcVersion);
    CALL(cuda_nvrtc, arch_count, nvrtcGetNumSupportedArchs);
    CALL(cuda_nvrtc, archs, nvrtcGetSupportedArchs);
    CALL(cuda_nvrtc, create, nvrtcCreateProgram);
    CALL(cuda_nvrtc, compile, nvrtcCompileProgram);
    CALL(cuda_nvrtc, code_bytes, nvrtcGetCUBINSize);
    CALL(cuda_nvrtc, code, nvrtcGetCUBIN);
    CALL(cuda_nvrtc, ptx_bytes, nvrtcGetPTXSize);
    CALL(cuda_nvrtc, ptx, nvrtcGetPTX);
    CALL(cuda_nvrtc, log_bytes, nvrtcGetProgramLogSize);
    CALL(cuda_nvrtc, log, nvrtcGetProgramLog);
    CALL(cuda_nvrtc, destroy, nvrtcDestroyProgram);
    CHECK_INT(compared, listed);
}

/* Faults of the device, and answers that leave it as it was. */
static void lost_devices_are_told_apart(void) {
    static const int lost[] = {CUDA_ERROR_ECC_UNCORRECTABLE,     CUDA_ERROR_NVLINK_UNCORRECTABLE,
                               CUDA_ERROR_ILLEGAL_ADDRESS,       CUDA_ERROR_LAUNCH_TIMEOUT,
                               CUDA_ERROR_CONTEXT_IS_DESTROYED,  CUDA_ERROR_ASSERT,
                               CUDA_ERROR_HARDWARE_STACK_ERROR,  CUDA_ERROR_ILLEGAL_INSTRUCTION,
                               CUDA_ERROR_MISALIGNED_ADDRESS,    CUDA_ERROR_INVALID_PC,
                               CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_LAUNCH_FAILED};
    static const int there[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
                                CUDA_ERROR_NOT_READY, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        CHECK(stk_cuda_is_lost(lost[i]));
    }
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        CHECK(!stk_cuda_is_lost(there[i]));
    }
}
#else
static void lost_devices_are_told_apart(void) {
    CHECK_SKIP("cuda.h is not installed");
}

static void names_and_numbers_are_nvidias(void) {
    CHECK_SKIP("cuda.h is not installed");
}
#endif

#ifdef STK_HAVE_NVJPEG_H
#include <nvjpeg.h>

SAME(CUDA_JPEG_GOOD, NVJPEG_STATUS_SUCCESS);
SAME(CUDA_JPEG_BAD, NVJPEG_STATUS_BAD_JPEG);
SAME(CUDA_JPEG_UNSUPPORTED, NVJPEG_STATUS_JPEG_NOT_SUPPORTED);
SAME(CUDA_JPEG_NO_MEMORY, NVJPEG_STATUS_ALLOCATOR_FAILURE);
SAME(CUDA_JPEG_WRONG_ARCH, NVJPEG_STATUS_ARCH_MISMATCH);
SAME(CUDA_JPEG_NO_SUCH_WAY, NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED);
SAME(CUDA_JPEG_BY_PROCESSORS, NVJPEG_BACKEND_GPU_HYBRID);
SAME(CUDA_JPEG_BY_ENGINES, NVJPEG_BACKEND_HARDWARE);
SAME(CUDA_JPEG_PLANES, NVJPEG_OUTPUT_YUV);
SAME(CUDA_JPEG_CHANNELS, NVJPEG_MAX_COMPONENT);
SAME(CUDA_JPEG_VERSION_MAJOR, MAJOR_VERSION);
SAME(CUDA_JPEG_VERSION_MINOR, MINOR_VERSION);
_Static_assert(sizeof(cuda_jpeg_image) == sizeof(nvjpegImage_t), "an image");
_Static_assert(offsetof(cuda_jpeg_image, pitch) == offsetof(nvjpegImage_t, pitch), "its pitch");

static void names_and_numbers_of_nvjpeg_are_nvidias(void) {
    int compared = 0;
    int listed = 0;
#define X(name, symbol, parameters) listed++;
    CUDA_JPEG_FUNCTIONS(X)
    CUDA_JPEG_NEWER_FUNCTIONS(X)
#undef X
    CALL(cuda_jpeg, property, nvjpegGetProperty);
    CALL(cuda_jpeg, create, nvjpegCreateEx);
    CALL(cuda_jpeg, destroy, nvjpegDestroy);
    CALL(cuda_jpeg, state_new, nvjpegJpegStateCreate);
    CALL(cuda_jpeg, state_free, nvjpegJpegStateDestroy);
    CALL(cuda_jpeg, begin, nvjpegDecodeBatchedInitialize);
    CALL(cuda_jpeg, decode, nvjpegDecodeBatched);
    CALL(cuda_jpeg, engines, nvjpegGetHardwareDecoderInfo);
    CHECK_INT(compared, listed);
}
#else
static void names_and_numbers_of_nvjpeg_are_nvidias(void) {
    CHECK_SKIP("nvjpeg.h is not installed");
}
#endif

static const check_test tests[] = {TEST(names_and_numbers_are_nvidias),
                                   TEST(names_and_numbers_of_nvjpeg_are_nvidias),
                                   TEST(lost_devices_are_told_apart)};

CHECK_MAIN(tests)
