/*
 * test_emulated_faults.c - that the emulated GPU notices mistakes: those that CUDA answers with an
 * error, and those of kernels, which end the process with a sentence.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "cuda_play.h"

/* Only the emulated GPU can be made to fail. */
static bool open_emulated(play_device *play) {
    static const char *const ours[] = {"STK_EMU_MEMORY", "STK_EMU_FAIL"};
    for (size_t i = 0; i < 2; i++) {
        (void)unsetenv(ours[i]);
    }
    if (!play_open(play)) {
        return false;
    }
    if (!play->emulated) {
        play_close(play);
        check_skip_reason = "this is a real GPU";
        return false;
    }
    return true;
}

static int start(const play_device *play, cuda_function function, unsigned threads,
                 unsigned shared_bytes, const void *const *arguments) {
    return play->driver->launch(function, 2, 1, 1, threads, 1, 1, shared_bytes, play->stream,
                                (void **)(uintptr_t)arguments, NULL);
}

/* ---- errors ---- */

static void memory_limit(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    size_t room = 0;
    size_t total = 0;
    cuda_pointer a = 0;
    cuda_pointer b = 0;
    unsigned char bytes[3] = {0, 0, 0};
    (void)setenv("STK_EMU_MEMORY", "1M", 1);
    CHECK_INT(play.driver->device_memory(&total, 0), 0);
    CHECK_INT(total, 1 << 20);
    CHECK_INT(play.driver->memory_take(&a, 600 << 10), 0);
    CHECK_INT(a % 256, 0);
    CHECK_INT(play.driver->memory_info(&room, &total), 0);
    CHECK_INT(room, (1 << 20) - (600 << 10));
    CHECK_INT(play.driver->memory_take(&b, 600 << 10), CUDA_ERROR_OUT_OF_MEMORY_);
    CHECK_INT(play.driver->memory_take(&b, (size_t)1 << 60), CUDA_ERROR_OUT_OF_MEMORY_);
    CHECK_INT(play.driver->memory_take(&b, 424 << 10), 0);
    CHECK_INT(play.driver->copy_out(bytes, b, sizeof bytes, play.stream), 0);
    CHECK(bytes[0] == 0xFF && bytes[1] == 0xFF && bytes[2] == 0xFF);
    CHECK_INT(play.driver->memory_info(&room, &total), 0);
    CHECK_INT(room, 0);
    CHECK_INT(play.driver->memory_free(a), 0);
    CHECK_INT(play.driver->memory_free(b), 0);
    CHECK_INT(play.driver->memory_info(&room, &total), 0);
    CHECK_INT(room, 1 << 20);
    (void)unsetenv("STK_EMU_MEMORY");
    play_close(&play);
}

/* Another process was faster: once, or for good; the device is none the worse for it. */
static void memory_that_somebody_took(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    cuda_pointer x = 0;
    static const struct {
        const char *fails;
        int results[4];
    } cases[] = {{"memory:2", {0, CUDA_ERROR_OUT_OF_MEMORY_, 0, 0}},
                 {"memory:3+", {0, 0, CUDA_ERROR_OUT_OF_MEMORY_, CUDA_ERROR_OUT_OF_MEMORY_}}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        (void)setenv("STK_EMU_FAIL", cases[c].fails, 1);
        for (int i = 0; i < 4; i++) {
            int result = play.driver->memory_take(&x, 256);
            CHECK_INT(result, cases[c].results[i]);
            CHECK_INT(result == 0 ? play.driver->memory_free(x) : 0, 0);
        }
    }
    (void)unsetenv("STK_EMU_FAIL");
    play_close(&play);
}

static const char fill_text[] = "KERNEL fill_with(float *x, int count, float value) {\n"
                                "    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
                                "    if (i < count) {\n"
                                "        x[i] = value;\n"
                                "    }\n"
                                "}\n";

