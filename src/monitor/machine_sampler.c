/*
 * machine_sampler.c - the sampling thread and the ring of samples that wait to be taken.
 *
 * The thread reads at fixed moments of the monotonic clock, so the interval does not drift. It
 * reads without the lock, which guards only the copies into and out of the ring. The thread also
 * opens NVML, which can take longer than the first steps of a small model.
 */
#include "monitor/machine_sampler.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/proc_tree.h"
#include "base/threads/thread.h"
#include "monitor/gpu_list.h"
#include "monitor/gpu_sampler.h"
#include "monitor/host_sampler.h"

#define RING 600        /* samples that wait to be taken; the oldest are dropped */
#define STOP_WAIT_S 1   /* for a reading that does not end */
#define BUS_ID_BYTES 32 /* a PCI address with its NUL */

struct stk_machine_sampler {
    pthread_t thread;
    stk_host_sampler *host; /* owned; the thread's */
    stk_gpu_sampler *gpu;   /* owned; the thread's; NULL: no GPU, or none can be opened */
    char bus_ids[STK_GPU_MOST][BUS_ID_BYTES]; /* PCI addresses of the GPUs */
    size_t gpu_count;
    pid_t root;         /* of the run's own processes; 0: this process */
    stk_proc_tree tree; /* the run's own processes; owned, the thread's */
    int64_t start_ns;
    int64_t every_ns;
    int core_count;
    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t wake;  /* signals `stopping` */
    pthread_cond_t ended; /* signals `has_ended` */
    bool stopping;
    bool has_ended;
    bool abandoned; /* nobody waits for the thread; it frees the sampler */
    stk_event_sample samples[RING];
    float *cores; /* owned; (RING + 1, core_count): of samples[], then of the sample taken last */
    size_t first; /* index of the oldest sample */
    size_t count; /* samples in the ring */
    bool noted;   /* `notes` is written */
    char notes[1024];
};

static float *cores_of(stk_machine_sampler *s, size_t slot) {
    return s->cores + slot * (size_t)s->core_count;
}

static void destroy(stk_machine_sampler *s) {
    stk_host_sampler_close(s->host);
    stk_gpu_sampler_close(s->gpu);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->ended);
    stk_proc_tree_free(&s->tree);
    stk_mem_free(s->cores);
    stk_mem_free(s);
}

/* Copies a sample with its list of cores, which goes to row `slot` of s->cores. */
static void copy_sample(stk_machine_sampler *s, stk_event_sample *to, size_t slot,
                        const stk_event_sample *from) {
    *to = *from;
    to->cores = cores_of(s, slot);
    memcpy(cores_of(s, slot), from->cores, (size_t)from->core_count * sizeof *from->cores);
}

static void store(stk_machine_sampler *s, const stk_event_sample *sample) {
    if (s->count == RING) {
        s->first = (s->first + 1) % RING;
        s->count--;
    }
    size_t slot = (s->first + s->count++) % RING;
    copy_sample(s, &s->samples[slot], slot, sample);
}

static void read_all(stk_machine_sampler *s, stk_event_sample *sample) {
    int64_t now_ns = stk_clock_ns();
    *sample = (stk_event_sample){.at_s = (double)(now_ns - s->start_ns) / STK_NS_PER_S,
                                 .images_per_second = NAN,
                                 .wait_fraction = NAN,
                                 .batches_ready = -1,
                                 .slots = -1,
                                 .workers = -1};
    const stk_proc_tree *own = s->root > 0 ? &s->tree : NULL;
    if (own != NULL) {
        (void)stk_proc_tree_read(&s->tree, s->root); /* if that fails, the tree is empty */
    }
    stk_host_sampler_read(s->host, now_ns, own, sample);
    stk_gpu_sampler_read(s->gpu, own, sample);
}

/* Adds one figure to the list of missing ones. */
static void add_note(stk_machine_sampler *s, const char *name) {
    size_t used = strlen(s->notes);
    snprintf(s->notes + used, sizeof s->notes - used, "%s%s",
             used > 0 ? ", " : "this machine does not show: ", name);
}

/* Runs before `noted` is set. `no_gpu` says why a GPU could not be opened; "": all could. */
static void write_notes(stk_machine_sampler *s, const stk_event_sample *sample,
                        const char *no_gpu) {
    const char *missing[STK_HOST_FIGURES + STK_GPU_FIGURES];
    int count = stk_host_sampler_missing(s->host, missing);
    if (s->gpu != NULL) {
        count += stk_gpu_sampler_missing(s->gpu, sample, missing + count);
    }
    for (int i = 0; i < count; i++) {
        add_note(s, missing[i]);
    }
    if (no_gpu[0] != '\0') {
        char text[400];
        snprintf(text, sizeof text, "%s (%.320s)", s->gpu != NULL ? "one of the GPUs" : "the GPU",
                 no_gpu);
        add_note(s, text);
    }
}

/* Waits for a moment of the clock, holding the lock; false: the thread must end. */
static bool wait_until(stk_machine_sampler *s, int64_t moment_ns) {
    while (!s->stopping && stk_cond_wait_until(&s->wake, &s->lock, moment_ns)) {
    }
    return !s->stopping;
}

