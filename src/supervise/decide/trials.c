/*
 * trials.c - one attempt after another, each judged by its images per second.
 *
 * Only one thing is changed at a time, so that what was gained or lost is known to be its doing. A
 * trial that did not help ends the search for that knob: rates and memory grow with the batch (and
 * with the workers) up to a point and not again behind it, so there is nothing beyond to be found.
 */
#include "supervise/decide/trials.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <stoker/status.h>

#include "monitor/rates.h"

/* The rule without --fill: under both of them a GPU has room for twice the batch. */
#define MEMORY_LOW 0.50
#define ACTIVITY_LOW 60.0

/* A share of the memory over which a batch is not expected to fit: libraries take some as well. */
#define MEMORY_FULL 0.95

/* With --fill: within a tenth of the target it is reached. */
#define FILL_REACHED 0.9

/* Smaller steps than this are not worth a start anew. */
#define STEP_LEAST 1.25

/* What is kept must be faster by this; less is within what two looks differ by. */
#define FASTER 1.03

/* A batch that brought so much is followed by a larger one, however busy the GPU has become. */
#define GROWS 1.10

/* A trial may cost this part of what is left at most: throwing away, starting, and taking back. */
#define COST_OF_LEFT 4.0

/* Memory that changes by less than this part is the same. */
#define SAME_MEMORY 0.01

#define BATCH_MOST (INT64_C(1) << 30)
#define WORKERS_FIRST 4

/* Room for one attempt that is taken back must be left. */
#define SEEN_MOST (STK_TRIALS_MOST - 2)

static void say(char *text, size_t room, const char *format, ...) STK_PRINTF(3, 4);

/* Appends; what is too long is cut. */
static void say(char *text, size_t room, const char *format, ...) {
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
}

#define SAY(text, ...) say((text), sizeof(text), __VA_ARGS__)

/* "GPU memory 1 %, activity 12 %, 410 img/s", as far as it is known. */
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

/* Names what the command runs with: "batch 64", "8 workers", "as it is". */
static void say_what(stk_trial_advice *advice, stk_trial_setting of, const char *behind) {
    if (of == STK_TRIAL_SETTING_WORKERS && advice->workers >= 0) {
        SAY(advice->what, "%d worker%s%s", advice->workers, advice->workers == 1 ? "" : "s",
            behind);
    } else if (of != STK_TRIAL_SETTING_WORKERS && advice->batch > 0) {
        SAY(advice->what, "batch %lld%s", (long long)advice->batch, behind);
    } else {
        SAY(advice->what, "as the command has it%s", behind);
    }
}

/* What the command is to run with, where nothing new is tried. */
static void advise_best(const stk_trials *trials, stk_trial_advice *advice) {
    const stk_trial_facts *best = trials->best >= 0 ? &trials->seen[trials->best] : NULL;
    advice->batch = best != NULL && trials->batch_told ? best->batch : -1;
    advice->workers = best != NULL && trials->workers_told ? best->workers : -1;
}

static void finish(stk_trials *trials, stk_trial_setting of) {
    trials->batch_done = trials->batch_done || of == STK_TRIAL_SETTING_BATCH;
    trials->workers_done = trials->workers_done || of == STK_TRIAL_SETTING_WORKERS;
}

/* `why` has been said. */
static void stay(const stk_trials *trials, stk_trial_advice *advice) {
    const stk_trial_facts *best = trials->best >= 0 ? &trials->seen[trials->best] : NULL;
    advise_best(trials, advice);
    advice->act = STK_TRIAL_STAY;
    if (advice->why[0] == '\0') {
        SAY(advice->why, "there is nothing more to try");
    }
    if (best != NULL && best->batch > 0) {
        SAY(advice->what, "batch %lld stays", (long long)best->batch);
    } else {
        SAY(advice->what, "it stays as it is");
    }
}

