/*
 * command_evidence.c - samples of the machine and CPU times of the command's processes.
 *
 * Samples are kept for an hour. The CPU time of every process is kept for the last two minutes,
 * sample by sample; a longer interval is judged by its last two minutes.
 *
 * Nobody says which process drives the GPU and which load data for it. The command's first process
 * is a launcher (a shell, torchrun) or the training itself. Below launchers are the drivers,
 * several where several GPUs are used; processes that work below a driver are its loaders.
 */
#include "supervise/decide/command_evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define SAMPLES 3600  /* an hour */
#define READINGS 120  /* CPU times of a process, one per sample */
#define PROCESSES 512 /* more are ignored */

/* A GPU works when kernels run for a twentieth of the time in three of four successive samples. A
 * desktop, or a context being made, stays below. */
#define WORK_UTIL 5.0
#define WORK_SAMPLES 3
#define WORK_WINDOW 4

/* Without utilisation, memory decides: more than a context alone holds. */
#define WORK_BYTES 600e6

/* Smallest rise of memory in use that counts as the command's. */
#define USED_BYTES 64e6

/* Below this the GPU waits for something. */
#define ACTIVITY_LOW 60.0 /* percent */

/* Loaders that limit are busy for four fifths of their time; in the rest they pass batches on. A
 * loader that waits for a core counts as busy. */
#define LOADER_BUSY 80.0 /* percent of a core */
#define LOADER_LEAST 2.0 /* percent of a core: a process that does less is no loader */
#define CORES_FULL 90.0  /* percent of all cores, by the command: none is left for loading */
#define CORES_TAKEN 97.0 /* percent of all cores, by anybody */

/* Storage limits if a process waits for a disk in at least this share of samples. A sample catches
 * one moment, and other loaders continue meanwhile, so half of the samples is much. */
#define BLOCKED_SHARE 0.5
#define IOWAIT_HIGH 20.0 /* percent */

/* An idle process is a launcher if a child holds four times its memory, as a training does beside
 * its wrapper, or if a child has working children. A driver holds more memory than its loaders. */
#define IDLE 1.0 /* percent of a core */
#define LAUNCHER_MEMORY 4

/* Programs that start others and wait, even if they used CPU time to start. */
static const char *const launchers[] = {
    "sh",         "bash",      "dash", "zsh",    "env",   "timeout", "nice",   "nohup",
    "stdbuf",     "time",      "sudo", "uv",     "conda", "pdm",     "poetry", "torchrun",
    "accelerate", "deepspeed", "srun", "mpirun", "tmux",  "script",
};

typedef struct evidence_sample {
    double at_s;
    double util; /* percent; NaN: unknown, as for all figures below */
    double sm_activity;
    double jpeg_util;
    double memory;       /* bytes that the command holds on the GPUs */
    bool memory_is_own;  /* from NVML's process list, not the rise above the level */
    double memory_total; /* bytes */
    double clock;        /* share of the highest clock, 0 to 1 */
    double cpu;          /* percent of the cores */
    double cpu_own;
    double iowait;
    double throttled; /* 1: throttled, 0: not */
    double blocked;   /* 1: a process waits for a disk, 0: none */
} evidence_sample;

/* A process of the command. */
typedef struct seen_process {
    pid_t pid;
    pid_t parent;
    uint64_t born;
    uint64_t first;       /* number of the first sample with it */
    uint64_t last;        /* number of the last sample with it */
    int64_t resident;     /* bytes, in the last sample */
    double cpu[READINGS]; /* CPU seconds since its start; sample N at N % READINGS */
    bool ready[READINGS]; /* it ran or waited for a core; sample N at N % READINGS */
    bool is_launcher;     /* by its name */
} seen_process;

struct stk_command_evidence {
    double began_s;
    double level;                  /* bytes held on the GPUs without the command; NaN: unknown */
    uint64_t next;                 /* number of the next sample; 0 for each new command */
    double working_since;          /* when the GPU began to work; NaN: not yet */
    int cores;                     /* of the machine; 0: unknown */
    char throttled[72];            /* last throttle reasons */
    pid_t command;                 /* its first process */
    evidence_sample ring[SAMPLES]; /* sample N at N % SAMPLES */
    seen_process processes[PROCESSES];
    size_t process_count;
};

/* ---- Means that leave unknown values out ---- */

typedef struct known_mean {
    double sum;
    int count;
} known_mean;

static void add_to(known_mean *m, double value) {
    if (!isnan(value)) {
        m->sum += value;
        m->count++;
    }
}

static double mean_of(known_mean m) {
    return m.count > 0 ? m.sum / m.count : NAN;
}

