/* write_target.c - following links by hand: the system's own walk does not say where it would end.
 */
#include "base/files/write_target.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"

#define MOST_LINKS 40 /* as many as the system follows */

#define FAIL_WRITING(err, path) \
    STK_FAIL((err), stk_disk_status(errno), "cannot write %s: %s", (path), stk_disk_reason(errno))

static const char *kind_name(mode_t mode) {
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISBLK(mode)  ? "a block device"
                            : "a device";
}

stk_status stk_write_target_refuse(const char *path, mode_t mode, stk_error *err) {
    if (S_ISLNK(mode)) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "cannot write %s: it is a link, and Stoker follows no links to its own "
                        "files; remove the link",
                        path);
    }
    return STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: it is %s, not a file; %s", path,
                    kind_name(mode), S_ISDIR(mode) ? "name a file in it" : "remove it");
}

/* "" for a name without a folder, otherwise with its slash. */
static char *folder_of(const char *path) {
    return stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
}

/* What the link `path` says, below the link's own folder unless it is absolute. */
static stk_status follow(char **path, stk_error *err) {
    char text[PATH_MAX];
    ssize_t length = readlink(*path, text, sizeof text - 1);
    if (length < 0) {
        return FAIL_WRITING(err, *path);
    }
    text[length] = '\0';
    char *folder = folder_of(*path);
    char *next = folder != NULL ? stk_path_join(folder, text) : NULL;
    stk_mem_free(folder);
    if (next == NULL) {
        return STK_FAIL_MEMORY(err, *path);
    }
    stk_mem_free(*path);
    *path = next;
    return STK_OK;
}

/* Whether two paths of folders lead to the same one. */
static bool is_same_folder(const char *a, const char *b) {
    char *real_a = realpath(a, NULL);
    char *real_b = realpath(b, NULL);
    bool same = real_a != NULL && real_b != NULL && strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

/*
 * Links in /proc are none that could be followed by their text: they stand for what a process has
 * open. Those of this process give its descriptor.
 */
static bool is_open_file(const char *path, int *descriptor) {
    struct statfs system;
    int64_t number = -1;
    char *folder = folder_of(path);
    bool in_proc =
        folder != NULL && statfs(folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
    if (in_proc &&
        (is_same_folder(folder, "/proc/self/fd") ||
         is_same_folder(folder, "/proc/thread-self/fd")) &&
        stk_parse_int(stk_path_base(path), &number) && number >= 0 && number <= INT_MAX) {
        *descriptor = (int)number;
    }
    stk_mem_free(folder);
    return in_proc;
}

/* Goes from link to link, to a name that is none, or to what a process has open. */
static stk_status follow_all(stk_write_target *place, const char *path, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; status == STK_OK; i++) {
        place->is_there = stk_disk_look_link(place->path, &place->info) == 0;
        if (!place->is_there && errno != ENOENT) {
            return FAIL_WRITING(err, path);
        }
        if (!place->is_there || !S_ISLNK(place->info.st_mode)) {
            return STK_OK;
        }
        if (is_open_file(place->path, &place->descriptor)) {
            place->stream = true;
            return stat(place->path, &place->info) == 0 ? STK_OK : FAIL_WRITING(err, path);
        }
        errno = ELOOP;
        status = i < MOST_LINKS ? follow(&place->path, err) : FAIL_WRITING(err, path);
    }
    return status;
}

/* A disk is not written over by mistake, and a socket in the file system cannot be opened. */
static stk_status check_kind(stk_write_target *place, const char *path, bool chosen,
                             stk_error *err) {
    mode_t mode = place->info.st_mode;
    if (!place->is_there || S_ISREG(mode)) {
        return STK_OK;
    }
    bool open_socket = S_ISSOCK(mode) && place->descriptor >= 0;
    if (chosen && (S_ISFIFO(mode) || S_ISCHR(mode) || open_socket)) {
        place->stream = true;
        return STK_OK;
    }
    if (chosen && !S_ISDIR(mode)) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: it is %s; name a file or a pipe",
                        path, kind_name(mode));
    }
    return stk_write_target_refuse(path, mode, err);
}

stk_status stk_write_target_find(stk_write_target *place, const char *path, bool chosen,
                                 stk_error *err) {
    *place = (stk_write_target){.path = stk_mem_strdup(path), .descriptor = -1};
    if (place->path == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = STK_OK;
    if (chosen) {
        status = follow_all(place, path, err);
    } else {
        place->is_there = stk_disk_look_link(path, &place->info) == 0;
        status = place->is_there || errno == ENOENT ? STK_OK : FAIL_WRITING(err, path);
    }
    status = status == STK_OK ? check_kind(place, path, chosen, err) : status;
    if (status != STK_OK) {
        stk_write_target_free(place);
    }
    return status;
}

void stk_write_target_free(stk_write_target *place) {
    stk_mem_free(place->path);
    *place = (stk_write_target){.descriptor = -1};
}
