/*
 * object_stats.c - see the header.
 */
#include "object_stats.h"

static void add_count(os_text *text, const char *name, uint64_t count) {
    os_text_addf(text, ",\n  \"%s\": %llu", name, (unsigned long long)count);
}

void os_stats_write(const os_stats *stats, os_text *text) {
    uint64_t faults = 0;
    for (int i = OS_FAULT_NONE + 1; i < OS_FAULT_KINDS; i++) {
        faults += stats->faults[i];
    }
    os_text_addf(text, "{\n  \"requests\": %llu", (unsigned long long)stats->requests);
    add_count(text, "gets", stats->gets);
    add_count(text, "heads", stats->heads);
    add_count(text, "lists", stats->lists);
    add_count(text, "credentials", stats->credentials);
    add_count(text, "bytes", stats->bytes);
    add_count(text, "connections", stats->connections);
    add_count(text, "open_connections", stats->open_connections);
    add_count(text, "in_flight", stats->in_flight);
    add_count(text, "max_in_flight", stats->max_in_flight);
    add_count(text, "delays", stats->delays);
    add_count(text, "tails", stats->tails);
    add_count(text, "faults", faults);
    for (int i = OS_FAULT_NONE + 1; i < OS_FAULT_KINDS; i++) {
        os_text_addf(text, ",\n  \"fault_%s\": %llu", os_fault_name((os_fault)i),
                     (unsigned long long)stats->faults[i]);
    }
    for (int i = 0; i < 600; i++) {
        if (stats->status[i] > 0) {
            os_text_addf(text, ",\n  \"status_%d\": %llu", i, (unsigned long long)stats->status[i]);
        }
    }
    os_text_addf(text, "\n}\n");
}

void os_stats_clear(os_stats *stats) {
    *stats = (os_stats){.open_connections = stats->open_connections,
                        .in_flight = stats->in_flight,
                        .max_in_flight = stats->in_flight};
}
