/* write.c - the page and what lies beside it. */
#include "report/page/write.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "metrics/task.h"
#include "report/page/page.h"
#include "report/state/run_read.h"

#define MOST_ARGS_BYTES ((size_t)1 << 20)

/* Labels and numbers are not taken for each other, as classes are. */
static bool has_classes(const stk_run_history *history) {
    const stk_event_start *start = history->view.start;
    return stk_task_has_classes(stk_task_named(start != NULL ? start->task : NULL));
}

void stk_page_pictures_read(stk_page_pictures *pictures, const char *run_dir,
                            const stk_run_history *history, size_t most_bytes, stk_error *why) {
    char *path = stk_path_join(run_dir, "validation.csv");
    char *text = NULL;
    size_t size = 0;
    stk_csv table;
    stk_page_pictures_free(pictures);
    pictures->known = has_classes(history) && path != NULL && stk_path_is_file(path) &&
                      stk_file_read(path, most_bytes, &text, &size, why) == STK_OK &&
                      stk_csv_parse(path, text, size, &table, why) == STK_OK &&
                      stk_confusion_make(&pictures->confusion, &table, path, why) == STK_OK;
    stk_mem_free(text);
    stk_mem_free(path);
}

void stk_page_pictures_free(stk_page_pictures *pictures) {
    stk_confusion_free(&pictures->confusion);
    stk_thumbs_free(&pictures->thumbs);
    pictures->known = false;
}

stk_status stk_page_write(const char *run_dir, const char *file, const stk_file_how *how,
                          const stk_run_history *history, const stk_page_pictures *pictures,
                          stk_error *err) {
    size_t size = 0;
    stk_str html = {0};
    stk_json *args = NULL;
    char *yaml = NULL;
    char *path = file != NULL ? stk_mem_strdup(file) : stk_path_join(run_dir, "report.html");
    char *name = stk_run_name(run_dir);
    char *yaml_path = stk_path_join(run_dir, "args.yaml");
    char *submission = stk_path_join(run_dir, "submission.csv");
    bool named = path != NULL && yaml_path != NULL && submission != NULL;
    if (named && stk_json_read_in(run_dir, "args.json", &args, NULL) != STK_OK) {
        args = NULL; /* the page does without args.json and args.yaml */
    }
    if (named && stk_file_read(yaml_path, MOST_ARGS_BYTES, &yaml, &size, NULL) != STK_OK) {
        yaml = NULL;
    }
    stk_page page = {.name = name,
                     .history = history,
                     .args = args,
                     .args_yaml = yaml,
                     .has_submission = named && stk_path_is_file(submission),
                     .confusion = pictures->known ? &pictures->confusion : NULL,
                     .thumbs = &pictures->thumbs};
    stk_status status = named ? stk_page_put(&page, &html, err) : STK_FAIL_MEMORY(err, "a path");
    STK_THEN(status, stk_file_write_how(path, html.text, html.length, how, err));
    stk_json_free(args);
    stk_mem_free(submission);
    stk_mem_free(yaml_path);
    stk_mem_free(yaml);
    stk_mem_free(name);
    stk_mem_free(path);
    stk_str_free(&html);
    return status;
}
