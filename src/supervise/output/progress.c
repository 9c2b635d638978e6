/*
 * progress.c - what follows from the lines of a training for the whole of it.
 *
 * Every line is read by itself (words_rules.c). Here it is decided which bar is training's, when an
 * epoch is over and how far the command is. Progress is counted in steps that only grow; where the
 * command begins anew (a fold, a start within the command) the count does so too.
 */
#include "supervise/output/progress.h"

#include <math.h>
#include <string.h>

#include "supervise/output/line_rules.h"
#include "supervise/output/line_text.h"

/* Between two moments that are kept: then the ring covers a minute. */
#define MOMENT_S 0.5

/* The shortest time that a rate is taken over. */
#define RATE_LEAST_S 1.0

_Static_assert(sizeof((stk_words *)NULL)->rule_index == STK_RULE_LETTERS + 1,
               "the index is that of the rules");

void stk_words_begin(stk_words *words, double at_s) {
    *words = (stk_words){.began_s = at_s,
                         .epoch = -1,
                         .epochs = -1,
                         .step = -1,
                         .steps = -1,
                         .loss = NAN,
                         .steps_per_second = NAN,
                         .images_per_second = NAN,
                         .gpu_memory_used = NAN,
                         .gpu_memory_total = NAN,
                         .batch = -1,
                         .workers = -1,
                         .epoch_began_s = NAN,
                         .epoch_s = NAN,
                         .progress_s = NAN,
                         .step_rate_s = NAN,
                         .image_rate_s = NAN,
                         .other_step = -1,
                         .other_steps = -1};
    stk_line_index(words->rule_index);
}

/* The progress begins anew: what was before says nothing of the speed from here on. */
static void begin_anew(stk_words *words) {
    words->moment_count = 0;
    words->done = 0;
    words->step = -1;
    words->other_steps = -1;
    words->epochs_s = (stk_typical){0};
    words->epoch_s = NAN;
}

/* One that was held up tells nothing of those to come. */
static void note_epoch(stk_words *words, double seconds) {
    stk_typical_note(&words->epochs_s, seconds);
    words->epoch_s = stk_typical_value(&words->epochs_s);
}

static void add_moment(stk_words *words, double at_s) {
    if (words->moment_count > 0) {
        const stk_words_moment *last =
            &words->moments[(words->moment_count - 1) % STK_WORDS_MOMENTS];
        if (at_s - last->at_s < MOMENT_S) {
            return;
        }
    }
    words->moments[words->moment_count % STK_WORDS_MOMENTS] =
        (stk_words_moment){.at_s = at_s, .steps = words->done};
    words->moment_count++;
}

/* The rest of a pass through the data that was not heard of, once the next has begun. */
static void finish_pass(stk_words *words) {
    if (words->step >= 0 && words->steps > words->step) {
        words->done += (double)(words->steps - words->step);
    }
}

/* The epoch that is in work by a line: from 1. */
static int epoch_in_work(stk_words *words, const stk_line *line) {
    if (stk_line_says(line, STK_SAID_EPOCHS_DONE)) {
        return (int)line->value[STK_SAID_EPOCHS_DONE] + 1;
    }
    int said = (int)line->value[STK_SAID_EPOCH];
    if (line->fraction) {
        return said + 1;
    }
    bool step = stk_line_says(line, STK_SAID_STEP) || stk_line_says(line, STK_SAID_IMAGE) ||
                stk_line_says(line, STK_SAID_GLOBAL_STEP) ||
                stk_line_says(line, STK_SAID_MAYBE_STEP) ||
                stk_line_says(line, STK_SAID_MAYBE_BATCH);
    words->zero_based = words->zero_based || said == 0;
    int epoch = said + (words->zero_based ? 1 : 0);
    bool again = epoch + 1 == words->epoch && stk_line_says(line, STK_SAID_LOSS) &&
                 line->value[STK_SAID_LOSS] != words->loss;
    if (!words->epoch_said) {
        words->told_late = line->any_loss && !step;
    } else if (step || again) { /* so it was not over */
        words->told_late = false;
    }
    return epoch + (words->told_late ? 1 : 0);
}

