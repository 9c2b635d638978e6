/*
 * library.c - opens NVIDIA's libraries.
 *
 * Versions must fit together. cuDNN 9 exists for CUDA 12 and for CUDA 13 under the same name, so it
 * is opened first and asked for its version; NVRTC and cuBLASLt of that version follow. Libraries
 * are never unloaded: their threads, and what they registered with the driver, would outlive them.
 */
#include "backend/cuda/driver/api.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/search.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"

/* The supported versions of CUDA. */
enum { OLDEST_MAJOR = 12, NEWEST_MAJOR = 13 };

static const int flags = RTLD_NOW | RTLD_NODELETE;

/* Python packages that contain each library, by CUDA_LIBRARY_... and version. */
static const char *package_of(int which, int major) {
    switch (which) {
    case CUDA_LIBRARY_NVRTC:
        return major >= 13 ? "nvidia-cuda-nvrtc" : "nvidia-cuda-nvrtc-cu12";
    case CUDA_LIBRARY_CUDNN:
        return major >= 13 ? "nvidia-cudnn-cu13" : "nvidia-cudnn-cu12";
    default:
        return major >= 13 ? "nvidia-cublas" : "nvidia-cublas-cu12";
    }
}

typedef struct search {
    cuda_libraries *libraries;
    cuda_folders folders;
    int major;         /* of CUDA: what the libraries must be for */
    char trouble[256]; /* what the loader said of one that is there but cannot be opened */
} search;

/* Whether a library lies in one of the folders. */
static bool lies_there(const search *s, const char *soname) {
    bool there = false;
    for (size_t i = 0; i < s->folders.paths.count && !there; i++) {
        char *path = stk_path_join(s->folders.paths.items[i], soname);
        there = path != NULL && stk_path_is_file(path);
        stk_mem_free(path);
    }
    return there;
}

/* Opens a library and notes where it was found; false: it was not found. */
static bool open_one(search *s, int which, const char *soname, int more) {
    void *handle =
        stk_cuda_folders_open(&s->folders, soname, flags | more, which == CUDA_LIBRARY_DRIVER,
                              s->trouble, sizeof s->trouble);
    if (handle != NULL) {
        stk_cuda_path_of(handle, s->libraries->found[which], sizeof s->libraries->found[which]);
    }
    s->libraries->handles[which] = handle;
    return handle != NULL;
}

static stk_status fail_missing(const search *s, int which, const char *soname, stk_error *err) {
    if (which == CUDA_LIBRARY_DRIVER && s->trouble[0] == '\0') {
        return STK_FAIL(err, STK_ERR_DEVICE, "no %s was found: there is no NVIDIA driver", soname);
    }
    return stk_cuda_folders_missing(&s->folders, soname, s->trouble, package_of(which, s->major),
                                    err);
}

/* Opens the libraries that another library looks for by name, from its own folder: the system may
 * not know that folder. A failure shows later, when the other library needs them. */
static void open_beside(search *s, int which, const char *names) {
    const char *found = s->libraries->found[which];
    char *pattern = stk_str_format("%.*s%s", (int)(stk_path_base(found) - found), found, names);
    glob_t beside = {0};
    if (pattern != NULL && glob(pattern, 0, NULL, &beside) == 0) {
        for (size_t i = 0; i < beside.gl_pathc; i++) {
            (void)stk_cuda_path_open(beside.gl_pathv[i], flags, s->trouble, sizeof s->trouble);
        }
    }
    globfree(&beside);
    stk_mem_free(pattern);
}

#define X(name, symbol, parameters) {symbol, &table->name},

static stk_status fill_driver(search *s, stk_error *err) {
    cuda_driver *table = &s->libraries->driver;
    const cuda_symbol wanted[] = {CUDA_DRIVER_FUNCTIONS(X)};
    return stk_cuda_symbols(s->libraries->handles[CUDA_LIBRARY_DRIVER],
                            s->libraries->found[CUDA_LIBRARY_DRIVER], wanted, STK_COUNT(wanted),
                            err);
}

static stk_status fill_nvrtc(search *s, stk_error *err) {
    cuda_nvrtc *table = &s->libraries->nvrtc;
    const cuda_symbol wanted[] = {CUDA_NVRTC_FUNCTIONS(X)};
    return stk_cuda_symbols(s->libraries->handles[CUDA_LIBRARY_NVRTC],
                            s->libraries->found[CUDA_LIBRARY_NVRTC], wanted, STK_COUNT(wanted),
                            err);
}
#undef X

