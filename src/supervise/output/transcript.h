/*
 * transcript.h - the file that what commands say is kept in, record by record.
 *
 * output.h says what a record looks like. A disk that is full, but for 64 MiB, costs the records
 * that it had no room for and nothing else: the file always holds whole records, every later one is
 * tried again, and a line says how many bytes are missing in its place:
 *
 *      12.345 !  4096 bytes could not be written here
 *
 * It is written by a thread that may be left behind: a disk that does not answer costs records in
 * the same way. Only its owner may read the file. Threads: safe; one owner opens and closes.
 */
#ifndef STK_SUPERVISE_OUTPUT_TRANSCRIPT_H
#define STK_SUPERVISE_OUTPUT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

/* Bytes of a record before its text: "%10.3f o  ". */
#define STK_TRANSCRIPT_STAMP 14

typedef struct stk_transcript stk_transcript;

/* Makes the file anew; its disk has within_s to answer. */
STK_CHECKED stk_status stk_transcript_open(stk_transcript **transcript, const char *path,
                                           double within_s, stk_error *err);

/* Waits a fifth of a second at most: settle first. NULL is fine. */
void stk_transcript_close(stk_transcript *transcript);

/* The first bytes of a record and a NUL: `since_ns` after the start, o or e, and how it ends. */
void stk_transcript_stamp(char stamp[STK_TRANSCRIPT_STAMP + 1], int64_t since_ns, char stream,
                          char mark);

/* Appends whole records, or none to say what is missing as soon as that can be written. Where many
 * wait already, it waits for a disk that is slow, and two seconds for one that does not answer. */
void stk_transcript_write(stk_transcript *transcript, const char *records, size_t size,
                          int64_t since_ns);

/* Waits until all records are written, within_s at most; false: they are not. It is an error where
 * the disk has not answered for a second. */
bool stk_transcript_flush(stk_transcript *transcript, double within_s);

/* The first error; waits for no record that is being written. */
STK_CHECKED stk_status stk_transcript_error(stk_transcript *transcript, stk_error *err);

#endif
