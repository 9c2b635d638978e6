/* begin.c - reads the options and opens everything that a run needs before its first command. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "monitor/gpu_sampler.h"
#include "supervise/output/relay.h"
#include "supervise/supervision.h"

#define LOG_NAME "output.log"
#define LATE_S 2.0 /* seconds after the budget at which the guardian ends the command by itself */
#define FOLDER_S 30.0 /* time for a disk to answer at the start */

typedef struct signal_name {
    const char *name;
    int number;
} signal_name;

static stk_status read_signal(const char *text, int *number, stk_error *err) {
    static const signal_name names[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                                        {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
    int64_t given = 0;
    text = text != NULL ? text : names[0].name; /* an empty text is NULL */
    const char *bare = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (size_t i = 0; i < STK_COUNT(names); i++) {
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

static bool are_same(const char *batch, const char *workers) {
    return batch != NULL && workers != NULL && strcmp(batch, workers) == 0;
}

static stk_status open_settings(stk_supervision *s, stk_error *err) {
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
    const char *both = are_same(o->batch_env, o->workers_env)   ? o->batch_env
                       : are_same(o->batch_arg, o->workers_arg) ? o->batch_arg
                       : are_same(o->batch_key, o->workers_key) ? o->batch_key
                                                                : NULL;
    if (both != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s cannot be the batch size and the number of workers at once", both);
    }
    stk_status status = stk_setting_open(&s->batch_setting, &batch, err);
    STK_THEN(status, stk_setting_open(&s->workers_setting, &workers, err));
    STK_THEN(status, stk_setting_check(&s->batch_setting, &s->command, err));
    STK_THEN(status, stk_setting_check(&s->workers_setting, &s->command, err));
    s->batch_given = stk_setting_value(&s->batch_setting, &s->command);
    s->workers_given = (int)stk_setting_value(&s->workers_setting, &s->command);
    return status;
}

static stk_status make_timetable(stk_supervision *s, stk_error *err) {
    stk_timetable_facts facts = {.budget_s = s->clock.budget_s,
                                 .grace_s = s->o->stop_grace_s,
                                 .predicts = s->o->predict != NULL};
    stk_status status = stk_slice_read(&facts.reserve, "reserve", s->o->reserve, err);
    STK_THEN(status, stk_slice_read(&facts.stop_at, "stop-at", s->o->stop_at, err));
    if (status == STK_OK && facts.reserve.given && facts.stop_at.given) {
        status = STK_FAIL(err, STK_ERR_USAGE, "--reserve and --stop-at say the same; give one");
    }
    return status == STK_OK ? stk_timetable_make(&s->timetable, &facts, err) : status;
}

/* Bytes in use on the GPUs before the first command; NaN: unknown. */
static double gpu_level(const char *const *bus_ids, size_t count) {
    char why[160];
    stk_event_sample sample = {.gpu_memory_used = NAN};
    stk_gpu_sampler *sampler = stk_gpu_sampler_open(bus_ids, count, why, sizeof why);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    stk_gpu_sampler_close(sampler);
    return sample.gpu_memory_used;
}

static stk_status open_samplers(stk_supervision *s, stk_error *err) {
    char why[160] = "";
    const char *ids[STK_GPU_MOST];
    s->gpu_count = stk_gpu_list(stk_command_env(&s->command, "CUDA_VISIBLE_DEVICES"), s->gpus, why,
                                sizeof why);
    for (size_t i = 0; i < s->gpu_count; i++) {
        ids[i] = s->gpus[i].bus_id;
    }
    s->gpu_level = gpu_level(ids, s->gpu_count);
    s->last_sample.gpu_memory_used = s->gpu_level; /* the first command's memory adds to it */
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

/* Opens the pipes that commands write to, and starts the guardian, which gets their write ends. */
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
                                .on_line = stk_watch_line,
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

static void emit_start(const stk_supervision *s) {
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

static void emit_timetable(const stk_supervision *s) {
    char what[64];
    char why[200];
    if (isinf(s->timetable.stop_s)) {
        return;
    }
    snprintf(what, sizeof what, "training stops after %s",
             stk_format_span(s->timetable.stop_s).text);
    snprintf(why, sizeof why, "budget %s, %s of grace, %s for %s",
             stk_format_span(s->timetable.budget_s).text,
             stk_format_span(s->timetable.grace_s).text,
             stk_format_span(s->timetable.reserve_s).text,
             s->o->predict != NULL ? "the prediction" : "the last files");
    stk_events_decision(&s->events, what, why);
}

/* Opens --json-fd: events for a program that runs Stoker. */
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
    STK_THEN(status, stk_jsonl_new(&s->jsonl, &config, err));
    if (status == STK_OK) {
        stk_events_add(&s->events, stk_jsonl_observer(s->jsonl));
    }
    return status;
}

/* Hides secrets of --predict in the stored options; the command that runs keeps them. */
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

/* Opens the run folder; its observer comes before all others. */
static stk_status open_folder(stk_supervision *s, stk_error *err) {
    stk_status status = hide_predict(s, err);
    stk_folder_writer_config config = {.out = s->o->out,
                                       .name = s->o->name != NULL ? s->o->name : "run",
                                       .options = s->options,
                                       .within_s = stk_supervision_spare(s, FOLDER_S)};
    STK_THEN(status, stk_folder_writer_open(&s->folder, &config, err));
    if (status != STK_OK) {
        return status;
    }
    s->other_observers = s->events;
    s->events = (stk_events){0};
    stk_events_add(&s->events, stk_folder_writer_observer(s->folder));
    for (int i = 0; i < s->other_observers.count; i++) {
        stk_events_add(&s->events, s->other_observers.observers[i]);
    }
    return STK_OK;
}

/* Cheap steps that may fail come first. */
stk_status stk_supervision_begin(stk_supervision *s, const char *const *words, size_t count,
                                 stk_error *err) {
    stk_status status = stk_command_make(&s->command, words, count, NULL, err);
    STK_THEN(status, read_signal(s->o->stop_signal, &s->stop_signal, err));
    STK_THEN(status, read_fill(s->o->fill, &s->fill, err));
    STK_THEN(status, open_settings(s, err));
    STK_THEN(status, make_timetable(s, err));
    STK_THEN(status, open_json(s, err));
    STK_THEN(status, stk_expected_file_begin_within(&s->expected, s->o->expect,
                                                    stk_supervision_spare(s, FOLDER_S), err));
    STK_THEN(status, open_folder(s, err));
    STK_THEN(status, stk_supervision_set_environment(s, &s->command, err));
    STK_THEN(status, open_guardian(s, err));
    if (status != STK_OK) {
        return status;
    }
    stk_trials_begin(&s->trials);
    stk_progress_begin(&s->live_progress, 0);
    s->progress = s->live_progress;
    emit_start(s);
    emit_timetable(s);
    return open_samplers(s, err);
}
