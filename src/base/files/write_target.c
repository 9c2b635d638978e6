/*
 * write_target.c - follows links by hand, since open(2) does not say where they end.
 *
 * A path into /proc/self/fd is no link to follow: it stands for a descriptor of this process.
 */
#include "base/files/write_target.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/dir.h"
#include "base/files/path.h"
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

/* Replaces *path by what the link says; a relative link counts from its own folder. */
static stk_status follow(char **path, stk_error *err) {
    char text[PATH_MAX];
    ssize_t length = stk_disk_read_link(*path, text, sizeof text - 1);
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

/* Whether two folders of /proc are the same one. The calling thread asks: thread-self is its own.
 */
static bool is_same_folder(const char *a, const char *b) {
    char *real_a = realpath(a, NULL);
    char *real_b = realpath(b, NULL);
    bool same = real_a != NULL && real_b != NULL && strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

/*
 * Whether the link is in /proc. The text of such a link is no path: it stands for an open file. If
 * that is this process's own, *descriptor is set.
 */
static bool is_open_file(const char *path, int *descriptor) {
    struct statfs system;
    int64_t number = -1;
    char *folder = folder_of(path);
    bool in_proc = folder != NULL && stk_disk_look_system(folder, &system) == 0 &&
                   system.f_type == PROC_SUPER_MAGIC;
    if (in_proc &&
        (is_same_folder(folder, "/proc/self/fd") ||
         is_same_folder(folder, "/proc/thread-self/fd")) &&
        stk_parse_int(stk_path_base(path), &number) && number >= 0 && number <= INT_MAX) {
        *descriptor = (int)number;
    }
    stk_mem_free(folder);
    return in_proc;
}

/* Follows links to the first name that is no link, or to an open file in /proc. */
static stk_status follow_all(stk_write_target *target, const char *path, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; status == STK_OK; i++) {
        target->is_there = stk_disk_look_link(target->path, &target->info) == 0;
        if (!target->is_there && errno != ENOENT) {
            return FAIL_WRITING(err, path);
        }
        if (!target->is_there || !S_ISLNK(target->info.st_mode)) {
            return STK_OK;
        }
        if (is_open_file(target->path, &target->descriptor)) {
            target->stream = true;
            return stat(target->path, &target->info) == 0 ? STK_OK : FAIL_WRITING(err, path);
        }
        errno = ELOOP;
        status = i < MOST_LINKS ? follow(&target->path, err) : FAIL_WRITING(err, path);
    }
    return status;
}

/* A disk is not written over by mistake, and a socket in the file system cannot be opened. */
static stk_status check_kind(stk_write_target *target, const char *path, bool chosen,
                             stk_error *err) {
    mode_t mode = target->info.st_mode;
    if (!target->is_there || S_ISREG(mode)) {
        return STK_OK;
    }
    bool open_socket = S_ISSOCK(mode) && target->descriptor >= 0;
    if (chosen && (S_ISFIFO(mode) || S_ISCHR(mode) || open_socket)) {
        target->stream = true;
        return STK_OK;
    }
    if (chosen && !S_ISDIR(mode)) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: it is %s; name a file or a pipe",
                        path, kind_name(mode));
    }
    return stk_write_target_refuse(path, mode, err);
}

stk_status stk_write_target_find(stk_write_target *target, const char *path, bool chosen,
                                 stk_error *err) {
    *target = (stk_write_target){.path = stk_mem_strdup(path), .descriptor = -1};
    if (target->path == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = STK_OK;
    if (chosen) {
        status = follow_all(target, path, err);
    } else {
        target->is_there = stk_disk_look_link(path, &target->info) == 0;
        status = target->is_there || errno == ENOENT ? STK_OK : FAIL_WRITING(err, path);
    }
    STK_THEN(status, check_kind(target, path, chosen, err));
    if (status != STK_OK) {
        stk_write_target_free(target);
    }
    return status;
}

void stk_write_target_free(stk_write_target *target) {
    stk_mem_free(target->path);
    *target = (stk_write_target){.descriptor = -1};
}

bool stk_write_target_is_descriptor(const char *path, int descriptor) {
    stk_write_target target;
    if (stk_write_target_find(&target, path, true, NULL) != STK_OK) {
        return false;
    }
    bool meant = target.descriptor == descriptor;
    stk_write_target_free(&target);
    return meant;
}

/* Whether the folder of a new file exists and takes files. */
static stk_status check_folder(const char *option, const char *path, const char *target,
                               stk_error *err) {
    const char *base = stk_path_base(target);
    char *folder =
        base > target ? stk_mem_strndup(target, (size_t)(base - target)) : stk_mem_strdup(".");
    if (folder == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = STK_OK;
    if (!stk_path_is_dir(folder)) {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s %s: there is no folder %s; make it first", option,
                          path, folder);
    } else if (stk_disk_access(folder, W_OK | X_OK) != 0) {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s %s: cannot write to %s: %s", option, path, folder,
                          stk_disk_reason(errno));
    }
    stk_mem_free(folder);
    return status;
}

stk_status stk_write_target_check(const char *option, const char *path, stk_error *err) {
    stk_write_target target;
    stk_error why = {0};
    errno = 0;
    if (stk_path_base(path)[0] == '\0' || stk_path_is_dir(path)) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s %s is a folder; name a file in it", option, path);
    }
    if (errno == ETIMEDOUT) {
        return STK_FAIL(err, STK_ERR_STORAGE, "%s %s: %s", option, path, stk_disk_reason(errno));
    }
    stk_status status = stk_write_target_find(&target, path, true, &why);
    if (status != STK_OK && errno == ENOTDIR) { /* the message for a missing folder fits */
        return check_folder(option, path, path, err);
    }
    if (status != STK_OK) {
        return STK_FAIL(err, status == STK_ERR_STORAGE ? STK_ERR_USAGE : status, "%s %s: %s",
                        option, path, why.message);
    }
    if (!target.stream) {
        status = check_folder(option, path, target.path, err);
    } else if (target.descriptor < 0 && stk_disk_access(target.path, W_OK) != 0) {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s %s: cannot write to it: %s", option, path,
                          stk_disk_reason(errno));
    }
    stk_write_target_free(&target);
    return status;
}
