/* file.c - whole files in, folders, locks. */
#include "base/files/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "base/str.h"

#define FAIL_SYSTEM(err, what, path)                                            \
    STK_FAIL((err), stk_disk_status(errno), "cannot %s %s: %s", (what), (path), \
             stk_disk_reason(errno))

struct stk_file_reader {
    int fd;
    uint64_t size; /* bytes, when it was opened */
    char *path;    /* owned: for errors */
};

static stk_status too_large(const char *path, size_t max_bytes, stk_error *err) {
    return STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is larger than %zu bytes", path,
                    max_bytes);
}

/* What an open or a read failed with; the file is not to blame for what the process lacks. */
static stk_status fail_reading(const char *path, stk_error *err) {
    int why = errno;
    stk_status status =
        STK_FAIL(err, stk_disk_status(why), "cannot read %s: %s", path, stk_disk_reason(why));
    errno = why;
    return status;
}

static stk_status read_open_file(int fd, const char *path, const struct stat *info,
                                 size_t max_bytes, stk_bytes *bytes, stk_error *err) {
    if (S_ISDIR(info->st_mode)) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is a folder", path);
    }
    if (max_bytes > 0 && info->st_size > 0 && (uint64_t)info->st_size > max_bytes) {
        return too_large(path, max_bytes, err);
    }
    /* One byte for the NUL and one more, so that the read that meets the end needs no growing. */
    size_t need = (size_t)(info->st_size > 0 ? info->st_size : 4096) + 2;
    bytes->size = 0;
    for (;;) {
        if (max_bytes > 0 && bytes->size > max_bytes) {
            return too_large(path, max_bytes, err);
        }
        if (bytes->size + 2 > need) {
            need *= 2;
        }
        if (!stk_bytes_reserve(bytes, need)) {
            return STK_FAIL_MEMORY(err, path);
        }
        ssize_t got =
            stk_disk_read(fd, path, bytes->data + bytes->size, bytes->capacity - bytes->size - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_reading(path, err);
        }
        if (got == 0) {
            break;
        }
        bytes->size += (size_t)got;
    }
    if (S_ISREG(info->st_mode) && (int64_t)bytes->size < (int64_t)info->st_size) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "cannot read %s: it became shorter while it was read (%zu of %lld bytes)",
                        path, bytes->size, (long long)info->st_size);
    }
    bytes->data[bytes->size] = '\0';
    return STK_OK;
}

/* Closing must not hide why reading failed. */
static void close_quietly(int fd, const char *path) {
    int why = errno;
    (void)stk_disk_close(fd, path);
    errno = why;
}

/* What the readers share; a stream may be waited for. */
static stk_status read_path(const char *path, bool stream, size_t max_bytes, stk_bytes *bytes,
                            stk_error *err) {
    errno = 0;
    /* A file is opened without waiting: a pipe without a writer is refused, not waited for. */
    int fd = stream ? open(path, O_RDONLY | O_CLOEXEC)
                    : stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) {
        return fail_reading(path, err);
    }
    struct stat info;
    stk_status status = STK_OK;
    if (stk_disk_look_at(fd, path, &info) != 0) {
        status = fail_reading(path, err);
    } else if (!stream && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is not a file", path);
    } else {
        status = read_open_file(fd, path, &info, max_bytes, bytes, err);
    }
    close_quietly(fd, path);
    return status;
}

stk_status stk_file_open(stk_file_reader **out, const char *path, stk_error *err) {
    stk_file_reader *reader = stk_mem_new(1, sizeof *reader);
    char *copy = stk_mem_strdup(path);
    if (reader == NULL || copy == NULL) {
        stk_mem_free(reader);
        stk_mem_free(copy);
        return STK_FAIL_MEMORY(err, path);
    }
    errno = 0;
    reader->path = copy;
    reader->fd = stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    struct stat info = {0};
    stk_status status = STK_OK;
    if (reader->fd < 0 || stk_disk_look_at(reader->fd, path, &info) != 0) {
        status = fail_reading(path, err);
    } else if (!S_ISREG(info.st_mode)) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is %s", path,
                          S_ISDIR(info.st_mode) ? "a folder" : "not a file");
    }
    if (status != STK_OK) {
        stk_file_close(reader);
        return status;
    }
    reader->size = (uint64_t)info.st_size;
    *out = reader;
    return STK_OK;
}

uint64_t stk_file_size(const stk_file_reader *reader) {
    return reader->size;
}

