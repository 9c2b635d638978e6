/*
 * transcript.h - the log of all output of commands: whole records, appended by a background thread.
 *
 * output.h describes a record. The log leaves 64 MiB of the disk free for the run's other files. On
 * a full disk only records are lost: the file always holds whole records, the log tries to write
 * every later record, and a line says how many bytes are missing:
 *
 *      12.345 !  4096 bytes could not be written here
 *
 * A disk that does not answer costs records in the same way; its thread is abandoned. Only the
 * owner may read the file. Threads: any may write; one owner opens and closes.
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

/* Creates or empties the file. STK_ERR_STORAGE: the disk did not answer within within_s. */
STK_CHECKED stk_status stk_transcript_open(stk_transcript **transcript, const char *path,
                                           double within_s, stk_error *err);

/* Waits at most 0.2 s; call stk_transcript_flush() first. NULL is fine. */
void stk_transcript_close(stk_transcript *transcript);

/* Writes the first bytes of a record and a NUL: time since the start, `stream` (o or e), and how
 * the record ends (`mark`). */
void stk_transcript_stamp(char stamp[STK_TRANSCRIPT_STAMP + 1], int64_t since_ns, char stream,
                          char mark);

/* Appends whole records. If the queue is full, waits while the disk takes records, but at most two
 * seconds for a disk that takes none; then the records are lost. */
void stk_transcript_write(stk_transcript *transcript, const char *records, size_t size,
                          int64_t since_ns);

/* Waits at most within_s until all records are written; false: not all are. A disk that has not
 * answered for a second counts as an error. */
bool stk_transcript_flush(stk_transcript *transcript, double within_s);

/* The first error; does not wait for the disk. */
STK_CHECKED stk_status stk_transcript_error(stk_transcript *transcript, stk_error *err);

#endif