static void enter_epoch(stk_words *words, int epoch, bool sure, double at_s) {
    if (words->epochs > 0 && epoch > words->epochs) {
        epoch = words->epochs; /* the last one, over */
    }
    if (epoch == words->epoch) {
        words->epoch_began_s = isnan(words->epoch_began_s) ? at_s : words->epoch_began_s;
        return;
    }
    if (words->epoch > 0 && epoch < words->epoch) {
        if (!sure) {
            return;
        }
        begin_anew(words);
    } else if (words->epoch > 0) {
        if (!isnan(words->epoch_began_s)) {
            note_epoch(words, (at_s - words->epoch_began_s) / (epoch - words->epoch));
        }
        if (!words->whole) {
            finish_pass(words);
            words->step = words->step >= 0 ? 0 : -1;
        }
    }
    words->epoch = epoch;
    words->epoch_began_s = at_s;
    words->progress_s = at_s;
}

static void hear_epoch(stk_words *words, const stk_line *line, double at_s) {
    bool said = stk_line_says(line, STK_SAID_EPOCH) || stk_line_says(line, STK_SAID_EPOCHS_DONE);
    if (stk_line_says(line, STK_SAID_EPOCHS)) {
        words->epochs = (int)line->value[STK_SAID_EPOCHS];
    }
    if (!said) {
        return;
    }
    if (!words->epoch_said && words->epoch > 0) { /* until now its passes were counted */
        words->epoch = -1;
    }
    int epoch = epoch_in_work(words, line);
    bool sure = epoch == 1 || stk_line_says(line, STK_SAID_EPOCHS) ||
                stk_line_says(line, STK_SAID_STEP) || stk_line_says(line, STK_SAID_LOSS);
    int counted = epoch - (words->told_late && !line->fraction ? 1 : 0);
    if (words->epochs > 0 && counted > words->epochs && !line->fraction) {
        words->epochs = counted; /* "29/29", counted from 0 */
    }
    words->epoch_said = true;
    enter_epoch(words, epoch, sure, at_s);
}

/*
 * Whether a bar is another one than training's: it tells no epoch and has fewer steps than one that
 * was heard before, such as the validation's behind it, or one that counts epochs around it. But
 * with none of ours between, one that is gone through again is training's after all; so is one that
 * calls itself so and goes on.
 */
static bool is_other_bar(stk_words *words, const stk_line *line, int64_t step, int64_t steps) {
    bool named = !line->bar || stk_line_says(line, STK_SAID_EPOCH);
    if (named || words->steps < 0 || steps < 0 || steps >= words->steps) {
        words->other_steps = -1;
        return false;
    }
    bool ours = line->train ? step > words->other_step : step < words->other_step;
    if (steps == words->other_steps && ours) {
        return false;
    }
    words->other_steps = steps;
    words->other_step = step;
    return true;
}

static void step_to(stk_words *words, int64_t step, int64_t steps, double at_s) {
    if (steps > 0 && words->steps > 0 && steps != words->steps) {
        begin_anew(words);
    }
    bool again = words->step >= 0 && step < words->step;
    if (again && words->whole) {
        begin_anew(words);
    } else if (again) {
        finish_pass(words);
        if (!words->epoch_said) {
            double began_s = isnan(words->epoch_began_s) ? words->began_s : words->epoch_began_s;
            if (words->epoch > 0) {
                note_epoch(words, at_s - began_s);
            }
            words->epoch = words->epoch > 0 ? words->epoch + 1 : 2;
            words->epoch_began_s = at_s;
        }
        words->step = 0;
    }
    if (step != words->step) {
        words->progress_s = at_s;
    }
    words->done += (double)(step - (words->step > 0 ? words->step : 0));
    words->step = step;
    words->steps = steps > 0 ? steps : step <= words->steps ? words->steps : -1;
    add_moment(words, at_s);
}

/*
 * Whether steps are counted through all epochs: the epoch has a fraction and nothing else tells it,
 * or the count went on when a new epoch began.
 */
