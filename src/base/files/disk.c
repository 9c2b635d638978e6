/*
 * disk.c - system calls on a second thread, each with a time-out.
 *
 * A call that times out is abandoned together with its thread. Before each new call the disk looks
 * at the abandoned ones. If one has returned, its root is alive again.
 */
#include "base/files/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/path.h"
#include "base/files/sync.h"
#include "base/mem.h"
#include "base/threads/timed_call.h"

/* How often a waiting thread looks whether to stop. */
#define LOOK_NS 20000000

/* Time-outs after a request to stop. */
#define STOP_LOOK_S 3.0
#define STOP_MOVE_S 15.0

/* The shortest wait, also when no time is left: a live disk needs less, but on a busy machine the
 * second thread has to wait for a core. */
#define LEAST_S 1.0
#define LEAST_OPTIONAL_S 0.25

/* Time-outs below an optional root: seconds, and a share of the time left. */
#define OPTIONAL_S 3.0
#define OPTIONAL_SHARE 0.1
#define OPTIONAL_RUN_S 15.0 /* of stk_disk_run */
#define OPTIONAL_RUN_SHARE 0.3

#define MOST_ROOTS 8
#define MOST_ABANDONED 16

/* With so many abandoned calls no further sync with a time-out of its own begins. */
#define MOST_SLOW 8

/* A call reads or writes no more than this; its caller goes on with the rest. */
#define PIECE_BYTES ((size_t)8 << 20)

typedef struct root {
    char *path; /* owned */
    bool optional;
} root;

/* A call that has timed out. */
typedef struct abandoned_call {
    stk_timed_call *timed; /* owned: the thread that makes the call */
    char *below;           /* owned: calls below this path fail at once; NULL: none do */
    void *state;           /* owned by the call */
    void (*drop)(void *state);
} abandoned_call;

struct stk_disk {
    stk_disk_config config;
    stk_disk *before;      /* the disk entered before; NULL: none */
    pid_t pid;             /* the process that has the threads; a child of fork has none */
    stk_timed_call *timed; /* owned: the thread for the next call; NULL: none yet */
    root roots[MOST_ROOTS];
    int root_count;
    abandoned_call abandoned[MOST_ABANDONED];
    int abandoned_count;
    double synced_s;  /* time waited for syncs */
    int slow_file;    /* 1 + the descriptor of a file whose sync was abandoned; 0: none */
    int64_t stop_ns;  /* when a request to stop was first seen; 0: there is none */
    int64_t until_ns; /* of stk_disk_enter_within: when calls begin to fail at once; 0: never */
    bool late;        /* a call has timed out */
    char reason[128];
};

static _Thread_local stk_disk *entered;

static atomic_int unsynced; /* abandoned syncs */
static atomic_int unstored; /* abandoned syncs that failed later */

/* ---- entering ---- */

static stk_disk *enter(const stk_disk_config *config) {
    stk_disk *d = stk_mem_new(1, sizeof *d);
    if (d != NULL) {
        d->config = *config;
        d->pid = getpid();
        d->before = entered;
        entered = d;
    }
    return d;
}

stk_disk *stk_disk_enter(const stk_disk_config *config) {
    stk_disk *d = enter(config);
    if (d != NULL) {
        char *kept = stk_path_user_cache();
        stk_disk_root(kept, true);
        stk_mem_free(kept);
    }
    return d;
}

stk_disk *stk_disk_enter_within(double within_s) {
    stk_disk *d = enter(&(stk_disk_config){.look_s = INFINITY, .move_s = INFINITY});
    if (d != NULL) {
        d->until_ns = stk_clock_in(within_s);
    }
    return d;
}

bool stk_disk_is_entered(void) {
    return entered != NULL;
}

bool stk_disk_leave(stk_disk *d) {
    if (d == NULL) {
        return true;
    }
    bool in_time = !d->late;
    entered = d->before;
    bool own = d->pid == getpid();
    for (int i = 0; i < d->abandoned_count; i++) {
        abandoned_call *s = &d->abandoned[i];
        if (own && !stk_timed_call_close(s->timed)) {
            s->drop(s->state);
        }
        stk_mem_free(s->below);
    }
    if (own) {
        (void)stk_timed_call_close(d->timed);
    }
    for (int i = 0; i < d->root_count; i++) {
        stk_mem_free(d->roots[i].path);
    }
    stk_mem_free(d);
    return in_time;
}

