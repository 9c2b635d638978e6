/*
 * convolutions.c - the table of shapes: which candidate computes each convolution.
 *
 * A new shape is looked up on disk first. Otherwise several threads build candidates, since a
 * library compiles some of them for most of a second; the candidates are then timed one by one on
 * the stream, in the memory that they will work on. The fastest one whose result is confirmed is
 * taken (comparison.h).
 */
#include "backend/cuda/convolution/convolutions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/convolution/comparison.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/pool.h"

/* Runs between two events, after one that fills the queue. */
#define TIMED_RUNS 4
/* A candidate whose first run takes this many times the best one's is dropped. */
#define TOO_SLOW 1.5f
/* One run is enough to compare candidates that take this long. */
#define ENOUGH_MS 30.0f

typedef struct conv_entry {
    char key[192];
    cuda_conv_shape shape;
    cuda_own own;
    cuda_candidate candidate;
    cuda_candidates candidates; /* while it is being made */
    bool gathered;              /* the candidates are there, perhaps none; else see `trouble` */
    bool ready;                 /* there is a candidate; always, unless is_extra() */
    const cuda_conv_call *call; /* the entry is made with this call */
    int number;                 /* of the call */
    stk_error trouble;
} conv_entry;

/* Estimated time to gather the candidates of one convolution, before the first was measured. */
#define FIRST_S 0.3

struct cuda_convs {
    cuda_convs_config config;
    cuda_candidate_makers makers;
    cuda_event begin, end;
    stk_pool *pool;
    conv_entry **entries; /* owned */
    size_t capacity;
    int count;
    int timed, loaded;
    stk_pool_halt halt;
    bool abandoned;     /* threads were abandoned: they use all of this */
    int complete_count; /* entries that were complete when threads were abandoned */
    cuda_convs_write_noise *write_noise_for; /* during make(); may be NULL */
    void *noise_user;
};

/* ---- shapes ---- */

/* Clears fields that do not matter for this kind of convolution, so that shapes compare equal. */
static cuda_conv_shape tidy(const cuda_conv_shape *shape) {
    cuda_conv_shape clean = *shape;
    bool forward = shape->kind == CUDA_CONV_FORWARD;
    clean.strict = shape->strict && shape->type == CUDA_TYPE_F32;
    clean.accumulate = shape->accumulate && shape->kind == CUDA_CONV_DATA;
    clean.bias = shape->bias && forward;
    clean.added = shape->added && forward;
    clean.act = forward ? shape->act : STK_OP_COUNT;
    clean.stats = shape->stats && forward;
    clean.in_norm = shape->in_norm && (clean.stats || shape->kind == CUDA_CONV_WEIGHT);
    return clean;
}

static void name_of(const cuda_conv_shape *shape, bool deterministic, char *key, size_t room) {
    snprintf(key, room,
             "convolution 4 kind %d type %d strict %d deterministic %d x %d %d %d %d y %d %d %d "
             "kernel %d stride %d pad %d accumulate %d bias %d added %d act %d%s%s",
             (int)shape->kind, (int)shape->type, shape->strict, deterministic, shape->batch,
             shape->height, shape->width, shape->channels, shape->out_height, shape->out_width,
             shape->filters, shape->kernel, shape->stride, shape->pad, shape->accumulate,
             shape->bias, shape->added, stk_cuda_act_code(shape->act),
             shape->stats ? " statistics" : "", shape->in_norm ? " normed" : "");
}

/* Whether a library may have no plan: the plain variant computes it then. */
static bool is_extra(const cuda_conv_shape *shape) {
    return shape->stats || shape->in_norm;
}

/* The shape in words, for errors. */
static void in_words(const cuda_conv_shape *shape, char *text, size_t room) {
    static const char *const kinds[] = {"convolution", "gradient of the input of a convolution",
                                        "gradient of the filters of a convolution"};
    static const char *const types[] = {"float32", "float16", "bfloat16"};
    snprintf(text, room,
             "the %s of %d x %d x %d x %d to %d x %d x %d, %d x %d with stride %d, in %s",
             kinds[shape->kind], shape->batch, shape->height, shape->width, shape->channels,
             shape->out_height, shape->out_width, shape->filters, shape->kernel, shape->kernel,
             shape->stride, types[shape->type]);
}

