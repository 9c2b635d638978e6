/* verb_bench_step.c - `stoker bench step`: how fast a training step is. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "budget/batch_choice.h"
#include "probe/probe_options.h"
#include "probe/step_probe.h"
#include "probe/torch_probe.h"
#include "report/text/event_json.h"

static const char *mode_of(const stk_step_figures *f) {
    return f->inference ? "inference" : "training";
}

static const stk_field profile_rows[] = {
    STK_FIELD(stk_profile_line, CHARS, "what", what),
    STK_FIELD(stk_profile_line, COUNT, "calls", calls),
    STK_FIELD(stk_profile_line, NUMBER, "ms", ms),
};

static void put_profile(stk_json_writer *writer, const stk_step_figures *f) {
    stk_json_key(writer, "profile");
    stk_json_begin_array(writer);
    for (size_t i = 0; i < f->profile_count; i++) {
        const stk_profile_line *line = &f->profile[i];
        stk_json_begin_object(writer);
        stk_fields_put(writer, &(stk_fields)STK_FIELDS(profile_rows), line);
        stk_json_key(writer, "bytes");
        stk_json_put_int(writer, (int64_t)line->bytes);
        stk_json_end_object(writer);
    }
    stk_json_end_array(writer);
}

/* What was measured. The objects of Stoker and of PyTorch both have these keys. */
static const stk_field network_rows[] = {
    STK_FIELD(stk_step_figures, TEXT, "model", model),
    STK_FIELD(stk_step_figures, COUNT64, "batch", batch),
    STK_FIELD(stk_step_figures, COUNT64, "img_size", img_size),
    STK_FIELD(stk_step_figures, TEXT, "precision", precision),
    STK_FIELD(stk_step_figures, CHARS, "device", device),
};

/* These keys and those of the network are a contract with other tools. */
static const stk_field speed_rows[] = {
    STK_FIELD(stk_step_figures, NUMBER, "images_per_second", images_per_second),
    STK_FIELD(stk_step_figures, NUMBER, "ms_per_step", ms_per_step),
    STK_FIELD(stk_step_figures, COUNT64, "bytes", bytes),
    STK_FIELD(stk_step_figures, NUMBER, "warmup_s", warmup_s),
};

static const stk_field step_rows[] = {
    STK_FIELD(stk_step_figures, NUMBER, "ms_fastest", ms_fastest),
    STK_FIELD(stk_step_figures, NUMBER, "ms_slowest", ms_slowest),
    STK_FIELD(stk_step_figures, COUNT64, "arena_bytes", arena_bytes),
    STK_FIELD(stk_step_figures, COUNT64, "rss_bytes", rss_bytes),
    STK_FIELD(stk_step_figures, NUMBER, "plan_ms", plan_ms),
    STK_FIELD(stk_step_figures, COUNT64, "steps", steps),
    STK_FIELD(stk_step_figures, COUNT64, "windows", windows),
};

static const stk_field device_rows[] = {
    STK_FIELD(stk_step_figures, NUMBER, "bandwidth", bandwidth),
    STK_FIELD(stk_step_figures, NUMBER, "traffic_fraction", traffic_fraction),
    STK_FIELD(stk_step_figures, COUNT64, "kernels_compiled", kernels_compiled),
    STK_FIELD(stk_step_figures, COUNT64, "kernels_loaded", kernels_loaded),
    STK_FIELD(stk_step_figures, COUNT64, "plans_timed", plans_timed),
    STK_FIELD(stk_step_figures, COUNT64, "plans_loaded", plans_loaded),
    STK_FIELD(stk_step_figures, COUNT64, "classes", classes),
    STK_FIELD(stk_step_figures, COUNT64, "threads", threads),
};

static void put_figures(stk_json_writer *writer, const void *figures) {
    const stk_step_figures *f = figures;
    stk_json_begin_object(writer);
    stk_fields_put(writer, &(stk_fields)STK_FIELDS(network_rows), f);
    stk_fields_put(writer, &(stk_fields)STK_FIELDS(speed_rows), f);
    stk_json_key(writer, "mode");
    stk_json_put_string(writer, mode_of(f));
    stk_fields_put(writer, &(stk_fields)STK_FIELDS(step_rows), f);
    stk_json_key(writer, "traffic_bytes");
    stk_json_put_int(writer, (int64_t)f->traffic_bytes);
    stk_fields_put(writer, &(stk_fields)STK_FIELDS(device_rows), f);
    if (f->profile != NULL) {
        put_profile(writer, f);
    }
    stk_json_end_object(writer);
}