static bool is_whole(const stk_words *words, const stk_line *line, int before, int64_t step) {
    bool next = before > 0 && words->epoch > before && stk_line_says(line, STK_SAID_EPOCH);
    if (!next || words->whole) {
        return words->whole && !(next && step < words->step);
    }
    return words->steps < 0 && words->done > 0 && (double)step > words->done;
}

/* The step that a line tells, in the order in which it can be trusted; false: none. */
static bool find_step(const stk_line *line, int64_t *step, int64_t *steps) {
    bool training = stk_line_says(line, STK_SAID_EPOCH) || stk_line_says(line, STK_SAID_LOSS);
    static const struct {
        stk_said step, steps;
        bool sure;
    } ways[] = {
        {STK_SAID_STEP, STK_SAID_STEPS, true},
        {STK_SAID_IMAGE, STK_SAID_IMAGES, true},
        {STK_SAID_MAYBE_STEP, STK_SAID_MAYBE_STEPS, false},
        {STK_SAID_GLOBAL_STEP, STK_SAID_STEPS, true},
        {STK_SAID_MAYBE_BATCH, STK_SAID_COUNT, false},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (stk_line_says(line, ways[i].step) && (ways[i].sure || training)) {
            bool total = ways[i].steps != STK_SAID_COUNT && stk_line_says(line, ways[i].steps);
            *step = (int64_t)line->value[ways[i].step];
            *steps = total ? (int64_t)line->value[ways[i].steps] : -1;
            return *steps < 0 || *step <= *steps;
        }
    }
    return false;
}

/* What the line says of steps; false: it is about another bar than training's. */
static bool hear_step(stk_words *words, const stk_line *line, int before, double at_s) {
    int64_t step;
    int64_t steps;
    if (!find_step(line, &step, &steps)) {
        return true;
    }
    if (is_other_bar(words, line, step, steps)) {
        return false;
    }
    words->in_images = stk_line_says(line, STK_SAID_IMAGE) ||
                       (line->bar && stk_line_says(line, STK_SAID_IMAGE_RATE) &&
                        !stk_line_says(line, STK_SAID_STEP_RATE));
    words->whole = stk_line_says(line, STK_SAID_GLOBAL_STEP) || is_whole(words, line, before, step);
    if (words->whole && words->step <= 0 && words->done > 0 && step >= words->done) {
        words->step = (int64_t)words->done; /* the count went on */
    }
    step_to(words, step, steps, at_s);
    return true;
}

static void hear_speed(stk_words *words, const stk_line *line, double at_s) {
    if (stk_line_says(line, STK_SAID_STEP_RATE)) {
        words->steps_per_second = line->value[STK_SAID_STEP_RATE];
        words->step_rate_s = at_s;
    }
    if (stk_line_says(line, STK_SAID_IMAGE_RATE)) {
        words->images_per_second = line->value[STK_SAID_IMAGE_RATE];
        words->image_rate_s = at_s;
    }
}

/* A number alone is what is used where the line tells of a step, and otherwise what there is. */
static void hear_memory(stk_words *words, const stk_line *line, bool training) {
    bool total = stk_line_says(line, STK_SAID_MEMORY_TOTAL);
    stk_said used = STK_SAID_MEMORY;
    if (!stk_line_says(line, used) && training) {
        used = total ? STK_SAID_MEMORY_TOTAL : STK_SAID_MAYBE_MEMORY;
    }
    if (stk_line_says(line, used)) {
        words->gpu_memory_used = fmax(words->gpu_memory_used, line->value[used]);
    }
    if (total && used != STK_SAID_MEMORY_TOTAL) {
        words->gpu_memory_total = line->value[STK_SAID_MEMORY_TOTAL];
    }
}

static void hear_settings(stk_words *words, const stk_line *line) {
    bool training = stk_line_says(line, STK_SAID_EPOCH) || stk_line_says(line, STK_SAID_LOSS) ||
                    stk_line_says(line, STK_SAID_STEP);
    if (stk_line_says(line, STK_SAID_BATCH)) {
        words->batch = (int64_t)line->value[STK_SAID_BATCH];
    } else if (stk_line_says(line, STK_SAID_MAYBE_BATCH) && !training) {
        words->batch = (int64_t)line->value[STK_SAID_MAYBE_BATCH];
    }
    if (stk_line_says(line, STK_SAID_WORKERS)) {
        words->workers = (int)line->value[STK_SAID_WORKERS];
    }
    hear_memory(words, line, training);
}

