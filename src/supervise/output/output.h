/*
 * output.h - passes the output of commands on, logs it with times, and reports its lines.
 *
 * Commands write to two pipes. One thread per pipe reads, logs the bytes (transcript.h), reports
 * whole lines to a callback, and writes the same bytes to where Stoker's own output goes. If nobody
 * reads there, the command waits, as it would without Stoker; the owner's thread never waits. A log
 * that cannot be written (full disk, hanging disk) does not hold up the rest.
 *
 * Each output line becomes one line of the log: seconds since the start, o or e (standard output or
 * error), and how it ended: blank (newline), r (carriage return only, as progress bars do) or +
 * (not yet; the rest follows). Without the first STK_TRANSCRIPT_STAMP bytes and with these ends
 * restored, the log gives the exact bytes. Text without an end is logged after a second, after 64
 * KiB, and at the end of a command. A line with ! instead of o or e says how many bytes are
 * missing.
 *
 *      12.345 o  epoch 1/30
 *
 * Threads: one owner. The reading threads call `on_line`, one at a time.
 */
#ifndef STK_SUPERVISE_OUTPUT_OUTPUT_H
#define STK_SUPERVISE_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

/* Bytes of a line that `on_line` gets; the rest of a longer line is ignored. */
#define STK_OUTPUT_LINE 4096

typedef struct stk_output stk_output;

typedef struct stk_output_config {
    int out; /* descriptor for standard output, borrowed; -1: none */
    int err; /* descriptor for standard error, borrowed; -1: none */
    const char
        *log_path; /* replaced; borrowed for the call. NULL: no log, and `on_line` is not called */
    double log_within_s; /* time-out of opening the log; 0: half a minute */
    int64_t start_ns;    /* times count from here */
    /* Called with every line, without its end. Also with an unfinished line at the end of a command
     * or after a second, and again when it has grown. Must be quick and must not call functions of
     * the output. NULL: none. */
    void (*on_line)(void *user, const char *line, size_t length, double at_s);
    void *user;
} stk_output_config;

/* Commands write to *out_end and *err_end: the caller passes them to the guardian and closes them.
 * They are closed on exec, and -1 after an error. */
STK_CHECKED stk_status stk_output_open(stk_output **output, const stk_output_config *config,
                                       int *out_end, int *err_end, stk_error *err);

/*
 * After a command: waits at most within_s until everything in the pipes is logged and passed on;
 * what cannot be passed on is in the log only. An unfinished line goes to `on_line`, and later text
 * starts a new line. False: something was not passed on.
 */
bool stk_output_flush(stk_output *output, double within_s);

/* Flushes for at most within_s, ends the threads (at most 0.2 s more) and closes the log. `on_line`
 * is not called afterwards. NULL is fine. */
void stk_output_close(stk_output *output, double within_s);

/* Bytes from both pipes so far. */
uint64_t stk_output_bytes(const stk_output *output);

/* First error of the log; STK_OK: all was written. */
STK_CHECKED stk_status stk_output_error(const stk_output *output, stk_error *err);

#endif
