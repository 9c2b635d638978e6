/*
 * watch.c - watches a running command: samples, progress, estimate; verdicts, trials, hangs.
 *
 * Each training is checked once, some time after its GPU work began: the check makes the first
 * verdict and decides on a trial. Later verdicts follow every minute.
 */
#include <math.h>
#include <stdio.h>

#include "base/machine.h"
#include "base/str.h"
#include "supervise/decide/forecast.h"
#include "supervise/process/stacks.h"
#include "supervise/supervision.h"

#define STEP_GAP_S 0.5 /* least time between two progress events */
#define RATE_S 15.0    /* window of the speed that is shown */

/*
 * The first steps are slow. An estimate waits ESTIMATE_AFTER_S after the first progress, or this
 * share of the training's time if that is less. It is reported again if it changed by this share.
 */
#define ESTIMATE_AFTER_S 10.0
#define ESTIMATE_SHARE 0.05
#define ESTIMATE_GAP_S 20.0
#define ESTIMATE_CHANGE 0.25

#define JUDGE_GAP_S 60.0 /* between two verdicts after the check */
#define JUDGE_S 60.0     /* length of the interval that a verdict judges */

/* ---- Watching ---- */

void stk_watch_line(void *user, const char *line, size_t length, double at_s) {
    stk_supervision *s = user;
    pthread_mutex_lock(&s->lock);
    stk_progress_read_line(&s->live_progress, line, length, at_s);
    pthread_mutex_unlock(&s->lock);
}