/* What was printed so far, and the first error. */
typedef struct listener {
    const cli_session *session;
    const stk_step_probe_options *options;
    stk_step_figures told[STK_STEP_MOST_BATCHES];
    size_t count;
    const char *torch_missing; /* why PyTorch is no longer measured; NULL: it is */
    char missing[160];
    bool unkept;     /* the note that nothing can be kept was printed */
    stk_error error; /* first error */
} listener;

/* Lines of a profile shown to people; JSON has all. */
#define SHOWN_LINES 40

static void print_profile(const stk_step_figures *f) {
    double all = 0;
    for (size_t i = 0; i < f->profile_count; i++) {
        all += f->profile[i].ms;
    }
    printf("        one operation at a time: %.2f ms\n", all);
    printf("              ms  share  calls    GB/s  what\n");
    for (size_t i = 0; i < f->profile_count && i < SHOWN_LINES; i++) {
        const stk_profile_line *line = &f->profile[i];
        printf("        %8.3f %5.1f%% %6d %7.0f  %s\n", line->ms, 100 * line->ms / all, line->calls,
               line->bytes / line->ms * 1e-6, line->what);
    }
}

static void print_text(const listener *l, const stk_step_figures *f) {
    char bytes[32];
    if (l->count == 0) {
        printf("%s at %lld px on %s, %s, %lld thread%s: %s\n", f->model, (long long)f->img_size,
               f->device, f->precision, (long long)f->threads, f->threads == 1 ? "" : "s",
               mode_of(f));
        if (strcmp(f->device, "cpu") != 0) {
            printf("%s: %s\n", f->device, cli_clean(f->about));
        }
        printf("  batch  images/s   ms per step (fastest to slowest)     memory  warm-up  steps\n");
    }
    printf("%7lld %9.2f %13.1f (%.1f to %.1f) %*s%10s %6.1f s %6lld\n", (long long)f->batch,
           f->images_per_second, f->ms_per_step, f->ms_fastest, f->ms_slowest, 6, "",
           stk_format_bytes(bytes, sizeof bytes, (uint64_t)f->bytes), f->warmup_s,
           (long long)f->steps);
    if (isfinite(f->traffic_fraction)) {
        printf("        %.0f %% of the device's memory bandwidth (%.2f TB/s): %s a step\n",
               100 * f->traffic_fraction, f->bandwidth * 1e-12,
               stk_format_bytes(bytes, sizeof bytes, (uint64_t)f->traffic_bytes));
    }
    if (f->profile != NULL) {
        print_profile(f);
    }
}

/* One line of JSON; `put` fills the object. A failure is the listener's error. */
static void print_json(listener *l, void (*put)(stk_json_writer *writer, const void *figures),
                       const void *figures) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    put(&writer, figures);
    (void)cli_print_object(&text, &l->error);
}

/* The speed of PyTorch compared with a step of Stoker. */
typedef struct torch_line {
    const stk_step_figures *step;
    const stk_torch_figures *torch;
} torch_line;

static const stk_field torch_rows[] = {
    STK_FIELD(stk_torch_figures, NUMBER, "images_per_second", images_per_second),
    STK_FIELD(stk_torch_figures, NUMBER, "ms_per_step", ms_per_step),
    STK_FIELD(stk_torch_figures, NUMBER, "warmup_s", warmup_s),
};

static void put_torch(stk_json_writer *writer, const void *figures) {
    const torch_line *line = figures;
    const stk_torch_figures *t = line->torch;
    stk_json_begin_object(writer);
    stk_json_key(writer, "compare");
    stk_json_put_string(writer, "torch");
    stk_json_key(writer, "version");
    stk_json_put_string(writer, t->version);
    stk_json_key(writer, "torch_mode");
    stk_json_put_string(writer, t->mode);
    stk_json_key(writer, "mode");
    stk_json_put_string(writer, mode_of(line->step));
    stk_fields_put(writer, &(stk_fields)STK_FIELDS(network_rows), line->step);
    stk_fields_put(writer, &(stk_fields)STK_FIELDS(torch_rows), t);
    stk_json_key(writer, "ratio");
    stk_json_put_double(writer, stk_as_shown(line->step->images_per_second / t->images_per_second));
    stk_json_key(writer, "error");
    stk_json_put_string(writer, t->error[0] != '\0' ? t->error : NULL);
    stk_json_end_object(writer);
}

static void print_torch(const stk_step_figures *step, const stk_torch_figures *t) {
    if (t->error[0] != '\0') {
        printf("        torch %s, %s: %s\n", cli_clean(t->version), t->mode, cli_clean(t->error));
        return;
    }
    printf(
        "        torch %s, %-7s %9.2f images/s %8.1f ms per step, warm-up %.1f s: Stoker is %.2f "
        "times as fast\n",
        t->version, t->mode, t->images_per_second, t->ms_per_step, t->warmup_s,
        step->images_per_second / t->images_per_second);
}

