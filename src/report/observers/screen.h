/*
 * screen.h - a run as a person sees it.
 *
 * On a terminal one line per epoch is redrawn in place, ten times a second at most. Elsewhere there
 * are plain lines: one per epoch, and one every ten seconds within long epochs. A line leaves out
 * what is not known. The closing block names files of the run folder only when they exist: add the
 * screen after the observer that writes them.
 *
 * A supervised command writes to the same terminal. Beside it every line begins with "stoker: ",
 * nothing is redrawn, and the command shows its own progress. Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_SCREEN_H
#define STK_REPORT_OBSERVERS_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <stoker/events.h>

typedef struct stk_screen stk_screen;

typedef struct stk_screen_config {
    FILE *out;               /* borrowed; flushed after every line */
    bool terminal;           /* redraw a line */
    int columns;             /* of the terminal; 0: ask it before each drawing */
    bool quiet;              /* only warnings */
    bool beside;             /* another program writes to the same terminal */
    int64_t (*now_ns)(void); /* NULL: stk_clock_ns; tests bring their own */
} stk_screen_config;

STK_CHECKED stk_status stk_screen_new(stk_screen **screen, const stk_screen_config *config,
                                      stk_error *err);

/* Ends a line that is still being redrawn: call it before printing anything else to `out`. */
void stk_screen_free(stk_screen *screen);

/* Valid until stk_screen_free. */
const stk_observer *stk_screen_observer(stk_screen *screen);

#endif
