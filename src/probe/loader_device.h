/*
 * loader_device.h - for `bench loader`: the device that gives a loader its memory and may decode
 * its pictures. Threads: one owner.
 */
#ifndef STK_PROBE_LOADER_DEVICE_H
#define STK_PROBE_LOADER_DEVICE_H

#include "backend/opened_decoder.h"
#include "backend/opened_device.h"
#include "probe/loader_probe.h"
#include "train/host_memory.h"

typedef struct stk_loader_device {
    stk_opened_device opened;   /* owned; nothing where the device is a CPU */
    stk_opened_decoder decoder; /* owned */
    stk_host_memory host;
} stk_loader_device;

/* Opens the device of --device and what --decode asks for. A struct that stays at its address. */
STK_CHECKED stk_status stk_loader_device_open(stk_loader_device *device, const stk_options *options,
                                              const stk_events *events, stk_error *err);

/* After all loaders on it are closed; also after a failed opening. */
void stk_loader_device_close(stk_loader_device *device);

/* Where a loader on this device works. */
stk_loader_place stk_loader_device_place(stk_loader_device *device, const stk_stop *stop,
                                         const stk_events *events);

/* Fills in who decoded: `on_device` of `images`. */
void stk_loader_device_sum_up(const stk_loader_device *device, uint64_t on_device, uint64_t images,
                              stk_loader_figures *figures);

#endif
