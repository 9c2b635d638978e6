/*
 * trials.c - one attempt after another, each judged by its images per second.
 *
 * A trial changes one setting, so a gain or loss is its effect. A trial that did not help ends the
 * search for its setting: speed grows with the batch (or the workers) up to a point and not beyond.
 */
#include "supervise/decide/trials.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <stoker/status.h>

#include "monitor/rates.h"

/* Without --fill: a GPU below both has room for twice the batch. */
#define MEMORY_LOW 0.50
#define ACTIVITY_LOW 60.0

/* Share of memory up to which a batch is expected to fit; libraries need some as well. */
#define MEMORY_FULL 0.95

/* With --fill: the target counts as reached at this share of it. */
#define FILL_REACHED 0.9

/* Least growth of a batch that is worth a restart. */
#define STEP_LEAST 1.25

/* Least gain of a trial that is kept; smaller differences are noise. */
#define FASTER 1.03

/* After a gain like this the next larger batch is tried, however busy the GPU is. */
#define GROWS 1.10

/* A trial may begin if the time left is more than this many times its cost. */
#define COST_OF_LEFT 4.0

/* Memory that differs by less than this share is the same. */
#define SAME_MEMORY 0.01

#define BATCH_MOST (INT64_C(1) << 30)
#define WORKERS_FIRST 4

/* No trial begins after this many attempts: taking it back needs another entry. */
#define SEEN_MOST (STK_TRIALS_MOST - 2)

static void say(char *text, size_t room, const char *format, ...) STK_PRINTF(3, 4);

/* Appends to a text, cut to its room. */
static void say(char *text, size_t room, const char *format, ...) {
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
}

#define SAY(text, ...) say((text), sizeof(text), __VA_ARGS__)

/* Appends "GPU memory 1 %, activity 12 %, 410 img/s", without unknown figures. */
static void say_numbers(stk_trial_advice *advice, const stk_trial_facts *facts) {
    const char *comma = "";
    if (isfinite(facts->memory_share)) {
        SAY(advice->why, "GPU memory %.0f %%", 100 * facts->memory_share);
        comma = ", ";
    }
    if (isfinite(facts->activity)) {
        SAY(advice->why, "%sactivity %.0f %%", comma, facts->activity);
        comma = ", ";
    }
    if (isfinite(facts->images_per_second)) {
        SAY(advice->why, "%s%s img/s", comma, stk_rates_text(facts->images_per_second).text);
    }
}

/* Names what the command will run with: "batch 64", "8 workers". */
static void say_what(stk_trial_advice *advice, stk_trial_setting setting, const char *after) {
    if (setting == STK_TRIAL_SETTING_WORKERS && advice->workers >= 0) {
        SAY(advice->what, "%d worker%s%s", advice->workers, advice->workers == 1 ? "" : "s", after);
    } else if (setting != STK_TRIAL_SETTING_WORKERS && advice->batch > 0) {
        SAY(advice->what, "batch %lld%s", (long long)advice->batch, after);
    } else {
        SAY(advice->what, "as the command has it%s", after);
    }
}

/* Advises the best values so far. */
static void advise_best(const stk_trials *trials, stk_trial_advice *advice) {
    const stk_trial_facts *best = trials->best >= 0 ? &trials->seen[trials->best] : NULL;
    advice->batch = best != NULL && trials->batch_set ? best->batch : -1;
    advice->workers = best != NULL && trials->workers_set ? best->workers : -1;
}

static void finish(stk_trials *trials, stk_trial_setting setting) {
    trials->batch_done = trials->batch_done || setting == STK_TRIAL_SETTING_BATCH;
    trials->workers_done = trials->workers_done || setting == STK_TRIAL_SETTING_WORKERS;
}

/* Advises to let the command run; advice->why may hold the reason already. */
static void stay(const stk_trials *trials, stk_trial_advice *advice) {
    const stk_trial_facts *best = trials->best >= 0 ? &trials->seen[trials->best] : NULL;
    advise_best(trials, advice);
    advice->action = STK_TRIAL_STAY;
    if (advice->why[0] == '\0') {
        SAY(advice->why, "there is nothing more to try");
    }
    if (best != NULL && best->batch > 0) {
        SAY(advice->what, "batch %lld stays", (long long)best->batch);
    } else {
        SAY(advice->what, "it stays as it is");
    }
}