static void lost_device(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, fill_text, "fill", "fill_with", CUDA_TYPE_F32, "");
    cuda_pointer x = 0;
    int count = 64;
    float value = 2;
    const void *arguments[] = {&x, &count, &value};
    CHECK_INT(play.driver->memory_take(&x, 256), 0);
    (void)setenv("STK_EMU_FAIL", "launch:3", 1);
    if (f != NULL) {
        CHECK_INT(start(&play, f, 32, 0, arguments), 0);
        CHECK_INT(start(&play, f, 32, 0, arguments), 0);
        CHECK_INT(start(&play, f, 32, 0, arguments), 719);
        CHECK_INT(start(&play, f, 32, 0, arguments), 719);
        CHECK_INT(play.driver->stream_wait(play.stream), 719);
        CHECK_INT(play.driver->memory_free(x), 719);
    }
    (void)unsetenv("STK_EMU_FAIL");
    play_close(&play); /* complains of nothing that a lost device left */
    REQUIRE(open_emulated(&play));
    CHECK_INT(play.driver->memory_take(&x, 256), 0);
    CHECK_INT(play.driver->memory_free(x), 0);
    play_close(&play);
}

static void wrong_use(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, fill_text, "fill", "fill_with", CUDA_TYPE_F32, "");
    REQUIRE(f != NULL);
    cuda_pointer x = 0;
    int count = 64;
    float value = 2;
    int device = 0;
    char bytes[512] = "this is no machine code";
    cuda_module module = NULL;
    const void *arguments[] = {&x, &count, &value};
    CHECK_STR(play.function_kinds(f), "pif");
    CHECK_INT(play.driver->memory_take(&x, 256), 0);
    CHECK_INT(start(&play, f, 2000, 0, arguments), 1);
    CHECK_INT(start(&play, f, 0, 0, arguments), 1);
    CHECK_INT(start(&play, f, 32, 49 << 10, arguments), 1);
    CHECK_INT(play.driver->function_set(f, CUDA_FUNCTION_SHARED_BYTES, 300 << 10), 1);
    CHECK_INT(play.driver->function_set(f, CUDA_FUNCTION_SHARED_BYTES, 227 << 10), 0);
    CHECK_INT(start(&play, f, 32, 227 << 10, arguments), 0);
    CHECK_INT(start(&play, (cuda_function)(void *)&play, 32, 0, arguments), 400);
    CHECK_INT(play.driver->stream_wait((cuda_stream)(void *)&play), 400);
    CHECK_INT(play.driver->copy_out(bytes, x, 257, play.stream), 1);
    CHECK_INT(play.driver->fill(x + 200, 0, 57, play.stream), 1);
    CHECK_INT(play.driver->fill(x + 200, 0, 56, play.stream), 0);
    CHECK_INT(play.driver->module_load(&module, bytes), 200);
    CHECK_INT(play.driver->device_get(&device, 1), 101);
    CHECK_INT(play.driver->context_use(NULL), 0);
    CHECK_INT(start(&play, f, 32, 0, arguments), 201);
    CHECK_INT(play.driver->context_use(play.context), 0);
    CHECK_INT(play.driver->memory_free(x), 0);
    play_close(&play);
}

/* The log of a text that does not compile; freed with stk_mem_free(). */
static char *log_of(const play_device *play, const char *text) {
    cuda_nvrtc_program program = NULL;
    size_t bytes = 0;
    CHECK_INT(play->nvrtc->create(&program, text, "named.cu", 0, NULL, NULL), 0);
    CHECK_INT(play->nvrtc->compile(program, 0, NULL), 6);
    CHECK_INT(play->nvrtc->log_bytes(program, &bytes), 0);
    char *log = stk_mem_new(1, bytes + 1);
    CHECK_INT(play->nvrtc->log(program, log), 0);
    CHECK_INT(play->nvrtc->destroy(&program), 0);
    return log;
}

static void bad_texts(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    char *log = log_of(&play, "KERNEL f(int *x) {\n    x[0] = nobody(3);\n}\n");
    CHECK_CONTAINS(log, "named.cu:2");
    CHECK_CONTAINS(log, "nobody");
    stk_mem_free(log);
    log = log_of(&play, "KERNEL f(int *x) {\n    float *y = x;\n    y[0] = 1;\n}\n");
    CHECK_CONTAINS(log, "named.cu:2");
    stk_mem_free(log);
    play_close(&play);
}

/* ---- several threads compile ---- */

typedef struct compiling {
    const play_device *play;
    int number;
    char *code; /* owned */
} compiling;

static void *compile_one(void *context) {
    compiling *c = context;
    char text[200];
    snprintf(text, sizeof text, "KERNEL number_%d(int *x) {\n    x[threadIdx.x] = %d;\n}\n",
             c->number, c->number);
    const char *const options[] = {"--gpu-architecture=sm_90"};
    (void)play_compile_code(c->play, text, "number", options, 1, &c->code);
    return NULL;
}

