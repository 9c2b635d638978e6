/*
 * nvrtc_compile.c - compiles one kernel with the real NVRTC, which needs no GPU.
 *
 *     build/tests/nvrtc_compile FILE KERNEL TYPE [-DNAME=VALUE...]
 *
 * FILE is a .cu file of src/backend/cuda/kernels, KERNEL a function of it, TYPE 0, 1 or 2 (float32,
 * float16, bfloat16). Prints the compiler's log and, from ptxas, registers, spills and shared
 * memory. NVRTC is looked for where the system looks, and in /usr/local/cuda/lib64;
 * STOKER_CUDA_LIBS names another folder. STK_ARCH (sm_90) chooses the GPU. Exit code 2: there is no
 * NVRTC.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/api.h"

static bool open_nvrtc(cuda_nvrtc *nvrtc) {
    const char *folders[] = {getenv("STOKER_CUDA_LIBS"), "", "/usr/local/cuda/lib64"};
    void *library = NULL;
    for (size_t i = 0; i < 3 && library == NULL; i++) {
        char path[600];
        if (folders[i] != NULL) {
            snprintf(path, sizeof path, "%s%slibnvrtc.so.13", folders[i],
                     *folders[i] != '\0' ? "/" : "");
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    if (library == NULL) {
        return false;
    }
    void *found;
#define X(name, symbol, parameters)             \
    found = dlsym(library, symbol);             \
    memcpy(&nvrtc->name, &found, sizeof found); \
    if (found == NULL) {                        \
        return false;                           \
    }
    CUDA_NVRTC_FUNCTIONS(X)
#undef X
    return true;
}

static bool append_file(char *text, size_t room, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t used = strlen(text);
    if (file == NULL) {
        fprintf(stderr, "nvrtc_compile: there is no %s\n", path);
        return false;
    }
    used += fread(text + used, 1, room - used - 2, file);
    text[used] = '\n';
    text[used + 1] = '\0';
    (void)fclose(file);
    return true;
}

static int compile(const cuda_nvrtc *nvrtc, const char *text, const char *name,
                   const char *const *options, int count) {
    cuda_nvrtc_program program = NULL;
    size_t bytes = 0;
    if (nvrtc->create(&program, text, name, 0, NULL, NULL) != 0) {
        fprintf(stderr, "nvrtc_compile: NVRTC does not take the text\n");
        return 1;
    }
    int result = nvrtc->compile(program, count, options);
    (void)nvrtc->log_bytes(program, &bytes);
    char *log = calloc(1, bytes + 1);
    if (log != NULL && nvrtc->log(program, log) == 0) {
        printf("%s", log);
    }
    free(log);
    (void)nvrtc->code_bytes(program, &bytes);
    printf("%s: %s, %zu bytes of machine code\n", name, result == 0 ? "good" : "FAILED",
           result == 0 ? bytes : 0);
    (void)nvrtc->destroy(&program);
    return result == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    cuda_nvrtc nvrtc;
    static char text[1 << 20];
    char words[3][200];
    const char *options[64] = {words[0],
                               words[1],
                               words[2],
                               "--ptxas-options=-v",
                               "--diag-suppress=177", /* functions that nobody calls */
                               "--include-path=" STK_CUDA_FOLDER "/kernels"};
    int count = 6;
    const char *arch = getenv("STK_ARCH");
    if (argc < 4) {
        fprintf(stderr, "usage: nvrtc_compile FILE KERNEL TYPE [-DNAME=VALUE...]\n");
        return 2;
    }
    if (!open_nvrtc(&nvrtc)) {
        fprintf(stderr, "nvrtc_compile: there is no libnvrtc.so.13\n");
        return 2;
    }
    snprintf(words[0], sizeof words[0], "--gpu-architecture=%s", arch != NULL ? arch : "sm_90");
    snprintf(words[1], sizeof words[1], "-DTYPE=%s", argv[3]);
    snprintf(words[2], sizeof words[2], "-DK_%s", argv[2]);
    for (int i = 4; i < argc && count < 64; i++) {
        options[count++] = argv[i];
    }
    if (!append_file(text, sizeof text, STK_CUDA_FOLDER "/program/kernel_constants.h") ||
        !append_file(text, sizeof text, STK_CUDA_FOLDER "/kernels/prelude.cuh") ||
        !append_file(text, sizeof text, argv[1])) {
        return 1;
    }
    return compile(&nvrtc, text, argv[2], options, count);
}
