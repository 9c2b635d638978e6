/* emu_enqueue.c - finds the emulated driver in the process, its queue of work and its memory. */
#include "emu_enqueue.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

enum { NOT_FOUND = 500 }; /* CUDA_ERROR_NOT_FOUND */

typedef int enqueue(void *stream, void (*fn)(void *), const void *argument, size_t bytes);
typedef bool holds(uint64_t pointer, size_t bytes);

/* Puts the address of a function of the emulated driver at `place`; false: the process has another
 * driver. Whoever has a stream has loaded the driver: it is found under its name, not opened. */
static bool find(const char *name, void *place) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver != NULL ? dlsym(driver, name) : NULL;
    memcpy(place, &found, sizeof found);
    if (driver != NULL) {
        (void)dlclose(driver); /* the process keeps it open */
    }
    return found != NULL;
}

int emu_put_on_stream(void *stream, void (*fn)(void *argument), const void *argument,
                      size_t bytes) {
    enqueue *call = NULL;
    return find("emu_enqueue", &call) ? call(stream, fn, argument, bytes) : NOT_FOUND;
}

bool emu_is_memory(const void *pointer, size_t bytes) {
    holds *call = NULL;
    return find("emu_holds", &call) && call((uint64_t)(uintptr_t)pointer, bytes);
}
