/*
 * emu_enqueue.h - how the emulated libraries put work on a stream of the emulated driver.
 */
#ifndef STK_TESTS_EMULATED_EMU_ENQUEUE_H
#define STK_TESTS_EMULATED_EMU_ENQUEUE_H

#include <stddef.h>

/*
 * Exported by the emulated driver: calls fn(argument) on the stream, with a copy of `bytes` bytes
 * of the argument, now or whenever the graph that is being captured is launched. Returns a
 * CUresult.
 */
int emu_enqueue(void *stream, void (*fn)(void *argument), const void *argument, size_t bytes);

#endif
