/*
 * stage_dest.c - claims and cleans the folder.
 *
 * Nothing is removed until the folder is known to be a staging's, and then only files that a
 * staging makes: a folder that was named by mistake stays as it is.
 */
#include "stage/stage_dest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"
#include "stage/shard_record.h"

#define LOCK_NAME ".lock"
#define MOST_JSON_BYTES ((size_t)1 << 20)

/* All other files that a staging writes. The index comes first: without it the folder counts as
 * incomplete. */
static const char *const tables[] = {STK_SHARD_INDEX_NAME,
                                     STK_STAGED_ABOUT,
                                     STK_STAGED_SAMPLES,
                                     "classes.txt",
                                     "bad_images.csv",
                                     "sample_submission.csv",
                                     NULL};

/* Kinds of names in the folder. */
typedef enum entry_kind {
    FOREIGN,     /* not of a staging */
    UNIMPORTANT, /* the lock and staging.json */
    TABLE,
    SHARD,
    RECORD,
    CUT_OFF /* a file whose writing was interrupted */
} entry_kind;

char *stk_stage_dest_file(const stk_stage_dest *dest, const char *name) {
    return stk_path_join(dest->path, name);
}

/* ---- names ---- */

/* Reads "train-000000" at the start of a name; returns the rest of the name, or NULL. */
static const char *parse_name(const char *name, stk_stage_shard *shard) {
    for (int s = 0; s < STK_STAGE_SPLITS; s++) {
        size_t length = strlen(stk_stage_split_names[s]);
        if (strncmp(name, stk_stage_split_names[s], length) == 0 && name[length] == '-') {
            const char *number = name + length + 1;
            size_t digits = strspn(number, "0123456789");
            *shard = (stk_stage_shard){.split = (stk_stage_split)s,
                                       .number = (size_t)strtoull(number, NULL, 10)};
            return digits >= STK_STAGE_SHARD_DIGITS ? number + digits : NULL;
        }
    }
    return NULL;
}

static const char *behind_shard_name(const char *name) {
    stk_stage_shard unused;
    return parse_name(name, &unused);
}

static bool is_table(const char *name, size_t length) {
    for (const char *const *table = tables; *table != NULL; table++) {
        if (strlen(*table) == length && strncmp(name, *table, length) == 0) {
            return true;
        }
    }
    return false;
}

static entry_kind kind_of(const char *name) {
    if (stk_str_equal(name, LOCK_NAME) || stk_str_equal(name, STK_STAGING_NAME)) {
        return UNIMPORTANT;
    }
    if (name[0] != '.') {
        const char *rest = behind_shard_name(name);
        return rest != NULL && stk_str_equal(rest, ".tar") ? SHARD
               : is_table(name, strlen(name))              ? TABLE
                                                           : FOREIGN;
    }
    const char *rest = behind_shard_name(name + 1);
    if (rest != NULL && stk_str_equal(rest, ".record")) {
        return RECORD;
    }
    /* The hidden name of an unfinished file has the final name between two dots. */
    if (!stk_str_ends_with_nocase(name, ".tmp")) {
        return FOREIGN;
    }
    bool ours = rest != NULL || behind_shard_name(name + 2) != NULL ||
                strncmp(name + 1, STK_STAGING_NAME ".", sizeof STK_STAGING_NAME) == 0;
    for (const char *const *table = tables; !ours && *table != NULL; table++) {
        size_t length = strlen(*table);
        ours = strncmp(name + 1, *table, length) == 0 && name[length + 1] == '.';
    }
    return ours ? CUT_OFF : FOREIGN;
}

/* Calls `visit` for every entry until one call fails. */
static stk_status walk(const stk_stage_dest *dest,
                       stk_status (*visit)(void *user, const char *name, stk_error *err),
                       void *user, stk_error *err) {
    DIR *folder = opendir(dest->path);
    if (folder == NULL) {
        return STK_FAIL(err, stk_disk_status(errno), "cannot list the folder %s: %s", dest->path,
                        strerror(errno));
    }
    stk_status status = STK_OK;
    for (const struct dirent *entry = readdir(folder); entry != NULL && status == STK_OK;
         entry = readdir(folder)) {
        if (!stk_str_equal(entry->d_name, ".") && !stk_str_equal(entry->d_name, "..")) {
            status = visit(user, entry->d_name, err);
        }
    }
    closedir(folder);
    return status;
}

static stk_status remove_file(const stk_stage_dest *dest, const char *name, stk_error *err) {
    char *path = stk_stage_dest_file(dest, name);
    stk_status status = path != NULL ? STK_OK : STK_FAIL_MEMORY(err, dest->path);
    if (status == STK_OK && unlink(path) != 0 && errno != ENOENT) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot remove %s: %s", path, strerror(errno));
    }
    stk_mem_free(path);
    return status;
}

/* ---- whose folder it is ---- */

static stk_status find_contents(void *user, const char *name, stk_error *err) {
    (void)err;
    bool *found = user;
    entry_kind kind = kind_of(name);
    *found = *found || (kind != UNIMPORTANT && kind != CUT_OFF);
    return STK_OK;
}