/* Ends the trial that ran; `why` has been said here too. */
static void take_back(stk_trials *trials, stk_trial_advice *advice) {
    stk_trial_setting of = trials->trying;
    finish(trials, of);
    trials->trying = STK_TRIAL_SETTING_NONE;
    advise_best(trials, advice);
    advice->act = STK_TRIAL_TAKE_BACK;
    advice->of = of;
    say_what(advice, of, " again");
}

static void relaunch(stk_trials *trials, stk_trial_advice *advice, stk_trial_setting of,
                     int64_t value) {
    trials->trying = of;
    trials->value = value;
    trials->batch_told = trials->batch_told || of == STK_TRIAL_SETTING_BATCH;
    trials->workers_told = trials->workers_told || of == STK_TRIAL_SETTING_WORKERS;
    advise_best(trials, advice);
    if (of == STK_TRIAL_SETTING_BATCH) {
        advice->batch = value;
    } else {
        advice->workers = (int)value;
    }
    advice->act = STK_TRIAL_RELAUNCH;
    advice->of = of;
    say_what(advice, of, "");
}

/* An attempt that was no trial ran out of memory: half of its batch, until one fits. */
static void halve(stk_trials *trials, const stk_trial_facts *facts, stk_trial_advice *advice) {
    trials->batch_done = true;
    trials->best = -1; /* also where it ran well for a while: it does not fit */
    if (facts->batch > 0) {
        SAY(advice->why, "batch %lld ran out of memory", (long long)facts->batch);
    } else {
        SAY(advice->why, "it ran out of memory");
    }
    if (!facts->can_set_batch) {
        SAY(advice->why, "; say how it is told a smaller batch with --batch-env, --batch-arg or "
                         "--batch-key");
    } else if (facts->batch <= 0) {
        SAY(advice->why, " and its batch is not known: give it one in the command");
    } else if (facts->batch == 1) {
        SAY(advice->why, ", and there is no smaller one");
    } else if (facts->left_s < facts->lost_s) { /* what it has saved is worth more */
        SAY(advice->why, "; less time is left than it had taken by then");
    } else if (trials->count >= SEEN_MOST) {
        SAY(advice->why, "; enough was tried");
    } else {
        relaunch(trials, advice, STK_TRIAL_SETTING_BATCH, facts->batch / 2);
        trials->trying = STK_TRIAL_SETTING_NONE; /* there is nothing to go back to */
        return;
    }
    stay(trials, advice);
}

/* An attempt that ended before it could be looked at. */
static void after_end(stk_trials *trials, const stk_trial_facts *facts, stk_trial_advice *advice) {
    bool batch = trials->trying == STK_TRIAL_SETTING_BATCH;
    if (trials->trying == STK_TRIAL_SETTING_NONE && facts->out_of_memory) {
        halve(trials, facts, advice);
    } else if (trials->trying == STK_TRIAL_SETTING_NONE) {
        SAY(advice->why, "it ended before it could be looked at");
        stay(trials, advice);
    } else {
        SAY(advice->why, "%s %lld: it %s", batch ? "batch" : "workers", (long long)trials->value,
            facts->out_of_memory ? "ran out of memory"
            : facts->hung        ? "hung"
                                 : "ended before it could be looked at");
        take_back(trials, advice);
    }
}

/*
 * A batch that the command was told and did not take: steps times that batch would make each such
 * trial look twice as fast as the one before it. Its own words tell, or epochs of as many steps in
 * as much memory as before. True: it is said.
 */
static bool is_ignored(const stk_trials *trials, const stk_trial_facts *facts,
                       stk_trial_advice *advice) {
    const stk_trial_facts *before = &trials->seen[trials->best];
    bool says = facts->said_batch > 0 && facts->said_batch == before->said_batch &&
                facts->said_batch != trials->value;
    bool counts =
        facts->said_batch <= 0 && facts->epoch_steps > 1 &&
        facts->epoch_steps == before->epoch_steps &&
        fabs(facts->memory_share - before->memory_share) < SAME_MEMORY * before->memory_share;
    if (says) {
        SAY(advice->why, "it was told batch %lld and still says %lld; does it take it from there?",
            (long long)trials->value, (long long)facts->said_batch);
    } else if (counts) {
        SAY(advice->why,
            "it was told batch %lld, and its epochs still have %lld steps and take as much memory; "
            "does it take it from there?",
            (long long)trials->value, (long long)facts->epoch_steps);
    }
    advice->ignored = says || counts;
    return advice->ignored;
}

