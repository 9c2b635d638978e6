/*
 * cuda_play.h - for tests of CUDA kernels: runs a cuda_program on a GPU, or on an emulated one.
 *
 *     play_device play;
 *     if (!play_open(&play)) {
 *         return;                        // the test is skipped, or has failed, with the reason
 *     }
 *     cuda_program p;
 *     stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, play.multiprocessors);
 *     cuda_ref x = stk_cuda_buffer(&p, count * cuda_type_bytes(p.type));
 *     cuda_ref y = stk_cuda_buffer(&p, count * cuda_type_bytes(p.type));
 *     stk_cuda_act(&p, STK_OP_RELU, count, x, y);
 *     play_data data[] = {play_in(x, PLAY_T, count, given), play_out(y, PLAY_T, count, got)};
 *     play_run(&play, &p, data, 2);      // mistakes are failures of the test
 *     stk_cuda_program_free(&p);
 *     play_close(&play);
 *     play_check_norm("relu", got, wanted, count, 1e-3);
 *
 * Which GPU: the real one when there is one, else the emulated one of build/tests/emulated;
 * STK_TEST_GPU=real or =emulated chooses. `multiprocessors` of the program may be any number. With
 * STK_TEST_NVRTC=1 (or the path of a library) what runs on the emulated GPU is compiled by the real
 * NVRTC of /usr/local/cuda too, to see that it can be.
 *
 * Every buffer of the program is an allocation of its own, filled with NaNs, so that the emulated
 * GPU ends the process with a sentence when a kernel leaves it. Fixed memory is as long as the data
 * given for it. Counters are zeros, and must be zeros again. On the emulated GPU the program runs a
 * second time with blocks and threads in the opposite order: the results must be the same bits, or
 * else the kernel has a race. The kinds of the arguments are compared with the kernel's parameters.
 * Convolutions in a program are not run: that is a failure.
 *
 * On the emulated GPU most of the time goes into compiling kernels, one for each type and shape. So
 * an ordinary run plays each case in one type; STK_TEST_FULL=1, or a real GPU, plays all.
 */
#ifndef STK_TESTS_UNIT_CUDA_PLAY_H
#define STK_TESTS_UNIT_CUDA_PLAY_H

#include <dlfcn.h>

#include "backend/cuda/driver/api.h"
#include "backend/cuda/program/kernels.h"
#include "backend/cuda/program/program.h"
#include "backend/cuda/program/kernel_texts.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "check.h"

typedef struct play_device {
    cuda_libraries libraries;
    const cuda_driver *driver;
    const cuda_nvrtc *nvrtc;
    cuda_context context;
    cuda_stream stream;
    int major, minor;
    int multiprocessors;
    bool emulated;
    /* Of the emulated GPU only. */
    void (*set_order)(int reversed);
    const char *(*function_kinds)(cuda_function function);
    cuda_kernels *kernels;     /* of programs; owned */
    cuda_kernels *proofs;      /* of programs, by the real NVRTC; owned; NULL: not asked for */
    struct play_kernel *given; /* whose text was given; owned */
} play_device;

/* How numbers lie on the device; on the host PLAY_T is float32 as PLAY_FLOAT. */
typedef enum play_kind { PLAY_BYTES, PLAY_FLOAT, PLAY_T } play_kind;

/* Memory of a program: what is put there before, and where it is wanted afterwards. */
typedef struct play_data {
    cuda_ref ref;
    play_kind kind;
    size_t count;   /* of bytes or numbers */
    const void *in; /* NULL: NaNs */
    void *out;      /* NULL: not wanted */
} play_data;

static inline play_data play_in(cuda_ref ref, play_kind kind, size_t count, const void *in) {
    return (play_data){ref, kind, count, in, NULL};
}

static inline play_data play_out(cuda_ref ref, play_kind kind, size_t count, void *out) {
    return (play_data){ref, kind, count, NULL, out};
}

/* Read and written: `both` is what is put there and what comes back. */
static inline play_data play_both(cuda_ref ref, play_kind kind, size_t count, void *both) {
    return (play_data){ref, kind, count, both, both};
}

/* ---- numbers on the host ---- */

