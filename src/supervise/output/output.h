/*
 * output.h - what a command says: passed on unchanged, kept with times, and heard.
 *
 * Commands write to two pipes. A thread for each reads them as fast as they come and, byte for
 * byte, first writes to the log and then to where the maker's own output goes. Where that does not
 * take them the command waits, as it would without us, and nobody else does: deadlines are kept by
 * the thread that owns the output. A log that cannot be written (a full disk, one that hangs) loses
 * nothing of what is passed on.
 *
 * The log has one line for each line: seconds since the start, o or e (standard output or error)
 * and how it ended: a blank (with a newline), r (with a carriage return only, as progress bars do)
 * or + (not yet: the rest follows). Taking the first STK_TRANSCRIPT_STAMP bytes off and putting
 * these ends back gives the very bytes. A text without an end becomes a record of its own after a
 * second, after 64 KiB, and when a command is done. Where a disk was full a line with ! instead of
 * o or e says how many bytes are missing.
 *
 *      12.345 o  epoch 1/30
 *
 * Threads: one owner; `hear` is called by the reading threads, one at a time.
 */
#ifndef STK_SUPERVISE_OUTPUT_OUTPUT_H
#define STK_SUPERVISE_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

/* Longer lines are heard up to here. */
#define STK_OUTPUT_LINE 4096

typedef struct stk_output stk_output;

typedef struct stk_output_config {
    int out;              /* where standard output is passed on to; -1: nowhere. Borrowed */
    int err;              /* the same for standard error */
    const char *log_path; /* made anew; for the call only. NULL: no log, and nothing is heard */
    double log_within_s;  /* that its disk may take to answer; 0: half a minute */
    int64_t start_ns;     /* what times count from */
    /* Called with every line, without its end; also with the line so far that stands unended when a
     * command is done, or for a second, and then again only when something was added to it. It must
     * be quick and call nothing of the output. NULL: nobody listens. */
    void (*hear)(void *user, const char *line, size_t length, double at_s);
    void *user;
} stk_output_config;

/* *out_end and *err_end are what commands write to: the caller hands them on and closes them. They
 * are closed on exec, and -1 after an error. */
STK_CHECKED stk_status stk_output_open(stk_output **output, const stk_output_config *config,
                                       int *out_end, int *err_end, stk_error *err);

/*
 * When nobody writes any more: waits until all that is in the pipes has been logged and passed on,
 * within_s at most; what then cannot be passed on is in the log alone. A line that stands unended
 * is heard, and what comes later is heard as another. False: something was not passed on.
 */
bool stk_output_flush(stk_output *output, double within_s);

/* Settles for within_s at most, ends the threads (which takes no longer than 0.2 s more), closes
 * the log. Nothing is heard afterwards. NULL is fine. */
void stk_output_close(stk_output *output, double within_s);

/* Bytes of both so far. */
uint64_t stk_output_bytes(const stk_output *output);

/* The log's first error since the start; STK_OK when all was written. */
STK_CHECKED stk_status stk_output_error(const stk_output *output, stk_error *err);

#endif