static stk_status has_file(const stk_stage_dest *dest, const char *name, bool *there,
                           stk_error *err) {
    char *path = stk_stage_dest_file(dest, name);
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, dest->path);
    }
    *there = stk_path_is_file(path);
    stk_mem_free(path);
    return STK_OK;
}

/* Fails if the folder was never a staging's and is not empty. Changes nothing, not even the lock.
 */
static stk_status check_folder(const stk_stage_dest *dest, stk_error *err) {
    bool filled = false;
    bool begun = false;
    bool done = false;
    if (stk_path_is_file(dest->path)) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot stage to %s: it is a file; name a folder",
                        dest->path);
    }
    if (!stk_path_is_dir(dest->path)) {
        return STK_OK;
    }
    stk_status status = has_file(dest, STK_STAGING_NAME, &begun, err);
    STK_THEN(status, has_file(dest, STK_STAGED_ABOUT, &done, err));
    if (status != STK_OK || begun || done) {
        return status;
    }
    status = walk(dest, find_contents, &filled, err);
    if (status == STK_OK && filled) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "%s is not empty and holds no staging; name an empty or a new folder",
                          dest->path);
    }
    return status;
}

stk_status stk_stage_dest_open(stk_stage_dest *dest, const char *path, stk_error *err) {
    bool taken = false;
    *dest = (stk_stage_dest){.path = stk_path_trim(path), .lock_fd = -1};
    char *lock = dest->path != NULL ? stk_stage_dest_file(dest, LOCK_NAME) : NULL;
    stk_status status = lock != NULL ? check_folder(dest, err) : STK_FAIL_MEMORY(err, path);
    STK_THEN(status, stk_dir_make(dest->path, err));
    STK_THEN(status, stk_file_lock(lock, &dest->lock_fd, &taken, err));
    if (status == STK_OK && !taken) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "another staging is writing to %s right now; wait for it or name another "
                          "folder",
                          dest->path);
    }
    stk_mem_free(lock);
    return status;
}

void stk_stage_dest_close(stk_stage_dest *dest) {
    if (dest->lock_fd >= 0) {
        stk_file_unlock(dest->lock_fd, dest->path);
    }
    stk_mem_free(dest->path);
    *dest = (stk_stage_dest){.lock_fd = -1};
}

/* Reads the description of a staging; *about is NULL if there is none or it is not valid. */
static stk_status read_about(const stk_stage_dest *dest, const char *name, bool *there,
                             stk_json **about, stk_error *err) {
    char *path = stk_stage_dest_file(dest, name);
    char *text = NULL;
    size_t size = 0;
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, dest->path);
    }
    *about = NULL;
    *there = stk_path_is_file(path);
    stk_status status = *there ? stk_file_read(path, MOST_JSON_BYTES, &text, &size, err) : STK_OK;
    if (status == STK_OK && *there) {
        stk_error why = {0};
        status = stk_json_parse(text, size, about, &why);
        status = status == STK_ERR_MEMORY ? STK_FAIL(err, status, "%s", why.message) : STK_OK;
    }
    stk_mem_free(text);
    stk_mem_free(path);
    return status;
}

static bool is_same_list(const stk_json *about, const stk_staging_list *list) {
    const char *checksum = stk_json_string(stk_json_get(about, "plan"));
    return checksum != NULL && stk_str_equal(checksum, list->checksum);
}

/* Writes the first difference, as " (with --max-side 300)", into buf; "" if none is recorded. */
static const char *find_difference(const stk_json *old, const stk_json *now, char *buf,
                                   size_t size) {
    const char *old_source = stk_json_string(stk_json_get(old, "source"));
    const char *source = stk_json_string(stk_json_get(now, "source"));
    const stk_json *old_flags = stk_json_get(old, "flags");
    const stk_json *flags = stk_json_get(now, "flags");
    buf[0] = '\0';
    if (old_source != NULL && source != NULL && !stk_str_equal(old_source, source)) {
        snprintf(buf, size, " (from %.300s)", old_source);
        return buf;
    }
    for (size_t i = 0; i < stk_json_count(flags); i++) {
        const char *key = stk_json_key_at(flags, i);
        uint64_t value = 0;
        uint64_t old_value = 0;
        if (stk_json_u64(stk_json_at(flags, i), &value) &&
            stk_json_u64(stk_json_get(old_flags, key), &old_value) && value != old_value) {
            snprintf(buf, size, " (with --%s %llu)", key, (unsigned long long)old_value);
            return buf;
        }
    }
    return buf;
}

static stk_status refuse_other(const stk_stage_dest *dest, const stk_json *old, const char *text,
                               bool finished, stk_error *err) {
    stk_json *now = NULL;
    char what[400];
    stk_status status = stk_json_parse(text, strlen(text), &now, err);
    if (status != STK_OK) {
        return status;
    }
    find_difference(old, now, what, sizeof what);
    stk_json_free(now);
    if (what[0] == '\0') {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s holds %s staging of this data set as it was then, and other samples "
                        "would be chosen now; name another folder, or pass --overwrite to replace "
                        "it",
                        dest->path, finished ? "a" : "an unfinished");
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "%s holds another %sstaging%s; name another folder, or pass --overwrite to "
                    "replace it",
                    dest->path, finished ? "" : "unfinished ", what);
}

