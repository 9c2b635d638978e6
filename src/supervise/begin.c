/* begin.c - all that is done before the first command is started. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "monitor/gpu_sampler.h"
#include "supervise/output/relay.h"
#include "supervise/supervision.h"

#define LOG_NAME "output.log"
#define LATE_S 2.0    /* behind the budget: what runs then is ended without us */
#define FOLDER_S 30.0 /* that a disk may take to begin with */

typedef struct signal_name {
    const char *name;
    int number;
} signal_name;

static stk_status read_signal(const char *text, int *number, stk_error *err) {
    static const signal_name names[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                                        {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
    int64_t given = 0;
    text = text != NULL ? text : names[0].name; /* an empty one is none */
    const char *bare = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (stk_str_equal_nocase(bare, names[i].name) ||
            (stk_parse_int(text, &given) && given == names[i].number)) {
            *number = names[i].number;
            return STK_OK;
        }
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "--stop-signal %s is none of TERM, INT, HUP, QUIT, USR1, USR2", text);
}

static stk_status read_fill(const char *text, double *fill, stk_error *err) {
    stk_slice slice;
    stk_status status = stk_slice_read(&slice, "fill", text, err);
    *fill = slice.given ? slice.value : NAN;
    if (status == STK_OK && slice.given &&
        (!slice.is_share || slice.value < 0.1 || slice.value > 0.95)) {
        status = STK_FAIL(err, STK_ERR_USAGE, "--fill %s: give a share from 10%% to 95%%", text);
    }
    return status;
}

static bool said_twice(const char *batch, const char *workers) {
    return batch != NULL && workers != NULL && strcmp(batch, workers) == 0;
}

static stk_status open_knobs(stk_supervision *s, stk_error *err) {
    const stk_supervise_options *o = s->o;
    stk_setting_config batch = {.what = "batch",
                                .env = o->batch_env,
                                .arg = o->batch_arg,
                                .key = o->batch_key,
                                .file = o->batch_key != NULL ? o->config_file : NULL};
    stk_setting_config workers = {.what = "workers",
                                  .env = o->workers_env,
                                  .arg = o->workers_arg,
                                  .key = o->workers_key,
                                  .file = o->workers_key != NULL ? o->config_file : NULL};
    if (o->config_file != NULL && o->batch_key == NULL && o->workers_key == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--config-file %s needs --batch-key or --workers-key: which of its numbers "
                        "is meant?",
                        o->config_file);
    }
    const char *both = said_twice(o->batch_env, o->workers_env)   ? o->batch_env
                       : said_twice(o->batch_arg, o->workers_arg) ? o->batch_arg
                       : said_twice(o->batch_key, o->workers_key) ? o->batch_key
                                                                  : NULL;
    if (both != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s cannot be the batch size and the number of workers at once", both);
    }
    stk_status status = stk_setting_open(&s->batch, &batch, err);
    if (status == STK_OK) {
        status = stk_setting_open(&s->workers, &workers, err);
    }
    if (status == STK_OK) {
        status = stk_setting_check(&s->batch, &s->command, err);
    }
    if (status == STK_OK) {
        status = stk_setting_check(&s->workers, &s->command, err);
    }
    s->batch_told = stk_setting_value(&s->batch, &s->command);
    s->workers_told = (int)stk_setting_value(&s->workers, &s->command);
    return status;
}

static stk_status make_timetable(stk_supervision *s, stk_error *err) {
    stk_timetable_facts facts = {.budget_s = s->clock.budget_s,
                                 .grace_s = s->o->stop_grace_s,
                                 .predicts = s->o->predict != NULL};
    stk_status status = stk_slice_read(&facts.reserve, "reserve", s->o->reserve, err);
    if (status == STK_OK) {
        status = stk_slice_read(&facts.stop_at, "stop-at", s->o->stop_at, err);
    }
    if (status == STK_OK && facts.reserve.given && facts.stop_at.given) {
        status = STK_FAIL(err, STK_ERR_USAGE, "--reserve and --stop-at say the same; give one");
    }
    return status == STK_OK ? stk_timetable_make(&s->table, &facts, err) : status;
}