static inline uint16_t play_half_down(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000;
    double size = fabs((double)x);
    if (isnan(x)) {
        return 0x7FFF;
    }
    if (size >= 65520) {
        return (uint16_t)(sign | 0x7C00);
    }
    int exponent = -14; /* the step between neighbours is 2^(exponent - 10) */
    if (size >= 0x1.0p-14) {
        (void)frexp(size, &exponent);
        exponent--;
    }
    double steps = rint(ldexp(size, 10 - exponent)); /* ties to even */
    return (uint16_t)(sign | (uint32_t)(steps + (double)((exponent + 14) * 1024)));
}

static inline float play_half_up(uint16_t x) {
    int exponent = x >> 10 & 31;
    double mantissa = x & 0x3FF;
    double size = exponent == 31  ? (mantissa > 0 ? (double)NAN : (double)INFINITY)
                  : exponent == 0 ? ldexp(mantissa, -24)
                                  : ldexp(mantissa + 1024, exponent - 25);
    return (float)((x & 0x8000) != 0 ? -size : size);
}

static inline uint16_t play_bfloat_down(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7FFF : (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float play_bfloat_up(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* float32 to the type of activations and back. */
static inline void play_pack(cuda_type type, const float *from, void *to, size_t count) {
    uint16_t *halves = to;
    for (size_t i = 0; i < count && type != CUDA_TYPE_F32; i++) {
        halves[i] = type == CUDA_TYPE_F16 ? play_half_down(from[i]) : play_bfloat_down(from[i]);
    }
    if (type == CUDA_TYPE_F32) {
        memcpy(to, from, count * sizeof *from);
    }
}

static inline void play_unpack(cuda_type type, const void *from, float *to, size_t count) {
    const uint16_t *halves = from;
    for (size_t i = 0; i < count && type != CUDA_TYPE_F32; i++) {
        to[i] = type == CUDA_TYPE_F16 ? play_half_up(halves[i]) : play_bfloat_up(halves[i]);
    }
    if (type == CUDA_TYPE_F32) {
        memcpy(to, from, count * sizeof *to);
    }
}

/* Rounds to what the type can hold, so that a reference sees the same numbers as a kernel. */
static inline void play_round(cuda_type type, float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        values[i] = type == CUDA_TYPE_F16    ? play_half_up(play_half_down(values[i]))
                    : type == CUDA_TYPE_BF16 ? play_bfloat_up(play_bfloat_down(values[i]))
                                             : values[i];
    }
}

/* In [low, high), rounded to the type; `seed` chooses. */
static inline void play_random(cuda_type type, float *values, size_t count, double low, double high,
                               uint64_t seed) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)stk_rng_range(&rng, low, high);
    }
    play_round(type, values, count);
}

/* New memory with such numbers; freed with stk_mem_free(). */
static inline float *play_random_new(cuda_type type, size_t count, double low, double high,
                                     uint64_t seed) {
    float *values = stk_mem_new(count, sizeof *values);
    if (values != NULL) {
        play_random(type, values, count, low, high, seed);
    }
    return values;
}

/* |got - wanted| / |wanted| as vectors is at most `most`. */
static inline void play_check_norm(const char *what, const float *got, const float *wanted,
                                   size_t count, double most) {
    double apart = 0;
    double size = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)got[i] - (double)wanted[i];
        apart += d * d;
        size += (double)wanted[i] * (double)wanted[i];
    }
    double relative = sqrt(apart) / (size > 0 ? sqrt(size) : 1);
    if (!(relative <= most)) {
        CHECK_FAIL("%s: off by %.3g of its size, at most %.3g allowed", what, relative, most);
    }
}

/* Every element is off by at most absolute + relative * |wanted|; tells the first that is not. */
static inline void play_check_each(const char *what, const float *got, const float *wanted,
                                   size_t count, double absolute, double relative) {
    size_t bad = 0;
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        double room = absolute + relative * fabs((double)wanted[i]);
        bool same = got[i] == wanted[i] || (isnan(got[i]) && isnan(wanted[i]));
        if (!same && !(fabs((double)got[i] - (double)wanted[i]) <= room)) {
            first = bad == 0 ? i : first;
            bad++;
        }
    }
    if (bad > 0) {
        CHECK_FAIL("%s: %zu of %zu are wrong; element %zu is %.9g, expected %.9g", what, bad, count,
                   first, (double)got[first], (double)wanted[first]);
    }
}

