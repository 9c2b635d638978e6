/* host_memory.c - a backend's host memory as a loader asks for it. */
#include "train/host_memory.h"

static void *take(void *user, size_t bytes) {
    const stk_host_memory *host = user;
    return host->backend->host_take(host->device, bytes);
}

static void give(void *user, void *block) {
    const stk_host_memory *host = user;
    host->backend->host_free(host->device, block);
}

stk_loader_memory stk_host_memory_for_loader(stk_host_memory *host) {
    return (stk_loader_memory){.user = host, .take = take, .give = give};
}
