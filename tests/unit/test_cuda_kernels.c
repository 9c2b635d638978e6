/*
 * test_cuda_kernels.c - kernels from text to functions: what is compiled when, and what is kept.
 *
 * Most of it is checked against a compiler and a driver that only take notes; the real NVRTC, which
 * needs no GPU, compiles where it is installed.
 */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>

#include "backend/cuda/program/kernels.h"
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/driver/store.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cuda_play.h"
#include "doors.h"

/* ---- a driver and a compiler that take notes ---- */

static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
static int compiles; /* calls of the compiler */
static char last_options[1024];
static int modules;         /* that are loaded */
static int shared_calls;    /* of cuFuncSetAttribute */
static int shared_bytes;    /* of the last */
static char last_image[64]; /* the start of the last module */

struct cuda_nvrtc_text {
    char *source;
    bool bad;
};

static int note_version(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}

static int note_create(cuda_nvrtc_program *program, const char *source, const char *name,
                       int header_count, const char *const *headers,
                       const char *const *header_names) {
    (void)name;
    (void)headers;
    (void)header_names;
    char *copy = stk_mem_strdup(source);
    *program = header_count == 0 ? stk_mem_new(1, sizeof **program) : NULL;
    if (*program == NULL || copy == NULL) {
        stk_mem_free(*program);
        stk_mem_free(copy);
        return 1;
    }
    (*program)->source = copy;
    return 0;
}

/* A text that says "mistake" does not compile when BAD is defined. */
static int note_compile(cuda_nvrtc_program program, int count, const char *const *options) {
    char all[sizeof last_options] = "";
    for (int i = 0; i < count; i++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s|", options[i]);
    }
    pthread_mutex_lock(&noting);
    compiles++;
    memcpy(last_options, all, sizeof all);
    pthread_mutex_unlock(&noting);
    program->bad = strstr(program->source, "mistake") != NULL && strstr(all, "-DBAD=1|") != NULL;
    return program->bad;
}

static int note_code_bytes(cuda_nvrtc_program program, size_t *bytes) {
    (void)program;
    *bytes = 64;
    return 0;
}

static int note_code(cuda_nvrtc_program program, char *code) {
    (void)program;
    memset(code, 0, 64);
    strcpy(code, "machine code");
    return 0;
}

static const char complaint[] = "few.cu(3): error: a mistake\n\n   and    more of it\n";

static int note_log_bytes(cuda_nvrtc_program program, size_t *bytes) {
    *bytes = program->bad ? sizeof complaint : 1;
    return 0;
}

static int note_log(cuda_nvrtc_program program, char *log) {
    strcpy(log, program->bad ? complaint : "");
    return 0;
}

static int note_destroy(cuda_nvrtc_program *program) {
    stk_mem_free((*program)->source);
    stk_mem_free(*program);
    *program = NULL;
    return 0;
}

/* Not in order: nobody promises that. */
static const int note_known[] = {75, 100, 90, 103, 86};

static int note_arch_count(int *count) {
    *count = (int)(sizeof note_known / sizeof *note_known);
    return 0;
}

static int note_archs(int *archs) {
    memcpy(archs, note_known, sizeof note_known);
    return 0;
}

static int note_ptx_bytes(cuda_nvrtc_program program, size_t *bytes) {
    (void)program;
    *bytes = 64;
    return 0;
}

static int note_ptx(cuda_nvrtc_program program, char *text) {
    (void)program;
    memset(text, 0, 64);
    strcpy(text, "a text for the driver");
    return 0;
}

static const cuda_nvrtc note_nvrtc = {.version = note_version,
                                      .arch_count = note_arch_count,
                                      .archs = note_archs,
                                      .create = note_create,
                                      .compile = note_compile,
                                      .code_bytes = note_code_bytes,
                                      .code = note_code,
                                      .ptx_bytes = note_ptx_bytes,
                                      .ptx = note_ptx,
                                      .log_bytes = note_log_bytes,
                                      .log = note_log,
                                      .destroy = note_destroy};