void stk_disk_root(const char *path, bool optional) {
    stk_disk *d = entered;
    for (int i = 0; d != NULL && path != NULL && i < d->root_count; i++) {
        if (strcmp(d->roots[i].path, path) == 0) {
            return;
        }
    }
    if (d != NULL && path != NULL && d->root_count < MOST_ROOTS) {
        char *copy = stk_mem_strdup(path);
        if (copy != NULL) {
            d->roots[d->root_count++] = (root){copy, optional};
        }
    }
}

static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    return strncmp(path, folder, length) == 0 &&
           (path[length] == '/' || path[length] == '\0' || (length == 1 && folder[0] == '/'));
}

static const root *root_of(const stk_disk *d, const char *path) {
    const root *nearest = NULL;
    for (int i = 0; i < d->root_count; i++) {
        const root *r = &d->roots[i];
        if (is_below(path, r->path) &&
            (nearest == NULL || strlen(r->path) > strlen(nearest->path))) {
            nearest = r;
        }
    }
    return nearest;
}

/* The root or else the folder of a path: where one call hangs, others do. NULL without memory. */
static char *neighbourhood(const stk_disk *d, const char *path) {
    const root *r = root_of(d, path);
    const char *slash = strrchr(path, '/');
    if (r != NULL) {
        return stk_mem_strdup(r->path);
    }
    return slash != NULL && slash > path ? stk_mem_strndup(path, (size_t)(slash - path))
                                         : stk_mem_strdup(path);
}

/* ---- abandoned calls ---- */

/* A child of fork has none of its parent's threads. */
static void begin_anew(stk_disk *d) {
    d->pid = getpid();
    d->timed = NULL;
    d->abandoned_count = 0;
}

static void collect_returned(stk_disk *d) {
    for (int i = d->abandoned_count - 1; i >= 0; i--) {
        abandoned_call *s = &d->abandoned[i];
        if (stk_timed_call_has_ended(s->timed)) {
            s->drop(s->state);
            (void)stk_timed_call_close(s->timed);
            stk_mem_free(s->below);
            *s = d->abandoned[--d->abandoned_count];
        }
    }
}

static const abandoned_call *abandoned_at(const stk_disk *d, const char *path) {
    for (int i = 0; i < d->abandoned_count; i++) {
        if (d->abandoned[i].below != NULL && is_below(path, d->abandoned[i].below)) {
            return &d->abandoned[i];
        }
    }
    return NULL;
}

bool stk_disk_hangs(const char *path) {
    stk_disk *d = entered;
    if (d == NULL || d->pid != getpid()) {
        return false;
    }
    collect_returned(d);
    return abandoned_at(d, path) != NULL;
}

/* ---- time-outs ---- */

typedef struct wait_limits {
    int64_t begun_ns;
    double limit_s;
    double least_s;
    double stop_s; /* after a request to stop */
} wait_limits;

typedef enum call_kind { LOOKS, MOVES, SYNCS, RUNS } call_kind;

/* The config's time-out for a sync; INFINITY: it has no shorter one than other calls. */
static double sync_limit(const stk_disk *d) {
    double limit_s =
        d->config.sync_s != NULL ? d->config.sync_s(d->config.user, d->synced_s) : INFINITY;
    return limit_s < d->config.move_s ? limit_s : INFINITY;
}

/* Seconds until nobody may wait any more. */
static double time_left(const stk_disk *d) {
    double left_s = d->config.left_s != NULL ? d->config.left_s(d->config.user) : INFINITY;
    return d->until_ns != 0 ? fmin(left_s, -stk_clock_since_s(d->until_ns)) : left_s;
}

