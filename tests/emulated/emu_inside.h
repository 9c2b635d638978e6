/*
 * emu_inside.h - inside the emulated driver: what its files share.
 *
 * One lock covers the whole driver: one thing happens at a time, in the order of the calls.
 */
#ifndef STK_TESTS_EMU_INSIDE_H
#define STK_TESTS_EMU_INSIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu_link.h"

#define EMU_EXPORT __attribute__((visibility("default")))

/* Results, as CUresult numbers them. */
enum {
    EMU_GOOD = 0,
    EMU_INVALID_VALUE = 1,
    EMU_OUT_OF_MEMORY = 2,
    EMU_NOT_INITIALIZED = 3,
    EMU_INVALID_DEVICE = 101,
    EMU_INVALID_IMAGE = 200,
    EMU_INVALID_CONTEXT = 201,
    EMU_NO_BINARY = 209,
    EMU_INVALID_HANDLE = 400,
    EMU_NOT_FOUND = 500,
    EMU_NOT_READY = 600,
    EMU_LAUNCH_FAILED = 719,
    EMU_CAPTURE_UNSUPPORTED = 900,
    EMU_CAPTURE_INVALIDATED = 901,
    EMU_CAPTURE_UNMATCHED = 903,
    EMU_CAPTURE_IMPLICIT = 906,
    EMU_CAPTURE_WRONG_THREAD = 908
};

enum { EMU_MOST_THREADS = 1024, EMU_USUAL_SHARED = 48 << 10, EMU_MOST_SHARED = 227 << 10 };

/* Reported on stderr; with STK_EMU_CHECK=1 the process ends, so that no test can overlook it. */
void emu_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same and the end of the process in any case: kernels that cannot go on. */
void emu_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

bool emu_checking(void); /* STK_EMU_CHECK=1 */

/* ---- emu_driver.c ---- */

/* Every entry begins with this, and every exit ends with emu_leave(). */
int emu_enter(void);         /* that the driver is started and the device not lost */
int emu_enter_context(void); /* and that the thread has a context */
int emu_leave(int result);

int emu_capability(void); /* times ten: STK_EMU_CAPABILITY */

/* Whether STK_EMU_FAIL=KIND:N means this call; calls of a kind are counted by asking. */
bool emu_fails_now(const char *kind);

/* The device is lost: every later call fails so. */
void emu_lose(void);

/* ---- emu_memory.c ---- */

/* Complains of damaged guards; `when` says after what. */
void emu_memory_check(const char *when);

/* Frees all that is left, with a complaint when checking; a device that was lost may leave some. */
void emu_memory_end(bool lost);

/* Says where an address lies, for the report of a crash. */
void emu_memory_describe(const void *address, char *text, size_t room);

/* Whether all of the bytes are memory of the device. */
bool emu_memory_holds(uint64_t pointer, size_t bytes);

/* Pages between two that cannot be touched; `*begin` is so that bytes end at the second. */
void *emu_pages_take(size_t bytes, size_t align, void **base, size_t *mapped);

/* ---- emu_fibers.c ---- */

typedef struct emu_launch {
    const char *name;
    const emu_kernel *kernel;
    emu_link_table *link;
    unsigned grid[3], threads[3];
    unsigned shared_bytes;
    void **arguments;
} emu_launch;

/* Runs all blocks; does not come back when the kernel does something impossible. */
void emu_run(const emu_launch *launch);

/* ---- emu_module.c ---- */

typedef struct CUmod_st {
    void *handle; /* from dlopen */
    emu_link_table *link;
    struct CUfunc_st *functions; /* a list, owned */
} emu_module;

typedef struct CUfunc_st {
    struct CUfunc_st *next;
    emu_module *module;
    const emu_kernel *kernel;
    char *name;
    unsigned most_shared; /* what cuFuncSetAttribute allowed */
} emu_function;

/* ---- emu_handles.c ---- */

/* All handles that are alive are in one table, so that wrong ones can be told. */
typedef enum emu_handle_kind {
    EMU_HANDLE_STREAM,
    EMU_HANDLE_EVENT,
    EMU_HANDLE_MODULE,
    EMU_HANDLE_FUNCTION,
    EMU_HANDLE_GRAPH,
    EMU_HANDLE_EXEC
} emu_handle_kind;

/* Zeroed memory that is known as a handle; NULL when there is none. */
void *emu_handle_new(size_t bytes, emu_handle_kind kind);
bool emu_handle_is(const void *handle, emu_handle_kind kind);
void emu_handle_free(void *handle);

/* Forgets all, with a complaint when checking. */
void emu_handles_end(bool lost);

/* ---- emu_stream.c ---- */

/* Refuses what a thread may not do while it captures, and spoils the capture. */
int emu_forbid_capture(void);

/* Gives up a capture that runs. */
void emu_stream_end(void);

/* ---- emu_graph.c ---- */

typedef enum emu_node_kind {
    EMU_NODE_LAUNCH,
    EMU_NODE_COPY,
    EMU_NODE_FILL,
    EMU_NODE_CALL
} emu_node_kind;

/* Something done on a stream, with everything that it needs. */
typedef struct emu_node {
    emu_node_kind kind;
    emu_function *function;
    unsigned grid[3], threads[3];
    unsigned shared_bytes;
    void *to;
    const void *from;
    unsigned char value;
    void (*call)(void *);
    size_t bytes;
    unsigned char *blob; /* arguments of a launch or call, copied; owned */
} emu_node;

int emu_node_run(const emu_node *node);
bool emu_node_copy(emu_node *to, const emu_node *from);
void emu_node_free(emu_node *node);

typedef struct CUgraph_st {
    emu_node *nodes;
    size_t count, room;
} emu_graph;

/* Takes the node, whether it succeeds or not. */
int emu_graph_add(emu_graph *graph, emu_node *node);
void emu_graph_clear(emu_graph *graph);

#endif
