/* attempt.c - one command, from its start until nothing of it is left. */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "supervise/settings/command_setting.h"
#include "supervise/supervision.h"

#define TICK_MS 50

/* Of the time that is left: what a reader that does not read may cost. */
#define SPARE_SHARE 0.2

/* Of the time that a command has for ending: from here on all of its processes are asked to. */
#define OTHERS_SHARE 0.7

#define COMMAND_MOST 2000 /* bytes of a command line that are shown */
#define KILL_S 5.0        /* that the kernel may take to let go of killed processes */
#define KILL_SHARE 0.5    /* of the time that is left: KILL_S is no more than this */
#define KILL_LEAST_S 0.2  /* KILL_S is no less than this */
#define KNOB_S 5.0        /* that a file which a command is told by may take to be read */
#define SETTLE_S 2.0      /* that its last words may take to be passed on */
#define GPU_FREE_S 15.0   /* that a driver may take to free a dead process's memory */
#define GPU_SLACK 128e6   /* bytes: other programs' needs vary too */

double stk_supervision_now(const stk_supervision *s) {
    return stk_run_clock_elapsed(&s->clock);
}

void stk_supervision_shorten(stk_str *command) {
    static const char more[] = " ...";
    if (command->length > COMMAND_MOST + sizeof more) {
        memcpy(command->text + COMMAND_MOST, more, sizeof more);
        command->length = COMMAND_MOST + sizeof more - 1;
    }
}

double stk_supervision_spare(const stk_supervision *s, double wanted_s) {
    return fmax(fmin(wanted_s, SPARE_SHARE * stk_run_clock_left(&s->clock)), 0);
}

double stk_supervision_kill_s(const stk_supervision *s) {
    return fmax(fmin(KILL_S, KILL_SHARE * stk_run_clock_left(&s->clock)), KILL_LEAST_S);
}

/* Waits a moment, or until the guardian has news. */
static void wait_a_tick(const stk_supervision *s) {
    struct pollfd news = {.fd = stk_guardian_fd(s->guardian), .events = POLLIN};
    poll(&news, 1, TICK_MS);
}

