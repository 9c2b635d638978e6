/* verb_bench.c - `stoker bench WHAT`: how fast a part of the line is on this machine. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
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

static stk_status print_loader_json(const stk_loader_figures *figures, const char *sheet,
                                    stk_error *err) {
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
    stk_json_end_object(&writer);
    bool whole = stk_str_ok(&text);
    if (whole) {
        puts(stk_str_text(&text));
    }
    stk_str_free(&text);
    return whole ? STK_OK : STK_FAIL_MEMORY(err, "the figures");
}

static void print_loader_text(const stk_loader_figures *f) {
    char memory[32];
    stk_format_bytes(memory, sizeof memory, (uint64_t)f->rss_bytes);
    printf("loader        %.0f images/s, %.0f per core on %lld core%s (%.2f busy)\n",
           f->images_per_second, f->images_per_second_per_core, (long long)f->cores,
           f->cores == 1 ? "" : "s", f->cores_busy);
    printf("decode only   %.0f images/s per core; the loader reaches %.0f %% of it\n",
           f->decode_only_per_second_per_core, f->ceiling_share * 100);
    printf("by cpu time   %.0f images/s, decode only %.0f\n", f->images_per_cpu_second,
           f->decode_only_per_cpu_second);
    printf("per image     read %.0f us, decode %.0f us, augment %.0f us, wait for bytes %.0f us\n",
           f->read_us, f->decode_us, f->augment_us, f->read_wait_us);
    printf("memory        %s resident\n", memory);
    printf("first batch   %.0f ms\n", f->first_batch_ms);
    printf("threads       %lld decode, %lld read; %lld batches of %lld at %lld px\n",
           (long long)f->workers, (long long)f->readers, (long long)f->slots, (long long)f->batch,
           (long long)f->img_size);
    printf("measured      %lld images in %.1f s; %lld decoded in full in %.1f s of threads\n",
           (long long)f->images, f->seconds, (long long)f->decode_images, f->decode_seconds);
    if (f->bad > 0) {
        printf("bad           %lld of %lld pictures cannot be used, such as %s\n",
               (long long)f->bad, (long long)f->samples, f->first_bad);
    }
}

/* --prefetch is a wish that --loader-memory may not grant. */
static void print_cut(const stk_options *options, const stk_loader_figures *f) {
    long long wanted = atoll(stk_options_get(options, "prefetch")) * f->workers;
    if (f->slots < wanted) {
        printf("cut           %lld batches instead of %lld: --loader-memory allows no more\n",
               (long long)f->slots, wanted);
    }
}

static stk_status bench_loader(cli_session *session, stk_error *err) {
    const stk_probe_options *given = stk_options_values(session->options, &stk_probe_option_table);
    const stk_stop *stop = session->run.stop;
    stk_loader_figures figures = {0};
    bool measured = given->seconds > 0;
    const char *sheet = NULL; /* set when it is written */
    if (!measured && given->sheet == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--seconds 0 measures nothing; pass more of them, or --sheet FILE.png");
    }
    stk_status status = STK_OK;
    if (measured) {
        status = stk_probe_loader(session->options, given->seconds, stop, &figures, err);
        if (status != STK_OK) {
            return status;
        }
    }
    if (given->sheet != NULL) {
        status = stk_sheet_write(session->options, stop, given->sheet, err);
        sheet = status == STK_OK ? given->sheet : NULL;
    }
    /* A sheet that cannot be written does not take away what was measured. */
    if (session->json && (measured || status == STK_OK)) {
        stk_status printed = print_loader_json(measured ? &figures : NULL, sheet, err);
        status = status == STK_OK ? printed : status;
    } else if (measured && !session->quiet && !session->json) {
        print_loader_text(&figures);
        print_cut(session->options, &figures);
    }
    if (sheet != NULL && !session->quiet && !session->json) {
        printf("sheet         %s\n", sheet);
    }
    return status;
}

static int run_loader(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    stk_status status = cli_take_word(&session, "data", &err);
    status = status == STK_OK ? bench_loader(&session, &err) : status;
    return cli_close(&session, status, &err);
}

static const cli_verb loader = {
    .name = "bench loader",
    .summary = "Measures how fast pictures become batches, beside decoding alone.",
    .usage = "--data DIR [--seconds N] [--sheet FILE.png] [options]",
    .options = stk_options_for_bench_loader,
    .run = run_loader,
};

/* ---- the list of them ---- */

static const cli_verb *const subjects[] = {&loader, &cli_bench_storage, NULL};

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
