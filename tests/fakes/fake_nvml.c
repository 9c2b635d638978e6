/*
 * fake_nvml.c - a stand-in for NVIDIA's management library whose readings are a script.
 *
 * The file that FAKE_NVML names is read at every call, so that a test may write another one while
 * something looks. It has lines of a name and a number (hexadecimal ones begin with 0x):
 *
 *     bus 0000:19:00.0     where the GPU is; without this line there is none
 *     util 87              percent
 *     jpeg 41              percent: the engines for JPEG; older drivers lack it
 *     memory_used 3000     bytes; memory_total and memory_reserved likewise
 *     power 312500         milliwatts
 *     temperature 61       degrees Celsius
 *     clock 1400           MHz; clock_most likewise
 *     reasons 0x24         what holds the clock down: bits, see nvml_api.h
 *     pcie_in 2000         kB per second, by NVML; pcie_out likewise
 *     sm 63.5              percent; without this line there is no GPM
 *     gpm_pcie_in 5        MiB per second, by GPM; gpm_pcie_out likewise
 *     uuid GPU-8932f937    name NVIDIA H200: the rest of the line
 *     process 4711 2000    number and bytes (-1: not told) of a process that computes on it; any
 *                          number of such lines
 *     processes            the list of processes is told, though it may be empty
 *     device               what follows is of one more GPU, up to eight
 *     fail 999             every call fails with this result
 *     wait PATH            the utilisation is not told until there is such a file; PATH.waits is
 *                          made when somebody waits
 *
 * What has no line is not supported; fail and wait are for all GPUs. Without FAKE_NVML it is a GPU
 * at 0000:19:00.0, where the emulated one is, that offers everything. FAKE_NVML_OLD leaves out what
 * older drivers lack.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "monitor/nvml_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static const char usual[] = "bus 0000:19:00.0\nutil 87\njpeg 41\nmemory_used 18000000000\n"
                            "memory_total 24000000000\nmemory_reserved 500000000\npower 312500\n"
                            "temperature 61\nclock 1400\nclock_most 1980\nreasons 0\n"
                            "pcie_in 2000000\npcie_out 100000\nsm 63.5\ngpm_pcie_in 2000\n"
                            "gpm_pcie_out 100\nuuid GPU-5e0fa7e0-0000-4000-8000-000000000000\n"
                            "name Emulated GPU\n";

#define DEVICES 8
#define SCRIPT_BYTES 16384
#define TEXT_BYTES 512

static char devices[DEVICES]; /* whose addresses tell them apart */

static void read_script(char script[SCRIPT_BYTES]) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    size_t length = file != NULL ? fread(script, 1, SCRIPT_BYTES - 1, file) : 0;
    script[length] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    if (path == NULL) {
        snprintf(script, SCRIPT_BYTES, "%s", usual);
    }
}

/* The text behind the name of a device's line, the `nth` of that name; NULL: there is none. A
 * device of -1 is any of them. */
static const char *find_nth(int device, const char *name, int nth, char text[TEXT_BYTES]) {
    char script[SCRIPT_BYTES];
    size_t size = strlen(name);
    char *rest = NULL;
    int of = 0;
    read_script(script);
    for (char *line = strtok_r(script, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strcmp(line, "device") == 0) {
            of++;
        } else if ((device == -1 || of == device) && strncmp(line, name, size) == 0 &&
                   (line[size] == ' ' || line[size] == '\0') && nth-- == 0) {
            snprintf(text, TEXT_BYTES, "%s", line + size + (line[size] == ' ' ? 1 : 0));
            return text;
        }
    }
    return NULL;
}

static const char *find(int device, const char *name, char text[TEXT_BYTES]) {
    return find_nth(device, name, 0, text);
}

/* Which of them a handle means; -1: none. */
static int index_of(nvml_device device) {
    for (int i = 0; i < DEVICES; i++) {
        if ((void *)device == &devices[i]) {
            return i;
        }
    }
    return -1;
}

static int text_of(nvml_device device, const char *name, char text[TEXT_BYTES]) {
    if (find(-1, "fail", text) != NULL) {
        return atoi(text);
    }
    int index = index_of(device);
    return index < 0                         ? NVML_INVALID
           : find(index, name, text) != NULL ? NVML_GOOD
                                             : NVML_NOT_SUPPORTED;
}

