/*
 * verb_bench_storage.c - `stoker bench storage`: how fast a location delivers pictures, and with
 * how many reads in flight.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "probe/probe_options.h"
#include "probe/storage_probe.h"
#include "report/text/event_json.h"

/* ---- for programs ---- */

static const stk_field step_rows[] = {
    STK_FIELD(stk_storage_step, COUNT64, "in_flight", in_flight),
    STK_FIELD(stk_storage_step, NUMBER, "objects_per_second", objects_per_second),
    STK_FIELD(stk_storage_step, NUMBER, "bytes_per_second", bytes_per_second),
    STK_FIELD(stk_storage_step, NUMBER, "p50_ms", p50_ms),
    STK_FIELD(stk_storage_step, NUMBER, "p90_ms", p90_ms),
    STK_FIELD(stk_storage_step, NUMBER, "p99_ms", p99_ms),
    STK_FIELD(stk_storage_step, NUMBER, "max_ms", max_ms),
    STK_FIELD(stk_storage_step, COUNT64, "reads", reads),
    STK_FIELD(stk_storage_step, COUNT64, "failed", failed),
    STK_FIELD(stk_storage_step, NUMBER, "seconds", seconds),
};

static const stk_field findings_rows[] = {
    STK_FIELD(stk_storage_findings, NUMBER, "best_objects_per_second", choice.best_rate),
    STK_FIELD(stk_storage_findings, COUNT64, "best_in_flight", choice.best_in_flight),
    STK_FIELD(stk_storage_findings, COUNT64, "objects", objects),
    STK_FIELD(stk_storage_findings, NUMBER, "list_s", list_s),
    STK_FIELD(stk_storage_findings, NUMBER, "mean_bytes", mean_bytes),
    STK_FIELD(stk_storage_findings, COUNT64, "reads", reads),
    STK_FIELD(stk_storage_findings, COUNT64, "failed", failed),
    STK_FIELD(stk_storage_findings, COUNT64, "retries", counters.retries),
    STK_FIELD(stk_storage_findings, COUNT64, "hedges", counters.hedges),
    STK_FIELD(stk_storage_findings, COUNT64, "timeouts", counters.timeouts),
    STK_FIELD(stk_storage_findings, COUNT64, "cache_hits", counters.cache_hits),
    STK_FIELD(stk_storage_findings, COUNT64, "cache_misses", counters.cache_misses),
    STK_FIELD(stk_storage_findings, COUNT64, "threads", threads),
};

static stk_status print_json(const stk_storage_findings *f, double wanted, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "steps");
    stk_json_begin_array(&writer);
    for (size_t i = 0; i < f->step_count; i++) {
        stk_json_begin_object(&writer);
        stk_fields_put(&writer, &(stk_fields)STK_FIELDS(step_rows), &f->steps[i]);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    stk_json_key(&writer, "wanted_per_second");
    stk_json_put_double(&writer, stk_as_shown(wanted));
    stk_json_key(&writer, "enough_in_flight");
    if (f->choice.enough > 0) {
        stk_json_put_int(&writer, f->choice.enough);
    } else {
        stk_json_put_null(&writer);
    }
    stk_fields_put(&writer, &(stk_fields)STK_FIELDS(findings_rows), f);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

/* ---- for people ---- */

/* Writes "2,950" for large rates, "0.5" for small ones; returns buf. */
static const char *show_rate(char *buf, size_t size, double rate) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%.0f", rate);
    size_t out = 0;
    if (rate < 10) {
        snprintf(buf, size, "%.2g", rate);
        return buf;
    }
    for (int i = 0; i < length && out + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            buf[out++] = ',';
        }
        buf[out++] = digits[i];
    }
    buf[out] = '\0';
    return buf;
}

static void print_choice(const stk_storage_choice *c, double wanted) {
    char rate[48];
    char best[48];
    const char *more = c->is_last ? "the most that was tried" : "more brings nothing";
    show_rate(rate, sizeof rate, wanted);
    show_rate(best, sizeof best, c->best_rate);
    if (c->enough > 0) {
        printf("%s images/s need %lld in flight; the location gave %s objects/s with %lld, %s\n",
               rate, (long long)c->enough, best, (long long)c->best_in_flight, more);
    } else {
        printf("%s images/s were not reached; the location gave %s objects/s with %lld in flight, "
               "%s\n",
               rate, best, (long long)c->best_in_flight, more);
    }
}

static void print_text(const stk_storage_findings *f, double wanted) {
    char mean[32];
    const stk_store_counters *c = &f->counters;
    printf("in flight  objects/s     MB/s    p50 ms    p90 ms    p99 ms    max ms\n");
    for (size_t i = 0; i < f->step_count; i++) {
        const stk_storage_step *s = &f->steps[i];
        printf("%9lld %10.1f %8.2f %9.2f %9.2f %9.2f %9.2f\n", (long long)s->in_flight,
               s->objects_per_second, s->bytes_per_second * 1e-6, s->p50_ms, s->p90_ms, s->p99_ms,
               s->max_ms);
    }
    printf("\n");
    print_choice(&f->choice, wanted);
    stk_format_bytes(mean, sizeof mean, (uint64_t)(f->mean_bytes > 0 ? f->mean_bytes : 0));
    printf("objects       %lld of %s in the mean, listed in %.2f s\n", (long long)f->objects, mean,
           f->list_s);
    printf("reads         %lld; %llu retried, %llu hedged, %llu timed out\n", (long long)f->reads,
           (unsigned long long)c->retries, (unsigned long long)c->hedges,
           (unsigned long long)c->timeouts);
    if (f->reads > f->objects) {
        printf("repeated      there are fewer objects than reads: caches on the way may have "
               "helped\n");
    }
    if (c->cache_hits + c->cache_misses > 0) {
        printf("cache         %llu hits, %llu misses\n", (unsigned long long)c->cache_hits,
               (unsigned long long)c->cache_misses);
    }
    if (f->failed > 0) {
        printf("failed        %lld reads, such as: %s\n", (long long)f->failed,
               cli_clean(f->first_failure.message));
    }
}

/* ---- the verb ---- */

static stk_status bench(cli_session *session, stk_error *err) {
    const stk_storage_probe_options *given =
        stk_options_values(session->options, &stk_storage_probe_option_table);
    stk_storage_findings findings;
    stk_storage_question question = {.data = given->data,
                                     .storage = stk_storage_to_measure(session->options),
                                     .in_flight = stk_in_flight_auto(),
                                     .stop_when_flat = given->in_flight == NULL,
                                     .seconds = given->seconds,
                                     .wanted = given->rate};
    if (given->data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--data is missing: the folder or address of pictures to read");
    }
    stk_status status = given->in_flight != NULL
                            ? stk_in_flight_parse(given->in_flight, &question.in_flight, err)
                            : STK_OK;
    stk_events events = {0};
    stk_events_add(&events, cli_run_for_object(session).observer);
    question.events = &events;
    if (status == STK_OK) {
        status = stk_probe_storage(&question, session->run.stop, &findings, err);
    }
    if (status == STK_OK && session->json) {
        status = print_json(&findings, given->rate, err);
    } else if (status == STK_OK && !session->quiet) {
        print_text(&findings, given->rate);
    }
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_work(verb, argc, argv, "data", bench);
}

const cli_verb cli_bench_storage = {
    .name = "bench storage",
    .summary =
        "Measures how fast a location delivers pictures, with few and with many reads in flight.",
    .usage = "--data PATH|URL [--rate N] [--in-flight N,N...] [options]",
    .options = stk_options_for_bench_storage,
    .run = run,
    .ends_at_stop = true,
};
