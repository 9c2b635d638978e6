/*
 * gpu_sample.c - GPUs by NVML, and their multiprocessors by GPM.
 *
 * NVML's own utilisation is the share of time in which any kernel ran, be it a tiny one. From
 * Hopper on the GPU counts for how long its multiprocessors had work (GPM, which is where DCGM's
 * SM activity comes from), and PCIe bytes besides: both for the time between two looks and at no
 * cost. Without GPM, NVML watches PCIe for 20 ms when it is asked, so that each look asks for one
 * direction only.
 *
 * Whose memory is whose is told by the list of processes. In a container the numbers in it may be
 * those of another namespace, or it is empty: then nothing is known of one's own part.
 */
#include "monitor/gpu_sample.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "monitor/nvml_api.h"

#define KB 1000.0
#define MIB (1024.0 * 1024.0)

/* Processes of a GPU that are looked through: where there are more, nothing is known. */
#define PROCESSES 256

/* Less in use on a GPU whose list of processes is empty is nobody's. */
#define NOBODYS_BYTES (64 * MIB)

/* What slows a GPU down, in words. That it has nothing to do or was told to run slower is not
 * meant here. */
static const struct {
    unsigned bits;
    const char *word;
} reasons[] = {
    {NVML_REASON_POWER_CAP, "power"},
    {NVML_REASON_HEAT | NVML_REASON_HARDWARE_HEAT, "heat"},
    {NVML_REASON_POWER_BRAKE, "power brake"},
    {NVML_REASON_HARDWARE, "hardware slowdown"},
    {NVML_REASON_SYNC_BOOST, "sync boost"},
};

enum { REASONS = sizeof reasons / sizeof *reasons };

/* What is told as a number, and what those of several GPUs become. */
typedef enum merging { MEAN, SUM, MOST } merging;

static const struct {
    size_t place; /* in a sample */
    merging how;
} figures[] = {
    {offsetof(stk_event_sample, gpu_util), MEAN},
    {offsetof(stk_event_sample, sm_activity), MEAN},
    {offsetof(stk_event_sample, gpu_memory_used), SUM},
    {offsetof(stk_event_sample, gpu_memory_total), SUM},
    {offsetof(stk_event_sample, gpu_memory_own), SUM},
    {offsetof(stk_event_sample, gpu_power_w), SUM},
    {offsetof(stk_event_sample, gpu_temperature_c), MOST},
    {offsetof(stk_event_sample, gpu_clock_mhz), MEAN},
    {offsetof(stk_event_sample, gpu_clock_most_mhz), MEAN},
    {offsetof(stk_event_sample, pcie_in), SUM},
    {offsetof(stk_event_sample, pcie_out), SUM},
};

enum { FIGURES = sizeof figures / sizeof *figures };

typedef struct gpu {
    nvml_device device;
    double clock_most_mhz;
    /* Counters of the last look and of this one; NULL: there is no GPM. */
    nvml_gpm_sample gpm[2];
    bool gpm_read;         /* the first of them holds something */
    int direction;         /* of PCIe, that is asked for next */
    double pcie[2];        /* bytes per second, as they were told last; by direction */
    stk_event_sample seen; /* at the last look: the figures, no texts */
} gpu;

struct stk_gpu_eye {
    nvml_api nvml;
    gpu *gpus; /* owned */
    size_t count;
    nvml_gpm_metrics metrics;     /* kept, since it is large */
    char words[1 << REASONS][72]; /* of every set of reasons */
    union {                       /* room for a list of processes */
        nvml_process now[PROCESSES];
        nvml_process_1 before[PROCESSES];
        char room[PROCESSES * NVML_PROCESS_ROOM];
    } list;
};

#define ASK(eye, function, ...) NVML_ASK(&(eye)->nvml, function, __VA_ARGS__)

/* The same, for a number that is told of a GPU. */
#define NUMBER(eye, gpu, function, ...) \
    (ASK(eye, function, (gpu)->device, __VA_ARGS__, &number) == NVML_GOOD ? (double)number : NAN)

/* ---- Opening ---- */

