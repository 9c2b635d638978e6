/* folder_texts.h - the files of a folder as texts, for tests of who writes them. */
#ifndef STK_TESTS_FOLDER_TEXTS_H
#define STK_TESTS_FOLDER_TEXTS_H

#include "base/files/file.h"
#include "base/mem.h"

/* To be freed with stk_mem_free; NULL where there is no such file. */
static char *get_file(const char *folder, const char *name) {
    char *path = stk_path_join(folder, name);
    char *text = NULL;
    size_t size = 0;
    if (path != NULL && stk_file_read(path, 0, &text, &size, NULL) != STK_OK) {
        text = NULL;
    }
    stk_mem_free(path);
    return text;
}

#endif