static wait_limits limits_for(const stk_disk *d, const char *path, call_kind kind) {
    const root *r = root_of(d, path);
    wait_limits p = {.begun_ns = stk_clock_ns(),
                     .limit_s = kind == LOOKS ? d->config.look_s : d->config.move_s,
                     .least_s = d->until_ns != 0 ? 0 : LEAST_S,
                     .stop_s = kind == MOVES || kind == SYNCS ? STOP_MOVE_S : STOP_LOOK_S};
    if (kind == SYNCS) {
        p.limit_s = fmin(p.limit_s, sync_limit(d));
    }
    if (r != NULL && r->optional) {
        double most_s = kind == RUNS ? OPTIONAL_RUN_S : OPTIONAL_S;
        double share = kind == RUNS ? OPTIONAL_RUN_SHARE : OPTIONAL_SHARE;
        p.least_s = LEAST_OPTIONAL_S;
        p.limit_s = fmin(p.limit_s, fmin(most_s, fmax(share * time_left(d), p.least_s)));
    }
    return p;
}

static bool is_over(stk_disk *d, const wait_limits *p) {
    double waited_s = stk_clock_since_s(p->begun_ns);
    stk_stop_level asked = stk_stop_asked(d->config.stop);
    if (asked != STK_STOP_NONE && d->stop_ns == 0) {
        d->stop_ns = stk_clock_ns();
    }
    if (waited_s < fmin(p->least_s, p->limit_s)) {
        return false;
    }
    double since_stop_s = d->stop_ns != 0 ? fmin(waited_s, stk_clock_since_s(d->stop_ns)) : 0;
    return waited_s >= p->limit_s || asked == STK_STOP_NOW || since_stop_s >= p->stop_s ||
           time_left(d) <= 0;
}

/* Waits for the call that was begun; false: it has timed out. */
static bool await(stk_disk *d, const wait_limits *p) {
    while (!stk_timed_call_wait(d->timed, stk_clock_ns() + LOOK_NS)) {
        if (is_over(d, p)) {
            return false;
        }
    }
    return true;
}

double stk_disk_left_s(void) {
    const stk_disk *d = entered;
    if (d == NULL) {
        return INFINITY;
    }
    switch (stk_stop_asked(d->config.stop)) {
    case STK_STOP_NONE:
        return time_left(d);
    case STK_STOP_SOON:
        return fmin(time_left(d), STOP_LOOK_S);
    default:
        return fmin(time_left(d), 0);
    }
}

static void explain(stk_disk *d, double waited_s) {
    snprintf(d->reason, sizeof d->reason,
             "its disk gave no answer within %.1f s; look whether it is mounted and alive",
             waited_s);
}

const char *stk_disk_reason(int error) {
    return error == ETIMEDOUT && entered != NULL && entered->reason[0] != '\0' ? entered->reason
                                                                               : strerror(error);
}

stk_status stk_disk_status(int error) {
    return error == ENOMEM || error == EMFILE || error == ENFILE ? STK_ERR_MEMORY : STK_ERR_STORAGE;
}

/* ---- calls on the second thread ---- */

/* Makes sure that there is a thread for the next call; false where none can be started. */
static bool get_ready(stk_disk *d) {
    if (d->pid != getpid()) {
        begin_anew(d);
    }
    collect_returned(d);
    return d->timed != NULL ||
           stk_timed_call_open(&d->timed, "calls the file system", NULL) == STK_OK;
}

/* Abandons the running call. A sync with its own time-out says nothing about other files: a disk
 * that is slow to store is alive. */
static void abandon(stk_disk *d, const char *path, call_kind kind, void *state,
                    void (*drop)(void *state)) {
    bool slow = kind == SYNCS && isfinite(sync_limit(d));
    d->abandoned[d->abandoned_count++] =
        (abandoned_call){.timed = d->timed,
                         .below = slow ? NULL : neighbourhood(d, path),
                         .state = state,
                         .drop = drop};
    d->timed = NULL;
}

