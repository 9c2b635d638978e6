/* test_monitor_nvml.c - our numbers of NVML's interface are NVIDIA's. */
#include "check.h"

#include <stddef.h>

#include "monitor/nvml_api.h"

#ifdef STK_HAVE_NVML_H
#include <nvml.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(NVML_GOOD, NVML_SUCCESS);
SAME(NVML_INVALID, NVML_ERROR_INVALID_ARGUMENT);
SAME(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME(NVML_TOO_SMALL, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME(NVML_CLOCK_OF_SM, NVML_CLOCK_SM);
SAME(NVML_PCIE_FROM_GPU, NVML_PCIE_UTIL_TX_BYTES);
SAME(NVML_PCIE_TO_GPU, NVML_PCIE_UTIL_RX_BYTES);
SAME(NVML_REASON_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME(NVML_REASON_APPLICATION_CLOCKS, nvmlClocksThrottleReasonApplicationsClocksSetting);
SAME(NVML_REASON_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME(NVML_REASON_HARDWARE, nvmlClocksThrottleReasonHwSlowdown);
SAME(NVML_REASON_SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost);
SAME(NVML_REASON_HEAT, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME(NVML_REASON_HARDWARE_HEAT, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(NVML_REASON_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME(NVML_REASON_DISPLAY, nvmlClocksThrottleReasonDisplayClockSetting);
SAME(NVML_MEMORY_2_VERSION, nvmlMemory_v2);
SAME(NVML_GPM_VERSION, NVML_GPM_METRICS_GET_VERSION);
SAME(NVML_GPM_VERSION, NVML_GPM_SUPPORT_VERSION);
SAME(NVML_GPM_SM_BUSY, NVML_GPM_METRIC_SM_UTIL);
SAME(NVML_GPM_PCIE_OUT, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME(NVML_GPM_PCIE_IN, NVML_GPM_METRIC_PCIE_RX_PER_SEC);

#define PLACE(ours, field, theirs, other) \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, other), #ours "." #field)
PLACE(nvml_utilisation, gpu, nvmlUtilization_t, gpu);
PLACE(nvml_memory, used, nvmlMemory_t, used);
PLACE(nvml_memory_2, used, nvmlMemory_v2_t, used);
PLACE(nvml_pci, domain, nvmlPciInfo_t, domain);
PLACE(nvml_pci, bus, nvmlPciInfo_t, bus);
PLACE(nvml_pci, device, nvmlPciInfo_t, device);
PLACE(nvml_process, pid, nvmlProcessInfo_v2_t, pid);
PLACE(nvml_process, bytes, nvmlProcessInfo_v2_t, usedGpuMemory);
PLACE(nvml_process_1, bytes, nvmlProcessInfo_v1_t, usedGpuMemory);
PLACE(nvml_gpm_support, supported, nvmlGpmSupport_t, isSupportedDevice);
PLACE(nvml_gpm_metric, value, nvmlGpmMetric_t, value);
PLACE(nvml_gpm_metrics, second, nvmlGpmMetricsGet_t, sample2);
PLACE(nvml_gpm_metrics, metrics, nvmlGpmMetricsGet_t, metrics);
_Static_assert(sizeof(nvml_pci) >= sizeof(nvmlPciInfo_t), "a place on the bus");
_Static_assert(sizeof(nvml_process) == sizeof(nvmlProcessInfo_v2_t), "a process");
_Static_assert(sizeof(nvml_process_1) == sizeof(nvmlProcessInfo_v1_t), "an older one");
_Static_assert(NVML_NOT_TOLD == (unsigned long long)NVML_VALUE_NOT_AVAILABLE, "no bytes");
_Static_assert(sizeof(nvml_gpm_metric) == sizeof(nvmlGpmMetric_t), "a metric");
_Static_assert(sizeof(nvml_gpm_sample) == sizeof(nvmlGpmSample_t), "a sample");

static void structures_fit(void) {
    CHECK(sizeof(nvml_gpm_metrics) >= sizeof(nvmlGpmMetricsGet_t));
}
#else
static void structures_fit(void) {
    CHECK_SKIP("nvml.h is not installed");
}
#endif

static const check_test tests[] = {TEST(structures_fit)};

CHECK_MAIN(tests)
