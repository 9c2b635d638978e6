/*
 * reader.h - reads in flight.
 *
 * Whoever needs many objects hands over reads with stk_reader_submit(), which never waits, and is
 * told of each by the `done` callback, from a thread of the reader's. Reads begin in the order in
 * which they were handed over and may end in any. There are as few threads as will do: one, and one
 * more whenever stk_reader_hurry() says that bytes are missing while reads are waiting, so that
 * their number follows latency times rate and not the number of cores.
 */
#ifndef STK_STORAGE_READER_H
#define STK_STORAGE_READER_H

#include "storage/storage.h"

typedef struct stk_reader stk_reader;

/* One read. It belongs to the reader from submit to done. */
typedef struct stk_read {
    const char *path;      /* below the root; borrowed */
    stk_bytes bytes;       /* what was read; the block is used again */
    stk_error error;       /* error.status is STK_OK when it went well */
    int64_t ns;            /* how long it took */
    struct stk_read *next; /* the reader's */
} stk_read;

typedef struct stk_reader_config {
    const char *root; /* borrowed, must outlive the reader */
    int most_threads;
    void (*done)(void *user, stk_read *read); /* from any thread of the reader's */
    void *user;
} stk_reader_config;

STK_CHECKED stk_status stk_reader_open(stk_reader **reader, const stk_reader_config *config,
                                       stk_error *err);

/* Waits for the reads that have begun; those that have not are never told. NULL is fine. */
void stk_reader_close(stk_reader *reader);

void stk_reader_submit(stk_reader *reader, stk_read *read);

/* Bytes are missing: begins one more read at once if there is one and it can be. */
void stk_reader_hurry(stk_reader *reader);

/* Takes back all reads that have not begun, as a list through `next`. */
stk_read *stk_reader_take_back(stk_reader *reader);

int stk_reader_threads(const stk_reader *reader);

#endif
