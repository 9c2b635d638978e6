/* cuda_cases.h - what tests of CUDA kernels share: types, how exact each is, programs to run. */
#ifndef STK_TESTS_UNIT_CUDA_CASES_H
#define STK_TESTS_UNIT_CUDA_CASES_H

#include "backend/cuda/emit/emit.h"
#include "cuda_play.h"

#define EACH_TYPE(type) for (cuda_type type = CUDA_TYPE_F32; type <= CUDA_TYPE_BF16; type++)

/* How far a result may be off that was rounded to the type once, of its size. */
static inline double case_room(cuda_type type) {
    return type == CUDA_TYPE_F32 ? 4e-6 : type == CUDA_TYPE_F16 ? 6e-4 : 5e-3;
}

/* A program for a small GPU, so that persistent blocks go more than one round. */
static inline cuda_program case_begin(cuda_type type) {
    cuda_program p;
    stk_cuda_program_begin(&p, type, false, 2);
    return p;
}

/* A buffer of the program for numbers in the type of activations, or for float32. */
static inline cuda_ref case_values(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * cuda_type_bytes(p->type));
}

static inline cuda_ref case_floats(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * sizeof(float));
}

/* Runs and ends a program. */
#define CASE_RUN(play, p, data)                                                    \
    do {                                                                           \
        (void)play_run((play), (p), (data), (int)(sizeof(data) / sizeof *(data))); \
        stk_cuda_program_free(p);                                                  \
    } while (0)

/* Memory of the test's own on the device, whose address kernels find in the constants. */
static inline cuda_pointer case_put(play_device *play, const void *from, size_t bytes) {
    cuda_pointer place = 0;
    (void)(PLAY_GOOD(play, memory_take(&place, bytes)) &&
           PLAY_GOOD(play, copy_in(place, from, bytes, play->stream)) &&
           PLAY_GOOD(play, stream_wait(play->stream)));
    return place;
}

static inline void case_take_back(play_device *play, cuda_pointer place) {
    (void)PLAY_GOOD(play, memory_free(place));
}

#endif