static conv_entry *find(const cuda_convs *convs, const char *key) {
    for (int i = 0; i < convs->count; i++) {
        if (strcmp(convs->entries[i]->key, key) == 0) {
            return convs->entries[i];
        }
    }
    return NULL;
}

/* ---- opening and closing ---- */

stk_status stk_cuda_convs_open(cuda_convs **convs, const cuda_convs_config *config,
                               stk_error *err) {
    cuda_convs *made = stk_mem_new(1, sizeof *made);
    *convs = NULL;
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    made->config = *config;
    made->halt =
        (stk_pool_halt){.halted = config->halted, .user = config->user, .longest_s = FIRST_S};
    made->makers.config = &made->config;
    void *const *handles = config->libraries->handles;
    stk_status status = stk_cuda_dnn_open(&made->makers.dnn, handles[CUDA_LIBRARY_CUDNN],
                                          config->stream, NULL, err);
    STK_THEN(status, stk_cuda_lt_open(&made->makers.lt, handles[CUDA_LIBRARY_CUBLASLT],
                                      config->stream, err));
    if (status == STK_OK) {
        int threads = stk_cuda_dnn_threaded(made->makers.dnn) ? config->threads : 1;
        status = stk_pool_new(&made->pool, threads > 1 ? threads + 1 : 1, err);
    }
    cuda_event *events[] = {&made->begin, &made->end};
    for (int i = 0; i < 2 && status == STK_OK; i++) {
        status = stk_cuda_check(config->driver, config->driver->event_new(events[i], 0),
                                "make an event", err);
    }
    if (status != STK_OK) {
        stk_cuda_convs_close(made);
        return status;
    }
    *convs = made;
    return STK_OK;
}

static void free_entry(cuda_convs *convs, conv_entry *entry) {
    stk_cuda_candidates_free(&convs->makers, &entry->candidates);
    stk_cuda_candidate_free(&convs->makers, &entry->candidate);
    stk_cuda_own_free(&entry->own);
    stk_mem_free(entry);
}

void stk_cuda_convs_close(cuda_convs *convs) {
    if (convs == NULL || convs->abandoned) {
        return;
    }
    while (convs->count > 0) {
        free_entry(convs, convs->entries[--convs->count]);
    }
    stk_mem_free(convs->entries);
    if (convs->begin != NULL) {
        (void)convs->config.driver->event_free(convs->begin);
    }
    if (convs->end != NULL) {
        (void)convs->config.driver->event_free(convs->end);
    }
    stk_pool_free(convs->pool);
    stk_cuda_lt_close(convs->makers.lt);
    stk_cuda_dnn_close(convs->makers.dnn);
    stk_mem_free(convs);
}

/* ---- making ---- */

/* An entry for each call whose shape is new. */
static stk_status add_entries(cuda_convs *convs, const cuda_conv_call *calls, int count,
                              stk_error *err) {
    for (int i = 0; i < count; i++) {
        char key[sizeof((conv_entry *)NULL)->key];
        cuda_conv_shape shape = tidy(calls[i].shape);
        name_of(&shape, convs->config.deterministic, key, sizeof key);
        if (find(convs, key) != NULL) {
            continue;
        }
        bool room = STK_RESERVE(convs->entries, convs->capacity, (size_t)convs->count + 1);
        conv_entry *entry = room ? stk_mem_new(1, sizeof *entry) : NULL;
        if (entry == NULL) {
            return STK_FAIL_MEMORY(err, "the plans of convolutions");
        }
        convs->entries[convs->count++] = entry;
        memcpy(entry->key, key, sizeof key);
        entry->shape = shape;
        entry->call = &calls[i];
        entry->number = i;
        stk_cuda_own_begin(&entry->own, &shape, convs->config.multiprocessors);
        if (stk_cuda_own_has_tail(&shape)) {
            stk_cuda_own_want(&entry->own, CUDA_OWN_TAIL, &shape);
        }
        if (shape.bias && shape.type != CUDA_TYPE_F32) {
            stk_cuda_own_want(&entry->own, CUDA_OWN_DOWN, &shape);
        }
        if (stk_cuda_own_has_blocks(&shape, convs->config.major)) {
            stk_cuda_own_want(&entry->own, CUDA_OWN_BLOCKS, &shape);
            stk_cuda_own_want(&entry->own, CUDA_OWN_BLOCKS_SUM, &shape);
        } else if (stk_cuda_own_has_rows(&shape, convs->config.major)) {
            stk_cuda_own_want(&entry->own, CUDA_OWN_ROWS, &shape);
            stk_cuda_own_want(&entry->own, CUDA_OWN_BLOCKS_SUM, &shape);
        }
    }
    return STK_OK;
}