static int number_of(nvml_device device, const char *name, double *number) {
    char text[TEXT_BYTES];
    int result = text_of(device, name, text);
    if (result == NVML_GOOD) {
        *number = strtod(text, NULL);
    }
    return result;
}

static int unsigned_of(nvml_device device, const char *name, unsigned *number) {
    double found = 0;
    int result = number_of(device, name, &found);
    if (result == NVML_GOOD) {
        *number = (unsigned)found;
    }
    return result;
}

static unsigned long long bytes_of(nvml_device device, const char *name) {
    double found = 0;
    return number_of(device, name, &found) == NVML_GOOD ? (unsigned long long)found : 0;
}

int nvmlInit_v2(void) {
    char text[TEXT_BYTES];
    return find(-1, "fail", text) != NULL ? atoi(text) : NVML_GOOD;
}

int nvmlShutdown(void) {
    return NVML_GOOD;
}

const char *nvmlErrorString(int result) {
    return result == NVML_NOT_FOUND ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device) {
    char text[TEXT_BYTES];
    if (index >= DEVICES || find((int)index, "bus", text) == NULL) {
        return NVML_INVALID;
    }
    *device = (nvml_device)(void *)&devices[index];
    return NVML_GOOD;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    nvml_device unused;
    char text[TEXT_BYTES];
    if (find(-1, "fail", text) != NULL) {
        return atoi(text);
    }
    for (*count = 0; nvmlDeviceGetHandleByIndex_v2(*count, &unused) == NVML_GOOD;) {
        ++*count;
    }
    return NVML_GOOD;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *device) {
    for (unsigned i = 0; nvmlDeviceGetHandleByIndex_v2(i, device) == NVML_GOOD; i++) {
        char text[TEXT_BYTES];
        if (find((int)i, "bus", text) != NULL && strcasecmp(text, bus_id) == 0) {
            return NVML_GOOD;
        }
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci *pci) {
    char text[TEXT_BYTES];
    int result = text_of(device, "bus", text);
    if (result == NVML_GOOD) {
        *pci = (nvml_pci){0};
        char *at = text;
        pci->domain = (unsigned)strtoul(at, &at, 16);
        pci->bus = (unsigned)strtoul(at + 1, &at, 16);
        pci->device = (unsigned)strtoul(at + 1, &at, 16);
        snprintf(pci->id, sizeof pci->id, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    }
    return result;
}

int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned room) {
    char found[TEXT_BYTES] = "";
    int result = text_of(device, "uuid", found);
    snprintf(text, room, "%s", found);
    return result;
}

int nvmlDeviceGetName(nvml_device device, char *text, unsigned room) {
    char found[TEXT_BYTES] = "";
    int result = text_of(device, "name", found);
    snprintf(text, room, "%s", found);
    return result;
}

/* The nth process of a device; false: there is none. */
static bool process_of(nvml_device device, int nth, unsigned *pid, unsigned long long *bytes) {
    char text[TEXT_BYTES];
    if (find_nth(index_of(device), "process", nth, text) == NULL) {
        return false;
    }
    char *rest = text;
    *pid = (unsigned)strtoul(rest, &rest, 10);
    *bytes = (unsigned long long)strtoll(rest, NULL, 10);
    return true;
}

/* Writes processes that lie `size` bytes apart; number and bytes are at the same places in all. */
static int list_processes(nvml_device device, unsigned *count, void *list, size_t size) {
    char text[TEXT_BYTES];
    int result = text_of(device, "process", text);
    if (result != NVML_GOOD && text_of(device, "processes", text) != NVML_GOOD) {
        return result;
    }
    unsigned room = *count;
    nvml_process_1 p;
    for (*count = 0; process_of(device, (int)*count, &p.pid, &p.bytes); ++*count) {
        if (*count == room) {
            return NVML_TOO_SMALL;
        }
        memcpy((char *)list + *count * size, &p, sizeof p);
    }
    return NVML_GOOD;
}

int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned *count,
                                         nvml_process_1 *list) {
    return list_processes(device, count, list, sizeof *list);
}

static void wait_for_file(const char *path) {
    char waits[600];
    snprintf(waits, sizeof waits, "%s.waits", path);
    FILE *file = fopen(waits, "we");
    if (file != NULL) {
        fclose(file);
    }
    while (access(path, F_OK) != 0) {
        usleep(1000);
    }
}

int nvmlDeviceGetUtilizationRates(nvml_device device, nvml_utilisation *percent) {
    char text[TEXT_BYTES];
    if (find(-1, "wait", text) != NULL) {
        wait_for_file(text);
    }
    percent->memory = 0;
    return unsigned_of(device, "util", &percent->gpu);
}

int nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *bytes) {
    double used = 0;
    int result = number_of(device, "memory_used", &used);
    if (result == NVML_GOOD) {
        bytes->total = bytes_of(device, "memory_total");
        bytes->used = (unsigned long long)used + bytes_of(device, "memory_reserved");
        bytes->free = bytes->total - bytes->used;
    }
    return result;
}

int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts) {
    return unsigned_of(device, "power", milliwatts);
}

int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *degrees) {
    return sensor == NVML_SENSOR_GPU ? unsigned_of(device, "temperature", degrees) : NVML_INVALID;
}

int nvmlDeviceGetClockInfo(nvml_device device, int which, unsigned *mhz) {
    return which == NVML_CLOCK_OF_SM ? unsigned_of(device, "clock", mhz) : NVML_INVALID;
}

int nvmlDeviceGetMaxClockInfo(nvml_device device, int which, unsigned *mhz) {
    return which == NVML_CLOCK_OF_SM ? unsigned_of(device, "clock_most", mhz) : NVML_INVALID;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *bits) {
    unsigned found = 0;
    int result = unsigned_of(device, "reasons", &found);
    *bits = found;
    return result;
}

int nvmlDeviceGetPcieThroughput(nvml_device device, int direction, unsigned *kb_per_s) {
    return unsigned_of(device, direction == NVML_PCIE_TO_GPU ? "pcie_in" : "pcie_out", kb_per_s);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetJpgUtilization(nvml_device device, unsigned *percent, unsigned *period_us) {
    *period_us = 20000;
    return unsigned_of(device, "jpeg", percent);
}

static int samples; /* that were read, which tells them apart */

struct nvmlGpmSample_st {
    int number; /* 0: nothing was read */
    nvml_device device;
};

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, nvml_memory_2 *bytes) {
    nvml_memory all;
    int result = bytes->version == NVML_MEMORY_2_VERSION ? nvmlDeviceGetMemoryInfo(device, &all)
                                                         : NVML_INVALID;
    if (result == NVML_GOOD) {
        bytes->total = all.total;
        bytes->reserved = bytes_of(device, "memory_reserved");
        bytes->used = all.used - bytes->reserved;
        bytes->free = all.free;
    }
    return result;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            nvml_process *list) {
    return list_processes(device, count, list, sizeof *list);
}

int nvmlDeviceGetCurrentClocksEventReasons(nvml_device device, unsigned long long *bits) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, bits);
}

int nvmlGpmQueryDeviceSupport(nvml_device device, nvml_gpm_support *support) {
    unsigned unused;
    if (support->version != NVML_GPM_VERSION) {
        return NVML_INVALID;
    }
    int result = unsigned_of(device, "sm", &unused);
    support->supported = result == NVML_GOOD ? 1 : 0;
    return result == NVML_NOT_SUPPORTED ? NVML_GOOD : result;
}

int nvmlGpmSampleAlloc(nvml_gpm_sample *sample) {
    *sample = calloc(1, sizeof **sample);
    return *sample != NULL ? NVML_GOOD : NVML_INVALID;
}

int nvmlGpmSampleFree(nvml_gpm_sample sample) {
    free(sample);
    return NVML_GOOD;
}

int nvmlGpmSampleGet(nvml_device device, nvml_gpm_sample sample) {
    unsigned unused;
    int result = unsigned_of(device, "sm", &unused);
    sample->number = result == NVML_GOOD ? ++samples : sample->number;
    sample->device = device;
    return result;
}

/* The second sample must be the later one. */
int nvmlGpmMetricsGet(nvml_gpm_metrics *metrics) {
    if (metrics->version != NVML_GPM_VERSION || metrics->first->number == 0 ||
        metrics->first->device != metrics->second->device ||
        metrics->first->number >= metrics->second->number) {
        return NVML_INVALID;
    }
    for (unsigned i = 0; i < metrics->count; i++) {
        nvml_gpm_metric *m = &metrics->metrics[i];
        m->result = number_of(metrics->first->device,
                              m->id == NVML_GPM_SM_BUSY   ? "sm"
                              : m->id == NVML_GPM_PCIE_IN ? "gpm_pcie_in"
                                                          : "gpm_pcie_out",
                              &m->value);
    }
    return NVML_GOOD;
}
#endif