/* The next moment on the grid of `every_ns`; moments that were missed are skipped. */
static int64_t moment_after(int64_t moment_ns, int64_t every_ns, int64_t now_ns) {
    int64_t missed = now_ns > moment_ns ? (now_ns - moment_ns) / every_ns : 0;
    return moment_ns + (missed + 1) * every_ns;
}

static void open_gpus(stk_machine_sampler *s, char *no_gpu, size_t room) {
    const char *bus_ids[STK_GPU_MOST];
    for (size_t i = 0; i < s->gpu_count; i++) {
        bus_ids[i] = s->bus_ids[i];
    }
    if (s->gpu_count > 0) {
        s->gpu = stk_gpu_sampler_open(bus_ids, s->gpu_count, no_gpu, room);
    }
}

static void *work(void *argument) {
    stk_machine_sampler *s = argument;
    stk_event_sample sample;
    char no_gpu[320] = "";
    open_gpus(s, no_gpu, sizeof no_gpu);
    int64_t moment_ns = stk_clock_ns();
    read_all(s, &sample); /* the reading that the first sample starts from */
    write_notes(s, &sample, no_gpu);
    pthread_mutex_lock(&s->lock);
    s->noted = true;
    for (;;) {
        moment_ns = moment_after(moment_ns, s->every_ns, stk_clock_ns());
        if (!wait_until(s, moment_ns)) {
            break;
        }
        pthread_mutex_unlock(&s->lock);
        read_all(s, &sample);
        pthread_mutex_lock(&s->lock);
        store(s, &sample);
    }
    bool alone = s->abandoned;
    s->has_ended = true;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    if (alone) {
        destroy(s);
    }
    return NULL;
}

static stk_status start_thread(stk_machine_sampler *s, stk_error *err) {
    const stk_thread_config config = {.what = "samples the machine", .no_signals = true};
    return stk_thread_start(&s->thread, &config, work, s, err);
}

static void make_conditions(stk_machine_sampler *s) {
    pthread_mutex_init(&s->lock, NULL);
    stk_cond_init(&s->wake);
    stk_cond_init(&s->ended);
}

stk_status stk_machine_sampler_start(stk_machine_sampler **sampler,
                                     const stk_machine_sampler_config *config, stk_error *err) {
    stk_machine_sampler *s = stk_mem_new(1, sizeof *s);
    if (s == NULL) {
        return STK_FAIL_MEMORY(err, "sampling the machine");
    }
    stk_host_sampler_config host = {.proc = config->proc, .groups = config->groups};
    make_conditions(s);
    for (; s->gpu_count < config->gpu_count && s->gpu_count < STK_GPU_MOST; s->gpu_count++) {
        snprintf(s->bus_ids[s->gpu_count], BUS_ID_BYTES, "%s", config->gpu_bus_ids[s->gpu_count]);
    }
    s->root = config->root;
    s->start_ns = config->start_ns;
    s->every_ns = (int64_t)((config->every_s > 0 ? config->every_s : 1) * STK_NS_PER_S);
    stk_status status = stk_host_sampler_open(&s->host, &host, err);
    if (status == STK_OK) {
        s->core_count = stk_host_sampler_cores(s->host);
        s->cores = stk_mem_new((RING + 1) * (size_t)s->core_count, sizeof *s->cores);
        status = s->cores != NULL ? STK_OK : STK_FAIL_MEMORY(err, "sampling the machine");
    }
    STK_THEN(status, start_thread(s, err));
    if (status != STK_OK) {
        destroy(s);
        return status;
    }
    *sampler = s;
    return STK_OK;
}

void stk_machine_sampler_stop(stk_machine_sampler *sampler) {
    stk_machine_sampler *s = sampler;
    if (s == NULL) {
        return;
    }
    int64_t until_ns = stk_clock_ns() + STOP_WAIT_S * STK_NS_PER_S;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    while (!s->has_ended && stk_cond_wait_until(&s->ended, &s->lock, until_ns)) {
    }
    bool ended = s->has_ended;
    s->abandoned = !ended;
    if (!ended) {
        pthread_detach(s->thread);
    }
    pthread_mutex_unlock(&s->lock);
    if (ended) {
        pthread_join(s->thread, NULL);
        destroy(s);
    }
}

bool stk_machine_sampler_take(stk_machine_sampler *sampler, stk_event_sample *sample) {
    if (sampler == NULL) {
        return false;
    }
    pthread_mutex_lock(&sampler->lock);
    bool found = sampler->count > 0;
    if (found) {
        copy_sample(sampler, sample, RING, &sampler->samples[sampler->first]);
        sampler->first = (sampler->first + 1) % RING;
        sampler->count--;
    }
    pthread_mutex_unlock(&sampler->lock);
    return found;
}

const char *stk_machine_sampler_notes(const stk_machine_sampler *sampler) {
    stk_machine_sampler *s = (stk_machine_sampler *)sampler; /* only the lock changes */
    if (s == NULL) {
        return "";
    }
    pthread_mutex_lock(&s->lock);
    const char *notes = s->noted ? s->notes : "";
    pthread_mutex_unlock(&s->lock);
    return notes;
}
