/* device.h - the CPU backend: the reference that checks the others. */
#ifndef STK_BACKEND_CPU_DEVICE_H
#define STK_BACKEND_CPU_DEVICE_H

#include "engine/backend.h"

extern const stk_backend stk_cpu_backend;

#endif
