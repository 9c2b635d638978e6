/*
 * proc_tree.h - a process and all its descendants, as /proc shows them.
 *
 * Parent ids make the tree. The kernel hands a process whose parent has ended to the nearest
 * ancestor that is a subreaper (PR_SET_CHILD_SUBREAPER). So no process escapes from the tree of a
 * subreaper, neither with setsid nor by forking twice.
 *
 * Threads: safe, each with a tree of its own.
 */
#ifndef STK_BASE_THREADS_PROC_TREE_H
#define STK_BASE_THREADS_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct stk_proc {
    pid_t pid;
    pid_t parent;
    uint64_t born;    /* clock ticks since boot: tells two processes with the same id apart */
    char state;       /* as in /proc (R, S, D, Z); 'Z' only where none of its threads lives */
    int depth;        /* 0: the root, 1: its children, and so on */
    double cpu_s;     /* used by all of its threads */
    double ended_s;   /* CPU time of its children that ended and were waited for */
    int64_t resident; /* bytes */
    char name[64];    /* as the kernel knows it; may hold any byte but NUL */
} stk_proc;

/* Reads one process, at depth 0. False where there is none, or /proc does not tell. */
bool stk_proc_read(stk_proc *proc, pid_t pid);

/* Whether it has ended and its parent has not waited for it yet (a zombie). */
bool stk_proc_is_dead(const stk_proc *proc);

/* Starts zeroed; each read reuses its memory; ends with stk_proc_tree_free. */
typedef struct stk_proc_tree {
    stk_proc *items; /* parents before their children; the root is the first */
    size_t count;
    size_t capacity;
} stk_proc_tree;

/*
 * Reads the tree whose root is this process. Zombies are included. A process that starts, or whose
 * parent ends, during the read may be missing until the next one. False, with an empty tree, where
 * there is no such process, /proc does not tell, or memory is short.
 */
bool stk_proc_tree_read(stk_proc_tree *tree, pid_t root);
void stk_proc_tree_free(stk_proc_tree *tree);

/* The process with this id, or NULL. */
const stk_proc *stk_proc_tree_find(const stk_proc_tree *tree, pid_t pid);

#endif
