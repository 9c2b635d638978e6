/* supervise_options.h - the values of the options of `stoker run`. Texts are owned by the options.
 */
#ifndef STK_SUPERVISE_SUPERVISE_OPTIONS_H
#define STK_SUPERVISE_SUPERVISE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "options/options.h"

/* What to do about a hang; in the order of the option's choices. */
typedef enum stk_on_hang { STK_HANG_RESTART, STK_HANG_STOP, STK_HANG_REPORT } stk_on_hang;

typedef struct stk_supervise_options {
    const char *predict;     /* shell line; NULL: none */
    const char *expect;      /* file; NULL: none */
    const char *reserve;     /* "15%" of the budget, or a time; NULL: 15 % */
    const char *stop_at;     /* "70%" or a time: when training is stopped; NULL: by the reserve */
    const char *stop_signal; /* "TERM", "INT", "15" ... */
    double stop_grace_s;     /* STK_AUTO_DOUBLE: 10 s, at most a tenth of the budget */
    double check_after_s;    /* from the first GPU work to the check */
    double grace_s;          /* until GPU work must begin */
    const char *batch_env;   /* batch_env to config_file: see command_setting.h; NULL: not given */
    const char *batch_arg;
    const char *batch_key;
    const char *workers_env;
    const char *workers_arg;
    const char *workers_key;
    const char *config_file;
    const char *fill; /* "70%"; NULL: not given */
    bool dry_run;
    double hang_s;   /* silence that may be a hang; 0: never */
    int on_hang;     /* stk_on_hang */
    int64_t retries; /* restarts after hangs */
    int64_t json_fd; /* STK_AUTO_INT: none */
    const char *out;
    const char *name;
} stk_supervise_options;

extern const stk_option_table stk_supervise_option_table;

#endif
