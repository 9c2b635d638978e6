/*
 * typical.h - what something usually takes, from the last times that it was measured.
 *
 * The middle one of the last few counts. A time that was held up, because the process was stopped
 * or a disk hung, says nothing of the next one; a lasting change is believed as soon as more than
 * half of the last times show it. Pure arithmetic, no allocation.
 */
#ifndef STK_BASE_NUMBERS_TYPICAL_H
#define STK_BASE_NUMBERS_TYPICAL_H

#define STK_TYPICAL_MOST 7

/* Zero-initialised: nothing was measured, and the last three times will count. */
typedef struct stk_typical {
    double values[STK_TYPICAL_MOST]; /* a ring */
    int room;                        /* how many of them count, at most; 0: three */
    int count;                       /* of these, that are there */
    int next;                        /* where the next one goes */
} stk_typical;

void stk_typical_note(stk_typical *typical, double value);

/* The middle one, of an even number the lower of both in the middle; NaN where there is none. */
double stk_typical_value(const stk_typical *typical);

/* The same of any values; at most STK_TYPICAL_MOST. */
double stk_typical_of(const double *values, int count);

#endif
