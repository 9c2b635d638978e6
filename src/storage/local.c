/*
 * local.c - the source for folders, of a disk or of a mount.
 *
 * I/O threads make every call to the file system, listings included, since a mount whose server is
 * gone never returns from one.
 */
#include "storage/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/io_threads.h"

/* Reads at a time. */
#define MOST_THREADS 256

typedef struct folder {
    char *root;                 /* owned */
    stk_io_threads *io_threads; /* owned; NULL until opening is done */
} folder;

/* Whatever does not look like an address is a folder. */
static bool matches(const char *root) {
    return strstr(root, "://") == NULL;
}

/* Reasons that may pass: the server of a mount is busy, restarts, or lost a handle. */
static bool may_pass(int why) {
    switch (why) {
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case ENOTCONN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case EREMOTEIO:
    case EAGAIN:
    case EINTR:
        return true;
    default:
        return false;
    }
}

static stk_fetch_verdict judge(stk_status status, int why) {
    return status == STK_OK           ? STK_FETCH_OK
           : status == STK_ERR_MEMORY ? STK_FETCH_NEVER
           : why == 0                 ? STK_FETCH_DAMAGED
           : may_pass(why)            ? STK_FETCH_AGAIN
                                      : STK_FETCH_NEVER;
}

/* Writes a failure. Its sentence may begin with "cannot read PATH: ", which is no part of a cause.
 */
static void take_error(stk_fetch_result *result, stk_fetch_verdict verdict, const stk_error *err,
                       const char *path) {
    static const char start[] = "cannot read ";
    const char *cause = err->message;
    size_t length = strlen(path);
    bool names_it = strncmp(cause, start, sizeof start - 1) == 0 &&
                    strncmp(cause + sizeof start - 1, path, length) == 0 &&
                    strncmp(cause + sizeof start - 1 + length, ": ", 2) == 0;
    cause += names_it ? sizeof start - 1 + length + 2 : 0;
    (void)stk_fetch_fail(result, verdict, err->status, "%s", cause);
    result->is_sentence = !names_it;
}

/* The folder beside `path` whose name is nearest to its last part, as a path; NULL: none. */
static char *nearest_sibling(const char *path) {
    const char *base = stk_path_base(path);
    size_t head = (size_t)(base - path);
    stk_dir_list list = {0};
    char *nearest = NULL;
    char *parent = head > 0 ? stk_mem_strndup(path, head) : stk_mem_strdup(".");
    if (parent == NULL || stk_dir_read(parent, &list, NULL) != STK_OK) {
        stk_mem_free(parent);
        return NULL;
    }
    const char **names = stk_mem_new(list.count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; names != NULL && i < list.count; i++) {
        if (list.entries[i].is_dir) {
            names[count++] = list.entries[i].name;
        }
    }
    const char *name = names != NULL ? stk_str_nearest(base, names, count) : NULL;
    if (name != NULL) {
        nearest = stk_str_format("%.*s%s", (int)head, path, name);
    }
    stk_mem_free(names);
    stk_mem_free(parent);
    stk_dir_list_free(&list);
    return nearest;
}

