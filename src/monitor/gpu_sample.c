/*
 * gpu_sample.c - a GPU by NVML, and its multiprocessors by GPM.
 *
 * NVML's own utilisation is the share of time in which any kernel ran, be it a tiny one. From
 * Hopper on the GPU counts for how long its multiprocessors had work (GPM, which is where DCGM's
 * SM activity comes from), and PCIe bytes besides: both for the time between two looks and at no
 * cost. Without GPM, NVML watches PCIe for 20 ms when it is asked, so that each look asks for one
 * direction only.
 */
#include "monitor/gpu_sample.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/cuda_search.h"
#include "base/mem.h"
#include "monitor/nvml_api.h"

#define KB 1000.0
#define MIB (1024.0 * 1024.0)

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

struct stk_gpu_eye {
    void *library;
    nvml_api nvml;
    nvml_device device;
    double clock_most_mhz;
    /* Counters of the last look and of this one; NULL: there is no GPM. */
    nvml_gpm_sample gpm[2];
    bool gpm_read;                /* the first of them holds something */
    nvml_gpm_metrics metrics;     /* kept, since it is large */
    int direction;                /* of PCIe, that is asked for next */
    double pcie[2];               /* bytes per second, as they were told last; by direction */
    char words[1 << REASONS][72]; /* of every set of reasons */
};

/* Calls a function that the library may not have. */
#define ASK(eye, function, ...) \
    ((eye)->nvml.function != NULL ? (eye)->nvml.function(__VA_ARGS__) : NVML_NOT_SUPPORTED)

/* The same, for a number that is told of the device. */
#define NUMBER(eye, function, ...) \
    (ASK(eye, function, (eye)->device, __VA_ARGS__, &number) == NVML_GOOD ? (double)number : NAN)

/* ---- Opening ---- */

static bool open_library(stk_gpu_eye *eye, char *why, size_t room) {
    static const char soname[] = "libnvidia-ml.so.1";
    char trouble[256];
    cuda_folders folders;
    stk_cuda_folders_find(&folders);
    eye->library = stk_cuda_folders_open(&folders, soname, RTLD_NOW | RTLD_NODELETE, true, trouble,
                                         sizeof trouble);
    stk_cuda_folders_free(&folders);
    if (eye->library == NULL) {
        snprintf(why, room, "%s", trouble[0] != '\0' ? trouble : "no libnvidia-ml.so.1 was found");
        return false;
    }
    return true;
}

/* ISO C has no way from an object's address to a function's; POSIX has. */
static void fill_table(stk_gpu_eye *eye) {
    void *found;
#define X(name, symbol, parameters)      \
    found = dlsym(eye->library, symbol); \
    memcpy(&eye->nvml.name, &found, sizeof found);
    NVML_FUNCTIONS(X)
    X(text_of, "nvmlErrorString", )
#undef X
}

static bool find_device(stk_gpu_eye *eye, const char *bus_id, char *why, size_t room) {
    int result = ASK(eye, init, );
    bool started = result == NVML_GOOD;
    if (started) {
        result = ASK(eye, device_at, bus_id, &eye->device);
    }
    if (result == NVML_GOOD) {
        return true;
    }
    const char *said = eye->nvml.text_of != NULL ? eye->nvml.text_of(result) : NULL;
    snprintf(why, room, "NVML %s: %s", started ? "does not find it" : "does not start",
             said != NULL ? said : "it does not say why");
    if (started) {
        (void)ASK(eye, shutdown, );
    }
    return false;
}

