/*
 * top_draw.h - the picture of a run that `stoker top` draws in a terminal.
 *
 * Drawing is a pure function of the status of the run and the properties of the terminal: it reads,
 * stores and prints nothing. Threads: safe.
 */
#ifndef STK_REPORT_STATUS_TOP_DRAW_H
#define STK_REPORT_STATUS_TOP_DRAW_H

#include "report/status/run_status.h"

typedef struct stk_top_look {
    int columns; /* no line is wider; less than 20 counts as 20 */
    int rows;    /* no more lines are drawn; 0: as many as needed */
    bool utf8;   /* the terminal shows UTF-8; false: the picture is ASCII */
    bool colour;
    bool live; /* keys are read; the last line says which */
} stk_top_look;

/* Appends the picture; each line ends with a line break. */
void stk_top_draw(const stk_run_status *status, const stk_top_look *look, stk_str *out);

#endif
