/* verb_bench_step.c - `stoker bench step`: how fast a training step is. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "probe/probe_options.h"
#include "probe/step_probe.h"

/* The keys of --json, in order. The first nine are a contract with other tools. */
static void put_figures(stk_json_writer *writer, const stk_step_figures *f) {
    const struct {
        const char *key;
        const char *text; /* NULL: the number counts */
        double number;
        bool whole;
    } keys[] = {{"model", f->model, 0, false},
                {"batch", NULL, (double)f->batch, true},
                {"img_size", NULL, (double)f->img_size, true},
                {"precision", f->precision, 0, false},
                {"device", f->device, 0, false},
                {"images_per_second", NULL, stk_as_shown(f->images_per_second), false},
                {"ms_per_step", NULL, stk_as_shown(f->ms_per_step), false},
                {"bytes", NULL, (double)f->bytes, true},
                {"warmup_s", NULL, stk_as_shown(f->warmup_s), false},
                {"mode", f->inference ? "inference" : "training", 0, false},
                {"ms_fastest", NULL, stk_as_shown(f->ms_fastest), false},
                {"ms_slowest", NULL, stk_as_shown(f->ms_slowest), false},
                {"arena_bytes", NULL, (double)f->arena_bytes, true},
                {"rss_bytes", NULL, (double)f->rss_bytes, true},
                {"plan_ms", NULL, stk_as_shown(f->plan_ms), false},
                {"steps", NULL, (double)f->steps, true},
                {"classes", NULL, (double)f->classes, true},
                {"threads", NULL, (double)f->threads, true}};
    stk_json_begin_object(writer);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        stk_json_key(writer, keys[i].key);
        if (keys[i].text != NULL) {
            stk_json_put_string(writer, keys[i].text);
        } else if (keys[i].whole) {
            stk_json_put_int(writer, (int64_t)keys[i].number);
        } else {
            stk_json_put_double(writer, keys[i].number);
        }
    }
    stk_json_end_object(writer);
}

typedef struct listener {
    const cli_session *session;
    int64_t told;
    bool lost; /* no memory for a line */
} listener;

static void print_text(listener *l, const stk_step_figures *f) {
    char bytes[32];
    if (l->told == 0) {
        printf("%s at %lld px on %s, %s, %lld thread%s: %s\n", f->model, (long long)f->img_size,
               f->device, f->precision, (long long)f->threads, f->threads == 1 ? "" : "s",
               f->inference ? "inference" : "training");
        printf("  batch  images/s   ms per step (fastest to slowest)     memory  warm-up  steps\n");
    }
    printf("%7lld %9.2f %13.1f (%.1f to %.1f) %*s%10s %6.1f s %6lld\n", (long long)f->batch,
           f->images_per_second, f->ms_per_step, f->ms_fastest, f->ms_slowest, 6, "",
           stk_format_bytes(bytes, sizeof bytes, (uint64_t)f->bytes), f->warmup_s,
           (long long)f->steps);
}

/* A batch may take long: each is told when it is done. */
static void tell(void *user, const stk_step_figures *f) {
    listener *l = user;
    if (l->session->json) {
        stk_str text = {0};
        stk_json_writer writer = stk_json_write_to(&text, 0);
        put_figures(&writer, f);
        l->lost = l->lost || !stk_str_ok(&text);
        if (stk_str_ok(&text)) {
            puts(stk_str_text(&text));
        }
        stk_str_free(&text);
    } else if (!l->session->quiet) {
        print_text(l, f);
    }
    fflush(stdout);
    l->told++;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    listener l = {.session = &session};
    stk_status status = cli_take_word(&session, "model", &err);
    if (status == STK_OK) {
        status = stk_probe_step(session.options, session.run.stop, tell, &l, &err);
    }
    if (status == STK_OK && l.lost) {
        status = STK_FAIL_MEMORY(&err, "the figures");
    }
    return cli_close(&session, status, &err);
}

const cli_verb cli_bench_step = {
    .name = "bench step",
    .summary = "Measures how fast a training step of a network is.",
    .usage = "--model NAME [--batch N,N...] [--img-size PX] [options]",
    .options = stk_options_for_bench_step,
    .run = run,
};