/* Compiles the kernels of our own that these entries want. */
static stk_status compile(cuda_convs *convs, conv_entry *const *entries, int entry_count,
                          stk_error *err) {
    const cuda_program **programs = stk_mem_new((size_t)entry_count, sizeof *programs);
    stk_status status = STK_OK;
    int count = 0;
    if (programs == NULL) {
        return STK_FAIL_MEMORY(err, "the kernels beside convolutions");
    }
    for (int i = 0; i < entry_count; i++) {
        const cuda_program *program = &entries[i]->own.program;
        if (program->error.status != STK_OK) {
            status = STK_FAIL(err, program->error.status, "%s", program->error.message);
        } else if (program->op_count > 0) {
            programs[count++] = program;
        }
    }
    if (status == STK_OK && count > 0) {
        status = stk_cuda_kernels_make(convs->config.kernels, programs, count, err);
    }
    stk_mem_free(programs);
    return status;
}

static stk_status run_candidate(cuda_convs *convs, const conv_entry *entry,
                                const cuda_candidate *candidate, stk_error *err) {
    cuda_conv_call call = *entry->call;
    call.shape = &entry->shape;
    return stk_cuda_candidate_run(&convs->makers, candidate, &entry->own, &call, err);
}

/* When the device is lost, libraries report errors of their own; the driver knows the cause. */
static stk_status check_lost(const cuda_convs *convs, stk_error *err) {
    const cuda_driver *driver = convs->config.driver;
    size_t free_bytes;
    size_t total_bytes;
    int result = driver->memory_info(&free_bytes, &total_bytes);
    return stk_cuda_is_lost(result) ? stk_cuda_check(driver, result, "a convolution", err) : STK_OK;
}

/* Whether a candidate runs to its end, which also makes the library load what it needs. */
static bool does_run(cuda_convs *convs, const conv_entry *entry, const cuda_candidate *candidate) {
    return run_candidate(convs, entry, candidate, NULL) == STK_OK &&
           convs->config.driver->stream_wait(convs->config.stream) == CUDA_GOOD;
}

static void load(cuda_convs *convs, conv_entry *entry) {
    void *bytes = NULL;
    size_t count = 0;
    cuda_candidate candidate;
    if (convs->config.store == NULL) {
        return;
    }
    stk_cuda_store_get(convs->config.store, entry->key, &bytes, &count);
    if (bytes != NULL &&
        stk_cuda_candidate_read(&convs->makers, &entry->shape, bytes, count, &candidate)) {
        if (does_run(convs, entry, &candidate)) {
            entry->candidate = candidate;
            entry->ready = true;
            convs->loaded++;
        } else {
            stk_cuda_candidate_free(&convs->makers, &candidate);
        }
    }
    stk_mem_free(bytes);
}

static void keep(cuda_convs *convs, const conv_entry *entry) {
    char *bytes = NULL;
    size_t count = 0;
    if (convs->config.store != NULL) {
        stk_cuda_candidate_write(&convs->makers, &entry->candidate, &bytes, &count);
    }
    if (bytes != NULL) {
        stk_cuda_store_put(convs->config.store, entry->key, bytes, count);
    }
    stk_mem_free(bytes);
}

