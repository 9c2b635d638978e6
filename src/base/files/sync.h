/*
 * sync.h - fsync that does not hold up the end of the process.
 *
 * While a disk stores a file, the thread that waits for it cannot be killed, and a process is not
 * over before its threads are: a slow disk would make the whole command late. So a child process
 * waits for the disk, and the calling thread waits for the child, which it may be taken from at any
 * time. A child whose process has ended stays until the disk is done. Of open files it holds that
 * one alone, no pipe and no lock, but the memory of the process is given back only then.
 */
#ifndef STK_BASE_FILES_SYNC_H
#define STK_BASE_FILES_SYNC_H

/* As fsync: 0, or -1 with errno. Where no process can be started the thread waits itself. Threads:
 * safe. */
int stk_sync(int fd);

#endif
