/*
 * transcript.h - the file that what commands say is kept in, record by record.
 *
 * output.h says what a record looks like. A disk that is full, but for 64 MiB, costs the records
 * that it had no room for and nothing else: the file always holds whole records, every later one is
 * tried again, and a line says how many bytes are missing in its place:
 *
 *      12.345 !  4096 bytes could not be written here
 *
 * Threads: safe.
 */
#ifndef STK_SUPERVISE_TRANSCRIPT_H
#define STK_SUPERVISE_TRANSCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "supervise/output.h"

typedef struct stk_transcript stk_transcript;

/* Makes the file anew. */
STK_CHECKED stk_status stk_transcript_open(stk_transcript **transcript, const char *path,
                                           stk_error *err);
void stk_transcript_close(stk_transcript *transcript); /* NULL is fine */

/* The first bytes of a record and a NUL: `since_ns` after the start, o or e, and how it ends. */
void stk_transcript_stamp(char stamp[STK_OUTPUT_STAMP + 1], int64_t since_ns, char stream,
                          char mark);

/* Appends whole records, or none to say what is missing as soon as that can be written. */
void stk_transcript_write(stk_transcript *transcript, const char *records, size_t size,
                          int64_t since_ns);

/* The first error; waits for no record that is being written. */
STK_CHECKED stk_status stk_transcript_error(stk_transcript *transcript, stk_error *err);

#endif