static int refusals; /* of the next modules, so many are not taken */

static int note_load(cuda_module *module, const void *image) {
    *module = NULL;
    if (refusals > 0) {
        refusals--;
        return 1;
    }
    memcpy(last_image, image, sizeof last_image);
    *module = (cuda_module)stk_mem_new(1, 1);
    modules += *module != NULL;
    return *module == NULL ? CUDA_ERROR_OUT_OF_MEMORY_ : 0;
}

static int note_unload(cuda_module module) {
    stk_mem_free(module);
    modules--;
    return 0;
}

static int note_function(cuda_function *function, cuda_module module, const char *name) {
    *function = (cuda_function)module; /* as different as the modules are */
    return name[0] == '\0';
}

static int note_set(cuda_function function, int attribute, int value) {
    shared_calls += function != NULL && attribute == CUDA_FUNCTION_SHARED_BYTES;
    shared_bytes = value;
    return 0;
}

static int note_text(int error, const char **text) {
    *text = error == 1 ? "it is not wanted" : "no memory";
    return 0;
}

static const cuda_driver note_driver = {.error_name = note_text,
                                        .error_string = note_text,
                                        .module_load = note_load,
                                        .module_free = note_unload,
                                        .module_function = note_function,
                                        .function_set = note_set};

/* ---- programs over two small files ---- */

static const cuda_text few_texts[] = {
    {"few.cu", "#include \"tiles.cuh\"\n"
               "#ifdef K_twice\n"
               "KERNEL twice(T *x, int count) {\n"
               "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
               "    if (i < count) {\n"
               "        x[i] = down(up(x[i]) * CEIL(2 * FACTOR, 2));\n"
               "    }\n"
               "}\n"
               "#endif\n"
               "#ifdef K_half_of\n"
               "KERNEL half_of(T *x, int count) {\n"
               "    SHARED(float, kept);\n"
               "    kept[threadIdx.x] = up(x[threadIdx.x]);\n"
               "    __syncthreads();\n"
               "    x[threadIdx.x] = down(kept[count - 1 - threadIdx.x] / 2);\n"
               "}\n"
               "#endif\n"
               "#ifdef BAD\n"
               "mistake\n"
               "#endif\n"},
    {"constants.cu",
     "KERNEL steps(const cuda_step_constants *constants, u64 *out) { *out = constants->step; }\n"},
    {NULL, NULL},
};

static cuda_launch *twice(cuda_program *p, long factor) {
    cuda_launch *launch = stk_cuda_launch(p, "few", "twice", 1, 1, 32, 0);
    stk_cuda_define(launch, "FACTOR", factor);
    return launch;
}

static void begin(cuda_program *p, cuda_type type) {
    stk_cuda_program_begin(p, type, false, 4);
}

static stk_status make(cuda_kernels *kernels, const cuda_program *p, stk_error *err) {
    memset(err, 0, sizeof *err);
    return stk_cuda_kernels_make(kernels, &p, 1, err);
}

/* `capability` is that of the GPU, times ten. */
static cuda_kernels *open_noting_for(int capability, cuda_store *store, int threads) {
    cuda_kernels_config config = {.driver = &note_driver,
                                  .nvrtc = &note_nvrtc,
                                  .store = store,
                                  .major = capability / 10,
                                  .minor = capability % 10,
                                  .threads = threads,
                                  .texts = few_texts};
    cuda_kernels *kernels = NULL;
    stk_error err = {0};
    compiles = 0;
    shared_calls = 0;
    return stk_cuda_kernels_open(&kernels, &config, &err) == STK_OK ? kernels : NULL;
}

static cuda_kernels *open_noting(cuda_store *store, int threads) {
    return open_noting_for(90, store, threads);
}

