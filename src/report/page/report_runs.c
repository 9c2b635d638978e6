/* report_runs.c - `stoker report`: from run folders to a page. */
#include "report/page/report_runs.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "report/page/write.h"

#define MOST_VALIDATION_BYTES ((size_t)1 << 30)
#define MOST_PICTURES_S 10.0

/* Makes thumbnails of the worst pictures, read from the data set of the run. */
static void find_pictures(const stk_run_read *run, stk_page_pictures *pictures) {
    const char *data = stk_json_string(stk_json_get(run->args, "data"));
    const stk_storage_options storage = {
        .anonymous = stk_json_bool(stk_json_get(run->args, "anonymous"), false),
        .cache_size = STK_AUTO_BYTES,
        .read_timeout_s = MOST_PICTURES_S};
    if (pictures->known && data != NULL) {
        stk_thumbs_make_from(&pictures->thumbs, &pictures->confusion, data, &storage,
                             stk_clock_in(MOST_PICTURES_S));
    }
}

static stk_status write_one(const stk_report_runs *report, const stk_file_how *given,
                            bool with_pictures, bool inside, stk_error *err) {
    stk_run_read *run = &report->runs[0];
    stk_page_pictures pictures = {0};
    stk_error why = {0};
    stk_page_pictures_read(&pictures, run->dir, &run->history, MOST_VALIDATION_BYTES, &why);
    if (why.status != STK_OK) {
        stk_str_appendf(&run->damage, "the confusion matrix was left out: %s\n", why.message);
    }
    if (with_pictures) {
        find_pictures(run, &pictures);
    }
    /* A page in the run folder of a command has command lines, so only the owner may read it. */
    stk_file_how how = *given;
    how.owner_only = inside && stk_run_view_command(&run->history.view) != NULL;
    stk_status status = stk_page_write(run->dir, report->page, &how, &run->history, &pictures, err);
    stk_page_pictures_free(&pictures);
    return status;
}

static stk_status write_several(const stk_report_runs *report, const stk_file_how *how,
                                stk_error *err) {
    stk_str html = {0};
    stk_status status = stk_compare_page(report->runs, report->count, &html, err);
    STK_THEN(status, stk_file_write_how(report->page, html.text, html.length, how, err));
    stk_str_free(&html);
    return status;
}

static stk_status name_by_path(stk_run_read *run, stk_error *err) {
    char *path = stk_mem_strdup(run->dir);
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_mem_free(run->name);
    run->name = path;
    return STK_OK;
}

/* Runs whose folders have the same name, as a/run and b/run, are told apart by their paths. */
static stk_status tell_apart(stk_run_read *runs, size_t count, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        bool alone = true;
        for (size_t k = i + 1; k < count && status == STK_OK; k++) {
            if (strcmp(runs[k].name, runs[i].name) == 0) {
                alone = false;
                status = name_by_path(&runs[k], err);
            }
        }
        if (!alone && status == STK_OK) {
            status = name_by_path(&runs[i], err);
        }
    }
    return status;
}

stk_status stk_report_runs_make(stk_report_runs *report, const char *const *dirs, size_t count,
                                const char *out, bool pictures, const stk_stop *stop,
                                stk_error *err) {
    /* A file in a run folder is Stoker's own. --out and the current folder are the user's. */
    const stk_file_how how = {.chosen = out != NULL || count > 1, .stop = stop};
    *report = (stk_report_runs){.runs = stk_mem_new(count, sizeof *report->runs)};
    stk_status status = report->runs != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the runs");
    STK_THEN(status, out == NULL ? STK_OK : stk_write_target_check("--out", out, err));
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        status = stk_run_read_open(&report->runs[i], dirs[i], err);
        report->count += status == STK_OK;
    }
    STK_THEN(status, tell_apart(report->runs, count, err));
    if (status == STK_OK) {
        report->page = out != NULL  ? stk_mem_strdup(out)
                       : count == 1 ? stk_path_join(dirs[0], "report.html")
                                    : stk_mem_strdup("compare.html");
        status = report->page != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
    }
    STK_THEN(status, count == 1 ? write_one(report, &how, pictures, out == NULL, err)
                                : write_several(report, &how, err));
    if (status != STK_OK) {
        stk_report_runs_free(report);
    }
    return status;
}

void stk_report_runs_free(stk_report_runs *report) {
    for (size_t i = 0; i < report->count; i++) {
        stk_run_read_close(&report->runs[i]);
    }
    stk_mem_free(report->runs);
    stk_mem_free(report->page);
    *report = (stk_report_runs){0};
}
