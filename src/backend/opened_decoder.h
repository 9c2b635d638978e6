/*
 * opened_decoder.h - opens the decoder of an opened device, as --decode asks for it, and keeps what
 * messages say about it.
 *
 * There is one decoder per device, which all loaders share. It is opened before the batch is
 * chosen, so that its memory is not free any more then. Threads: that of the device; loaders may
 * use `decoder` on any.
 */
#ifndef STK_BACKEND_OPENED_DECODER_H
#define STK_BACKEND_OPENED_DECODER_H

#include "backend/opened_device.h"
#include "events/events.h"
#include "loader/loader.h"

/* With less memory than this, --decode auto leaves a device to the batch. */
#define STK_DECODER_LEAST_MEMORY ((uint64_t)4 << 30)

typedef struct stk_opened_decoder {
    const stk_backend *backend; /* NULL: no decoder is open */
    stk_device *device;         /* borrowed */
    stk_device_decoder decoder; /* for loaders; zeros: the CPU decodes all pictures */
    stk_decode decode;          /* who decodes; never STK_DECODE_AUTO once this is opened */
    bool could;                 /* the device was not tried, and might decode */
    bool always;    /* the device decodes all that it can, so that pictures do not depend on time */
    uint64_t bytes; /* of the device's memory; 0 without a decoder */
    char why[1024]; /* why `decode` is what it is; "": nobody needs to be told */
} stk_opened_decoder;

typedef struct stk_decoder_wish {
    stk_decode decode;
    bool kept;          /* it is the choice of an earlier run: the CPU may take its place */
    bool deterministic; /* see `always` */
} stk_decoder_wish;

/*
 * Fails, before anything is opened, where the device `device` (NULL: "auto") is known to have no
 * decoder and the wish insists on one: --decode gpu or both.
 */
STK_CHECKED stk_status stk_opened_decoder_check(const char *device, const stk_decoder_wish *wish,
                                                stk_error *err);

/*
 * Opens the decoder, or none where the CPU decodes: where that was asked for, or where it was left
 * to Stoker and the device cannot decode or is short of memory. Fails where the wish insists.
 */
STK_CHECKED stk_status stk_opened_decoder_open(stk_opened_decoder *opened,
                                               const stk_opened_device *device,
                                               const stk_decoder_wish *wish, stk_error *err);

/* All loaders that have the decoder must be closed before, and the device after; closing twice, or
 * a struct of zeros, is fine. */
void stk_opened_decoder_close(stk_opened_decoder *opened);

/* Bytes of the device's memory that the decoder will still take: they are free, but not for others.
 * After opening, `bytes` less these are not free any more. */
uint64_t stk_opened_decoder_owed(const stk_opened_decoder *opened);

/* Hardware engines for JPEG; 0 without them. */
int stk_opened_decoder_engines(const stk_opened_decoder *opened);

/*
 * Sets the decoder of a loader. Where nothing is trained, the device decodes all that it can, so
 * that predictions do not depend on time; if it would compute with the processors that the network
 * needs, the CPU decodes instead.
 */
void stk_opened_decoder_hand_out(const stk_opened_decoder *opened, bool train,
                                 stk_loader_config *config);

/* Emits a warning if the device hung or failed and decodes no more; false: it did not. */
bool stk_opened_decoder_warn_lost(const stk_opened_decoder *opened, const stk_events *events);

/* The option's name of a choice: "both". */
const char *stk_decode_name(stk_decode decode);

/* Emits who decodes, and why, if there is a reason. */
void stk_opened_decoder_emit(const stk_opened_decoder *opened, const stk_events *events);

#endif