static void equal_launches_are_compiled_once(void) {
    cuda_program p;
    stk_error err;
    cuda_kernels *kernels = open_noting(NULL, 3);
    REQUIRE(kernels != NULL);
    begin(&p, CUDA_TYPE_F16);
    for (int i = 0; i < 12; i++) {
        twice(&p, i % 3);
    }
    stk_cuda_launch(&p, "constants", "steps", 1, 1, 1, 0);
    CHECK(stk_cuda_kernels_find(kernels, &p.ops[0].launch, CUDA_TYPE_F16) == NULL);
    REQUIRE_OK(make(kernels, &p, &err), &err);
    CHECK_INT(compiles, 4);
    CHECK_INT(modules, 4);
    CHECK_STR(last_image, "machine code");
    cuda_function found[4];
    for (int i = 0; i < 3; i++) {
        found[i] = stk_cuda_kernels_find(kernels, &p.ops[i].launch, CUDA_TYPE_F16);
        CHECK(found[i] != NULL);
        CHECK(found[i] == stk_cuda_kernels_find(kernels, &p.ops[i + 3].launch, CUDA_TYPE_F16));
        CHECK(i == 0 || found[i] != found[i - 1]);
        CHECK(stk_cuda_kernels_find(kernels, &p.ops[i].launch, CUDA_TYPE_F32) == NULL);
    }
    REQUIRE_OK(make(kernels, &p, &err), &err);
    CHECK_INT(compiles, 4);
    stk_cuda_program_free(&p);

    /* Another type is another function; the program that asked first is gone. */
    begin(&p, CUDA_TYPE_F32);
    twice(&p, 2);
    REQUIRE_OK(make(kernels, &p, &err), &err);
    CHECK_INT(compiles, 5);
    CHECK_STR(last_options, "--gpu-architecture=sm_90|-DTYPE=0|-DK_twice|-DFACTOR=2|");
    int compiled = 0;
    int loaded = 0;
    stk_cuda_kernels_counts(kernels, &compiled, &loaded);
    CHECK_INT(compiled, 5);
    CHECK_INT(loaded, 0);
    stk_cuda_program_free(&p);
    stk_cuda_kernels_close(kernels);
    CHECK_INT(modules, 0);
    stk_cuda_kernels_close(NULL);
}

static void a_second_start_compiles_nothing(void) {
    cuda_program p;
    stk_error err = {0};
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    begin(&p, CUDA_TYPE_BF16);
    for (int i = 0; i < 6; i++) {
        twice(&p, i);
    }
    for (int start = 0; start < 3; start++) {
        cuda_store *store = NULL;
        int compiled = -1;
        int loaded = -1;
        REQUIRE_OK(stk_cuda_store_open(&store, folder, start < 2 ? "gpu" : "other", &err), &err);
        cuda_kernels *kernels = open_noting(store, 2);
        REQUIRE(kernels != NULL);
        REQUIRE_OK(make(kernels, &p, &err), &err);
        stk_cuda_kernels_counts(kernels, &compiled, &loaded);
        CHECK_INT(compiles, start == 1 ? 0 : 6);
        CHECK_INT(compiled, start == 1 ? 0 : 6);
        CHECK_INT(loaded, start == 1 ? 6 : 0);
        CHECK_STR(last_image, "machine code");
        stk_cuda_kernels_close(kernels);
        stk_cuda_store_close(store);
    }
    stk_cuda_program_free(&p);
}

