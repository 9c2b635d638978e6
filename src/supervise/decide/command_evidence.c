/*
 * command_evidence.c - a command from outside: looks at the machine, and CPU times of its
 * processes.
 *
 * Looks are kept for an hour. The CPU time of every process is kept for the last two minutes, look
 * by look, so that what a process did in any stretch can be told; a longer stretch is told by its
 * last two minutes.
 *
 * Who drives the GPU and who feeds it is not told by anybody. A command is a shell, a launcher or
 * the training itself; below launchers stand the drivers, several where several GPUs are used, and
 * what works below a driver feeds it.
 */
#include "supervise/decide/command_evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define LOOKS 3600    /* an hour */
#define READINGS 120  /* of a process's CPU time */
#define PROCESSES 512 /* more are not looked at */

/* Work of a GPU: kernels for a twentieth of the time, in three of four looks that follow each
 * other. A desktop's drawing or a context that is made stays below. */
#define WORK_UTIL 5.0
#define WORK_LOOKS 3
#define WORK_WINDOW 4

/* Where a GPU does not tell its utilisation memory has to do: more than a context by itself has. */
#define WORK_BYTES 600e6

/* Less than this over the level before is not taken for the command's. */
#define USED_BYTES 64e6

/* Below this a GPU waits for something (the rule of `stoker run`). */
#define ACTIVITY_LOW 60.0 /* percent */

/* A process that feeds works for four fifths of its time when it is what others wait for; the rest
 * is handing over. One that waits for a core works as well: others have taken it. */
#define FEEDER_BUSY 80.0 /* percent of a core */
#define FEEDER_LEAST 2.0 /* one that does less does not feed: a pool that waits */
#define CORES_FULL 90.0  /* percent of all, by the command: there is nothing left to feed with */
#define CORES_TAKEN 97.0 /* the same by anybody */

/* Looks at which one waits for a disk catch a moment each: in every second of them is much, since
 * others of its kind go on. */
#define BLOCKED_SHARE 0.5
#define IOWAIT_HIGH 20.0 /* percent */

/* One that does next to nothing is a launcher where what it has started holds four times as much
 * memory, as a training does beside a wrapper, or has processes at work itself. A driver holds more
 * than its workers. */
#define IDLE 1.0 /* percent of a core */
#define LAUNCHER_MEMORY 4

/* Programs that start others and wait, whatever CPU time they took for starting themselves. */
static const char *const launchers[] = {
    "sh",         "bash",      "dash", "zsh",    "env",   "timeout", "nice",   "nohup",
    "stdbuf",     "time",      "sudo", "uv",     "conda", "pdm",     "poetry", "torchrun",
    "accelerate", "deepspeed", "srun", "mpirun", "tmux",  "script",
};

typedef struct look {
    double at_s;
    double util; /* percent; NaN: not known, as in all that follow */
    double sm_activity;
    double memory;       /* bytes, of the command */
    bool is_told;        /* by the list of processes, not by what there is more than before */
    double memory_total; /* bytes */
    double clock;        /* share of the highest, 0 to 1 */
    double cpu;          /* percent of the cores */
    double cpu_own;
    double iowait;
    double throttled; /* 1: something holds the clock down, 0: nothing */
    double blocked;   /* 1: a process waits for a disk, 0: none does */
} look;

/* A process that was seen at one look or more. */
typedef struct seen_process {
    pid_t pid;
    pid_t parent;
    uint64_t born;
    uint64_t first;       /* number of the look at which it was seen first */
    uint64_t last;        /* and last */
    int64_t resident;     /* bytes, when it was seen last */
    double cpu[READINGS]; /* seconds since it was born; look N at N % READINGS */
    bool ready[READINGS]; /* it ran, or would have if there had been a core; the same */
    bool is_launcher;     /* by its name */
} seen_process;

