/* emu_handles.c - streams, events, modules, graphs that are alive, so that wrong ones are told. */
#include <stdlib.h>

#include "emu_inside.h"

typedef struct entry {
    struct entry *next;
    emu_handle_kind kind;
    void *handle;
} entry;

static entry *all;

void *emu_handle_new(size_t bytes, emu_handle_kind kind) {
    entry *e = malloc(sizeof *e);
    void *handle = calloc(1, bytes);
    if (e == NULL || handle == NULL) {
        free(e);
        free(handle);
        return NULL;
    }
    *e = (entry){.next = all, .kind = kind, .handle = handle};
    all = e;
    return handle;
}

bool emu_handle_is(const void *handle, emu_handle_kind kind) {
    for (const entry *e = all; e != NULL; e = e->next) {
        if (e->handle == handle) {
            return e->kind == kind;
        }
    }
    return false;
}

void emu_handle_free(void *handle) {
    for (entry **link = &all; *link != NULL; link = &(*link)->next) {
        if ((*link)->handle == handle) {
            entry *e = *link;
            *link = e->next;
            free(e);
            free(handle);
            return;
        }
    }
}

void emu_handles_end(bool lost) {
    static const char *const names[] = {"stream",   "event", "module",
                                        "function", "graph", "executable graph"};
    while (all != NULL) {
        if (emu_checking() && !lost && all->kind != EMU_HANDLE_FUNCTION) {
            emu_complain("a handle of kind %s was never given back", names[all->kind]);
        }
        emu_handle_free(all->handle);
    }
}
