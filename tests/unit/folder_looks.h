/* folder_looks.h - for tests of files: paths in the test's folder, and what is there. */
#ifndef STK_TESTS_FOLDER_LOOKS_H
#define STK_TESTS_FOLDER_LOOKS_H

#include "check.h"

#include "base/file.h"
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

#endif
