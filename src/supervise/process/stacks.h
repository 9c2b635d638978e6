/*
 * stacks.h - describes what the processes of a tree are doing, for the record of a hang.
 *
 * Command lines, states, where in the kernel each thread waits, open files. Stops no process.
 */
#ifndef STK_SUPERVISE_PROCESS_STACKS_H
#define STK_SUPERVISE_PROCESS_STACKS_H

#include <sys/types.h>

#include "base/str.h"

/* Appends a description of every process below root, without root itself. Says what may not be
 * read. */
void stk_stacks_describe(pid_t root, stk_str *text);

#endif
