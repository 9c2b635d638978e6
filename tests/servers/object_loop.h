/*
 * object_loop.h - the connections of the test server: one thread, one epoll.
 */
#ifndef OBJECT_LOOP_H
#define OBJECT_LOOP_H

#include <stdbool.h>
#include <stdio.h>

#include "object_answers.h"

typedef struct os_loop_options {
    int port;        /* 0: any free one */
    bool until_eof;  /* end when standard input does */
    int max_seconds; /* end after so long in any case */
    FILE *log;       /* a line for each answer, or NULL */
} os_loop_options;

/* Listens on 127.0.0.1, says so on standard output, and serves until SIGTERM, SIGINT, the end of
 * standard input or the end of the time. */
void os_loop_run(os_server *server, const os_loop_options *options);

#endif
