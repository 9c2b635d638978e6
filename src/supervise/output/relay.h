/*
 * relay.h - a way to say things that never waits for who listens.
 *
 * What is written to the relay's end goes to a descriptor by a thread; where nobody reads there, a
 * megabyte is kept and what comes behind it is lost. So a terminal that is held or a pipe that is
 * not read cannot make a deadline pass.
 */
#ifndef STK_SUPERVISE_OUTPUT_RELAY_H
#define STK_SUPERVISE_OUTPUT_RELAY_H

#include "supervise/output/output.h"

/* *end is open for writing, and owned by the caller until it is closed with the relay. */
STK_CHECKED stk_status stk_relay_open(stk_output **relay, int fd, int *end, stk_error *err);

/* Waits within_s at most for what was said to be read. An end of -1 is closed already. */
void stk_relay_close(stk_output *relay, int end, double within_s);

#endif
