/*
 * slow_files.c - a shared object for LD_PRELOAD that makes files below a folder behave like those
 * on a slow, hung or dead mount. README.md in this folder tells how to use it.
 *
 * Each function of the C library that opens, reads, looks at or changes files is replaced by one
 * that first takes its time (slow_rules.h) and then calls the real one. What the C library calls
 * inside itself cannot be replaced, so that streams are handled where a program calls them, and
 * reading through a mapping costs its time when the mapping is made.
 */
#include "slow_rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The real function of a name, looked up at its first use. Threads that do so at once store the
 * same pointer. */
#define REAL(function)                                                                           \
    ({                                                                                           \
        static __typeof__(&(function)) found;                                                    \
        if (__atomic_load_n(&found, __ATOMIC_RELAXED) == NULL) {                                 \
            __atomic_store_n(&found, (__typeof__(found))slow_real(#function), __ATOMIC_RELAXED); \
        }                                                                                        \
        found;                                                                                   \
    })

/* The third argument of open is there only when a file may be made. */
#define MODE_OF(flags, mode)                                          \
    if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
        va_list arguments;                                            \
        va_start(arguments, flags);                                   \
        (mode) = va_arg(arguments, mode_t);                           \
        va_end(arguments);                                            \
    }

/* ---- opening ---- */

#define OPEN(name)                                      \
    EXPORT int name(const char *path, int flags, ...) { \
        mode_t mode = 0;                                \
        MODE_OF(flags, mode)                            \
        unsigned known = slow_path(AT_FDCWD, path);     \
        slow_call(SLOW_OPEN, known);                    \
        int fd = REAL(name)(path, flags, mode);         \
        slow_remember(fd, known);                       \
        return fd;                                      \
    }

#define OPENAT(name)                                                \
    EXPORT int name(int folder, const char *path, int flags, ...) { \
        mode_t mode = 0;                                            \
        MODE_OF(flags, mode)                                        \
        unsigned known = slow_path(folder, path);                   \
        slow_call(SLOW_OPEN, known);                                \
        int fd = REAL(name)(folder, path, flags, mode);             \
        slow_remember(fd, known);                                   \
        return fd;                                                  \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* What programs call instead that were built with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t at, size_t room);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);
char *__fgets_chk(char *line, size_t room, int size, FILE *file);
ssize_t __getdelim(char **line, size_t *room, int end, FILE *file);
char *__realpath_chk(const char *path, char *resolved, size_t room);

EXPORT int __open_2(const char *path, int flags) {
    return open(path, flags);
}

EXPORT int __open64_2(const char *path, int flags) {
    return open64(path, flags);
}

EXPORT int __openat_2(int folder, const char *path, int flags) {
    return openat(folder, path, flags);
}

EXPORT int __openat64_2(int folder, const char *path, int flags) {
    return openat64(folder, path, flags);
}

#define FOPEN(name)                                         \
    EXPORT FILE *name(const char *path, const char *mode) { \
        unsigned known = slow_path(AT_FDCWD, path);         \
        slow_call(SLOW_OPEN, known);                        \
        FILE *file = REAL(name)(path, mode);                \
        if (file != NULL) {                                 \
            slow_remember(fileno(file), known);             \
        }                                                   \
        return file;                                        \
    }

FOPEN(fopen)
FOPEN(fopen64)

EXPORT DIR *opendir(const char *path) {
    unsigned known = slow_path(AT_FDCWD, path);
    slow_call(SLOW_OPEN, known);
    DIR *folder = REAL(opendir)(path);
    if (folder != NULL) {
        slow_remember(dirfd(folder), known);
    }
    return folder;
}

/* A folder's entries come for nothing, but not from a dead mount. */
EXPORT struct dirent *readdir(DIR *folder) {
    slow_call(SLOW_ENTRY, slow_fd(dirfd(folder)));
    return REAL(readdir)(folder);
}

EXPORT struct dirent64 *readdir64(DIR *folder) {
    slow_call(SLOW_ENTRY, slow_fd(dirfd(folder)));
    return REAL(readdir64)(folder);
}

