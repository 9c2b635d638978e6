/*
 * fuzz_folder.h - for targets whose parsers read files: a folder of the program's own below
 * $TMPDIR, whose files are parts of the input. FUZZ_NEXT stands between two parts.
 */
#ifndef STK_TESTS_FUZZ_FOLDER_H
#define STK_TESTS_FUZZ_FOLDER_H

#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A byte that none of the formats has a use for. */
#define FUZZ_NEXT "\x1E"
#define FUZZ_PARTS 6

/* A plan for seeds that become files, which takes a while. */
#define FUZZ_PLAN_FILES(array)                                                               \
    fuzz_plan fuzz_prepare(void) {                                                           \
        const size_t count = sizeof(array) / sizeof *(array);                                \
        return (fuzz_plan){                                                                  \
            .seeds = (array), .count = count, .prefixed = 1, .mutations = 1500, .large = 4}; \
    }

static char fuzz_folder_path[512];

static inline int fuzz_remove_one(const char *path, const struct stat *info, int kind,
                                  struct FTW *ftw) {
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void fuzz_remove_folder(void) {
    nftw(fuzz_folder_path, fuzz_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The folder, made when it is first asked for. */
static inline const char *fuzz_folder(void) {
    if (fuzz_folder_path[0] == '\0') {
        const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
        snprintf(fuzz_folder_path, sizeof fuzz_folder_path, "%s/stoker-fuzz-XXXXXX",
                 where != NULL ? where : "/tmp");
        FUZZ_REQUIRE(mkdtemp(fuzz_folder_path) != NULL);
        atexit(fuzz_remove_folder);
    }
    return fuzz_folder_path;
}

/* The path of a file or folder in it; valid until the next call. */
static inline const char *fuzz_path(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

static inline void fuzz_make_folder(const char *name) {
    mkdir(fuzz_path(name), 0777);
    FUZZ_REQUIRE(access(fuzz_path(name), W_OK) == 0);
}

static inline void fuzz_put(const char *name, fuzz_seed part) {
    int fd = open(fuzz_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FUZZ_REQUIRE(fd >= 0 && write(fd, part.bytes, part.size) == (ssize_t)part.size);
    close(fd);
}

/* The parts of the input; those that it does not have are empty. */
static inline void fuzz_divide(const uint8_t *data, size_t size, fuzz_seed parts[FUZZ_PARTS]) {
    const char *at = size > 0 ? (const char *)data : "";
    for (int i = 0; i < FUZZ_PARTS; i++) {
        const char *stop = i + 1 < FUZZ_PARTS ? memchr(at, FUZZ_NEXT[0], size) : NULL;
        size_t length = stop != NULL ? (size_t)(stop - at) : size;
        parts[i] = (fuzz_seed){at, length};
        at = stop != NULL ? stop + 1 : at + length;
        size -= length + (stop != NULL);
    }
}

#endif