static void open_gpm(stk_gpu_eye *eye) {
    nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    if (ASK(eye, gpm_support, eye->device, &support) != NVML_GOOD || support.supported == 0) {
        return;
    }
    if (ASK(eye, gpm_new, &eye->gpm[0]) != NVML_GOOD) {
        eye->gpm[0] = NULL;
    } else if (ASK(eye, gpm_new, &eye->gpm[1]) != NVML_GOOD) {
        (void)ASK(eye, gpm_free, eye->gpm[0]);
        eye->gpm[0] = NULL;
        eye->gpm[1] = NULL;
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

stk_gpu_eye *stk_gpu_eye_open(const char *bus_id, char *why, size_t room) {
    unsigned number = 0;
    stk_gpu_eye *eye = stk_mem_new(1, sizeof *eye);
    if (eye == NULL) {
        snprintf(why, room, "no memory is left for it");
        return NULL;
    }
    if (!open_library(eye, why, room)) {
        stk_mem_free(eye);
        return NULL;
    }
    fill_table(eye);
    if (!find_device(eye, bus_id, why, room)) {
        dlclose(eye->library);
        stk_mem_free(eye);
        return NULL;
    }
    eye->clock_most_mhz = NUMBER(eye, clock_most, NVML_CLOCK_OF_SM);
    eye->pcie[0] = NAN;
    eye->pcie[1] = NAN;
    open_gpm(eye);
    write_words(eye);
    return eye;
}

void stk_gpu_eye_close(stk_gpu_eye *eye) {
    if (eye == NULL) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (eye->gpm[i] != NULL) {
            (void)ASK(eye, gpm_free, eye->gpm[i]);
        }
    }
    (void)ASK(eye, shutdown, );
    dlclose(eye->library);
    stk_mem_free(eye);
}

/* ---- Looking ---- */

static void look_at_memory(stk_gpu_eye *eye, stk_event_sample *sample) {
    nvml_memory_2 apart = {.version = NVML_MEMORY_2_VERSION};
    nvml_memory plain;
    sample->gpu_memory_used = NAN;
    sample->gpu_memory_total = NAN;
    if (ASK(eye, memory_2, eye->device, &apart) == NVML_GOOD) {
        sample->gpu_memory_used = (double)apart.used;
        sample->gpu_memory_total = (double)apart.total;
    } else if (ASK(eye, memory, eye->device, &plain) == NVML_GOOD) {
        sample->gpu_memory_used = (double)plain.used;
        sample->gpu_memory_total = (double)plain.total;
    }
}

static const char *look_at_reasons(stk_gpu_eye *eye) {
    unsigned long long bits = 0;
    unsigned set = 0;
    if (ASK(eye, reasons, eye->device, &bits) != NVML_GOOD &&
        ASK(eye, reasons_before, eye->device, &bits) != NVML_GOOD) {
        return NULL;
    }
    /* The hardware gives its reason where it knows it. */
    if ((bits & (NVML_REASON_HARDWARE_HEAT | NVML_REASON_POWER_BRAKE)) != 0) {
        bits &= ~(unsigned long long)NVML_REASON_HARDWARE;
    }
    for (int i = 0; i < REASONS; i++) {
        set |= (bits & reasons[i].bits) != 0 ? 1u << i : 0;
    }
    return eye->words[set];
}

static double metric_of(const nvml_gpm_metric *metric) {
    return metric->result == NVML_GOOD ? metric->value : NAN;
}

/* What the GPU counted since the last look. */
static void look_by_gpm(stk_gpu_eye *eye, stk_event_sample *sample) {
    nvml_gpm_metrics *m = &eye->metrics;
    if (ASK(eye, gpm_read, eye->device, eye->gpm[1]) != NVML_GOOD) {
        eye->gpm_read = false;
        return;
    }
    m->version = NVML_GPM_VERSION;
    m->count = 3;
    m->first = eye->gpm[0];
    m->second = eye->gpm[1];
    m->metrics[0] = (nvml_gpm_metric){.id = NVML_GPM_SM_BUSY};
    m->metrics[1] = (nvml_gpm_metric){.id = NVML_GPM_PCIE_IN};
    m->metrics[2] = (nvml_gpm_metric){.id = NVML_GPM_PCIE_OUT};
    if (eye->gpm_read && ASK(eye, gpm_metrics, m) == NVML_GOOD) {
        sample->sm_activity = metric_of(&m->metrics[0]);
        sample->pcie_in = MIB * metric_of(&m->metrics[1]);
        sample->pcie_out = MIB * metric_of(&m->metrics[2]);
    }
    eye->gpm[0] = m->second;
    eye->gpm[1] = m->first;
    eye->gpm_read = true;
}

static void look_at_pcie(stk_gpu_eye *eye, stk_event_sample *sample) {
    unsigned number = 0;
    eye->pcie[eye->direction] = KB * NUMBER(eye, pcie, eye->direction);
    eye->direction = 1 - eye->direction;
    sample->pcie_in = eye->pcie[NVML_PCIE_TO_GPU];
    sample->pcie_out = eye->pcie[NVML_PCIE_FROM_GPU];
}

void stk_gpu_eye_look(stk_gpu_eye *eye, stk_event_sample *sample) {
    nvml_utilisation percent;
    unsigned number = 0;
    sample->gpu_util = NAN;
    sample->sm_activity = NAN;
    sample->gpu_memory_used = NAN;
    sample->gpu_memory_total = NAN;
    sample->gpu_power_w = NAN;
    sample->gpu_temperature_c = NAN;
    sample->gpu_clock_mhz = NAN;
    sample->gpu_clock_most_mhz = NAN;
    sample->gpu_throttled = NULL;
    sample->pcie_in = NAN;
    sample->pcie_out = NAN;
    if (eye == NULL) {
        return;
    }
    if (ASK(eye, utilisation, eye->device, &percent) == NVML_GOOD) {
        sample->gpu_util = percent.gpu;
    }
    look_at_memory(eye, sample);
    if (ASK(eye, power, eye->device, &number) == NVML_GOOD) {
        sample->gpu_power_w = number / 1000.0;
    }
    sample->gpu_temperature_c = NUMBER(eye, temperature, NVML_SENSOR_GPU);
    sample->gpu_clock_mhz = NUMBER(eye, clock, NVML_CLOCK_OF_SM);
    sample->gpu_clock_most_mhz = eye->clock_most_mhz;
    sample->gpu_throttled = look_at_reasons(eye);
    if (eye->gpm[0] != NULL) {
        look_by_gpm(eye, sample);
    } else {
        look_at_pcie(eye, sample);
    }
}

void stk_gpu_eye_parts(const stk_gpu_eye *eye, const stk_event_sample *sample,
                       stk_part parts[STK_GPU_PARTS]) {
    bool has_gpm = eye->gpm[0] != NULL;
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
