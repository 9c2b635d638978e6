/* attempt.c - one command, from its start until all its processes are gone. */
#include <math.h>
#include <poll.h>
#include <signal.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/state/run_summary.h"
#include "supervise/settings/command_setting.h"
#include "supervise/supervision.h"

#define TICK_MS 50

/* After this share of the time to end, all processes of a command are asked, not only the first. */
#define OTHERS_SHARE 0.7

#define SETTING_S 5.0   /* time-out of reading the setting's file */
#define FLUSH_S 2.0     /* time for passing the rest of the output on */
#define GPU_FREE_S 15.0 /* time for the driver to free the memory of a dead process */
#define GPU_SLACK 128e6 /* bytes by which other programs' use of the GPU may vary */

/* Waits a moment, or until the guardian reports something. */
static void wait_a_tick(const stk_supervision *s) {
    struct pollfd news = {.fd = stk_guardian_fd(s->guardian), .events = POLLIN};
    poll(&news, 1, TICK_MS);
}

static void begin_progress(stk_supervision *s, double at_s) {
    pthread_mutex_lock(&s->lock);
    stk_progress_begin(&s->live_progress, at_s);
    s->progress = s->live_progress;
    pthread_mutex_unlock(&s->lock);
}

stk_status stk_attempt_start(stk_supervision *s, const stk_command *command, bool is_training,
                             stk_attempt **attempt, stk_error *err) {
    stk_attempt *a = &s->attempts[s->attempt_count];
    stk_str text = {0};
    stk_command_show(command, &text);
    stk_supervision_shorten(&text);
    *a = (stk_attempt){.command = stk_str_take(&text),
                       .is_training = is_training,
                       .began_s = stk_supervision_now(s),
                       .stop_s = is_training ? s->timetable.stop_s : s->timetable.predict_stop_s,
                       .kill_s = is_training ? s->timetable.kill_s : s->timetable.predict_kill_s,
                       .check_from_s = NAN,
                       .progress_s = NAN,
                       .first_progress_s = NAN,
                       .estimate_reported_s = -INFINITY,
                       .estimated_total_s = NAN};
    if (a->command == NULL) {
        return STK_FAIL_MEMORY(err, "a command line");
    }
    begin_progress(s, a->began_s);
    /* Before a prediction no file is read, since its disk may hang. */
    double within_s = stk_supervision_spare(s, SETTING_S);
    if (is_training || s->batch_setting.kind != STK_SETTING_KEY) {
        s->batch_given = stk_setting_value_within(&s->batch_setting, command, within_s);
    }
    if (is_training || s->workers_setting.kind != STK_SETTING_KEY) {
        s->workers_given =
            stk_int_or_none(stk_setting_value_within(&s->workers_setting, command, within_s));
    }
    stk_command_evidence_begin(s->evidence, &s->last_sample, a->began_s);
    stk_hang_begin(&s->hang, s->o->hang_s > 0 ? s->o->hang_s : INFINITY, a->began_s);
    stk_status status =
        stk_guardian_launch(s->guardian, command->argv, command->envp, &a->pid, &s->exit_code, err);
    if (status != STK_OK) {
        stk_mem_free(a->command);
        return status;
    }
    s->attempt_count++;
    s->trainings += is_training;
    a->event = (stk_event_attempt){.number = is_training ? s->trainings : 1,
                                   .part = is_training ? "train" : "predict",
                                   .command = a->command,
                                   .batch = is_training ? stk_supervision_batch(s) : -1,
                                   .workers = is_training ? stk_supervision_workers(s) : -1,
                                   .images_per_second = NAN,
                                   .seconds = NAN,
                                   .gpu_util = NAN,
                                   .gpu_memory_used = NAN,
                                   .gpu_memory_total = NAN,
                                   .exit_code = -1};
    stk_events_attempt(&s->events, &a->event);
    *attempt = a;
    return STK_OK;
}

/* Warns when a request to end leaves less time than --stop-grace. */
static void warn_of_short_grace(const stk_supervision *s, double left_s) {
    double grace_s = s->timetable.kill_s - stk_supervision_now(s);
    if (!isinf(left_s) && grace_s < s->o->stop_grace_s) {
        stk_events_warning(&s->events,
                           "the request to end leaves %s for everything: training has %s to stop, "
                           "not the %s of --stop-grace",
                           stk_format_span(left_s).text, stk_format_span(fmax(grace_s, 0)).text,
                           stk_format_span(s->o->stop_grace_s).text);
    }
}

/*
 * After a request to end, moves the timetable forward: once, and once more if a request with a
 * deadline follows one without.
 */
