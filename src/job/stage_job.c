/* stage_job.c - `stoker stage`: a data set copied near. */
#include <stoker/job.h>

#include "base/error.h"
#include "base/public_struct.h"
#include "stage/stage.h"

stk_status stk_stage(const char *dir, stk_options *options, const stk_run *run, stk_staged *staged,
                     stk_error *err) {
    stk_events events = {0};
    stk_staged unused = {.size = sizeof unused};
    staged = staged != NULL ? staged : &unused;
    stk_status status = STK_PUBLIC_BEGIN(stk_staged, staged, run, err);
    if (status != STK_OK) {
        return status;
    }
    stk_storage_options storage =
        *(const stk_storage_options *)stk_options_values(options, &stk_storage_option_table);
    /* Everything is read once, so a cache would only take room from the copy. */
    if (stk_options_source(options, "cache") == STK_FROM_DEFAULT) {
        storage.cache = "off";
    }
    storage.events = &events;
    storage.stop = run != NULL ? run->stop : NULL;
    if (run != NULL) {
        stk_events_add(&events, run->observer);
    }
    stk_stage_request request = {.dir = dir,
                                 .options = stk_options_values(options, &stk_stage_option_table),
                                 .data = stk_options_values(options, &stk_dataset_option_table),
                                 .storage = &storage,
                                 .events = &events,
                                 .stop = storage.stop};
    if (dir == NULL || dir[0] == '\0' || request.data->data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "stage needs a data set and a folder to fill, as in: stoker stage "
                        "s3://bucket/pictures near");
    }
    status = stk_stage_run(&request, staged, err);
    staged->size = sizeof *staged;
    return status;
}