/* Says that a folder is missing, and from which part of the path on it is. */
static stk_status fail_missing(const char *path, stk_error *err) {
    char *part = stk_mem_strdup(path);
    if (part == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    for (;;) {
        char *slash = strrchr(part, '/');
        if (slash == NULL || slash == part) {
            break;
        }
        *slash = '\0';
        if (stk_path_is_dir(part)) {
            *slash = '/';
            break;
        }
    }
    char *near = nearest_sibling(part);
    stk_status status = STK_FAIL(err, STK_ERR_DATA, "no such folder: %s%s%s%s", path,
                                 near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                                 near != NULL ? "?)" : "");
    stk_mem_free(near);
    stk_mem_free(part);
    return status;
}

/* Whether the root is a folder; if not, the error says what it is instead. */
static stk_fetch_verdict check_root(const char *root, stk_error *err) {
    struct stat info;
    if (stat(root, &info) != 0) {
        int why = errno;
        if (why == ENOENT || why == ENOTDIR) {
            (void)(fail_missing(root, err) == STK_OK);
            return STK_FETCH_NEVER;
        }
        return judge(
            STK_FAIL(err, STK_ERR_STORAGE, "cannot read the folder %s: %s", root, strerror(why)),
            why);
    }
    if (!S_ISDIR(info.st_mode)) {
        return judge(STK_FAIL(err, STK_ERR_DATA,
                              "%s is a file, not a folder; pass the folder that holds the data set",
                              root),
                     ENOTDIR);
    }
    return STK_FETCH_OK;
}

static stk_status put(stk_bytes *bytes, const void *data, size_t size, stk_error *err) {
    size_t need = bytes->size + size;
    if (need > bytes->capacity && !stk_bytes_reserve(bytes, 2 * need)) {
        return STK_FAIL_MEMORY(err, "the list of a folder");
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return STK_OK;
}

static void tell_alive(void *task) {
    stk_io_task_is_alive(task);
}

/* The list as stk_fetch_kind says: a letter, the name and a NUL for each entry. */
static stk_status list(const char *path, stk_io_task *task, stk_error *err) {
    stk_dir_list entries = {0};
    stk_bytes *bytes = &task->bytes;
    bytes->size = 0;
    errno = 0;
    stk_status status = stk_dir_read_watched(path, &entries, tell_alive, task, err);
    int why = errno;
    for (size_t i = 0; status == STK_OK && i < entries.count; i++) {
        const stk_dir_entry *entry = &entries.entries[i];
        status = put(bytes, entry->is_dir ? "d" : "f", 1, err);
        STK_THEN(status, put(bytes, entry->name, strlen(entry->name) + 1, err));
    }
    stk_dir_list_free(&entries);
    errno = why;
    return status;
}

/* What tells one folder, or one state of a file, from another. */
static stk_status look(const char *path, stk_fetch_kind kind, stk_bytes *bytes, stk_error *err) {
    struct stat info;
    bytes->size = 0;
    if (stat(path, &info) != 0) {
        int why = errno;
        stk_status status =
            STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: %s", path, strerror(why));
        errno = why;
        return status;
    }
    if (kind == STK_FETCH_IDENTITY) {
        stk_store_identity identity = {.device = (uint64_t)info.st_dev,
                                       .inode = (uint64_t)info.st_ino};
        return put(bytes, &identity, sizeof identity, err);
    }
    char version[96];
    int length =
        snprintf(version, sizeof version, "%lld.%09ld.%lld", (long long)info.st_mtim.tv_sec,
                 info.st_mtim.tv_nsec, (long long)info.st_size);
    return put(bytes, version, (size_t)length + 1, err);
}

static stk_fetch_verdict serve(const folder *f, const char *path, stk_io_task *task,
                               stk_error *err) {
    stk_status status = STK_OK;
    errno = 0;
    switch (task->kind) {
    case STK_FETCH_BYTES:
        status =
            task->length == 0
                ? stk_file_read_into(path, STK_STORAGE_MAX_BYTES, &task->bytes, err)
                : stk_file_read_part(path, task->offset, (size_t)task->length, &task->bytes, err);
        break;
    case STK_FETCH_LIST:
        if (task->path[0] == '\0') {
            stk_fetch_verdict verdict = check_root(f->root, err);
            if (verdict != STK_FETCH_OK) {
                return verdict;
            }
        }
        status = list(path, task, err);
        break;
    case STK_FETCH_IDENTITY:
    case STK_FETCH_VERSION:
        status = look(path, task->kind, &task->bytes, err);
        break;
    }
    return judge(status, errno);
}

static void work(void *user, stk_io_task *task) {
    const folder *f = user;
    char *path =
        task->path[0] != '\0' ? stk_path_join(f->root, task->path) : stk_mem_strdup(f->root);
    if (path == NULL) {
        (void)stk_fetch_fail(&task->result, STK_FETCH_NEVER, STK_ERR_MEMORY, "out of memory");
        return;
    }
    stk_error err; /* a kilobyte that most reads do not touch */
    err.status = STK_OK;
    task->result.verdict = serve(f, path, task, &err);
    if (task->result.verdict != STK_FETCH_OK) {
        take_error(&task->result, task->result.verdict, &err, path);
    }
    stk_mem_free(path);
}

static void free_folder(void *location) {
    folder *f = location;
    stk_mem_free(f->root);
    stk_mem_free(f);
}

static stk_status open_folder(void **location, const char *root, const stk_storage_options *options,
                              const char *kept, const stk_events *events, stk_error *err) {
    (void)options;
    (void)kept;
    (void)events;
    folder *f = stk_mem_new(1, sizeof *f);
    if (f == NULL) {
        return STK_FAIL_MEMORY(err, root);
    }
    f->root = stk_mem_strdup(root);
    stk_status status = f->root != NULL ? stk_io_threads_open(&f->io_threads, MOST_THREADS, err)
                                        : STK_FAIL_MEMORY(err, root);
    if (status != STK_OK) {
        free_folder(f);
        return status;
    }
    *location = f;
    return STK_OK;
}

/* A thread that is stuck may use the folder when it returns; the last one frees it. */
static void close_folder(void *location) {
    folder *f = location;
    stk_io_threads_close(f->io_threads, free_folder, f);
}

static bool begin(void *location, stk_fetch *fetch) {
    const folder *f = location;
    return stk_io_threads_begin(f->io_threads, fetch, work, location, NULL);
}

static void cancel(void *location, stk_fetch *fetch) {
    const folder *f = location;
    stk_io_threads_cancel(f->io_threads, fetch);
}

static void hurry(void *location) {
    const folder *f = location;
    stk_io_threads_grow(f->io_threads);
}

static int threads(const void *location) {
    const folder *f = location;
    return stk_io_threads_count(f->io_threads);
}

const stk_storage_source stk_storage_local = {
    .name = "local",
    .matches = matches,
    .open = open_folder,
    .close = close_folder,
    .begin = begin,
    .cancel = cancel,
    .hurry = hurry,
    .threads = threads,
};
