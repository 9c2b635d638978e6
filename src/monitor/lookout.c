/*
 * lookout.c - a thread that looks and a ring of what it saw.
 *
 * Looks come at fixed moments of the monotonic clock, so that they do not drift, and outside of the
 * lock, which is held for copies alone. The GPU's library is opened by the thread, too: starting it
 * can take longer than a small model's first steps.
 */
#include "monitor/lookout.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/proc_tree.h"
#include "base/threads/thread.h"
#include "monitor/gpu_list.h"
#include "monitor/gpu_sample.h"
#include "monitor/host_sample.h"

#define RING 600       /* samples that wait to be taken, at most */
#define PATIENCE_S 1   /* with a look that does not end */
#define PLACE_BYTES 32 /* of a GPU's name on the bus */
#define NS_PER_S 1000000000

struct stk_lookout {
    pthread_t thread;
    stk_host_eye *host; /* owned; the thread's */
    stk_gpu_eye *gpu;   /* owned; the thread's; NULL: none, or none can be looked at */
    char places[STK_GPU_MOST][PLACE_BYTES]; /* of the GPUs that are looked at */
    size_t place_count;
    pid_t root;         /* 0: this process */
    stk_proc_tree tree; /* below the root; owned, the thread's */
    int64_t start_ns;
    int64_t every_ns;
    int core_count;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t wake;  /* the thread shall end */
    pthread_cond_t ended; /* it has */
    bool stopping;
    bool has_ended;
    bool abandoned; /* nobody waits for the thread: it frees the lookout */
    stk_event_sample samples[RING];
    float *cores; /* owned; (RING + 1, core_count): theirs, and of the one that was taken */
    size_t first; /* the oldest one */
    size_t count;
    bool noted;
    char notes[1024];
};

static float *cores_of(stk_lookout *l, size_t slot) {
    return l->cores + slot * (size_t)l->core_count;
}

static void destroy(stk_lookout *l) {
    stk_host_eye_close(l->host);
    stk_gpu_eye_close(l->gpu);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->wake);
    pthread_cond_destroy(&l->ended);
    stk_proc_tree_free(&l->tree);
    stk_mem_free(l->cores);
    stk_mem_free(l);
}

/* Copies a sample with what it points to; `slot` is where its cores then are. */
static void copy_sample(stk_lookout *l, stk_event_sample *to, size_t slot,
                        const stk_event_sample *from) {
    *to = *from;
    to->cores = cores_of(l, slot);
    memcpy(cores_of(l, slot), from->cores, (size_t)from->core_count * sizeof *from->cores);
}

static void keep(stk_lookout *l, const stk_event_sample *sample) {
    if (l->count == RING) {
        l->first = (l->first + 1) % RING;
        l->count--;
    }
    size_t slot = (l->first + l->count++) % RING;
    copy_sample(l, &l->samples[slot], slot, sample);
}

static void look(stk_lookout *l, stk_event_sample *sample) {
    int64_t now_ns = stk_clock_ns();
    *sample = (stk_event_sample){.at_s = (double)(now_ns - l->start_ns) / NS_PER_S,
                                 .images_per_second = NAN,
                                 .wait_fraction = NAN,
                                 .batches_ready = -1,
                                 .slots = -1,
                                 .workers = -1};
    const stk_proc_tree *own = l->root > 0 ? &l->tree : NULL;
    if (own != NULL) {
        (void)stk_proc_tree_read(&l->tree, l->root); /* what cannot be read is an empty tree */
    }
    stk_host_eye_look(l->host, now_ns, own, sample);
    stk_gpu_eye_look(l->gpu, own, sample);
}

/* One more of what cannot be seen. */
static void add_note(stk_lookout *l, const char *name) {
    size_t used = strlen(l->notes);
    snprintf(l->notes + used, sizeof l->notes - used, "%s%s",
             used > 0 ? ", " : "this machine does not show: ", name);
}

/* Before anybody may see the notes. `no_gpu` is why there is no eye for one. */
static void write_notes(stk_lookout *l, const stk_event_sample *sample, const char *no_gpu) {
    stk_part parts[STK_HOST_PARTS + STK_GPU_PARTS];
    int count = STK_HOST_PARTS;
    stk_host_eye_parts(l->host, parts);
    if (l->gpu != NULL) {
        stk_gpu_eye_parts(l->gpu, sample, parts + count);
        count += STK_GPU_PARTS;
    }
    for (int i = 0; i < count; i++) {
        if (!parts[i].seen) {
            add_note(l, parts[i].name);
        }
    }
    if (no_gpu[0] != '\0') {
        char text[400];
        snprintf(text, sizeof text, "%s (%.320s)", l->gpu != NULL ? "one of the GPUs" : "the GPU",
                 no_gpu);
        add_note(l, text);
    }
}

/* Waits for a moment of the clock, with the lock; false: the thread shall end. */
static bool wait_until(stk_lookout *l, int64_t moment_ns) {
    struct timespec until = {.tv_sec = (time_t)(moment_ns / NS_PER_S),
                             .tv_nsec = (long)(moment_ns % NS_PER_S)};
    int result = 0;
    while (!l->stopping && result == 0) {
        result = pthread_cond_timedwait(&l->wake, &l->lock, &until);
    }
    return !l->stopping;
}

