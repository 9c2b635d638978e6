/*
 * stoker/stop.h - asking work in progress to end.
 *
 * The owner zero-initialises a stk_stop and passes it to a long call. Another thread or a signal
 * handler may then ask for an end: stk_stop_request() is async-signal-safe. The call looks at the
 * stk_stop between steps.
 */
#ifndef STOKER_STOP_H
#define STOKER_STOP_H

#include <stdint.h>

#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_stop_level {
    STK_STOP_NONE = 0,
    STK_STOP_SOON, /* finish the step, keep the best weights, predict with them */
    STK_STOP_NOW   /* give up at once; complete files stay as they are */
} stk_stop_level;

/*
 * Only the functions below use the fields, atomically. They are plain numbers because the atomics
 * of C and C++ are different types.
 */
typedef struct stk_stop {
    int level;        /* a stk_stop_level; it only ever rises */
    int deadline_s;   /* seconds allowed for ending once the level left NONE; 0: no limit */
    int64_t asked_ns; /* CLOCK_MONOTONIC: when these seconds began; 0: no request had a deadline */
} stk_stop;

/* Raises the level to at least `level`. With deadline_s > 0 the work has that many seconds to end.
 */
STK_API void stk_stop_request(stk_stop *stop, stk_stop_level level, int deadline_s);

/* The level now; STK_STOP_NONE when stop is NULL. */
STK_API stk_stop_level stk_stop_asked(const stk_stop *stop);

/* The seconds that the first request with a deadline allowed; 0 without one or when stop is NULL.
 */
STK_API int stk_stop_deadline_s(const stk_stop *stop);

/*
 * Seconds left of that deadline, negative when it has passed; INFINITY when no request had a
 * deadline or stop is NULL. The deadline counts from the request.
 */
STK_API double stk_stop_left_s(const stk_stop *stop);

#ifdef __cplusplus
}
#endif

#endif