static bool run(const char *path, call_kind kind, void (*work)(void *state), void *state,
                void (*drop)(void *state)) {
    stk_disk *d = entered;
    int before = errno;
    bool over = d != NULL && d->until_ns != 0 && time_left(d) <= 0;
    if (d == NULL || (!over && !get_ready(d))) {
        work(state);
        return true;
    }
    int most = kind == SYNCS && isfinite(sync_limit(d)) ? MOST_SLOW : MOST_ABANDONED;
    if (over || abandoned_at(d, path) != NULL || d->abandoned_count >= most) {
        d->late = true;
        drop(state);
        errno = ETIMEDOUT;
        return false;
    }
    wait_limits p = limits_for(d, path, kind);
    stk_timed_call_begin(d->timed, work, state, drop);
    bool answered = await(d, &p);
    d->synced_s += kind == SYNCS ? stk_clock_since_s(p.begun_ns) : 0;
    if (answered) {
        errno = before;
        return true;
    }
    d->late = true;
    explain(d, stk_clock_since_s(p.begun_ns));
    abandon(d, path, kind, state, drop);
    errno = ETIMEDOUT;
    return false;
}

bool stk_disk_run(const char *path, void (*work)(void *state), void *state,
                  void (*drop)(void *state)) {
    return run(path, RUNS, work, state, drop);
}

/* ---- the calls ---- */

/* X(operation, its system call, with the members of a call `c`). SYNC and RESOLVE need more than
 * that: see perform(). */
#define OPERATIONS(X)                                                           \
    X(OPEN, open(c->path, c->flags, c->mode))                                   \
    X(CLOSE, close(c->fd))                                                      \
    X(READ, read(c->fd, c->data, c->size))                                      \
    X(READ_AT, pread(c->fd, c->data, c->size, c->at))                           \
    X(WRITE, write(c->fd, c->data, c->size))                                    \
    X(WRITE_AT, pwrite(c->fd, c->data, c->size, c->at))                         \
    X(CUT, ftruncate(c->fd, c->at))                                             \
    X(LOCK, flock(c->fd, c->flags))                                             \
    X(LOOK, stat(c->path, &c->info))                                            \
    X(LOOK_LINK, lstat(c->path, &c->info))                                      \
    X(LOOK_AT, fstat(c->fd, &c->info))                                          \
    X(LOOK_SYSTEM, statfs(c->path, &c->system))                                 \
    X(READ_LINK, readlink(c->path, c->data, c->size))                           \
    X(SET_MODE, fchmod(c->fd, c->mode))                                         \
    X(SET_OWNER, fchown(c->fd, c->owner, c->group))                             \
    X(ACCESS, access(c->path, c->flags))                                        \
    X(MAKE_DIR, mkdir(c->path, c->mode))                                        \
    X(REMOVE_DIR, rmdir(c->path))                                               \
    X(REMOVE, unlink(c->path))                                                  \
    X(RENAME, rename(c->path, c->to))                                           \
    X(EXCHANGE, renameat2(AT_FDCWD, c->path, AT_FDCWD, c->to, RENAME_EXCHANGE)) \
    X(LINK, link(c->path, c->to))

typedef enum operation {
#define X(op, made) op,
    OPERATIONS(X) SYNC,
    RESOLVE
#undef X
} disk_operation;

/* A call and its answer. Pointers lead to the caller's memory, or, on the second thread, to copies
 * in the same block. */
typedef struct call {
    disk_operation op;
    int fd;
    bool own;  /* the call owns the descriptor and closes it */
    int flags; /* of open, flock and access */
    mode_t mode;
    uid_t owner;
    gid_t group;
    off_t at;
    const char *path;
    const char *to;
    void *data;
    size_t size;
    struct stat info;
    struct statfs system;
    char *text; /* of realpath; the C library's */
    ssize_t result;
    int error; /* errno where it failed */
} call;

/* Closes the descriptor if the call owns it. */
static void drop_file(call *c) {
    if (c->own) {
        (void)close(c->fd);
        c->own = false;
    }
}

static void perform(void *state) {
    call *c = state;
    switch (c->op) {
#define X(op, made)       \
    case op:              \
        c->result = made; \
        break;
        OPERATIONS(X)
#undef X
    case SYNC:
        c->result = stk_sync(c->fd);
        c->error = errno;
        drop_file(c);
        errno = c->error;
        break;
    case RESOLVE:
        c->text = realpath(c->path, NULL);
        c->result = c->text != NULL ? 0 : -1;
        break;
    }
    c->error = c->result < 0 ? errno : 0;
}