/* Calls a function without parameters that returns a version; 0: there is no such function. */
static size_t version_of(const search *s, int which, const char *name) {
    size_t (*version)(void) = NULL;
    void *symbol = dlsym(s->libraries->handles[which], name);
    memcpy(&version, &symbol, sizeof symbol);
    return version != NULL ? version() : 0;
}

/* Opens cuDNN, which says which version of CUDA all libraries must have. */
static stk_status open_cudnn(search *s, int most_major, stk_error *err) {
    static const char soname[] = "libcudnn.so.9";
    cuda_libraries *l = s->libraries;
    s->major = most_major;
    if (!open_one(s, CUDA_LIBRARY_CUDNN, soname, 0)) {
        return fail_missing(s, CUDA_LIBRARY_CUDNN, soname, err);
    }
    open_beside(s, CUDA_LIBRARY_CUDNN, "libcudnn_graph.so.9");
    l->cudnn_version = (int)version_of(s, CUDA_LIBRARY_CUDNN, "cudnnGetVersion");
    if (l->cudnn_version < 90000) {
        return STK_FAIL(err, STK_ERR_DEVICE, "%s cannot be used: it does not tell its version",
                        l->found[CUDA_LIBRARY_CUDNN]);
    }
    int built_for = (int)version_of(s, CUDA_LIBRARY_CUDNN, "cudnnGetCudartVersion") / 1000;
    s->major = built_for != 0 ? built_for : most_major;
    if (s->major < OLDEST_MAJOR || s->major > most_major) {
        return STK_FAIL(err, STK_ERR_DEVICE,
                        "%s is for CUDA %d, but driver and GPU can do CUDA %d: install %s, update "
                        "the driver, or set STOKER_CUDA_LIBS",
                        l->found[CUDA_LIBRARY_CUDNN], s->major, most_major,
                        package_of(CUDA_LIBRARY_CUDNN, most_major));
    }
    return STK_OK;
}

static stk_status open_nvrtc(search *s, const char *soname, stk_error *err) {
    cuda_libraries *l = s->libraries;
    char builtins[64];
    int major = 0;
    int minor = 0;
    /* Engines of cuDNN that are compiled at run time need it. */
    if (!open_one(s, CUDA_LIBRARY_NVRTC, soname, RTLD_GLOBAL)) {
        return fail_missing(s, CUDA_LIBRARY_NVRTC, soname, err);
    }
    stk_status status = fill_nvrtc(s, err);
    if (status == STK_OK && l->nvrtc.version(&major, &minor) != 0) {
        status = STK_FAIL(err, STK_ERR_DEVICE, "%s cannot be used: it does not tell its version",
                          l->found[CUDA_LIBRARY_NVRTC]);
    }
    if (status == STK_OK) {
        l->nvrtc_version = 100 * major + minor;
        snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%d.%d", major, minor);
        open_beside(s, CUDA_LIBRARY_NVRTC, builtins);
    }
    return status;
}

/* The libraries whose names hold the version of CUDA; each is looked for or opened. */
static stk_status open_versioned(search *s, bool only_look, stk_error *err) {
    char nvrtc[32];
    char cublaslt[32];
    snprintf(nvrtc, sizeof nvrtc, "libnvrtc.so.%d", s->major);
    snprintf(cublaslt, sizeof cublaslt, "libcublasLt.so.%d", s->major);
    stk_status status = STK_OK;
    if (!only_look || !lies_there(s, nvrtc)) {
        status = open_nvrtc(s, nvrtc, err);
    }
    if (status == STK_OK && (!only_look || !lies_there(s, cublaslt))) {
        if (!open_one(s, CUDA_LIBRARY_CUBLASLT, cublaslt, 0)) {
            return fail_missing(s, CUDA_LIBRARY_CUBLASLT, cublaslt, err);
        }
        s->libraries->cublaslt_version = version_of(s, CUDA_LIBRARY_CUBLASLT, "cublasLtGetVersion");
    }
    return status;
}

stk_status stk_cuda_driver_open(cuda_libraries *libraries, stk_error *err) {
    static const char soname[] = "libcuda.so.1";
    *libraries = (cuda_libraries){0};
    search s = {.libraries = libraries};
    stk_cuda_folders_find(&s.folders);
    stk_status status = open_one(&s, CUDA_LIBRARY_DRIVER, soname, 0)
                            ? fill_driver(&s, err)
                            : fail_missing(&s, CUDA_LIBRARY_DRIVER, soname, err);
    stk_cuda_folders_free(&s.folders);
    STK_THEN(status, stk_cuda_check(&libraries->driver,
                                    libraries->driver.driver_version(&libraries->driver_version),
                                    "asking the driver for its version", err));
    if (status == STK_OK && libraries->driver_version < 1000 * OLDEST_MAJOR) {
        status = STK_FAIL(err, STK_ERR_DEVICE,
                          "the NVIDIA driver can do CUDA %d.%d, and CUDA %d is needed: update it",
                          libraries->driver_version / 1000, libraries->driver_version % 1000 / 10,
                          OLDEST_MAJOR);
    }
    return status;
}