/* What the command may want to know, and what makes Python speak at once and of its stack. */
stk_status stk_supervision_set_environment(const stk_supervision *s, stk_command *command,
                                           stk_error *err) {
    char number[32];
    const char *dir = stk_folder_writer_full_path(s->folder);
    stk_status status = stk_command_set_env(command, "PYTHONUNBUFFERED", "1", true, err);
    if (status == STK_OK) {
        status = stk_command_set_env(command, "PYTHONFAULTHANDLER", "1", true, err);
    }
    if (status == STK_OK) {
        status = stk_command_set_env(command, "STOKER_RUN_DIR", dir, false, err);
    }
    if (status == STK_OK && !isinf(s->table.stop_s)) {
        double now = (double)stk_clock_wall_ns() * 1e-9 - stk_supervision_now(s);
        snprintf(number, sizeof number, "%.0f", now + s->table.stop_s);
        status = stk_command_set_env(command, "STOKER_STOP_AT", number, false, err);
    }
    return status;
}

/* Bytes that others hold on the GPUs; NaN: not known. */
static double gpu_level(const char *const *bus_ids, size_t count) {
    char why[160];
    stk_event_sample sample = {.gpu_memory_used = NAN};
    stk_gpu_sampler *sampler = stk_gpu_sampler_open(bus_ids, count, why, sizeof why);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    stk_gpu_sampler_close(sampler);
    return sample.gpu_memory_used;
}

static stk_status open_eyes(stk_supervision *s, stk_error *err) {
    char why[160] = "";
    const char *ids[STK_GPU_MOST];
    s->gpu_count = stk_gpu_list(stk_command_env(&s->command, "CUDA_VISIBLE_DEVICES"), s->gpus, why,
                                sizeof why);
    for (size_t i = 0; i < s->gpu_count; i++) {
        ids[i] = s->gpus[i].bus_id;
    }
    s->gpu_level = gpu_level(ids, s->gpu_count);
    s->last.gpu_memory_used = s->gpu_level; /* what the first command holds is more than that */
    if (s->gpu_count == 0) {
        stk_events_decision(&s->events, "only the host is watched", why);
    }
    stk_machine_sampler_config config = {.gpu_bus_ids = ids,
                                         .gpu_count = s->gpu_count,
                                         .root = stk_guardian_pid(s->guardian),
                                         .start_ns = s->clock.start_ns};
    stk_error refused = {0};
    if (stk_machine_sampler_start(&s->sampler, &config, &refused) != STK_OK) {
        stk_events_warning(&s->events, "going on without samples of the machine: %s",
                           refused.message);
    }
    return stk_command_evidence_new(&s->evidence, err);
}

static void hear(void *user, const char *line, size_t length, double at_s) {
    stk_supervision *s = user;
    pthread_mutex_lock(&s->lock);
    stk_progress_read_line(&s->live_progress, line, length, at_s);
    pthread_mutex_unlock(&s->lock);
}

/* The pipes that commands write to, and the guardian that holds their ends. */
static stk_status open_guardian(stk_supervision *s, stk_error *err) {
    char *log = stk_path_join(stk_folder_writer_path(s->folder), LOG_NAME);
    int out = -1;
    int error = -1;
    if (log == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_output_config config = {.out = s->passing.out,
                                .err = s->passing.err,
                                .log_path = log,
                                .log_within_s = stk_supervision_spare(s, FOLDER_S),
                                .start_ns = s->clock.start_ns,
                                .hear = hear,
                                .user = s};
    stk_status status = stk_output_open(&s->output, &config, &out, &error, err);
    stk_mem_free(log);
    if (status != STK_OK) {
        return status;
    }
    double until_s = s->clock.budget_s + LATE_S;
    stk_guardian_config guarded = {
        .in = STDIN_FILENO,
        .out = out,
        .err = error,
        .until_ns = isnan(until_s) ? 0 : s->clock.start_ns + (int64_t)(until_s * 1e9)};
    status = stk_guardian_start(&s->guardian, &guarded, err);
    close(out);
    close(error);
    return status;
}

static void tell_start(const stk_supervision *s) {
    stk_str command = {0};
    stk_command_show(&s->command, &command);
    stk_supervision_shorten(&command);
    stk_event_start event = {.chosen = stk_str_text(&command),
                             .run_dir = stk_folder_writer_path(s->folder),
                             .start_ns = s->clock.start_ns,
                             .img_size = -1,
                             .batch = stk_int_or_none(stk_supervision_batch(s)),
                             .workers = stk_supervision_workers(s),
                             .prefetch = -1,
                             .classes = -1,
                             .folds = -1,
                             .cores = stk_machine_cores(),
                             .memory_bytes = (int64_t)stk_machine_memory(),
                             .device_bytes = -1,
                             .train_images = -1,
                             .val_images = -1,
                             .test_images = -1,
                             .budget_s = s->clock.budget_s};
    stk_events_start(&s->events, &event);
    stk_str_free(&command);
    const char *moved = stk_folder_writer_moved(s->folder);
    if (moved != NULL) {
        stk_events_decision(&s->events, "earlier run kept", moved);
    }
}

static void tell_timetable(const stk_supervision *s) {
    char what[64];
    char why[200];
    if (isinf(s->table.stop_s)) {
        return;
    }
    snprintf(what, sizeof what, "training stops after %s", stk_format_span(s->table.stop_s).text);
    snprintf(why, sizeof why, "budget %s, %s of grace, %s for %s",
             stk_format_span(s->table.budget_s).text, stk_format_span(s->table.grace_s).text,
             stk_format_span(s->table.reserve_s).text,
             s->o->predict != NULL ? "the prediction" : "the last files");
    stk_events_decision(&s->events, what, why);
}

/* Events for a program that drives us, where it asked for them. */
static stk_status open_json(stk_supervision *s, stk_error *err) {
    if (stk_is_auto_int(s->o->json_fd)) {
        return STK_OK;
    }
    int fd = (int)s->o->json_fd;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
        return STK_FAIL(
            err, STK_ERR_USAGE,
            "--json-fd %d is not open for writing; in a shell: --json-fd 3 3>events.jsonl", fd);
    }
    stk_status status = stk_relay_open(&s->json_relay, fd, &s->json_end, err);
    stk_jsonl_config config = {.fd = s->json_end, .name = "--json-fd"};
    if (status == STK_OK) {
        status = stk_jsonl_new(&s->jsonl, &config, err);
    }
    if (status == STK_OK) {
        stk_events_add(&s->events, stk_jsonl_observer(s->jsonl));
    }
    return status;
}

