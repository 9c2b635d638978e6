/*
 * nvml_api.h - inside the monitor: the functions of NVIDIA's management library that we call.
 *
 * No header of NVIDIA is needed to build Stoker: what is declared here is the binary interface of
 * libnvidia-ml.so.1, which comes with the driver. Older drivers lack some of the functions, so that
 * each pointer of the table may be NULL. tests/unit/test_monitor_nvml.c compares the numbers with
 * NVIDIA's header where it is installed.
 */
#ifndef STK_MONITOR_NVML_API_H
#define STK_MONITOR_NVML_API_H

#include <stdbool.h>
#include <stddef.h>

typedef struct nvmlDevice_st *nvml_device;
typedef struct nvmlGpmSample_st *nvml_gpm_sample;

/* Results that the code distinguishes or that the fake library of the tests returns. */
enum {
    NVML_GOOD = 0,
    NVML_INVALID = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_TOO_SMALL = 7 /* the buffer is too small */
};

enum {
    NVML_SENSOR_GPU = 0,
    NVML_CLOCK_OF_SM = 1,
    NVML_PCIE_FROM_GPU = 0, /* NVML_PCIE_UTIL_TX_BYTES */
    NVML_PCIE_TO_GPU = 1,   /* NVML_PCIE_UTIL_RX_BYTES */
};

/* Why the clocks are low: bits of nvmlClocksEventReason..., formerly ThrottleReason. */
enum {
    NVML_REASON_IDLE = 0x1,
    NVML_REASON_APPLICATION_CLOCKS = 0x2,
    NVML_REASON_POWER_CAP = 0x4,
    NVML_REASON_HARDWARE = 0x8, /* heat or power, detected by the hardware */
    NVML_REASON_SYNC_BOOST = 0x10,
    NVML_REASON_HEAT = 0x20,
    NVML_REASON_HARDWARE_HEAT = 0x40,
    NVML_REASON_POWER_BRAKE = 0x80, /* requested by the power supply */
    NVML_REASON_DISPLAY = 0x100
};

typedef struct nvml_utilisation { /* nvmlUtilization_t: percent */
    unsigned gpu;
    unsigned memory;
} nvml_utilisation;

