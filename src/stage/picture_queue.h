/*
 * picture_queue.h - reads and recodes many pictures at a time, and returns them one by one in
 * order.
 *
 * A read-ahead keeps reads in flight (storage/reading/read_ahead.h), threads recode the bytes that
 * have arrived, and the caller takes the pictures in the order of the list. Bytes in memory stay
 * below STK_PICTURE_QUEUE_BYTES, unless a single picture is larger. Threads: one caller at a time.
 */
#ifndef STK_STAGE_PICTURE_QUEUE_H
#define STK_STAGE_PICTURE_QUEUE_H

#include "stage/recode.h"
#include "storage/storage.h"

/* Limit of encoded bytes in memory or in flight. */
#define STK_PICTURE_QUEUE_BYTES ((size_t)128 << 20)

typedef struct stk_picture_queue stk_picture_queue;

typedef struct stk_picture_queue_config {
    stk_store *store;         /* borrowed */
    const char *const *paths; /* borrowed: pictures to read */
    size_t count;
    stk_recode recode;
    int workers; /* threads that recode; 1 or more */
} stk_picture_queue_config;

/* A picture; valid until stk_picture_queue_release(). */
typedef struct stk_queued_picture {
    const uint8_t *bytes;
    size_t size;
    uint64_t checksum;     /* stk_checksum of the bytes */
    const char *extension; /* by its content; NULL: unknown */
    size_t source_bytes;   /* bytes that were read */
    bool recoded;
    const char *reason; /* why it cannot be used, then `bytes` is unset; NULL: it can be used */
} stk_queued_picture;

STK_CHECKED stk_status stk_picture_queue_open(stk_picture_queue **queue,
                                              const stk_picture_queue_config *config,
                                              stk_error *err);

/* Cancels all reads and frees the queue. NULL is fine. */
void stk_picture_queue_close(stk_picture_queue *queue);

/*
 * Sets *queued to the next picture, or to NULL if none is ready after wait_ns or all were taken.
 * Fails if the location is lost or memory runs out.
 */
STK_CHECKED stk_status stk_picture_queue_next(stk_picture_queue *queue, int64_t wait_ns,
                                              const stk_queued_picture **queued, stk_error *err);

/* Releases the picture that was taken last. */
void stk_picture_queue_release(stk_picture_queue *queue);

#endif
