/*
 * kernels.c - kernels from source text to functions.
 *
 * A short text (file, function, type and defines) identifies a function; equal launches share it.
 * Missing functions come from the store or are compiled, several at a time. The thread that has the
 * context then loads them one after another.
 */
#include "backend/cuda/program/kernels.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/store.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/numbers/digest.h"
#include "base/str.h"
#include "base/threads/pool.h"

/* A function must be prepared for more dynamic shared memory than this. */
#define PLAIN_SHARED_BYTES (48u << 10)

#define MOST_OPTIONS 48

/* Characters of the compiler's messages that are reported: the first messages matter. */
#define MOST_LOG 600

/* One file of kernels, with the texts in front of it. */
typedef struct source {
    const char *name; /* "norm.cu"; static */
    char *text;       /* owned */
    char digest[STK_SHA256_TEXT];
} source;

typedef struct kernel {
    char *key;     /* owned: see key_of() */
    char *file;    /* owned: a program may be gone before its kernels */
    char *name;    /* owned: a program may be gone before its kernels */
    char *defines; /* owned: a program may be gone before its kernels */
    cuda_type type;
    unsigned shared_bytes; /* the most that a launch asks for */
    unsigned shared_set;   /* bytes that the function is prepared for */
    cuda_module module;
    cuda_function function; /* NULL: not made yet */
    /* The fields below are used only while the function is made. */
    void *code; /* owned */
    bool compiled;
    stk_error error;
} kernel;

/* Estimated time to compile one kernel, before the first was measured. */
#define FIRST_S 0.3

struct cuda_kernels {
    cuda_kernels_config config;
    source *sources; /* owned */
    size_t source_count;
    kernel **kernels; /* owned */
    size_t count;
    size_t capacity;
    stk_map by_key; /* to an index of kernels */
    int nvrtc_major, nvrtc_minor;
    char target[24]; /* "sm_90": machine code; "compute_90": PTX, which the driver compiles */
    bool own;        /* `target` is machine code for this GPU */
    int compiled, loaded;
    stk_pool_halt halt;
    bool abandoned; /* threads that compile were abandoned: they use all of this */
};

/* Room for the key of any launch. */
#define KEY_ROOM (CUDA_MOST_DEFINES + 160)

static void key_of(const cuda_launch *launch, cuda_type type, char key[KEY_ROOM]) {
    snprintf(key, KEY_ROOM, "%.64s %.64s %d %s", launch->file, launch->name, (int)type,
             launch->defines);
}

static bool make_source(source *s, const cuda_text *file) {
    uint8_t digest[STK_SHA256_BYTES];
    stk_str text = stk_cuda_text_whole(file);
    stk_sha256_of(stk_str_text(&text), text.length, digest);
    stk_hex(digest, sizeof digest, s->digest);
    s->name = file->name;
    s->text = stk_str_take(&text);
    stk_str_free(&text);
    return s->text != NULL;
}

/*
 * The architecture to compile for: the GPU's where NVRTC knows it, else the newest before it. Where
 * there is none, compiling fails and says so.
 */
static stk_status find_target(cuda_kernels *k, stk_error *err) {
    const cuda_nvrtc *nvrtc = k->config.nvrtc;
    int gpu = 10 * k->config.major + k->config.minor;
    int best = 0;
    int count = 0;
    bool told = nvrtc->arch_count(&count) == 0 && count > 0;
    int *archs = stk_mem_new(told ? (size_t)count : 1, sizeof *archs);
    if (archs == NULL) {
        return STK_FAIL_MEMORY(err, "the list of GPUs");
    }
    told = told && nvrtc->archs(archs) == 0;
    for (int i = 0; i < count && told; i++) {
        best = archs[i] <= gpu && archs[i] > best ? archs[i] : best;
    }
    stk_mem_free(archs);
    k->own = best == gpu || best == 0;
    snprintf(k->target, sizeof k->target, "%s_%d", k->own ? "sm" : "compute", k->own ? gpu : best);
    return told ? STK_OK
                : STK_FAIL(err, STK_ERR_DEVICE, "NVRTC does not tell for which GPUs it compiles");
}

