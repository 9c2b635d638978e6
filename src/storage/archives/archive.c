/* archive.c - what every kind of archive shares: when reading must end, and freeing. */
#include "storage/archives/archive.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "storage/reading/store_state.h"

stk_status stk_archive_check_end(const stk_store *store, const stk_archive *archive,
                                 stk_error *err) {
    const stk_storage_options *options = &store->options;
    const char *what = archive->kind == STK_ARCHIVE_BSON ? "read" : "unpacked";
    if (stk_stop_asked(options->stop) != STK_STOP_NONE) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while %s/%s was %s", store->base,
                        archive->name, what);
    }
    if (options->deadline_ns > 0 && stk_clock_ns() > options->deadline_ns) {
        return STK_FAIL(err, STK_ERR_STORAGE, "the time budget ended while %s/%s was %s",
                        store->base, archive->name, what);
    }
    return STK_OK;
}

void stk_archive_free(stk_archive *archive) {
    stk_shard_index_free(&archive->found);
    stk_mem_free(archive->name);
    stk_mem_free(archive->stem);
    archive->name = archive->stem = NULL;
}
