/*
 * jpeg_api.c - opens nvJPEG.
 *
 * Its name holds the version of CUDA. Two versions of CUDA in one process would each load their own
 * runtime, so nvJPEG must be of the version of the other libraries.
 */
#include "backend/cuda/driver/jpeg_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/search.h"
#include "base/error.h"
#include "base/mem.h"

#define X(name, symbol, parameters) {symbol, &jpeg->name},

static stk_status fill(cuda_jpeg *jpeg, stk_error *err) {
    const cuda_symbol wanted[] = {CUDA_JPEG_FUNCTIONS(X)};
    const cuda_symbol newer[] = {CUDA_JPEG_NEWER_FUNCTIONS(X)};
    for (size_t i = 0; i < STK_COUNT(newer); i++) {
        void *found = dlsym(jpeg->library, newer[i].name);
        memcpy(newer[i].place, &found, sizeof found);
    }
    return stk_cuda_symbols(jpeg->library, jpeg->found, wanted, STK_COUNT(wanted), err);
}
#undef X

static stk_status ask_version(cuda_jpeg *jpeg, stk_error *err) {
    int major = 0;
    int minor = 0;
    if (jpeg->property(CUDA_JPEG_VERSION_MAJOR, &major) != CUDA_JPEG_GOOD ||
        jpeg->property(CUDA_JPEG_VERSION_MINOR, &minor) != CUDA_JPEG_GOOD) {
        return STK_FAIL(err, STK_ERR_DEVICE, "%s cannot be used: it does not tell its version",
                        jpeg->found);
    }
    jpeg->version = 1000 * major + 10 * minor;
    return STK_OK;
}

stk_status stk_cuda_jpeg_open(cuda_jpeg *jpeg, const cuda_libraries *libraries, stk_error *err) {
    *jpeg = (cuda_jpeg){0};
    int major =
        libraries->cuda_major > 0 ? libraries->cuda_major : libraries->driver_version / 1000;
    cuda_folders folders;
    char soname[32];
    char trouble[256];
    snprintf(soname, sizeof soname, "libnvjpeg.so.%d", major);
    stk_cuda_folders_find(&folders);
    jpeg->library = stk_cuda_folders_open(&folders, soname, RTLD_NOW | RTLD_NODELETE, false,
                                          trouble, sizeof trouble);
    stk_status status = STK_OK;
    if (jpeg->library == NULL) {
        status = stk_cuda_folders_missing(
            &folders, soname, trouble, major >= 13 ? "nvidia-nvjpeg" : "nvidia-nvjpeg-cu12", err);
    } else {
        stk_cuda_path_of(jpeg->library, jpeg->found, sizeof jpeg->found);
    }
    stk_cuda_folders_free(&folders);
    STK_THEN(status, fill(jpeg, err));
    STK_THEN(status, ask_version(jpeg, err));
    return status;
}

void stk_cuda_jpeg_close(cuda_jpeg *jpeg) {
    if (jpeg->library != NULL) {
        dlclose(jpeg->library);
    }
    *jpeg = (cuda_jpeg){0};
}

const char *stk_cuda_jpeg_words(int status) {
    static const char *const words[] = {
        "nothing went wrong",
        "nvJPEG was not prepared for it",
        "nvJPEG was called wrongly",
        "it is no JPEG",
        "nvJPEG cannot decode this kind of JPEG",
        "no memory is left for nvJPEG",
        "the GPU failed",
        "this GPU has no engines for JPEG",
        "nvJPEG itself failed",
        "this nvJPEG or GPU cannot do it",
        "the JPEG is not complete",
    };
    return status >= 0 && (size_t)status < STK_COUNT(words) ? words[status]
                                                            : "nvJPEG does not say why";
}

stk_status stk_cuda_jpeg_check(int status, const char *what, stk_error *err) {
    if (status == CUDA_JPEG_GOOD) {
        return STK_OK;
    }
    return STK_FAIL(err, status == CUDA_JPEG_NO_MEMORY ? STK_ERR_MEMORY : STK_ERR_DEVICE,
                    "%s failed: %s (nvJPEG's status %d)", what, stk_cuda_jpeg_words(status),
                    status);
}
