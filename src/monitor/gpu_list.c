/*
 * gpu_list.c - the GPUs that NVML counts, and the ones of them that CUDA would show a program.
 */
#include "monitor/gpu_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "monitor/nvml_api.h"

#define NONE STK_GPU_MOST /* the index of no GPU */

/* One word of the list: blanks around it are none of it. */
typedef struct word {
    const char *text;
    size_t length;
} word;

/* The word at a place in the list, which is moved behind it; false: there is no further one. */
static bool next_word(const char **place, word *w) {
    const char *at = *place;
    if (at == NULL) {
        return false;
    }
    size_t length = strcspn(at, ",");
    *place = at[length] == ',' ? at + length + 1 : NULL;
    for (; length > 0 && isspace((unsigned char)*at); at++) {
        length--;
    }
    for (; length > 0 && isspace((unsigned char)at[length - 1]);) {
        length--;
    }
    *w = (word){.text = at, .length = length};
    return true;
}

static bool begins(word w, const char *head) {
    return w.length >= strlen(head) && strncasecmp(w.text, head, strlen(head)) == 0;
}

static size_t by_number(word w, size_t count) {
    size_t number = 0;
    for (size_t i = 0; i < w.length; i++) {
        if (!isdigit((unsigned char)w.text[i]) || number >= count) {
            return NONE;
        }
        number = 10 * number + (size_t)(w.text[i] - '0');
    }
    return w.length > 0 && number < count ? number : NONE;
}

/* The one whose UUID begins so; none where several do. */
static size_t by_uuid(word w, const stk_gpu_place *are, size_t count) {
    size_t found = NONE;
    for (size_t i = 0; i < count; i++) {
        if (strncasecmp(are[i].uuid, w.text, w.length) == 0) {
            if (found != NONE) {
                return NONE;
            }
            found = i;
        }
    }
    return found;
}

static size_t index_of(word w, const stk_gpu_place *are, size_t count) {
    return begins(w, "GPU-") ? by_uuid(w, are, count) : by_number(w, count);
}

/* What is to be said of a word that ends the list. */
static void say_end(word w, size_t chosen, char *why, size_t room) {
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

size_t stk_gpu_list_choose(const char *visible, const stk_gpu_place *are, size_t count,
                           stk_gpu_place places[STK_GPU_MOST], char *why, size_t room) {
    bool taken[STK_GPU_MOST] = {false};
    size_t chosen = 0;
    word w;
    why[0] = '\0';
    if (visible == NULL) {
        memcpy(places, are, count * sizeof *are);
        return count;
    }
    while (next_word(&visible, &w)) {
        size_t index = index_of(w, are, count);
        if (index == NONE) {
            say_end(w, chosen, why, room);
            break;
        }
        if (taken[index]) {
            snprintf(why, room,
                     "CUDA_VISIBLE_DEVICES names a GPU twice, with which CUDA shows none");
            return 0;
        }
        taken[index] = true;
        places[chosen++] = are[index];
    }
    return chosen;
}

/* False: it cannot be looked at, and CUDA would not count it either. */
static bool describe(const nvml_api *nvml, unsigned index, stk_gpu_place *place) {
    nvml_device device;
    nvml_pci pci;
    if (NVML_ASK(nvml, device_of, index, &device) != NVML_GOOD ||
        NVML_ASK(nvml, pci, device, &pci) != NVML_GOOD) {
        return false;
    }
    snprintf(place->bus_id, sizeof place->bus_id, "%04X:%02X:%02X.0", pci.domain, pci.bus,
             pci.device);
    if (NVML_ASK(nvml, name, device, place->name, sizeof place->name) != NVML_GOOD) {
        snprintf(place->name, sizeof place->name, "GPU");
    }
    if (NVML_ASK(nvml, uuid, device, place->uuid, sizeof place->uuid) != NVML_GOOD) {
        place->uuid[0] = '\0';
    }
    return true;
}

size_t stk_gpu_list(const char *visible, stk_gpu_place places[STK_GPU_MOST], char *why,
                    size_t room) {
    stk_gpu_place are[STK_GPU_MOST];
    nvml_api nvml;
    unsigned all = 0;
    size_t count = 0;
    if (!stk_nvml_open(&nvml, why, room)) {
        return 0;
    }
    int result = NVML_ASK(&nvml, count, &all);
    for (unsigned i = 0; result == NVML_GOOD && i < all && count < STK_GPU_MOST; i++) {
        count += describe(&nvml, i, &are[count]) ? 1 : 0;
    }
    if (result != NVML_GOOD) {
        snprintf(why, room, "NVML does not count GPUs: %s", stk_nvml_text(&nvml, result));
    } else if (count == 0) {
        snprintf(why, room, "NVML shows no GPU");
    }
    stk_nvml_close(&nvml);
    return count > 0 ? stk_gpu_list_choose(visible, are, count, places, why, room) : 0;
}