stk_status stk_cuda_kernels_open(cuda_kernels **kernels, const cuda_kernels_config *config,
                                 stk_error *err) {
    const cuda_text *files = config->texts != NULL ? config->texts : stk_cuda_texts;
    size_t texts = 0;
    while (files[texts].name != NULL) {
        texts++;
    }
    cuda_kernels *k = stk_mem_new(1, sizeof *k);
    bool good = k != NULL && (k->sources = stk_mem_new(texts, sizeof *k->sources)) != NULL;
    for (size_t i = 0; i < texts && good; i++) {
        if (stk_str_ends_with_nocase(files[i].name, ".cu")) {
            good = make_source(&k->sources[k->source_count++], &files[i]);
        }
    }
    if (!good) {
        stk_cuda_kernels_close(k);
        return STK_FAIL_MEMORY(err, "the kernels' texts");
    }
    k->config = *config;
    k->halt = (stk_pool_halt){.halted = config->halted, .user = config->user, .longest_s = FIRST_S};
    if (config->nvrtc->version(&k->nvrtc_major, &k->nvrtc_minor) != 0) {
        stk_cuda_kernels_close(k);
        return STK_FAIL(err, STK_ERR_DEVICE, "NVRTC does not tell its version");
    }
    stk_status status = find_target(k, err);
    if (status != STK_OK) {
        stk_cuda_kernels_close(k);
        return status;
    }
    *kernels = k;
    return STK_OK;
}

static void free_kernel(kernel *one) {
    if (one != NULL) {
        stk_mem_free(one->key);
        stk_mem_free(one->file);
        stk_mem_free(one->name);
        stk_mem_free(one->defines);
        stk_mem_free(one->code);
        stk_mem_free(one);
    }
}

void stk_cuda_kernels_close(cuda_kernels *kernels) {
    if (kernels == NULL || kernels->abandoned) {
        return;
    }
    for (size_t i = 0; i < kernels->count; i++) {
        if (kernels->kernels[i]->module != NULL) {
            (void)kernels->config.driver->module_free(kernels->kernels[i]->module);
        }
        free_kernel(kernels->kernels[i]);
    }
    for (size_t i = 0; kernels->sources != NULL && i < kernels->source_count; i++) {
        stk_mem_free(kernels->sources[i].text);
    }
    stk_map_free(&kernels->by_key);
    stk_mem_free(kernels->kernels);
    stk_mem_free(kernels->sources);
    stk_mem_free(kernels);
}

static const source *source_of(const cuda_kernels *k, const char *file) {
    size_t length = strlen(file);
    for (size_t i = 0; i < k->source_count; i++) {
        const char *name = k->sources[i].name;
        if (strncmp(name, file, length) == 0 && strcmp(name + length, ".cu") == 0) {
            return &k->sources[i];
        }
    }
    return NULL;
}

/* The compiler's messages, on one line. */
static void read_log(const cuda_nvrtc *nvrtc, cuda_nvrtc_program program, char log[MOST_LOG]) {
    size_t bytes = 0;
    snprintf(log, MOST_LOG, "NVRTC does not say why");
    char *all = nvrtc->log_bytes(program, &bytes) == 0 ? stk_mem_new(bytes + 1, 1) : NULL;
    if (all != NULL && bytes > 1 && nvrtc->log(program, all) == 0) {
        size_t n = 0;
        for (const char *p = all; *p != '\0' && n + 1 < MOST_LOG; p++) {
            bool blank = *p == '\n' || *p == ' ';
            if (!blank || (n > 0 && log[n - 1] != ' ')) {
                log[n++] = *p == '\n' ? ' ' : *p;
            }
        }
        log[n] = '\0';
    }
    stk_mem_free(all);
}

/* The options of one kernel: those of all, and its defines, which are divided by blanks. */
typedef struct option_list {
    const char *all[MOST_OPTIONS];
    int count;
    char architecture[48];
    char type[16];
    char name[96];
    char defines[CUDA_MOST_DEFINES];
} option_list;

static void make_options(option_list *o, const cuda_kernels *k, const kernel *one) {
    char *rest = NULL;
    snprintf(o->architecture, sizeof o->architecture, "--gpu-architecture=%s", k->target);
    snprintf(o->type, sizeof o->type, "-DTYPE=%d", (int)one->type);
    snprintf(o->name, sizeof o->name, "-DK_%s", one->name);
    snprintf(o->defines, sizeof o->defines, "%s", one->defines);
    o->all[o->count++] = o->architecture;
    o->all[o->count++] = o->type;
    o->all[o->count++] = o->name;
    for (char *word = strtok_r(o->defines, " ", &rest); word != NULL && o->count < MOST_OPTIONS;
         word = strtok_r(NULL, " ", &rest)) {
        o->all[o->count++] = word;
    }
}

