/*
 * emu_memory.c - the memory of the emulated GPU.
 *
 * Every allocation is filled with NaNs and lies between two pages that nothing may touch, its end
 * as near to the second as its boundary of 256 bytes allows; the other bytes are looked at when it
 * is freed, and after every launch with STK_EMU_CHECK=1. A use after the end is a crash too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu_inside.h"

#define PAGE_BYTES ((size_t)4096)
#define ALIGN_BYTES ((size_t)256) /* what cuMemAlloc promises */
#define SLACK_BYTE 0xA5
#define USUAL_LIMIT ((size_t)2 << 30)

typedef struct allocation {
    struct allocation *next;
    unsigned char *begin;
    size_t bytes;
    bool host; /* pinned memory: not counted, and freed by another function */
    void *base;
    size_t mapped;
} allocation;

static allocation *all;
static size_t used;

static size_t round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

static size_t limit_bytes(void) {
    const char *text = getenv("STK_EMU_MEMORY");
    char *end;
    if (text == NULL || *text == '\0') {
        return USUAL_LIMIT;
    }
    unsigned long long value = strtoull(text, &end, 10);
    return (size_t)(*end == 'G' ? value << 30 : *end == 'M' ? value << 20 : value);
}

void *emu_pages_take(size_t bytes, size_t align, void **base, size_t *mapped) {
    size_t inside = round_up(bytes, PAGE_BYTES);
    *mapped = inside + 2 * PAGE_BYTES;
    char *pages =
        mmap(NULL, *mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    *base = pages;
    if (inside > 0 && mprotect(pages + PAGE_BYTES, inside, PROT_READ | PROT_WRITE) != 0) {
        (void)munmap(pages, *mapped);
        return NULL;
    }
    return pages + PAGE_BYTES + inside - round_up(bytes, align);
}

static allocation *take(size_t bytes, bool host) {
    allocation *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return NULL;
    }
    a->begin = emu_pages_take(bytes, ALIGN_BYTES, &a->base, &a->mapped);
    if (a->begin == NULL) {
        free(a);
        return NULL;
    }
    a->bytes = bytes;
    a->host = host;
    unsigned char *first = (unsigned char *)a->base + PAGE_BYTES;
    /* All of it is written now: pages that come together cost less than one fault for each. */
    (void)madvise(first, a->mapped - 2 * PAGE_BYTES, MADV_POPULATE_WRITE);
    memset(first, SLACK_BYTE, (size_t)(a->begin - first));
    memset(a->begin, 0xFF, bytes);
    memset(a->begin + bytes, SLACK_BYTE, round_up(bytes, ALIGN_BYTES) - bytes);
    a->next = all;
    all = a;
    used += host ? 0 : round_up(bytes, ALIGN_BYTES);
    return a;
}

/* Bytes from..end of an allocation, which may be negative, belong to nobody. */
static void check_slack(const allocation *a, ptrdiff_t from, ptrdiff_t end, const char *when) {
    for (ptrdiff_t i = from; i < end; i++) {
        if (a->begin[i] != SLACK_BYTE) {
            emu_complain("%s: byte %td of an allocation of %zu bytes was written", when, i,
                         a->bytes);
            return;
        }
    }
}

static void check(const allocation *a, const char *when) {
    const unsigned char *first = (const unsigned char *)a->base + PAGE_BYTES;
    check_slack(a, first - a->begin, 0, when);
    check_slack(a, (ptrdiff_t)a->bytes, (ptrdiff_t)round_up(a->bytes, ALIGN_BYTES), when);
}

static int take_back(const void *pointer, bool host) {
    for (allocation **link = &all; *link != NULL; link = &(*link)->next) {
        allocation *a = *link;
        if (a->begin == pointer && a->host == host) {
            check(a, "freeing");
            *link = a->next;
            used -= host ? 0 : round_up(a->bytes, ALIGN_BYTES);
            (void)munmap(a->base, a->mapped);
            free(a);
            return EMU_GOOD;
        }
    }
    emu_complain("%p is freed, which is not there", pointer);
    return EMU_INVALID_VALUE;
}

