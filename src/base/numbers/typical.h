/*
 * typical.h - how long something usually takes: the median of the last few measurements.
 *
 * One measurement that was held up (a stopped process, a disk that hung) does not move the median.
 * A lasting change does as soon as more than half of the measurements show it. Pure arithmetic, no
 * allocation.
 */
#ifndef STK_BASE_NUMBERS_TYPICAL_H
#define STK_BASE_NUMBERS_TYPICAL_H

#define STK_TYPICAL_MOST 7

/* Starts zeroed: no measurement yet, and the last three will count. */
typedef struct stk_typical {
    double values[STK_TYPICAL_MOST]; /* a ring of the latest measurements */
    int room;                        /* size of the ring, up to STK_TYPICAL_MOST; 0: three */
    int count;                       /* measurements in the ring */
    int next;                        /* index that the next measurement goes to */
} stk_typical;

void stk_typical_note(stk_typical *typical, double value);

/* The median, the lower one of an even number; NaN without a measurement. */
double stk_typical_value(const stk_typical *typical);

/* The same for an array of at most STK_TYPICAL_MOST values. */
double stk_typical_of(const double *values, int count);

#endif