static void hurry_up(stk_supervision *s, stk_attempt *a) {
    double left_s = stk_stop_left_s(s->clock.stop);
    bool known = s->end_requested && (s->end_has_deadline || isinf(left_s));
    if (known || !stk_run_clock_stopping(&s->clock)) {
        return;
    }
    s->end_requested = true;
    s->end_has_deadline = !isinf(left_s);
    stk_timetable_hurry(&s->timetable, stk_supervision_now(s), left_s, s->o->predict != NULL);
    if (a->is_training) {
        a->stop_s = s->timetable.stop_s;
        a->kill_s = s->timetable.kill_s;
        warn_of_short_grace(s, left_s);
    } else {
        a->stop_s = s->timetable.predict_stop_s;
        a->kill_s = s->timetable.predict_kill_s;
    }
}

/* STK_STOP_NOW leaves no time for a prediction either: what runs now stops. */
static bool must_stop(stk_supervision *s, stk_attempt *a) {
    hurry_up(s, a);
    return stk_supervision_now(s) >= a->stop_s || stk_stop_asked(s->clock.stop) == STK_STOP_NOW;
}

stk_attempt_end stk_attempt_watch(stk_supervision *s, stk_attempt *a) {
    stk_attempt_end why = STK_END_ITSELF;
    for (;;) {
        wait_a_tick(s);
        stk_guardian_report report = stk_guardian_poll(s->guardian, &a->exit);
        stk_watch_command(s, a);
        if (report == STK_GUARDIAN_LOST) {
            return STK_END_LOST;
        }
        if (report == STK_GUARDIAN_ENDED) {
            return STK_END_ITSELF;
        }
        if (must_stop(s, a)) {
            return s->end_requested ? STK_END_SIGNAL : STK_END_BUDGET;
        }
        /* A prediction with a deadline needs no check for hangs. */
        if ((a->is_training || isinf(a->stop_s)) && stk_judge_hang(s)) {
            return STK_END_HANG;
        }
        if (a->is_training && stk_judge_if_due(s, a, &why)) {
            return why;
        }
    }
}

/*
 * Asks a command to end and waits. The first process gets one signal: it may be saving, which a
 * second signal, or the end of its loaders, would break. The other processes are asked when it has
 * ended, or late. If the command hangs, all are asked at once.
 */
static void ask_to_end(stk_supervision *s, stk_attempt *a, stk_attempt_end why, int number,
                       double until_s) {
    double asked_s = stk_supervision_now(s);
    double others_s = asked_s + OTHERS_SHARE * (until_s - asked_s);
    bool first_ended = false;
    bool all = why == STK_END_HANG;
    stk_guardian_signal(s->guardian, number, all ? STK_GUARDIAN_ALL : STK_GUARDIAN_FIRST);
    while (stk_guardian_alive(s->guardian) > 0 && stk_supervision_now(s) < until_s &&
           stk_stop_asked(s->clock.stop) != STK_STOP_NOW) {
        wait_a_tick(s);
        stk_guardian_report report = stk_guardian_poll(s->guardian, &a->exit);
        first_ended = first_ended || report == STK_GUARDIAN_ENDED;
        if (report == STK_GUARDIAN_LOST) {
            return;
        }
        if (!all && (first_ended || stk_supervision_now(s) >= others_s)) {
            stk_guardian_signal(s->guardian, number, STK_GUARDIAN_OTHERS);
            all = true;
        }
        stk_watch_command(s, a);
        hurry_up(s, a);
        until_s = fmin(until_s, a->kill_s);
    }
}

/* Until when the command may take to end. */
static double end_until(const stk_supervision *s, const stk_attempt *a, stk_attempt_end why) {
    double now_s = stk_supervision_now(s);
    double grace_s = a->kill_s - a->stop_s;
    bool by_time = why == STK_END_BUDGET || why == STK_END_SIGNAL;
    if (isinf(a->stop_s) || !(grace_s >= 0)) {
        grace_s = s->timetable.grace_s;
    }
    return by_time ? fmin(a->kill_s, now_s + s->timetable.grace_s)
                   : fmin(a->kill_s, now_s + grace_s);
}

static const char *reason_of(const stk_attempt *a, stk_attempt_end why,
                             const stk_command_progress *progress) {
    static const char *const reasons[] = {
        [STK_END_ITSELF] = "done", [STK_END_BUDGET] = "budget", [STK_END_SIGNAL] = "signal",
        [STK_END_HANG] = "hang",   [STK_END_BATCH] = "batch",   [STK_END_WORKERS] = "workers",
        [STK_END_LOST] = "crash",
    };
    if (why == STK_END_ITSELF && a->exit.code != 0) {
        return progress->out_of_memory ? "memory" : "crash";
    }
    return reasons[why];
}