/* What NVRTC does not know is compiled for the newest before it, and the driver does the rest. */
static void a_gpu_that_nvrtc_does_not_know_gets_ptx(void) {
    static const struct {
        int capability;
        const char *option;
        const char *stand_in; /* NULL: none */
    } cases[] = {{75, "--gpu-architecture=sm_75|", NULL},
                 {103, "--gpu-architecture=sm_103|", NULL},
                 {89, "--gpu-architecture=compute_86|", "compute_86"},
                 {101, "--gpu-architecture=compute_100|", "compute_100"},
                 {200, "--gpu-architecture=compute_103|", "compute_103"},
                 {70, "--gpu-architecture=sm_70|", NULL}};
    cuda_program p;
    cuda_store *store = NULL;
    stk_error err = {0};
    begin(&p, CUDA_TYPE_F16);
    twice(&p, 1);
    REQUIRE_OK(stk_cuda_store_open(&store, check_folder(), "gpu", &err), &err);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        size_t c = i / 2;
        cuda_kernels *kernels = open_noting_for(cases[c].capability, store, 1);
        REQUIRE(kernels != NULL);
        memset(last_image, 0, sizeof last_image);
        REQUIRE_OK(make(kernels, &p, &err), &err);
        CHECK_INT(compiles, i % 2 == 0); /* the second finds what the first has kept */
        CHECK(strncmp(last_options, cases[c].option, strlen(cases[c].option)) == 0);
        const char *stand_in = stk_cuda_kernels_stand_in(kernels);
        CHECK_STR(stand_in != NULL ? stand_in : "none",
                  cases[c].stand_in != NULL ? cases[c].stand_in : "none");
        CHECK_STR(last_image, stand_in != NULL ? "a text for the driver" : "machine code");
        stk_cuda_kernels_close(kernels);
    }
    stk_cuda_store_close(store);
    stk_cuda_program_free(&p);
}

static void what_was_kept_in_vain_is_compiled_again(void) {
    cuda_program p;
    cuda_store *store = NULL;
    stk_error err = {0};
    begin(&p, CUDA_TYPE_F32);
    twice(&p, 1);
    REQUIRE_OK(stk_cuda_store_open(&store, check_folder(), "gpu", &err), &err);
    for (int start = 0; start < 3; start++) {
        int compiled = -1;
        int loaded = -1;
        cuda_kernels *kernels = open_noting(store, 1);
        REQUIRE(kernels != NULL);
        refusals = start; /* then the third finds that what it compiles is not taken either */
        CHECK_INT(make(kernels, &p, &err), start < 2 ? STK_OK : STK_ERR_DEVICE);
        stk_cuda_kernels_counts(kernels, &compiled, &loaded);
        CHECK_INT(compiles, 1);
        CHECK_INT(compiled, start < 2);
        CHECK_INT(loaded, 0);
        stk_cuda_kernels_close(kernels);
        CHECK_INT(modules, 0);
    }
    CHECK_CONTAINS(err.message, "loading a kernel failed: it is not wanted");
    stk_cuda_store_close(store);
    stk_cuda_program_free(&p);
}

static double longest_next_s;

static bool asked_often(void *user, double next_s) {
    int *left = user;
    CHECK(next_s >= 0);
    longest_next_s = next_s > longest_next_s ? next_s : longest_next_s;
    return (*left)-- <= 0;
}

/* Loading takes long as well, where the driver compiles; what is there already is not made again.
 */
static void it_can_be_halted_between_kernels(void) {
    enum { KERNELS = 4 };
    cuda_program p;
    stk_error err = {0};
    int left = 0;
    cuda_kernels_config config = {.driver = &note_driver,
                                  .nvrtc = &note_nvrtc,
                                  .major = 20,
                                  .threads = 1,
                                  .halted = asked_often,
                                  .user = &left,
                                  .texts = few_texts};
    begin(&p, CUDA_TYPE_F16);
    for (int i = 0; i < KERNELS; i++) {
        twice(&p, 1 + i);
    }
    for (int asks = 0; asks <= 2 * KERNELS; asks++) {
        cuda_kernels *kernels = NULL;
        REQUIRE_OK(stk_cuda_kernels_open(&kernels, &config, &err), &err);
        left = asks;
        longest_next_s = 0;
        int loaded = asks < KERNELS ? 0 : asks - KERNELS;
        CHECK_INT(make(kernels, &p, &err), loaded < KERNELS ? STK_ERR_STOPPED : STK_OK);
        CHECK_INT(modules, loaded);
        CHECK(longest_next_s > 0); /* it is asked for the time of the next one */
        left = 2 * KERNELS;
        CHECK_INT(make(kernels, &p, &err), STK_OK);
        CHECK_INT(left, 2 * loaded); /* two for each that was missing */
        CHECK_INT(modules, KERNELS);
        stk_cuda_kernels_close(kernels);
        CHECK_INT(modules, 0);
    }
    stk_cuda_program_free(&p);
}