/* The next of the moments that lie `every` apart: those that were missed are left out. */
static int64_t moment_after(int64_t moment_ns, int64_t every_ns, int64_t now_ns) {
    int64_t missed = now_ns > moment_ns ? (now_ns - moment_ns) / every_ns : 0;
    return moment_ns + (missed + 1) * every_ns;
}

static void open_gpus(stk_lookout *l, char *no_gpu, size_t room) {
    const char *bus_ids[STK_GPU_MOST];
    for (size_t i = 0; i < l->place_count; i++) {
        bus_ids[i] = l->places[i];
    }
    if (l->place_count > 0) {
        l->gpu = stk_gpu_eye_open(bus_ids, l->place_count, no_gpu, room);
    }
}

static void *work(void *argument) {
    stk_lookout *l = argument;
    stk_event_sample sample;
    char no_gpu[320] = "";
    open_gpus(l, no_gpu, sizeof no_gpu);
    int64_t moment_ns = stk_clock_ns();
    look(l, &sample); /* what the first sample is counted from */
    write_notes(l, &sample, no_gpu);
    pthread_mutex_lock(&l->lock);
    l->noted = true;
    for (;;) {
        moment_ns = moment_after(moment_ns, l->every_ns, stk_clock_ns());
        if (!wait_until(l, moment_ns)) {
            break;
        }
        pthread_mutex_unlock(&l->lock);
        look(l, &sample);
        pthread_mutex_lock(&l->lock);
        keep(l, &sample);
    }
    bool alone = l->abandoned;
    l->has_ended = true;
    pthread_cond_signal(&l->ended);
    pthread_mutex_unlock(&l->lock);
    if (alone) {
        destroy(l);
    }
    return NULL;
}

static stk_status start_thread(stk_lookout *l, stk_error *err) {
    const stk_thread_config config = {.what = "looks at the machine", .no_signals = true};
    return stk_thread_start(&l->thread, &config, work, l, err);
}

static void make_conditions(stk_lookout *l) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, &monotonic);
    pthread_cond_init(&l->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

stk_status stk_lookout_start(stk_lookout **lookout, const stk_lookout_config *config,
                             stk_error *err) {
    stk_lookout *l = stk_mem_new(1, sizeof *l);
    if (l == NULL) {
        return STK_FAIL_MEMORY(err, "looking at the machine");
    }
    stk_host_config host = {.proc = config->proc, .groups = config->groups};
    make_conditions(l);
    for (; l->place_count < config->gpu_count && l->place_count < STK_GPU_MOST; l->place_count++) {
        snprintf(l->places[l->place_count], PLACE_BYTES, "%s", config->gpu_bus_ids[l->place_count]);
    }
    l->root = config->root;
    l->start_ns = config->start_ns;
    l->every_ns = (int64_t)((config->every_s > 0 ? config->every_s : 1) * NS_PER_S);
    stk_status status = stk_host_eye_open(&l->host, &host, err);
    if (status == STK_OK) {
        l->core_count = stk_host_eye_cores(l->host);
        l->cores = stk_mem_new((RING + 1) * (size_t)l->core_count, sizeof *l->cores);
        status = l->cores != NULL ? STK_OK : STK_FAIL_MEMORY(err, "looking at the machine");
    }
    status = status == STK_OK ? start_thread(l, err) : status;
    if (status != STK_OK) {
        destroy(l);
        return status;
    }
    *lookout = l;
    return STK_OK;
}

void stk_lookout_stop(stk_lookout *lookout) {
    stk_lookout *l = lookout;
    if (l == NULL) {
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->wake);
    int result = 0;
    while (!l->has_ended && result == 0) {
        result = pthread_cond_timedwait(&l->ended, &l->lock, &until);
    }
    bool ended = l->has_ended;
    l->abandoned = !ended;
    if (!ended) {
        pthread_detach(l->thread);
    }
    pthread_mutex_unlock(&l->lock);
    if (ended) {
        pthread_join(l->thread, NULL);
        destroy(l);
    }
}

bool stk_lookout_take(stk_lookout *lookout, stk_event_sample *sample) {
    if (lookout == NULL) {
        return false;
    }
    pthread_mutex_lock(&lookout->lock);
    bool found = lookout->count > 0;
    if (found) {
        copy_sample(lookout, sample, RING, &lookout->samples[lookout->first]);
        lookout->first = (lookout->first + 1) % RING;
        lookout->count--;
    }
    pthread_mutex_unlock(&lookout->lock);
    return found;
}

const char *stk_lookout_notes(const stk_lookout *lookout) {
    stk_lookout *l = (stk_lookout *)lookout; /* the lock is no part of what it is */
    if (l == NULL) {
        return "";
    }
    pthread_mutex_lock(&l->lock);
    const char *notes = l->noted ? l->notes : "";
    pthread_mutex_unlock(&l->lock);
    return notes;
}
