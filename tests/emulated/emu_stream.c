/*
 * emu_stream.c - streams, events and graphs of the emulated driver.
 *
 * What is put on a stream happens at once, so that the order of the calls is the order of things,
 * and events are times. While a stream captures, it is recorded instead. A stream that waits for an
 * event of a capturing one joins its capture, as in CUDA.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu_inside.h"

typedef struct capture {
    emu_graph graph;
    unsigned number;
    struct CUstream_st *origin;
    pthread_t thread;
    bool strict;  /* the thread, or any thread, must not do what could disturb it */
    bool global;  /* any thread */
    bool spoiled; /* something forbidden was done */
} capture;

typedef struct CUstream_st {
    unsigned capture; /* the number of the last capture that it took part in */
} emu_stream;

typedef struct CUevent_st {
    bool recorded;
    unsigned capture; /* the capture that its last record was in; 0: none */
    bool timing;
    struct timespec time;
} emu_event;

static capture taking; /* one at a time */
static bool capture_runs;

/* NULL is the stream that is always there. */
static bool is_stream(const emu_stream *stream) {
    return stream == NULL || emu_handle_is(stream, EMU_HANDLE_STREAM);
}

static bool captures(const emu_stream *stream) {
    return capture_runs && stream != NULL && stream->capture == taking.number;
}

int emu_forbid_capture(void) {
    if (capture_runs && taking.strict &&
        (taking.global || pthread_equal(pthread_self(), taking.thread))) {
        taking.spoiled = true;
        return EMU_CAPTURE_UNSUPPORTED;
    }
    return EMU_GOOD;
}

/* Does it, or records it. Takes the node. */
static int submit(emu_stream *stream, emu_node *node) {
    int result;
    if (captures(stream)) {
        result = taking.spoiled ? EMU_CAPTURE_INVALIDATED : EMU_GOOD;
        if (result == EMU_GOOD) {
            return emu_graph_add(&taking.graph, node);
        }
    } else if (stream == NULL && capture_runs) {
        taking.spoiled = true;
        result = EMU_CAPTURE_IMPLICIT;
    } else {
        result = emu_node_run(node);
    }
    emu_node_free(node);
    return result;
}

void emu_stream_end(void) {
    if (capture_runs) {
        emu_graph_clear(&taking.graph);
        capture_runs = false;
    }
}

/* ---- copies, launches ---- */

EMU_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes,
                                    emu_stream *stream);
EMU_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, emu_stream *stream);
EMU_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, emu_stream *stream);
EMU_EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, emu_stream *stream);
EMU_EXPORT int cuLaunchKernel(emu_function *function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, emu_stream *stream, void **arguments,
                              void **extra);

/*
 * For the other emulated libraries: calls fn(argument) on the stream, with a copy of `bytes` bytes
 * of the argument, now or whenever the graph that is being captured is launched.
 */
EMU_EXPORT int emu_enqueue(emu_stream *stream, void (*fn)(void *), const void *argument,
                           size_t bytes);

static int move(void *to, bool to_device, const void *from, bool from_device, size_t bytes,
                emu_stream *stream) {
    int result = emu_enter_context();
    bool good = is_stream(stream) &&
                (!to_device || emu_memory_holds((uint64_t)(uintptr_t)to, bytes)) &&
                (!from_device || emu_memory_holds((uint64_t)(uintptr_t)from, bytes)) &&
                (bytes == 0 || (to != NULL && from != NULL));
    if (result == EMU_GOOD) {
        result = good ? EMU_GOOD : EMU_INVALID_VALUE;
    }
    if (result == EMU_GOOD) {
        emu_node node = {.kind = EMU_NODE_COPY, .to = to, .from = from, .bytes = bytes};
        result = submit(stream, &node);
    }
    return emu_leave(result);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, emu_stream *stream) {
    return move((void *)(uintptr_t)to, true, from, false, bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, emu_stream *stream) {
    return move(to, false, (const void *)(uintptr_t)from, true, bytes, stream);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, emu_stream *stream) {
    return move((void *)(uintptr_t)to, true, (const void *)(uintptr_t)from, true, bytes, stream);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, emu_stream *stream) {
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        result = is_stream(stream) && emu_memory_holds(to, bytes) ? EMU_GOOD : EMU_INVALID_VALUE;
    }
    if (result == EMU_GOOD) {
        emu_node node = {
            .kind = EMU_NODE_FILL, .to = (void *)(uintptr_t)to, .value = value, .bytes = bytes};
        result = submit(stream, &node);
    }
    return emu_leave(result);
}

