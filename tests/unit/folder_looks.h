/* folder_looks.h - for tests of files: paths in the test's folder, and what is there. */
#ifndef STK_TESTS_FOLDER_LOOKS_H
#define STK_TESTS_FOLDER_LOOKS_H

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"

/* A path in the test's folder; each of a few calls has its own buffer. */
static inline const char *in(const char *folder, const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline bool holds(const char *path, const char *text) {
    char *data = NULL;
    size_t size = 0;
    bool same = stk_file_read(path, 0, &data, &size, NULL) == STK_OK && size == strlen(text) &&
                strcmp(data, text) == 0;
    if (!same) {
        printf("  %s holds \"%.100s\"\n", path, data != NULL ? data : "(nothing)");
    }
    stk_mem_free(data);
    return same;
}

/* Entries of a folder, hidden ones too. */
static inline int entries(const char *folder) {
    char command[600];
    int count = -1;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    if (pipe != NULL) {
        if (fscanf(pipe, "%d", &count) != 1) {
            count = -1;
        }
        pclose(pipe);
    }
    return count;
}

#define SIZE_LIMIT 65536 /* of a file, in children that set it */

/* A child writes more than it may to a file that exists; it ends with 0 where it was told so. */
static inline void check_old_file_stays(int (*write_too_much)(const char *path)) {
    const char *folder = check_folder();
    const char *path = in(folder, "kept");
    stk_error err = {0};
    REQUIRE_OK(stk_file_write(path, "good", 4, &err), &err);
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        _exit(write_too_much(path));
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    CHECK(holds(path, "good"));
    CHECK_INT(entries(folder), 1);
}

#endif