/* ---- the device ---- */

/* A failure with what the driver calls it. */
static inline bool play_good(const play_device *play, int result, const char *what) {
    const char *name = NULL;
    if (result != 0) {
        (void)play->driver->error_name(result, &name);
        CHECK_FAIL("%s: error %d, %s", what, result, name != NULL ? name : "unknown");
    }
    return result == 0;
}

#define PLAY_GOOD(play, call) play_good(play, (play)->driver->call, #call)

/* Opens the libraries and looks whether there is a GPU; what is missing is told in err. */
static inline bool play_open_libraries(play_device *play, stk_error *err) {
    char name[64] = "";
    int count = 0;
    if (stk_cuda_libraries_open(&play->libraries, err) != STK_OK) {
        return false;
    }
    play->driver = &play->libraries.driver;
    play->nvrtc = &play->libraries.nvrtc;
    if (play->driver->init(0) == 0 && play->driver->device_count(&count) == 0 && count > 0 &&
        play->driver->device_name(name, sizeof name, 0) == 0) {
        play->emulated = strcmp(name, "Emulated GPU") == 0;
        return true;
    }
    snprintf(err->message, sizeof err->message, "the driver knows no GPU");
    stk_cuda_libraries_close(&play->libraries);
    return false;
}

/* The folder of the emulated libraries, beside the program that runs. */
static inline const char *play_emulated_folder(void) {
    static char folder[600];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 32);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        snprintf(slash, 16, "/emulated");
    }
    return folder;
}

static inline bool play_find(play_device *play) {
    const char *want = getenv("STK_TEST_GPU");
    static char reason[700];
    stk_error err = {.message = "STK_TEST_GPU is neither real nor emulated"};
    if ((want == NULL || strcmp(want, "real") == 0) && play_open_libraries(play, &err)) {
        return true;
    }
    if (want == NULL || strcmp(want, "emulated") == 0) {
#ifdef CHECK_SANITIZED
        snprintf(err.message, sizeof err.message,
                 "sanitizers do not understand the fibers of the emulated one");
#else
        (void)setenv("STK_EMU_CHECK", "1", 0);
        (void)setenv("STOKER_CUDA_LIBS", play_emulated_folder(), 1);
        err = (stk_error){0};
        if (play_open_libraries(play, &err)) {
            return true;
        }
#endif
    }
    snprintf(reason, sizeof reason, "there is no GPU: %.600s", err.message);
    check_skip_reason = reason;
    return false;
}

/* Whether case `number` is played in this type: in an ordinary run types take turns. */
static inline bool play_takes(size_t number, cuda_type type) {
    return check_is_full() || number % 3 == (size_t)type;
}

/* Closes what is open; the functions of the program are gone with it. */
static inline void play_close(play_device *play);

/* A driver that takes whatever NVRTC made. */
static inline int play_no_load(cuda_module *module, const void *image) {
    (void)image;
    *module = NULL;
    return 0;
}

static inline int play_no_function(cuda_function *function, cuda_module module, const char *name) {
    (void)module;
    (void)name;
    static int any;
    *function = (cuda_function)(void *)&any;
    return 0;
}

static inline int play_no_set(cuda_function function, int attribute, int value) {
    (void)function;
    (void)attribute;
    (void)value;
    return 0;
}

/* Opens the real NVRTC for the sake of its complaints; false where there is none. */
static inline bool play_open_proof(play_device *play, const cuda_driver **driver,
                                   const cuda_nvrtc **nvrtc) {
    static const cuda_driver nothing = {.module_load = play_no_load,
                                        .module_function = play_no_function,
                                        .function_set = play_no_set};
    static cuda_nvrtc real;
    const char *asked = getenv("STK_TEST_NVRTC");
    void *library = NULL;
    void *found;
    if (play->emulated && asked != NULL && strcmp(asked, "0") != 0) {
        /* Bound to its own functions, since those of the emulated one have the same names. */
        library = dlopen(*asked == '/' ? asked : "/usr/local/cuda/lib64/libnvrtc.so.13",
                         RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_DEEPBIND);
    }
    if (library == NULL) {
        return false;
    }
#define X(name, symbol, parameters)           \
    found = dlsym(library, symbol);           \
    memcpy(&real.name, &found, sizeof found); \
    if (found == NULL) {                      \
        return false;                         \
    }
    CUDA_NVRTC_FUNCTIONS(X)
#undef X
    *driver = &nothing;
    *nvrtc = &real;
    return true;
}