static void begin_hearing(stk_supervision *s, double at_s) {
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
                       .stop_s = is_training ? s->table.stop_s : s->table.predict_stop_s,
                       .kill_s = is_training ? s->table.kill_s : s->table.predict_kill_s,
                       .since_s = NAN,
                       .progress_s = NAN,
                       .first_progress_s = NAN,
                       .estimated_s = -INFINITY,
                       .estimate_s = NAN};
    if (a->command == NULL) {
        return STK_FAIL_MEMORY(err, "a command line");
    }
    begin_hearing(s, a->began_s);
    /* No file is asked before a prediction: its disk may hang by then. */
    double within_s = stk_supervision_spare(s, KNOB_S);
    if (is_training || s->batch.kind != STK_SETTING_KEY) {
        s->batch_told = stk_setting_value_within(&s->batch, command, within_s);
    }
    if (is_training || s->workers.kind != STK_SETTING_KEY) {
        s->workers_told = stk_int_or_none(stk_setting_value_within(&s->workers, command, within_s));
    }
    stk_command_evidence_begin(s->evidence, &s->last, a->began_s);
    stk_hang_begin(&s->hang, s->o->hang_s > 0 ? s->o->hang_s : INFINITY, a->began_s);
    stk_status status =
        stk_guardian_launch(s->guardian, command->argv, command->envp, &a->pid, &s->exit_code, err);
    if (status != STK_OK) {
        stk_mem_free(a->command);
        return status;
    }
    s->attempt_count++;
    s->launched += is_training;
    a->event = (stk_event_attempt){.number = is_training ? s->launched : 1,
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

/* A request that has to be fulfilled soon leaves less than --stop-grace asks for. */
static void tell_cut_grace(const stk_supervision *s, double left_s) {
    double grace_s = s->table.kill_s - stk_supervision_now(s);
    if (!isinf(left_s) && grace_s < s->o->stop_grace_s) {
        stk_events_warning(&s->events,
                           "the request to end leaves %s for all that is to come: training has %s "
                           "of it to stop, not the %s of --stop-grace",
                           stk_format_span(left_s).text, stk_format_span(fmax(grace_s, 0)).text,
                           stk_format_span(s->o->stop_grace_s).text);
    }
}

/*
 * An end was asked for: all that is still to come is moved forward, once, and once more where a
 * request with a deadline follows one without.
 */
static void hurry(stk_supervision *s, stk_attempt *a) {
    double left_s = stk_stop_left_s(s->clock.stop);
    bool known = s->hurried && (s->rushed || isinf(left_s));
    if (known || !stk_run_clock_stopping(&s->clock)) {
        return;
    }
    s->hurried = true;
    s->rushed = !isinf(left_s);
    stk_timetable_hurry(&s->table, stk_supervision_now(s), left_s, s->o->predict != NULL);
    if (a->is_training) {
        a->stop_s = s->table.stop_s;
        a->kill_s = s->table.kill_s;
        tell_cut_grace(s, left_s);
    } else {
        a->stop_s = s->table.predict_stop_s;
        a->kill_s = s->table.predict_kill_s;
    }
}

/* Where there is no time for a prediction either, that stops which runs now. */
static bool must_stop(stk_supervision *s, stk_attempt *a) {
    hurry(s, a);
    return stk_supervision_now(s) >= a->stop_s || stk_stop_asked(s->clock.stop) == STK_STOP_NOW;
}

stk_attempt_end stk_attempt_watch(stk_supervision *s, stk_attempt *a) {
    stk_attempt_end why = STK_END_ITSELF;
    for (;;) {
        wait_a_tick(s);
        stk_guardian_report news = stk_guardian_poll(s->guardian, &a->ended);
        stk_observe(s, a);
        if (news == STK_GUARDIAN_LOST) {
            return STK_END_LOST;
        }
        if (news == STK_GUARDIAN_ENDED) {
            return STK_END_ITSELF;
        }
        if (must_stop(s, a)) {
            return s->hurried ? STK_END_SIGNAL : STK_END_BUDGET;
        }
        /* A prediction that has a deadline may be as silent as it likes. */
        if ((a->is_training || isinf(a->stop_s)) && stk_judge_hang(s)) {
            return STK_END_HANG;
        }
        if (a->is_training && stk_judge_if_due(s, a, &why)) {
            return why;
        }
    }
}

/*
 * Asks a command to end and gives it time to. Its first process is asked once: it may be saving,
 * and a second request, or the end of those that feed it, would break that. The others are asked
 * when it has ended, or late. All of what hangs is asked at once.
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
        stk_guardian_report news = stk_guardian_poll(s->guardian, &a->ended);
        first_ended = first_ended || news == STK_GUARDIAN_ENDED;
        if (news == STK_GUARDIAN_LOST) {
            return;
        }
        if (!all && (first_ended || stk_supervision_now(s) >= others_s)) {
            stk_guardian_signal(s->guardian, number, STK_GUARDIAN_OTHERS);
            all = true;
        }
        stk_observe(s, a);
        hurry(s, a);
        until_s = fmin(until_s, a->kill_s);
    }
}

/* How long it may take for ending. */
static double end_until(const stk_supervision *s, const stk_attempt *a, stk_attempt_end why) {
    double now_s = stk_supervision_now(s);
    double grace_s = a->kill_s - a->stop_s;
    bool by_time = why == STK_END_BUDGET || why == STK_END_SIGNAL;
    if (isinf(a->stop_s) || !(grace_s >= 0)) {
        grace_s = s->table.grace_s;
    }
    return by_time ? fmin(a->kill_s, now_s + s->table.grace_s) : fmin(a->kill_s, now_s + grace_s);
}

static const char *reason_of(const stk_attempt *a, stk_attempt_end why,
                             const stk_progress *progress) {
    static const char *const reasons[] = {
        [STK_END_ITSELF] = "done", [STK_END_BUDGET] = "budget", [STK_END_SIGNAL] = "signal",
        [STK_END_HANG] = "hang",   [STK_END_BATCH] = "batch",   [STK_END_WORKERS] = "workers",
        [STK_END_LOST] = "crash",
    };
    if (why == STK_END_ITSELF && a->ended.code != 0) {
        return progress->out_of_memory ? "memory" : "crash";
    }
    return reasons[why];
}

static void end_all(stk_supervision *s, stk_attempt *a, stk_attempt_end why) {
    if (why == STK_END_LOST) {
        stk_guardian_stop(s->guardian, stk_supervision_kill_s(s));
        s->guardian = NULL;
        a->ended = (stk_command_exit){.code = -1, .signal = SIGKILL};
        return;
    }
    if (why != STK_END_ITSELF) {
        int number = !a->is_training ? SIGTERM : why == STK_END_HANG ? SIGABRT : s->stop_signal;
        ask_to_end(s, a, why, number, end_until(s, a, why));
    }
    size_t left = stk_guardian_alive(s->guardian);
    if (left > 0 && why == STK_END_ITSELF) {
        stk_events_warning(&s->events,
                           "%zu process%s of the command went on when its first one had ended; "
                           "ending them",
                           left, left == 1 ? "" : "es");
    }
    size_t stuck = left > 0 ? stk_guardian_kill(s->guardian, stk_supervision_kill_s(s)) : 0;
    stk_command_exit ended;
    if (stk_guardian_poll(s->guardian, &ended) == STK_GUARDIAN_ENDED) {
        a->ended = ended;
    }
    if (stuck > 0) {
        stk_events_warning(&s->events,
                           "%zu process%s of the command could not be ended: the kernel holds "
                           "them, or they are another user's",
                           stuck, stuck == 1 ? "" : "es");
    }
}

/*
 * Whole ones, as far as its words tell; -1: they do not. A command that does not speak of steps
 * says an epoch's number as a rule when that is done.
 */
static int epochs_done(const stk_progress *progress) {
    bool within = progress->steps > 0 && progress->step < progress->steps;
    return progress->epoch > 0 && within ? progress->epoch - 1 : progress->epoch;
}

/* Waits for its last words, and says once where some were lost. */
static void settle(stk_supervision *s) {
    stk_error why = {0};
    bool whole = stk_output_flush(s->output, stk_supervision_spare(s, SETTLE_S));
    if (!whole && !s->not_passed) {
        s->not_passed = true;
        stk_events_warning(&s->events, "the command's output could not be passed on whole: nobody "
                                       "reads it, or there is no room where it goes");
    }
    if (stk_output_error(s->output, &why) != STK_OK && !s->not_logged) {
        s->not_logged = true;
        stk_events_warning(&s->events, "the log of the command's output has gaps: %s", why.message);
    }
}

void stk_attempt_finish(stk_supervision *s, stk_attempt *a, stk_attempt_end why) {
    stk_evidence_summary seen;
    double to_s = stk_supervision_now(s);
    double from_s = isnan(a->since_s) ? a->began_s : a->since_s;
    stk_command_evidence_since(s->evidence, from_s, &seen);
    end_all(s, a, why);
    settle(s);
    a->stepped_s = -INFINITY; /* how far it came is told, however soon after the step before */
    stk_observe(s, a);
    a->looked = seen.samples > 0;
    a->on_gpu = seen.gpu_used;
    a->event.ended = true;
    a->event.seconds = stk_supervision_now(s) - a->began_s;
    a->event.exit_code = a->ended.code;
    a->event.signal = a->ended.signal;
    a->event.stop_reason = reason_of(a, why, &s->progress);
    if (a->is_training) {
        s->epochs_done = epochs_done(&s->progress);
        a->event.batch = a->advice.ignored ? a->advice.batch : stk_supervision_batch(s);
        a->event.workers = stk_supervision_workers(s);
        double rate = stk_progress_image_rate(&s->progress, a->event.batch, from_s, to_s);
        a->event.images_per_second =
            isnan(rate) ? stk_progress_image_rate(&s->progress, a->event.batch, a->began_s, to_s)
                        : rate;
        a->event.gpu_util = seen.activity;
        a->event.gpu_memory_used = seen.memory_used;
        a->event.gpu_memory_total = seen.memory_total;
        if (why == STK_END_ITSELF || why == STK_END_HANG) {
            stk_judge_ended(s, a, why == STK_END_HANG);
        }
        a->event.kept = a->advice.kept;
    }
    stk_events_attempt(&s->events, &a->event);
}

/* By the list of its processes, or by what all hold; where neither is known nobody waits for it. */
static bool has_free_gpus(const stk_supervision *s) {
    double used = s->last.gpu_memory_used;
    return s->last.gpu_memory_own == 0 || !(used > s->gpu_level + GPU_SLACK);
}

void stk_attempt_wait_for_gpus(stk_supervision *s) {
    double until_s = fmin(stk_supervision_now(s) + GPU_FREE_S, s->table.stop_s);
    double from_s = stk_supervision_now(s);
    bool fresh = false;
    while (s->gpu_count > 0 && stk_supervision_now(s) < until_s &&
           !stk_run_clock_stopping(&s->clock)) {
        stk_event_sample sample;
        while (stk_machine_sampler_take(s->sampler, &sample)) {
            s->last = sample;
            s->looked = true;
            stk_events_sample(&s->events, &sample);
        }
        fresh = s->looked && s->last.at_s > from_s;
        if (fresh && has_free_gpus(s)) {
            return;
        }
        wait_a_tick(s);
    }
    if (fresh && !stk_run_clock_stopping(&s->clock)) {
        stk_events_warning(&s->events,
                           "%.1f GB more than at the start are in use on the GPU although nothing "
                           "of the command is left; starting it all the same",
                           (s->last.gpu_memory_used - s->gpu_level) / 1e9);
    }
}