static void end_all(stk_supervision *s, stk_attempt *a, stk_attempt_end why) {
    if (why == STK_END_LOST) {
        stk_guardian_stop(s->guardian, stk_supervision_kill_s(s));
        s->guardian = NULL;
        a->exit = (stk_command_exit){.code = -1, .signal = SIGKILL};
        return;
    }
    if (why != STK_END_ITSELF) {
        int number = !a->is_training ? SIGTERM : why == STK_END_HANG ? SIGABRT : s->stop_signal;
        ask_to_end(s, a, why, number, end_until(s, a, why));
    }
    size_t left = stk_guardian_alive(s->guardian);
    if (left > 0 && why == STK_END_ITSELF) {
        stk_events_warning(&s->events,
                           "%zu process%s of the command still ran after its first process had "
                           "ended; ending them",
                           left, left == 1 ? "" : "es");
    }
    size_t stuck = left > 0 ? stk_guardian_kill(s->guardian, stk_supervision_kill_s(s)) : 0;
    stk_command_exit ended;
    if (stk_guardian_poll(s->guardian, &ended) == STK_GUARDIAN_ENDED) {
        a->exit = ended;
    }
    if (stuck > 0) {
        stk_events_warning(&s->events,
                           "%zu process%s of the command could not be ended: the kernel holds "
                           "them, or they are another user's",
                           stuck, stuck == 1 ? "" : "es");
    }
}

/* Waits for the rest of the command's output; warns once if some was lost. */
static void flush_output(stk_supervision *s) {
    stk_error why = {0};
    bool whole = stk_output_flush(s->output, stk_supervision_spare(s, FLUSH_S));
    if (!whole && !s->told_not_passed) {
        s->told_not_passed = true;
        stk_events_warning(&s->events, "the command's output could not be passed on whole: nobody "
                                       "reads it, or there is no room where it goes");
    }
    if (stk_output_error(s->output, &why) != STK_OK && !s->told_not_logged) {
        s->told_not_logged = true;
        stk_events_warning(&s->events, "the log of the command's output has gaps: %s", why.message);
    }
}

void stk_attempt_finish(stk_supervision *s, stk_attempt *a, stk_attempt_end why) {
    stk_evidence_summary summary;
    double to_s = stk_supervision_now(s);
    double from_s = isnan(a->check_from_s) ? a->began_s : a->check_from_s;
    stk_command_evidence_since(s->evidence, from_s, &summary);
    end_all(s, a, why);
    flush_output(s);
    a->stepped_s = -INFINITY; /* so that the last progress is always reported */
    stk_watch_command(s, a);
    a->was_sampled = summary.samples > 0;
    a->on_gpu = summary.gpu_used;
    a->event.ended = true;
    a->event.seconds = stk_supervision_now(s) - a->began_s;
    a->event.exit_code = a->exit.code;
    a->event.signal = a->exit.signal;
    a->event.stop_reason = reason_of(a, why, &s->progress);
    if (a->is_training) {
        s->epochs_done =
            stk_command_epochs_done(s->progress.epoch, s->progress.step, s->progress.steps);
        a->event.batch = a->advice.ignored ? a->advice.batch : stk_supervision_batch(s);
        a->event.workers = stk_supervision_workers(s);
        double rate = stk_progress_image_rate(&s->progress, a->event.batch, from_s, to_s);
        a->event.images_per_second =
            isnan(rate) ? stk_progress_image_rate(&s->progress, a->event.batch, a->began_s, to_s)
                        : rate;
        a->event.gpu_util = summary.activity;
        a->event.gpu_memory_used = summary.memory_used;
        a->event.gpu_memory_total = summary.memory_total;
        if (why == STK_END_ITSELF || why == STK_END_HANG) {
            stk_judge_ended(s, a, why == STK_END_HANG);
        }
        a->event.kept = a->advice.kept;
    }
    stk_events_attempt(&s->events, &a->event);
}

/* Compares NVML's process list, or else all memory in use; true if neither is known. */
static bool has_free_gpus(const stk_supervision *s) {
    double used = s->last_sample.gpu_memory_used;
    return s->last_sample.gpu_memory_own == 0 || !(used > s->gpu_level + GPU_SLACK);
}

void stk_attempt_wait_for_gpus(stk_supervision *s) {
    double until_s = fmin(stk_supervision_now(s) + GPU_FREE_S, s->timetable.stop_s);
    double from_s = stk_supervision_now(s);
    bool fresh = false;
    while (s->gpu_count > 0 && stk_supervision_now(s) < until_s &&
           !stk_run_clock_stopping(&s->clock)) {
        stk_event_sample sample;
        while (stk_machine_sampler_take(s->sampler, &sample)) {
            s->last_sample = sample;
            s->has_sample = true;
            stk_events_sample(&s->events, &sample);
        }
        fresh = s->has_sample && s->last_sample.at_s > from_s;
        if (fresh && has_free_gpus(s)) {
            return;
        }
        wait_a_tick(s);
    }
    if (fresh && !stk_run_clock_stopping(&s->clock)) {
        stk_events_warning(&s->events,
                           "the GPU has %.1f GB more in use than at the start, although all "
                           "processes of the command are gone; restarting it anyway",
                           (s->last_sample.gpu_memory_used - s->gpu_level) / 1e9);
    }
}