/* Machine code, or PTX: a text that ends with a 0, which is counted. */
static stk_status take_code(const cuda_kernels *k, cuda_nvrtc_program program, void **code,
                            size_t *bytes, stk_error *err) {
    const cuda_nvrtc *nvrtc = k->config.nvrtc;
    int result = k->own ? nvrtc->code_bytes(program, bytes) : nvrtc->ptx_bytes(program, bytes);
    if (result != 0 || *bytes == 0) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "NVRTC compiled a kernel but has no code for it");
    }
    *code = stk_mem_raw(*bytes, 1);
    if (*code == NULL) {
        return STK_FAIL_MEMORY(err, "a kernel's code");
    }
    result = k->own ? nvrtc->code(program, *code) : nvrtc->ptx(program, *code);
    if (result != 0) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "NVRTC does not hand over a kernel's code");
    }
    return STK_OK;
}

static stk_status compile(const cuda_kernels *k, kernel *one, const source *from, size_t *bytes) {
    const cuda_nvrtc *nvrtc = k->config.nvrtc;
    cuda_nvrtc_program program = NULL;
    option_list options = {.count = 0};
    make_options(&options, k, one);
    if (nvrtc->create(&program, from->text, from->name, 0, NULL, NULL) != 0) {
        return STK_FAIL(&one->error, STK_ERR_INTERNAL, "NVRTC does not take the text of %s",
                        from->name);
    }
    stk_status status = STK_OK;
    if (nvrtc->compile(program, options.count, options.all) != 0) {
        char log[MOST_LOG];
        read_log(nvrtc, program, log);
        status = STK_FAIL(&one->error, STK_ERR_INTERNAL,
                          "kernel %s of %s (type %d, %s) does not compile for %s with NVRTC "
                          "%d.%d: %s",
                          one->name, from->name, (int)one->type, one->defines, k->target,
                          k->nvrtc_major, k->nvrtc_minor, log);
    } else {
        status = take_code(k, program, &one->code, bytes, &one->error);
    }
    (void)nvrtc->destroy(&program);
    return status;
}

/*
 * Gets the code of one kernel: from the store, unless `anew`, or from its text. A failure is stored
 * in the kernel's error.
 */
static void get_code(const cuda_kernels *k, kernel *one, bool anew) {
    size_t bytes = 0;
    const source *from = source_of(k, one->file);
    if (from == NULL) {
        (void)STK_FAIL(&one->error, STK_ERR_INTERNAL, "there is no file of kernels called %s.cu",
                       one->file);
        return;
    }
    char *stored = stk_str_format("kernel %s nvrtc %d.%d %s %s", k->target, k->nvrtc_major,
                                  k->nvrtc_minor, from->digest, one->key);
    if (stored == NULL) {
        (void)STK_FAIL_MEMORY(&one->error, "a kernel");
        return;
    }
    if (k->config.store != NULL && !anew) {
        stk_cuda_store_get(k->config.store, stored, &one->code, &bytes);
    }
    one->compiled = one->code == NULL;
    if (one->compiled && compile(k, one, from, &bytes) == STK_OK && k->config.store != NULL) {
        stk_cuda_store_put(k->config.store, stored, one->code, bytes);
    }
    stk_mem_free(stored);
}

/* The kernels that are made at the same time. */
typedef struct kernels_making {
    cuda_kernels *kernels;
    stk_pool *pool;   /* owned */
    kernel **missing; /* owned */
    size_t count;
} kernels_making;

static void free_making(kernels_making *b) {
    if (b != NULL) {
        stk_pool_free(b->pool);
        stk_mem_free(b->missing);
        stk_mem_free(b);
    }
}

static void get_code_task(void *context, size_t task, int thread) {
    const kernels_making *b = context;
    (void)thread;
    get_code(b->kernels, b->missing[task], false);
}

static void drop_code(kernel *one) {
    stk_mem_free(one->code);
    one->code = NULL;
}

static stk_status load(cuda_kernels *k, kernel *one, stk_error *err) {
    const cuda_driver *d = k->config.driver;
    int result = d->module_load(&one->module, one->code);
    if (result != CUDA_GOOD && !one->compiled) {
        /* The driver refuses the stored code: compile it again, and replace the stored file. */
        drop_code(one);
        get_code(k, one, true);
        if (one->code == NULL) {
            return STK_FAIL(err, one->error.status, "%s", one->error.message);
        }
        result = d->module_load(&one->module, one->code);
    }
    stk_status status = stk_cuda_check(d, result, "loading a kernel", err);
    STK_THEN(status, stk_cuda_check(d, d->module_function(&one->function, one->module, one->name),
                                    "finding a kernel in its module", err));
    if (status == STK_OK) {
        k->compiled += one->compiled;
        k->loaded += !one->compiled;
    } else if (one->module != NULL) {
        (void)d->module_free(one->module);
        one->module = NULL;
    }
    drop_code(one);
    return status;
}