/* ---- Samples ---- */

stk_status stk_command_evidence_new(stk_command_evidence **evidence, stk_error *err) {
    *evidence = stk_mem_new(1, sizeof **evidence);
    if (*evidence == NULL) {
        return STK_FAIL_MEMORY(err, "the evidence of a command");
    }
    stk_command_evidence_begin(*evidence, NULL, 0);
    return STK_OK;
}

void stk_command_evidence_free(stk_command_evidence *evidence) {
    stk_mem_free(evidence);
}

void stk_command_evidence_begin(stk_command_evidence *s, const stk_event_sample *level,
                                double at_s) {
    s->began_s = at_s;
    s->level = level != NULL ? level->gpu_memory_used : NAN;
    s->next = 0;
    s->working_since = NAN;
    s->cores = 0;
    s->throttled[0] = '\0';
    s->command = 0;
    s->process_count = 0;
}

static const evidence_sample *sample_at(const stk_command_evidence *s, uint64_t number) {
    return &s->ring[number % SAMPLES];
}

/* The first sample after a moment whose predecessor is still in the ring; s->next: none. */
static uint64_t first_after(const stk_command_evidence *s, double from_s) {
    uint64_t number = s->next > SAMPLES ? s->next - SAMPLES + 1 : 0;
    while (number < s->next && sample_at(s, number)->at_s <= from_s) {
        number++;
    }
    return number;
}

/* GPU memory of the command: that of its processes, or the rise since before its start. */
static double memory_of(stk_command_evidence *s, const stk_event_sample *sample) {
    if (isnan(s->level)) {
        s->level = sample->gpu_memory_used;
    }
    if (!isnan(sample->gpu_memory_own)) {
        return sample->gpu_memory_own;
    }
    return isnan(sample->gpu_memory_used) ? NAN : fmax(0, sample->gpu_memory_used - s->level);
}

/* Whether the GPU works for the command, judged by the known figures. */
static bool is_work(const evidence_sample *l) {
    if (isnan(l->util)) {
        return l->memory >= WORK_BYTES;
    }
    return l->util >= WORK_UTIL && !(l->memory_is_own && l->memory < USED_BYTES);
}

static void find_work(stk_command_evidence *s) {
    int working = 0;
    double since_s = NAN;
    uint64_t first = s->next > WORK_WINDOW ? s->next - WORK_WINDOW : 0;
    for (uint64_t number = first; isnan(s->working_since) && number < s->next; number++) {
        if (is_work(sample_at(s, number))) {
            since_s = working++ == 0 ? sample_at(s, number)->at_s : since_s;
        }
    }
    if (working >= WORK_SAMPLES) {
        s->working_since = since_s;
    }
}

double stk_command_evidence_working_since(const stk_command_evidence *evidence) {
    return evidence->working_since;
}

/* ---- Processes ---- */