/* NVRTC at a door: it compiles nothing while that is closed. */
static door compilers;
static bool halts_compilers;

static int wait_and_compile(cuda_nvrtc_program program, int count, const char *const *options) {
    door_wait(&compilers);
    int result = note_compile(program, count, options);
    atomic_fetch_add(&compilers.passed, 1);
    return result;
}

static bool someone_compiles(void *user, double next_s) {
    (void)user;
    (void)next_s;
    return halts_compilers && atomic_load(&compilers.begun) > atomic_load(&compilers.passed);
}

static void compilers_can_be_left_behind(void) {
    cuda_program p;
    stk_error err = {0};
    static cuda_nvrtc slow; /* this and the kernels are the threads' for good */
    slow = note_nvrtc;
    slow.compile = wait_and_compile;
    cuda_kernels_config config = {.driver = &note_driver,
                                  .nvrtc = &slow,
                                  .major = 20,
                                  .threads = 2,
                                  .halted = someone_compiles,
                                  .texts = few_texts};
    cuda_kernels *kernels = NULL;
    cuda_program made;
    begin(&made, CUDA_TYPE_F16);
    twice(&made, 9);
    begin(&p, CUDA_TYPE_F16);
    for (int i = 0; i < 4; i++) {
        twice(&p, 1 + i);
    }
    REQUIRE_OK(stk_cuda_kernels_open(&kernels, &config, &err), &err);
    halts_compilers = false;
    atomic_store(&compilers.open, true);
    REQUIRE_OK(make(kernels, &made, &err), &err);
    halts_compilers = true;
    CHECK(!stk_cuda_kernels_are_abandoned(kernels));
    CHECK(!stk_cuda_kernels_are_abandoned(NULL));
    atomic_store(&compilers.open, false);
    CHECK_INT(make(kernels, &p, &err), STK_ERR_STOPPED);
    CHECK(stk_cuda_kernels_are_abandoned(kernels));
    CHECK_INT(make(kernels, &p, &err), STK_ERR_STOPPED);
    err = (stk_error){0};
    REQUIRE_OK(make(kernels, &made, &err), &err); /* what was made before is there */
    CHECK(stk_cuda_kernels_find(kernels, &made.ops[0].launch, CUDA_TYPE_F16) != NULL);
    stk_cuda_program_free(&p);
    stk_cuda_program_free(&made);
    stk_cuda_kernels_close(kernels);
    CHECK_INT(modules, 1);
    modules = 0;
    atomic_store(&compilers.open, true);
    CHECK(door_comes(&compilers.passed, atomic_load(&compilers.begun)));
}

static void a_mistake_is_told_with_its_place(void) {
    cuda_program p;
    stk_error err = {0};
    cuda_kernels *kernels = open_noting(NULL, 1);
    REQUIRE(kernels != NULL);
    begin(&p, CUDA_TYPE_F32);
    twice(&p, 1);
    stk_cuda_define(twice(&p, 7), "BAD", 1);
    twice(&p, 3);
    for (int attempt = 0; attempt < 2; attempt++) {
        CHECK_INT(make(kernels, &p, &err), STK_ERR_INTERNAL);
        CHECK_CONTAINS(err.message, "kernel twice of few.cu (type 0, -DFACTOR=7 -DBAD=1");
        CHECK_CONTAINS(err.message, "sm_90");
        CHECK_CONTAINS(err.message, "few.cu(3): error: a mistake and more of it");
    }
    stk_cuda_program_free(&p);
    begin(&p, CUDA_TYPE_F32);
    stk_cuda_launch(&p, "none", "twice", 1, 1, 1, 0);
    CHECK_INT(make(kernels, &p, &err), STK_ERR_INTERNAL);
    stk_cuda_program_free(&p);
    stk_cuda_kernels_close(kernels);
    kernels = open_noting(NULL, 1);
    REQUIRE(kernels != NULL);
    begin(&p, CUDA_TYPE_F32);
    stk_cuda_launch(&p, "fe", "twice", 1, 1, 1, 0);
    CHECK_INT(make(kernels, &p, &err), STK_ERR_INTERNAL);
    CHECK_CONTAINS(err.message, "there is no file of kernels called fe.cu");
    stk_cuda_program_free(&p);
    stk_cuda_kernels_close(kernels);
    CHECK_INT(modules, 0);
}

