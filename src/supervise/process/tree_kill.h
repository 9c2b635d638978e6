/*
 * tree_kill.h - signals to all processes of a tree, and to no other.
 *
 * A process is known by its number and its beginning, and is signalled through a descriptor of it
 * where the kernel has those: one that got the number of another that has ended is not meant.
 * Threads: safe.
 */
#ifndef STK_SUPERVISE_PROCESS_TREE_KILL_H
#define STK_SUPERVISE_PROCESS_TREE_KILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Without the word "stoker": `pkill -9 stoker` is to end the maker, and this one what is left. The
 * kernel keeps 15 bytes. */
#define STK_GUARDIAN_NAME "command-guard"

/*
 * Which processes are meant: those below `root`, which must be this process or a child of it that
 * was not waited for; not the root itself.
 *
 * With `strays` the root is this process, and of its children only those are meant, with all below
 * them, that a guardian's end has handed to it. Those began after the guardian, and not in the
 * session of this process, which nobody below a guardian, where another one began, can enter. Its
 * own children are in it: nothing here calls setsid but a guardian, which is known by its name.
 */
typedef struct stk_kill_target {
    pid_t root;
    bool strays;
    uint64_t since; /* with strays: the guardian's beginning, before which none of them began */
} stk_kill_target;

/* How many live. Where it cannot be told, 1: nobody may conclude that there are none. Without
 * memory for a list of them it is 1 for any number. */
size_t stk_tree_alive(const stk_kill_target *aim);

/*
 * Sends a signal to each, or to that one of them which has the number `only` (0: to each), and in
 * no case to that which has the number `except` (0: none).
 */
void stk_tree_signal(const stk_kill_target *aim, pid_t only, pid_t except, int number);

/*
 * Ends all with SIGKILL, also what is forked meanwhile: first they are stopped, until no new ones
 * are seen. Those that are children of this process are waited for. Returns within within_s, or
 * the moment that one round takes, how many are left.
 */
size_t stk_tree_kill(const stk_kill_target *aim, double within_s);

#endif
