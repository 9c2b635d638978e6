/* verb_bench.c - `stoker bench WHAT`: how fast a part of the line is on this machine. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/json.h"
#include "loader/folder_samples.h"
#include "probe/epoch_probe.h"
#include "probe/loader_probe.h"
#include "probe/probe_options.h"
#include "probe/sheet.h"

/* ---- loader ---- */

/* The keys of --json, in order. The first five are a contract with other tools. */
static const struct {
    const char *key;
    bool whole; /* an int64_t, otherwise a double */
    size_t offset;
} loader_keys[] = {
#define NUMBER(name) \
    { #name, false, offsetof(stk_loader_figures, name) }
#define COUNT(name) \
    { #name, true, offsetof(stk_loader_figures, name) }
    NUMBER(images_per_second),
    COUNT(workers),
    NUMBER(decode_only_per_second_per_core),
    COUNT(rss_bytes),
    NUMBER(first_batch_ms),
    NUMBER(images_per_second_per_core),
    NUMBER(ceiling_share),
    COUNT(cores),
    NUMBER(cores_busy),
    NUMBER(images_per_cpu_second),
    NUMBER(decode_only_per_cpu_second),
    COUNT(readers),
    COUNT(slots),
    COUNT(samples),
    COUNT(batch),
    COUNT(img_size),
    COUNT(images),
    NUMBER(seconds),
    COUNT(decode_images),
    NUMBER(decode_seconds),
    NUMBER(read_us),
    NUMBER(decode_us),
    NUMBER(augment_us),
    NUMBER(read_wait_us),
    COUNT(bad),
#undef NUMBER
#undef COUNT
};

static void put_epoch(stk_json_writer *writer, const stk_epoch_figures *e) {
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"seconds", e->seconds},
                   {"images_per_second", e->images_per_second},
                   {"wait_fraction", e->wait_fraction}};
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"images", e->images},
                  {"read_bytes", e->read_bytes},
                  {"cache_hits", e->cache_hits},
                  {"cache_misses", e->cache_misses}};
    stk_json_begin_object(writer);
    stk_json_key(writer, "epoch");
    stk_json_put_int(writer, e->epoch);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stk_json_key(writer, numbers[i].key);
        stk_json_put_double(writer, stk_as_shown(numbers[i].value));
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        stk_json_key(writer, counts[i].key);
        stk_json_put_int(writer, counts[i].value);
    }
    stk_json_end_object(writer);
}

/* The list of epochs, null when none were measured. */
static void put_epochs(stk_json_writer *writer, const stk_epoch_list *epochs) {
    stk_json_key(writer, "epochs");
    if (epochs->count == 0) {
        stk_json_put_null(writer);
        return;
    }
    stk_json_begin_array(writer);
    for (size_t i = 0; i < epochs->count; i++) {
        put_epoch(writer, &epochs->items[i]);
    }
    stk_json_end_array(writer);
}

static stk_status print_loader_json(const stk_loader_figures *figures, const stk_epoch_list *epochs,
                                    const char *sheet, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    for (size_t i = 0; i < sizeof loader_keys / sizeof *loader_keys; i++) {
        const void *at = figures != NULL ? (const char *)figures + loader_keys[i].offset : NULL;
        stk_json_key(&writer, loader_keys[i].key);
        if (at == NULL) {
            stk_json_put_null(&writer);
        } else if (loader_keys[i].whole) {
            stk_json_put_int(&writer, *(const int64_t *)at);
        } else {
            stk_json_put_double(&writer, stk_as_shown(*(const double *)at));
        }
    }
    stk_json_key(&writer, "sheet");
    stk_json_put_string(&writer, sheet);
    put_epochs(&writer, epochs);
    stk_json_end_object(&writer);
    bool whole = stk_str_ok(&text);
    if (whole) {
        puts(stk_str_text(&text));
    }
    stk_str_free(&text);
    return whole ? STK_OK : STK_FAIL_MEMORY(err, "the figures");
}

static void print_bad(FILE *out, const stk_loader_figures *f) {
    if (f->bad > 0) {
        fprintf(out, "bad           %lld of %lld pictures cannot be used, such as %s\n",
                (long long)f->bad, (long long)f->samples, cli_clean(f->first_bad));
    }
}

static void print_threads(FILE *out, const stk_loader_figures *f) {
    fprintf(out, "threads       %lld decode, %lld read; %lld batches of %lld at %lld px\n",
            (long long)f->workers, (long long)f->readers, (long long)f->slots, (long long)f->batch,
            (long long)f->img_size);
}

static void print_epochs(FILE *out, const stk_loader_figures *f, const stk_epoch_list *epochs) {
    char memory[32];
    stk_format_bytes(memory, sizeof memory, (uint64_t)f->rss_bytes);
    fprintf(out, "epoch   seconds  images/s    wait       read  cache hits    misses\n");
    for (size_t i = 0; i < epochs->count; i++) {
        const stk_epoch_figures *e = &epochs->items[i];
        char bytes[32];
        stk_format_bytes(bytes, sizeof bytes, (uint64_t)e->read_bytes);
        fprintf(out, "%5lld %9.2f %9.1f %5.1f %% %10s %11lld %9lld\n", (long long)e->epoch,
                e->seconds, e->images_per_second, e->wait_fraction * 100, bytes,
                (long long)e->cache_hits, (long long)e->cache_misses);
    }
    fprintf(out, "\nfirst batch   %.0f ms\n", f->first_batch_ms);
    fprintf(out,
            "per image     read %.0f us, decode %.0f us, augment %.0f us, wait for bytes %.0f us\n",
            f->read_us, f->decode_us, f->augment_us, f->read_wait_us);
    fprintf(out, "memory        %s resident at most\n", memory);
    print_threads(out, f);
    print_bad(out, f);
}

