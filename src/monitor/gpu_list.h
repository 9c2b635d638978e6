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
} stk_gpu_place;

/*
 * Those that `visible` (the value of CUDA_VISIBLE_DEVICES; NULL: it is not set) lets a program see:
 * numbers or the beginnings of UUIDs, in its order, up to the first that is none, as CUDA reads
 * it. Returns how many; where there is none `why` says it in a few words.
 */
size_t stk_gpu_list(const char *visible, stk_gpu_place places[STK_GPU_MOST], char *why,
                    size_t room);

#endif