/* Ends the running trial without success; advice->why holds the reason already. */
static void take_back(stk_trials *trials, stk_trial_advice *advice) {
    stk_trial_setting setting = trials->trying;
    finish(trials, setting);
    trials->trying = STK_TRIAL_SETTING_NONE;
    advise_best(trials, advice);
    advice->action = STK_TRIAL_TAKE_BACK;
    advice->setting = setting;
    say_what(advice, setting, " again");
}

static void restart(stk_trials *trials, stk_trial_advice *advice, stk_trial_setting setting,
                    int64_t value) {
    trials->trying = setting;
    trials->value = value;
    trials->batch_set = trials->batch_set || setting == STK_TRIAL_SETTING_BATCH;
    trials->workers_set = trials->workers_set || setting == STK_TRIAL_SETTING_WORKERS;
    advise_best(trials, advice);
    if (setting == STK_TRIAL_SETTING_BATCH) {
        advice->batch = value;
    } else {
        advice->workers = (int)value;
    }
    advice->action = STK_TRIAL_RELAUNCH;
    advice->setting = setting;
    say_what(advice, setting, "");
}

/* An attempt that was no trial ran out of memory: halves its batch until one fits. */
static void halve(stk_trials *trials, const stk_trial_facts *facts, stk_trial_advice *advice) {
    trials->batch_done = true;
    trials->best = -1; /* this batch does not fit, even if it ran for a while */
    if (facts->batch > 0) {
        SAY(advice->why, "batch %lld ran out of memory", (long long)facts->batch);
    } else {
        SAY(advice->why, "it ran out of memory");
    }
    if (!facts->can_set_batch) {
        SAY(advice->why, "; say how to set a smaller batch with --batch-env, --batch-arg or "
                         "--batch-key");
    } else if (facts->batch <= 0) {
        SAY(advice->why, " and its batch is unknown: give it one in the command");
    } else if (facts->batch == 1) {
        SAY(advice->why, ", and there is no smaller one");
    } else if (facts->left_s < facts->lost_s) { /* the checkpoints it saved are worth more */
        SAY(advice->why, "; less time is left than it had taken by then");
    } else if (trials->count >= SEEN_MOST) {
        SAY(advice->why, "; enough was tried");
    } else {
        restart(trials, advice, STK_TRIAL_SETTING_BATCH, facts->batch / 2);
        trials->trying = STK_TRIAL_SETTING_NONE; /* there is no earlier value to return to */
        return;
    }
    stay(trials, advice);
}

/* After an attempt that ended before it could be checked. */
static void after_end(stk_trials *trials, const stk_trial_facts *facts, stk_trial_advice *advice) {
    bool batch = trials->trying == STK_TRIAL_SETTING_BATCH;
    if (trials->trying == STK_TRIAL_SETTING_NONE && facts->out_of_memory) {
        halve(trials, facts, advice);
    } else if (trials->trying == STK_TRIAL_SETTING_NONE) {
        SAY(advice->why, "it ended before it could be checked");
        stay(trials, advice);
    } else {
        SAY(advice->why, "%s %lld: it %s", batch ? "batch" : "workers", (long long)trials->value,
            facts->out_of_memory ? "ran out of memory"
            : facts->hung        ? "hung"
                                 : "ended before it could be checked");
        take_back(trials, advice);
    }
}

/*
 * Whether the command ignored the requested batch. Its speed is steps times batch, so an ignored
 * batch would look twice as fast. The command prints its old batch, or its epochs have as many
 * steps and take as much memory as before. True: advice->why says so.
 */