static stk_times no_times(void) {
    return (stk_times){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

static void take_samples(stk_supervision *s, const stk_attempt *a) {
    stk_event_sample sample;
    double bytes = (double)stk_output_bytes(s->output);
    while (stk_machine_sampler_take(s->sampler, &sample)) {
        (void)stk_proc_tree_read(&s->tree, stk_guardian_pid(s->guardian));
        sample.images_per_second =
            a->is_training ? stk_progress_image_rate(&s->progress, stk_supervision_batch(s),
                                                     sample.at_s - RATE_S, sample.at_s)
                           : NAN;
        sample.wait_fraction = NAN;
        sample.batches_ready = -1;
        sample.slots = -1;
        sample.workers = a->is_training ? stk_supervision_workers(s) : -1;
        stk_command_evidence_add(s->evidence, &sample, &s->tree, a->pid);
        stk_hang_add(&s->hang, &sample, bytes, s->progress.progress_s);
        s->last_sample = sample;
        s->has_sample = true;
        stk_events_sample(&s->events, &sample);
    }
}

static void emit_progress(stk_supervision *s, stk_attempt *a, double now_s) {
    const stk_command_progress *w = &s->progress;
    stk_forecast forecast;
    bool news = !isnan(w->progress_s) && !(w->progress_s == a->progress_s);
    if (news && isnan(a->first_progress_s)) {
        a->first_progress_s = now_s;
    }
    if (!news || now_s - a->stepped_s < STEP_GAP_S) {
        return;
    }
    a->stepped_s = now_s;
    a->progress_s = w->progress_s;
    size_t moments = w->point_count;
    bool estimated = stk_forecast_make(w, now_s, a->stop_s, &forecast);
    stk_event_step step = {
        .epoch = w->epoch,
        .epochs = w->epochs,
        .step = w->step,
        .steps = w->steps,
        .steps_done =
            moments > 0 ? (int64_t)w->points[(moments - 1) % STK_PROGRESS_POINTS].steps : -1,
        .loss = w->loss,
        .acc1 = NAN,
        .lr = NAN,
        .steps_per_second = stk_progress_step_rate(w, now_s - RATE_S, now_s),
        .images_per_second =
            stk_progress_image_rate(w, stk_supervision_batch(s), now_s - RATE_S, now_s),
        .wait_fraction = NAN,
        .left_s = estimated ? forecast.left_s : NAN,
        .times = no_times()};
    stk_events_step(&s->events, &step);
}

static void emit_estimate(stk_supervision *s, stk_attempt *a, double now_s) {
    stk_forecast forecast;
    double known_s = now_s - a->first_progress_s;
    double enough_s = fmin(ESTIMATE_AFTER_S, ESTIMATE_SHARE * (a->stop_s - a->began_s));
    if (!(known_s >= enough_s) || now_s - a->estimate_reported_s < ESTIMATE_GAP_S ||
        !stk_forecast_make(&s->progress, now_s, a->stop_s, &forecast)) {
        return;
    }
    double total_s = isnan(forecast.total_s) ? forecast.epoch_s : forecast.total_s;
    if (fabs(total_s - a->estimated_total_s) < ESTIMATE_CHANGE * a->estimated_total_s) {
        return; /* already reported */
    }
    a->estimate_reported_s = now_s;
    a->estimated_total_s = total_s;
    stk_forecast_say(&forecast, s->clock.budget_s, s->estimate, sizeof s->estimate);
    stk_events_decision(&s->events, "estimate", s->estimate);
}

void stk_watch_command(stk_supervision *s, stk_attempt *a) {
    double now_s = stk_supervision_now(s);
    pthread_mutex_lock(&s->lock);
    s->progress = s->live_progress;
    pthread_mutex_unlock(&s->lock);
    if (s->guardian != NULL) {
        take_samples(s, a);
    }
    if (a->is_training) {
        emit_progress(s, a, now_s);
        emit_estimate(s, a, now_s);
    }
}

/* ---- Judging ---- */

/* Judges an interval; reports the verdict if it differs from the last one. */
static void judge(stk_supervision *s, stk_attempt *a, const stk_evidence_summary *summary,
                  double from_s, double to_s) {
    stk_command_evidence_judge(s->evidence, summary, &s->progress, from_s, to_s,
                               stk_supervision_batch(s), &s->verdict);
    a->judged_s = to_s;
    bool news = s->verdict.kind != STK_VERDICT_UNKNOWN && s->verdict.kind != a->last_verdict;
    if (news) {
        a->last_verdict = s->verdict.kind;
        a->event.verdict = stk_verdict_name(s->verdict.kind);
        stk_events_verdict(&s->events, &s->verdict.event);
    }
}

static stk_trial_facts facts_of(const stk_supervision *s, const stk_attempt *a,
                                const stk_evidence_summary *summary, double from_s, double to_s) {
    int64_t batch = stk_supervision_batch(s);
    double rate = stk_progress_image_rate(&s->progress, batch, from_s, to_s);
    stk_forecast forecast = {.left_s = NAN};
    (void)stk_forecast_make(&s->progress, to_s, a->stop_s, &forecast);
    return (stk_trial_facts){.batch = batch,
                             .printed_batch = s->progress.batch,
                             .epoch_steps = s->progress.in_images ? -1 : s->progress.steps,
                             .workers = stk_supervision_workers(s),
                             .images_per_second = rate,
                             .memory_share = summary->memory_share,
                             .activity = summary->activity,
                             .gpu_used = summary->gpu_used,
                             .input_bound = summary->input_bound,
                             .can_set_batch = s->batch_setting.kind != STK_SETTING_NONE,
                             .can_set_workers = s->workers_setting.kind != STK_SETTING_NONE,
                             .cores = stk_machine_cores(),
                             .lost_s = to_s - a->began_s,
                             .left_s = fmin(a->stop_s - to_s, forecast.left_s),
                             .fill = s->fill};
}

/* Warns if the command uses no GPU and prints nothing about one. */
static void warn_of_no_gpu(stk_supervision *s, stk_attempt *a,
                           const stk_evidence_summary *summary) {
    if (a->told_no_gpu || !summary->has_gpu || summary->gpu_used ||
        !isnan(s->progress.gpu_memory_used)) {
        return;
    }
    a->told_no_gpu = true;
    stk_events_warning(
        &s->events,
        "the GPU is not used: no process of the command has memory on it, it did no "
        "work in %s, and the command printed nothing about GPU memory; it computes on "
        "the CPU (does it see the GPU? is the model moved to it?)",
        stk_format_span(stk_supervision_now(s) - a->began_s).text);
}

/* The check: once for each attempt. */
static bool check(stk_supervision *s, stk_attempt *a, double now_s, stk_attempt_end *why) {
    stk_evidence_summary summary;
    stk_command_evidence_since(s->evidence, a->check_from_s, &summary);
    a->checked = true;
    judge(s, a, &summary, a->check_from_s, now_s);
    warn_of_no_gpu(s, a, &summary);
    stk_trial_facts facts = facts_of(s, a, &summary, a->check_from_s, now_s);
    a->advice = stk_trials_after(&s->trials, &facts);
    bool again = a->advice.action != STK_TRIAL_STAY;
    if (a->advice.what[0] != '\0') {
        char what[160];
        snprintf(what, sizeof what, "%s%s", again && s->o->dry_run ? "would start again: " : "",
                 a->advice.what);
        stk_events_decision(&s->events, what, a->advice.why);
    }
    *why = a->advice.setting == STK_TRIAL_SETTING_WORKERS ? STK_END_WORKERS : STK_END_BATCH;
    if (s->o->dry_run) {
        a->advice.action = STK_TRIAL_STAY; /* also for the end of the command */
    }
    return a->advice.action != STK_TRIAL_STAY;
}

/*
 * Finds the start of the interval that the check judges: when the GPU began to work (without a GPU:
 * the first progress), or the end of the grace time. If work begins after that, because the command
 * downloaded data first, the check runs again for that work.
 */
static void find_check_start(const stk_supervision *s, stk_attempt *a, double now_s) {
    double working_s =
        s->gpu_count > 0 ? stk_command_evidence_working_since(s->evidence) : a->first_progress_s;
    if (!isnan(working_s) && !a->gpu_worked) {
        a->gpu_worked = true;
        a->check_from_s = working_s;
        a->checked = false;
    }
    if (isnan(a->check_from_s) && now_s - a->began_s >= s->o->grace_s) {
        a->check_from_s = a->began_s + s->o->grace_s;
    }
}

bool stk_judge_if_due(stk_supervision *s, stk_attempt *a, stk_attempt_end *why) {
    double now_s = stk_supervision_now(s);
    find_check_start(s, a, now_s);
    if (isnan(a->check_from_s) || now_s - a->check_from_s < s->o->check_after_s) {
        return false;
    }
    if (!a->checked) {
        return check(s, a, now_s, why);
    }
    if (now_s - a->judged_s >= JUDGE_GAP_S) {
        stk_evidence_summary summary;
        stk_command_evidence_since(s->evidence, now_s - JUDGE_S, &summary);
        judge(s, a, &summary, now_s - JUDGE_S, now_s);
    }
    return false;
}

void stk_judge_ended(stk_supervision *s, stk_attempt *a, bool hung) {
    stk_evidence_summary summary;
    double now_s = stk_supervision_now(s);
    bool failed = hung || a->exit.code != 0;
    bool out_of_memory = s->progress.out_of_memory && !hung;
    if (!failed || (a->checked && !out_of_memory) ||
        (hung && s->trials.trying == STK_TRIAL_SETTING_NONE)) {
        return; /* it did not fail, or not because of a trial */
    }
    stk_command_evidence_since(s->evidence, a->began_s, &summary);
    stk_trial_facts facts = facts_of(s, a, &summary, a->began_s, now_s);
    facts.out_of_memory = out_of_memory;
    facts.hung = hung;
    facts.crashed = !hung && !out_of_memory;
    a->advice = stk_trials_after(&s->trials, &facts);
    if (s->o->dry_run) {
        a->advice.action = STK_TRIAL_STAY;
    }
    /* Otherwise the end itself says enough. */
    if (a->advice.action != STK_TRIAL_STAY || out_of_memory) {
        stk_events_decision(&s->events, a->advice.what, a->advice.why);
    }
}

/* ---- Hangs ---- */

static void record_hang(stk_supervision *s, const char *why) {
    char name[32];
    stk_str text = {0};
    snprintf(name, sizeof name, "hang-%d.txt", s->hangs + 1);
    stk_str_appendf(&text, "%s\n\n", why);
    stk_stacks_describe(stk_guardian_pid(s->guardian), &text);
    stk_folder_writer_put(s->folder, name, &text);
    stk_events_warning(&s->events, "the command hangs: %s; %s/%s says what its processes wait for",
                       why, stk_folder_writer_path(s->folder), name);
}

bool stk_judge_hang(stk_supervision *s) {
    char why[200];
    double now_s = stk_supervision_now(s);
    if (!stk_hang_is(&s->hang, now_s, why, sizeof why)) {
        return false;
    }
    record_hang(s, why);
    s->hangs++;
    stk_hang_begin(&s->hang, s->o->hang_s, now_s);
    return s->o->on_hang != STK_HANG_REPORT && !s->o->dry_run;
}