static void open_gpm(stk_gpu_eye *eye, gpu *g) {
    nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    if (ASK(eye, gpm_support, g->device, &support) != NVML_GOOD || support.supported == 0) {
        return;
    }
    if (ASK(eye, gpm_new, &g->gpm[0]) != NVML_GOOD) {
        g->gpm[0] = NULL;
    } else if (ASK(eye, gpm_new, &g->gpm[1]) != NVML_GOOD) {
        (void)ASK(eye, gpm_free, g->gpm[0]);
        g->gpm[0] = NULL;
        g->gpm[1] = NULL;
    }
}

/* "power, heat" for every set of reasons, so that a sample's text needs no room of its own. */
static void write_words(stk_gpu_eye *eye) {
    for (int set = 0; set < 1 << REASONS; set++) {
        size_t used = 0;
        for (int i = 0; i < REASONS; i++) {
            if ((set >> i & 1) != 0) {
                used += (size_t)snprintf(eye->words[set] + used, sizeof eye->words[set] - used,
                                         "%s%s", used > 0 ? ", " : "", reasons[i].word);
            }
        }
    }
}

static void open_gpu(stk_gpu_eye *eye, const char *bus_id, char *why, size_t room) {
    gpu *g = &eye->gpus[eye->count];
    unsigned number = 0;
    int result = ASK(eye, device_at, bus_id, &g->device);
    if (result != NVML_GOOD) {
        snprintf(why, room, "NVML does not find it: %s", stk_nvml_text(&eye->nvml, result));
        return;
    }
    g->clock_most_mhz = NUMBER(eye, g, clock_most, NVML_CLOCK_OF_SM);
    g->pcie[0] = NAN;
    g->pcie[1] = NAN;
    open_gpm(eye, g);
    eye->count++;
}

stk_gpu_eye *stk_gpu_eye_open(const char *const *bus_ids, size_t count, char *why, size_t room) {
    why[0] = '\0';
    stk_gpu_eye *eye = stk_mem_new(1, sizeof *eye);
    gpu *gpus = stk_mem_new(count, sizeof *gpus);
    bool fits = eye != NULL && gpus != NULL;
    if (!fits) {
        snprintf(why, room, "no memory is left for it");
    }
    if (!fits || !stk_nvml_open(&eye->nvml, why, room)) {
        stk_mem_free(gpus);
        stk_mem_free(eye);
        return NULL;
    }
    eye->gpus = gpus;
    for (size_t i = 0; i < count; i++) {
        open_gpu(eye, bus_ids[i], why, room);
    }
    if (eye->count == 0) {
        stk_gpu_eye_close(eye);
        return NULL;
    }
    write_words(eye);
    return eye;
}

void stk_gpu_eye_close(stk_gpu_eye *eye) {
    if (eye == NULL) {
        return;
    }
    for (size_t i = 0; i < 2 * eye->count; i++) {
        nvml_gpm_sample sample = eye->gpus[i / 2].gpm[i % 2];
        if (sample != NULL) {
            (void)ASK(eye, gpm_free, sample);
        }
    }
    stk_nvml_close(&eye->nvml);
    stk_mem_free(eye->gpus);
    stk_mem_free(eye);
}

/* ---- Looking at one ---- */

static void look_at_memory(stk_gpu_eye *eye, const gpu *g, stk_event_sample *sample) {
    nvml_memory_2 apart = {.version = NVML_MEMORY_2_VERSION};
    nvml_memory plain;
    if (ASK(eye, memory_2, g->device, &apart) == NVML_GOOD) {
        sample->gpu_memory_used = (double)apart.used;
        sample->gpu_memory_total = (double)apart.total;
    } else if (ASK(eye, memory, g->device, &plain) == NVML_GOOD) {
        sample->gpu_memory_used = (double)plain.used;
        sample->gpu_memory_total = (double)plain.total;
    }
}

/* Fills eye->list.now; how many there are, or -1: it cannot be told. */
static int list_processes(stk_gpu_eye *eye, const gpu *g) {
    unsigned count = PROCESSES;
    if (ASK(eye, processes, g->device, &count, eye->list.now) == NVML_GOOD) {
        return (int)count;
    }
    count = PROCESSES;
    if (ASK(eye, processes_2, g->device, &count, eye->list.now) == NVML_GOOD) {
        return (int)count;
    }
    count = PROCESSES;
    if (ASK(eye, processes_1, g->device, &count, eye->list.before) != NVML_GOOD) {
        return -1;
    }
    for (int i = (int)count - 1; i >= 0; i--) { /* from the end: the longer ones take more room */
        nvml_process_1 p = eye->list.before[i];
        eye->list.now[i] = (nvml_process){.pid = p.pid, .bytes = p.bytes};
    }
    return (int)count;
}