stk_status stk_cuda_toolkit_open(cuda_libraries *libraries, int most_major, bool only_look,
                                 stk_error *err) {
    search s = {.libraries = libraries};
    int can = libraries->driver_version / 1000;
    int most = most_major > 0 && most_major < can ? most_major : can;
    stk_cuda_folders_find(&s.folders);
    stk_status status = open_cudnn(&s, most < NEWEST_MAJOR ? most : NEWEST_MAJOR, err);
    STK_THEN(status, open_versioned(&s, only_look, err));
    libraries->cuda_major = status == STK_OK ? s.major : 0;
    if (status == STK_OK && !only_look) {
        /* The first convolution would open these; now there is time for it. */
        open_beside(&s, CUDA_LIBRARY_CUDNN, "libcudnn_ops.so.9");
        open_beside(&s, CUDA_LIBRARY_CUDNN, "libcudnn_heuristic.so.9");
        open_beside(&s, CUDA_LIBRARY_CUDNN, "libcudnn_engines_*.so.9");
    }
    stk_cuda_folders_free(&s.folders);
    return status;
}

stk_status stk_cuda_libraries_open(cuda_libraries *libraries, stk_error *err) {
    stk_status status = stk_cuda_driver_open(libraries, err);
    STK_THEN(status, stk_cuda_toolkit_open(libraries, 0, false, err));
    if (status != STK_OK) {
        stk_cuda_libraries_close(libraries);
    }
    return status;
}

void stk_cuda_libraries_close(cuda_libraries *libraries) {
    for (size_t i = 0; i < STK_COUNT(libraries->handles); i++) {
        if (libraries->handles[i] != NULL) {
            dlclose(libraries->handles[i]);
        }
    }
    *libraries = (cuda_libraries){0};
}

stk_status stk_cuda_symbols(void *library, const char *what, const cuda_symbol *symbols,
                            size_t count, stk_error *err) {
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            return STK_FAIL(err, STK_ERR_DEVICE,
                            "%s has no %s: its version is not supported; update it", what,
                            symbols[i].name);
        }
        /* ISO C has no way from an object's address to a function's; POSIX has. */
        memcpy(symbols[i].place, &found, sizeof found);
    }
    return STK_OK;
}

bool stk_cuda_is_lost(int result) {
    static const int lost[] = {
        214, /* ECC_UNCORRECTABLE */
        220, /* NVLINK_UNCORRECTABLE */
        700, /* ILLEGAL_ADDRESS */
        702, /* LAUNCH_TIMEOUT */
        709, /* CONTEXT_IS_DESTROYED */
        710, /* ASSERT */
        714, /* HARDWARE_STACK_ERROR */
        715, /* ILLEGAL_INSTRUCTION */
        716, /* MISALIGNED_ADDRESS */
        717, /* INVALID_ADDRESS_SPACE */
        718, /* INVALID_PC */
        719, /* LAUNCH_FAILED */
    };
    bool found = false;
    for (size_t i = 0; i < STK_COUNT(lost); i++) {
        found = found || lost[i] == result;
    }
    return found;
}

stk_status stk_cuda_check(const cuda_driver *driver, int result, const char *what, stk_error *err) {
    const char *name = NULL;
    const char *text = NULL;
    if (result == CUDA_GOOD) {
        return STK_OK;
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY_) {
        return STK_FAIL(err, STK_ERR_MEMORY,
                        "%s failed: the GPU has no memory left; use a smaller --batch, or end what "
                        "else runs on it",
                        what);
    }
    (void)driver->error_name(result, &name);
    (void)driver->error_string(result, &text);
    text = text != NULL ? text : "the driver does not say why";
    name = name != NULL ? name : "no name";
    if (stk_cuda_is_lost(result)) {
        return STK_FAIL(err, STK_ERR_DEVICE,
                        "the GPU was lost with all that it held: %s failed: %s (%s); nvidia-smi "
                        "tells whether it is back",
                        what, text, name);
    }
    return STK_FAIL(err, STK_ERR_DEVICE, "%s failed: %s (%s)", what, text, name);
}
