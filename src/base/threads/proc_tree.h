/*
 * proc_tree.h - a process and all that it has started, as /proc shows them.
 *
 * Who was started by whom is told by the parents' numbers. A process whose parent has ended is
 * handed to the nearest ancestor that asked for such (PR_SET_CHILD_SUBREAPER): below an ancestor
 * that did nobody escapes from the tree, neither with setsid nor by forking twice.
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
    uint64_t born;    /* ticks since the machine began: tells two processes of one number apart */
    char state;       /* 'R', 'S', 'D', 'Z' ...; 'Z' only where none of its threads lives */
    int depth;        /* 0: the root itself, 1: what it has started ... */
    double cpu_s;     /* its own, by all of its threads */
    double ended_s;   /* of those of its children that have ended and were waited for */
    int64_t resident; /* bytes */
    char name[64];    /* as the kernel knows it; may hold any byte but NUL */
} stk_proc;

/* One process alone, at depth 0. False where there is none, or the system does not tell. */
bool stk_proc_read(stk_proc *proc, pid_t pid);

/* Whether it has ended, and only waits for its parent to notice. */
bool stk_proc_is_dead(const stk_proc *proc);

/* Starts zeroed; its memory is used again by the next reading; ends with stk_proc_tree_free. */
typedef struct stk_proc_tree {
    stk_proc *items; /* parents stand before their children; the root first */
    size_t count;
    size_t capacity;
} stk_proc_tree;

/*
 * Reads the tree below a process, which is in it itself. False, and an empty tree, where there is
 * no such process, the system does not tell or there is no memory. Ended ones that nobody has
 * waited for ('Z') are in it. Reading takes a moment: one that was started, or whose parent ended,
 * meanwhile may be in the next reading only.
 */
bool stk_proc_tree_read(stk_proc_tree *tree, pid_t root);
void stk_proc_tree_free(stk_proc_tree *tree);

/* The one of that number, or NULL. */
const stk_proc *stk_proc_tree_find(const stk_proc_tree *tree, pid_t pid);

#endif
