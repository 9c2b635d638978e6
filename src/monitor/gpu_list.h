/*
 * gpu_list.h - which GPUs a program may use, by NVML and CUDA_VISIBLE_DEVICES.
 *
 * CUDA is not needed. Threads: safe.
 */
#ifndef STK_MONITOR_GPU_LIST_H
#define STK_MONITOR_GPU_LIST_H

#include <stddef.h>

#define STK_GPU_MOST 64

typedef struct stk_gpu_place {
    char bus_id[32]; /* "0000:19:00.0" */
    char name[96];   /* "NVIDIA H200" */
    char uuid[96];   /* "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; "": not told */
} stk_gpu_place;

/*
 * Those that `visible` (the value of CUDA_VISIBLE_DEVICES; NULL: it is not set) lets a program see:
 * numbers or the beginnings of UUIDs, in its order, up to the first that is none, as CUDA reads
 * it. Numbers count along the PCI bus, as CUDA does with CUDA_DEVICE_ORDER=PCI_BUS_ID; without it
 * CUDA has the fastest first, which is another order only where GPUs of several kinds are in one
 * machine. Returns how many; `why` says in a few words what is missing, or is "".
 */
size_t stk_gpu_list(const char *visible, stk_gpu_place places[STK_GPU_MOST], char *why,
                    size_t room);

/* The same of GPUs that are known: of `count` that there `are`, at most STK_GPU_MOST. Pure. */
size_t stk_gpu_list_choose(const char *visible, const stk_gpu_place *are, size_t count,
                           stk_gpu_place places[STK_GPU_MOST], char *why, size_t room);

#endif
