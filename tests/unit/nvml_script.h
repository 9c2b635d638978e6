/* nvml_script.h - lets what looks at a GPU find the stand-in of tests/fakes/fake_nvml.c. */
#ifndef STK_TESTS_NVML_SCRIPT_H
#define STK_TESTS_NVML_SCRIPT_H

#include "check.h"

/* Puts a stand-in ("fake_nvml") where libraries are looked for, and gives it a script: see
 * fake_nvml.c. */
static inline void nvml_use(const char *library, const char *script) {
    static char folder[256];
    char real[512];
    char path[512];
    snprintf(folder, sizeof folder, "%s", check_folder());
    snprintf(real, sizeof real, "%s/%s.so", STK_FAKES_FOLDER, library);
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder);
    if (access(real, R_OK) != 0 || symlink(real, path) != 0) {
        perror(real);
        exit(1);
    }
    snprintf(path, sizeof path, "%s/script", folder);
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs(script, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    setenv("STOKER_CUDA_LIBS", folder, 1);
    setenv("FAKE_NVML", path, 1);
}

#endif