static inline bool play_open_kernels(play_device *play) {
    stk_error err = {0};
    cuda_kernels_config config = {.driver = play->driver,
                                  .nvrtc = play->nvrtc,
                                  .major = play->major,
                                  .minor = play->minor,
                                  .threads = 2};
    bool good = stk_cuda_kernels_open(&play->kernels, &config, &err) == STK_OK;
    if (good && play_open_proof(play, &config.driver, &config.nvrtc)) {
        good = stk_cuda_kernels_open(&play->proofs, &config, &err) == STK_OK;
    }
    if (!good) {
        CHECK_FAIL("%s", err.message);
    }
    return good;
}

/* false: the test was skipped or has failed. */
static inline bool play_open(play_device *play) {
    memset(play, 0, sizeof *play);
    if (!play_find(play)) {
        return false;
    }
    if (play->emulated) {
        void *library = play->libraries.handles[CUDA_LIBRARY_DRIVER];
        void *found = dlsym(library, "emu_set_order");
        memcpy(&play->set_order, &found, sizeof found);
        found = dlsym(library, "emu_function_kinds");
        memcpy(&play->function_kinds, &found, sizeof found);
    }
    bool good = PLAY_GOOD(play, device_attribute(&play->major, CUDA_ATTRIBUTE_MAJOR, 0)) &&
                PLAY_GOOD(play, device_attribute(&play->minor, CUDA_ATTRIBUTE_MINOR, 0)) &&
                PLAY_GOOD(play, device_attribute(&play->multiprocessors,
                                                 CUDA_ATTRIBUTE_MULTIPROCESSORS, 0)) &&
                PLAY_GOOD(play, context_retain(&play->context, 0)) &&
                PLAY_GOOD(play, context_use(play->context)) &&
                PLAY_GOOD(play, stream_new(&play->stream, CUDA_STREAM_NON_BLOCKING)) &&
                play_open_kernels(play);
    if (!good) {
        play_close(play);
    }
    return good;
}

/* ---- kernels ---- */

typedef struct play_kernel {
    struct play_kernel *next;
    char *key; /* text and options */
    cuda_module module;
    cuda_function function;
} play_kernel;

static inline void play_close(play_device *play) {
    while (play->given != NULL) {
        play_kernel *kernel = play->given;
        play->given = kernel->next;
        (void)play->driver->module_free(kernel->module);
        stk_mem_free(kernel->key);
        stk_mem_free(kernel);
    }
    stk_cuda_kernels_close(play->kernels);
    stk_cuda_kernels_close(play->proofs);
    if (play->stream != NULL) {
        (void)play->driver->stream_free(play->stream);
    }
    if (play->context != NULL) {
        (void)play->driver->context_release(0);
    }
    stk_cuda_libraries_close(&play->libraries);
    memset(play, 0, sizeof *play);
}

static inline const char *play_text(const char *name) {
    for (const cuda_text *text = stk_cuda_texts; text->name != NULL; text++) {
        if (strcmp(text->name, name) == 0) {
            return text->text;
        }
    }
    CHECK_FAIL("there is no text %s", name);
    return "";
}

/* Machine code in *code, freed with stk_mem_free(); otherwise the log is printed. */
static inline bool play_compile_code(const play_device *play, const char *text, const char *name,
                                     const char *const *options, int count, char **code) {
    cuda_nvrtc_program program = NULL;
    size_t bytes = 0;
    *code = NULL;
    if (play->nvrtc->create(&program, text, name, 0, NULL, NULL) != 0) {
        CHECK_FAIL("%s: NVRTC does not take the text", name);
        return false;
    }
    bool good = play->nvrtc->compile(program, count, options) == 0 &&
                play->nvrtc->code_bytes(program, &bytes) == 0;
    *code = stk_mem_new(1, bytes + 1);
    if (good) {
        good = play->nvrtc->code(program, *code) == 0;
    } else if (play->nvrtc->log_bytes(program, &bytes) == 0) {
        char *log = stk_mem_new(1, bytes + 1);
        (void)play->nvrtc->log(program, log);
        CHECK_FAIL("%s does not compile:\n%s", name, log);
        stk_mem_free(log);
    }
    (void)play->nvrtc->destroy(&program);
    return good;
}