/* Arguments one behind another, each on a boundary of 8 bytes. */
static unsigned char *copy_arguments(const emu_kernel *kernel, void **arguments, size_t *bytes) {
    *bytes = 0;
    for (int i = 0; i < kernel->count; i++) {
        *bytes += (kernel->sizes[i] + 7) / 8 * 8;
    }
    unsigned char *blob = malloc(*bytes + 1);
    size_t at = 0;
    for (int i = 0; i < kernel->count && blob != NULL; i++) {
        memcpy(blob + at, arguments[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 7) / 8 * 8;
    }
    return blob;
}

int cuLaunchKernel(emu_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   emu_stream *stream, void **arguments, void **extra) {
    int result = emu_enter_context();
    if (result != EMU_GOOD) {
        return emu_leave(result);
    }
    if (!emu_handle_is(function, EMU_HANDLE_FUNCTION) || !is_stream(stream)) {
        return emu_leave(EMU_INVALID_HANDLE);
    }
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > 0x7FFFFFFF || grid_y > 65535 ||
        grid_z > 65535 || block_x == 0 || block_y == 0 || block_z == 0 ||
        block_x > EMU_MOST_THREADS || block_y > EMU_MOST_THREADS || block_z > 64 ||
        block_x * block_y * block_z > EMU_MOST_THREADS || shared_bytes > function->most_shared ||
        extra != NULL || (arguments == NULL && function->kernel->count > 0)) {
        return emu_leave(EMU_INVALID_VALUE);
    }
    emu_node node = {.kind = EMU_NODE_LAUNCH,
                     .function = function,
                     .grid = {grid_x, grid_y, grid_z},
                     .threads = {block_x, block_y, block_z},
                     .shared_bytes = shared_bytes};
    node.blob = copy_arguments(function->kernel, arguments, &node.bytes);
    return emu_leave(node.blob != NULL ? submit(stream, &node) : EMU_OUT_OF_MEMORY);
}

int emu_enqueue(emu_stream *stream, void (*fn)(void *), const void *argument, size_t bytes) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !is_stream(stream)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        emu_node node = {.kind = EMU_NODE_CALL, .call = fn, .bytes = bytes};
        node.blob = malloc(bytes + 1);
        result = node.blob != NULL ? EMU_GOOD : EMU_OUT_OF_MEMORY;
        if (result == EMU_GOOD) {
            memcpy(node.blob, argument, bytes);
            result = submit(stream, &node);
        }
    }
    return emu_leave(result);
}

/* ---- streams ---- */

EMU_EXPORT int cuStreamCreate(emu_stream **stream, unsigned flags);
EMU_EXPORT int cuStreamCreateWithPriority(emu_stream **stream, unsigned flags, int priority);
EMU_EXPORT int cuStreamDestroy_v2(emu_stream *stream);
EMU_EXPORT int cuStreamSynchronize(emu_stream *stream);
EMU_EXPORT int cuStreamWaitEvent(emu_stream *stream, emu_event *event, unsigned flags);

int cuStreamCreate(emu_stream **stream, unsigned flags) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && flags > 1) {
        result = EMU_INVALID_VALUE;
    }
    if (result == EMU_GOOD) {
        *stream = emu_handle_new(sizeof **stream, EMU_HANDLE_STREAM);
        result = *stream != NULL ? EMU_GOOD : EMU_OUT_OF_MEMORY;
    }
    return emu_leave(result);
}

/* Everything happens at once, so no stream is before another. */
int cuStreamCreateWithPriority(emu_stream **stream, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(stream, flags);
}

