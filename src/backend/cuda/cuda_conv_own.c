/* cuda_conv_own.c - launches of kernels/conv_tail.cu and kernels/conv_plain.cu. */
#include "backend/cuda/cuda_conv_own.h"

#include "backend/cuda/cuda_cudnn.h"
#include "backend/cuda/cuda_grid.h"
#include "base/error.h"

/* What buffer numbers of these programs mean. */
enum { PLACE_X, PLACE_W, PLACE_Y, PLACE_BIAS, PLACE_ADDED, PLACE_DOWN, PLACES };

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8 };

bool stk_cuda_own_has_tail(const cuda_conv_shape *shape) {
    return shape->kind == CUDA_CONV_FORWARD &&
           (shape->bias || shape->added || shape->act != STK_OP_COUNT);
}

void stk_cuda_own_begin(cuda_own *own, const cuda_conv_shape *shape, int multiprocessors) {
    stk_cuda_program_begin(&own->program, shape->type, shape->strict, multiprocessors);
    for (int i = 0; i < CUDA_OWN_PARTS; i++) {
        own->ops[i] = -1;
    }
}

void stk_cuda_own_free(cuda_own *own) {
    stk_cuda_program_free(&own->program);
}

static void add_place(cuda_launch *launch, int place) {
    stk_cuda_arg(launch, (cuda_ref){place, 0});
}

static void define_tail(cuda_launch *launch, const cuda_conv_shape *shape) {
    stk_cuda_define(launch, "ACT", stk_cuda_act_code(shape->act));
    stk_cuda_define(launch, "BIAS", shape->bias);
    stk_cuda_define(launch, "ADDED", shape->added);
}

static void add_tail(cuda_program *p, const cuda_conv_shape *shape) {
    int wide = cuda_wide(shape->filters);
    size_t groups = (size_t)shape->batch * (size_t)shape->out_height * (size_t)shape->out_width *
                    (size_t)(shape->filters / wide);
    cuda_launch *launch =
        stk_cuda_launch(p, "conv_tail", "bias_act",
                        cuda_blocks(p, groups, 4 * THREADS, BLOCKS_PER_PROCESSOR), 1, THREADS, 0);
    stk_cuda_define(launch, "C", shape->filters);
    stk_cuda_define(launch, "WIDE", wide);
    define_tail(launch, shape);
    add_place(launch, PLACE_Y);
    add_place(launch, PLACE_BIAS);
    add_place(launch, PLACE_ADDED);
    stk_cuda_arg_long(launch, (int64_t)groups);
}

static void add_down(cuda_program *p, const cuda_conv_shape *shape) {
    unsigned blocks = (unsigned)cuda_ceil((size_t)shape->filters, THREADS);
    cuda_launch *launch = stk_cuda_launch(p, "conv_tail", "bias_down", blocks, 1, THREADS, 0);
    add_place(launch, PLACE_BIAS);
    add_place(launch, PLACE_DOWN);
    stk_cuda_arg_int(launch, shape->filters);
}

static void add_sizes(cuda_launch *launch, const cuda_conv_shape *shape) {
    const int sizes[] = {shape->batch,      shape->height,    shape->width,   shape->channels,
                         shape->out_height, shape->out_width, shape->filters, shape->kernel,
                         shape->stride,     shape->pad};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stk_cuda_arg_int(launch, sizes[i]);
    }
}

static void add_weight(cuda_program *p, const cuda_conv_shape *shape) {
    size_t blocks = (size_t)shape->filters * (size_t)shape->kernel * (size_t)shape->kernel *
                    cuda_ceil((size_t)shape->channels, 32);
    cuda_launch *launch = stk_cuda_launch(p, "conv_plain", "conv_weight", (unsigned)blocks, 1,
                                          THREADS, THREADS * sizeof(float));
    add_place(launch, PLACE_X);
    add_place(launch, PLACE_W);
    add_place(launch, PLACE_Y);
    add_sizes(launch, shape);
}

static void add_whole(cuda_program *p, const cuda_conv_shape *shape) {
    bool forward = shape->kind == CUDA_CONV_FORWARD;
    if (shape->kind == CUDA_CONV_WEIGHT) {
        add_weight(p, shape);
        return;
    }
    size_t pixels = forward ? (size_t)shape->out_height * (size_t)shape->out_width
                            : (size_t)shape->height * (size_t)shape->width;
    size_t count =
        (size_t)shape->batch * pixels * (size_t)(forward ? shape->filters : shape->channels);
    cuda_launch *launch =
        stk_cuda_launch(p, "conv_plain", forward ? "conv_forward" : "conv_data",
                        cuda_blocks(p, count, THREADS, BLOCKS_PER_PROCESSOR), 1, THREADS, 0);
    add_place(launch, PLACE_X);
    add_place(launch, PLACE_W);
    add_place(launch, PLACE_Y);
    if (forward) {
        define_tail(launch, shape);
        add_place(launch, PLACE_BIAS);
        add_place(launch, PLACE_ADDED);
    } else {
        stk_cuda_define(launch, "ACCUMULATE", shape->accumulate);
    }
    add_sizes(launch, shape);
}

void stk_cuda_own_want(cuda_own *own, cuda_own_part part, const cuda_conv_shape *shape) {
    static void (*const add[CUDA_OWN_PARTS])(cuda_program *, const cuda_conv_shape *) = {
        [CUDA_OWN_TAIL] = add_tail, [CUDA_OWN_DOWN] = add_down, [CUDA_OWN_WHOLE] = add_whole};
    if (own->ops[part] < 0) {
        own->ops[part] = own->program.op_count;
        add[part](&own->program, shape);
    }
}

stk_status stk_cuda_own_run(const cuda_own *own, cuda_own_part part,
                            const cuda_convs_config *config, const cuda_conv_call *call,
                            stk_error *err) {
    const cuda_launch *launch = &own->program.ops[own->ops[part]].launch;
    cuda_function function = stk_cuda_kernels_find(config->kernels, launch, own->program.type);
    cuda_pointer places[PLACES] = {call->x,    call->w,     call->y,
                                   call->bias, call->added, cuda_dnn_bias(call)};
    cuda_arg args[CUDA_MOST_ARGS];
    void *values[CUDA_MOST_ARGS];
    if (function == NULL) {
        return STK_FAIL(err, STK_ERR_DEVICE, "the kernel %s was not compiled", launch->name);
    }
    for (int i = 0; i < launch->arg_count; i++) {
        args[i] = launch->args[i];
        switch (args[i].kind) {
        case CUDA_ARG_REF:
            values[i] = &places[args[i].ref.buffer];
            break;
        case CUDA_ARG_INT:
            values[i] = &args[i].number;
            break;
        case CUDA_ARG_LONG:
            values[i] = &args[i].big;
            break;
        case CUDA_ARG_FLOAT:
            values[i] = &args[i].real;
            break;
        }
    }
    int result =
        config->driver->launch(function, launch->grid[0], launch->grid[1], 1, launch->threads, 1, 1,
                               launch->shared_bytes, config->stream, values, NULL);
    return stk_cuda_check(config->driver, result, "launch a kernel beside a convolution", err);
}