static void much_shared_memory_is_asked_for(void) {
    cuda_program p;
    stk_error err = {0};
    cuda_kernels *kernels = open_noting(NULL, 1);
    REQUIRE(kernels != NULL);
    begin(&p, CUDA_TYPE_F32);
    stk_cuda_launch(&p, "few", "half_of", 1, 1, 32, 48 << 10);
    REQUIRE_OK(make(kernels, &p, &err), &err);
    CHECK_INT(shared_calls, 0);
    stk_cuda_launch(&p, "few", "half_of", 1, 1, 32, 100 << 10);
    stk_cuda_launch(&p, "few", "half_of", 1, 1, 32, 64 << 10);
    REQUIRE_OK(make(kernels, &p, &err), &err);
    CHECK_INT(shared_calls, 1);
    CHECK_INT(shared_bytes, 100 << 10);
    REQUIRE_OK(make(kernels, &p, &err), &err);
    CHECK_INT(shared_calls, 1);
    CHECK_INT(compiles, 1);
    stk_cuda_program_free(&p);
    stk_cuda_kernels_close(kernels);
}

static void no_memory_is_an_error_and_no_leak(void) {
    cuda_program p;
    stk_error err = {0};
    begin(&p, CUDA_TYPE_F32);
    twice(&p, 1);
    twice(&p, 2);
    bool made = false;
    for (int i = 0; i < 100 && !made; i++) {
        stk_mem_fail_after(i);
        cuda_kernels *kernels = open_noting(NULL, 1);
        made = kernels != NULL && make(kernels, &p, &err) == STK_OK;
        stk_mem_fail_after(-1);
        stk_cuda_kernels_close(kernels);
        CHECK_INT(modules, 0);
    }
    CHECK(made);
    stk_cuda_program_free(&p);
}

/* ---- the texts in the program, and the real compiler ---- */

static void the_texts_are_those_of_the_files(void) {
    int files = 0;
    for (const cuda_text *t = stk_cuda_texts; t->name != NULL; t++) {
        bool constants = strcmp(t->name, "kernel_constants.h") == 0;
        char *path = stk_str_format("%s/%s%s", STK_CUDA_FOLDER, constants ? "program/" : "kernels/",
                                    t->name);
        char *data = NULL;
        size_t size = 0;
        stk_error err = {0};
        REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
        CHECK_STR(t->text, data);
        CHECK_INT(strlen(t->text), size);
        files += constants || strcmp(t->name, "prelude.cuh") == 0;
        stk_mem_free(data);
        stk_mem_free(path);
    }
    CHECK_INT(files, 2);
}

/* False, with the reason why the test is skipped, without NVRTC and under a sanitizer: the leak
 * checker has crashed on memory of NVRTC's threads. */
static bool real_nvrtc(cuda_nvrtc *table) {
#ifdef CHECK_SANITIZED
    check_skip_reason = "NVRTC is not built with a sanitizer";
    return false;
#endif
    void *handle = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NODELETE);
    handle = handle != NULL
                 ? handle
                 : dlopen("/usr/local/cuda/lib64/libnvrtc.so.13", RTLD_NOW | RTLD_NODELETE);
    bool good = handle != NULL;
#define X(name, symbol, parameters)                 \
    if (good) {                                     \
        void *found = dlsym(handle, symbol);        \
        memcpy(&table->name, &found, sizeof found); \
        good = found != NULL;                       \
    }
    CUDA_NVRTC_FUNCTIONS(X)