/* Frees a call that nobody waits for, with its result. */
static void drop_call(void *state) {
    call *c = state;
    if (c->op == OPEN && c->result >= 0) {
        close((int)c->result);
    }
    bool failed = c->op == SYNC && !c->own && c->result < 0 && c->error != 0;
    unstored += failed && c->error != EINVAL && c->error != EROFS;
    drop_file(c);
    free(c->text);
    stk_mem_free(c);
}

static bool moves(disk_operation op) {
    return op == READ || op == READ_AT || op == WRITE || op == WRITE_AT || op == CUT || op == CLOSE;
}

static call_kind kind_of(const call *c) {
    bool slow = entered->slow_file == 1 + c->fd && entered->abandoned_count < MOST_SLOW;
    bool stores = c->op == SYNC || (c->op == CLOSE && slow);
    return stores ? SYNCS : moves(c->op) ? MOVES : LOOKS;
}

/* Whether a sync that has timed out, or the close after it, counts as done. */
static bool may_be_unsynced(const call *c, call_kind kind) {
    bool may = kind == SYNCS && errno == ETIMEDOUT && isfinite(sync_limit(entered)) &&
               abandoned_at(entered, c->path) == NULL;
    unsynced += may && c->op == SYNC;
    return may;
}

static bool is_write(disk_operation op) {
    return op == WRITE || op == WRITE_AT;
}

/* A copy of the call with all its data in one block; NULL without memory. */
static call *copy_call(const call *c) {
    size_t path = strlen(c->path) + 1;
    const char *second = c->to != NULL ? c->to : "";
    size_t to = strlen(second) + 1;
    call *copy = stk_mem_raw(sizeof *copy + path + to + c->size, 1);
    if (copy == NULL) {
        return NULL;
    }
    char *room = (char *)(copy + 1);
    *copy = *c;
    copy->result = -1;
    copy->path = memcpy(room, c->path, path);
    copy->to = memcpy(room + path, second, to);
    copy->data = room + path + to;
    if (is_write(c->op) && c->data != NULL) {
        memcpy(copy->data, c->data, c->size);
    }
    return copy;
}

/* Makes a call: on the second thread if a disk was entered, otherwise at once. */
static ssize_t make(call *c) {
    c->size = c->size < PIECE_BYTES || entered == NULL ? c->size : PIECE_BYTES;
    call *copy = entered != NULL ? copy_call(c) : NULL;
    call_kind kind = copy != NULL ? kind_of(c) : LOOKS;
    if (copy == NULL) {
        perform(c);
    } else if (!run(c->path, kind, perform, copy, drop_call)) {
        return may_be_unsynced(c, kind) ? 0 : -1;
    } else {
        c->result = copy->result;
        c->error = copy->error;
        c->info = copy->info;
        c->system = copy->system;
        c->text = copy->text;
        if (c->result > 0 && (c->op == READ || c->op == READ_AT || c->op == READ_LINK)) {
            memcpy(c->data, copy->data, (size_t)c->result);
        }
        stk_mem_free(copy);
    }
    errno = c->result < 0 ? c->error : errno;
    return c->result;
}

int stk_disk_open(const char *path, int flags, mode_t mode) {
    return (int)make(&(call){.op = OPEN, .path = path, .flags = flags, .mode = mode});
}

int stk_disk_close(int fd, const char *path) {
    int result = (int)make(&(call){.op = CLOSE, .path = path, .fd = fd});
    if (entered != NULL && entered->slow_file == 1 + fd) {
        entered->slow_file = 0;
    }
    return result;
}

ssize_t stk_disk_read(int fd, const char *path, void *data, size_t size) {
    return make(&(call){.op = READ, .path = path, .fd = fd, .data = data, .size = size});
}

ssize_t stk_disk_read_at(int fd, const char *path, void *data, size_t size, off_t at) {
    return make(
        &(call){.op = READ_AT, .path = path, .fd = fd, .data = data, .size = size, .at = at});
}