static bool is_ignored(const stk_trials *trials, const stk_trial_facts *facts,
                       stk_trial_advice *advice) {
    const stk_trial_facts *before = &trials->seen[trials->best];
    bool says = facts->printed_batch > 0 && facts->printed_batch == before->printed_batch &&
                facts->printed_batch != trials->value;
    bool counts =
        facts->printed_batch <= 0 && facts->epoch_steps > 1 &&
        facts->epoch_steps == before->epoch_steps &&
        fabs(facts->memory_share - before->memory_share) < SAME_MEMORY * before->memory_share;
    if (says) {
        SAY(advice->why,
            "the command ignored the requested batch %lld and ran with its previous one, %lld",
            (long long)trials->value, (long long)facts->printed_batch);
    } else if (counts) {
        SAY(advice->why,
            "the command ignored the requested batch %lld: its epochs still have %lld steps and "
            "take as much memory",
            (long long)trials->value, (long long)facts->epoch_steps);
    }
    advice->ignored = says || counts;
    return advice->ignored;
}

/* Judges the running trial and says how it went; true: it is kept. */
static bool judge(stk_trials *trials, const stk_trial_facts *facts, stk_trial_advice *advice) {
    double before = trials->seen[trials->best].images_per_second;
    double now = facts->images_per_second;
    if (trials->trying == STK_TRIAL_SETTING_BATCH && is_ignored(trials, facts, advice)) {
        return false;
    }
    if (!(now > 0) || !(before > 0)) {
        SAY(advice->why, "the command printed no it/s or img/s, so the trial cannot be compared");
        return false;
    }
    SAY(advice->why, "%s %lld: %s img/s instead of %s",
        trials->trying == STK_TRIAL_SETTING_BATCH ? "batch" : "workers", (long long)trials->value,
        stk_rates_text(now).text, stk_rates_text(before).text);
    return now >= FASTER * before;
}

/* Every trial needs a speed to compare with, time, and room in the list. False: one is missing, and
 * advice->why says which. */
static bool may_try(const stk_trials *trials, const stk_trial_facts *facts,
                    stk_trial_advice *advice) {
    if (!(facts->images_per_second > 0)) {
        SAY(advice->why, "; the command prints no it/s or img/s, so trials cannot be compared");
        return false;
    }
    double lost_s = isnan(facts->lost_s) ? 0 : facts->lost_s;
    if (!(facts->left_s > COST_OF_LEFT * lost_s)) {
        SAY(advice->why, "; no time for a trial: it costs %.0f s of the %.0f s that are left",
            lost_s, facts->left_s);
        return false;
    }
    if (trials->count >= SEEN_MOST) {
        SAY(advice->why, "; enough was tried");
        return false;
    }
    return true;
}

/* Tries more workers, since the GPU waits for its input. True: the advice is complete. */
static bool try_workers(stk_trials *trials, const stk_trial_facts *facts,
                        stk_trial_advice *advice) {
    int cores = facts->cores > 0 ? facts->cores : 1;
    int64_t twice = facts->workers > 0 ? 2 * (int64_t)facts->workers : WORKERS_FIRST;
    int64_t more = twice < cores ? twice : cores;
    SAY(advice->why, " (waits for its input)");
    if (trials->workers_done) {
        return false;
    }
    if (!facts->can_set_workers) {
        SAY(advice->why, "; more workers may help: say how to set them with --workers-env, "
                         "--workers-arg or --workers-key");
        return false;
    }
    if (more <= facts->workers) {
        SAY(advice->why, "; it has as many workers as cores (%d)", cores);
        trials->workers_done = true;
        return false;
    }
    if (!may_try(trials, facts, advice)) {
        return false;
    }
    restart(trials, advice, STK_TRIAL_SETTING_WORKERS, more);
    return true;
}

/* The batch to try next, by memory and activity; 0: none; -1: a larger one, but the present batch
 * is unknown. */
static int64_t larger_batch(const stk_trial_facts *facts, bool grows, stk_trial_advice *advice) {
    double share = facts->memory_share;
    bool by_fill = !isnan(facts->fill);
    double target = by_fill ? fmin(facts->fill, MEMORY_FULL) : MEMORY_FULL;
    if (isnan(share)) {
        SAY(advice->why, "%sits GPU memory is unknown", advice->why[0] != '\0' ? "; " : "");
        return 0;
    }
    if (by_fill ? share >= FILL_REACHED * target
                : share >= MEMORY_LOW || (facts->activity >= ACTIVITY_LOW && !grows)) {
        return 0;
    }
    int64_t batch = facts->batch > 0 ? facts->batch : 0;
    int64_t larger = 2 * batch;
    if (2 * share > target) {
        larger = by_fill ? (int64_t)((double)batch * target / share) / 8 * 8 : 0;
    }
    if (batch > 0 && ((double)larger < STEP_LEAST * (double)batch || larger > BATCH_MOST)) {
        SAY(advice->why, "; a larger batch would not fit");
        return 0;
    }
    return batch > 0 ? larger : -1;
}

