/*
 * search.c - library folders: from the environment, the usual ones, and the packages of every
 * Python on the machine.
 *
 * Some of these folders may lie on a mount that does not answer: a timed call searches, and is
 * abandoned after its time-out.
 */
#include "backend/cuda/driver/search.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/timed_call.h"

/* How long the search may take, and how much of the time that is left: a disk that is alive needs a
 * fraction of a second. */
#define SEARCH_S 5.0
#define SEARCH_SHARE 0.3
#define SEARCH_LEAST_S 0.1

/* What the search asks the environment for. */
typedef enum variable {
    GIVEN,
    LIBRARY_PATH,
    CUDA_HOME,
    CUDA_PATH,
    CONDA_PREFIX,
    VIRTUAL_ENV,
    PATH,
    HOME,
    PYENV_ROOT,
    VARIABLES
} variable;

static const char *const names[VARIABLES] = {[GIVEN] = "STOKER_CUDA_LIBS",
                                             [LIBRARY_PATH] = "LD_LIBRARY_PATH",
                                             [CUDA_HOME] = "CUDA_HOME",
                                             [CUDA_PATH] = "CUDA_PATH",
                                             [CONDA_PREFIX] = "CONDA_PREFIX",
                                             [VIRTUAL_ENV] = "VIRTUAL_ENV",
                                             [PATH] = "PATH",
                                             [HOME] = "HOME",
                                             [PYENV_ROOT] = "PYENV_ROOT"};

/*
 * A search under way. It has copies of the variables: an abandoned thread may look at
 * them when others change the environment.
 */
