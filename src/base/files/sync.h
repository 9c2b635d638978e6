/*
 * sync.h - fsync that does not hold up the end of the process.
 *
 * A thread in fsync cannot be killed until the disk has answered, and a process ends only after its
 * threads: a slow disk would make the whole command late. Here a child process calls fsync, and the
 * calling thread waits for the child, a wait that can be killed. A child whose parent has ended
 * lives on until the disk has answered. It keeps one file open, no pipe and no lock; the system
 * releases the memory of the parent only when the child ends.
 */
#ifndef STK_BASE_FILES_SYNC_H
#define STK_BASE_FILES_SYNC_H

/* As fsync: 0, or -1 with errno. Calls fsync itself where no process can be started. Threads: safe.
 */
int stk_sync(int fd);

#endif
