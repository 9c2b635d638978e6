/*
 * emu_enqueue.h - how the other emulated libraries put work on a stream of the emulated driver.
 */
#ifndef STK_TESTS_EMULATED_EMU_ENQUEUE_H
#define STK_TESTS_EMULATED_EMU_ENQUEUE_H

#include <stddef.h>

/*
 * Calls fn(argument) on the stream, with a copy of `bytes` bytes of the argument, now or whenever
 * the graph that is being captured is launched. Returns a CUresult: not 0 where the driver that the
 * process has loaded is not the emulated one.
 */
int emu_put_on_stream(void *stream, void (*fn)(void *argument), const void *argument, size_t bytes);

#endif
