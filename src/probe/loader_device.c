/*
 * loader_device.c - a GPU without any network on it, for a loader that is measured alone.
 *
 * A CPU is not opened: a loader needs nothing of it, and its threads would take part of the cores.
 */
#include "probe/loader_device.h"

#include <math.h>
#include <stdio.h>

#include "backend/backends.h"
#include "base/error.h"
#include "base/machine.h"
#include "loader/loader.h"
#include "probe/probe_options.h"

stk_status stk_loader_device_open(stk_loader_device *device, const stk_options *options,
                                  const stk_events *events, stk_error *err) {
    const stk_probe_options *probe = stk_options_values(options, &stk_probe_option_table);
    const stk_loader_options *loader = stk_options_values(options, &stk_loader_option_table);
    const stk_decoder_wish wish = {.decode = (stk_decode)loader->decode};
    const stk_device_config config = {.threads = stk_machine_cores()};
    stk_opened_device *opened = &device->opened;
    const char *name = probe->device != NULL ? probe->device : "auto";
    stk_backend_choice found;
    *device = (stk_loader_device){0};
    stk_status status = stk_backend_find(name, &found, err);
    STK_THEN(status, stk_opened_decoder_check(name, &wish, err));
    if (status != STK_OK || stk_backend_is_cpu(found.backend)) {
        return status;
    }
    status = stk_opened_device_open(opened, name, STK_PRECISION_AUTO, &config, err);
    device->host = (stk_host_memory){.backend = opened->backend, .device = opened->device};
    STK_THEN(status, stk_opened_decoder_open(&device->decoder, opened, &wish, err));
    if (status == STK_OK && events != NULL) {
        stk_opened_decoder_emit(&device->decoder, events);
    }
    return status;
}

void stk_loader_device_close(stk_loader_device *device) {
    stk_opened_decoder_close(&device->decoder);
    stk_opened_device_close(&device->opened);
}

stk_loader_place stk_loader_device_place(stk_loader_device *device, const stk_stop *stop,
                                         const stk_events *events) {
    stk_loader_place place = {.stop = stop,
                              .events = events,
                              .decoder = device->decoder.decoder,
                              .device_first = device->decoder.always};
    if (device->opened.backend != NULL) {
        place.memory = stk_host_memory_for_loader(&device->host);
    }
    return place;
}

void stk_loader_device_sum_up(const stk_loader_device *device, uint64_t on_device, uint64_t images,
                              stk_loader_figures *figures) {
    bool decodes = device->decoder.backend != NULL;
    figures->device_share = decodes && images > 0 ? (double)on_device / (double)images : NAN;
    figures->jpeg_engines = decodes ? stk_opened_decoder_engines(&device->decoder) : -1;
    snprintf(figures->device, sizeof figures->device, "%s", decodes ? device->opened.name : "");
}
