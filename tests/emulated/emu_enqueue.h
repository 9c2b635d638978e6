/*
 * emu_enqueue.h - how the other emulated libraries put work on a stream of the emulated driver, and
 * ask for its memory.
 */
#ifndef STK_TESTS_EMULATED_EMU_ENQUEUE_H
#define STK_TESTS_EMULATED_EMU_ENQUEUE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Calls fn(argument) on the stream, with a copy of `bytes` bytes of the argument, now or whenever
 * the graph that is being captured is launched. Returns a CUresult: not 0 where the driver that the
 * process has loaded is not the emulated one.
 */
int emu_put_on_stream(void *stream, void (*fn)(void *argument), const void *argument, size_t bytes);

/* Whether all of the bytes are memory that the emulated driver gave: the device's, or pinned. */
bool emu_is_memory(const void *pointer, size_t bytes);

#endif
