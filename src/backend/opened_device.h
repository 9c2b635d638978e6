/*
 * opened_device.h - opens a device by name and keeps what messages say about it. Threads: one
 * owner.
 */
#ifndef STK_BACKEND_OPENED_DEVICE_H
#define STK_BACKEND_OPENED_DEVICE_H

#include "engine/backend.h"

typedef struct stk_opened_device {
    const stk_backend *backend; /* NULL: no device is open */
    stk_device *device;         /* owned */
    char name[16];              /* "cpu", "cuda:0" */
    char why[256];              /* why this device: "given", "auto: no GPU" */
    stk_precision precision;    /* that the device computes in; never STK_PRECISION_AUTO */
} stk_opened_device;

/*
 * Opens the device `name`, as stk_backend_find() understands it; NULL: "auto". The index of
 * `config` is not read: the name says it. After an error nothing is open.
 */
STK_CHECKED stk_status stk_opened_device_open(stk_opened_device *opened, const char *name,
                                              stk_precision asked, const stk_device_config *config,
                                              stk_error *err);

/* All that was made from the device must be freed before; closing twice is fine. */
void stk_opened_device_close(stk_opened_device *opened);

/* Whether the device computes in the host's memory, on the host's cores. */
bool stk_opened_device_is_cpu(const stk_opened_device *opened);

/* Seconds that a process needs to end after using the device: NVIDIA's libraries unload slowly. */
double stk_opened_device_end_s(const stk_opened_device *opened);

/* Describes the device, with the reason in brackets: "2 threads (given)". Returns text. */
const char *stk_opened_device_describe(const stk_opened_device *opened, char *text, size_t room);

/* Why the precision is not the one that was asked for. Returns why. */
const char *stk_opened_device_explain_precision(const stk_opened_device *opened, char *why,
                                                size_t room);

/* Choices of an option whose value is a stk_precision. */
#define STK_PRECISION_CHOICES                                                         \
    "auto=true=yes=on fp16=16=16-mixed bf16=bf16-mixed fp32=32=32-true=false=no=off " \
    "fp32-strict"

/* Help of an option whose value is stk_device_config.memory_bytes. */
#define STK_ASSUME_MEMORY_HELP                                                                   \
    "plan as if the GPU had this much memory (24G), and use no more of it; on a CPU it affects " \
    "only the plan; 0: all memory"

/* The name of a precision: "fp16". */
const char *stk_precision_name(stk_precision precision);

#endif
