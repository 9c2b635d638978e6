/*
 * gpu_list.c - lists the GPUs with NVML and applies CUDA_VISIBLE_DEVICES as CUDA does.
 */
#include "monitor/gpu_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "monitor/nvml_api.h"

#define NONE STK_GPU_MOST /* the index of no GPU */

/* One entry of CUDA_VISIBLE_DEVICES, without blanks around it. */
typedef struct list_word {
    const char *text;
    size_t length;
} list_word;

/* Reads the next entry and moves *at_list past it (NULL after the last). False: there is none. */
static bool next_word(const char **at_list, list_word *w) {
    const char *at = *at_list;
    if (at == NULL) {
        return false;
    }
    size_t length = strcspn(at, ",");
    *at_list = at[length] == ',' ? at + length + 1 : NULL;
    for (; length > 0 && isspace((unsigned char)*at); at++) {
        length--;
    }
    for (; length > 0 && isspace((unsigned char)at[length - 1]);) {
        length--;
    }
    *w = (list_word){.text = at, .length = length};
    return true;
}

static bool begins(list_word w, const char *head) {
    return w.length >= strlen(head) && strncasecmp(w.text, head, strlen(head)) == 0;
}

static size_t by_number(list_word w, size_t count) {
    size_t number = 0;
    for (size_t i = 0; i < w.length; i++) {
        if (!isdigit((unsigned char)w.text[i]) || number >= count) {
            return NONE;
        }
        number = 10 * number + (size_t)(w.text[i] - '0');
    }
    return w.length > 0 && number < count ? number : NONE;
}

/* The GPU whose UUID begins with the word; NONE if there is none or several. */
static size_t by_uuid(list_word w, const stk_gpu_info *installed, size_t count) {
    size_t found = NONE;
    for (size_t i = 0; i < count; i++) {
        if (strncasecmp(installed[i].uuid, w.text, w.length) == 0) {
            if (found != NONE) {
                return NONE;
            }
            found = i;
        }
    }
    return found;
}

static size_t index_of(list_word w, const stk_gpu_info *installed, size_t count) {
    return begins(w, "GPU-") ? by_uuid(w, installed, count) : by_number(w, count);
}

/* Says why an entry that is no GPU ends the list. */
static void say_end(list_word w, size_t chosen, char *why, size_t room) {
    int length = (int)(w.length < 64 ? w.length : 64);
    if (begins(w, "MIG-")) {
        snprintf(why, room, "parts of GPUs (%.*s) are not supported", length, w.text);
    } else if (w.length == 0 && chosen == 0) {
        snprintf(why, room, "CUDA_VISIBLE_DEVICES is empty");
    } else {
        snprintf(why, room, "CUDA_VISIBLE_DEVICES has \"%.*s\", which is no GPU here", length,
                 w.text);
    }
}

size_t stk_gpu_list_choose(const char *visible, const stk_gpu_info *installed, size_t count,
                           stk_gpu_info gpus[STK_GPU_MOST], char *why, size_t room) {
    bool taken[STK_GPU_MOST] = {false};
    size_t chosen = 0;
    list_word w;
    why[0] = '\0';
    if (visible == NULL) {
        memcpy(gpus, installed, count * sizeof *installed);
        return count;
    }
    while (next_word(&visible, &w)) {
        size_t index = index_of(w, installed, count);
        if (index == NONE) {
            say_end(w, chosen, why, room);
            break;
        }
        if (taken[index]) {
            snprintf(why, room, "CUDA_VISIBLE_DEVICES names a GPU twice, and then CUDA shows none");
            return 0;
        }
        taken[index] = true;
        gpus[chosen++] = installed[index];
    }
    return chosen;
}

/* False: NVML cannot open it; CUDA would not count it either. */
static bool describe(const nvml_api *nvml, unsigned index, stk_gpu_info *info) {
    nvml_device device;
    nvml_pci pci;
    if (NVML_ASK(nvml, device_of, index, &device) != NVML_GOOD ||
        NVML_ASK(nvml, pci, device, &pci) != NVML_GOOD) {
        return false;
    }
    snprintf(info->bus_id, sizeof info->bus_id, "%04X:%02X:%02X.0", pci.domain, pci.bus,
             pci.device);
    if (NVML_ASK(nvml, name, device, info->name, sizeof info->name) != NVML_GOOD) {
        snprintf(info->name, sizeof info->name, "GPU");
    }
    if (NVML_ASK(nvml, uuid, device, info->uuid, sizeof info->uuid) != NVML_GOOD) {
        info->uuid[0] = '\0';
    }
    return true;
}

size_t stk_gpu_list(const char *visible, stk_gpu_info gpus[STK_GPU_MOST], char *why, size_t room) {
    stk_gpu_info installed[STK_GPU_MOST];
    nvml_api nvml;
    unsigned all = 0;
    size_t count = 0;
    if (!stk_nvml_open(&nvml, why, room)) {
        return 0;
    }
    int result = NVML_ASK(&nvml, count, &all);
    for (unsigned i = 0; result == NVML_GOOD && i < all && count < STK_GPU_MOST; i++) {
        count += describe(&nvml, i, &installed[count]) ? 1 : 0;
    }
    if (result != NVML_GOOD) {
        snprintf(why, room, "NVML does not count GPUs: %s", stk_nvml_text(&nvml, result));
    } else if (count == 0) {
        snprintf(why, room, "NVML shows no GPU");
    }
    stk_nvml_close(&nvml);
    return count > 0 ? stk_gpu_list_choose(visible, installed, count, gpus, why, room) : 0;
}
