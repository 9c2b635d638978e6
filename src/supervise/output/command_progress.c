/*
 * command_progress.c - follows a training from line to line.
 *
 * line_rules.c finds the figures of each line. This file decides which progress bar is the
 * training's, when an epoch is over and how far the command is. Progress is a number of steps that
 * only grows; where the command restarts its training (a new fold), the number restarts too.
 */
#include "supervise/output/command_progress.h"

#include <math.h>

#include "supervise/output/line_rules.h"
#include "supervise/output/line_text.h"

/* Least time between two points: the ring then covers a minute. */
#define POINT_GAP_S 0.5

/* The shortest time over which a speed is measured. */
#define RATE_LEAST_S 1.0

_Static_assert(sizeof((stk_command_progress *)NULL)->rule_index == STK_RULE_LETTERS + 1,
               "rule_index is the index of line_rules.h");

void stk_progress_begin(stk_command_progress *progress, double at_s) {
    *progress = (stk_command_progress){.began_s = at_s,
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
    stk_line_index(progress->rule_index);
}

/* Restarts the progress: earlier points say nothing about the speed from here on. */
static void restart(stk_command_progress *progress) {
    progress->point_count = 0;
    progress->done = 0;
    progress->step = -1;
    progress->other_steps = -1;
    progress->epochs_s = (stk_typical){0};
    progress->epoch_s = NAN;
}

/* The typical value ignores an epoch that was delayed. */
static void note_epoch_length(stk_command_progress *progress, double seconds) {
    stk_typical_note(&progress->epochs_s, seconds);
    progress->epoch_s = stk_typical_value(&progress->epochs_s);
}

static void add_point(stk_command_progress *progress, double at_s) {
    if (progress->point_count > 0) {
        const stk_progress_point *last =
            &progress->points[(progress->point_count - 1) % STK_PROGRESS_POINTS];
        if (at_s - last->at_s < POINT_GAP_S) {
            return;
        }
    }
    progress->points[progress->point_count % STK_PROGRESS_POINTS] =
        (stk_progress_point){.at_s = at_s, .steps = progress->done};
    progress->point_count++;
}

/* When the next epoch has begun, counts the steps of the last one that were not printed. */
static void finish_pass(stk_command_progress *progress) {
    if (progress->step >= 0 && progress->steps > progress->step) {
        progress->done += (double)(progress->steps - progress->step);
    }
}

/* The epoch that is running according to a line, from 1. */
static int epoch_in_work(stk_command_progress *progress, const stk_line *line) {
    if (stk_line_has(line, STK_FIGURE_EPOCHS_DONE)) {
        return (int)line->value[STK_FIGURE_EPOCHS_DONE] + 1;
    }
    int printed = (int)line->value[STK_FIGURE_EPOCH];
    if (line->fraction) {
        return printed + 1;
    }
    bool step = stk_line_has(line, STK_FIGURE_STEP) || stk_line_has(line, STK_FIGURE_IMAGE) ||
                stk_line_has(line, STK_FIGURE_GLOBAL_STEP) ||
                stk_line_has(line, STK_FIGURE_MAYBE_STEP) ||
                stk_line_has(line, STK_FIGURE_MAYBE_BATCH);
    progress->zero_based = progress->zero_based || printed == 0;
    int epoch = printed + (progress->zero_based ? 1 : 0);
    bool again = epoch + 1 == progress->epoch && stk_line_has(line, STK_FIGURE_LOSS) &&
                 line->value[STK_FIGURE_LOSS] != progress->loss;
    if (!progress->epoch_printed) {
        progress->epoch_printed_at_end = line->any_loss && !step;
    } else if (step || again) { /* so the printed epoch had not ended */
        progress->epoch_printed_at_end = false;
    }
    return epoch + (progress->epoch_printed_at_end ? 1 : 0);
}

static void enter_epoch(stk_command_progress *progress, int epoch, bool sure, double at_s) {
    if (progress->epochs > 0 && epoch > progress->epochs) {
        epoch = progress->epochs; /* the last epoch is over */
    }
    if (epoch == progress->epoch) {
        progress->epoch_began_s = isnan(progress->epoch_began_s) ? at_s : progress->epoch_began_s;
        return;
    }
    if (progress->epoch > 0 && epoch < progress->epoch) {
        if (!sure) {
            return;
        }
        restart(progress);
    } else if (progress->epoch > 0) {
        if (!isnan(progress->epoch_began_s)) {
            note_epoch_length(progress,
                              (at_s - progress->epoch_began_s) / (epoch - progress->epoch));
        }
        if (!progress->steps_span_epochs) {
            finish_pass(progress);
            progress->step = progress->step >= 0 ? 0 : -1;
        }
    }
    progress->epoch = epoch;
    progress->epoch_began_s = at_s;
    progress->progress_s = at_s;
}

static void read_epoch(stk_command_progress *progress, const stk_line *line, double at_s) {
    bool has_epoch =
        stk_line_has(line, STK_FIGURE_EPOCH) || stk_line_has(line, STK_FIGURE_EPOCHS_DONE);
    if (stk_line_has(line, STK_FIGURE_EPOCHS)) {
        progress->epochs = (int)line->value[STK_FIGURE_EPOCHS];
    }
    if (!has_epoch) {
        return;
    }
    if (!progress->epoch_printed &&
        progress->epoch > 0) { /* until now passes were counted as epochs */
        progress->epoch = -1;
    }
    int epoch = epoch_in_work(progress, line);
    bool sure = epoch == 1 || stk_line_has(line, STK_FIGURE_EPOCHS) ||
                stk_line_has(line, STK_FIGURE_STEP) || stk_line_has(line, STK_FIGURE_LOSS);
    int counted = epoch - (progress->epoch_printed_at_end && !line->fraction ? 1 : 0);
    if (progress->epochs > 0 && counted > progress->epochs && !line->fraction) {
        progress->epochs = counted; /* "29/29", counted from 0 */
    }
    progress->epoch_printed = true;
    enter_epoch(progress, epoch, sure, at_s);
}

/*
 * Whether a progress bar is not the training's. Such a bar names no epoch and has fewer steps than
 * the training's: a bar of the validation, or an outer bar that counts epochs. It is the training's
 * after all if it restarts without a training bar in between, or calls itself training and
 * advances.
 */
static bool is_other_bar(stk_command_progress *progress, const stk_line *line, int64_t step,
                         int64_t steps) {
    bool named = !line->bar || stk_line_has(line, STK_FIGURE_EPOCH);
    if (named || progress->steps < 0 || steps < 0 || steps >= progress->steps) {
        progress->other_steps = -1;
        return false;
    }
    bool ours = line->train ? step > progress->other_step : step < progress->other_step;
    if (steps == progress->other_steps && ours) {
        return false;
    }
    progress->other_steps = steps;
    progress->other_step = step;
    return true;
}

static void step_to(stk_command_progress *progress, int64_t step, int64_t steps, double at_s) {
    if (steps > 0 && progress->steps > 0 && steps != progress->steps) {
        restart(progress);
    }
    bool again = progress->step >= 0 && step < progress->step;
    if (again && progress->steps_span_epochs) {
        restart(progress);
    } else if (again) {
        finish_pass(progress);
        if (!progress->epoch_printed) {
            double began_s =
                isnan(progress->epoch_began_s) ? progress->began_s : progress->epoch_began_s;
            if (progress->epoch > 0) {
                note_epoch_length(progress, at_s - began_s);
            }
            progress->epoch = progress->epoch > 0 ? progress->epoch + 1 : 2;
            progress->epoch_began_s = at_s;
        }
        progress->step = 0;
    }
    if (step != progress->step) {
        progress->progress_s = at_s;
    }
    progress->done += (double)(step - (progress->step > 0 ? progress->step : 0));
    progress->step = step;
    progress->steps = steps > 0 ? steps : step <= progress->steps ? progress->steps : -1;
    add_point(progress, at_s);
}

/* Whether steps count through all epochs: the count did not restart when a new epoch began. */
static bool spans_epochs(const stk_command_progress *progress, const stk_line *line, int before,
                         int64_t step) {
    bool next = before > 0 && progress->epoch > before && stk_line_has(line, STK_FIGURE_EPOCH);
    if (!next || progress->steps_span_epochs) {
        return progress->steps_span_epochs && !(next && step < progress->step);
    }
    return progress->steps < 0 && progress->done > 0 && (double)step > progress->done;
}

/* The step in a line, most reliable figure first; false: none. */
static bool find_step(const stk_line *line, int64_t *step, int64_t *steps) {
    bool training = stk_line_has(line, STK_FIGURE_EPOCH) || stk_line_has(line, STK_FIGURE_LOSS);
    static const struct {
        stk_line_figure step, steps;
        bool sure;
    } ways[] = {
        {STK_FIGURE_STEP, STK_FIGURE_STEPS, true},
        {STK_FIGURE_IMAGE, STK_FIGURE_IMAGES, true},
        {STK_FIGURE_MAYBE_STEP, STK_FIGURE_MAYBE_STEPS, false},
        {STK_FIGURE_GLOBAL_STEP, STK_FIGURE_STEPS, true},
        {STK_FIGURE_MAYBE_BATCH, STK_FIGURE_COUNT, false},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (stk_line_has(line, ways[i].step) && (ways[i].sure || training)) {
            bool total = ways[i].steps != STK_FIGURE_COUNT && stk_line_has(line, ways[i].steps);
            *step = (int64_t)line->value[ways[i].step];
            *steps = total ? (int64_t)line->value[ways[i].steps] : -1;
            return *steps < 0 || *step <= *steps;
        }
    }
    return false;
}

/* Reads the step; false: the line is a progress bar that is not the training's. */
static bool read_step(stk_command_progress *progress, const stk_line *line, int before,
                      double at_s) {
    int64_t step;
    int64_t steps;
    if (!find_step(line, &step, &steps)) {
        return true;
    }
    if (is_other_bar(progress, line, step, steps)) {
        return false;
    }
    progress->in_images = stk_line_has(line, STK_FIGURE_IMAGE) ||
                          (line->bar && stk_line_has(line, STK_FIGURE_IMAGE_RATE) &&
                           !stk_line_has(line, STK_FIGURE_STEP_RATE));
    progress->steps_span_epochs =
        stk_line_has(line, STK_FIGURE_GLOBAL_STEP) || spans_epochs(progress, line, before, step);
    if (progress->steps_span_epochs && progress->step <= 0 && progress->done > 0 &&
        step >= progress->done) {
        progress->step = (int64_t)progress->done; /* the count continues */
    }
    step_to(progress, step, steps, at_s);
    return true;
}

static void read_speed(stk_command_progress *progress, const stk_line *line, double at_s) {
    if (stk_line_has(line, STK_FIGURE_STEP_RATE)) {
        progress->steps_per_second = line->value[STK_FIGURE_STEP_RATE];
        progress->step_rate_s = at_s;
    }
    if (stk_line_has(line, STK_FIGURE_IMAGE_RATE)) {
        progress->images_per_second = line->value[STK_FIGURE_IMAGE_RATE];
        progress->image_rate_s = at_s;
    }
}

/* A single number is memory in use in a line of training, and the total elsewhere. */
static void read_memory(stk_command_progress *progress, const stk_line *line, bool training) {
    bool total = stk_line_has(line, STK_FIGURE_MEMORY_TOTAL);
    stk_line_figure used = STK_FIGURE_MEMORY;
    if (!stk_line_has(line, used) && training) {
        used = total ? STK_FIGURE_MEMORY_TOTAL : STK_FIGURE_MAYBE_MEMORY;
    }
    if (stk_line_has(line, used)) {
        progress->gpu_memory_used = fmax(progress->gpu_memory_used, line->value[used]);
    }
    if (total && used != STK_FIGURE_MEMORY_TOTAL) {
        progress->gpu_memory_total = line->value[STK_FIGURE_MEMORY_TOTAL];
    }
}

static void read_settings(stk_command_progress *progress, const stk_line *line) {
    bool training = stk_line_has(line, STK_FIGURE_EPOCH) || stk_line_has(line, STK_FIGURE_LOSS) ||
                    stk_line_has(line, STK_FIGURE_STEP);
    if (stk_line_has(line, STK_FIGURE_BATCH)) {
        progress->batch = (int64_t)line->value[STK_FIGURE_BATCH];
    } else if (stk_line_has(line, STK_FIGURE_MAYBE_BATCH) && !training) {
        progress->batch = (int64_t)line->value[STK_FIGURE_MAYBE_BATCH];
    }
    if (stk_line_has(line, STK_FIGURE_WORKERS)) {
        progress->workers = (int)line->value[STK_FIGURE_WORKERS];
    }
    read_memory(progress, line, training);
}

static void read_loss(stk_command_progress *progress, const stk_line *line, double at_s) {
    if (!stk_line_has(line, STK_FIGURE_LOSS)) {
        return;
    }
    double loss = line->value[STK_FIGURE_LOSS];
    bool same = progress->loss == loss || (isnan(progress->loss) && isnan(loss));
    progress->loss = loss;
    progress->progress_s = same ? progress->progress_s : at_s;
}

static void read_error(stk_command_progress *progress, const stk_line *line, const char *text,
                       size_t length) {
    if (line->out_of_memory || (line->is_error && !progress->out_of_memory)) {
        stk_text_plain(text, length, progress->error_line, sizeof progress->error_line);
    }
    progress->out_of_memory = progress->out_of_memory || line->out_of_memory;
}

/*
 * An epoch with a fraction shows that the bar counts through all epochs. Once a tenth of an epoch
 * is done, it also gives the number of epochs.
 */
static void read_fraction(stk_command_progress *progress, const stk_line *line) {
    double epochs = line->value[STK_FIGURE_EPOCH];
    if (!stk_line_has(line, STK_FIGURE_EPOCH) || !line->fraction || progress->step < 0) {
        return;
    }
    progress->steps_span_epochs = true;
    if (progress->epochs < 0 && progress->steps > 0 && progress->step > 0 && epochs >= 0.1) {
        double wanted = round((double)progress->steps * epochs / (double)progress->step);
        progress->epochs = (int)fmax(1, fmin(wanted, 1e6));
    }
}

/* Reads epoch, step, speed and loss. */
static void read_progress(stk_command_progress *progress, const stk_line *line, double at_s) {
    int before = progress->epoch;
    read_fraction(progress, line);
    read_epoch(progress, line, at_s);
    bool ours =
        !stk_line_has(line, STK_FIGURE_EPOCHS_DONE) && read_step(progress, line, before, at_s);
    if (ours) {
        read_speed(progress, line, at_s);
        read_loss(progress, line, at_s);
    }
    if (progress->epochs > 0 && progress->epoch > progress->epochs) { /* more epochs than planned */
        progress->epochs = progress->epoch;
    }
}

void stk_progress_read_line(stk_command_progress *progress, const char *text, size_t length,
                            double at_s) {
    stk_line line;
    stk_line_read(&line, progress->rule_index, text, length);
    if (line.is_error) {
        read_error(progress, &line, text, length);
    }
    if (line.found != 0) {
        read_settings(progress, &line);
        read_progress(progress, &line, at_s);
    }
}

/* Steps per second, measured by the points of the ring. */
static double progress_rate(const stk_command_progress *progress, double from_s, double to_s) {
    const stk_progress_point *first = NULL;
    const stk_progress_point *last = NULL;
    size_t kept =
        progress->point_count < STK_PROGRESS_POINTS ? progress->point_count : STK_PROGRESS_POINTS;
    for (size_t i = progress->point_count - kept; i < progress->point_count; i++) {
        const stk_progress_point *point = &progress->points[i % STK_PROGRESS_POINTS];
        if (point->at_s >= from_s && point->at_s <= to_s) {
            first = first == NULL ? point : first;
            last = point;
        }
    }
    if (first == NULL || last->at_s - first->at_s < RATE_LEAST_S || last->steps <= first->steps) {
        return NAN;
    }
    return (last->steps - first->steps) / (last->at_s - first->at_s);
}

double stk_progress_step_rate(const stk_command_progress *progress, double from_s, double to_s) {
    double rate = progress_rate(progress, from_s, to_s);
    bool is_printed = progress->step_rate_s >= from_s && progress->step_rate_s <= to_s;
    return isnan(rate) && is_printed ? progress->steps_per_second : rate;
}

double stk_progress_image_rate(const stk_command_progress *progress, int64_t batch, double from_s,
                               double to_s) {
    if (progress->image_rate_s >= from_s && progress->image_rate_s <= to_s) {
        return progress->images_per_second;
    }
    if (progress->in_images) {
        return progress_rate(progress, from_s, to_s);
    }
    int64_t images = batch > 0 ? batch : progress->batch;
    return images > 0 ? stk_progress_step_rate(progress, from_s, to_s) * (double)images : NAN;
}