typedef struct nvml_memory { /* nvmlMemory_t: bytes; `used` includes what the driver reserves */
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvml_memory;

typedef struct nvml_memory_2 { /* nvmlMemory_v2_t: bytes; `used` excludes what the driver reserves
                                */
    unsigned version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvml_memory_2;

typedef struct nvml_pci { /* nvmlPciInfo_t */
    char short_id[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char id[32];
} nvml_pci;

typedef struct nvml_process { /* nvmlProcessInfo_v2_t */
    unsigned pid;
    unsigned long long bytes;
    unsigned instance;
    unsigned compute_instance;
} nvml_process;

typedef struct nvml_process_1 { /* nvmlProcessInfo_v1_t: drivers before 450 */
    unsigned pid;
    unsigned long long bytes;
} nvml_process_1;

#define NVML_NOT_TOLD (~0ULL) /* NVML_VALUE_NOT_AVAILABLE: a process's bytes are unknown */
#define NVML_PROCESS_ROOM 32  /* bytes per process: some 535 drivers wrote a longer struct */

#define NVML_MEMORY_2_VERSION ((unsigned)sizeof(nvml_memory_2) | 2u << 24)

typedef struct nvml_gpm_support { /* nvmlGpmSupport_t */
    unsigned version;
    unsigned supported;
} nvml_gpm_support;

enum { NVML_GPM_VERSION = 1 }; /* of nvml_gpm_support and nvml_gpm_metrics */

enum {                         /* nvmlGpmMetricId_t */
       NVML_GPM_SM_BUSY = 2,   /* NVML_GPM_METRIC_SM_UTIL: percent */
       NVML_GPM_PCIE_OUT = 20, /* NVML_GPM_METRIC_PCIE_TX_PER_SEC: MiB per second */
       NVML_GPM_PCIE_IN = 21,  /* NVML_GPM_METRIC_PCIE_RX_PER_SEC */
       NVML_GPM_METRICS_MOST = 333
};

typedef struct nvml_gpm_metric { /* nvmlGpmMetric_t */
    unsigned id;
    int result;
    double value;
    const char *texts[3]; /* short name, long name, unit */
} nvml_gpm_metric;

/* nvmlGpmMetricsGet_t: the library reads and writes the first `count` metrics. The array grows from
 * version to version; this is the newest length. */
typedef struct nvml_gpm_metrics {
    unsigned version;
    unsigned count;
    nvml_gpm_sample first;
    nvml_gpm_sample second;
    nvml_gpm_metric metrics[NVML_GPM_METRICS_MOST];
} nvml_gpm_metrics;

/* X(name in the table, exported name, parameters); all return an nvmlReturn_t, an int. */
#define NVML_FUNCTIONS(X)                                                                         \
    X(init, "nvmlInit_v2", (void))                                                                \
    X(shutdown, "nvmlShutdown", (void))                                                           \
    X(device_at, "nvmlDeviceGetHandleByPciBusId_v2", (const char *bus_id, nvml_device *device))   \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *count))                                          \
    X(device_of, "nvmlDeviceGetHandleByIndex_v2", (unsigned index, nvml_device *device))          \
    X(pci, "nvmlDeviceGetPciInfo_v3", (nvml_device device, nvml_pci * pci))                       \
    X(uuid, "nvmlDeviceGetUUID", (nvml_device device, char *text, unsigned room))                 \
    X(name, "nvmlDeviceGetName", (nvml_device device, char *text, unsigned room))                 \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                       \
      (nvml_device device, unsigned *count, nvml_process *list))                                  \
    X(processes_2, "nvmlDeviceGetComputeRunningProcesses_v2",                                     \
      (nvml_device device, unsigned *count, nvml_process *list))                                  \
    X(processes_1, "nvmlDeviceGetComputeRunningProcesses",                                        \
      (nvml_device device, unsigned *count, nvml_process_1 *list))                                \
    X(utilisation, "nvmlDeviceGetUtilizationRates",                                               \
      (nvml_device device, nvml_utilisation * percent))                                           \
    X(jpeg, "nvmlDeviceGetJpgUtilization",                                                        \
      (nvml_device device, unsigned *percent, unsigned *period_us))                               \
    X(memory, "nvmlDeviceGetMemoryInfo", (nvml_device device, nvml_memory * bytes))               \
    X(memory_2, "nvmlDeviceGetMemoryInfo_v2", (nvml_device device, nvml_memory_2 * bytes))        \
    X(power, "nvmlDeviceGetPowerUsage", (nvml_device device, unsigned *milliwatts))               \
    X(temperature, "nvmlDeviceGetTemperature",                                                    \
      (nvml_device device, int sensor, unsigned *degrees))                                        \
    X(clock, "nvmlDeviceGetClockInfo", (nvml_device device, int which, unsigned *mhz))            \
    X(clock_most, "nvmlDeviceGetMaxClockInfo", (nvml_device device, int which, unsigned *mhz))    \
    X(reasons, "nvmlDeviceGetCurrentClocksEventReasons",                                          \
      (nvml_device device, unsigned long long *bits))                                             \
    X(reasons_before, "nvmlDeviceGetCurrentClocksThrottleReasons",                                \
      (nvml_device device, unsigned long long *bits))                                             \
    X(pcie, "nvmlDeviceGetPcieThroughput",                                                        \
      (nvml_device device, int direction, unsigned *kb_per_s))                                    \
    X(gpm_support, "nvmlGpmQueryDeviceSupport", (nvml_device device, nvml_gpm_support * support)) \
    X(gpm_new, "nvmlGpmSampleAlloc", (nvml_gpm_sample * sample))                                  \
    X(gpm_free, "nvmlGpmSampleFree", (nvml_gpm_sample sample))                                    \
    X(gpm_read, "nvmlGpmSampleGet", (nvml_device device, nvml_gpm_sample sample))                 \
    X(gpm_metrics, "nvmlGpmMetricsGet", (nvml_gpm_metrics * metrics))

typedef struct nvml_api {
/* A list of parameters takes no further brackets: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    NVML_FUNCTIONS(X)
#undef X
    const char *(*text_of)(int result); /* nvmlErrorString */
    void *library;                      /* from dlopen(3) */
} nvml_api;

/* Calls a function that the library may not have. */
#define NVML_ASK(nvml, function, ...) \
    ((nvml)->function != NULL ? (nvml)->function(__VA_ARGS__) : NVML_NOT_SUPPORTED)

/* Opens and starts the library. False: `why` says in a few words why not; there is nothing to
 * close. */
bool stk_nvml_open(nvml_api *nvml, char *why, size_t room);
void stk_nvml_close(nvml_api *nvml);

/* A result in words: "Not Found"; never NULL. */
const char *stk_nvml_text(const nvml_api *nvml, int result);

#endif
