/*
 * torture.c - preloaded into the command, one certain call of a kind fails: the Nth request for
 * memory, the Nth write, the Nth start of a thread. Settings, from the environment:
 *
 *     TORTURE         the kind: own (memory that the command itself asks for), libraries (memory
 *                     that others ask for), open, write, fsync, rename, read, thread, pipe; or all:
 *                     no call fails, and the report has a line `count KIND N` for each
 *     TORTURE_AT      which call fails, counted from 1; 0: none
 *     TORTURE_THEN    on: all later calls of the kind fail, too
 *     TORTURE_SPARES  parts of the names of libraries whose memory is spared, divided by colons
 *     TORTURE_REPORT  a file that gets the line `struck N CALL [PATH]` when the call fails, and at
 *                     the end of the process `calls N` and `live N`: how many calls of the kind
 *                     there were, and how many blocks of the command's own nobody has freed
 *     TORTURE_TRACE   1: in the report, too, who has asked for each of these blocks
 *
 * Only the program with the name TORTURE_PROGRAM (stoker) is meant, not what it starts. A process
 * and what it forks count together. Apart from memory only calls that the command makes itself are
 * counted, and of reads and writes only those of regular files, the three standard streams left
 * out. What the C library calls inside itself is not seen.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))
#define CALLER __builtin_return_address(0)

/* glibc's own allocator, which needs no look at the names of libraries, which would itself ask. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *block);

typedef enum kind { OWN, LIBRARIES, OPEN, WRITE, FSYNC, RENAME, READ, THREAD, PIPE, KINDS } kind;

static const char *const kind_names[KINDS] = {"own",    "libraries", "open",   "write", "fsync",
                                              "rename", "read",      "thread", "pipe"};

/* What a call of each kind fails with. */
static const int kind_errors[KINDS] = {ENOMEM, ENOMEM, EMFILE, ENOSPC, EIO,
                                       EIO,    EIO,    EAGAIN, EMFILE};

static kind tortured = KINDS; /* KINDS: none, as before the start and in other programs */
static long strike_at;
static bool goes_on;
static bool traces;
static char spares[256];
static char report[512];
static bool counts_all; /* no call fails, and calls of all kinds are counted */
static long *calls;     /* of each kind; shared with forked processes */
static uintptr_t own_from, own_to;

/* ---- blocks of the command's own that nobody has freed: a hash table, open addressing ---- */

#define SLOTS ((size_t)1 << 17)
#define FRAMES 12

typedef struct own_block {
    void *address;
    void *frames[FRAMES];
} own_block;

