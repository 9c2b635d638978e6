/*
 * unit_main.c - one program for many test files.
 *
 * Linking each of some 200 files with the library took longer than compiling them. So they are one
 * program, and each file is still tested in a process of its own: the program is called through a
 * link with the file's name, as build/tests/test_base_csv, and runs the tests of that file alone.
 */
#include <stdio.h>
#include <string.h>

/* unit_files.h, which CMakeLists.txt writes, has a line FILE_OF(test_base_csv) for each. */
#define FILE_OF(name) int name##_main(int argc, char **argv);
#include "unit_files.h"
#undef FILE_OF

static const struct unit_file {
    const char *name;
    int (*run)(int argc, char **argv);
} files[] = {
#define FILE_OF(name) {#name, name##_main},
#include "unit_files.h"
};

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].name, name) == 0) {
            return files[i].run(argc, argv);
        }
    }
    fprintf(stderr, "%s: call this program through a link that names a test file, such as %s\n",
            argv[0], files[0].name);
    return 2;
}
