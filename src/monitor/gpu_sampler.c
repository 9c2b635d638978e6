/*
 * gpu_sampler.c - GPU figures from NVML; SM activity from its performance monitor (GPM).
 *
 * NVML's utilisation is the share of time in which any kernel ran, however small. From Hopper on
 * the GPU also counts how long its multiprocessors had work (GPM, the source of DCGM's SM activity)
 * and the PCIe bytes, both for the time between two readings and at no cost. Without GPM, a
 * question about PCIe blocks for 20 ms while NVML measures, so each reading asks for one direction
 * only.
 *
 * NVML's process list says whose memory is whose. In a container its process ids may belong to
 * another namespace, or the list is empty: then the run's own memory is unknown.
 */
#include "monitor/gpu_sampler.h"

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

/* Longest process list; on a GPU with more processes the run's own memory is unknown. */
#define PROCESSES 256

/* A GPU with an empty process list and less memory in use than this is really unused. */
#define NOBODYS_BYTES (64 * MIB)

/* Throttle reasons in words. An idle GPU, or one that was set to a lower clock, is not throttled.
 */
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

enum { REASONS = STK_COUNT(reasons) };

/* How a figure of several GPUs becomes one. */
typedef enum gpu_merge { MEAN, SUM, MOST } gpu_merge;

