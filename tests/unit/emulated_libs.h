/*
 * emulated_libs.h - opens the emulated GPU and one of the libraries beside it, for tests of these
 * libraries themselves: they call the exported functions, with nothing of ours in between.
 */
#ifndef STK_TESTS_UNIT_EMULATED_LIBS_H
#define STK_TESTS_UNIT_EMULATED_LIBS_H

#include "cuda_play.h"

typedef struct emulated {
    play_device play;
    cuda_driver driver; /* the same as of play */
    cuda_stream stream;
    void *library;
} emulated;

/* False: the test was skipped or has failed. A real GPU is never used. */
static inline bool emulated_open(emulated *e, const char *library) {
    memset(e, 0, sizeof *e);
    (void)setenv("STK_TEST_GPU", "emulated", 1);
    if (!play_open(&e->play)) {
        return false;
    }
    e->driver = *e->play.driver;
    e->stream = e->play.stream;
    char path[700];
    snprintf(path, sizeof path, "%s/%s", play_emulated_folder(), library);
    e->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (e->library == NULL) {
        CHECK_FAIL("%s", dlerror());
        play_close(&e->play);
    }
    return e->library != NULL;
}

static inline void emulated_close(emulated *e) {
    (void)dlclose(e->library);
    play_close(&e->play);
}

/* Finds a function, which ends the test program where it is missing. */
static inline void emulated_find(const emulated *e, const char *symbol, void *place) {
    void *found = dlsym(e->library, symbol);
    if (found == NULL) {
        printf("there is no function %s\n", symbol);
        exit(1);
    }
    memcpy(place, &found, sizeof found);
}

/* Numbers between -1 and 1 that need few bits, so that no type rounds them. */
static inline float emulated_number(unsigned i) {
    unsigned mixed = i * 2654435761u;
    return (float)((int)(mixed >> 24) % 33 - 16) / 16;
}

/* A tensor on the device that holds these numbers. */
static inline cuda_pointer emulated_put(emulated *e, cuda_type type, const float *values,
                                        size_t count) {
    cuda_pointer pointer = 0;
    size_t bytes = count * cuda_type_bytes(type);
    void *packed = stk_mem_new(1, bytes);
    play_pack(type, values, packed, count);
    CHECK_INT(e->driver.memory_take(&pointer, bytes), CUDA_GOOD);
    CHECK_INT(e->driver.copy_in(pointer, packed, bytes, e->stream), CUDA_GOOD);
    CHECK_INT(e->driver.stream_wait(e->stream), CUDA_GOOD);
    stk_mem_free(packed);
    return pointer;
}

static inline void emulated_get(emulated *e, cuda_type type, cuda_pointer pointer, float *values,
                                size_t count) {
    size_t bytes = count * cuda_type_bytes(type);
    void *packed = stk_mem_new(1, bytes);
    CHECK_INT(e->driver.copy_out(packed, pointer, bytes, e->stream), CUDA_GOOD);
    CHECK_INT(e->driver.stream_wait(e->stream), CUDA_GOOD);
    play_unpack(type, packed, values, count);
    stk_mem_free(packed);
}

#endif
