/*
 * object_faults.h - how the test server misbehaves, as told by flags or by POST /_control.
 *
 * One table of names serves both. What happens to a request is drawn from (seed, key, how often the
 * key was asked for), so that the same requests meet the same faults in whatever order they come.
 */
#ifndef OBJECT_FAULTS_H
#define OBJECT_FAULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "object_text.h"

typedef enum os_fault {
    OS_FAULT_NONE,
    OS_FAULT_REFUSE,   /* a reset instead of an answer */
    OS_FAULT_HANG,     /* no answer */
    OS_FAULT_FAIL,     /* an error of the server's */
    OS_FAULT_DENY,     /* an error that says no */
    OS_FAULT_MISSING,  /* the object is not there */
    OS_FAULT_DROP,     /* closed or reset within the body */
    OS_FAULT_STALL,    /* half of the body, then silence */
    OS_FAULT_TRUNCATE, /* a whole answer with an object that is cut */
    OS_FAULT_CORRUPT,  /* one bit of the body is wrong */
    OS_FAULT_CLOSE,    /* a whole answer, then closed without notice */
    OS_FAULT_ENDLESS,  /* a body that never ends */
    OS_FAULT_HEAD,     /* a head that never ends */
    OS_FAULT_EMPTY,    /* status 200 and no body */
    OS_FAULT_KINDS
} os_fault;

/* What is asked for; the numbers are what the control names say. */
typedef struct os_settings {
    double delay_ms, delay_jitter_ms; /* before the first byte: the one plus up to the other */
    double tail_percent, tail_ms;
    double hang_percent, fail_percent, fail_status, fail_503_for_s;
    double drop_percent, stall_percent, truncate_percent, corrupt_percent, close_percent;
    double endless_percent, endless_length; /* the length that such a body's head tells; 0: none */
    double endless_status;                  /* 0: 200 */
    double head_percent, head_lines;        /* 1: of many lines; 0: one line that never ends */
    double empty_percent, away_for_s;
    double refuse;    /* 1: on */
    double rate_kbps; /* kilobits (1,000 bits) per second and connection; 0: no limit */
    double skew_s;    /* the server's clock is ahead by so much */
    double seed;
    double nth;         /* faults hit only the request with this number; 0: all */
    double nth_on;      /* 1: and all that come after it */
    double clear_stats; /* 1: the counts are to start again; whoever does that sets it back */
    char deny[128], missing[128], only[128]; /* parts of keys; "": none, and for `only` all */
    char deny_code[64];                      /* the error that `deny` answers with */
    int64_t fail_until_ns;                   /* follows from fail_503_for_s */
    int64_t away_until_ns;                   /* follows from away_for_s */
} os_settings;

typedef struct os_faults {
    os_settings now;
    os_table asked;    /* by key: uint64_t, how often it was asked for */
    uint64_t requests; /* since `nth` was set last */
} os_faults;

/* What one request meets. */
typedef struct os_plan {
    int64_t delay_ns; /* before the first byte */
    bool is_tail;     /* the delay is tail_ms */
    os_fault fault;
    int status;         /* of OS_FAULT_FAIL */
    bool reset;         /* OS_FAULT_DROP ends with a reset */
    double where;       /* 0 to 1: which byte */
    unsigned char mask; /* one bit, for OS_FAULT_CORRUPT */
    double bytes_per_s; /* 0: no limit */
    uint64_t told;      /* of OS_FAULT_ENDLESS: the Content-Length; 0: none */
    int endless_status;
    bool many_lines; /* of OS_FAULT_HEAD */
} os_plan;

/* The name of a fault in counts and in the log. */
const char *os_fault_name(os_fault fault);

void os_faults_start(os_faults *faults);
void os_faults_free(os_faults *faults);

/* Takes settings spelled `a=b&c=d`: all of them or, with a sentence in `error`, none. */
bool os_faults_set(os_faults *faults, const char *settings, int64_t now_ns, os_text *error);

/* Whether there is a setting of this name. */
bool os_faults_know(const char *name);

/* Prints the names with what they mean, for --help. */
void os_faults_help(FILE *file);

/* Draws what a request for a key meets. Only GETs of bodies have a tail. */
void os_faults_plan(os_faults *faults, const char *key, bool is_get, int64_t now_ns, os_plan *plan);

#endif