static const struct {
    size_t offset; /* of a double in stk_event_sample */
    gpu_merge how;
} figures[] = {
    {offsetof(stk_event_sample, gpu_util), MEAN},
    {offsetof(stk_event_sample, sm_activity), MEAN},
    {offsetof(stk_event_sample, jpeg_util), MEAN},
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

enum { FIGURES = STK_COUNT(figures) };

typedef struct sampled_gpu {
    nvml_device device;
    double clock_most_mhz;
    nvml_gpm_sample gpm[2]; /* counters of the previous and of this reading; NULL: no GPM */
    bool gpm_read;          /* gpm[0] is filled in */
    int direction;          /* of PCIe, to ask for next; without GPM */
    double pcie[2];         /* last known bytes per second, by direction; without GPM */
    stk_event_sample seen;  /* figures of the last reading; texts unused */
} sampled_gpu;

struct stk_gpu_sampler {
    nvml_api nvml;
    sampled_gpu *gpus; /* owned */
    size_t count;
    nvml_gpm_metrics metrics;     /* here, since it is too large for the stack */
    char words[1 << REASONS][72]; /* text for every set of reasons: "power, heat" */
    union {                       /* a process list */
        nvml_process now[PROCESSES];
        nvml_process_1 before[PROCESSES];
        char room[PROCESSES * NVML_PROCESS_ROOM];
    } list;
};

#define ASK(sampler, function, ...) NVML_ASK(&(sampler)->nvml, function, __VA_ARGS__)

/* Asks for one number of a GPU; needs a local `number` of the right type. */
#define NUMBER(sampler, gpu, function, ...)                                                    \
    (ASK(sampler, function, (gpu)->device, __VA_ARGS__, &number) == NVML_GOOD ? (double)number \
                                                                              : NAN)

/* ---- Opening ---- */

static void open_gpm(stk_gpu_sampler *sampler, sampled_gpu *g) {
    nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    if (ASK(sampler, gpm_support, g->device, &support) != NVML_GOOD || support.supported == 0) {
        return;
    }
    if (ASK(sampler, gpm_new, &g->gpm[0]) != NVML_GOOD) {
        g->gpm[0] = NULL;
    } else if (ASK(sampler, gpm_new, &g->gpm[1]) != NVML_GOOD) {
        (void)ASK(sampler, gpm_free, g->gpm[0]);
        g->gpm[0] = NULL;
        g->gpm[1] = NULL;
    }
}

/* Texts for all sets of reasons, so that a sample can point to one of them. */
static void write_words(stk_gpu_sampler *sampler) {
    for (int set = 0; set < 1 << REASONS; set++) {
        size_t used = 0;
        for (int i = 0; i < REASONS; i++) {
            if ((set >> i & 1) != 0) {
                used +=
                    (size_t)snprintf(sampler->words[set] + used, sizeof sampler->words[set] - used,
                                     "%s%s", used > 0 ? ", " : "", reasons[i].word);
            }
        }
    }
}

static void open_gpu(stk_gpu_sampler *sampler, const char *bus_id, char *why, size_t room) {
    sampled_gpu *g = &sampler->gpus[sampler->count];
    unsigned number = 0;
    int result = ASK(sampler, device_at, bus_id, &g->device);
    if (result != NVML_GOOD) {
        snprintf(why, room, "NVML does not find it: %s", stk_nvml_text(&sampler->nvml, result));
        return;
    }
    g->clock_most_mhz = NUMBER(sampler, g, clock_most, NVML_CLOCK_OF_SM);
    g->pcie[0] = NAN;
    g->pcie[1] = NAN;
    open_gpm(sampler, g);
    sampler->count++;
}

stk_gpu_sampler *stk_gpu_sampler_open(const char *const *bus_ids, size_t count, char *why,
                                      size_t room) {
    why[0] = '\0';
    stk_gpu_sampler *sampler = stk_mem_new(1, sizeof *sampler);
    sampled_gpu *gpus = stk_mem_new(count, sizeof *gpus);
    bool fits = sampler != NULL && gpus != NULL;
    if (!fits) {
        snprintf(why, room, "no memory is left for it");
    }
    if (!fits || !stk_nvml_open(&sampler->nvml, why, room)) {
        stk_mem_free(gpus);
        stk_mem_free(sampler);
        return NULL;
    }
    sampler->gpus = gpus;
    for (size_t i = 0; i < count; i++) {
        open_gpu(sampler, bus_ids[i], why, room);
    }
    if (sampler->count == 0) {
        stk_gpu_sampler_close(sampler);
        return NULL;
    }
    write_words(sampler);
    return sampler;
}

void stk_gpu_sampler_close(stk_gpu_sampler *sampler) {
    if (sampler == NULL) {
        return;
    }
    for (size_t i = 0; i < 2 * sampler->count; i++) {
        nvml_gpm_sample sample = sampler->gpus[i / 2].gpm[i % 2];
        if (sample != NULL) {
            (void)ASK(sampler, gpm_free, sample);
        }
    }
    stk_nvml_close(&sampler->nvml);
    stk_mem_free(sampler->gpus);
    stk_mem_free(sampler);
}

/* ---- Reading one GPU ---- */

static void read_memory(stk_gpu_sampler *sampler, const sampled_gpu *g, stk_event_sample *sample) {
    nvml_memory_2 apart = {.version = NVML_MEMORY_2_VERSION};
    nvml_memory plain;
    if (ASK(sampler, memory_2, g->device, &apart) == NVML_GOOD) {
        sample->gpu_memory_used = (double)apart.used;
        sample->gpu_memory_total = (double)apart.total;
    } else if (ASK(sampler, memory, g->device, &plain) == NVML_GOOD) {
        sample->gpu_memory_used = (double)plain.used;
        sample->gpu_memory_total = (double)plain.total;
    }
}

/* Fills sampler->list.now; returns the number of processes, -1: unknown. */
static int list_processes(stk_gpu_sampler *sampler, const sampled_gpu *g) {
    unsigned count = PROCESSES;
    if (ASK(sampler, processes, g->device, &count, sampler->list.now) == NVML_GOOD) {
        return (int)count;
    }
    count = PROCESSES;
    if (ASK(sampler, processes_2, g->device, &count, sampler->list.now) == NVML_GOOD) {
        return (int)count;
    }
    count = PROCESSES;
    if (ASK(sampler, processes_1, g->device, &count, sampler->list.before) != NVML_GOOD) {
        return -1;
    }
    for (int i = (int)count - 1; i >= 0;
         i--) { /* backwards, in place: the new entries are longer */
        nvml_process_1 p = sampler->list.before[i];
        sampler->list.now[i] = (nvml_process){.pid = p.pid, .bytes = p.bytes};
    }
    return (int)count;
}

static bool is_own(const stk_proc_tree *own, pid_t pid) {
    return own != NULL ? stk_proc_tree_find(own, pid) != NULL : pid == getpid();
}

/* Whether the process exists in our namespace, as whatever user. */
static bool is_visible(pid_t pid) {
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

/*
 * Bytes of the run's own processes. If none is listed and all listed processes exist here, that is
 * 0. If the list has unknown process ids, or is empty although memory is in use, it is unknown.
 */
static double read_own_memory(stk_gpu_sampler *sampler, const sampled_gpu *g,
                              const stk_proc_tree *own, double used) {
    int count = list_processes(sampler, g);
    double bytes = 0;
    bool any = false;
    bool all_visible = count > 0 || (count == 0 && used < NOBODYS_BYTES);
    for (int i = 0; i < count; i++) {
        const nvml_process *p = &sampler->list.now[i];
        if (is_own(own, (pid_t)p->pid)) {
            any = true;
            bytes += p->bytes != NVML_NOT_TOLD ? (double)p->bytes : NAN;
        } else {
            all_visible = all_visible && is_visible((pid_t)p->pid);
        }
    }
    return any || all_visible ? bytes : NAN;
}

/* Bits of reasons[]; -1: unknown. */
static int read_reasons(stk_gpu_sampler *sampler, const sampled_gpu *g) {
    unsigned long long bits = 0;
    int set = 0;
    if (ASK(sampler, reasons, g->device, &bits) != NVML_GOOD &&
        ASK(sampler, reasons_before, g->device, &bits) != NVML_GOOD) {
        return -1;
    }
    /* The general bit adds nothing where the hardware gives a reason. */
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

/* What the GPU counted since the last reading. */
static void read_gpm(stk_gpu_sampler *sampler, sampled_gpu *g, stk_event_sample *sample) {
    nvml_gpm_metrics *m = &sampler->metrics;
    if (ASK(sampler, gpm_read, g->device, g->gpm[1]) != NVML_GOOD) {
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
    if (g->gpm_read && ASK(sampler, gpm_metrics, m) == NVML_GOOD) {
        sample->sm_activity = metric_of(&m->metrics[0]);
        sample->pcie_in = MIB * metric_of(&m->metrics[1]);
        sample->pcie_out = MIB * metric_of(&m->metrics[2]);
    }
    g->gpm[0] = m->second;
    g->gpm[1] = m->first;
    g->gpm_read = true;
}

static void read_pcie(stk_gpu_sampler *sampler, sampled_gpu *g, stk_event_sample *sample) {
    unsigned number = 0;
    g->pcie[g->direction] = KB * NUMBER(sampler, g, pcie, g->direction);
    g->direction = 1 - g->direction;
    sample->pcie_in = g->pcie[NVML_PCIE_TO_GPU];
    sample->pcie_out = g->pcie[NVML_PCIE_FROM_GPU];
}

/* Fills in the figures that the GPU offers; the others stay as they are. */
static void read_gpu(stk_gpu_sampler *sampler, sampled_gpu *g, const stk_proc_tree *own,
                     stk_event_sample *sample) {
    nvml_utilisation percent;
    unsigned number = 0;
    unsigned period_us = 0;
    if (ASK(sampler, utilisation, g->device, &percent) == NVML_GOOD) {
        sample->gpu_util = percent.gpu;
    }
    if (ASK(sampler, jpeg, g->device, &number, &period_us) == NVML_GOOD) {
        sample->jpeg_util = number;
    }
    read_memory(sampler, g, sample);
    sample->gpu_memory_own = read_own_memory(sampler, g, own, sample->gpu_memory_used);
    if (ASK(sampler, power, g->device, &number) == NVML_GOOD) {
        sample->gpu_power_w = number / 1000.0;
    }
    sample->gpu_temperature_c = NUMBER(sampler, g, temperature, NVML_SENSOR_GPU);
    sample->gpu_clock_mhz = NUMBER(sampler, g, clock, NVML_CLOCK_OF_SM);
    sample->gpu_clock_most_mhz = g->clock_most_mhz;
    if (g->gpm[0] != NULL) {
        read_gpm(sampler, g, sample);
    } else {
        read_pcie(sampler, g, sample);
    }
}

/* ---- Merging all GPUs ---- */

static double figure_of(const stk_event_sample *sample, int which) {
    double value;
    memcpy(&value, (const char *)sample + figures[which].offset, sizeof value);
    return value;
}

static void set_figure(stk_event_sample *sample, int which, double value) {
    memcpy((char *)sample + figures[which].offset, &value, sizeof value);
}

static void set_unknown(stk_event_sample *sample) {
    for (int i = 0; i < FIGURES; i++) {
        set_figure(sample, i, NAN);
    }
    sample->gpu_throttled = NULL;
}

/* Adds one GPU's figure to `all`, which is made of `count` figures. */
static double merged(gpu_merge how, double all, double one, int count) {
    if (count == 0) {
        return one;
    }
    return how == MOST ? fmax(all, one) : how == SUM ? all + one : all + (one - all) / (count + 1);
}

/*
 * Reads each GPU. Returns whether only GPUs count on which the run's processes hold memory: a
 * training on one GPU of eight is not idle because the other seven are.
 */
static bool read_each(stk_gpu_sampler *sampler, const stk_proc_tree *own) {
    bool narrow = false;
    for (size_t i = 0; i < sampler->count; i++) {
        sampled_gpu *g = &sampler->gpus[i];
        set_unknown(&g->seen);
        read_gpu(sampler, g, own, &g->seen);
        narrow = narrow || (own != NULL && g->seen.gpu_memory_own > 0);
    }
    return narrow;
}

void stk_gpu_sampler_read(stk_gpu_sampler *sampler, const stk_proc_tree *own,
                          stk_event_sample *sample) {
    int counts[FIGURES] = {0};
    int all_reasons = -1;
    set_unknown(sample);
    bool narrow = sampler != NULL && read_each(sampler, own);
    for (size_t i = 0; sampler != NULL && i < sampler->count; i++) {
        const stk_event_sample *one = &sampler->gpus[i].seen;
        if (narrow && !(one->gpu_memory_own > 0)) {
            continue;
        }
        for (int f = 0; f < FIGURES; f++) {
            double value = figure_of(one, f);
            if (!isnan(value)) {
                double all = figure_of(sample, f);
                set_figure(sample, f, merged(figures[f].how, all, value, counts[f]++));
            }
        }
        int set = read_reasons(sampler, &sampler->gpus[i]);
        all_reasons = set < 0 ? all_reasons : all_reasons < 0 ? set : (all_reasons | set);
    }
    if (all_reasons >= 0) {
        sample->gpu_throttled = sampler->words[all_reasons];
    }
}

int stk_gpu_sampler_missing(const stk_gpu_sampler *sampler, const stk_event_sample *sample,
                            const char *names[STK_GPU_FIGURES]) {
    bool has_gpm = false;
    for (size_t i = 0; i < sampler->count; i++) {
        has_gpm = has_gpm || sampler->gpus[i].gpm[0] != NULL;
    }
    const struct {
        bool known;
        const char *name;
    } all[STK_GPU_FIGURES] = {
        {!isnan(sample->gpu_util), "GPU utilisation"},
        {has_gpm, "SM activity (GPUs have it from Hopper on)"},
        {!isnan(sample->gpu_memory_used), "GPU memory"},
        {!isnan(sample->gpu_power_w), "GPU power"},
        {!isnan(sample->gpu_temperature_c), "GPU temperature"},
        {!isnan(sample->gpu_clock_mhz), "GPU clock"},
        {sample->gpu_throttled != NULL, "throttling"},
        {has_gpm || !isnan(sample->pcie_in) || !isnan(sample->pcie_out), "PCIe"},
    };
    int missing = 0;
    for (int i = 0; i < STK_GPU_FIGURES; i++) {
        if (!all[i].known) {
            names[missing++] = all[i].name;
        }
    }
    return missing;
}