static bool try_batch(stk_trials *trials, const stk_trial_facts *facts, bool grows,
                      stk_trial_advice *advice) {
    if (!facts->gpu_used) {
        SAY(advice->why, "%sno GPU is used", advice->why[0] != '\0' ? "; " : "");
        return false;
    }
    int64_t larger = trials->batch_done ? 0 : larger_batch(facts, grows, advice);
    if (larger == 0) {
        return false;
    }
    if (!facts->can_set_batch) {
        SAY(advice->why, "; a larger batch may help: say how to set it with --batch-env, "
                         "--batch-arg or --batch-key");
        return false;
    }
    if (larger < 0) {
        SAY(advice->why, "; its batch is unknown: set BATCH_SIZE=... or let the command print "
                         "batch_size=...");
        return false;
    }
    if (!may_try(trials, facts, advice)) {
        return false;
    }
    restart(trials, advice, STK_TRIAL_SETTING_BATCH, larger);
    return true;
}

/* After an attempt that ran long enough to be checked. */
static void after_check(stk_trials *trials, const stk_trial_facts *facts, int index,
                        stk_trial_advice *advice) {
    bool grows = false;
    if (trials->trying != STK_TRIAL_SETTING_NONE) {
        double before = trials->best >= 0 ? trials->seen[trials->best].images_per_second : NAN;
        grows =
            trials->trying == STK_TRIAL_SETTING_BATCH && facts->images_per_second >= GROWS * before;
        advice->kept = judge(trials, facts, advice);
        if (!advice->kept) {
            take_back(trials, advice);
            return;
        }
        SAY(advice->why, "; ");
    }
    /* After a trial was taken back, the command runs with the best values again; then the first
     * check that knew their speed on the GPU stays the one to beat. */
    const stk_trial_facts *best = trials->best >= 0 ? &trials->seen[trials->best] : facts;
    bool unknown = !(best->images_per_second > 0) || (!best->gpu_used && facts->gpu_used);
    trials->best = advice->kept || trials->best < 0 || unknown ? index : trials->best;
    trials->trying = STK_TRIAL_SETTING_NONE;
    say_numbers(advice, facts);
    bool more = facts->input_bound ? try_workers(trials, facts, advice)
                                   : try_batch(trials, facts, grows, advice);
    if (!more) {
        stay(trials, advice);
    }
}

void stk_trials_begin(stk_trials *trials) {
    memset(trials, 0, sizeof *trials);
    trials->best = -1;
}

stk_trial_advice stk_trials_after(stk_trials *trials, const stk_trial_facts *facts) {
    stk_trial_advice advice = {.action = STK_TRIAL_STAY, .batch = -1, .workers = -1};
    advice.tried = trials->trying != STK_TRIAL_SETTING_NONE;
    if (trials->count >= STK_TRIALS_MOST) {
        SAY(advice.why, "enough was tried");
        stay(trials, &advice);
        return advice;
    }
    int index = trials->count++;
    stk_trial_facts *seen = &trials->seen[index];
    *seen = *facts;
    if (trials->trying == STK_TRIAL_SETTING_BATCH) {
        seen->batch = trials->value;
    } else if (trials->trying == STK_TRIAL_SETTING_WORKERS) {
        seen->workers = (int)trials->value;
    }
    if (seen->out_of_memory || seen->crashed || seen->hung) {
        after_end(trials, seen, &advice);
    } else {
        after_check(trials, seen, index, &advice);
    }
    return advice;
}

void stk_trials_cancel(stk_trials *trials) {
    finish(trials, trials->trying);
    trials->trying = STK_TRIAL_SETTING_NONE;
}
