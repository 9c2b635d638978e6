/* cuda_search.c - the environment, the usual folders, and the packages of every Python at hand. */
#include "backend/cuda/cuda_search.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

/* Patterns of folders that hold libraries. */
static const char *const usual[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-*/lib64",
    "/usr/local/cuda*/targets/*/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/opt/cuda/lib64",
};

static void add(cuda_folders *f, const char *path) {
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->paths[i], path) == 0) {
            return;
        }
    }
    char **grown = stk_mem_grow(f->paths, &f->capacity, f->count + 1, sizeof *grown);
    char *copy = stk_mem_strdup(path);
    f->paths = grown != NULL ? grown : f->paths;
    if (grown == NULL || copy == NULL) {
        stk_mem_free(copy);
        return;
    }
    f->paths[f->count++] = copy;
}

/* Adds every folder that matches. */
static void add_pattern(cuda_folders *f, const char *pattern) {
    glob_t found = {0};
    if (pattern != NULL && glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            if (stk_path_is_dir(found.gl_pathv[i])) {
                add(f, found.gl_pathv[i]);
            }
        }
    }
    globfree(&found);
}

/* The folder `below` of one that a variable names. */
static void add_variable(cuda_folders *f, const char *variable, const char *below) {
    const char *value = getenv(variable);
    if (value != NULL && value[0] == '/') {
        char *path = stk_str_format("%s%s", value, below);
        add_pattern(f, path);
        stk_mem_free(path);
    }
}

/* The packages of a Python that is installed under a prefix. */
static void add_python(cuda_folders *f, const char *prefix) {
    static const char *const packages[] = {
        "/lib/python3*/site-packages/nvidia/*/lib",
        "/lib/python3*/dist-packages/nvidia/*/lib",
        "/lib64/python3*/site-packages/nvidia/*/lib",
    };
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        char *pattern = stk_str_format("%s%s", prefix, packages[i]);
        add_pattern(f, pattern);
        stk_mem_free(pattern);
    }
}

/* Cuts the last `parts` parts off a path; false where it has not as many. */
static bool cut(char *path, int parts) {
    for (int i = 0; i < parts; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            return false;
        }
        *slash = '\0';
    }
    return true;
}

/* The prefix of bin/python3: of the name itself, which in a virtual environment is a link out of
 * it, and of what it leads to. */
static void add_interpreter(cuda_folders *f, const char *folder, size_t length) {
    char real[PATH_MAX];
    char *path = stk_str_format("%.*s/python3", (int)length, folder);
    if (path != NULL && path[0] == '/' && access(path, X_OK) == 0) {
        bool known = realpath(path, real) != NULL && cut(real, 2);
        if (cut(path, 2)) {
            add_python(f, path);
        }
        if (known) {
            add_python(f, real);
        }
    }
    stk_mem_free(path);
}

static void add_pythons(cuda_folders *f) {
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *prefix = getenv(variables[i]);
        if (prefix != NULL && prefix[0] == '/') {
            add_python(f, prefix);
        }
    }
    const char *path = getenv("PATH");
    for (const char *p = path; p != NULL; p = strchr(p, ':') != NULL ? strchr(p, ':') + 1 : NULL) {
        add_interpreter(f, p, strcspn(p, ":"));
    }
    add_python(f, "/usr/local");
    add_python(f, "/usr");
    add_variable(f, "HOME", "/.local/lib/python3*/site-packages/nvidia/*/lib");
    /* The python3 in the path may be a script that chooses one of these. */
    add_variable(f, "PYENV_ROOT", "/versions/*/lib/python3*/site-packages/nvidia/*/lib");
    add_variable(f, "HOME", "/.pyenv/versions/*/lib/python3*/site-packages/nvidia/*/lib");
}

/* The folders of a list that is divided by colons. */
static void add_list(cuda_folders *f, const char *list) {
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":");
        char *path = stk_mem_strndup(list, length);
        if (path != NULL && stk_path_is_dir(path)) {
            add(f, path);
        }
        stk_mem_free(path);
        list += length + (list[length] == ':');
    }
}

void stk_cuda_folders_find(cuda_folders *folders) {
    const char *given = getenv("STOKER_CUDA_LIBS");
    *folders = (cuda_folders){.given = given != NULL && given[0] != '\0'};
    if (folders->given) {
        add_list(folders, given);
        return;
    }
    add_list(folders, getenv("LD_LIBRARY_PATH"));
    add_variable(folders, "CUDA_HOME", "/lib64");
    add_variable(folders, "CUDA_PATH", "/lib64");
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        add_pattern(folders, usual[i]);
    }
    add_variable(folders, "CONDA_PREFIX", "/lib");
    add_pythons(folders);
}

/* By its real path, since some look for others beside themselves. */
void *stk_cuda_path_open(const char *path, int flags, char *trouble, size_t room) {
    char real[PATH_MAX];
    void *handle = dlopen(realpath(path, real) != NULL ? real : path, flags);
    const char *said = handle == NULL ? dlerror() : NULL;
    if (said != NULL && trouble[0] == '\0') {
        snprintf(trouble, room, "%s", said);
    }
    return handle;
}

void *stk_cuda_folders_open(const cuda_folders *folders, const char *soname, int flags,
                            bool of_driver, char *trouble, size_t room) {
    void *handle = folders->given ? NULL : dlopen(soname, flags);
    trouble[0] = '\0';
    for (size_t i = 0; i < folders->count && handle == NULL; i++) {
        char *path = stk_path_join(folders->paths[i], soname);
        if (path != NULL && stk_path_is_file(path)) {
            handle = stk_cuda_path_open(path, flags, trouble, room);
        }
        stk_mem_free(path);
    }
    return handle == NULL && folders->given && of_driver ? dlopen(soname, flags) : handle;
}

void stk_cuda_folders_free(cuda_folders *folders) {
    for (size_t i = 0; i < folders->count; i++) {
        stk_mem_free(folders->paths[i]);
    }
    stk_mem_free(folders->paths);
    *folders = (cuda_folders){0};
}
