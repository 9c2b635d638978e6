/*
 * tree_kill.h - sends signals to all processes of a tree, and to no other.
 *
 * A process is identified by its id and start time and is signalled through a pidfd where the
 * kernel has those, so a reused id is never hit. Threads: safe.
 */
#ifndef STK_SUPERVISE_PROCESS_TREE_KILL_H
#define STK_SUPERVISE_PROCESS_TREE_KILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The guardian's process name, at most 15 bytes. It lacks the word "stoker": `pkill -9 stoker` must
 * end the maker only, so that the guardian can end the rest. */
#define STK_GUARDIAN_NAME "command-guard"

/*
 * All processes below `root`, without the root. The root must be this process, or a child that was
 * not waited for.
 *
 * With `strays` the root is this process, and the target is the children that it inherited from a
 * dead guardian, with all processes below them. These started after the guardian and are in another
 * session: processes below a guardian cannot enter ours. Our own children are in our session,
 * because only a guardian calls setsid, and a guardian is known by its name.
 */
typedef struct stk_kill_target {
    pid_t root;
    bool strays;
    uint64_t since; /* with strays: start time of the guardian */
} stk_kill_target;

/* Number of live processes. 1 if the number is unknown, so that nobody concludes that there are
 * none; without memory for a list, 1 for any number above 0. */
size_t stk_tree_alive(const stk_kill_target *target);

/* Sends a signal to each process, or to process `only` (0: each), but never to `except` (0: none).
 */
void stk_tree_signal(const stk_kill_target *target, pid_t only, pid_t except, int number);

/*
 * Kills all processes with SIGKILL. Stops them first until no new ones appear, so that none escapes
 * by forking. Waits for children of this process. Returns how many are left after within_s, or
 * after one round if that takes longer.
 */
size_t stk_tree_kill(const stk_kill_target *target, double within_s);

#endif
