/* sample_job.c - `stoker sample`: a data set of drawn pictures to try things on. */
#include <stoker/job.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/public_struct.h"
#include "stage/sample.h"

stk_status stk_make_sample(const char *dir, stk_options *options, const stk_run *run,
                           stk_error *err) {
    const stk_sample_options *given = stk_options_values(options, &stk_sample_option_table);
    stk_sample_options sample = *given;
    stk_events events = {0};
    stk_status status = stk_public_check_run(run, err);
    if (status != STK_OK) {
        return status;
    }
    sample.dir = dir;
    if (dir == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "sample needs the name of a folder to make, as in: stoker sample pictures");
    }
    if (run != NULL) {
        stk_events_add(&events, run->observer);
    }
    return stk_sample_make(&sample, &events, run != NULL ? run->stop : NULL, stk_machine_cores(),
                           err);
}