int cuStreamDestroy_v2(emu_stream *stream) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(stream, EMU_HANDLE_STREAM)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && captures(stream)) {
        emu_stream_end();
    }
    if (result == EMU_GOOD) {
        emu_handle_free(stream);
    }
    return emu_leave(result);
}

int cuStreamSynchronize(emu_stream *stream) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !is_stream(stream)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && captures(stream)) {
        taking.spoiled = true;
        result = EMU_CAPTURE_UNSUPPORTED;
    }
    return emu_leave(result);
}

int cuStreamWaitEvent(emu_stream *stream, emu_event *event, unsigned flags) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && (!is_stream(stream) || !emu_handle_is(event, EMU_HANDLE_EVENT))) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && flags == 0 && capture_runs && event->capture == taking.number) {
        if (stream == NULL) {
            result = EMU_CAPTURE_IMPLICIT;
        } else {
            stream->capture = taking.number;
        }
    }
    return emu_leave(result);
}

/* ---- events ---- */

/* Events report this many times the time that passed, so that code that measures long enough is
 * soon done. */
#define SLOWER 1000

EMU_EXPORT int cuEventCreate(emu_event **event, unsigned flags);
EMU_EXPORT int cuEventDestroy_v2(emu_event *event);
EMU_EXPORT int cuEventRecord(emu_event *event, emu_stream *stream);
EMU_EXPORT int cuEventSynchronize(emu_event *event);
EMU_EXPORT int cuEventQuery(emu_event *event);
EMU_EXPORT int cuEventElapsedTime(float *ms, emu_event *begin, emu_event *end);

int cuEventCreate(emu_event **event, unsigned flags) {
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        *event = emu_handle_new(sizeof **event, EMU_HANDLE_EVENT);
        result = *event != NULL ? EMU_GOOD : EMU_OUT_OF_MEMORY;
    }
    if (result == EMU_GOOD) {
        (*event)->timing = (flags & 2) == 0;
    }
    return emu_leave(result);
}

int cuEventDestroy_v2(emu_event *event) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(event, EMU_HANDLE_EVENT)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        emu_handle_free(event);
    }
    return emu_leave(result);
}

int cuEventRecord(emu_event *event, emu_stream *stream) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && (!is_stream(stream) || !emu_handle_is(event, EMU_HANDLE_EVENT))) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        event->capture = captures(stream) ? taking.number : 0;
        event->recorded = true;
        (void)clock_gettime(CLOCK_MONOTONIC, &event->time);
    }
    return emu_leave(result);
}

/* Everything has happened by now, unless it is only being recorded. */
static int ask_event(const emu_event *event) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(event, EMU_HANDLE_EVENT)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && capture_runs && event->capture == taking.number) {
        taking.spoiled = true;
        result = EMU_CAPTURE_UNSUPPORTED;
    }
    return emu_leave(result);
}

int cuEventSynchronize(emu_event *event) {
    return ask_event(event);
}

int cuEventQuery(emu_event *event) {
    return ask_event(event);
}

int cuEventElapsedTime(float *ms, emu_event *begin, emu_event *end) {
    int result = emu_enter_context();
    if (result == EMU_GOOD &&
        (!emu_handle_is(begin, EMU_HANDLE_EVENT) || !emu_handle_is(end, EMU_HANDLE_EVENT) ||
         !begin->recorded || !end->recorded || !begin->timing || !end->timing)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        *ms = (float)((double)(end->time.tv_sec - begin->time.tv_sec) * 1e3 +
                      (double)(end->time.tv_nsec - begin->time.tv_nsec) * 1e-6) *
              SLOWER;
    }
    return emu_leave(result);
}

/* ---- graphs ---- */

typedef emu_graph emu_exec; /* an executable graph is a copy */

EMU_EXPORT int cuStreamBeginCapture_v2(emu_stream *stream, int mode);
EMU_EXPORT int cuStreamEndCapture(emu_stream *stream, emu_graph **graph);
EMU_EXPORT int cuGraphInstantiateWithFlags(emu_exec **exec, emu_graph *graph,
                                           unsigned long long flags);