/* ---- cleaning ---- */

typedef struct cleaning {
    const stk_stage_dest *dest;
    entry_kind kind;
} cleaning;

static stk_status remove_kind(void *user, const char *name, stk_error *err) {
    const cleaning *c = user;
    return kind_of(name) == c->kind ? remove_file(c->dest, name, err) : STK_OK;
}

static stk_status remove_all(const stk_stage_dest *dest, entry_kind kind, stk_error *err) {
    cleaning c = {.dest = dest, .kind = kind};
    return walk(dest, remove_kind, &c, err);
}

/* Removes the index first, so that nobody takes the rest for a complete staging. */
static stk_status remove_tables(const stk_stage_dest *dest, stk_error *err) {
    stk_status status = STK_OK;
    for (const char *const *table = tables; *table != NULL && status == STK_OK; table++) {
        status = remove_file(dest, *table, err);
    }
    return status;
}

/* Context of remove_unfinished(). */
typedef struct shard_check {
    const stk_stage_dest *dest;
    const stk_staging_list *list;
} shard_check;

static const stk_stage_shard *find_shard(const stk_staging_list *list, const char *name) {
    stk_stage_shard wanted;
    bool is_shard = parse_name(name, &wanted) != NULL;
    for (size_t i = 0; is_shard && i < list->shard_count; i++) {
        if (list->shards[i].split == wanted.split && list->shards[i].number == wanted.number) {
            return &list->shards[i];
        }
    }
    return NULL;
}

static stk_status remove_unfinished(void *user, const char *name, stk_error *err) {
    const shard_check *check = user;
    stk_shard_index index = {0};
    stk_stage_bad_list bad = {0};
    bool finished = false;
    if (kind_of(name) != SHARD) {
        return STK_OK;
    }
    const stk_stage_shard *shard = find_shard(check->list, name);
    stk_status status = STK_OK;
    if (shard != NULL) {
        status = stk_stage_record_load(check->dest->path, check->list, shard, &index, &bad,
                                       &finished, err);
    }
    stk_shard_index_free(&index);
    stk_stage_bad_free(&bad);
    return status == STK_OK && !finished ? remove_file(check->dest, name, err) : status;
}

static stk_status clean(const stk_stage_dest *dest, const stk_staging_list *list, bool other,
                        stk_error *err) {
    shard_check check = {.dest = dest, .list = list};
    stk_status status = remove_tables(dest, err);
    STK_THEN(status, remove_all(dest, CUT_OFF, err));
    if (status == STK_OK && other) {
        status = remove_all(dest, RECORD, err);
    }
    return status == STK_OK ? walk(dest, remove_unfinished, &check, err) : status;
}

static stk_status write_staging(const stk_stage_dest *dest, const char *text, stk_error *err) {
    char *path = stk_stage_dest_file(dest, STK_STAGING_NAME);
    stk_status status = path != NULL ? stk_file_write(path, text, strlen(text), err)
                                     : STK_FAIL_MEMORY(err, dest->path);
    stk_mem_free(path);
    return status;
}

stk_status stk_stage_dest_begin(stk_stage_dest *dest, const stk_staging_list *list,
                                const char *staging_json, bool overwrite, stk_dest_state *state,
                                stk_error *err) {
    stk_json *begun = NULL;
    stk_json *done = NULL;
    bool is_begun = false;
    bool is_done = false;
    bool has_index = false;
    *state = STK_DEST_OPEN;
    stk_status status = read_about(dest, STK_STAGING_NAME, &is_begun, &begun, err);
    STK_THEN(status, read_about(dest, STK_STAGED_ABOUT, &is_done, &done, err));
    STK_THEN(status, has_file(dest, STK_SHARD_INDEX_NAME, &has_index, err));
    bool same = is_same_list(is_begun ? begun : done, list);
    if (status == STK_OK && same && is_same_list(done, list) && has_index) {
        *state = STK_DEST_FINISHED;
    } else if (status == STK_OK && (is_begun || is_done) && !same && !overwrite) {
        status = refuse_other(dest, is_begun ? begun : done, staging_json, !is_begun, err);
    } else if (status == STK_OK) {
        status = is_begun && same ? STK_OK : write_staging(dest, staging_json, err);
        STK_THEN(status, clean(dest, list, !same, err));
    }
    stk_json_free(begun);
    stk_json_free(done);
    return status;
}

stk_status stk_stage_dest_end(stk_stage_dest *dest, stk_error *err) {
    stk_status status = remove_all(dest, CUT_OFF, err);
    STK_THEN(status, remove_all(dest, RECORD, err));
    return status == STK_OK ? remove_file(dest, STK_STAGING_NAME, err) : status;
}
