/* tuning_results.c - a list of names and variants; in the store each is a blob of one byte. */
#include "backend/cuda/tuning/tuning.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct tuning_result {
    char name[CUDA_RESULT_NAME];
    int variant;
} tuning_result;

struct cuda_tuning_results {
    cuda_store *store;
    tuning_result *items; /* owned */
    size_t count, capacity;
    int made;
};

stk_status stk_cuda_tuning_results_open(cuda_tuning_results **results, cuda_store *store,
                                        stk_error *err) {
    *results = stk_mem_new(1, sizeof **results);
    if (*results == NULL) {
        return STK_FAIL_MEMORY(err, "what is fastest on the GPU");
    }
    (*results)->store = store;
    return STK_OK;
}

void stk_cuda_tuning_results_close(cuda_tuning_results *results) {
    if (results != NULL) {
        stk_mem_free(results->items);
        stk_mem_free(results);
    }
}

static tuning_result *find(const cuda_tuning_results *results, const char *name) {
    for (size_t i = 0; i < results->count; i++) {
        if (strcmp(results->items[i].name, name) == 0) {
            return &results->items[i];
        }
    }
    return NULL;
}

static void note(cuda_tuning_results *results, const char *name, int variant) {
    tuning_result *known = find(results, name);
    if (known == NULL) {
        if (!STK_RESERVE(results->items, results->capacity, results->count + 1)) {
            return;
        }
        known = &results->items[results->count++];
        snprintf(known->name, sizeof known->name, "%s", name);
    }
    known->variant = variant;
}

/* Keys of other kinds are in the store as well. */
static void key_of(const char *name, char *key, size_t room) {
    snprintf(key, room, "choice 1 %s", name);
}

int stk_cuda_tuning_result(cuda_tuning_results *results, const char *name) {
    const tuning_result *known = find(results, name);
    char key[CUDA_RESULT_NAME + 16];
    void *blob = NULL;
    size_t bytes = 0;
    if (known != NULL) {
        return known->variant;
    }
    if (results->store == NULL) {
        return CUDA_UNDECIDED;
    }
    key_of(name, key, sizeof key);
    stk_cuda_store_get(results->store, key, &blob, &bytes);
    int variant = blob != NULL && bytes == 1 ? *(const unsigned char *)blob : CUDA_UNDECIDED;
    stk_mem_free(blob);
    if (variant != CUDA_UNDECIDED) {
        note(results, name, variant);
    }
    return variant;
}

void stk_cuda_tuning_result_set(cuda_tuning_results *results, const char *name, int variant) {
    char key[CUDA_RESULT_NAME + 16];
    unsigned char blob = (unsigned char)variant;
    note(results, name, variant);
    results->made++;
    if (results->store != NULL) {
        key_of(name, key, sizeof key);
        stk_cuda_store_put(results->store, key, &blob, 1);
    }
}

int stk_cuda_tuning_results_made(const cuda_tuning_results *results) {
    return results->made;
}