static bool is_own(const stk_proc_tree *own, pid_t pid) {
    return own != NULL ? stk_proc_tree_find(own, pid) != NULL : pid == getpid();
}

/* One that our numbers of processes have, be it another user's. */
static bool is_visible(pid_t pid) {
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

/*
 * Bytes of our own processes. None of them in a list of which we know everybody is 0; in a list
 * with numbers that nobody has here, or without any though memory is in use, it is not known.
 */
static double look_at_own(stk_gpu_eye *eye, const gpu *g, const stk_proc_tree *own, double used) {
    int count = list_processes(eye, g);
    double bytes = 0;
    bool any = false;
    bool all_visible = count > 0 || (count == 0 && used < NOBODYS_BYTES);
    for (int i = 0; i < count; i++) {
        const nvml_process *p = &eye->list.now[i];
        if (is_own(own, (pid_t)p->pid)) {
            any = true;
            bytes += p->bytes != NVML_NOT_TOLD ? (double)p->bytes : NAN;
        } else {
            all_visible = all_visible && is_visible((pid_t)p->pid);
        }
    }
    return any || all_visible ? bytes : NAN;
}

/* Bits of reasons[]; -1: they are not told. */
static int look_at_reasons(stk_gpu_eye *eye, const gpu *g) {
    unsigned long long bits = 0;
    int set = 0;
    if (ASK(eye, reasons, g->device, &bits) != NVML_GOOD &&
        ASK(eye, reasons_before, g->device, &bits) != NVML_GOOD) {
        return -1;
    }
    /* The hardware gives its reason where it knows it. */
    if ((bits & (NVML_REASON_HARDWARE_HEAT | NVML_REASON_POWER_BRAKE)) != 0) {
        bits &= ~(unsigned long long)NVML_REASON_HARDWARE;
    }
    for (int i = 0; i < REASONS; i++) {
        set |= (bits & reasons[i].bits) != 0 ? 1 << i : 0;
    }
    return set;
}

static double metric_of(const nvml_gpm_metric *metric) {
    return metric->result == NVML_GOOD ? metric->value : NAN;
}

/* What the GPU counted since the last look. */
static void look_by_gpm(stk_gpu_eye *eye, gpu *g, stk_event_sample *sample) {
    nvml_gpm_metrics *m = &eye->metrics;
    if (ASK(eye, gpm_read, g->device, g->gpm[1]) != NVML_GOOD) {
        g->gpm_read = false;
        return;
    }
    m->version = NVML_GPM_VERSION;
    m->count = 3;
    m->first = g->gpm[0];
    m->second = g->gpm[1];
    m->metrics[0] = (nvml_gpm_metric){.id = NVML_GPM_SM_BUSY};
    m->metrics[1] = (nvml_gpm_metric){.id = NVML_GPM_PCIE_IN};
    m->metrics[2] = (nvml_gpm_metric){.id = NVML_GPM_PCIE_OUT};
    if (g->gpm_read && ASK(eye, gpm_metrics, m) == NVML_GOOD) {
        sample->sm_activity = metric_of(&m->metrics[0]);
        sample->pcie_in = MIB * metric_of(&m->metrics[1]);
        sample->pcie_out = MIB * metric_of(&m->metrics[2]);
    }
    g->gpm[0] = m->second;
    g->gpm[1] = m->first;
    g->gpm_read = true;
}

static void look_at_pcie(stk_gpu_eye *eye, gpu *g, stk_event_sample *sample) {
    unsigned number = 0;
    g->pcie[g->direction] = KB * NUMBER(eye, g, pcie, g->direction);
    g->direction = 1 - g->direction;
    sample->pcie_in = g->pcie[NVML_PCIE_TO_GPU];
    sample->pcie_out = g->pcie[NVML_PCIE_FROM_GPU];
}

/* Fills in the figures that the GPU tells. */
static void look_at_gpu(stk_gpu_eye *eye, gpu *g, const stk_proc_tree *own,
                        stk_event_sample *sample) {
    nvml_utilisation percent;
    unsigned number = 0;
    if (ASK(eye, utilisation, g->device, &percent) == NVML_GOOD) {
        sample->gpu_util = percent.gpu;
    }
    look_at_memory(eye, g, sample);
    sample->gpu_memory_own = look_at_own(eye, g, own, sample->gpu_memory_used);
    if (ASK(eye, power, g->device, &number) == NVML_GOOD) {
        sample->gpu_power_w = number / 1000.0;
    }
    sample->gpu_temperature_c = NUMBER(eye, g, temperature, NVML_SENSOR_GPU);
    sample->gpu_clock_mhz = NUMBER(eye, g, clock, NVML_CLOCK_OF_SM);
    sample->gpu_clock_most_mhz = g->clock_most_mhz;
    if (g->gpm[0] != NULL) {
        look_by_gpm(eye, g, sample);
    } else {
        look_at_pcie(eye, g, sample);
    }
}

/* ---- Looking at all ---- */

static double figure_of(const stk_event_sample *sample, int which) {
    double value;
    memcpy(&value, (const char *)sample + figures[which].place, sizeof value);
    return value;
}

static void set_figure(stk_event_sample *sample, int which, double value) {
    memcpy((char *)sample + figures[which].place, &value, sizeof value);
}

static void set_unknown(stk_event_sample *sample) {
    for (int i = 0; i < FIGURES; i++) {
        set_figure(sample, i, NAN);
    }
    sample->gpu_throttled = NULL;
}

/* One more GPU's figure; `told` is how many have told it before. */
static double merged(merging how, double all, double one, int told) {
    if (told == 0) {
        return one;
    }
    return how == MOST ? fmax(all, one) : how == SUM ? all + one : all + (one - all) / (told + 1);
}

/*
 * Looks at each; whether only those count that the processes have memory on. A training that uses
 * one GPU of eight is not idle because the others are.
 */
static bool look_at_each(stk_gpu_eye *eye, const stk_proc_tree *own) {
    bool narrow = false;
    for (size_t i = 0; i < eye->count; i++) {
        gpu *g = &eye->gpus[i];
        set_unknown(&g->seen);
        look_at_gpu(eye, g, own, &g->seen);
        narrow = narrow || (own != NULL && g->seen.gpu_memory_own > 0);
    }
    return narrow;
}

void stk_gpu_eye_look(stk_gpu_eye *eye, const stk_proc_tree *own, stk_event_sample *sample) {
    int told[FIGURES] = {0};
    int all_reasons = -1;
    set_unknown(sample);
    bool narrow = eye != NULL && look_at_each(eye, own);
    for (size_t i = 0; eye != NULL && i < eye->count; i++) {
        const stk_event_sample *one = &eye->gpus[i].seen;
        if (narrow && !(one->gpu_memory_own > 0)) {
            continue;
        }
        for (int f = 0; f < FIGURES; f++) {
            double value = figure_of(one, f);
            if (!isnan(value)) {
                double all = figure_of(sample, f);
                set_figure(sample, f, merged(figures[f].how, all, value, told[f]++));
            }
        }
        int set = look_at_reasons(eye, &eye->gpus[i]);
        all_reasons = set < 0 ? all_reasons : all_reasons < 0 ? set : (all_reasons | set);
    }
    if (all_reasons >= 0) {
        sample->gpu_throttled = eye->words[all_reasons];
    }
}

void stk_gpu_eye_parts(const stk_gpu_eye *eye, const stk_event_sample *sample,
                       stk_part parts[STK_GPU_PARTS]) {
    bool has_gpm = false;
    for (size_t i = 0; i < eye->count; i++) {
        has_gpm = has_gpm || eye->gpus[i].gpm[0] != NULL;
    }
    const stk_part found[STK_GPU_PARTS] = {
        {!isnan(sample->gpu_util), "GPU utilisation"},
        {has_gpm, "SM activity (GPUs have it from Hopper on)"},
        {!isnan(sample->gpu_memory_used), "GPU memory"},
        {!isnan(sample->gpu_power_w), "GPU power"},
        {!isnan(sample->gpu_temperature_c), "GPU temperature"},
        {!isnan(sample->gpu_clock_mhz), "GPU clock"},
        {sample->gpu_throttled != NULL, "throttling"},
        {has_gpm || !isnan(sample->pcie_in) || !isnan(sample->pcie_out), "PCIe"},
    };
    memcpy(parts, found, sizeof found);
}