typedef struct comparison {
    listener *listener;
    const stk_step_figures *step;
} comparison;

static void tell_torch(void *user, const stk_torch_figures *t) {
    const comparison *c = user;
    if (c->listener->session->json) {
        print_json(c->listener, put_torch, &(torch_line){c->step, t});
    } else if (!c->listener->session->quiet) {
        print_torch(c->step, t);
    }
    fflush(stdout); /* the next mode may take minutes */
}

/* Compares with PyTorch; if it is missing, says so once. */
static void compare(listener *l, const stk_step_figures *f) {
    comparison c = {l, f};
    stk_torch_listener torch = {&c, tell_torch};
    if (l->options->compare == NULL || l->torch_missing != NULL || l->error.status != STK_OK) {
        return;
    }
    if (stk_probe_torch(f, l->options->seconds, l->session->run.stop, &torch, l->missing,
                        sizeof l->missing, &l->error) == STK_OK &&
        l->missing[0] != '\0') {
        l->torch_missing = l->missing;
        if (!l->session->quiet) {
            fprintf(stderr, "stoker: no comparison with PyTorch: %s\n", cli_clean(l->missing));
        }
    }
}

/* Prints each batch when it is done, since one may take long. */
static void tell(void *user, const stk_step_figures *f) {
    listener *l = user;
    if (l->session->json) {
        print_json(l, put_figures, f);
    } else if (!l->session->quiet) {
        print_text(l, f);
    }
    fflush(stdout);
    if (f->unkept[0] != '\0' && !l->unkept && !l->session->quiet) {
        fprintf(stderr, "stoker: the next start compiles and times all of it again: %s\n",
                cli_clean(f->unkept));
        l->unkept = true;
    }
    compare(l, f);
    fflush(stdout);
    l->told[l->count++] = *f;
}

#define CURVE_WIDTH 50

/* Shows how images/s grow with the batch, and from which batch on they no longer do. */
static void print_curve(const listener *l, int64_t knee) {
    double best = 0;
    for (size_t i = 0; i < l->count; i++) {
        best = fmax(best, l->told[i].images_per_second);
    }
    putchar('\n');
    for (size_t i = 0; i < l->count; i++) {
        const stk_step_figures *f = &l->told[i];
        int width = (int)(CURVE_WIDTH * f->images_per_second / best + 0.5);
        printf("%7lld %-*.*s %9.2f%s\n", (long long)f->batch, CURVE_WIDTH, width,
               "##################################################", f->images_per_second,
               f->batch == knee ? "  knee" : "");
    }
    printf("The smallest batch within %.0f %% of the best is %lld.\n", 100 * STK_BATCH_KNEE,
           (long long)knee);
}

static void put_knee(stk_json_writer *writer, const void *figures) {
    const listener *l = figures;
    stk_json_begin_object(writer);
    stk_json_key(writer, "model");
    stk_json_put_string(writer, l->told[0].model);
    stk_json_key(writer, "knee");
    stk_json_put_int(writer, stk_step_knee(l->told, l->count));
    stk_json_end_object(writer);
}

static void tell_knee(listener *l) {
    if (l->count < 2) {
        return;
    }
    if (l->session->json) {
        print_json(l, put_knee, l);
    } else if (!l->session->quiet) {
        print_curve(l, stk_step_knee(l->told, l->count));
    }
}

static stk_status bench(cli_session *session, stk_error *err) {
    listener l = {.session = session,
                  .options = stk_options_values(session->options, &stk_step_probe_option_table)};
    if (l.options->compare != NULL && strcmp(l.options->compare, "torch") != 0) {
        return STK_FAIL(err, STK_ERR_USAGE, "--compare %s: give torch", l.options->compare);
    }
    stk_status status = stk_probe_step(session->options, session->run.stop, tell, &l, err);
    if (status == STK_OK) {
        tell_knee(&l);
    }
    return status == STK_OK && l.error.status != STK_OK
               ? STK_FAIL(err, l.error.status, "%s", l.error.message)
               : status;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_work(verb, argc, argv, "model", bench);
}

const cli_verb cli_bench_step = {
    .name = "bench step",
    .summary = "Measures how fast a training step of a network is.",
    .usage = "--model NAME [--batch N,N...] [--img-size PX] [options]",
    .options = stk_options_for_bench_step,
    .run = run,
};