/*
 * The function `name` of kernel text that is given (kernel_constants.h and prelude.cuh are put in
 * front), compiled with the defines "-DA=1 -DB=2" and those that every kernel gets; NULL: failed.
 */
static inline cuda_function play_kernel_of(play_device *play, const char *text, const char *file,
                                           const char *name, cuda_type type, const char *defines) {
    char words[512];
    const char *options[40];
    int count = 0;
    snprintf(words, sizeof words, "--gpu-architecture=sm_%d%d -DTYPE=%d -DK_%s %s", play->major,
             play->minor, (int)type, name, defines);
    const char *constants = play_text("kernel_constants.h");
    const char *prelude = play_text("prelude.cuh");
    size_t room = strlen(words) + strlen(constants) + strlen(prelude) + strlen(text) + 8;
    char *key = stk_mem_new(1, room);
    snprintf(key, room, "%s\n%s\n%s\n%s", words, constants, prelude, text);
    for (const play_kernel *kernel = play->given; kernel != NULL; kernel = kernel->next) {
        if (strcmp(kernel->key, key) == 0) {
            stk_mem_free(key);
            return kernel->function;
        }
    }
    const char *whole = key + strlen(words) + 1;
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word != NULL && count < 40;
         word = strtok_r(NULL, " ", &rest)) {
        options[count++] = word;
    }
    char *code = NULL;
    cuda_module module = NULL;
    cuda_function function = NULL;
    if (play_compile_code(play, whole, file, options, count, &code) &&
        PLAY_GOOD(play, module_load(&module, code)) &&
        PLAY_GOOD(play, module_function(&function, module, name))) {
        play_kernel *kernel = stk_mem_new(1, sizeof *kernel);
        *kernel = (play_kernel){play->given, key, module, function};
        play->given = kernel;
        key = NULL;
    } else if (module != NULL) {
        (void)play->driver->module_free(module);
    }
    stk_mem_free(code);
    stk_mem_free(key);
    return function;
}

/* ---- running a program ---- */

typedef struct play_memory {
    cuda_pointer *buffers; /* per buffer of the program; 0: not named by anything */
    size_t *bytes;
} play_memory;

static inline size_t play_bytes(const cuda_program *p, const play_data *d) {
    return d->count * (d->kind == PLAY_BYTES   ? 1
                       : d->kind == PLAY_FLOAT ? sizeof(float)
                                               : cuda_type_bytes(p->type));
}

/* How long each buffer is. */
static inline bool play_measure(const cuda_program *p, const play_data *data, int count,
                                play_memory *memory) {
    for (int i = CUDA_FIXED_COUNT; i < p->buffer_count; i++) {
        memory->bytes[i] = p->buffers[i].bytes;
    }
    memory->bytes[CUDA_FIXED_COUNTERS] = (size_t)p->counters * 4;
    for (int i = 0; i < count; i++) {
        size_t end = data[i].ref.offset + play_bytes(p, &data[i]);
        int buffer = data[i].ref.buffer;
        if (buffer < 0 || buffer >= p->buffer_count) {
            CHECK_FAIL("data %d lies in no buffer of the program", i);
            return false;
        }
        if (buffer >= CUDA_FIXED_COUNT && end > memory->bytes[buffer]) {
            CHECK_FAIL("data %d is longer than its buffer: %zu of %zu bytes", i, end,
                       memory->bytes[buffer]);
            return false;
        }
        memory->bytes[buffer] = end > memory->bytes[buffer] ? end : memory->bytes[buffer];
    }
    return true;
}

