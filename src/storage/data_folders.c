/*
 * data_folders.c - which folders of a location are no data, and one line about them; which names
 * are those of pictures.
 */
#include "storage/data_folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* Names that one line has room for. */
#define NAMES_TOLD 3
#define NAME_BYTES 100 /* of each */
#define NAMES_TEXT (NAMES_TOLD * (NAME_BYTES + 2) + 8)

/* The lock is the first file of a run. */
#define STATE_FOLDER "state"
#define RUN_LOCK STATE_FOLDER "/lock"

/* Files that mark a run, a staged copy, an unfinished staging, and a run that has just begun. */
static const char *const marks[] = {"args.json", "stage.json", STK_STAGING_NAME, RUN_LOCK};

#define MARKS (sizeof marks / sizeof *marks)

const char *stk_picture_extension(const char *name) {
    static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".webp", ".tif",   ".tiff",
                                             ".bmp", ".gif",  ".npy", ".dcm",  ".dicom", ".dic"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        size_t end = strlen(extensions[i]);
        if (length > end && name[length - end - 1] != '/' &&
            strcasecmp(name + length - end, extensions[i]) == 0) {
            return extensions[i];
        }
    }
    return NULL;
}

bool stk_folder_is_junk(const char *name) {
    static const char *const junk[] = {"__MACOSX", "lost+found",   "__pycache__",
                                       "@eaDir",   "$RECYCLE.BIN", "System Volume Information"};
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        if (stk_str_equal(name, junk[i])) {
            return true;
        }
    }
    return false;
}

static char *join(const char *folder, const char *name) {
    return folder[0] != '\0' ? stk_path_join(folder, name) : stk_mem_strdup(name);
}

/* Whether what stands in a folder says that it is a run or a staged copy. */
static stk_status is_by_stoker(stk_store *store, const char *folder, const stk_dir_list *list,
                               bool *by_stoker, stk_error *err) {
    bool state = false;
    *by_stoker = false;
    for (size_t i = 0; i < list->count && !*by_stoker; i++) {
        const stk_dir_entry *entry = &list->entries[i];
        state = state || (entry->is_dir && stk_str_equal(entry->name, STATE_FOLDER));
        for (size_t m = 0; !entry->is_dir && m < MARKS; m++) {
            *by_stoker = *by_stoker || stk_str_equal(entry->name, marks[m]);
        }
    }
    if (*by_stoker || !state) {
        return STK_OK;
    }
    char *lock = join(folder, RUN_LOCK);
    stk_status status =
        lock != NULL ? stk_store_has(store, lock, by_stoker, err) : STK_FAIL_MEMORY(err, folder);
    stk_mem_free(lock);
    return status;
}

stk_status stk_skipped_folders_add(stk_skipped_folders *skipped, const char *path, stk_error *err) {
    size_t index;
    bool added;
    if (stk_map_find(&skipped->seen, path, &index)) {
        return STK_OK;
    }
    stk_texts *paths = &skipped->paths;
    if (!stk_texts_take(paths, stk_mem_strdup(path)) ||
        !stk_map_add(&skipped->seen, paths->items[paths->count - 1], paths->count - 1, &added)) {
        return STK_FAIL_MEMORY(err, path);
    }
    return STK_OK;
}

/* Takes junk and folders called `runs` out of the list. */
static stk_status drop_named(const char *folder, stk_skipped_folders *skipped, stk_dir_list *list,
                             stk_error *err) {
    stk_status status = STK_OK;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        stk_dir_entry entry = list->entries[i];
        bool runs = entry.is_dir && stk_str_equal(entry.name, STK_RUNS_FOLDER);
        if (!runs && !(entry.is_dir && stk_folder_is_junk(entry.name))) {
            list->entries[kept++] = entry;
            continue;
        }
        if (runs && skipped != NULL && status == STK_OK) {
            char *path = join(folder, entry.name);
            status = path != NULL ? stk_skipped_folders_add(skipped, path, err)
                                  : STK_FAIL_MEMORY(err, entry.name);
            stk_mem_free(path);
        }
        stk_mem_free(entry.name);
    }
    list->count = kept;
    return status;
}

stk_status stk_data_list(stk_store *store, const char *folder, stk_skipped_folders *skipped,
                         stk_dir_list *list, bool *by_stoker, stk_error *err) {
    *by_stoker = false;
    stk_status status = stk_store_list(store, folder, list, err);
    if (status != STK_OK) {
        return status;
    }
    if (folder[0] != '\0') {
        status = is_by_stoker(store, folder, list, by_stoker, err);
    }
    if (status != STK_OK || *by_stoker) {
        stk_dir_list_free(list);
        return status == STK_OK && skipped != NULL ? stk_skipped_folders_add(skipped, folder, err)
                                                   : status;
    }
    status = drop_named(folder, skipped, list, err);
    if (status != STK_OK) {
        stk_dir_list_free(list);
    }
    return status;
}

stk_status stk_data_is_by_stoker(stk_store *store, const char *folder, bool *by_stoker,
                                 stk_error *err) {
    stk_status status = STK_OK;
    *by_stoker = false;
    for (size_t m = 0; status == STK_OK && !*by_stoker && m < MARKS; m++) {
        char *path = stk_path_join(folder, marks[m]);
        status = path != NULL ? stk_store_has(store, path, by_stoker, err)
                              : STK_FAIL_MEMORY(err, folder);
        stk_mem_free(path);
    }
    return status;
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The first names, in order. */
static void list_names(const stk_skipped_folders *skipped, char names[NAMES_TEXT]) {
    size_t length = 0;
    qsort(skipped->paths.items, skipped->paths.count, sizeof *skipped->paths.items, compare);
    for (size_t i = 0; i < skipped->paths.count && i < NAMES_TOLD; i++) {
        length += (size_t)snprintf(names + length, NAMES_TEXT - length, "%s%.*s", i > 0 ? ", " : "",
                                   NAME_BYTES, skipped->paths.items[i]);
    }
    snprintf(names + length, NAMES_TEXT - length, "%s",
             skipped->paths.count > NAMES_TOLD ? " ..." : "");
}

void stk_skipped_folders_explain(const stk_skipped_folders *skipped, stk_error *err) {
    char names[NAMES_TEXT];
    if (skipped->paths.count == 0 || err == NULL) {
        return;
    }
    list_names(skipped, names);
    size_t length = strlen(err->message);
    snprintf(err->message + length, sizeof err->message - length,
             " (passed over: %s; what Stoker wrote and folders called %s are no data)", names,
             STK_RUNS_FOLDER);
}

void stk_skipped_folders_report(const stk_skipped_folders *skipped, const char *root,
                                const stk_events *events) {
    char names[NAMES_TEXT];
    if (skipped->paths.count == 0) {
        return;
    }
    list_names(skipped, names);
    stk_events_warning(events,
                       "passed over %zu folder%s of %s: %s; what Stoker wrote (folders called "
                       "%s, and those with args.json, stage.json, %s or " RUN_LOCK
                       " in them) is no data, so rename a class that is called so",
                       skipped->paths.count, skipped->paths.count == 1 ? "" : "s", root, names,
                       STK_RUNS_FOLDER, STK_STAGING_NAME);
}

void stk_skipped_folders_free(stk_skipped_folders *skipped) {
    stk_texts_free(&skipped->paths);
    stk_map_free(&skipped->seen);
    memset(skipped, 0, sizeof *skipped);
}