/* Adds a kernel for a launch that has none yet. */
static stk_status add_kernel(cuda_kernels *k, const cuda_launch *launch, cuda_type type,
                             const char *key, stk_error *err) {
    bool added = false;
    kernel *one = stk_mem_new(1, sizeof *one);
    if (one != NULL) {
        one->key = stk_mem_strdup(key);
        one->file = stk_mem_strdup(launch->file);
        one->name = stk_mem_strdup(launch->name);
        one->defines = stk_mem_strdup(launch->defines);
        one->type = type;
    }
    if (one == NULL || one->key == NULL || one->file == NULL || one->name == NULL ||
        one->defines == NULL || !STK_RESERVE(k->kernels, k->capacity, k->count + 1) ||
        !stk_map_add(&k->by_key, one->key, k->count, &added)) {
        free_kernel(one);
        return STK_FAIL_MEMORY(err, "the list of kernels");
    }
    k->kernels[k->count++] = one;
    return STK_OK;
}

/* Notes every kernel that a program launches, and how much shared memory it asks for. */
static stk_status note_kernels(cuda_kernels *k, const cuda_program *program, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; i < program->op_count && status == STK_OK; i++) {
        const cuda_launch *launch = &program->ops[i].launch;
        char key[KEY_ROOM];
        size_t at = 0;
        if (program->ops[i].kind != CUDA_OP_LAUNCH) {
            continue;
        }
        key_of(launch, program->type, key);
        if (!stk_map_find(&k->by_key, key, &at)) {
            at = k->count;
            status = add_kernel(k, launch, program->type, key, err);
        }
        if (status == STK_OK && launch->shared_bytes > k->kernels[at]->shared_bytes) {
            k->kernels[at]->shared_bytes = launch->shared_bytes;
        }
    }
    return status;
}

/* Lists all kernels without a function; an empty list has no pool. NULL: out of memory. */
static stk_status list_missing(cuda_kernels *k, kernels_making **out, stk_error *err) {
    kernels_making *b = stk_mem_new(1, sizeof *b);
    if (b == NULL || (b->missing = stk_mem_raw(k->count + 1, sizeof(kernel *))) == NULL) {
        stk_mem_free(b);
        return STK_FAIL_MEMORY(err, "the list of kernels");
    }
    b->kernels = k;
    for (size_t i = 0; i < k->count; i++) {
        if (k->kernels[i]->function == NULL) {
            stk_error_clear(&k->kernels[i]->error);
            drop_code(k->kernels[i]); /* left from an attempt in which another kernel failed */
            b->missing[b->count++] = k->kernels[i];
        }
    }
    size_t most = k->config.threads > 1 ? (size_t)k->config.threads : 1;
    int threads = (int)(b->count < most ? b->count : most);
    stk_status status =
        b->count > 0 ? stk_pool_new(&b->pool, most > 1 ? threads + 1 : 1, err) : STK_OK;
    if (status != STK_OK) {
        free_making(b);
        return status;
    }
    *out = b;
    return STK_OK;
}

static stk_status load_all(cuda_kernels *k, const kernels_making *b, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; i < b->count && status == STK_OK; i++) {
        status = b->missing[i]->error.status;
        if (status == STK_OK &&
            stk_pool_must_halt(&k->halt, k->halt.longest_s)) { /* the driver may have to compile */
            status = STK_FAIL(err, STK_ERR_STOPPED, "stopped while kernels were loaded");
        } else if (status == STK_OK) {
            int64_t start = stk_clock_ns();
            status = load(k, b->missing[i], err);
            stk_pool_note(&k->halt, start);
        } else if (err != NULL) {
            *err = b->missing[i]->error;
        }
    }
    return status;
}

/* Compiles and loads all kernels without a function. */
static stk_status make_missing(cuda_kernels *k, stk_error *err) {
    kernels_making *b = NULL;
    stk_pool_end end = STK_POOL_DONE;
    stk_status status = list_missing(k, &b, err);
    if (status == STK_OK && b->count > 0) {
        end = stk_pool_run_or_leave(b->pool, b->count, get_code_task, b, &k->halt);
        k->abandoned = end == STK_POOL_LEFT;
    }
    if (end != STK_POOL_DONE) {
        status = STK_FAIL(err, STK_ERR_STOPPED, "stopped while kernels were compiled");
    }
    STK_THEN(status, load_all(k, b, err));
    if (!k->abandoned) {
        free_making(b);
    }
    return status;
}