/* ---- reading ---- */

/* A function that reads from an open file and returns `failed` when it cannot. */
#define READ(result, name, failed, parameters, arguments)                           \
    EXPORT result name parameters {                                                 \
        return slow_call(SLOW_READ, slow_fd(fd)) ? REAL(name) arguments : (failed); \
    }

READ(ssize_t, read, -1, (int fd, void *buffer, size_t size), (fd, buffer, size))
READ(ssize_t, pread, -1, (int fd, void *buffer, size_t size, off_t at), (fd, buffer, size, at))
READ(ssize_t, pread64, -1, (int fd, void *buffer, size_t size, off64_t at), (fd, buffer, size, at))
READ(ssize_t, readv, -1, (int fd, const struct iovec *parts, int count), (fd, parts, count))
READ(ssize_t, preadv, -1, (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
READ(ssize_t, preadv64, -1, (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at))
READ(ssize_t, __read_chk, -1, (int fd, void *buffer, size_t size, size_t room),
     (fd, buffer, size, room))
READ(ssize_t, __pread_chk, -1, (int fd, void *buffer, size_t size, off_t at, size_t room),
     (fd, buffer, size, at, room))
READ(ssize_t, __pread64_chk, -1, (int fd, void *buffer, size_t size, off64_t at, size_t room),
     (fd, buffer, size, at, room))
READ(void *, mmap, MAP_FAILED,
     (void *wish, size_t size, int protection, int flags, int fd, off_t at),
     (wish, size, protection, flags, fd, at))
READ(void *, mmap64, MAP_FAILED,
     (void *wish, size_t size, int protection, int flags, int fd, off64_t at),
     (wish, size, protection, flags, fd, at))
READ(ssize_t, sendfile, -1, (int to, int fd, off_t *at, size_t size), (to, fd, at, size))
READ(ssize_t, sendfile64, -1, (int to, int fd, off64_t *at, size_t size), (to, fd, at, size))
READ(ssize_t, copy_file_range, -1,
     (int fd, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
     (fd, at, to, to_at, size, flags))

/* A stream goes to its file only when nothing is left in its buffer. */
static bool slow_stream(FILE *file) {
    if (file->_IO_read_ptr < file->_IO_read_end || slow_call(SLOW_READ, slow_fd(fileno(file)))) {
        return true;
    }
    file->_flags |= _IO_ERR_SEEN;
    return false;
}

#define READ_STREAM(result, name, failed, parameters, arguments)    \
    EXPORT result name parameters {                                 \
        return slow_stream(file) ? REAL(name) arguments : (failed); \
    }

READ_STREAM(size_t, fread, 0, (void *buffer, size_t size, size_t count, FILE *file),
            (buffer, size, count, file))
READ_STREAM(size_t, fread_unlocked, 0, (void *buffer, size_t size, size_t count, FILE *file),
            (buffer, size, count, file))
READ_STREAM(size_t, __fread_chk, 0,
            (void *buffer, size_t room, size_t size, size_t count, FILE *file),
            (buffer, room, size, count, file))
READ_STREAM(char *, fgets, NULL, (char *line, int size, FILE *file), (line, size, file))
READ_STREAM(char *, __fgets_chk, NULL, (char *line, size_t room, int size, FILE *file),
            (line, room, size, file))
READ_STREAM(ssize_t, getline, -1, (char **line, size_t *room, FILE *file), (line, room, file))
READ_STREAM(ssize_t, getdelim, -1, (char **line, size_t *room, int end, FILE *file),
            (line, room, end, file))
READ_STREAM(ssize_t, __getdelim, -1, (char **line, size_t *room, int end, FILE *file),
            (line, room, end, file))
READ_STREAM(int, fgetc, EOF, (FILE * file), (file))
READ_STREAM(int, getc, EOF, (FILE * file), (file))

/* ---- looking ---- */

/* A function that looks at a path, or at an open file, without reading it. It takes the time of a
 * look, and on a dead mount it never returns. */
#define LOOK(result, name, known, parameters, arguments) \
    EXPORT result name parameters {                      \
        slow_call(SLOW_STAT, known);                     \
        return REAL(name) arguments;                     \
    }

#define PATH slow_path(AT_FDCWD, path)
#define PATH_AT slow_path(folder, path)

LOOK(int, stat, PATH, (const char *path, struct stat *info), (path, info))
LOOK(int, stat64, PATH, (const char *path, struct stat64 *info), (path, info))
LOOK(int, lstat, PATH, (const char *path, struct stat *info), (path, info))
LOOK(int, lstat64, PATH, (const char *path, struct stat64 *info), (path, info))
LOOK(int, fstatat, PATH_AT, (int folder, const char *path, struct stat *info, int flags),
     (folder, path, info, flags))
LOOK(int, fstatat64, PATH_AT, (int folder, const char *path, struct stat64 *info, int flags),
     (folder, path, info, flags))
LOOK(int, statx, PATH_AT,
     (int folder, const char *path, int flags, unsigned mask, struct statx *info),
     (folder, path, flags, mask, info))
LOOK(int, statfs, PATH, (const char *path, struct statfs *info), (path, info))
LOOK(int, statfs64, PATH, (const char *path, struct statfs64 *info), (path, info))
LOOK(int, statvfs, PATH, (const char *path, struct statvfs *info), (path, info))
LOOK(int, statvfs64, PATH, (const char *path, struct statvfs64 *info), (path, info))
LOOK(int, access, PATH, (const char *path, int mode), (path, mode))
LOOK(int, faccessat, PATH_AT, (int folder, const char *path, int mode, int flags),
     (folder, path, mode, flags))
LOOK(char *, realpath, PATH, (const char *path, char *resolved), (path, resolved))
LOOK(char *, __realpath_chk, PATH, (const char *path, char *resolved, size_t room),
     (path, resolved, room))
LOOK(int, fstat, slow_fd(fd), (int fd, struct stat *info), (fd, info))
LOOK(int, fstat64, slow_fd(fd), (int fd, struct stat64 *info), (fd, info))

/* ---- changing ---- */

/* What changes a file or a folder takes the time of a look as well, and a dead mount never answers
 * it either. */
LOOK(ssize_t, write, slow_fd(fd), (int fd, const void *data, size_t size), (fd, data, size))
LOOK(ssize_t, pwrite, slow_fd(fd), (int fd, const void *data, size_t size, off_t at),
     (fd, data, size, at))
LOOK(ssize_t, pwrite64, slow_fd(fd), (int fd, const void *data, size_t size, off64_t at),
     (fd, data, size, at))
LOOK(ssize_t, writev, slow_fd(fd), (int fd, const struct iovec *parts, int count),
     (fd, parts, count))
LOOK(ssize_t, pwritev, slow_fd(fd), (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
LOOK(ssize_t, pwritev64, slow_fd(fd), (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at))
LOOK(int, fsync, slow_fd(fd), (int fd), (fd))
LOOK(int, fdatasync, slow_fd(fd), (int fd), (fd))
LOOK(int, ftruncate, slow_fd(fd), (int fd, off_t size), (fd, size))
LOOK(int, ftruncate64, slow_fd(fd), (int fd, off64_t size), (fd, size))
LOOK(int, flock, slow_fd(fd), (int fd, int how), (fd, how))
LOOK(int, rename, PATH, (const char *path, const char *to), (path, to))
LOOK(int, renameat2, PATH_AT,
     (int folder, const char *path, int other, const char *to, unsigned flags),
     (folder, path, other, to, flags))
LOOK(int, link, PATH, (const char *path, const char *to), (path, to))
LOOK(int, unlink, PATH, (const char *path), (path))
LOOK(int, unlinkat, PATH_AT, (int folder, const char *path, int flags), (folder, path, flags))
LOOK(int, mkdir, PATH, (const char *path, mode_t mode), (path, mode))
LOOK(int, mkdirat, PATH_AT, (int folder, const char *path, mode_t mode), (folder, path, mode))
LOOK(int, rmdir, PATH, (const char *path), (path))