stk_status stk_file_read_at(const stk_file_reader *reader, uint64_t offset, void *data, size_t size,
                            stk_error *err) {
    char *to = data;
    errno = 0;
    while (size > 0) {
        ssize_t got = stk_disk_read_at(reader->fd, reader->path, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_reading(reader->path, err);
        }
        if (got == 0) {
            return STK_FAIL(err, STK_ERR_STORAGE,
                            "cannot read %s: it became shorter while it was read (%llu of %llu "
                            "bytes)",
                            reader->path, (unsigned long long)offset,
                            (unsigned long long)reader->size);
        }
        to += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return STK_OK;
}

void stk_file_close(stk_file_reader *reader) {
    if (reader != NULL) {
        if (reader->fd >= 0) {
            close_quietly(reader->fd, reader->path);
        }
        stk_mem_free(reader->path);
        stk_mem_free(reader);
    }
}

stk_status stk_file_read_part(const char *path, uint64_t offset, size_t length, stk_bytes *bytes,
                              stk_error *err) {
    bytes->size = 0;
    if (!stk_bytes_reserve(bytes, length + 1)) {
        return STK_FAIL_MEMORY(err, path);
    }
    errno = 0;
    int fd = stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    stk_status status = fd >= 0 ? STK_OK : fail_reading(path, err);
    while (status == STK_OK && bytes->size < length) {
        ssize_t got = stk_disk_read_at(fd, path, bytes->data + bytes->size, length - bytes->size,
                                       (off_t)(offset + bytes->size));
        if (got < 0 && errno != EINTR) {
            status = fail_reading(path, err);
        } else if (got == 0) {
            break;
        }
        bytes->size += got > 0 ? (size_t)got : 0;
    }
    bytes->data[bytes->size] = '\0';
    if (fd >= 0) {
        close_quietly(fd, path);
    }
    return status;
}

/* The same into a block of the caller's own. */
static stk_status read_new(const char *path, bool stream, size_t max_bytes, char **data,
                           size_t *size, stk_error *err) {
    stk_bytes bytes = {0};
    stk_status status = read_path(path, stream, max_bytes, &bytes, err);
    if (status != STK_OK) {
        stk_bytes_free(&bytes);
        return status;
    }
    *data = (char *)bytes.data;
    *size = bytes.size;
    return STK_OK;
}

void stk_bytes_free(stk_bytes *bytes) {
    stk_mem_free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

bool stk_bytes_reserve(stk_bytes *bytes, size_t capacity) {
    if (bytes->capacity >= capacity) {
        return true;
    }
    uint8_t *grown = stk_mem_resize(bytes->data, capacity, 1);
    if (grown != NULL) {
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    return grown != NULL;
}

stk_status stk_file_read_into(const char *path, size_t max_bytes, stk_bytes *bytes,
                              stk_error *err) {
    return read_path(path, false, max_bytes, bytes, err);
}

stk_status stk_file_read(const char *path, size_t max_bytes, char **data, size_t *size,
                         stk_error *err) {
    return read_new(path, false, max_bytes, data, size, err);
}

stk_status stk_file_read_stream(const char *path, size_t max_bytes, char **data, size_t *size,
                                stk_error *err) {
    return read_new(path, true, max_bytes, data, size, err);
}

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

/* The kind that readdir tells, or stat's answer where it tells none or a link. */
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

/* Reads what is left of an open folder. */
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

/* A listing that may be left behind. */
typedef struct listing {
    stk_dir_list list;
    stk_error err;
    stk_status status;
    int error; /* errno, where it failed */
    char path[];
} listing;

static void list_folder(void *state) {
    listing *l = state;
    l->status = stk_dir_read_watched(l->path, &l->list, NULL, NULL, &l->err);
    l->error = errno;
}

static void drop_listing(void *state) {
    listing *l = state;
    stk_dir_list_free(&l->list);
    stk_mem_free(l);
}

stk_status stk_dir_read(const char *path, stk_dir_list *list, stk_error *err) {
    size_t size = strlen(path) + 1;
    listing *l = stk_mem_new(1, sizeof *l + size);
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
    stk_dir_entry *grown =
        stk_mem_grow(list->entries, capacity, list->count + 1, sizeof *list->entries);
    char *copy = stk_mem_strndup(name, length);
    list->entries = grown != NULL ? grown : list->entries;
    if (grown == NULL || copy == NULL) {
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

stk_status stk_path_check_answer(const char *path, stk_error *err) {
    return stk_disk_hangs(path) ? STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: %s", path,
                                           stk_disk_reason(ETIMEDOUT))
                                : STK_OK;
}

bool stk_path_is_descriptor(const char *path, int descriptor) {
    stk_write_target place;
    if (stk_write_target_find(&place, path, true, NULL) != STK_OK) {
        return false;
    }
    bool meant = place.descriptor == descriptor;
    stk_write_target_free(&place);
    return meant;
}

/* Of a new file: whether its folder is there and takes files. */
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

stk_status stk_path_check_place(const char *option, const char *path, stk_error *err) {
    stk_write_target place;
    stk_error why = {0};
    errno = 0;
    if (stk_path_base(path)[0] == '\0' || stk_path_is_dir(path)) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s %s is a folder; name a file in it", option, path);
    }
    if (errno == ETIMEDOUT) {
        return STK_FAIL(err, STK_ERR_STORAGE, "%s %s: %s", option, path, stk_disk_reason(errno));
    }
    stk_status status = stk_write_target_find(&place, path, true, &why);
    if (status != STK_OK && errno == ENOTDIR) { /* the words for a folder that is not there fit */
        return check_folder(option, path, path, err);
    }
    if (status != STK_OK) {
        return STK_FAIL(err, status == STK_ERR_STORAGE ? STK_ERR_USAGE : status, "%s %s: %s",
                        option, path, why.message);
    }
    if (!place.stream) {
        status = check_folder(option, path, place.path, err);
    } else if (place.descriptor < 0 && stk_disk_access(place.path, W_OK) != 0) {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s %s: cannot write to it: %s", option, path,
                          stk_disk_reason(errno));
    }
    stk_write_target_free(&place);
    return status;
}

/* For every file that is read, so it does without formatting. */
char *stk_path_join(const char *a, const char *b) {
    size_t head = b[0] == '/' ? 0 : strlen(a);
    size_t tail = strlen(b);
    bool slash = head > 0 && a[head - 1] != '/';
    char *path = stk_mem_raw(head + slash + tail + 1, 1);
    if (path != NULL) {
        memcpy(path, a, head);
        path[head] = '/';
        memcpy(path + head + slash, b, tail + 1);
    }
    return path;
}

char *stk_path_kept(void) {
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (xdg != NULL && xdg[0] == '/') {
        return stk_path_join(xdg, "stoker");
    }
    return home != NULL && home[0] == '/' ? stk_str_format("%s/.cache/stoker", home) : NULL;
}

const char *stk_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* A disk that does not answer does not tell whose the lock is. */
static stk_status fail_locking(int fd, const char *path, stk_error *err) {
    stk_status status = FAIL_SYSTEM(err, "lock", path);
    (void)stk_disk_close(fd, path);
    return status;
}

stk_status stk_file_lock(const char *path, int *fd, bool *taken, stk_error *err) {
    *taken = false;
    *fd = -1;
    int opened = -1;
    stk_status status = stk_file_open_own(path, O_RDWR | O_CREAT, 0666, &opened, err);
    if (status != STK_OK) {
        return status;
    }
    if (stk_disk_lock(opened, path, LOCK_EX | LOCK_NB) != 0) {
        if (errno == ETIMEDOUT) {
            return fail_locking(opened, path, err);
        }
        /* File systems without locks (some network mounts) must not stop a run. */
        *taken = errno != EWOULDBLOCK;
        if (!*taken) {
            (void)stk_disk_close(opened, path);
            return STK_OK;
        }
    }
    /* The folder may have been moved between opening and locking: then this is another's lock. */
    struct stat held;
    struct stat named;
    errno = 0;
    if (stk_disk_look_at(opened, path, &held) != 0 || stk_disk_look_link(path, &named) != 0 ||
        held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
        *taken = false;
        if (errno == ETIMEDOUT) {
            return fail_locking(opened, path, err);
        }
        (void)stk_disk_close(opened, path);
        return STK_OK;
    }
    *taken = true;
    *fd = opened;
    return STK_OK;
}

void stk_file_unlock(int fd, const char *path) {
    if (fd >= 0) {
        (void)stk_disk_close(fd, path);
    }
}

stk_status stk_file_lock_look(const char *path, stk_lock_state *state, stk_error *err) {
    *state = STK_LOCK_FREE;
    /* A pipe is not waited for. */
    int opened = stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (opened < 0) {
        return errno == ENOENT || errno == ENOTDIR ? STK_OK
                                                   : FAIL_SYSTEM(err, "open the lock", path);
    }
    if (stk_disk_lock(opened, path, LOCK_SH | LOCK_NB) != 0) {
        *state = errno == EWOULDBLOCK ? STK_LOCK_HELD : STK_LOCK_UNKNOWN;
    }
    (void)stk_disk_close(opened, path);
    return STK_OK;
}
