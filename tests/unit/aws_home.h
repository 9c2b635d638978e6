/*
 * aws_home.h - a home folder and an environment of a test's own, for what reads ~/.aws: no variable
 * of the machine has a say.
 */
#ifndef STK_TESTS_AWS_HOME_H
#define STK_TESTS_AWS_HOME_H

#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"

/* Unsets every AWS variable and makes HOME a fresh folder, which is returned. */
static inline const char *aws_fresh_home(void) {
    static char home[256];
    for (size_t i = 0; environ[i] != NULL;) {
        char name[128];
        size_t length = strcspn(environ[i], "=");
        if (strncmp(environ[i], "AWS_", 4) == 0 && length < sizeof name) {
            memcpy(name, environ[i], length);
            name[length] = '\0';
            unsetenv(name); /* moves the later ones up */
        } else {
            i++;
        }
    }
    snprintf(home, sizeof home, "%s", check_folder());
    setenv("HOME", home, 1);
    return home;
}

/* Writes ~/.aws/NAME. */
static inline void aws_write(const char *name, const char *text) {
    stk_error err = {0};
    char *folder = stk_path_join(getenv("HOME"), ".aws");
    char *path = folder != NULL ? stk_path_join(folder, name) : NULL;
    if (path == NULL || stk_dir_make(folder, &err) != STK_OK ||
        stk_file_write(path, text, strlen(text), &err) != STK_OK) {
        CHECK_FAIL("cannot write ~/.aws/%s: %s", name, err.message);
    }
    stk_mem_free(path);
    stk_mem_free(folder);
}

#endif