struct stk_command_evidence {
    double began_s;
    double level;  /* bytes that the GPUs held without the command; NaN: not known */
    uint64_t next; /* number of the next look; from 0 with each command */
    double working_since;
    int cores;          /* that the machine shows; 0: not known */
    char throttled[72]; /* what held the clock down last */
    pid_t command;      /* its first process */
    look looks[LOOKS];  /* look N at N % LOOKS */
    seen_process processes[PROCESSES];
    size_t process_count;
};

/* ---- Means of what is known ---- */

typedef struct mean {
    double sum;
    int count;
} mean;

static void add_to(mean *m, double value) {
    if (!isnan(value)) {
        m->sum += value;
        m->count++;
    }
}

static double mean_of(mean m) {
    return m.count > 0 ? m.sum / m.count : NAN;
}

/* ---- Looks ---- */

stk_status stk_command_evidence_new(stk_command_evidence **symptoms, stk_error *err) {
    *symptoms = stk_mem_new(1, sizeof **symptoms);
    if (*symptoms == NULL) {
        return STK_FAIL_MEMORY(err, "looking at a command");
    }
    stk_command_evidence_begin(*symptoms, NULL, 0);
    return STK_OK;
}

void stk_command_evidence_free(stk_command_evidence *symptoms) {
    stk_mem_free(symptoms);
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

static const look *look_at(const stk_command_evidence *s, uint64_t number) {
    return &s->looks[number % LOOKS];
}

/* The first look that lies behind a moment and whose forerunner is kept as well; s->next: there is
 * none. */
static uint64_t first_after(const stk_command_evidence *s, double from_s) {
    uint64_t number = s->next > LOOKS ? s->next - LOOKS + 1 : 0;
    while (number < s->next && look_at(s, number)->at_s <= from_s) {
        number++;
    }
    return number;
}

/* The command's part of the memory: what its processes have, or what there is more than before. */
static double memory_of(stk_command_evidence *s, const stk_event_sample *sample) {
    if (isnan(s->level)) {
        s->level = sample->gpu_memory_used;
    }
    if (!isnan(sample->gpu_memory_own)) {
        return sample->gpu_memory_own;
    }
    return isnan(sample->gpu_memory_used) ? NAN : fmax(0, sample->gpu_memory_used - s->level);
}

/* A GPU that works for others is not meant, as far as that is told. */
static bool is_work(const look *l) {
    if (isnan(l->util)) {
        return l->memory >= WORK_BYTES;
    }
    return l->util >= WORK_UTIL && !(l->is_told && l->memory < USED_BYTES);
}

static void find_work(stk_command_evidence *s) {
    int working = 0;
    double since_s = NAN;
    uint64_t first = s->next > WORK_WINDOW ? s->next - WORK_WINDOW : 0;
    for (uint64_t number = first; isnan(s->working_since) && number < s->next; number++) {
        if (is_work(look_at(s, number))) {
            since_s = working++ == 0 ? look_at(s, number)->at_s : since_s;
        }
    }
    if (working >= WORK_LOOKS) {
        s->working_since = since_s;
    }
}

double stk_command_evidence_working_since(const stk_command_evidence *symptoms) {
    return symptoms->working_since;
}

/* ---- Processes ---- */

static bool has_launchers_name(const char *name) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (strcmp(name, launchers[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A place for one that was not seen before; NULL: all are taken. */
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

static void see_process(stk_command_evidence *s, const stk_proc *proc) {
    seen_process *p = process_of(s, proc);
    if (p != NULL) {
        /* One that was missed at a look did nothing there. */
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
    look *l = &s->looks[s->next % LOOKS];
    bool is_held = sample->gpu_throttled != NULL && sample->gpu_throttled[0] != '\0';
    bool is_blocked = false;
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->items[i].depth > 0) {
            see_process(s, &tree->items[i]);
            is_blocked = is_blocked || tree->items[i].state == 'D';
        }
    }
    *l = (look){.at_s = sample->at_s,
                .util = sample->gpu_util,
                .sm_activity = sample->sm_activity,
                .memory = memory_of(s, sample),
                .is_told = !isnan(sample->gpu_memory_own),
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

/* ---- Who drives, who feeds ---- */

/* A process in a stretch. */
typedef struct part {
    int parent;     /* index of it; -1: none that was there */
    double lived_s; /* in the stretch; 0: it was not there */
    double used_s;  /* CPU */
    int looks;      /* at it */
    int ready;      /* of them */
    bool is_launcher;
} part;

/* The looks from the first to the last of a stretch, as far as readings of processes are kept, and
 * the parts of all processes. */
typedef struct stretch {
    const stk_command_evidence *s;
    uint64_t first;
    uint64_t last;
    part parts[PROCESSES];
} stretch;

/* When a look's time begins: where that of the look before ends. */
static double begin_of(const stk_command_evidence *s, uint64_t number) {
    return number > 0 ? look_at(s, number - 1)->at_s : s->began_s;
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

static part part_of(const stretch *t, const seen_process *p) {
    part found = {.parent = -1, .is_launcher = p->is_launcher};
    if (p->last >= t->first) {
        bool is_old = p->first < t->first; /* and was read at the look before the stretch */
        double before_s = is_old ? p->cpu[(t->first - 1) % READINGS] : 0;
        found.parent = parent_of(t->s, p);
        found.lived_s = look_at(t->s, p->last)->at_s - begin_of(t->s, is_old ? t->first : p->first);
        found.used_s = fmax(0, p->cpu[p->last % READINGS] - before_s);
        for (uint64_t i = is_old ? t->first : p->first; i <= p->last; i++) {
            found.looks++;
            found.ready += p->ready[i % READINGS] ? 1 : 0;
        }
    }
    return found;
}

/* Percent of a core. */
static double busy(const part *p) {
    return p->lived_s > 0 ? 100 * p->used_s / p->lived_s : 0;
}

/* By what they have started; see IDLE. */
static void find_launchers(stretch *t) {
    for (size_t i = 0; i < t->s->process_count; i++) {
        int parent = t->parts[i].parent;
        int above = parent >= 0 ? t->parts[parent].parent : -1;
        if (parent >= 0 && busy(&t->parts[parent]) < IDLE &&
            t->s->processes[parent].resident <= t->s->processes[i].resident / LAUNCHER_MEMORY) {
            t->parts[parent].is_launcher = true;
        }
        if (above >= 0 && busy(&t->parts[above]) < IDLE && busy(&t->parts[i]) >= FEEDER_LEAST) {
            t->parts[above].is_launcher = true;
        }
    }
}

static void find_parts(stretch *t, const stk_command_evidence *s, uint64_t first) {
    t->s = s;
    t->last = s->next - 1;
    t->first = t->last - first < READINGS - 1 ? first : t->last - READINGS + 2;
    for (size_t i = 0; i < s->process_count; i++) {
        t->parts[i] = part_of(t, &s->processes[i]);
    }
    find_launchers(t);
}

typedef enum role { OTHER, DRIVER, FEEDER } role;

/* What is below one that is no launcher feeds it; what lost its parents is not told apart. */
static role role_of(const stretch *t, size_t index) {
    int at = (int)index;
    for (int i = 0; t->parts[at].parent >= 0 && i < PROCESSES; i++) {
        at = t->parts[at].parent;
        if (!t->parts[at].is_launcher) {
            return FEEDER;
        }
    }
    return t->s->processes[at].pid == t->s->command ? DRIVER : OTHER;
}

static void tell_processes(const stk_command_evidence *s, uint64_t first,
                           stk_evidence_summary *seen) {
    stretch t;
    part feeders = {0};
    find_parts(&t, s, first);
    double seconds = look_at(s, t.last)->at_s - begin_of(s, t.first);
    for (size_t i = 0; i < s->process_count; i++) {
        const part *p = &t.parts[i];
        role does = p->lived_s > 0 ? role_of(&t, i) : OTHER;
        if (does == DRIVER) {
            seen->driver_busy = fmax(seen->driver_busy, busy(p)); /* fmax leaves NaN out */
        } else if (does == FEEDER && busy(p) >= FEEDER_LEAST) {
            feeders.used_s += p->used_s;
            feeders.lived_s += p->lived_s;
            feeders.looks += p->looks;
            feeders.ready += p->ready;
        }
    }
    if (feeders.lived_s > 0 && seconds > 0) {
        /* Those of one epoch and of the next are not there at the same time. */
        seen->feeders = (int)fmax(1, round(feeders.lived_s / seconds));
        seen->feeders_busy = fmax(busy(&feeders), 100.0 * feeders.ready / feeders.looks);
    }
}

/* ---- What was seen ---- */

static bool waits_for_disk(const stk_evidence_summary *seen) {
    return seen->blocked >= BLOCKED_SHARE || seen->iowait >= IOWAIT_HIGH;
}

static bool has_busy_feeders(const stk_evidence_summary *seen) {
    return seen->feeders > 0 && seen->feeders_busy >= FEEDER_BUSY;
}

/*
 * A single core is full as soon as one process launches without a pause. Whoever else fills the
 * cores takes them from those that feed.
 */
static bool has_full_cores(const stk_command_evidence *s, const stk_evidence_summary *seen) {
    return (seen->cpu_own >= CORES_FULL && (seen->feeders > 0 || s->cores > 1)) ||
           (seen->cpu >= CORES_TAKEN && seen->feeders > 0);
}

static bool is_input_bound(const stk_command_evidence *s, const stk_evidence_summary *seen) {
    return seen->has_gpu && seen->gpu_used && seen->activity < ACTIVITY_LOW &&
           (has_busy_feeders(seen) || has_full_cores(s, seen) || waits_for_disk(seen));
}

void stk_command_evidence_since(const stk_command_evidence *s, double from_s,
                                stk_evidence_summary *seen) {
    mean util = {0};
    mean cpu_own = {0};
    mean cpu = {0};
    mean iowait = {0};
    mean blocked = {0};
    bool worked = false;
    uint64_t first = first_after(s, isnan(from_s) ? s->began_s : from_s);
    *seen = (stk_evidence_summary){.memory_used = NAN,
                                   .memory_total = NAN,
                                   .memory_share = NAN,
                                   .feeders_busy = NAN,
                                   .driver_busy = NAN};
    for (uint64_t number = first; number < s->next; number++) {
        const look *l = look_at(s, number);
        add_to(&util, l->util);
        add_to(&cpu_own, l->cpu_own);
        add_to(&cpu, l->cpu);
        add_to(&iowait, l->iowait);
        add_to(&blocked, l->blocked);
        worked = worked || is_work(l);
        seen->has_gpu = seen->has_gpu || !isnan(l->util) || !isnan(l->memory_total);
        /* The most that it had: what a larger batch needs comes on top of it. The GPUs are those
         * that it was on then; before its first memory and after its last they are all. */
        if (isnan(seen->memory_total) || !(l->memory < seen->memory_used)) {
            seen->memory_total = isnan(l->memory_total) ? seen->memory_total : l->memory_total;
        }
        seen->memory_used = fmax(seen->memory_used, l->memory);
        seen->samples++;
    }
    seen->memory_share = seen->memory_used / seen->memory_total;
    seen->gpu_used = worked || seen->memory_used >= USED_BYTES;
    seen->activity = mean_of(util);
    seen->cpu_own = mean_of(cpu_own);
    seen->cpu = mean_of(cpu);
    seen->iowait = mean_of(iowait);
    seen->blocked = mean_of(blocked);
    if (seen->samples > 0) {
        seen->seconds = look_at(s, s->next - 1)->at_s - begin_of(s, first);
        tell_processes(s, first, seen);
    }
    seen->input_bound = is_input_bound(s, seen);
}

/* ---- The verdict ---- */

/* A GPU that the command leaves alone says nothing of it. */
static bool is_on_gpu(const stk_evidence_summary *seen) {
    return seen->has_gpu && seen->gpu_used;
}

/* Part of the time in which the step is computed. Without a GPU a driver that is busy computes. */
static double computing(const stk_evidence_summary *seen) {
    double percent = is_on_gpu(seen) ? seen->activity : seen->driver_busy;
    return isnan(percent) ? 1 : fmin(1, percent / 100);
}

static stk_times times_of(const stk_evidence_summary *seen) {
    double compute_s = seen->seconds * computing(seen);
    double rest_s = seen->seconds - compute_s;
    bool on_gpu = is_on_gpu(seen);
    bool waits = on_gpu ? seen->input_bound : computing(seen) < ACTIVITY_LOW / 100;
    stk_times times = {.compute_s = compute_s, .total_s = seen->seconds};
    if (waits && waits_for_disk(seen) && !has_busy_feeders(seen)) {
        times.read_s = rest_s;
    } else if (waits && (on_gpu || has_busy_feeders(seen))) {
        times.decode_s = rest_s;
    } else if (on_gpu) {
        times.other_s = rest_s;
    } else {
        times.compute_s = seen->seconds; /* by threads or processes that are not told apart */
    }
    return times;
}

static int64_t images_of_epoch(const stk_progress *progress, int64_t batch) {
    return progress->steps > 0 && batch > 0 ? progress->steps * batch : -1;
}

/* What the samples of a stretch say of the GPU. */
static void add_gpu(const stk_command_evidence *s, double from_s, double to_s, stk_evidence *e) {
    mean sm = {0};
    mean clock = {0};
    mean throttled = {0};
    for (uint64_t number = first_after(s, from_s); number < s->next; number++) {
        const look *l = look_at(s, number);
        if (!(l->at_s > to_s)) {
            add_to(&sm, l->sm_activity);
            add_to(&clock, l->clock);
            add_to(&throttled, l->throttled);
        }
    }
    e->sm_activity = mean_of(sm);
    e->gpu_clock = mean_of(clock);
    e->throttled = s->throttled;
    e->throttled_share = mean_of(throttled);
}

void stk_command_evidence_judge(const stk_command_evidence *s, const stk_evidence_summary *seen,
                                const stk_progress *progress, double from_s, double to_s,
                                int64_t batch, bool first, stk_verdict *verdict) {
    int64_t images = batch > 0 ? batch : progress->batch;
    double start_s = isnan(from_s) ? s->began_s : from_s;
    double rate = stk_progress_image_rate(progress, images, start_s, to_s);
    double steps = stk_progress_step_rate(progress, start_s, to_s) * seen->seconds;
    stk_evidence e = {.seconds = seen->seconds,
                      .steps = steps >= 0 ? llround(steps) : -1,
                      .images_per_second = rate,
                      .times = times_of(seen),
                      .rates = {.storage = NAN,
                                .decode = NAN,
                                .workers = seen->feeders,
                                .cores = s->cores,
                                .copy = NAN,
                                .step = rate / computing(seen),
                                .on_host = !is_on_gpu(seen),
                                .batch = images > 0 ? images : 0,
                                .fixed_s = NAN,
                                .source_px = NAN,
                                .images = images_of_epoch(progress, images)},
                      .is_gpu = is_on_gpu(seen),
                      .is_foreign = true,
                      .prefetch = -1,
                      .storage_share = NAN,
                      .cache_hits = NAN,
                      .cache_room = NAN,
                      .gpu_util = seen->activity,
                      .gpu_memory_used = seen->memory_used,
                      .gpu_memory_total = seen->memory_total,
                      .cpu = seen->cpu,
                      .cpu_own = seen->cpu_own,
                      .iowait = seen->iowait,
                      .largest_batch = -1};
    add_gpu(s, start_s, to_s, &e);
    stk_verdict_judge(&e, first, verdict);
}