static void hear_loss(stk_words *words, const stk_line *line, double at_s) {
    if (!stk_line_says(line, STK_SAID_LOSS)) {
        return;
    }
    double loss = line->value[STK_SAID_LOSS];
    bool same = words->loss == loss || (isnan(words->loss) && isnan(loss));
    words->loss = loss;
    words->progress_s = same ? words->progress_s : at_s;
}

static void hear_trouble(stk_words *words, const stk_line *line, const char *text, size_t length) {
    if (line->out_of_memory || (line->trouble && !words->out_of_memory)) {
        stk_text_plain(text, length, words->trouble, sizeof words->trouble);
    }
    words->out_of_memory = words->out_of_memory || line->out_of_memory;
}

/*
 * A fraction of an epoch tells that the bar, which says nothing of epochs, goes through all of
 * them; and, once a tenth of one is done, how many there are.
 */
static void hear_fraction(stk_words *words, const stk_line *line) {
    double epochs = line->value[STK_SAID_EPOCH];
    if (!stk_line_says(line, STK_SAID_EPOCH) || !line->fraction || words->step < 0) {
        return;
    }
    words->whole = true;
    if (words->epochs < 0 && words->steps > 0 && words->step > 0 && epochs >= 0.1) {
        double wanted = round((double)words->steps * epochs / (double)words->step);
        words->epochs = (int)fmax(1, fmin(wanted, 1e6));
    }
}

/* What a line says of the progress. */
static void hear_progress(stk_words *words, const stk_line *line, double at_s) {
    int before = words->epoch;
    hear_fraction(words, line);
    hear_epoch(words, line, at_s);
    bool ours = !stk_line_says(line, STK_SAID_EPOCHS_DONE) && hear_step(words, line, before, at_s);
    if (ours) {
        hear_speed(words, line, at_s);
        hear_loss(words, line, at_s);
    }
    if (words->epochs > 0 && words->epoch > words->epochs) { /* then more are wanted */
        words->epochs = words->epoch;
    }
}

void stk_words_hear(stk_words *words, const char *text, size_t length, double at_s) {
    stk_line line;
    stk_line_read(&line, words->rule_index, text, length);
    if (line.trouble) {
        hear_trouble(words, &line, text, length);
    }
    if (line.said != 0) {
        hear_settings(words, &line);
        hear_progress(words, &line, at_s);
    }
}

/* Steps per second by the progress alone. */
static double progress_rate(const stk_words *words, double from_s, double to_s) {
    const stk_words_moment *first = NULL;
    const stk_words_moment *last = NULL;
    size_t kept = words->moment_count < STK_WORDS_MOMENTS ? words->moment_count : STK_WORDS_MOMENTS;
    for (size_t i = words->moment_count - kept; i < words->moment_count; i++) {
        const stk_words_moment *moment = &words->moments[i % STK_WORDS_MOMENTS];
        if (moment->at_s >= from_s && moment->at_s <= to_s) {
            first = first == NULL ? moment : first;
            last = moment;
        }
    }
    if (first == NULL || last->at_s - first->at_s < RATE_LEAST_S || last->steps <= first->steps) {
        return NAN;
    }
    return (last->steps - first->steps) / (last->at_s - first->at_s);
}

double stk_words_steps_per_second(const stk_words *words, double from_s, double to_s) {
    double rate = progress_rate(words, from_s, to_s);
    bool said = words->step_rate_s >= from_s && words->step_rate_s <= to_s;
    return isnan(rate) && said ? words->steps_per_second : rate;
}

double stk_words_rate(const stk_words *words, int64_t batch, double from_s, double to_s) {
    if (words->image_rate_s >= from_s && words->image_rate_s <= to_s) {
        return words->images_per_second;
    }
    if (words->in_images) {
        return progress_rate(words, from_s, to_s);
    }
    int64_t images = batch > 0 ? batch : words->batch;
    return images > 0 ? stk_words_steps_per_second(words, from_s, to_s) * (double)images : NAN;
}