/* The time of `runs` between two events, after one that fills the queue; < 0: it does not run. */
static float time_runs(cuda_convs *convs, const conv_entry *entry, const cuda_candidate *candidate,
                       int runs) {
    const cuda_driver *driver = convs->config.driver;
    cuda_stream stream = convs->config.stream;
    float ms = -1;
    bool good = run_candidate(convs, entry, candidate, NULL) == STK_OK &&
                driver->event_record(convs->begin, stream) == CUDA_GOOD;
    for (int i = 0; i < runs && good; i++) {
        good = run_candidate(convs, entry, candidate, NULL) == STK_OK;
    }
    good = good && driver->event_record(convs->end, stream) == CUDA_GOOD &&
           driver->event_wait(convs->end) == CUDA_GOOD &&
           driver->event_elapsed_ms(&ms, convs->begin, convs->end) == CUDA_GOOD;
    return good ? ms / (float)runs : -1;
}

/* Puts the candidates that run in order of their times. */
static void rank(cuda_convs *convs, const conv_entry *entry, cuda_comparison *check) {
    float times[CUDA_MOST_CANDIDATES];
    float best = INFINITY;
    for (int i = 0; i < entry->candidates.count; i++) {
        const cuda_candidate *candidate = &entry->candidates.items[i];
        float ms = time_runs(convs, entry, candidate, 1);
        if (ms >= 0 && ms < best * TOO_SLOW && ms < ENOUGH_MS) {
            ms = fminf(ms, time_runs(convs, entry, candidate, TIMED_RUNS));
        }
        convs->timed++;
        if (ms < 0) {
            continue;
        }
        best = fminf(best, ms);
        int at = check->count++;
        for (; at > 0 && times[at - 1] > ms; at--) {
            times[at] = times[at - 1];
            check->order[at] = check->order[at - 1];
        }
        times[at] = ms;
        check->order[at] = i;
    }
}

/* The candidate to take; *chosen < 0: none. */
static stk_status decide(cuda_convs *convs, conv_entry *entry, cuda_comparison *check, int *chosen,
                         stk_error *err) {
    *chosen = check->count > 0 ? stk_cuda_comparison_agreed(check) : -1;
    if (*chosen >= 0 || check->count == 0) {
        return STK_OK;
    }
    if (!stk_cuda_comparison_can_judge(&entry->shape)) {
        *chosen = stk_cuda_comparison_unjudged(check);
        return STK_OK;
    }
    stk_cuda_own_want(&entry->own, CUDA_OWN_WHOLE, &entry->shape);
    stk_status status = compile(convs, &entry, 1, err);
    if (status == STK_OK) {
        *chosen = stk_cuda_comparison_judged(check);
    }
    return status;
}

/* The fastest candidate whose result is confirmed becomes the entry's candidate; *found: there is
 * one.
 */
static stk_status choose(cuda_convs *convs, conv_entry *entry, bool *found, stk_error *err) {
    cuda_candidates *candidates = &entry->candidates;
    cuda_conv_call call = *entry->call;
    cuda_comparison check = {
        .makers = &convs->makers, .candidates = candidates, .own = &entry->own, .call = &call};
    int chosen = -1;
    call.shape = &entry->shape;
    for (int i = 0; i < candidates->count; i++) {
        if (candidates->items[i].dnn != NULL) {
            stk_cuda_dnn_bind(convs->makers.dnn, &candidates->items[i].dnn);
        }
        check.order[i] = i;
    }
    if (convs->config.deterministic) {
        check.count = candidates->count;
    } else {
        rank(convs, entry, &check);
    }
    stk_status status = decide(convs, entry, &check, &chosen, err);
    if (chosen >= 0) {
        entry->candidate = candidates->items[chosen];
        candidates->items[chosen] = (cuda_candidate){.kind = entry->candidate.kind};
    }
    stk_cuda_candidates_free(&convs->makers, candidates);
    *found = chosen >= 0;
    return status;
}