static void print_loader_text(FILE *out, const stk_loader_figures *f) {
    char memory[32];
    stk_format_bytes(memory, sizeof memory, (uint64_t)f->rss_bytes);
    fprintf(out, "loader        %.0f images/s, %.0f per core on %lld core%s (%.2f busy)\n",
            f->images_per_second, f->images_per_second_per_core, (long long)f->cores,
            f->cores == 1 ? "" : "s", f->cores_busy);
    fprintf(out, "decode only   %.0f images/s per core; the loader reaches %.0f %% of it\n",
            f->decode_only_per_second_per_core, f->ceiling_share * 100);
    fprintf(out, "by cpu time   %.0f images/s, decode only %.0f\n", f->images_per_cpu_second,
            f->decode_only_per_cpu_second);
    fprintf(out,
            "per image     read %.0f us, decode %.0f us, augment %.0f us, wait for bytes %.0f us\n",
            f->read_us, f->decode_us, f->augment_us, f->read_wait_us);
    fprintf(out, "memory        %s resident\n", memory);
    fprintf(out, "first batch   %.0f ms\n", f->first_batch_ms);
    print_threads(out, f);
    fprintf(out, "measured      %lld images in %.1f s; %lld decoded in full in %.1f s of threads\n",
            (long long)f->images, f->seconds, (long long)f->decode_images, f->decode_seconds);
    print_bad(out, f);
}

/* --prefetch is a wish that --loader-memory may not grant. */
static void print_cut(FILE *out, const stk_options *options, const stk_loader_figures *f) {
    long long wanted = atoll(stk_options_get(options, "prefetch")) * f->workers;
    if (f->slots < wanted) {
        fprintf(out, "cut           %lld batches instead of %lld: --loader-memory allows no more\n",
                (long long)f->slots, wanted);
    }
}

/* What was measured, as asked for. */
static stk_status print_loader(const cli_session *session, const stk_loader_figures *figures,
                               const stk_epoch_list *epochs, const char *sheet, stk_error *err) {
    if (session->json) {
        return print_loader_json(figures, epochs, sheet, err);
    }
    if (session->quiet) {
        return STK_OK;
    }
    FILE *out = cli_people(session);
    if (epochs->count > 0) {
        print_epochs(out, figures, epochs);
    } else if (figures != NULL) {
        print_loader_text(out, figures);
    }
    if (figures != NULL) {
        print_cut(out, session->options, figures);
    }
    if (sheet != NULL) {
        fprintf(out, "sheet         %s\n", cli_clean(sheet));
    }
    return STK_OK;
}

static stk_status bench_loader(cli_session *session, stk_epoch_list *epochs, stk_error *err) {
    const stk_probe_options *given = stk_options_values(session->options, &stk_probe_option_table);
    const stk_folder_options *feed = stk_options_values(session->options, &stk_folder_option_table);
    const stk_stop *stop = session->run.stop;
    stk_events events = {0};
    stk_loader_figures figures = {0};
    bool by_epoch = given->rate > 0 || feed->epochs > 0;
    bool measured = given->seconds > 0;
    const char *sheet = NULL; /* set when it is written */
    if (!measured && given->sheet == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--seconds 0 measures nothing; pass more of them, or --sheet FILE.png");
    }
    stk_status status = STK_OK;
    stk_events_add(&events, cli_run_for_object(session).observer);
    if (measured) {
        status = by_epoch ? stk_probe_epochs(session->options, given->rate, given->seconds, stop,
                                             &events, &figures, epochs, err)
                          : stk_probe_loader(session->options, given->seconds, stop, &events,
                                             &figures, err);
        if (status != STK_OK) {
            return status;
        }
    }
    if (given->sheet != NULL) {
        status =
            stk_sheet_write(session->options, stop, measured ? NULL : &events, given->sheet, err);
        sheet = status == STK_OK ? given->sheet : NULL;
    }
    /* A sheet that cannot be written does not take away what was measured. */
    if (measured || status == STK_OK) {
        stk_status printed = print_loader(session, measured ? &figures : NULL, epochs, sheet, err);
        status = status == STK_OK ? printed : status;
    }
    return status;
}

static stk_status bench_and_free(cli_session *session, stk_error *err) {
    stk_epoch_list epochs = {0};
    stk_status status = bench_loader(session, &epochs, err);
    stk_epoch_list_free(&epochs);
    return status;
}

static int run_loader(const cli_verb *verb, int argc, char **argv) {
    return cli_run_work(verb, argc, argv, "data", bench_and_free);
}

static const cli_verb loader = {
    .name = "bench loader",
    .output = "sheet",
    .summary = "Measures how fast pictures become batches, beside decoding alone.",
    .usage = "--data DIR [--seconds N] [--epochs N] [--rate N] [--sheet FILE.png] [options]",
    .options = stk_options_for_bench_loader,
    .run = run_loader,
    .ends_at_stop = true,
};

/* ---- the list of them ---- */

static const cli_verb *const subjects[] = {&loader, &cli_bench_storage, &cli_bench_step, NULL};

static int run(const cli_verb *verb, int argc, char **argv) {
    if (argc < 1) {
        cli_print_help(verb);
        return stk_status_exit_code(STK_ERR_USAGE);
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        return cli_print_help(verb);
    }
    const cli_verb *subject = cli_find(subjects, argv[0]);
    return subject != NULL ? subject->run(subject, argc - 1, argv + 1)
                           : cli_unknown(subjects, argv[0]);
}

const cli_verb cli_bench = {
    .name = "bench",
    .summary = "Measures how fast a part of Stoker is on this machine.",
    .usage = "WHAT [options]",
    .run = run,
    .subjects = subjects,
};
