/*
 * fuzz_cuda_store.c - a file of the store of compiled kernels: what is not whole is not there, and
 * what is there is what was put. The input is the file, as it is and with a right checksum.
 */
#include "fuzz_folder.h"

#include "backend/cuda/driver/store.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"

#define HEAD 32 /* magic, bytes of the key, bytes of the blob, checksum */

static const fuzz_seed seeds[] = {
    FUZZ_SEED("STKCUDA1\x0B\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0checksummachine\nkeyblob"),
    FUZZ_SEED("STKCUDA1\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x10\0\0\0\0\0\0\0checksummachine\nkey"),
};
FUZZ_PLAN_FILES(seeds)

/* The only file of the store, whose name the store itself has chosen. */
static char place[1200];

static int find_file(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)ftw;
    if (kind == FTW_F) {
        snprintf(place, sizeof place, "%s", path);
    }
    return 0;
}

static void try_file(cuda_store *store, const uint8_t *data, size_t size) {
    void *blob = NULL;
    size_t bytes = 0;
    int fd = open(place, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    stk_cuda_store_get(store, "key", &blob, &bytes);
    FUZZ_REQUIRE(blob == NULL || (bytes <= size && memcmp(data + size - bytes, blob, bytes) == 0));
    stk_mem_free(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static cuda_store *store; /* lives as long as the program */
    stk_error err = {0};
    if (store == NULL) {
        FUZZ_REQUIRE(stk_cuda_store_open(&store, fuzz_folder(), "machine", &err) == STK_OK);
        stk_cuda_store_put(store, "key", "blob", 4);
        nftw(fuzz_folder(), find_file, 8, FTW_PHYS);
        FUZZ_REQUIRE(place[0] != '\0');
    }
    uint8_t *copy = malloc(size + 1);
    FUZZ_REQUIRE(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    try_file(store, copy, size);
    if (size >= HEAD) {
        uint64_t checksum = stk_checksum(copy + HEAD, size - HEAD);
        memcpy(copy + 24, &checksum, sizeof checksum);
        try_file(store, copy, size);
    }
    free(copy);
    return 0;
}