static own_block *blocks; /* SLOTS of them */
static long live;
static volatile char table_lock;
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static void lock_table(void) {
    while (__atomic_test_and_set(&table_lock, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

static void unlock_table(void) {
    __atomic_clear(&table_lock, __ATOMIC_RELEASE);
}

static size_t home_of(const void *address) {
    return (size_t)(((uint64_t)(uintptr_t)address * 0x9E3779B97F4A7C15U) >> 47) % SLOTS;
}

static void remember(void *address) {
    own_block new_block = {.address = address};
    if (traces && !is_inside) {
        is_inside = true;
        backtrace(new_block.frames, FRAMES);
        is_inside = false;
    }
    lock_table();
    if ((size_t)live < SLOTS / 2) {
        size_t at = home_of(address);
        while (blocks[at].address != NULL) {
            at = (at + 1) % SLOTS;
        }
        blocks[at] = new_block;
        live++;
    }
    unlock_table();
}

/* What stands behind the gap and belongs before it moves into it. */
static void close_gap(size_t gap) {
    for (size_t at = (gap + 1) % SLOTS; blocks[at].address != NULL; at = (at + 1) % SLOTS) {
        size_t home = home_of(blocks[at].address);
        if ((at - home) % SLOTS >= (at - gap) % SLOTS) {
            blocks[gap] = blocks[at];
            gap = at;
        }
    }
    blocks[gap].address = NULL;
}

static void forget(const void *address) {
    if (address == NULL || blocks == NULL) {
        return;
    }
    lock_table();
    for (size_t at = home_of(address); blocks[at].address != NULL; at = (at + 1) % SLOTS) {
        if (blocks[at].address == address) {
            close_gap(at);
            live--;
            break;
        }
    }
    unlock_table();
}

/* ---- the report ---- */

static void say(const char *line, size_t size) {
    int fd = report[0] != '\0' ? (int)syscall(SYS_openat, AT_FDCWD, report,
                                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                               : -1;
    if (fd >= 0) {
        (void)!syscall(SYS_write, fd, line, size);
        syscall(SYS_close, fd);
    }
}

static void say_block(const own_block *b) {
    char line[64 + 32 * FRAMES];
    int size = snprintf(line, sizeof line, "block");
    for (int i = 0; i < FRAMES && b->frames[i] != NULL; i++) {
        uintptr_t frame = (uintptr_t)b->frames[i];
        if (frame >= own_from && frame < own_to) {
            size += snprintf(line + size, sizeof line - (size_t)size, " 0x%zx",
                             (size_t)(frame - own_from));
        }
    }
    size += snprintf(line + size, sizeof line - (size_t)size, "\n");
    say(line, (size_t)size);
}

__attribute__((destructor)) static void end(void) {
    char line[128];
    if (tortured == KINDS) {
        return;
    }
    int size = snprintf(line, sizeof line, "calls %ld\nlive %ld\n",
                        __atomic_load_n(&calls[tortured], __ATOMIC_SEQ_CST), live);
    say(line, (size_t)size);
    for (kind k = 0; counts_all && k < KINDS; k++) {
        size = snprintf(line, sizeof line, "count %s %ld\n", kind_names[k],
                        __atomic_load_n(&calls[k], __ATOMIC_SEQ_CST));
        say(line, (size_t)size);
    }
    for (size_t i = 0; traces && i < SLOTS; i++) {
        if (blocks[i].address != NULL) {
            say_block(&blocks[i]);
        }
    }
}

/* ---- the start ---- */

static void copy_setting(const char *name, char *to, size_t room) {
    const char *text = getenv(name);
    snprintf(to, room, "%s", text != NULL ? text : "");
}

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    (void)user;
    own_from = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t stop = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 && stop > own_to) {
            own_to = stop;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    char number[32];
    char name[64];
    void *frames[2];
    copy_setting("TORTURE_PROGRAM", name, sizeof name);
    if (strcmp(program_invocation_short_name, name[0] != '\0' ? name : "stoker") != 0) {
        return;
    }
    copy_setting("TORTURE_AT", number, sizeof number);
    copy_setting("TORTURE_SPARES", spares, sizeof spares);
    copy_setting("TORTURE_REPORT", report, sizeof report);
    strike_at = strtol(number, NULL, 10);
    copy_setting("TORTURE_THEN", number, sizeof number);
    goes_on = strcmp(number, "on") == 0;
    copy_setting("TORTURE_TRACE", number, sizeof number);
    traces = number[0] == '1';
    backtrace(frames, 2); /* loads what it needs */
    dl_iterate_phdr(find_program, NULL);
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    blocks = mmap(NULL, SLOTS * sizeof *blocks, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_atfork(NULL, NULL, unlock_table);
    copy_setting("TORTURE", number, sizeof number);
    for (kind k = 0; k < KINDS; k++) {
        tortured = strcmp(number, kind_names[k]) == 0 ? k : tortured;
    }
    if (strcmp(number, "all") == 0) {
        strike_at = 0;
        counts_all = true;
        tortured = OWN;
    }
}

/* ---- whether a call fails ---- */

static bool is_own(const void *caller) {
    return (uintptr_t)caller >= own_from && (uintptr_t)caller < own_to;
}

/* Whether an address lies in a library whose name holds one of the parts. */
static bool lies_in(void *address, const char *names) {
    char parts[sizeof spares];
    char *rest = NULL;
    Dl_info info;
    if (dladdr(address, &info) == 0) {
        return false;
    }
    snprintf(parts, sizeof parts, "%s", names);
    for (char *p = strtok_r(parts, ":", &rest); p != NULL; p = strtok_r(NULL, ":", &rest)) {
        if (strstr(info.dli_fname, p) != NULL) {
            return true;
        }
    }
    return false;
}

/*
 * Whether a spared library asks, by itself or through others. So is the loader of programs: it ends
 * the process where it finds no memory for a thread's variables.
 */
static bool is_spared(void *caller) {
    void *frames[24];
    bool spared = lies_in(caller, "/ld-linux");
    int count = spared ? 0 : backtrace(frames, 24);
    for (int i = 0; i < count && !spared; i++) {
        spared = lies_in(frames[i], spares);
    }
    return spared;
}

/* Whether calls of a kind are counted. */
static bool is_meant(kind k) {
    return k == tortured || (counts_all && tortured != KINDS);
}

static bool fails(kind k, const char *call, const char *path) {
    char line[1024];
    long number = __atomic_add_fetch(&calls[k], 1, __ATOMIC_SEQ_CST);
    if (strike_at <= 0 || number < strike_at || (number > strike_at && !goes_on)) {
        return false;
    }
    if (number == strike_at) {
        int size = snprintf(line, sizeof line, "struck %ld %s%s%.800s\n", number, call,
                            path != NULL ? " " : "", path != NULL ? path : "");
        say(line, (size_t)size);
    }
    errno = kind_errors[k];
    return true;
}

static bool call_fails(kind k, const char *call, const char *path, const void *caller) {
    return is_meant(k) && is_own(caller) && fails(k, call, path);
}

static bool memory_fails(const char *call, void *caller) {
    if (!is_meant(OWN) && !is_meant(LIBRARIES)) {
        return false;
    }
    if (is_own(caller)) {
        return is_meant(OWN) && fails(OWN, call, NULL);
    }
    if (!is_meant(LIBRARIES) || is_inside) {
        return false;
    }
    is_inside = true;
    Dl_info info = {0};
    bool failed =
        !is_spared(caller) && dladdr(caller, &info) != 0 && fails(LIBRARIES, call, info.dli_fname);
    is_inside = false;
    return failed;
}

/* Whether a file is the one that a standard stream goes to, under another descriptor. */
static bool is_standard(const struct stat *about) {
    struct stat standard;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &standard) == 0 && standard.st_dev == about->st_dev &&
            standard.st_ino == about->st_ino) {
            return true;
        }
    }
    return false;
}

/* Of reads and writes: only files, not what is said to people or to other processes. */
static bool file_fails(kind k, const char *call, int fd, const void *caller) {
    struct stat about;
    char link[64];
    char path[800];
    if (!is_meant(k) || fd <= STDERR_FILENO || !is_own(caller) || fstat(fd, &about) != 0 ||
        !(S_ISREG(about.st_mode) || (S_ISDIR(about.st_mode) && k == FSYNC)) ||
        is_standard(&about)) {
        return false;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    return fails(k, call, path);
}

/* ---- memory ---- */

/* glibc's glob frees a block twice where it finds no memory, so that its memory is spared. */
int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *found) {
    is_inside = true;
    int result = REAL(glob)(pattern, flags, on_error, found);
    is_inside = false;
    return result;
}

static void *kept(void *address, const void *caller) {
    if (address != NULL && blocks != NULL && is_own(caller)) {
        remember(address);
    }
    return address;
}

void *malloc(size_t bytes) {
    return memory_fails("malloc", CALLER) ? NULL : kept(__libc_malloc(bytes), CALLER);
}

void *calloc(size_t count, size_t size) {
    return memory_fails("calloc", CALLER) ? NULL : kept(__libc_calloc(count, size), CALLER);
}

/* The old block is forgotten first: its address may be another's as soon as it is free. */
void *realloc(void *old, size_t bytes) {
    if (memory_fails("realloc", CALLER)) {
        return NULL;
    }
    forget(old);
    void *moved = __libc_realloc(old, bytes);
    kept(moved == NULL && bytes > 0 ? old : moved, CALLER);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memory_fails("aligned_alloc", CALLER) ? NULL
                                                 : kept(__libc_memalign(alignment, bytes), CALLER);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    int error = errno;
    void *block = memory_fails("posix_memalign", CALLER) ? NULL : __libc_memalign(alignment, bytes);
    errno = error;
    *out = block != NULL ? kept(block, CALLER) : *out;
    return block != NULL ? 0 : ENOMEM;
}

void free(void *block) {
    forget(block);
    __libc_free(block);
}

/* ---- files ---- */

/* The mode is there only where a file may be made. */
#define MODE_OF(flags, mode)                      \
    mode_t mode = 0;                              \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
        va_list arguments;                        \
        va_start(arguments, flags);               \
        mode = (mode_t)va_arg(arguments, int);    \
        va_end(arguments);                        \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return call_fails(OPEN, "open", path, CALLER)
               ? -1
               : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return call_fails(OPEN, "openat", path, CALLER)
               ? -1
               : (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* With _FORTIFY_SOURCE these stand for open, openat, read and pread. */
int __open_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *data, size_t size, off_t at, size_t room);

int __open_2(const char *path, int flags) {
    return call_fails(OPEN, "open", path, CALLER)
               ? -1
               : (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

int __openat_2(int folder, const char *path, int flags) {
    return call_fails(OPEN, "openat", path, CALLER)
               ? -1
               : (int)syscall(SYS_openat, folder, path, flags, 0);
}

FILE *fopen(const char *path, const char *mode) {
    return call_fails(OPEN, "fopen", path, CALLER) ? NULL : REAL(fopen)(path, mode);
}

DIR *opendir(const char *path) {
    return call_fails(OPEN, "opendir", path, CALLER) ? NULL : REAL(opendir)(path);
}

ssize_t read(int fd, void *data, size_t size) {
    return file_fails(READ, "read", fd, CALLER) ? -1 : REAL(read)(fd, data, size);
}

ssize_t __read_chk(int fd, void *data, size_t size, size_t room) {
    return file_fails(READ, "read", fd, CALLER) ? -1 : REAL(__read_chk)(fd, data, size, room);
}

ssize_t pread(int fd, void *data, size_t size, off_t at) {
    return file_fails(READ, "pread", fd, CALLER) ? -1 : REAL(pread)(fd, data, size, at);
}

ssize_t __pread_chk(int fd, void *data, size_t size, off_t at, size_t room) {
    return file_fails(READ, "pread", fd, CALLER) ? -1 : REAL(__pread_chk)(fd, data, size, at, room);
}

ssize_t write(int fd, const void *data, size_t size) {
    return file_fails(WRITE, "write", fd, CALLER) ? -1 : REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return file_fails(WRITE, "pwrite", fd, CALLER) ? -1 : REAL(pwrite)(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return file_fails(WRITE, "writev", fd, CALLER) ? -1 : REAL(writev)(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return file_fails(WRITE, "pwritev", fd, CALLER) ? -1 : REAL(pwritev)(fd, parts, count, at);
}

int ftruncate(int fd, off_t size) {
    return file_fails(WRITE, "ftruncate", fd, CALLER) ? -1 : REAL(ftruncate)(fd, size);
}

int mkdir(const char *path, mode_t mode) {
    return call_fails(WRITE, "mkdir", path, CALLER) ? -1 : REAL(mkdir)(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    return call_fails(WRITE, "mkdirat", path, CALLER) ? -1 : REAL(mkdirat)(folder, path, mode);
}

int fsync(int fd) {
    return file_fails(FSYNC, "fsync", fd, CALLER) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
    return file_fails(FSYNC, "fdatasync", fd, CALLER) ? -1 : REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to) {
    return call_fails(RENAME, "rename", to, CALLER) ? -1 : REAL(rename)(from, to);
}

int renameat(int folder, const char *from, int other, const char *to) {
    return call_fails(RENAME, "renameat", to, CALLER) ? -1
                                                      : REAL(renameat)(folder, from, other, to);
}

int renameat2(int folder, const char *from, int other, const char *to, unsigned flags) {
    return call_fails(RENAME, "renameat2", to, CALLER)
               ? -1
               : REAL(renameat2)(folder, from, other, to, flags);
}

int link(const char *from, const char *to) {
    return call_fails(RENAME, "link", to, CALLER) ? -1 : REAL(link)(from, to);
}

int linkat(int folder, const char *from, int other, const char *to, int flags) {
    return call_fails(RENAME, "linkat", to, CALLER) ? -1
                                                    : REAL(linkat)(folder, from, other, to, flags);
}

/* ---- threads, and what threads and processes talk through ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *user) {
    return call_fails(THREAD, "pthread_create", NULL, CALLER)
               ? EAGAIN
               : REAL(pthread_create)(thread, attributes, run, user);
}

pid_t fork(void) {
    return call_fails(THREAD, "fork", NULL, CALLER) ? -1 : REAL(fork)();
}

int pipe(int ends[2]) {
    return call_fails(PIPE, "pipe", NULL, CALLER) ? -1 : REAL(pipe)(ends);
}

int pipe2(int ends[2], int flags) {
    return call_fails(PIPE, "pipe2", NULL, CALLER) ? -1 : REAL(pipe2)(ends, flags);
}

int eventfd(unsigned first, int flags) {
    return call_fails(PIPE, "eventfd", NULL, CALLER) ? -1 : REAL(eventfd)(first, flags);
}

int epoll_create1(int flags) {
    return call_fails(PIPE, "epoll_create1", NULL, CALLER) ? -1 : REAL(epoll_create1)(flags);
}

int signalfd(int fd, const sigset_t *set, int flags) {
    return call_fails(PIPE, "signalfd", NULL, CALLER) ? -1 : REAL(signalfd)(fd, set, flags);
}

int socketpair(int domain, int type, int protocol, int ends[2]) {
    return call_fails(PIPE, "socketpair", NULL, CALLER)
               ? -1
               : REAL(socketpair)(domain, type, protocol, ends);
}