/* Says how a trial went; true: it is kept. */
static bool judge(stk_trials *trials, const stk_trial_facts *facts, stk_trial_advice *advice) {
    double before = trials->seen[trials->best].images_per_second;
    double now = facts->images_per_second;
    if (trials->trying == STK_TRIAL_SETTING_BATCH && is_ignored(trials, facts, advice)) {
        return false;
    }
    if (!(now > 0) || !(before > 0)) {
        SAY(advice->why, "it cannot be told whether it is faster: no it/s or img/s was heard");
        return false;
    }
    SAY(advice->why, "%s %lld: %s img/s instead of %s",
        trials->trying == STK_TRIAL_SETTING_BATCH ? "batch" : "workers", (long long)trials->value,
        stk_rates_text(now).text, stk_rates_text(before).text);
    return now >= FASTER * before;
}

/*
 * What every trial needs: a rate to compare with, time, and room in the list. False: one of them is
 * missing, and said.
 */
static bool may_try(const stk_trials *trials, const stk_trial_facts *facts,
                    stk_trial_advice *advice) {
    if (!(facts->images_per_second > 0)) {
        SAY(advice->why, "; no it/s or img/s was heard, so that it cannot be told what is faster");
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

/* The GPU waits for its input: more workers. True: the advice is complete. */
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
        SAY(advice->why, "; more workers may help: say how they are told with --workers-env, "
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
    relaunch(trials, advice, STK_TRIAL_SETTING_WORKERS, more);
    return true;
}

/* The batch to try next by memory and activity; 0: none, and why is said where it is of interest.
 */
static int64_t larger_batch(const stk_trial_facts *facts, bool grows, stk_trial_advice *advice) {
    double share = facts->memory_share;
    bool by_fill = !isnan(facts->fill);
    double target = by_fill ? fmin(facts->fill, MEMORY_FULL) : MEMORY_FULL;
    if (isnan(share)) {
        SAY(advice->why, "%sits GPU memory cannot be seen", advice->why[0] != '\0' ? "; " : "");
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
        SAY(advice->why, "; a larger batch may help: say how it is told with --batch-env, "
                         "--batch-arg or --batch-key");
        return false;
    }
    if (larger < 0) {
        SAY(advice->why, "; the batch is not known: say it with BATCH_SIZE=... or let the command "
                         "print batch_size=...");
        return false;
    }
    if (!may_try(trials, facts, advice)) {
        return false;
    }
    relaunch(trials, advice, STK_TRIAL_SETTING_BATCH, larger);
    return true;
}

/* An attempt that ran long enough to be looked at. */
static void after_look(stk_trials *trials, const stk_trial_facts *facts, int index,
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
    /* One that was taken back is the same again: the first look at it that told its speed on the
     * GPU stays the one to beat. */
    const stk_trial_facts *best = trials->best >= 0 ? &trials->seen[trials->best] : facts;
    bool untold = !(best->images_per_second > 0) || (!best->gpu_used && facts->gpu_used);
    trials->best = advice->kept || trials->best < 0 || untold ? index : trials->best;
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
    stk_trial_advice advice = {.act = STK_TRIAL_STAY, .batch = -1, .workers = -1};
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
        after_look(trials, seen, index, &advice);
    }
    return advice;
}

void stk_trials_cancel(stk_trials *trials) {
    finish(trials, trials->trying);
    trials->trying = STK_TRIAL_SETTING_NONE;
}
