/* opened_decoder.c - who decodes pictures: tries the device's decoder, and says why it is not used.
 */
#include "backend/opened_decoder.h"

#include <stdio.h>

#include "backend/backends.h"
#include "base/error.h"
#include "base/str.h"

/* --decode auto takes no larger part of the free memory for a decoder: one of so many. */
#define MEMORY_SHARE 4

const char *stk_decode_name(stk_decode decode) {
    static const char *const names[] = {[STK_DECODE_AUTO] = "auto",
                                        [STK_DECODE_CPU] = "cpu",
                                        [STK_DECODE_GPU] = "gpu",
                                        [STK_DECODE_BOTH] = "both"};
    return names[decode];
}

/* Whether a device that cannot decode is an error. */
static bool insists(const stk_decoder_wish *wish) {
    return !wish->kept && (wish->decode == STK_DECODE_GPU || wish->decode == STK_DECODE_BOTH);
}

static stk_status refuse_cpu(const stk_decoder_wish *wish, const char *why, stk_error *err) {
    return STK_FAIL(err, STK_ERR_USAGE,
                    "--decode %s needs a GPU, and the device is cpu (%s); use --decode cpu or auto",
                    stk_decode_name(wish->decode), why);
}

static stk_status refuse(const stk_decoder_wish *wish, stk_status status, const char *device,
                         const char *reason, stk_error *err) {
    return STK_FAIL(err, status,
                    "--decode %s: %s cannot decode pictures: %s; use --decode cpu or "
                    "auto",
                    stk_decode_name(wish->decode), device, reason);
}

/* The reason for a device whose backend has no functions for it. */
static const char no_decoder[] = "there is no decoder for this kind of device";

stk_status stk_opened_decoder_check(const char *device, const stk_decoder_wish *wish,
                                    stk_error *err) {
    stk_backend_choice found;
    const char *name = device != NULL ? device : "auto";
    if (!insists(wish)) {
        return STK_OK;
    }
    stk_status status = stk_backend_find(name, &found, err);
    if (status == STK_OK && stk_backend_is_cpu(found.backend)) {
        status = refuse_cpu(wish, found.why, err);
    } else if (status == STK_OK && found.backend->decoder_open == NULL) {
        char which[32];
        snprintf(which, sizeof which, "%s:%d", found.backend->name, found.index);
        status = refuse(wish, STK_ERR_DEVICE, which, no_decoder, err);
    }
    return status;
}

/* The CPU decodes, though a GPU was wanted or could have been. */
static void leave_to_cpu(stk_opened_decoder *opened, const char *why) {
    opened->decode = STK_DECODE_CPU;
    snprintf(opened->why, sizeof opened->why, "%s", why);
}

/* Whether --decode auto leaves the device's memory to the batch; `why` says so. */
static stk_status is_short_of_memory(const stk_opened_device *device, bool *is_short, char *why,
                                     size_t room, stk_error *err) {
    stk_device_memory memory = {0};
    char have[32];
    char need[32];
    stk_status status = device->backend->memory(device->device, &memory, err);
    uint64_t bytes = device->backend->decoder_bytes(device->device);
    bool small = memory.total_bytes < STK_DECODER_LEAST_MEMORY;
    *is_short = status == STK_OK && (small || bytes > memory.free_bytes / MEMORY_SHARE);
    if (small) {
        snprintf(why, room, "%s has %s of memory, which are left to the batch", device->name,
                 stk_format_bytes(have, sizeof have, memory.total_bytes));
    } else {
        snprintf(why, room, "the GPU's decoder takes %s, and the %s that are free are the batch's",
                 stk_format_bytes(need, sizeof need, bytes),
                 stk_format_bytes(have, sizeof have, memory.free_bytes));
    }
    return status;
}

/* Who decodes, now that there is a decoder. */
static void explain(stk_opened_decoder *opened) {
    int engines = stk_opened_decoder_engines(opened);
    bool both = opened->decode == STK_DECODE_BOTH && !opened->always;
    char who[64] = "the GPU's processors";
    if (engines > 0) {
        snprintf(who, sizeof who, "%d JPEG engine%s of the GPU", engines, engines == 1 ? "" : "s");
    }
    snprintf(opened->why, sizeof opened->why, "%s%s", who,
             both ? ", and the CPU's cores" : "; the CPU decodes the rest");
}

