/*
 * kernel_texts.c - puts the source of a file of kernels together. NVRTC has no files to include, so
 * each text takes the place of the line that includes it.
 */
#include "backend/cuda/program/kernel_texts.h"

#include <stdio.h>
#include <string.h>

static const char *text_named(const char *name) {
    for (const cuda_text *t = stk_cuda_texts; t->name != NULL; t++) {
        if (strcmp(t->name, name) == 0) {
            return t->text;
        }
    }
    return NULL;
}

#define INCLUDE "#include \""
#define NAME_ROOM 64

/* The text that a line includes, and its name; NULL: none, or a text that does not exist. */
static const char *included(const char *line, char name[NAME_ROOM]) {
    size_t start = strlen(INCLUDE);
    if (strncmp(line, INCLUDE, start) != 0) {
        return NULL;
    }
    snprintf(name, NAME_ROOM, "%.*s", (int)strcspn(line + start, "\"\n"), line + start);
    return text_named(name);
}

static void append_text(stk_str *to, const char *name, const char *text) {
    stk_str_appendf(to, "#line 1 \"%s\"\n", name);
    for (int line = 1; *text != '\0'; line++) {
        char other_name[NAME_ROOM];
        const char *other = included(text, other_name);
        size_t length = strcspn(text, "\n");
        length += text[length] == '\n';
        if (other != NULL) {
            append_text(to, other_name, other);
            stk_str_appendf(to, "#line %d \"%s\"\n", line + 1, name);
        } else {
            stk_str_append_bytes(to, text, length);
        }
        text += length;
    }
}

stk_str stk_cuda_text_whole(const cuda_text *file) {
    stk_str text = {0};
    append_text(&text, "kernel_constants.h", text_named("kernel_constants.h"));
    append_text(&text, "prelude.cuh", text_named("prelude.cuh"));
    append_text(&text, file->name, file->text);
    return text;
}
