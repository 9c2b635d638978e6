/*
 * nvml_api.c - opens NVIDIA's management library at run time and fills in the table of its
 * functions.
 */
#include "monitor/nvml_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/search.h"

static bool open_library(nvml_api *nvml, char *why, size_t room) {
    static const char soname[] = "libnvidia-ml.so.1";
    char trouble[256];
    cuda_folders folders;
    stk_cuda_folders_find(&folders);
    nvml->library = stk_cuda_folders_open(&folders, soname, RTLD_NOW | RTLD_NODELETE, true, trouble,
                                          sizeof trouble);
    stk_cuda_folders_free(&folders);
    if (nvml->library == NULL) {
        snprintf(why, room, "%s", trouble[0] != '\0' ? trouble : "no libnvidia-ml.so.1 was found");
        return false;
    }
    return true;
}

/* ISO C cannot convert an object pointer to a function pointer; POSIX can. */
static void fill_table(nvml_api *nvml) {
    void *found;
#define X(name, symbol, parameters)       \
    found = dlsym(nvml->library, symbol); \
    memcpy(&nvml->name, &found, sizeof found);
    NVML_FUNCTIONS(X)
    X(text_of, "nvmlErrorString", )
#undef X
}

bool stk_nvml_open(nvml_api *nvml, char *why, size_t room) {
    *nvml = (nvml_api){0};
    if (!open_library(nvml, why, room)) {
        return false;
    }
    fill_table(nvml);
    int result = NVML_ASK(nvml, init, );
    if (result != NVML_GOOD) {
        snprintf(why, room, "NVML does not start: %s", stk_nvml_text(nvml, result));
        dlclose(nvml->library);
        return false;
    }
    return true;
}

void stk_nvml_close(nvml_api *nvml) {
    (void)NVML_ASK(nvml, shutdown, );
    dlclose(nvml->library);
}

const char *stk_nvml_text(const nvml_api *nvml, int result) {
    const char *answer_text = nvml->text_of != NULL ? nvml->text_of(result) : NULL;
    return answer_text != NULL ? answer_text : "it does not say why";
}