/* Prepares functions for the shared memory of their launches. */
static stk_status allow_shared(cuda_kernels *k, stk_error *err) {
    const cuda_driver *d = k->config.driver;
    stk_status status = STK_OK;
    for (size_t i = 0; i < k->count && status == STK_OK; i++) {
        kernel *one = k->kernels[i];
        if (one->shared_bytes > PLAIN_SHARED_BYTES && one->shared_bytes > one->shared_set) {
            status = stk_cuda_check(
                d,
                d->function_set(one->function, CUDA_FUNCTION_SHARED_BYTES, (int)one->shared_bytes),
                "giving a kernel its shared memory", err);
            one->shared_set = one->shared_bytes;
        }
    }
    return status;
}

/* Whether every launch of a program has a function. */
static bool is_made(const cuda_kernels *k, const cuda_program *program) {
    bool made = true;
    for (int i = 0; i < program->op_count && made; i++) {
        const cuda_op *op = &program->ops[i];
        made = op->kind != CUDA_OP_LAUNCH ||
               stk_cuda_kernels_find(k, &op->launch, program->type) != NULL;
    }
    return made;
}

stk_status stk_cuda_kernels_make(cuda_kernels *kernels, const cuda_program *const *programs,
                                 int count, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; i < count && status == STK_OK; i++) {
        status = !kernels->abandoned || is_made(kernels, programs[i])
                     ? note_kernels(kernels, programs[i], err)
                     : STK_FAIL(err, STK_ERR_STOPPED, "kernels are still being compiled");
    }
    if (status == STK_OK && !kernels->abandoned) {
        status = make_missing(kernels, err);
    }
    return status == STK_OK ? allow_shared(kernels, err) : status;
}

cuda_function stk_cuda_kernels_find(const cuda_kernels *kernels, const cuda_launch *launch,
                                    cuda_type type) {
    char key[KEY_ROOM];
    size_t at = 0;
    key_of(launch, type, key);
    return stk_map_find(&kernels->by_key, key, &at) ? kernels->kernels[at]->function : NULL;
}

stk_status stk_cuda_kernels_launch(const cuda_kernels *kernels, const cuda_launch *launch,
                                   cuda_type type, cuda_stream stream, cuda_find_place find,
                                   const void *context, stk_error *err) {
    const cuda_driver *d = kernels->config.driver;
    cuda_function function = stk_cuda_kernels_find(kernels, launch, type);
    cuda_pointer places[CUDA_MOST_ARGS];
    void *arguments[CUDA_MOST_ARGS];
    if (function == NULL) {
        return STK_FAIL(err, STK_ERR_DEVICE, "the kernel %s was not compiled", launch->name);
    }
    for (int i = 0; i < launch->arg_count; i++) {
        /* The driver only reads arguments, though its interface does not promise it. */
        cuda_arg *arg = (cuda_arg *)(uintptr_t)&launch->args[i];
        switch (arg->kind) {
        case CUDA_ARG_REF:
            places[i] = find(context, arg->ref);
            arguments[i] = &places[i];
            break;
        case CUDA_ARG_INT:
            arguments[i] = &arg->number;
            break;
        case CUDA_ARG_LONG:
            arguments[i] = &arg->big;
            break;
        case CUDA_ARG_FLOAT:
            arguments[i] = &arg->real;
            break;
        }
    }
    int result = d->launch(function, launch->grid[0], launch->grid[1], 1, launch->threads, 1, 1,
                           launch->shared_bytes, stream, arguments, NULL);
    if (result == CUDA_GOOD) {
        return STK_OK;
    }
    char what[128];
    snprintf(what, sizeof what, "launching the kernel %s", launch->name);
    return stk_cuda_check(d, result, what, err);
}

bool stk_cuda_kernels_are_abandoned(const cuda_kernels *kernels) {
    return kernels != NULL && kernels->abandoned;
}

const char *stk_cuda_kernels_stand_in(const cuda_kernels *kernels) {
    return kernels->own ? NULL : kernels->target;
}

void stk_cuda_kernels_counts(const cuda_kernels *kernels, int *compiled, int *loaded) {
    *compiled = kernels->compiled;
    *loaded = kernels->loaded;
}
