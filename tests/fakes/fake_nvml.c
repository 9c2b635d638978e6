/*
 * fake_nvml.c - a stand-in for NVIDIA's management library whose readings are a script.
 *
 * The file that FAKE_NVML names is read at every call, so that a test may write another one while
 * something looks. It has lines of a name and a number (hexadecimal ones begin with 0x):
 *
 *     bus 0000:19:00.0     where the GPU is; without this line there is none
 *     util 87              percent
 *     memory_used 3000     bytes; memory_total and memory_reserved likewise
 *     power 312500         milliwatts
 *     temperature 61       degrees Celsius
 *     clock 1400           MHz; clock_most likewise
 *     reasons 0x24         what holds the clock down: bits, see nvml_api.h
 *     pcie_in 2000         kB per second, by NVML; pcie_out likewise
 *     sm 63.5              percent; without this line there is no GPM
 *     gpm_pcie_in 5        MiB per second, by GPM; gpm_pcie_out likewise
 *     fail 999             every call fails with this result
 *     wait PATH            the utilisation is not told until there is such a file; PATH.waits is
 *                          made when somebody waits
 *
 * What has no line is not supported. Without FAKE_NVML it is a GPU at 0000:19:00.0, where the
 * emulated one is, that offers everything. FAKE_NVML_OLD leaves out what older drivers lack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "monitor/nvml_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static const char usual[] = "bus 0000:19:00.0\nutil 87\nmemory_used 18000000000\n"
                            "memory_total 24000000000\nmemory_reserved 500000000\npower 312500\n"
                            "temperature 61\nclock 1400\nclock_most 1980\nreasons 0\n"
                            "pcie_in 2000000\npcie_out 100000\nsm 63.5\ngpm_pcie_in 2000\n"
                            "gpm_pcie_out 100\n";

static char device_of_all;

/* A line's text behind its name; NULL: there is no such line. */
static const char *find(const char *name, char text[512]) {
    char script[4096];
    const char *path = getenv("FAKE_NVML");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    size_t length = file != NULL ? fread(script, 1, sizeof script - 1, file) : 0;
    script[length] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    if (path == NULL) {
        snprintf(script, sizeof script, "%s", usual);
    }
    size_t size = strlen(name);
    char *rest = NULL;
    for (char *line = strtok_r(script, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, name, size) == 0 && line[size] == ' ') {
            snprintf(text, 512, "%s", line + size + 1);
            return text;
        }
    }
    return NULL;
}

static int number_of(const char *name, double *number) {
    char text[512];
    if (find("fail", text) != NULL) {
        return atoi(text);
    }
    if (find(name, text) == NULL) {
        return NVML_NOT_SUPPORTED;
    }
    *number = strtod(text, NULL);
    return NVML_GOOD;
}

static int unsigned_of(nvml_device device, const char *name, unsigned *number) {
    double found = 0;
    int result = (void *)device == &device_of_all ? number_of(name, &found) : NVML_INVALID;
    if (result == NVML_GOOD) {
        *number = (unsigned)found;
    }
    return result;
}

static unsigned long long bytes_of(const char *name) {
    double found = 0;
    return number_of(name, &found) == NVML_GOOD ? (unsigned long long)found : 0;
}

int nvmlInit_v2(void) {
    char text[512];
    return find("fail", text) != NULL ? atoi(text) : NVML_GOOD;
}

int nvmlShutdown(void) {
    return NVML_GOOD;
}

const char *nvmlErrorString(int result) {
    return result == NVML_NOT_FOUND ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *device) {
    char text[512];
    if (find("bus", text) == NULL || strcasecmp(text, bus_id) != 0) {
        return NVML_NOT_FOUND;
    }
    *device = (nvml_device)(void *)&device_of_all;
    return NVML_GOOD;
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
    char text[512];
    if (find("wait", text) != NULL) {
        wait_for_file(text);
    }
    percent->memory = 0;
    return unsigned_of(device, "util", &percent->gpu);
}

int nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *bytes) {
    double used = 0;
    int result = (void *)device == &device_of_all ? number_of("memory_used", &used) : NVML_INVALID;
    if (result == NVML_GOOD) {
        bytes->total = bytes_of("memory_total");
        bytes->used = (unsigned long long)used + bytes_of("memory_reserved");
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
static int samples; /* that were read, which tells them apart */

struct nvmlGpmSample_st {
    int number; /* 0: nothing was read */
};

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, nvml_memory_2 *bytes) {
    nvml_memory all;
    int result = bytes->version == NVML_MEMORY_2_VERSION ? nvmlDeviceGetMemoryInfo(device, &all)
                                                         : NVML_INVALID;
    if (result == NVML_GOOD) {
        bytes->total = all.total;
        bytes->reserved = bytes_of("memory_reserved");
        bytes->used = all.used - bytes->reserved;
        bytes->free = all.free;
    }
    return result;
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
    return result;
}

/* The second sample must be the later one. */
int nvmlGpmMetricsGet(nvml_gpm_metrics *metrics) {
    if (metrics->version != NVML_GPM_VERSION || metrics->first->number == 0 ||
        metrics->first->number >= metrics->second->number) {
        return NVML_INVALID;
    }
    for (unsigned i = 0; i < metrics->count; i++) {
        nvml_gpm_metric *m = &metrics->metrics[i];
        m->result = number_of(m->id == NVML_GPM_SM_BUSY   ? "sm"
                              : m->id == NVML_GPM_PCIE_IN ? "gpm_pcie_in"
                                                          : "gpm_pcie_out",
                              &m->value);
    }
    return NVML_GOOD;
}
#endif
