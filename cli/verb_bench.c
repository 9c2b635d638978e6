/* verb_bench.c - `stoker bench WHAT`: how fast a part of the line is on this machine. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader/folder_samples.h"
#include "probe/epoch_probe.h"
#include "probe/loader_probe.h"
#include "probe/probe_options.h"
#include "probe/sheet.h"
#include "report/text/event_json.h"

/* ---- loader ---- */

/* The keys of --json, in order. The first five are a contract with other tools. */
static const stk_field loader_rows[] = {
    STK_FIELD(stk_loader_figures, NUMBER, "images_per_second", images_per_second),
    STK_FIELD(stk_loader_figures, COUNT64, "workers", workers),
    STK_FIELD(stk_loader_figures, NUMBER, "decode_only_per_second_per_core",
              decode_only_per_second_per_core),
    STK_FIELD(stk_loader_figures, COUNT64, "rss_bytes", rss_bytes),
    STK_FIELD(stk_loader_figures, NUMBER, "first_batch_ms", first_batch_ms),
    STK_FIELD(stk_loader_figures, NUMBER, "images_per_second_per_core", images_per_second_per_core),
    STK_FIELD(stk_loader_figures, NUMBER, "ceiling_share", ceiling_share),
    STK_FIELD(stk_loader_figures, COUNT64, "cores", cores),
    STK_FIELD(stk_loader_figures, NUMBER, "cores_busy", cores_busy),
    STK_FIELD(stk_loader_figures, NUMBER, "images_per_cpu_second", images_per_cpu_second),
    STK_FIELD(stk_loader_figures, NUMBER, "decode_only_per_cpu_second", decode_only_per_cpu_second),
    STK_FIELD(stk_loader_figures, COUNT64, "readers", readers),
    STK_FIELD(stk_loader_figures, COUNT64, "slots", slots),
    STK_FIELD(stk_loader_figures, COUNT64, "samples", samples),
    STK_FIELD(stk_loader_figures, COUNT64, "batch", batch),
    STK_FIELD(stk_loader_figures, COUNT64, "img_size", img_size),
    STK_FIELD(stk_loader_figures, COUNT64, "images", images),
    STK_FIELD(stk_loader_figures, NUMBER, "seconds", seconds),
    STK_FIELD(stk_loader_figures, COUNT64, "decode_images", decode_images),
    STK_FIELD(stk_loader_figures, NUMBER, "decode_seconds", decode_seconds),
    STK_FIELD(stk_loader_figures, NUMBER, "read_us", read_us),
    STK_FIELD(stk_loader_figures, NUMBER, "decode_us", decode_us),
    STK_FIELD(stk_loader_figures, NUMBER, "augment_us", augment_us),
    STK_FIELD(stk_loader_figures, NUMBER, "read_wait_us", read_wait_us),
    STK_FIELD(stk_loader_figures, NUMBER, "device_share", device_share),
    STK_FIELD(stk_loader_figures, COUNT, "jpeg_engines", jpeg_engines),
    STK_FIELD(stk_loader_figures, NUMBER, "cpu_seconds_per_image", cpu_seconds_per_image),
    STK_FIELD(stk_loader_figures, COUNT64, "bad", bad),
};

static const stk_field epoch_rows[] = {
    STK_FIELD(stk_epoch_figures, COUNT64, "epoch", epoch),
    STK_FIELD(stk_epoch_figures, NUMBER, "seconds", seconds),
    STK_FIELD(stk_epoch_figures, NUMBER, "images_per_second", images_per_second),
    STK_FIELD(stk_epoch_figures, NUMBER, "wait_fraction", wait_fraction),
    STK_FIELD(stk_epoch_figures, COUNT64, "images", images),
    STK_FIELD(stk_epoch_figures, COUNT64, "read_bytes", read_bytes),
    STK_FIELD(stk_epoch_figures, COUNT64, "cache_hits", cache_hits),
    STK_FIELD(stk_epoch_figures, COUNT64, "cache_misses", cache_misses),
};

/* Without `figures` their members are null; without epochs the list is null. */
static stk_status print_loader_json(const stk_loader_figures *figures, const stk_epoch_list *epochs,
                                    const char *sheet, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_fields_put(&writer, &(stk_fields)STK_FIELDS(loader_rows), figures);
    stk_json_key(&writer, "sheet");
    stk_json_put_string(&writer, sheet);
    stk_json_key(&writer, "epochs");
    if (epochs->count == 0) {
        stk_json_put_null(&writer);
    } else {
        stk_json_begin_array(&writer);
        for (size_t i = 0; i < epochs->count; i++) {
            stk_json_begin_object(&writer);
            stk_fields_put(&writer, &(stk_fields)STK_FIELDS(epoch_rows), &epochs->items[i]);
            stk_json_end_object(&writer);
        }
        stk_json_end_array(&writer);
    }
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
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

/* Who decoded, if a device did, and what was left to the cores. */
static void print_decoding(FILE *out, const stk_loader_figures *f) {
    if (f->device[0] != '\0') {
        char engines[32] = "no JPEG engine";
        if (f->jpeg_engines > 0) {
            snprintf(engines, sizeof engines, "%d JPEG engine%s", f->jpeg_engines,
                     f->jpeg_engines == 1 ? "" : "s");
        }
        fprintf(out, "decoded       %.0f %% of the images by %s, which has %s\n",
                f->device_share * 100, f->device, engines);
    }
    fprintf(out, "cpu time      %.0f us per image\n", f->cpu_seconds_per_image * 1e6);
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
    print_decoding(out, f);
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
    print_decoding(out, f);
    fprintf(out, "memory        %s resident\n", memory);
    fprintf(out, "first batch   %.0f ms\n", f->first_batch_ms);
    print_threads(out, f);
    fprintf(out, "measured      %lld images in %.1f s; %lld decoded in full in %.1f s of threads\n",
            (long long)f->images, f->seconds, (long long)f->decode_images, f->decode_seconds);
    print_bad(out, f);
}

/* Says if --loader-memory allowed fewer batches than --prefetch asked for. */
static void print_cut(FILE *out, const stk_options *options, const stk_loader_figures *f) {
    long long wanted = atoll(stk_options_get(options, "prefetch")) * f->workers;
    if (f->slots < wanted) {
        fprintf(out, "cut           %lld batches instead of %lld: --loader-memory allows no more\n",
                (long long)f->slots, wanted);
    }
}

/* Prints the measurements in the requested form. */
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
    const char *sheet = NULL; /* set once the sheet is written */
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
    /* If the sheet cannot be written, the measurements are printed nevertheless. */
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

/* ---- the list of subjects ---- */

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