#undef X
    check_skip_reason = good ? NULL : "there is no libnvrtc.so.13";
    return good;
}

static void the_real_compiler_takes_them(void) {
    cuda_nvrtc nvrtc;
    cuda_program p;
    stk_error err = {0};
    if (!real_nvrtc(&nvrtc)) {
        return;
    }
    for (int type = CUDA_TYPE_F32; type <= CUDA_TYPE_BF16; type++) {
        cuda_kernels_config config = {.driver = &note_driver,
                                      .nvrtc = &nvrtc,
                                      .major = 9,
                                      .minor = 0,
                                      .threads = 2,
                                      .texts = few_texts};
        cuda_kernels *kernels = NULL;
        REQUIRE_OK(stk_cuda_kernels_open(&kernels, &config, &err), &err);
        begin(&p, (cuda_type)type);
        twice(&p, 3);
        stk_cuda_launch(&p, "few", "half_of", 1, 1, 32, 128);
        stk_cuda_launch(&p, "constants", "steps", 1, 1, 1, 0);
        CHECK_INT(make(kernels, &p, &err), STK_OK);
        CHECK_STR(err.message, "");
        CHECK(memcmp(last_image, "\177ELF", 4) == 0);
        stk_cuda_define(twice(&p, 3), "BAD", 1);
        CHECK_INT(make(kernels, &p, &err), STK_ERR_INTERNAL);
        CHECK_CONTAINS(err.message, "few.cu(19)"); /* what is included does not count */
        CHECK_CONTAINS(err.message, "mistake");
        stk_cuda_program_free(&p);
        stk_cuda_kernels_close(kernels);
    }
}

/* No GPU has this number yet, or will with this NVRTC. */
static void the_real_compiler_makes_ptx_for_newer_devices(void) {
    cuda_nvrtc nvrtc;
    cuda_program p;
    stk_error err = {0};
    if (!real_nvrtc(&nvrtc)) {
        return;
    }
    cuda_kernels_config config = {.driver = &note_driver,
                                  .nvrtc = &nvrtc,
                                  .major = 99,
                                  .minor = 9,
                                  .threads = 1,
                                  .texts = few_texts};
    cuda_kernels *kernels = NULL;
    REQUIRE_OK(stk_cuda_kernels_open(&kernels, &config, &err), &err);
    CHECK_CONTAINS(stk_cuda_kernels_stand_in(kernels), "compute_1");
    begin(&p, CUDA_TYPE_F16);
    twice(&p, 3);
    CHECK_INT(make(kernels, &p, &err), STK_OK);
    CHECK_STR(err.message, "");
    CHECK(memcmp(last_image, "//\n// Generated by NVIDIA NVVM", 30) == 0);
    stk_cuda_program_free(&p);
    stk_cuda_kernels_close(kernels);
}

/* Instructions that a device lacks are not in what is compiled for it. */
static void the_real_compiler_takes_them_for_older_devices(void) {
    cuda_nvrtc nvrtc;
    cuda_program p;
    stk_error err = {0};
    if (!real_nvrtc(&nvrtc)) {
        return;
    }
    cuda_kernels_config config = {
        .driver = &note_driver, .nvrtc = &nvrtc, .major = 7, .minor = 5, .threads = 2};
    cuda_kernels *kernels = NULL;
    REQUIRE_OK(stk_cuda_kernels_open(&kernels, &config, &err), &err);
    begin(&p, CUDA_TYPE_F16);
    cuda_plane plane = {2, 16, 24};
    cuda_norm norm = {.coefs = stk_cuda_buffer(&p, 4 * 24 * sizeof(float))};
    cuda_tail tail = {.act = STK_OP_SILU};
    cuda_ref x = stk_cuda_buffer(&p, 2 * 16 * 24 * sizeof(float));
    stk_cuda_norm_stats(&p, plane, x, &norm, cuda_nothing());
    stk_cuda_norm_apply(&p, plane, x, &norm, &tail, NULL, x, cuda_nothing());
    CHECK_INT(make(kernels, &p, &err), STK_OK);
    CHECK_STR(err.message, "");
    stk_cuda_program_free(&p);
    stk_cuda_kernels_close(kernels);
}

