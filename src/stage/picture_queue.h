/*
 * picture_queue.h - many pictures read and recoded at a time, handed over one by one in order.
 *
 * Reads are in flight through a stk_reader, threads recode what has arrived, and the caller takes
 * the pictures in the order of the list. What is in memory stays below STK_PICTURE_QUEUE_BYTES,
 * unless one picture alone is larger. Threads: one caller at a time.
 */
#ifndef STK_STAGE_PICTURE_QUEUE_H
#define STK_STAGE_PICTURE_QUEUE_H

#include "stage/recode.h"
#include "storage/storage.h"

/* Encoded bytes that may be in memory or on their way. */
#define STK_PICTURE_QUEUE_BYTES ((size_t)128 << 20)

typedef struct stk_picture_queue stk_picture_queue;

typedef struct stk_picture_queue_config {
    stk_store *store;         /* borrowed */
    const char *const *paths; /* borrowed: what to read */
    size_t count;
    stk_recode recode;
    int workers; /* threads that recode; 1 or more */
} stk_picture_queue_config;

/* A picture; valid until it is released. */
typedef struct stk_queued_picture {
    size_t item; /* in paths */
    const uint8_t *bytes;
    size_t size;
    uint64_t checksum;     /* stk_checksum of the bytes */
    const char *extension; /* by its content; NULL: unknown */
    size_t source_bytes;   /* that were read */
    bool recoded;
    const char *reason; /* why it cannot be used; then there are no bytes; NULL: it can */
} stk_queued_picture;

STK_CHECKED stk_status stk_picture_queue_open(stk_picture_queue **queue,
                                              const stk_picture_queue_config *config,
                                              stk_error *err);

/* Ends what is under way and frees. NULL is fine. */
void stk_picture_queue_close(stk_picture_queue *queue);

/*
 * The next picture in *queued, which stays NULL when none is ready after wait_ns or all are
 * through. Fails when the location is lost or memory runs out.
 */
STK_CHECKED stk_status stk_picture_queue_next(stk_picture_queue *queue, int64_t wait_ns,
                                              const stk_queued_picture **queued, stk_error *err);

/* The caller is done with the picture that it was handed last. */
void stk_picture_queue_release(stk_picture_queue *queue);

#endif
