/*
 * object_stats.h - what the test server counts, for GET /_stats.
 */
#ifndef OBJECT_STATS_H
#define OBJECT_STATS_H

#include <stdint.h>

#include "object_faults.h"
#include "object_text.h"

/* Requests for /_control and /_stats are not counted anywhere but in the connections. */
typedef struct os_stats {
    uint64_t requests;
    uint64_t gets, heads, lists; /* of objects, of objects, of keys */
    uint64_t credentials;        /* requests to the metadata and the container service */
    uint64_t bytes;              /* of bodies, as handed to the kernel */
    uint64_t connections;        /* accepted */
    uint64_t open_connections;   /* now */
    uint64_t in_flight;          /* requests now between their last byte and the answer's last */
    uint64_t max_in_flight;
    uint64_t delays, tails;
    uint64_t faults[OS_FAULT_KINDS];
    uint64_t status[600]; /* answers by status */
} os_stats;

/* Adds the counts as one JSON object with a key on each line. */
void os_stats_write(const os_stats *stats, os_text *text);

/* Back to nothing, but for what is open and in flight now. */
void os_stats_clear(os_stats *stats);

#endif