/* No library has a plan that computes the right result. */
static stk_status do_it_ourselves(cuda_convs *convs, conv_entry *entry, stk_error *err) {
    entry->candidate = (cuda_candidate){.kind = CUDA_CANDIDATE_OWN};
    stk_cuda_own_want(&entry->own, CUDA_OWN_WHOLE, &entry->shape);
    stk_status status = compile(convs, &entry, 1, err);
    if (status == STK_OK && !does_run(convs, entry, &entry->candidate)) {
        char words[200];
        status = check_lost(convs, err);
        if (status != STK_OK) {
            return status;
        }
        in_words(&entry->shape, words, sizeof words);
        status = STK_FAIL(err, STK_ERR_DEVICE, "nothing on this GPU can compute %s", words);
    }
    return status;
}

/* State of the threads that build candidates. */
typedef struct gathering {
    cuda_convs *convs;
    conv_entry **pending; /* owned */
    size_t count;
} gathering;

static void free_gathering(gathering *g) {
    if (g != NULL) {
        stk_mem_free(g->pending);
        stk_mem_free(g);
    }
}

static void gather(void *context, size_t task, int thread) {
    gathering *g = context;
    conv_entry *entry = g->pending[task];
    const cuda_convs_config *config = &g->convs->config;
    (void)thread;
    stk_status status = stk_cuda_check(config->driver, config->driver->context_use(config->context),
                                       "use the GPU from another thread", &entry->trouble);
    STK_THEN(status, stk_cuda_candidates_gather(&g->convs->makers, &entry->shape,
                                                &entry->candidates, &entry->trouble));
    entry->gathered = status == STK_OK;
}

static stk_status complete_entry(cuda_convs *convs, conv_entry *entry, stk_error *err) {
    if (!entry->gathered) {
        return STK_FAIL(err, entry->trouble.status, "%s", entry->trouble.message);
    }
    if (stk_pool_must_halt(&convs->halt, convs->halt.longest_s)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while convolutions were timed");
    }
    bool found = false;
    stk_status status = STK_OK;
    if (convs->write_noise_for != NULL) {
        status = convs->write_noise_for(convs->noise_user, entry->number, err);
    }
    STK_THEN(status, choose(convs, entry, &found, err));
    if (status == STK_OK) { /* nothing is stored that was measured on a lost device */
        status = check_lost(convs, err);
    }
    if (status == STK_OK && found) {
        keep(convs, entry);
        entry->ready = true;
    } else if (status == STK_OK && !is_extra(&entry->shape)) {
        status = do_it_ourselves(convs, entry, err);
        entry->ready = status == STK_OK;
    }
    return status;
}