/* Runs `twice` with what kernels_make() made of it. */
static void run_twice(play_device *play, cuda_kernels *kernels, const cuda_launch *launch) {
    enum { COUNT = 20 };
    float numbers[COUNT];
    int count = COUNT;
    cuda_pointer x = 0;
    cuda_function function = stk_cuda_kernels_find(kernels, launch, CUDA_TYPE_F32);
    REQUIRE(function != NULL);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)i;
    }
    void *arguments[] = {&x, &count};
    REQUIRE(PLAY_GOOD(play, memory_take(&x, sizeof numbers)));
    CHECK(PLAY_GOOD(play, copy_in(x, numbers, sizeof numbers, play->stream)));
    CHECK(PLAY_GOOD(play, launch(function, launch->grid[0], launch->grid[1], 1, launch->threads, 1,
                                 1, launch->shared_bytes, play->stream, arguments, NULL)));
    CHECK(PLAY_GOOD(play, copy_out(numbers, x, sizeof numbers, play->stream)));
    CHECK(PLAY_GOOD(play, stream_wait(play->stream)));
    CHECK(PLAY_GOOD(play, memory_free(x)));
    for (int i = 0; i < COUNT; i++) {
        CHECK_NEAR(numbers[i], 3 * i, 0);
    }
}

static void they_run_when_compiled_and_when_loaded(void) {
    play_device play;
    cuda_program p;
    char folder[256];
    stk_error err = {0};
    if (!play_open(&play)) {
        return;
    }
    snprintf(folder, sizeof folder, "%s", check_folder());
    begin(&p, CUDA_TYPE_F32);
    twice(&p, 3);
    stk_cuda_launch(&p, "few", "half_of", 1, 1, 32, 100 << 10);
    for (int start = 0; start < 2; start++) {
        cuda_store *store = NULL;
        cuda_kernels *kernels = NULL;
        int compiled = -1;
        int loaded = -1;
        REQUIRE_OK(stk_cuda_store_open(&store, folder, "gpu", &err), &err);
        cuda_kernels_config config = {.driver = play.driver,
                                      .nvrtc = play.nvrtc,
                                      .store = store,
                                      .major = play.major,
                                      .minor = play.minor,
                                      .threads = 2,
                                      .texts = few_texts};
        REQUIRE_OK(stk_cuda_kernels_open(&kernels, &config, &err), &err);
        REQUIRE_OK(make(kernels, &p, &err), &err);
        stk_cuda_kernels_counts(kernels, &compiled, &loaded);
        CHECK_INT(compiled, start == 0 ? 2 : 0);
        CHECK_INT(loaded, start == 0 ? 0 : 2);
        run_twice(&play, kernels, &p.ops[0].launch);
        stk_cuda_kernels_close(kernels);
        stk_cuda_store_close(store);
    }
    stk_cuda_program_free(&p);
    play_close(&play);
}

static const check_test tests[] = {
    TEST(equal_launches_are_compiled_once),
    TEST(a_second_start_compiles_nothing),
    TEST(a_gpu_that_nvrtc_does_not_know_gets_ptx),
    TEST(what_was_kept_in_vain_is_compiled_again),
    TEST(it_can_be_halted_between_kernels),
    TEST(compilers_can_be_left_behind),
    TEST(a_mistake_is_told_with_its_place),
    TEST(much_shared_memory_is_asked_for),
    TEST(no_memory_is_an_error_and_no_leak),
    TEST(the_texts_are_those_of_the_files),
    TEST(the_real_compiler_takes_them),
    TEST(the_real_compiler_makes_ptx_for_newer_devices),
    TEST(the_real_compiler_takes_them_for_older_devices),
    TEST(they_run_when_compiled_and_when_loaded),
};

CHECK_MAIN(tests)
