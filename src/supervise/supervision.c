/* supervision.c - questions about the state of a supervised run. */
#include "supervise/supervision.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

/* Largest share of the time left for a wait that may be in vain. */
#define SPARE_SHARE 0.2

/* Waiting for killed processes: seconds, the largest share of the time left, and the least. */
#define KILL_S 5.0
#define KILL_SHARE 0.5
#define KILL_LEAST_S 0.2

#define COMMAND_MOST 2000 /* bytes of a command line that are shown */

int stk_int_or_none(int64_t number) {
    return number >= 0 && number <= INT_MAX ? (int)number : -1;
}

double stk_supervision_now(const stk_supervision *s) {
    return stk_run_clock_elapsed(&s->clock);
}

double stk_supervision_spare(const stk_supervision *s, double wanted_s) {
    return fmax(fmin(wanted_s, SPARE_SHARE * stk_run_clock_left(&s->clock)), 0);
}

double stk_supervision_kill_s(const stk_supervision *s) {
    return fmax(fmin(KILL_S, KILL_SHARE * stk_run_clock_left(&s->clock)), KILL_LEAST_S);
}

int64_t stk_supervision_batch(const stk_supervision *s) {
    return s->batch_given > 0 ? s->batch_given : s->progress.batch;
}

int stk_supervision_workers(const stk_supervision *s) {
    return s->workers_given >= 0 ? s->workers_given : s->progress.workers;
}

void stk_supervision_shorten(stk_str *command) {
    static const char more[] = " ...";
    if (command->length > COMMAND_MOST + sizeof more) {
        memcpy(command->text + COMMAND_MOST, more, sizeof more);
        command->length = COMMAND_MOST + sizeof more - 1;
    }
}

stk_status stk_supervision_set_environment(const stk_supervision *s, stk_command *command,
                                           stk_error *err) {
    char number[32];
    const char *dir = stk_folder_writer_full_path(s->folder);
    stk_status status = stk_command_set_env(command, "PYTHONUNBUFFERED", "1", true, err);
    STK_THEN(status, stk_command_set_env(command, "PYTHONFAULTHANDLER", "1", true, err));
    STK_THEN(status, stk_command_set_env(command, "STOKER_RUN_DIR", dir, false, err));
    if (status == STK_OK && !isinf(s->timetable.stop_s)) {
        double start_s = (double)stk_clock_wall_ns() * 1e-9 - stk_supervision_now(s);
        snprintf(number, sizeof number, "%.0f", start_s + s->timetable.stop_s);
        status = stk_command_set_env(command, "STOKER_STOP_AT", number, false, err);
    }
    return status;
}