/* The device can decode, as far as its backend says, and shall. */
static stk_status try_device(stk_opened_decoder *opened, const stk_opened_device *device,
                             const stk_decoder_wish *wish, stk_error *err) {
    const stk_backend *backend = device->backend;
    stk_error why = {0};
    uint64_t bytes = backend->decoder_bytes(device->device);
    stk_status status = backend->decoder_open(&opened->decoder, device->device, &why);
    bool cannot = status == STK_ERR_DEVICE || status == STK_ERR_MEMORY;
    if (status == STK_OK) {
        opened->backend = backend;
        opened->device = device->device;
        opened->bytes = bytes;
        opened->decode = wish->decode == STK_DECODE_GPU ? STK_DECODE_GPU : STK_DECODE_BOTH;
        opened->always = wish->deterministic || opened->decode == STK_DECODE_GPU;
        explain(opened);
        return STK_OK;
    }
    opened->decoder = (stk_device_decoder){0};
    if (cannot && insists(wish)) {
        return refuse(wish, status, device->name, why.message, err);
    }
    if (cannot) {
        leave_to_cpu(opened, why.message);
        return STK_OK;
    }
    return STK_FAIL(err, status, "%s", why.message);
}

stk_status stk_opened_decoder_open(stk_opened_decoder *opened, const stk_opened_device *device,
                                   const stk_decoder_wish *wish, stk_error *err) {
    bool is_short = false;
    char why[128];
    stk_status status = STK_OK;
    *opened = (stk_opened_decoder){.decode = STK_DECODE_CPU};
    if (wish->decode == STK_DECODE_CPU) {
        opened->could = device->backend->decoder_open != NULL;
        return STK_OK;
    }
    if (stk_opened_device_is_cpu(device)) {
        return insists(wish) ? refuse_cpu(wish, device->why, err) : STK_OK;
    }
    if (device->backend->decoder_open == NULL) {
        if (insists(wish)) {
            return refuse(wish, STK_ERR_DEVICE, device->name, no_decoder, err);
        }
        leave_to_cpu(opened, no_decoder);
        return STK_OK;
    }
    if (!insists(wish)) {
        status = is_short_of_memory(device, &is_short, why, sizeof why, err);
    }
    if (is_short) {
        opened->could = true;
        leave_to_cpu(opened, why);
        return STK_OK;
    }
    return status == STK_OK ? try_device(opened, device, wish, err) : status;
}

void stk_opened_decoder_close(stk_opened_decoder *opened) {
    if (opened->backend != NULL) {
        opened->backend->decoder_close(opened->device);
    }
    *opened = (stk_opened_decoder){0};
}

static stk_device_decoder_counts counts_of(const stk_opened_decoder *opened) {
    stk_device_decoder_counts counts = {0};
    if (opened->decoder.state != NULL) {
        opened->decoder.counts(opened->decoder.state, &counts);
    }
    return counts;
}

uint64_t stk_opened_decoder_owed(const stk_opened_decoder *opened) {
    uint64_t held = counts_of(opened).device_bytes;
    return held < opened->bytes ? opened->bytes - held : 0;
}

int stk_opened_decoder_engines(const stk_opened_decoder *opened) {
    return counts_of(opened).engines;
}

void stk_opened_decoder_hand_out(const stk_opened_decoder *opened, bool train,
                                 stk_loader_config *config) {
    bool spares = opened->decoder.is_sparing && !opened->always && !train;
    const stk_device_decoder none = {0};
    config->decoder = spares ? none : opened->decoder;
    config->device_first = opened->always || !train;
}

bool stk_opened_decoder_warn_lost(const stk_opened_decoder *opened, const stk_events *events) {
    bool lost = counts_of(opened).lost;
    if (lost) {
        stk_events_warning(events,
                           "the GPU decodes no more pictures: nvJPEG hung or failed, and the CPU's "
                           "cores decode all of them from now on%s",
                           opened->always ? "; large pictures then differ by a level or so" : "");
    }
    return lost;
}

void stk_opened_decoder_emit(const stk_opened_decoder *opened, const stk_events *events) {
    char what[32];
    snprintf(what, sizeof what, "decode %s", stk_decode_name(opened->decode));
    if (opened->why[0] != '\0') {
        stk_events_decision(events, what, opened->why);
    }
}