/* What is stored of the prediction's line has no secrets in it; the line that runs has them. */
static stk_status hide_predict(stk_supervision *s, stk_error *err) {
    stk_command command = {0};
    stk_str shown = {0};
    if (s->o->predict == NULL) {
        return STK_OK;
    }
    stk_status status = stk_command_make(&command, NULL, 0, s->o->predict, err);
    if (status == STK_OK) {
        stk_command_show(&command, &shown);
        status = stk_str_ok(&shown) ? STK_OK : STK_FAIL_MEMORY(err, "--predict");
    }
    if (status == STK_OK && !stk_str_equal(stk_str_text(&shown), s->o->predict)) {
        status = stk_options_resolve(s->options, "predict", stk_str_text(&shown),
                                     "secrets are hidden", err);
    }
    stk_str_free(&shown);
    stk_command_free(&command);
    return status;
}

/* The run folder, and its files before all other observers. */
static stk_status open_folder(stk_supervision *s, stk_error *err) {
    stk_status status = hide_predict(s, err);
    stk_folder_writer_config config = {.out = s->o->out,
                                       .name = s->o->name != NULL ? s->o->name : "run",
                                       .options = s->options,
                                       .within_s = stk_supervision_spare(s, FOLDER_S)};
    if (status == STK_OK) {
        status = stk_folder_writer_open(&s->folder, &config, err);
    }
    if (status != STK_OK) {
        return status;
    }
    s->others = s->events;
    s->events = (stk_events){0};
    stk_events_add(&s->events, stk_folder_writer_observer(s->folder));
    for (int i = 0; i < s->others.count; i++) {
        stk_events_add(&s->events, s->others.observers[i]);
    }
    return STK_OK;
}

/* All that is needed, in the order in which it fails cheapest. */
stk_status stk_supervision_begin(stk_supervision *s, const char *const *words, size_t count,
                                 stk_error *err) {
    stk_status status = stk_command_make(&s->command, words, count, NULL, err);
    if (status == STK_OK) {
        status = read_signal(s->o->stop_signal, &s->stop_signal, err);
    }
    if (status == STK_OK) {
        status = read_fill(s->o->fill, &s->fill, err);
    }
    if (status == STK_OK) {
        status = open_knobs(s, err);
    }
    if (status == STK_OK) {
        status = make_timetable(s, err);
    }
    if (status == STK_OK) {
        status = open_json(s, err);
    }
    if (status == STK_OK) {
        status = stk_expected_file_begin_within(&s->expect, s->o->expect,
                                                stk_supervision_spare(s, FOLDER_S), err);
    }
    if (status == STK_OK) {
        status = open_folder(s, err);
    }
    if (status == STK_OK) {
        status = stk_supervision_set_environment(s, &s->command, err);
    }
    if (status == STK_OK) {
        status = open_guardian(s, err);
    }
    if (status != STK_OK) {
        return status;
    }
    stk_trials_begin(&s->trials);
    stk_progress_begin(&s->live_progress, 0);
    s->progress = s->live_progress;
    tell_start(s);
    tell_timetable(s);
    return open_eyes(s, err);
}
