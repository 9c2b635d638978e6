/*
 * opened_device.h - from the name of a device to one that is open, with what is worth telling of
 * it.
 */
#ifndef STK_BACKEND_OPENED_DEVICE_H
#define STK_BACKEND_OPENED_DEVICE_H

#include "engine/backend.h"

typedef struct stk_opened_device {
    const stk_backend *backend; /* NULL: none is open */
    stk_device *device;         /* owned */
    char name[16];              /* "cpu", "cuda:0" */
    char why[256];              /* it was this one: "given", "auto: ..." */
    stk_precision precision;    /* that it computes in: never STK_PRECISION_AUTO */
} stk_opened_device;

/*
 * `name` as in stk_backend_find, NULL for "auto". The index of `config` is filled in here. After an
 * error nothing is open.
 */
STK_CHECKED stk_status stk_opened_device_open(stk_opened_device *opened, const char *name,
                                              stk_precision asked, const stk_device_config *config,
                                              stk_error *err);

/* Everything that was made from the device is gone before; closing twice is fine. */
void stk_opened_device_close(stk_opened_device *opened);

/* Whether it computes in the host's memory, on the host's cores. */
bool stk_opened_device_is_cpu(const stk_opened_device *opened);

/* What the end of a process takes that has used it: NVIDIA's libraries take their time to unload.
 */
double stk_opened_device_end_s(const stk_opened_device *opened);

/* What the device is, and in brackets why it is this one: "2 threads (given)". */
const char *stk_opened_device_describe(const stk_opened_device *opened, char *text, size_t room);

/* The words of an option whose value is a stk_precision. */
#define STK_PRECISION_CHOICES                                                         \
    "auto=true=yes=on fp16=16=16-mixed bf16=bf16-mixed fp32=32=32-true=false=no=off " \
    "fp32-strict"

/* What an option says whose value is stk_device_config.memory_bytes. */
#define STK_ASSUME_MEMORY_HELP                                                                     \
    "plan as if the GPU had so much memory (24G), and take no more of it; on a CPU only the plan " \
    "goes by it; 0: all there is"

/* The first such word for a precision: "fp16". */
const char *stk_precision_name(stk_precision precision);

#endif
