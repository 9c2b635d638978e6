/*
 * pipeline.c - what the files of the room share: samples, failure, the memory of slots, references.
 */
#include "loader/pipeline.h"

#include <string.h>

#include "base/mem.h"

const stk_sample *stk_loader_sample(const stk_loader *l, size_t entry) {
    return &l->config.samples[l->config.indices != NULL ? l->config.indices[entry] : entry];
}

bool stk_loader_is_past_end(const stk_loader *l, uint64_t batch) {
    return l->config.order.epochs > 0 && batch / l->epoch_batches >= l->config.order.epochs;
}

batch_slot *stk_loader_ready_batch(const stk_loader *l) {
    batch_slot *s = l->ring[l->next_batch % (uint64_t)l->config.sizing.room_slots];
    bool ready = s != NULL && s->number == l->next_batch && s->state == SLOT_READY;
    return ready ? s : NULL;
}

void stk_loader_fail(stk_loader *l, const stk_error *why) {
    l->failure = l->failure.status == STK_OK ? *why : l->failure;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->parked);
    pthread_cond_broadcast(&l->ready);
}

void stk_loader_free_slot(const stk_loader *l, batch_slot *s) {
    if (s->images != NULL && l->config.memory.give != NULL) {
        l->config.memory.give(l->config.memory.user, s->images);
    } else {
        stk_mem_free(s->images);
    }
    stk_mem_free(s->labels);
    stk_mem_free(s->targets);
    stk_mem_free(s->features);
    stk_mem_free(s->samples);
    stk_mem_free(s->entries);
    stk_mem_free(s->bad);
    memset(s, 0, sizeof *s);
}

void stk_loader_free_slots(stk_loader *l) {
    for (int i = 0; l->slots != NULL && i < l->config.sizing.room_slots; i++) {
        stk_loader_free_slot(l, &l->slots[i]);
    }
}

/* Frees memory of the loader itself; borrowed memory was given back when it was closed. */
static void free_loader(stk_loader *l) {
    stk_loader_free_slots(l);
    stk_mem_free(l->ring);
    stk_mem_free(l->slots);
    for (size_t i = 0; l->tasks != NULL && i < l->config.sizing.most_reads; i++) {
        stk_bytes_free(&l->tasks[i].item.read.bytes);
    }
    for (int i = 0; l->workers != NULL && i < l->config.sizing.room_workers; i++) {
        stk_image_scratch_free(l->workers[i].scratch);
        stk_bytes_free(&l->workers[i].extra.read.bytes);
        stk_bytes_free(&l->workers[i].raw);
        stk_mem_free(l->workers[i].square);
    }
    for (size_t i = 0; i < l->bad_count; i++) {
        stk_mem_free(l->bad[i].reason);
    }
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->parked);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->heavy_ends);
    pthread_mutex_destroy(&l->lock);
    stk_mem_free(l->bad);
    stk_mem_free(l->put_aside.items);
    stk_mem_free(l->is_bad);
    stk_mem_free(l->workers);
    stk_mem_free(l->tasks);
    stk_sampler_free(l->sampler);
    stk_mem_free(l);
}

void stk_loader_unref(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    bool last = --l->references == 0;
    pthread_mutex_unlock(&l->lock);
    if (last) {
        free_loader(l);
    }
}
