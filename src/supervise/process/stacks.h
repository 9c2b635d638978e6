/*
 * stacks.h - what can be seen of where the processes of a tree are: command lines, states, where in
 * the kernel each thread waits, open files. For a record of a hang; nothing is stopped.
 */
#ifndef STK_SUPERVISE_PROCESS_STACKS_H
#define STK_SUPERVISE_PROCESS_STACKS_H

#include <sys/types.h>

#include "base/str.h"

/* Of every process below root, root itself left out; what may not be read is left out and said. */
void stk_stacks_describe(pid_t root, stk_str *text);

#endif
