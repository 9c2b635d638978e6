/*
 * top_view.h - a picture of a run for a terminal, in letters.
 *
 * Drawing is a function of what is known of the run and of how the terminal is: nothing is read,
 * nothing is remembered, and nothing is printed.
 */
#ifndef STK_REPORT_STATUS_TOP_VIEW_H
#define STK_REPORT_STATUS_TOP_VIEW_H

#include "report/status/run_status.h"

typedef struct stk_top_look {
    int columns; /* no line is wider; less than 20 counts as 20 */
    int rows;    /* there are no more lines; 0: as many as it takes */
    bool utf8;   /* otherwise all of it is ASCII */
    bool colour;
    bool live; /* somebody may press keys */
} stk_top_look;

/* Appends the picture; each line ends with a line break. */
void stk_top_draw(const stk_run_status *status, const stk_top_look *look, stk_str *out);

#endif
