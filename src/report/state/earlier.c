/* earlier.c - cutting the files of a run back to where it goes on. */
#include "report/state/earlier.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"
#include "report/text/results_csv.h"

static bool is_after(const stk_resume_point *point, double fold, double epoch) {
    return fold > point->fold || (fold >= point->fold && epoch > point->epoch);
}

stk_status stk_earlier_rows(const char *path, const stk_resume_point *point, stk_event_epoch **rows,
                            size_t *count, stk_error *err) {
    size_t all = 0;
    stk_status status = stk_results_csv_read(path, rows, &all, err);
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        stk_event_epoch row = (*rows)[i];
        if (!is_after(point, row.fold, row.epoch)) {
            row.best = row.fold == point->fold && row.epoch == point->best_epoch;
            (*rows)[(*count)++] = row;
        }
    }
    return status;
}

/* Whether a line stays; its time is looked at. */
static bool line_stays(const char *line, size_t length, const stk_resume_point *point,
                       double *last_t) {
    stk_json *event = NULL;
    if (stk_json_parse(line, length, &event, NULL) != STK_OK) {
        return false; /* half a line, from a disk that was full */
    }
    const char *name = stk_json_string(stk_json_get(event, "event"));
    double t = stk_json_number(stk_json_get(event, "t"), 0);
    bool training = name != NULL && (strcmp(name, "epoch") == 0 || strcmp(name, "step") == 0);
    bool stays = !training || !is_after(point, stk_json_number(stk_json_get(event, "fold"), 0),
                                        stk_json_number(stk_json_get(event, "epoch"), 0));
    *last_t = fmax(*last_t, t);
    stk_json_free(event);
    return stays;
}

/* Replaces a file by its whole lines; with a point, only by lines up to that point. */
static stk_status cut(const char *path, const stk_resume_point *point, double *last_t,
                      stk_error *err) {
    char *text = NULL;
    size_t size = 0;
    stk_str kept = {0};
    if (!stk_path_is_file(path)) {
        return STK_OK;
    }
    stk_status status = stk_file_read(path, 0, &text, &size, err);
    const char *end = status == STK_OK ? text + size : NULL;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) {
            break;
        }
        if (point == NULL || line_stays(line, (size_t)(stop - line), point, last_t)) {
            stk_str_append_bytes(&kept, line, (size_t)(stop - line) + 1);
        }
        line = stop + 1;
    }
    if (status == STK_OK && !stk_str_ok(&kept)) {
        status = STK_FAIL_MEMORY(err, path);
    }
    if (status == STK_OK && kept.length != size) {
        status = stk_file_write(path, stk_str_text(&kept), kept.length, err);
    }
    stk_str_free(&kept);
    stk_mem_free(text);
    return status;
}

stk_status stk_earlier_events(const char *path, const stk_resume_point *point, double *last_t,
                              stk_error *err) {
    *last_t = 0;
    return cut(path, point, last_t, err);
}

stk_status stk_earlier_lines(const char *path, stk_error *err) {
    return cut(path, NULL, NULL, err);
}
