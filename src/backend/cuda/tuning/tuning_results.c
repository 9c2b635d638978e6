/* tuning_results.c - a list of names and numbers, each of which is a blob of one byte in the store.
 */
#include "backend/cuda/tuning/tuning_results.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct choice {
    char name[CUDA_CHOICE_NAME];
    int way;
} choice;

struct cuda_choices {
    cuda_store *store;
    choice *items; /* owned */
    size_t count, capacity;
    int made;
};

stk_status stk_cuda_choices_open(cuda_choices **choices, cuda_store *store, stk_error *err) {
    *choices = stk_mem_new(1, sizeof **choices);
    if (*choices == NULL) {
        return STK_FAIL_MEMORY(err, "what is fastest on the GPU");
    }
    (*choices)->store = store;
    return STK_OK;
}

void stk_cuda_choices_close(cuda_choices *choices) {
    if (choices != NULL) {
        stk_mem_free(choices->items);
        stk_mem_free(choices);
    }
}

static choice *find(const cuda_choices *choices, const char *name) {
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->items[i].name, name) == 0) {
            return &choices->items[i];
        }
    }
    return NULL;
}

static void note(cuda_choices *choices, const char *name, int way) {
    choice *known = find(choices, name);
    if (known == NULL) {
        choice *grown =
            stk_mem_grow(choices->items, &choices->capacity, choices->count + 1, sizeof *grown);
        if (grown == NULL) {
            return;
        }
        choices->items = grown;
        known = &grown[choices->count++];
        snprintf(known->name, sizeof known->name, "%s", name);
    }
    known->way = way;
}

/* Names of other things are in the store as well. */
static void key_of(const char *name, char *key, size_t room) {
    snprintf(key, room, "choice 1 %s", name);
}

int stk_cuda_choice_of(cuda_choices *choices, const char *name) {
    const choice *known = find(choices, name);
    char key[CUDA_CHOICE_NAME + 16];
    void *blob = NULL;
    size_t bytes = 0;
    if (known != NULL) {
        return known->way;
    }
    if (choices->store == NULL) {
        return CUDA_UNDECIDED;
    }
    key_of(name, key, sizeof key);
    stk_cuda_store_get(choices->store, key, &blob, &bytes);
    int way = blob != NULL && bytes == 1 ? *(const unsigned char *)blob : CUDA_UNDECIDED;
    stk_mem_free(blob);
    if (way != CUDA_UNDECIDED) {
        note(choices, name, way);
    }
    return way;
}

void stk_cuda_choice_set(cuda_choices *choices, const char *name, int way) {
    char key[CUDA_CHOICE_NAME + 16];
    unsigned char blob = (unsigned char)way;
    note(choices, name, way);
    choices->made++;
    if (choices->store != NULL) {
        key_of(name, key, sizeof key);
        stk_cuda_store_put(choices->store, key, &blob, 1);
    }
}

int stk_cuda_choices_made(const cuda_choices *choices) {
    return choices->made;
}