static void threads_compile(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    pthread_t threads[4];
    compiling all[4];
    cuda_pointer x = 0;
    CHECK_INT(play.driver->memory_take(&x, 4 * 32), 0);
    for (int i = 0; i < 4; i++) {
        all[i] = (compiling){.play = &play, .number = i + 10};
        CHECK_INT(pthread_create(&threads[i], NULL, compile_one, &all[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        cuda_module module = NULL;
        cuda_function f = NULL;
        char name[32];
        int got[32] = {0};
        const void *arguments[] = {&x};
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        snprintf(name, sizeof name, "number_%d", i + 10);
        CHECK_INT(play.driver->module_load(&module, all[i].code), 0);
        CHECK_INT(play.driver->module_function(&f, module, "nobody"), 500);
        CHECK_INT(play.driver->module_function(&f, module, name), 0);
        CHECK_INT(start(&play, f, 32, 0, arguments), 0);
        CHECK_INT(play.driver->copy_out(got, x, sizeof got, play.stream), 0);
        CHECK_INT(got[31], i + 10);
        CHECK_INT(play.driver->module_free(module), 0);
        stk_mem_free(all[i].code);
    }
    CHECK_INT(play.driver->memory_free(x), 0);
    play_close(&play);
}

static void code_for_another_gpu_is_refused(void) {
    static const char *const others[] = {"--gpu-architecture=sm_89", "--gpu-architecture=sm_100"};
    play_device play;
    cuda_module module = NULL;
    char *code = NULL;
    if (!open_emulated(&play)) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(play_compile_code(&play, "KERNEL f(int *x) {\n    *x = 1;\n}\n", "f", &others[i], 1,
                                &code));
        CHECK_INT(play.driver->module_load(&module, code), 209);
        stk_mem_free(code);
    }
    play_close(&play);
}

/* ---- kernels that end the process ---- */

/* What a child prints on stderr; it runs `act` with the device and must not come back from it. */
static const char *last_words(void (*act)(play_device *play, const char *text), const char *text) {
    static char words[2048];
    int ends[2];
    words[0] = '\0';
    fflush(stdout);
    if (pipe(ends) != 0) {
        return words;
    }
    pid_t child = fork();
    if (child == 0) {
        play_device play;
        (void)dup2(ends[1], STDERR_FILENO);
        if (play_open(&play)) {
            act(&play, text);
        }
        _exit(0);
    }
    (void)close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while ((got = read(ends[0], words + used, sizeof words - used - 1)) > 0) {
        used += (size_t)got;
    }
    words[used] = '\0';
    (void)close(ends[0]);
    int status = 0;
    (void)waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    return words;
}

/* Kernel `f` with 100 floats, 64 threads and 32 floats of shared memory. */
static void run_text(play_device *play, const char *text) {
    cuda_function f = play_kernel_of(play, text, "text", "f", CUDA_TYPE_F32, "-DLENGTH=5");
    cuda_pointer x = 0;
    const void *arguments[] = {&x};
    if (f != NULL && play->driver->memory_take(&x, 400) == 0) {
        (void)start(play, f, 64, 128, arguments);
    }
}

static void out_of_bounds(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    play_close(&play);
    const char *said = last_words(run_text, "KERNEL f(float *x) {\n    x[200] = 1;\n}\n");
    CHECK_CONTAINS(said, "kernel f, block (0, 0), thread 0 touched memory that is not its own");
    CHECK_CONTAINS(said, "byte 800 of an allocation of 400 bytes");
    said = last_words(run_text, "KERNEL f(float *x) {\n    x[0] = x[-1000];\n}\n");
    CHECK_CONTAINS(said, "byte -4000 of an allocation of 400 bytes");
    said = last_words(run_text, "KERNEL f(float *x) {\n    x[100] = 1;\n}\n");
    CHECK_CONTAINS(said, "after kernel f: byte 400 of an allocation of 400 bytes was written");
    said = last_words(run_text, "KERNEL f(float *x) {\n    x[-1] = 1;\n}\n");
    CHECK_CONTAINS(said, "after kernel f: byte -4 of an allocation of 400 bytes was written");
    said = last_words(run_text, "KERNEL f(float *x) {\n    SHARED(float, s);\n"
                                "    s[threadIdx.x] = x[0];\n}\n");
    CHECK_CONTAINS(said, "thread 32 touched memory that is not its own");
    said =
        last_words(run_text, "KERNEL f(float *x) {\n    *(float4 *)(x + 1) = *(float4 *)x;\n}\n");
    CHECK_CONTAINS(said, "did something undefined");
    said = last_words(run_text, "KERNEL f(float *x) {\n    float y[4] = {0};\n"
                                "    y[threadIdx.x] = 1;\n    x[0] = y[0];\n}\n");
    CHECK_CONTAINS(said, "thread 4 did something undefined");
    said = last_words(run_text, "KERNEL f(float *x) {\n    float y[LENGTH];\n"
                                "    y[threadIdx.x] = 1;\n    x[0] = y[0];\n}\n");
    CHECK_CONTAINS(said, "thread 5 did something undefined");
}

static void threads_apart(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    play_close(&play);
    const char *said = last_words(run_text, "KERNEL f(float *x) {\n    if (threadIdx.x < 40) {\n"
                                            "        __syncthreads();\n    }\n    x[0] = 1;\n}\n");
    CHECK_CONTAINS(said, "its threads never come together: thread 0 waits for the block at line");
    CHECK_CONTAINS(said, "thread 40 has ended");
    said = last_words(run_text, "KERNEL f(float *x) {\n    if (threadIdx.x < 40) {\n"
                                "        __syncthreads();\n    } else {\n        __syncthreads();\n"
                                "    }\n    x[0] = 1;\n}\n");
    CHECK_CONTAINS(said, "never come together");
    said =
        last_words(run_text, "KERNEL f(float *x) {\n    if (threadIdx.x % 2 == 0) {\n"
                             "        x[0] = __shfl_xor_sync(0xFFFFFFFFu, x[0], 1);\n    }\n}\n");
    CHECK_CONTAINS(said, "thread 0 waits for its warp at line");
    CHECK_CONTAINS(said, "thread 1 has ended");
    said = last_words(run_text, "KERNEL f(float *x) {\n    __shfl_sync(0xFFFFu, 1, 0);\n}\n");
    CHECK_CONTAINS(said, "a mask of lanes that is not full");
}

static void leave_memory(play_device *play, const char *text) {
    cuda_pointer x = 0;
    (void)text;
    (void)play->driver->memory_take(&x, 400);
    play_close(play);
}

static void leave_stream(play_device *play, const char *text) {
    cuda_stream stream = NULL;
    (void)text;
    (void)play->driver->stream_new(&stream, 0);
    play_close(play);
}

static void free_twice(play_device *play, const char *text) {
    cuda_pointer x = 0;
    (void)text;
    (void)play->driver->memory_take(&x, 400);
    (void)play->driver->memory_free(x);
    (void)play->driver->memory_free(x);
}

static void leaks(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    play_close(&play);
    CHECK_CONTAINS(last_words(leave_memory, NULL), "400 bytes of device memory were never freed");
    CHECK_CONTAINS(last_words(leave_stream, NULL), "a handle of kind stream was never given back");
    CHECK_CONTAINS(last_words(free_twice, NULL), "is freed, which is not there");
}

/* Without a barrier the result depends on who comes first, which the opposite order shows. */
static void opposite_order(void) {
    play_device play;
    if (!open_emulated(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play,
                                     "KERNEL last_one(int *x) {\n"
                                     "    x[0] = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
                                     "}\n",
                                     "race", "last_one", CUDA_TYPE_F32, "");
    int got[2] = {-1, -1};
    cuda_pointer x = 0;
    const void *arguments[] = {&x};
    CHECK_INT(play.driver->memory_take(&x, 4), 0);
    for (int i = 0; i < 2 && f != NULL; i++) {
        play.set_order(i);
        CHECK_INT(start(&play, f, 64, 0, arguments), 0);
        CHECK_INT(play.driver->copy_out(&got[i], x, 4, play.stream), 0);
    }
    play.set_order(0);
    CHECK_INT(got[0], 127);
    CHECK_INT(got[1], 0);
    CHECK_INT(play.driver->memory_free(x), 0);
    play_close(&play);
}

static const check_test tests[] = {TEST(memory_limit),
                                   TEST(memory_that_somebody_took),
                                   TEST(lost_device),
                                   TEST(wrong_use),
                                   TEST(bad_texts),
                                   TEST(threads_compile),
                                   TEST(code_for_another_gpu_is_refused),
                                   TEST(out_of_bounds),
                                   TEST(threads_apart),
                                   TEST(leaks),
                                   TEST(opposite_order)};
CHECK_MAIN(tests)