EMU_EXPORT int cuGraphLaunch(emu_exec *exec, emu_stream *stream);
EMU_EXPORT int cuGraphExecDestroy(emu_exec *exec);
EMU_EXPORT int cuGraphDestroy(emu_graph *graph);

int cuStreamBeginCapture_v2(emu_stream *stream, int mode) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(stream, EMU_HANDLE_STREAM)) {
        result = stream == NULL ? EMU_CAPTURE_UNSUPPORTED : EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && (capture_runs || mode < 0 || mode > 2)) {
        result = EMU_INVALID_VALUE;
    }
    if (result == EMU_GOOD) {
        taking = (capture){.number = taking.number + 1,
                           .origin = stream,
                           .thread = pthread_self(),
                           .strict = mode != 2,
                           .global = mode == 0};
        stream->capture = taking.number;
        capture_runs = true;
    }
    return emu_leave(result);
}

int cuStreamEndCapture(emu_stream *stream, emu_graph **graph) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && (!captures(stream) || taking.origin != stream)) {
        result = captures(stream) ? EMU_CAPTURE_UNMATCHED : EMU_INVALID_VALUE;
    }
    if (result == EMU_GOOD && taking.strict && !pthread_equal(taking.thread, pthread_self())) {
        result = EMU_CAPTURE_WRONG_THREAD;
    }
    if (result != EMU_GOOD) {
        return emu_leave(result);
    }
    emu_graph *made = taking.spoiled ? NULL : emu_handle_new(sizeof *made, EMU_HANDLE_GRAPH);
    result = made != NULL ? EMU_GOOD : taking.spoiled ? EMU_CAPTURE_INVALIDATED : EMU_OUT_OF_MEMORY;
    if (made != NULL) {
        *made = taking.graph;
    } else {
        emu_graph_clear(&taking.graph);
    }
    *graph = made;
    capture_runs = false;
    return emu_leave(result);
}

int cuGraphInstantiateWithFlags(emu_exec **exec, emu_graph *graph, unsigned long long flags) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(graph, EMU_HANDLE_GRAPH)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && flags != 0) {
        result = EMU_INVALID_VALUE;
    }
    emu_exec *made = result == EMU_GOOD ? emu_handle_new(sizeof *made, EMU_HANDLE_EXEC) : NULL;
    if (result == EMU_GOOD && made == NULL) {
        result = EMU_OUT_OF_MEMORY;
    }
    for (size_t i = 0; result == EMU_GOOD && i < graph->count; i++) {
        emu_node node;
        result =
            emu_node_copy(&node, &graph->nodes[i]) ? emu_graph_add(made, &node) : EMU_OUT_OF_MEMORY;
    }
    if (result == EMU_GOOD) {
        *exec = made;
    } else if (made != NULL) {
        emu_graph_clear(made);
        emu_handle_free(made);
    }
    return emu_leave(result);
}

int cuGraphLaunch(emu_exec *exec, emu_stream *stream) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && (!is_stream(stream) || !emu_handle_is(exec, EMU_HANDLE_EXEC))) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && emu_fails_now("graph")) {
        result = EMU_OUT_OF_MEMORY;
    }
    for (size_t i = 0; result == EMU_GOOD && i < exec->count; i++) {
        emu_node node;
        result = emu_node_copy(&node, &exec->nodes[i]) ? submit(stream, &node) : EMU_OUT_OF_MEMORY;
    }
    return emu_leave(result);
}

static int destroy(emu_graph *graph, emu_handle_kind kind) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(graph, kind)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        emu_graph_clear(graph);
        emu_handle_free(graph);
    }
    return emu_leave(result);
}

int cuGraphExecDestroy(emu_exec *exec) {
    return destroy(exec, EMU_HANDLE_EXEC);
}

int cuGraphDestroy(emu_graph *graph) {
    return destroy(graph, EMU_HANDLE_GRAPH);
}