/* The entries from `first` on that are not on disk. */
static stk_status list_pending(cuda_convs *convs, int first, gathering **out, stk_error *err) {
    size_t most = (size_t)(convs->count - first);
    gathering *g = stk_mem_new(1, sizeof *g);
    if (g == NULL || (g->pending = stk_mem_new(most, sizeof *g->pending)) == NULL) {
        stk_mem_free(g);
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    g->convs = convs;
    for (int i = first; i < convs->count; i++) {
        conv_entry *entry = convs->entries[i];
        load(convs, entry);
        if (!entry->ready) {
            stk_cuda_own_want(&entry->own, CUDA_OWN_SUMS, &entry->shape);
            g->pending[g->count++] = entry;
        }
    }
    *out = g;
    return STK_OK;
}

/* All entries from `first` on: from disk, or else by timing. */
static stk_status complete_all(cuda_convs *convs, int first, stk_error *err) {
    gathering *g = NULL;
    stk_status status = list_pending(convs, first, &g, err);
    if (status == STK_OK && g->count > 0) {
        status = compile(convs, g->pending, (int)g->count, err);
    }
    if (status == STK_OK && g->count > 0) {
        stk_pool_end end = stk_pool_run_or_leave(convs->pool, g->count, gather, g, &convs->halt);
        convs->abandoned = end == STK_POOL_LEFT;
        convs->complete_count = first;
        if (end != STK_POOL_DONE) {
            status = STK_FAIL(err, STK_ERR_STOPPED, "stopped while convolutions were looked for");
        }
    }
    for (size_t i = 0; status == STK_OK && i < g->count; i++) {
        int64_t start = stk_clock_ns();
        status = complete_entry(convs, g->pending[i], err);
        stk_pool_note(&convs->halt, start);
    }
    if (!convs->abandoned) {
        free_gathering(g);
    }
    return status;
}

/* Whether all shapes were complete before threads were abandoned. */
static bool are_complete(const cuda_convs *convs, const cuda_conv_call *calls, int count) {
    bool complete = true;
    for (int i = 0; i < count && complete; i++) {
        char key[sizeof((conv_entry *)NULL)->key];
        cuda_conv_shape shape = tidy(calls[i].shape);
        name_of(&shape, convs->config.deterministic, key, sizeof key);
        complete = false;
        for (int at = 0; at < convs->complete_count && !complete; at++) {
            complete = strcmp(convs->entries[at]->key, key) == 0;
        }
    }
    return complete;
}

stk_status stk_cuda_convs_make(cuda_convs *convs, const cuda_conv_call *calls, int count,
                               cuda_convs_write_noise *write_noise_for, void *user,
                               stk_error *err) {
    int first = convs->count;
    if (convs->abandoned) {
        return are_complete(convs, calls, count)
                   ? STK_OK
                   : STK_FAIL(err, STK_ERR_STOPPED, "convolutions are still being looked for");
    }
    convs->write_noise_for = write_noise_for;
    convs->noise_user = user;
    stk_status status = add_entries(convs, calls, count, err);
    if (status == STK_OK && convs->count > first) {
        status = compile(convs, convs->entries + first, convs->count - first, err);
    }
    if (status == STK_OK && convs->count > first) {
        status = complete_all(convs, first, err);
    }
    for (int i = first; i < convs->count; i++) {
        convs->entries[i]->call = NULL;
    }
    while (status != STK_OK && !convs->abandoned && convs->count > first) {
        free_entry(convs, convs->entries[--convs->count]);
    }
    return status;
}

bool stk_cuda_convs_are_abandoned(const cuda_convs *convs) {
    return convs != NULL && convs->abandoned;
}

bool stk_cuda_convs_has(const cuda_convs *convs, const cuda_conv_shape *shape) {
    char key[sizeof((conv_entry *)NULL)->key];
    cuda_conv_shape clean = tidy(shape);
    name_of(&clean, convs->config.deterministic, key, sizeof key);
    const conv_entry *entry = find(convs, key);
    return entry != NULL && entry->ready;
}

stk_status stk_cuda_convs_run(cuda_convs *convs, const cuda_conv_call *call, stk_error *err) {
    char key[sizeof((conv_entry *)NULL)->key];
    cuda_conv_shape shape = tidy(call->shape);
    cuda_conv_call clean = *call;
    clean.shape = &shape;
    name_of(&shape, convs->config.deterministic, key, sizeof key);
    const conv_entry *entry = find(convs, key);
    if (entry == NULL || !entry->ready) {
        char words[200];
        in_words(&shape, words, sizeof words);
        return STK_FAIL(err, STK_ERR_DEVICE, "no plan was made for %s", words);
    }
    stk_error why = {0};
    stk_status status =
        stk_cuda_candidate_run(&convs->makers, &entry->candidate, &entry->own, &clean, &why);
    if (status == STK_OK) {
        return STK_OK;
    }
    stk_status lost = check_lost(convs, err);
    return lost != STK_OK ? lost : STK_FAIL(err, status, "%s", why.message);
}

void stk_cuda_convs_counts(const cuda_convs *convs, int *timed, int *loaded) {
    *timed = convs->timed;
    *loaded = convs->loaded;
}
