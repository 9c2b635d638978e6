/* picture_kernels.c - makes and launches the kernels of kernels/pictures.cu and kernels/changes.cu.
 */
#include "backend/cuda/decode/picture_kernels.h"

#include "backend/cuda/emit/changes.h"
#include "base/error.h"
#include "image/resample/kernels.h"

#define THREADS 256

/* Blocks that convert one picture: each takes every so manyth row. */
#define RGB_BLOCKS 32

/* Dynamic shared memory that a block has without asking for more. */
#define SHARED_BYTES ((size_t)48 << 10)

unsigned stk_cuda_square_shared(int columns, int size) {
    return (unsigned)((3 * columns + 3) / 4 * 4 * (int)sizeof(int16_t) + 3 * size);
}

int stk_cuda_widest_part(int size) {
    size_t row = 3 * (size_t)size + 4 * sizeof(int16_t);
    return row < SHARED_BYTES ? (int)((SHARED_BYTES - row) / (3 * sizeof(int16_t))) : 0;
}

/* A program that launches each kernel once: what makes a kernel is a launch of it. */
static void describe(cuda_program *p, int first[3]) {
    stk_cuda_program_begin(p, CUDA_TYPE_F32, false, 1);
    const cuda_ref pictures = cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0);
    first[0] = p->op_count;
    cuda_launch *rgb = stk_cuda_launch(p, "pictures", "picture_rgb", 1, 1, THREADS, 0);
    CUDA_ARGS(rgb, pictures);
    first[1] = p->op_count;
    cuda_launch *square = stk_cuda_launch(p, "pictures", "picture_square", 1, 1, THREADS, 0);
    CUDA_DEFINES(square, {"DOWN_SHIFT", STK_DOWN_SHIFT}, {"ACROSS_SHIFT", STK_ACROSS_SHIFT});
    CUDA_ARGS(square, pictures);
    first[2] = p->op_count;
    stk_cuda_picture_changes(p, 1, pictures);
}

stk_status stk_cuda_picture_kernels_make(cuda_picture_kernels *made, cuda_kernels *kernels,
                                         const cuda_driver *driver, stk_error *err) {
    cuda_program program;
    const cuda_program *programs[] = {&program};
    int at[3];
    describe(&program, at);
    stk_status status = program.error.status == STK_OK
                            ? stk_cuda_kernels_make(kernels, programs, 1, err)
                            : STK_FAIL(err, program.error.status, "%s", program.error.message);
    if (status == STK_OK) {
        cuda_function functions[3];
        for (int i = 0; i < 3; i++) {
            functions[i] = stk_cuda_kernels_find(kernels, &program.ops[at[i]].launch, program.type);
        }
        const cuda_launch *changes = &program.ops[at[2]].launch;
        *made = (cuda_picture_kernels){.driver = driver,
                                       .rgb = functions[0],
                                       .square = functions[1],
                                       .changes = functions[2],
                                       .change_threads = changes->threads,
                                       .change_shared_bytes = changes->shared_bytes};
    }
    stk_cuda_program_free(&program);
    return status;
}

int stk_cuda_picture_kernels_launch(const cuda_picture_kernels *kernels, cuda_pointer pictures,
                                    const cuda_picture_extent *extent, cuda_stream stream) {
    const cuda_driver *d = kernels->driver;
    unsigned count = (unsigned)extent->pictures;
    void *arguments[] = {&pictures};
    int result =
        d->launch(kernels->rgb, RGB_BLOCKS, count, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
    if (result == CUDA_GOOD) {
        result = d->launch(kernels->square, (unsigned)extent->size, count, 1, THREADS, 1, 1,
                           extent->shared_bytes, stream, arguments, NULL);
    }
    if (result == CUDA_GOOD && extent->changed) {
        result = d->launch(kernels->changes, count, 1, 1, kernels->change_threads, 1, 1,
                           kernels->change_shared_bytes, stream, arguments, NULL);
    }
    return result;
}
