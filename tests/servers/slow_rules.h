/*
 * slow_rules.h - which files are slow, how slow, and which never answer; for slow_files.c.
 *
 * The rules come from the environment (README.md lists the variables) and are read once.
 */
#ifndef SLOW_RULES_H
#define SLOW_RULES_H

#include <stdbool.h>

/* What is known of a path or of an open file. */
enum {
    SLOW_BELOW = 1, /* it lies below the root; without this no rule holds */
    SLOW_HANG = 2,  /* its open or its reads may never return */
    SLOW_EIO = 4,   /* its reads fail */
};

typedef enum slow_kind { SLOW_OPEN, SLOW_READ, SLOW_STAT, SLOW_ENTRY, SLOW_KINDS } slow_kind;

/* The function of a name that comes after ours: the C library's. */
void *slow_real(const char *name);

/* What is known of a path, which is relative to an open folder as for openat. */
unsigned slow_path(int folder_fd, const char *path);

/* Remembers what is known of a file that was opened, and tells it. A number that the program used
 * again for something else is noticed by device and inode. */
void slow_remember(int fd, unsigned flags);
unsigned slow_fd(int fd);

/* Takes the time that a call takes, for ever if need be. False with errno set when it fails then.
 * Otherwise errno stays as it is. */
bool slow_call(slow_kind kind, unsigned flags);

#endif
