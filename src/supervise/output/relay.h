/*
 * relay.h - a pipe for Stoker's own messages whose writer never waits for the reader.
 *
 * A thread copies everything written to the relay to a descriptor. If nobody reads there, a
 * megabyte is kept and the rest is lost. So a paused terminal or an unread pipe cannot make Stoker
 * miss a deadline.
 */
#ifndef STK_SUPERVISE_OUTPUT_RELAY_H
#define STK_SUPERVISE_OUTPUT_RELAY_H

#include "supervise/output/output.h"

/* Opens a relay to `fd`. *end is for writing; the caller owns it until stk_relay_close(). */
STK_CHECKED stk_status stk_relay_open(stk_output **relay, int fd, int *end, stk_error *err);

/* Waits at most within_s until everything is copied. `end` -1: closed already. */
void stk_relay_close(stk_output *relay, int end, double within_s);

#endif