static inline bool play_fill(play_device *play, const cuda_program *p, const play_data *data,
                             int count, play_memory *memory) {
    bool good = true;
    for (int i = 0; i < p->buffer_count && good; i++) {
        if (memory->bytes[i] > 0) {
            good = (memory->buffers[i] != 0 ||
                    PLAY_GOOD(play, memory_take(&memory->buffers[i], memory->bytes[i]))) &&
                   PLAY_GOOD(play, fill(memory->buffers[i], i == CUDA_FIXED_COUNTERS ? 0 : 0xFF,
                                        memory->bytes[i], play->stream));
        }
    }
    for (int i = 0; i < count && good; i++) {
        const play_data *d = &data[i];
        size_t bytes = play_bytes(p, d);
        void *packed = d->in != NULL && bytes > 0 ? stk_mem_new(1, bytes) : NULL;
        if (packed != NULL) {
            if (d->kind == PLAY_T) {
                play_pack(p->type, d->in, packed, d->count);
            } else {
                memcpy(packed, d->in, bytes);
            }
            good = PLAY_GOOD(play, copy_in(memory->buffers[d->ref.buffer] + d->ref.offset, packed,
                                           bytes, play->stream)) &&
                   PLAY_GOOD(play, stream_wait(play->stream));
            stk_mem_free(packed);
        }
    }
    return good;
}

/* Compares arguments with what the kernel takes, where that is known. */
static inline bool play_fits(const play_device *play, const cuda_launch *launch,
                             cuda_function function) {
    static const char kinds[] = {'p', 'i', 'l', 'f'};
    const char *takes = play->emulated ? play->function_kinds(function) : NULL;
    if (takes == NULL) {
        return true;
    }
    bool good = strlen(takes) == (size_t)launch->arg_count;
    for (int i = 0; good && i < launch->arg_count; i++) {
        good = takes[i] == kinds[launch->args[i].kind];
    }
    if (!good) {
        CHECK_FAIL("kernel %s takes \"%s\" (pointer, int, long, float), which is not what the %d "
                   "arguments are",
                   launch->name, takes, launch->arg_count);
    }
    return good;
}

static inline bool play_launch(play_device *play, const cuda_program *p, const cuda_launch *launch,
                               const play_memory *memory) {
    cuda_pointer pointers[CUDA_MOST_ARGS];
    const void *places[CUDA_MOST_ARGS];
    cuda_function function = stk_cuda_kernels_find(play->kernels, launch, p->type);
    if (function == NULL || !play_fits(play, launch, function)) {
        return false;
    }
    for (int i = 0; i < launch->arg_count; i++) {
        const cuda_arg *a = &launch->args[i];
        pointers[i] = 0;
        if (a->kind == CUDA_ARG_REF && cuda_is_something(a->ref)) {
            pointers[i] = memory->buffers[a->ref.buffer] + a->ref.offset;
            if (memory->buffers[a->ref.buffer] == 0) {
                CHECK_FAIL("kernel %s gets fixed memory %d, which no data is given for",
                           launch->name, a->ref.buffer);
                return false;
            }
        }
        places[i] = a->kind == CUDA_ARG_REF    ? (const void *)&pointers[i]
                    : a->kind == CUDA_ARG_INT  ? (const void *)&a->number
                    : a->kind == CUDA_ARG_LONG ? (const void *)&a->big
                                               : (const void *)&a->real;
    }
    return play_good(play,
                     play->driver->launch(function, launch->grid[0], launch->grid[1], 1,
                                          launch->threads, 1, 1, launch->shared_bytes, play->stream,
                                          (void **)(uintptr_t)places, NULL),
                     launch->name);
}

/* What came out, as bytes of the device one behind another; freed with stk_mem_free(). */
static inline unsigned char *play_fetch(play_device *play, const cuda_program *p,
                                        const play_data *data, int count, const play_memory *memory,
                                        size_t *total) {
    *total = 0;
    for (int i = 0; i < count; i++) {
        *total += data[i].out != NULL ? play_bytes(p, &data[i]) : 0;
    }
    unsigned char *all = stk_mem_new(1, *total + 1);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes = data[i].out != NULL ? play_bytes(p, &data[i]) : 0;
        if (bytes > 0) {
            (void)PLAY_GOOD(play, copy_out(all + at,
                                           memory->buffers[data[i].ref.buffer] + data[i].ref.offset,
                                           bytes, play->stream));
        }
        at += bytes;
    }
    (void)PLAY_GOOD(play, stream_wait(play->stream));
    return all;
}

static inline void play_hand_out(const cuda_program *p, const play_data *data, int count,
                                 const unsigned char *all) {
    for (int i = 0; i < count; i++) {
        if (data[i].out != NULL) {
            if (data[i].kind == PLAY_T) {
                play_unpack(p->type, all, data[i].out, data[i].count);
            } else {
                memcpy(data[i].out, all, play_bytes(p, &data[i]));
            }
            all += play_bytes(p, &data[i]);
        }
    }
}

