/*
 * dir.c - making and listing folders.
 *
 * A listing is many system calls. stk_dir_read makes them as one call of disk.h, so that a dead
 * mount costs one time-out; stk_dir_read_watched makes them on the calling thread.
 */
#include "base/files/dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/path.h"
#include "base/mem.h"

#define FAIL_SYSTEM(err, what, path)                                            \
    STK_FAIL((err), stk_disk_status(errno), "cannot %s %s: %s", (what), (path), \
             stk_disk_reason(errno))

stk_status stk_dir_claim(const char *path, bool *made, stk_error *err) {
    *made = stk_disk_make_dir(path, 0777) == 0;
    if (!*made && errno != EEXIST) {
        return FAIL_SYSTEM(err, "make the folder", path);
    }
    return STK_OK;
}

static stk_status fail_unanswered(const char *path, stk_error *err) {
    errno = ETIMEDOUT;
    return FAIL_SYSTEM(err, "make the folder", path);
}

stk_status stk_dir_make(const char *path, stk_error *err) {
    if (path[0] == '\0') {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot make a folder without a name");
    }
    if (stk_disk_hangs(path)) {
        return fail_unanswered(path, err);
    }
    char *copy = stk_mem_strdup(path);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = STK_OK;
    for (char *p = copy + 1; status == STK_OK; p++) {
        if (*p == '/' || *p == '\0') {
            char kept = *p;
            *p = '\0';
            bool made;
            if (!stk_path_is_dir(copy)) {
                status = stk_disk_hangs(path) ? fail_unanswered(path, err)
                                              : stk_dir_claim(copy, &made, err);
                if (status == STK_OK && !stk_path_is_dir(copy)) {
                    status = STK_FAIL(err, STK_ERR_STORAGE,
                                      "cannot make the folder %s: %s is a file", path, copy);
                }
            }
            *p = kept;
            if (kept == '\0') {
                break;
            }
        }
    }
    stk_mem_free(copy);
    return status;
}

static int compare_entries(const void *a, const void *b) {
    const stk_dir_entry *x = a;
    const stk_dir_entry *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (int)x->is_dir - (int)y->is_dir;
}

/* By readdir's type, or by stat where that is unknown or a link. */
static bool entry_is_dir(int folder_fd, const struct dirent *entry) {
    if (entry->d_type == DT_DIR) {
        return true;
    }
    struct stat info;
    return (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) &&
           fstatat(folder_fd, entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

static stk_status fail_listing(const char *path, stk_error *err) {
    int why = errno;
    stk_status status = FAIL_SYSTEM(err, "list the folder", path);
    errno = why;
    return status;
}

/* Reads all entries of an open folder. */
static stk_status read_entries(DIR *dir, const char *path, stk_dir_list *list,
                               void (*each)(void *user), void *user, stk_error *err) {
    size_t capacity = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno != 0 ? fail_listing(path, err) : STK_OK;
        }
        if (entry->d_name[0] != '.' &&
            !stk_dir_list_add(list, &capacity, entry->d_name, strlen(entry->d_name),
                              entry_is_dir(dirfd(dir), entry))) {
            return STK_FAIL_MEMORY(err, path);
        }
        if (each != NULL) {
            each(user);
        }
    }
}

stk_status stk_dir_read_watched(const char *path, stk_dir_list *list, void (*each)(void *user),
                                void *user, stk_error *err) {
    memset(list, 0, sizeof *list);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return fail_listing(path, err);
    }
    stk_status status = read_entries(dir, path, list, each, user, err);
    int why = errno;
    closedir(dir);
    if (status != STK_OK) {
        stk_dir_list_free(list);
        errno = why;
        return status;
    }
    stk_dir_list_sort(list);
    return STK_OK;
}

/* A listing on another thread, which may be abandoned. */
typedef struct dir_listing {
    stk_dir_list list;
    stk_error err;
    stk_status status;
    int error; /* errno, where it failed */
    char path[];
} dir_listing;

static void list_folder(void *state) {
    dir_listing *l = state;
    l->status = stk_dir_read_watched(l->path, &l->list, NULL, NULL, &l->err);
    l->error = errno;
}

static void drop_listing(void *state) {
    dir_listing *l = state;
    stk_dir_list_free(&l->list);
    stk_mem_free(l);
}

stk_status stk_dir_read(const char *path, stk_dir_list *list, stk_error *err) {
    size_t size = strlen(path) + 1;
    dir_listing *l = stk_mem_new(1, sizeof *l + size);
    memset(list, 0, sizeof *list);
    if (l == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    memcpy(l->path, path, size);
    if (!stk_disk_run(path, list_folder, l, drop_listing)) {
        return fail_listing(path, err);
    }
    stk_status status =
        l->status == STK_OK ? STK_OK : STK_FAIL(err, l->status, "%s", l->err.message);
    int error = l->error;
    *list = l->list;
    stk_mem_free(l);
    errno = status != STK_OK ? error : errno;
    return status;
}

bool stk_dir_list_add(stk_dir_list *list, size_t *capacity, const char *name, size_t length,
                      bool is_dir) {
    char *copy = stk_mem_strndup(name, length);
    if (copy == NULL || !STK_RESERVE(list->entries, *capacity, list->count + 1)) {
        stk_mem_free(copy);
        return false;
    }
    list->entries[list->count++] = (stk_dir_entry){copy, is_dir};
    return true;
}

void stk_dir_list_sort(stk_dir_list *list) {
    if (list->count > 1) {
        qsort(list->entries, list->count, sizeof *list->entries, compare_entries);
    }
}

void stk_dir_list_free(stk_dir_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        stk_mem_free(list->entries[i].name);
    }
    stk_mem_free(list->entries);
    memset(list, 0, sizeof *list);
}

bool stk_path_is_dir(const char *path) {
    struct stat info;
    return stk_disk_look(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool stk_path_is_file(const char *path) {
    struct stat info;
    return stk_disk_look(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool stk_path_has_file(const char *folder, const char *name) {
    char *path = stk_path_join(folder, name);
    bool has = path != NULL && stk_path_is_file(path);
    stk_mem_free(path);
    return has;
}

stk_status stk_path_check_answer(const char *path, stk_error *err) {
    return stk_disk_hangs(path) ? STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: %s", path,
                                           stk_disk_reason(ETIMEDOUT))
                                : STK_OK;
}
