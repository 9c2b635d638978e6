/*
 * gpu_list.h - lists the GPUs that a program may use: those of NVML that CUDA_VISIBLE_DEVICES
 * shows.
 *
 * Does not need CUDA. Threads: safe.
 */
#ifndef STK_MONITOR_GPU_LIST_H
#define STK_MONITOR_GPU_LIST_H

#include <stddef.h>

#define STK_GPU_MOST 64 /* GPUs in one list */

typedef struct stk_gpu_info {
    char bus_id[32]; /* PCI address: "0000:19:00.0" */
    char name[96];   /* "NVIDIA H200" */
    char uuid[96];   /* "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; "": unknown */
} stk_gpu_info;

/*
 * Lists the GPUs that a program sees when CUDA_VISIBLE_DEVICES is `visible` (NULL: not set). As in
 * CUDA, that is a list of numbers or beginnings of UUIDs; its order counts, and the first entry
 * that is no GPU ends it. Numbers count along the PCI bus, as with CUDA_DEVICE_ORDER=PCI_BUS_ID.
 * CUDA's default order (fastest first) differs only on machines with GPUs of several kinds.
 *
 * Returns how many; `why` says in a few words what is missing, or is "".
 */
size_t stk_gpu_list(const char *visible, stk_gpu_info gpus[STK_GPU_MOST], char *why, size_t room);

/* The same choice from a given list of `count` installed GPUs, at most STK_GPU_MOST. Pure. */
size_t stk_gpu_list_choose(const char *visible, const stk_gpu_info *installed, size_t count,
                           stk_gpu_info gpus[STK_GPU_MOST], char *why, size_t room);

#endif