typedef struct looking {
    cuda_folders found;
    char *values[VARIABLES]; /* owned; NULL: it is not set */
} looking;

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
    for (size_t i = 0; i < f->paths.count; i++) {
        if (strcmp(f->paths.items[i], path) == 0) {
            return;
        }
    }
    (void)stk_texts_take(&f->paths, stk_mem_strdup(path));
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
static void add_variable(looking *l, variable which, const char *below) {
    const char *value = l->values[which];
    if (value != NULL && value[0] == '/') {
        char *path = stk_str_format("%s%s", value, below);
        add_pattern(&l->found, path);
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

static void add_pythons(looking *l) {
    static const variable prefixes[] = {VIRTUAL_ENV, CONDA_PREFIX};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *prefix = l->values[prefixes[i]];
        if (prefix != NULL && prefix[0] == '/') {
            add_python(&l->found, prefix);
        }
    }
    const char *path = l->values[PATH];
    for (const char *p = path; p != NULL; p = strchr(p, ':') != NULL ? strchr(p, ':') + 1 : NULL) {
        add_interpreter(&l->found, p, strcspn(p, ":"));
    }
    add_python(&l->found, "/usr/local");
    add_python(&l->found, "/usr");
    add_variable(l, HOME, "/.local/lib/python3*/site-packages/nvidia/*/lib");
    /* The python3 in the path may be a script that chooses one of these. */
    add_variable(l, PYENV_ROOT, "/versions/*/lib/python3*/site-packages/nvidia/*/lib");
    add_variable(l, HOME, "/.pyenv/versions/*/lib/python3*/site-packages/nvidia/*/lib");
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

static void add_usual(cuda_folders *f) {
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        add_pattern(f, usual[i]);
    }
}

/* Looks for the folder that the driver reads when it starts, for stk_timed_call: only whether the
 * disk answers is of interest. */
static void look_at_home(void *state) {
    const looking *l = state;
    const char *home = l->values[HOME];
    char *path = home != NULL ? stk_path_join(home, ".nv") : NULL;
    if (path != NULL) {
        (void)stk_path_is_dir(path);
    }
    stk_mem_free(path);
}

/* The whole search, for stk_timed_call. */
static void look_everywhere(void *state) {
    looking *l = state;
    if (l->found.given) {
        add_list(&l->found, l->values[GIVEN]);
    } else {
        add_list(&l->found, l->values[LIBRARY_PATH]);
        add_variable(l, CUDA_HOME, "/lib64");
        add_variable(l, CUDA_PATH, "/lib64");
        add_usual(&l->found);
        add_variable(l, CONDA_PREFIX, "/lib");
        add_pythons(l);
    }
}

static void drop_looking(void *state) {
    looking *l = state;
    for (int i = 0; l != NULL && i < VARIABLES; i++) {
        stk_mem_free(l->values[i]);
    }
    if (l != NULL) {
        stk_cuda_folders_free(&l->found);
    }
    stk_mem_free(l);
}

/* NULL without memory. */
static looking *new_looking(bool given) {
    looking *l = stk_mem_new(1, sizeof *l);
    bool good = l != NULL;
    for (int i = 0; i < VARIABLES && good; i++) {
        const char *value = getenv(names[i]);
        l->values[i] = value != NULL ? stk_mem_strdup(value) : NULL;
        good = value == NULL || l->values[i] != NULL;
    }
    if (!good) {
        drop_looking(l);
        return NULL;
    }
    l->found.given = given;
    return l;
}

/*
 * Calls look(state) with a looking of its own. False: a disk does not answer. The folders that were
 * found go to `folders`, unless that is NULL. Without a thread the look has no time-out.
 */
static bool look_in_time(void (*look)(void *state), cuda_folders *folders) {
    double limit_s = fmin(SEARCH_S, fmax(SEARCH_SHARE * stk_disk_left_s(), SEARCH_LEAST_S));
    looking *l = new_looking(folders != NULL && folders->given);
    if (l == NULL) {
        return true; /* there will be no memory for anything else either */
    }
    if (!stk_timed_call_within(look, l, drop_looking, limit_s)) {
        return false;
    }
    if (folders != NULL) {
        *folders = l->found;
        l->found = (cuda_folders){0};
    }
    drop_looking(l);
    return true;
}

/*
 * The driver puts streams on 8 connections to the GPU unless told otherwise, and work on one
 * connection is done in order, whatever its stream. nvJPEG has more than 14 streams: pictures would
 * wait for the training step that shares their connection. Asked for before the driver starts.
 */
static void ask_for_connections(void) {
    static atomic_bool asked;
    if (!atomic_exchange(&asked, true)) {
        (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    }
}

/*
 * The driver opens files in the home folder, and nothing can end that on a disk that does not
 * answer. So the process gets a home without files then, and the driver stores no kernels there:
 * Stoker stores its own. Once per process.
 */
static void leave_dead_home(void) {
    static atomic_bool looked;
    if (!atomic_exchange(&looked, true) && !look_in_time(look_at_home, NULL)) {
        (void)setenv("HOME", "/dev/null", 1);
        (void)setenv("CUDA_CACHE_DISABLE", "1", 0);
    }
}

void stk_cuda_folders_find(cuda_folders *folders) {
    static atomic_bool hangs;
    ask_for_connections();
    const char *given = getenv(names[GIVEN]);
    *folders = (cuda_folders){.given = given != NULL && given[0] != '\0'};
    leave_dead_home();
    if (!atomic_load(&hangs) && look_in_time(look_everywhere, folders)) {
        return;
    }
    atomic_store(&hangs, true);
    if (!folders->given) {
        add_usual(folders);
    }
}

/* By its real path, since some libraries look for others in their own folder. */
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
    for (size_t i = 0; i < folders->paths.count && handle == NULL; i++) {
        char *path = stk_path_join(folders->paths.items[i], soname);
        if (path != NULL && stk_path_is_file(path)) {
            handle = stk_cuda_path_open(path, flags, trouble, room);
        }
        stk_mem_free(path);
    }
    return handle == NULL && folders->given && of_driver ? dlopen(soname, flags) : handle;
}

void stk_cuda_path_of(void *library, char *path, size_t room) {
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
        snprintf(path, room, "%s", map->l_name);
    }
}

stk_status stk_cuda_folders_missing(const cuda_folders *folders, const char *soname,
                                    const char *trouble, const char *package, stk_error *err) {
    if (trouble[0] != '\0') {
        return STK_FAIL(err, STK_ERR_DEVICE, "%s cannot be opened: %s", soname, trouble);
    }
    return STK_FAIL(err, STK_ERR_DEVICE,
                    "no %s was found in %s: install it (pip install %s), or set STOKER_CUDA_LIBS "
                    "to the folder it is in",
                    soname,
                    folders->given ? "the folders of STOKER_CUDA_LIBS"
                                   : "the system's folders, CUDA's or Python's packages",
                    package);
}

void stk_cuda_folders_free(cuda_folders *folders) {
    stk_texts_free(&folders->paths);
    folders->given = false;
}