static inline bool play_once(play_device *play, const cuda_program *p, const play_data *data,
                             int count, play_memory *memory) {
    bool good = play_fill(play, p, data, count, memory);
    for (int i = 0; i < p->op_count && good; i++) {
        if (p->ops[i].kind != CUDA_OP_LAUNCH) {
            CHECK_FAIL("operation %d is a convolution, which is not run here", i);
            return false;
        }
        good = play_launch(play, p, &p->ops[i].launch, memory);
    }
    uint32_t counters[256];
    size_t bytes =
        (size_t)p->counters * 4 < sizeof counters ? (size_t)p->counters * 4 : sizeof counters;
    if (good && bytes > 0) {
        good = PLAY_GOOD(play, copy_out(counters, memory->buffers[CUDA_FIXED_COUNTERS], bytes,
                                        play->stream)) &&
               PLAY_GOOD(play, stream_wait(play->stream));
        for (size_t i = 0; i < bytes / 4 && good; i++) {
            if (counters[i] != 0) {
                CHECK_FAIL("counter %zu was left at %u", i, counters[i]);
                good = false;
            }
        }
    }
    return good && PLAY_GOOD(play, stream_wait(play->stream));
}

/* Runs it from beginning to end; false: it failed, and the test with it. */
static inline bool play_run(play_device *play, cuda_program *program, const play_data *data,
                            int count) {
    stk_error err = {0};
    const cuda_program *programs[] = {program};
    if (stk_cuda_program_lay_out(program, &err) != STK_OK ||
        stk_cuda_kernels_make(play->kernels, programs, 1, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return false;
    }
    if (play->proofs != NULL && stk_cuda_kernels_make(play->proofs, programs, 1, &err) != STK_OK) {
        CHECK_FAIL("with the real NVRTC: %s", err.message);
        return false;
    }
    play_memory memory = {
        .buffers = stk_mem_new((size_t)program->buffer_count, sizeof *memory.buffers),
        .bytes = stk_mem_new((size_t)program->buffer_count, sizeof *memory.bytes)};
    size_t total = 0;
    bool good = play_measure(program, data, count, &memory) &&
                play_once(play, program, data, count, &memory);
    unsigned char *all = NULL;
    if (good) {
        all = play_fetch(play, program, data, count, &memory, &total);
    }
    if (good && play->emulated) {
        play->set_order(1);
        good = play_once(play, program, data, count, &memory);
        play->set_order(0);
        unsigned char *again = play_fetch(play, program, data, count, &memory, &total);
        if (good && memcmp(all, again, total) != 0) {
            CHECK_FAIL("the result depends on the order of blocks and threads");
            good = false;
        }
        stk_mem_free(again);
    }
    if (all != NULL) {
        play_hand_out(program, data, count, all);
    }
    for (int i = 0; i < program->buffer_count; i++) {
        if (memory.buffers[i] != 0) {
            (void)PLAY_GOOD(play, memory_free(memory.buffers[i]));
        }
    }
    stk_mem_free(all);
    stk_mem_free(memory.buffers);
    stk_mem_free(memory.bytes);
    return good;
}

/* By how much of its size rounding to a 2-byte type changes a number at most. */
static inline double play_epsilon(cuda_type type) {
    return type == CUDA_TYPE_F16 ? 0x1.0p-11 : 0x1.0p-8;
}

/*
 * Plays each of some cases in one 2-byte type, the types in turn, or in both where all is wanted:
 * kernels that multiply matrices have no other types.
 */
static inline void play_each_case(const void *cases, size_t count, size_t bytes,
                                  void (*one)(play_device *, cuda_type, const void *)) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (size_t i = 0; i < 2 * count; i++) {
        cuda_type type = i % 2 == 0 ? CUDA_TYPE_F16 : CUDA_TYPE_BF16;
        if (check_is_full() || i / 2 % 2 == i % 2) {
            one(&play, type, (const char *)cases + i / 2 * bytes);
        }
    }
    play_close(&play);
}

#define EACH_CASE(cases, one) \
    play_each_case(cases, sizeof(cases) / sizeof *(cases), sizeof *(cases), one)

#endif
