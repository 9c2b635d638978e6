/* emu_graph.c - what is done on a stream, at once or recorded and played again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu_inside.h"

bool emu_fails_now(const char *kind) {
    static char last[64];
    static long calls;
    const char *text = getenv("STK_EMU_FAIL");
    size_t length = strlen(kind);
    char *end;
    if (text == NULL) {
        last[0] = '\0';
        return false;
    }
    if (strcmp(text, last) != 0) { /* counted from when it was set */
        snprintf(last, sizeof last, "%s", text);
        calls = 0;
    }
    if (strncmp(text, kind, length) != 0 || text[length] != ':') {
        return false;
    }
    long first = strtol(text + length + 1, &end, 10);
    calls++;
    return *end == '+' ? calls >= first : calls == first;
}

static int run_launch(const emu_node *node) {
    const emu_kernel *kernel = node->function->kernel;
    void *arguments[64];
    size_t at = 0;
    if (emu_fails_now("launch")) {
        emu_lose();
        return EMU_LAUNCH_FAILED;
    }
    for (int i = 0; i < kernel->count; i++) {
        arguments[i] = node->blob + at;
        at += (kernel->sizes[i] + 7) / 8 * 8;
    }
    emu_launch launch = {.name = node->function->name,
                         .kernel = kernel,
                         .link = node->function->module->link,
                         .shared_bytes = node->shared_bytes,
                         .arguments = arguments};
    memcpy(launch.grid, node->grid, sizeof launch.grid);
    memcpy(launch.threads, node->threads, sizeof launch.threads);
    emu_run(&launch);
    if (emu_checking()) {
        char when[160];
        snprintf(when, sizeof when, "after kernel %s", launch.name);
        emu_memory_check(when);
    }
    return EMU_GOOD;
}

int emu_node_run(const emu_node *node) {
    switch (node->kind) {
    case EMU_NODE_LAUNCH:
        return run_launch(node);
    case EMU_NODE_COPY:
        memmove(node->to, node->from, node->bytes);
        return EMU_GOOD;
    case EMU_NODE_FILL:
        memset(node->to, node->value, node->bytes);
        return EMU_GOOD;
    default:
        node->call(node->blob);
        return EMU_GOOD;
    }
}

bool emu_node_copy(emu_node *to, const emu_node *from) {
    *to = *from;
    if (from->blob == NULL) {
        return true;
    }
    to->blob = malloc(from->bytes > 0 ? from->bytes : 1);
    if (to->blob != NULL) {
        memcpy(to->blob, from->blob, from->bytes);
    }
    return to->blob != NULL;
}

void emu_node_free(emu_node *node) {
    free(node->blob);
    node->blob = NULL;
}

int emu_graph_add(emu_graph *graph, emu_node *node) {
    if (graph->count == graph->room) {
        size_t room = graph->room == 0 ? 64 : graph->room * 2;
        emu_node *grown = realloc(graph->nodes, room * sizeof *grown);
        if (grown == NULL) {
            emu_node_free(node);
            return EMU_OUT_OF_MEMORY;
        }
        graph->nodes = grown;
        graph->room = room;
    }
    graph->nodes[graph->count++] = *node;
    return EMU_GOOD;
}

void emu_graph_clear(emu_graph *graph) {
    for (size_t i = 0; i < graph->count; i++) {
        emu_node_free(&graph->nodes[i]);
    }
    free(graph->nodes);
    *graph = (emu_graph){NULL, 0, 0};
}