void emu_memory_check(const char *when) {
    for (const allocation *a = all; a != NULL; a = a->next) {
        check(a, when);
    }
}

void emu_memory_end(bool lost) {
    while (all != NULL) {
        allocation *a = all;
        if (emu_checking() && !lost) {
            emu_complain("%zu bytes of %s memory were never freed", a->bytes,
                         a->host ? "pinned" : "device");
        }
        (void)take_back(a->begin, a->host);
    }
}

void emu_memory_describe(const void *address, char *text, size_t room) {
    const unsigned char *at = address;
    for (const allocation *a = all; a != NULL; a = a->next) {
        const unsigned char *base = a->base;
        if (at >= base && at < base + a->mapped) {
            snprintf(text, room, "byte %td of an allocation of %zu bytes", at - a->begin, a->bytes);
            return;
        }
    }
    snprintf(text, room, "address %p, which is in no allocation", address);
}

bool emu_memory_holds(uint64_t pointer, size_t bytes) {
    for (const allocation *a = all; a != NULL; a = a->next) {
        uint64_t begin = (uint64_t)(uintptr_t)a->begin;
        if (pointer >= begin && pointer - begin <= a->bytes &&
            bytes <= a->bytes - (pointer - begin)) {
            return true;
        }
    }
    return false;
}

/* ---- what the library exports ---- */

EMU_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
EMU_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EMU_EXPORT int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
EMU_EXPORT int cuMemFree_v2(uint64_t pointer);
EMU_EXPORT int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
EMU_EXPORT int cuMemFreeHost(void *pointer);

/* For the other emulated libraries: whether all of the bytes are memory that was given. */
EMU_EXPORT bool emu_holds(uint64_t pointer, size_t bytes);

bool emu_holds(uint64_t pointer, size_t bytes) {
    (void)emu_enter();
    bool holds = emu_memory_holds(pointer, bytes);
    (void)emu_leave(EMU_GOOD);
    return holds;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        *total = limit_bytes();
        *free_bytes = *total > used ? *total - used : 0;
    }
    return emu_leave(result);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    int result = emu_enter();
    if (result == EMU_GOOD) {
        result = device == 0 ? EMU_GOOD : EMU_INVALID_DEVICE;
        *bytes = limit_bytes();
    }
    return emu_leave(result);
}

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        result = emu_forbid_capture();
    }
    if (result == EMU_GOOD) {
        size_t limit = limit_bytes();
        if (pointer == NULL || bytes == 0) {
            result = EMU_INVALID_VALUE;
        } else if (emu_fails_now("memory") || bytes > limit ||
                   round_up(bytes, ALIGN_BYTES) > limit - (used < limit ? used : limit)) {
            result = EMU_OUT_OF_MEMORY;
        } else {
            allocation *a = take(bytes, false);
            *pointer = a != NULL ? (uint64_t)(uintptr_t)a->begin : 0;
            result = a != NULL ? EMU_GOOD : EMU_OUT_OF_MEMORY;
        }
    }
    return emu_leave(result);
}

int cuMemFree_v2(uint64_t pointer) {
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        result = emu_forbid_capture();
    }
    if (result == EMU_GOOD && pointer != 0) {
        result = take_back((const void *)(uintptr_t)pointer, false);
    }
    return emu_leave(result);
}

int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        result = emu_forbid_capture();
    }
    if (result == EMU_GOOD) {
        allocation *a = pointer != NULL && bytes > 0 ? take(bytes, true) : NULL;
        result = a != NULL ? EMU_GOOD : bytes > 0 ? EMU_OUT_OF_MEMORY : EMU_INVALID_VALUE;
        if (a != NULL) {
            *pointer = a->begin;
        }
    }
    return emu_leave(result);
}

int cuMemFreeHost(void *pointer) {
    int result = emu_enter_context();
    if (result == EMU_GOOD) {
        result = take_back(pointer, true);
    }
    return emu_leave(result);
}