static bool has_launchers_name(const char *name) {
    for (size_t i = 0; i < STK_COUNT(launchers); i++) {
        if (strcmp(name, launchers[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A free entry for a new process; NULL: none. */
static seen_process *new_process(stk_command_evidence *s) {
    for (size_t i = 0; i < s->process_count; i++) {
        if (s->processes[i].last + READINGS < s->next) {
            return &s->processes[i];
        }
    }
    return s->process_count < PROCESSES ? &s->processes[s->process_count++] : NULL;
}

static seen_process *process_of(stk_command_evidence *s, const stk_proc *proc) {
    for (size_t i = 0; i < s->process_count; i++) {
        if (s->processes[i].pid == proc->pid && s->processes[i].born == proc->born) {
            return &s->processes[i];
        }
    }
    seen_process *added = new_process(s);
    if (added != NULL) {
        added->pid = proc->pid;
        added->born = proc->born;
        added->first = s->next;
    }
    return added;
}

static void add_process(stk_command_evidence *s, const stk_proc *proc) {
    seen_process *p = process_of(s, proc);
    if (p != NULL) {
        /* A process that a sample missed did nothing then. */
        for (uint64_t i = p->first < s->next ? p->last + 1 : s->next; i < s->next; i++) {
            p->cpu[i % READINGS] = p->cpu[p->last % READINGS];
            p->ready[i % READINGS] = false;
        }
        p->parent = proc->parent;
        p->last = s->next;
        p->resident = proc->resident;
        p->cpu[s->next % READINGS] = proc->cpu_s;
        p->ready[s->next % READINGS] = proc->state == 'R';
        p->is_launcher = has_launchers_name(proc->name);
    }
}

void stk_command_evidence_add(stk_command_evidence *s, const stk_event_sample *sample,
                              const stk_proc_tree *tree, pid_t command) {
    evidence_sample *l = &s->ring[s->next % SAMPLES];
    bool is_held = sample->gpu_throttled != NULL && sample->gpu_throttled[0] != '\0';
    bool is_blocked = false;
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->items[i].depth > 0) {
            add_process(s, &tree->items[i]);
            is_blocked = is_blocked || tree->items[i].state == 'D';
        }
    }
    *l = (evidence_sample){.at_s = sample->at_s,
                           .util = sample->gpu_util,
                           .sm_activity = sample->sm_activity,
                           .jpeg_util = sample->jpeg_util,
                           .memory = memory_of(s, sample),
                           .memory_is_own = !isnan(sample->gpu_memory_own),
                           .memory_total = sample->gpu_memory_total,
                           .clock = sample->gpu_clock_mhz / sample->gpu_clock_most_mhz,
                           .cpu = sample->cpu,
                           .cpu_own = sample->cpu_own,
                           .iowait = sample->iowait,
                           .throttled = sample->gpu_throttled != NULL ? is_held : NAN,
                           .blocked = tree->count > 0 ? is_blocked : NAN};
    if (is_held) {
        snprintf(s->throttled, sizeof s->throttled, "%s", sample->gpu_throttled);
    }
    s->cores = sample->core_count > 0 ? sample->core_count : s->cores;
    s->command = command;
    s->next++;
    find_work(s);
}

/* ---- Drivers and loaders ---- */

/* What a process did in an interval. */
typedef struct process_share {
    int parent;     /* index of the parent; -1: unknown */
    double lived_s; /* seconds that it existed in the interval */
    double used_s;  /* CPU seconds */
    int samples;    /* of the process */
    int ready;      /* samples in which it ran or waited for a core */
    bool is_launcher;
} process_share;

/* An interval, cut to the samples for which CPU times are kept, with all its processes. */
typedef struct process_interval {
    const stk_command_evidence *s;
    uint64_t first;
    uint64_t last;
    process_share shares[PROCESSES];
} process_interval;

/* When the interval of a sample begins: at the previous sample. */
static double begin_of(const stk_command_evidence *s, uint64_t number) {
    return number > 0 ? sample_at(s, number - 1)->at_s : s->began_s;
}

static int parent_of(const stk_command_evidence *s, const seen_process *p) {
    int found = -1;
    for (size_t i = 0; i < s->process_count; i++) {
        const seen_process *one = &s->processes[i];
        if (one->pid == p->parent && (found < 0 || one->last > s->processes[found].last)) {
            found = (int)i;
        }
    }
    return found;
}

static process_share share_of(const process_interval *t, const seen_process *p) {
    process_share found = {.parent = -1, .is_launcher = p->is_launcher};
    if (p->last >= t->first) {
        bool is_old = p->first < t->first; /* it existed before the interval */
        double before_s = is_old ? p->cpu[(t->first - 1) % READINGS] : 0;
        found.parent = parent_of(t->s, p);
        found.lived_s =
            sample_at(t->s, p->last)->at_s - begin_of(t->s, is_old ? t->first : p->first);
        found.used_s = fmax(0, p->cpu[p->last % READINGS] - before_s);
        for (uint64_t i = is_old ? t->first : p->first; i <= p->last; i++) {
            found.samples++;
            found.ready += p->ready[i % READINGS] ? 1 : 0;
        }
    }
    return found;
}

/* Percent of a core. */
static double busy(const process_share *p) {
    return p->lived_s > 0 ? 100 * p->used_s / p->lived_s : 0;
}

/* Finds launchers by their children; see IDLE. */
static void find_launchers(process_interval *t) {
    for (size_t i = 0; i < t->s->process_count; i++) {
        int parent = t->shares[i].parent;
        int above = parent >= 0 ? t->shares[parent].parent : -1;
        if (parent >= 0 && busy(&t->shares[parent]) < IDLE &&
            t->s->processes[parent].resident <= t->s->processes[i].resident / LAUNCHER_MEMORY) {
            t->shares[parent].is_launcher = true;
        }
        if (above >= 0 && busy(&t->shares[above]) < IDLE && busy(&t->shares[i]) >= LOADER_LEAST) {
            t->shares[above].is_launcher = true;
        }
    }
}

static void find_shares(process_interval *t, const stk_command_evidence *s, uint64_t first) {
    t->s = s;
    t->last = s->next - 1;
    t->first = t->last - first < READINGS - 1 ? first : t->last - READINGS + 2;
    for (size_t i = 0; i < s->process_count; i++) {
        t->shares[i] = share_of(t, &s->processes[i]);
    }
    find_launchers(t);
}

typedef enum process_role { OTHER, DRIVER, LOADER } process_role;

/* A process below one that is no launcher is its loader. A process that lost its parents has no
 * known role. */
static process_role role_of(const process_interval *t, size_t index) {
    int at = (int)index;
    for (int i = 0; t->shares[at].parent >= 0 && i < PROCESSES; i++) {
        at = t->shares[at].parent;
        if (!t->shares[at].is_launcher) {
            return LOADER;
        }
    }
    return t->s->processes[at].pid == t->s->command ? DRIVER : OTHER;
}

static void sum_up_processes(const stk_command_evidence *s, uint64_t first,
                             stk_evidence_summary *summary) {
    process_interval t;
    process_share loaders = {0};
    find_shares(&t, s, first);
    double seconds = sample_at(s, t.last)->at_s - begin_of(s, t.first);
    for (size_t i = 0; i < s->process_count; i++) {
        const process_share *p = &t.shares[i];
        process_role does = p->lived_s > 0 ? role_of(&t, i) : OTHER;
        if (does == DRIVER) {
            summary->driver_busy = fmax(summary->driver_busy, busy(p)); /* fmax leaves NaN out */
        } else if (does == LOADER && busy(p) >= LOADER_LEAST) {
            loaders.used_s += p->used_s;
            loaders.lived_s += p->lived_s;
            loaders.samples += p->samples;
            loaders.ready += p->ready;
        }
    }
    if (loaders.lived_s > 0 && seconds > 0) {
        /* Loaders of successive epochs do not exist at the same time. */
        summary->loaders = (int)fmax(1, round(loaders.lived_s / seconds));
        summary->loaders_busy = fmax(busy(&loaders), 100.0 * loaders.ready / loaders.samples);
    }
}

/* ---- Summary ---- */

static bool waits_for_disk(const stk_evidence_summary *summary) {
    return summary->blocked >= BLOCKED_SHARE || summary->iowait >= IOWAIT_HIGH;
}

static bool has_busy_loaders(const stk_evidence_summary *summary) {
    return summary->loaders > 0 && summary->loaders_busy >= LOADER_BUSY;
}

/* A single core is full as soon as one process launches without a pause; that alone is no lack of
 * cores. Other programs that fill the cores take them from the loaders. */
static bool has_full_cores(const stk_command_evidence *s, const stk_evidence_summary *summary) {
    return (summary->cpu_own >= CORES_FULL && (summary->loaders > 0 || s->cores > 1)) ||
           (summary->cpu >= CORES_TAKEN && summary->loaders > 0);
}

static bool is_input_bound(const stk_command_evidence *s, const stk_evidence_summary *summary) {
    return summary->has_gpu && summary->gpu_used && summary->activity < ACTIVITY_LOW &&
           (has_busy_loaders(summary) || has_full_cores(s, summary) || waits_for_disk(summary));
}

void stk_command_evidence_since(const stk_command_evidence *s, double from_s,
                                stk_evidence_summary *summary) {
    known_mean util = {0};
    known_mean cpu_own = {0};
    known_mean cpu = {0};
    known_mean iowait = {0};
    known_mean blocked = {0};
    bool worked = false;
    uint64_t first = first_after(s, isnan(from_s) ? s->began_s : from_s);
    *summary = (stk_evidence_summary){.memory_used = NAN,
                                      .memory_total = NAN,
                                      .memory_share = NAN,
                                      .loaders_busy = NAN,
                                      .driver_busy = NAN};
    for (uint64_t number = first; number < s->next; number++) {
        const evidence_sample *l = sample_at(s, number);
        add_to(&util, l->util);
        add_to(&cpu_own, l->cpu_own);
        add_to(&cpu, l->cpu);
        add_to(&iowait, l->iowait);
        add_to(&blocked, l->blocked);
        worked = worked || is_work(l);
        summary->has_gpu = summary->has_gpu || !isnan(l->util) || !isnan(l->memory_total);
        /* The largest use counts, since a larger batch adds to it. The total is of the GPUs in use
         * at that time; a sample without memory of the command covers all GPUs. */
        if (isnan(summary->memory_total) || !(l->memory < summary->memory_used)) {
            summary->memory_total =
                isnan(l->memory_total) ? summary->memory_total : l->memory_total;
        }
        summary->memory_used = fmax(summary->memory_used, l->memory);
        summary->samples++;
    }
    summary->memory_share = summary->memory_used / summary->memory_total;
    summary->gpu_used = worked || summary->memory_used >= USED_BYTES;
    summary->activity = mean_of(util);
    summary->cpu_own = mean_of(cpu_own);
    summary->cpu = mean_of(cpu);
    summary->iowait = mean_of(iowait);
    summary->blocked = mean_of(blocked);
    if (summary->samples > 0) {
        summary->seconds = sample_at(s, s->next - 1)->at_s - begin_of(s, first);
        sum_up_processes(s, first, summary);
    }
    summary->input_bound = is_input_bound(s, summary);
}

/* ---- The verdict ---- */

/* A GPU that the command does not use is no evidence. */
static bool is_on_gpu(const stk_evidence_summary *summary) {
    return summary->has_gpu && summary->gpu_used;
}

/* Share of time in which the step is computed. Without a GPU, the busy driver computes. */
static double computing(const stk_evidence_summary *summary) {
    double percent = is_on_gpu(summary) ? summary->activity : summary->driver_busy;
    return isnan(percent) ? 1 : fmin(1, percent / 100);
}

static stk_times times_of(const stk_evidence_summary *summary) {
    double compute_s = summary->seconds * computing(summary);
    double rest_s = summary->seconds - compute_s;
    bool on_gpu = is_on_gpu(summary);
    bool waits = on_gpu ? summary->input_bound : computing(summary) < ACTIVITY_LOW / 100;
    stk_times times = {.compute_s = compute_s, .total_s = summary->seconds};
    if (waits && waits_for_disk(summary) && !has_busy_loaders(summary)) {
        times.read_s = rest_s;
    } else if (waits && (on_gpu || has_busy_loaders(summary))) {
        times.decode_s = rest_s;
    } else if (on_gpu) {
        times.other_s = rest_s;
    } else {
        times.compute_s = summary->seconds; /* nothing is known to wait */
    }
    return times;
}

static int64_t images_of_epoch(const stk_command_progress *progress, int64_t batch) {
    return progress->steps > 0 && batch > 0 ? progress->steps * batch : -1;
}

/* Adds the GPU figures of the samples in an interval. */
static void add_gpu(const stk_command_evidence *s, double from_s, double to_s, stk_evidence *e) {
    known_mean sm = {0};
    known_mean jpeg = {0};
    known_mean clock = {0};
    known_mean throttled = {0};
    for (uint64_t number = first_after(s, from_s); number < s->next; number++) {
        const evidence_sample *l = sample_at(s, number);
        if (!(l->at_s > to_s)) {
            add_to(&sm, l->sm_activity);
            add_to(&jpeg, l->jpeg_util);
            add_to(&clock, l->clock);
            add_to(&throttled, l->throttled);
        }
    }
    e->sm_activity = mean_of(sm);
    e->jpeg_util = mean_of(jpeg);
    e->gpu_clock = mean_of(clock);
    e->throttled = s->throttled;
    e->throttled_share = mean_of(throttled);
}

void stk_command_evidence_judge(const stk_command_evidence *s, const stk_evidence_summary *summary,
                                const stk_command_progress *progress, double from_s, double to_s,
                                int64_t batch, stk_verdict *verdict) {
    int64_t images = batch > 0 ? batch : progress->batch;
    double start_s = isnan(from_s) ? s->began_s : from_s;
    double rate = stk_progress_image_rate(progress, images, start_s, to_s);
    double steps = stk_progress_step_rate(progress, start_s, to_s) * summary->seconds;
    stk_evidence e = {.seconds = summary->seconds,
                      .steps = steps >= 0 ? llround(steps) : -1,
                      .images_per_second = rate,
                      .times = times_of(summary),
                      .rates = {.storage = NAN,
                                .decode = NAN,
                                .workers = summary->loaders,
                                .cores = s->cores,
                                .copy = NAN,
                                .step = rate / computing(summary),
                                .on_host = !is_on_gpu(summary),
                                .batch = images > 0 ? images : 0,
                                .fixed_s = NAN,
                                .source_px = NAN,
                                .images = images_of_epoch(progress, images)},
                      .is_gpu = is_on_gpu(summary),
                      .is_foreign = true,
                      .prefetch = -1,
                      .storage_share = NAN,
                      .cache_hits = NAN,
                      .cache_room = NAN,
                      .device_decoded = NAN,
                      .gpu_util = summary->activity,
                      .gpu_memory_used = summary->memory_used,
                      .gpu_memory_total = summary->memory_total,
                      .cpu = summary->cpu,
                      .cpu_own = summary->cpu_own,
                      .iowait = summary->iowait,
                      .largest_batch = -1};
    add_gpu(s, start_s, to_s, &e);
    stk_verdict_judge(&e, false, verdict);
}