ssize_t stk_disk_write(int fd, const char *path, const void *data, size_t size) {
    return make(&(call){.op = WRITE, .path = path, .fd = fd, .data = (void *)data, .size = size});
}

ssize_t stk_disk_write_at(int fd, const char *path, const void *data, size_t size, off_t at) {
    return make(&(call){
        .op = WRITE_AT, .path = path, .fd = fd, .data = (void *)data, .size = size, .at = at});
}

/*
 * A sync that may be abandoned has its own descriptor: by the time it begins, the caller may have
 * closed its descriptor, and the number may belong to another file.
 */
int stk_disk_sync(int fd, const char *path) {
    int before = unsynced;
    int own = entered != NULL && isfinite(sync_limit(entered)) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    int result =
        (int)make(&(call){.op = SYNC, .path = path, .fd = own >= 0 ? own : fd, .own = own >= 0});
    if (entered != NULL &&
        unsynced != before) { /* another thread may have counted; that does no harm */
        entered->slow_file = 1 + fd;
    }
    return result;
}

int stk_disk_unsynced(void) {
    return unsynced;
}

int stk_disk_unstored(void) {
    return unstored;
}

int stk_disk_cut(int fd, const char *path, off_t size) {
    return (int)make(&(call){.op = CUT, .path = path, .fd = fd, .at = size});
}

int stk_disk_lock(int fd, const char *path, int how) {
    return (int)make(&(call){.op = LOCK, .path = path, .fd = fd, .flags = how});
}

static int look(call c, struct stat *info) {
    int result = (int)make(&c);
    *info = c.info;
    return result;
}

int stk_disk_look(const char *path, struct stat *info) {
    return look((call){.op = LOOK, .path = path}, info);
}

int stk_disk_look_link(const char *path, struct stat *info) {
    return look((call){.op = LOOK_LINK, .path = path}, info);
}

int stk_disk_look_at(int fd, const char *path, struct stat *info) {
    return look((call){.op = LOOK_AT, .path = path, .fd = fd}, info);
}

int stk_disk_look_system(const char *path, struct statfs *system) {
    call c = {.op = LOOK_SYSTEM, .path = path};
    int result = (int)make(&c);
    *system = c.system;
    return result;
}

ssize_t stk_disk_read_link(const char *path, char *text, size_t size) {
    return make(&(call){.op = READ_LINK, .path = path, .data = text, .size = size});
}

int stk_disk_set_mode(int fd, const char *path, mode_t mode) {
    return (int)make(&(call){.op = SET_MODE, .path = path, .fd = fd, .mode = mode});
}

int stk_disk_set_owner(int fd, const char *path, uid_t owner, gid_t group) {
    return (int)make(
        &(call){.op = SET_OWNER, .path = path, .fd = fd, .owner = owner, .group = group});
}

int stk_disk_access(const char *path, int mode) {
    return (int)make(&(call){.op = ACCESS, .path = path, .flags = mode});
}

int stk_disk_make_dir(const char *path, mode_t mode) {
    return (int)make(&(call){.op = MAKE_DIR, .path = path, .mode = mode});
}

int stk_disk_remove_dir(const char *path) {
    return (int)make(&(call){.op = REMOVE_DIR, .path = path});
}

int stk_disk_remove(const char *path) {
    return (int)make(&(call){.op = REMOVE, .path = path});
}

int stk_disk_rename(const char *from, const char *to) {
    return (int)make(&(call){.op = RENAME, .path = from, .to = to});
}

int stk_disk_exchange(const char *from, const char *to) {
    return (int)make(&(call){.op = EXCHANGE, .path = from, .to = to});
}

int stk_disk_link(const char *from, const char *to) {
    return (int)make(&(call){.op = LINK, .path = from, .to = to});
}

char *stk_disk_resolve(const char *path) {
    call c = {.op = RESOLVE, .path = path};
    if (make(&c) < 0) {
        return NULL;
    }
    char *copy = stk_mem_strdup(c.text);
    free(c.text);
    errno = copy == NULL ? ENOMEM : errno;
    return copy;
}
