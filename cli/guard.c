/*
 * guard.c - ends a verb at a request to stop even if its thread hangs in a file system call.
 *
 * A thread that waits for a dead mount runs no signal handler. So that thread blocks SIGINT and
 * SIGTERM, and the guard's thread, which touches no file, receives them.
 */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"

/* Time for the verb to end by itself; less than the deadline after SIGTERM (session.c). */
#define GRACE_S 7.0

/* Interval between two looks of the guard. */
#define LOOK_NS 50000000

struct cli_guard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;            /* the verb has ended; guarded by `lock` */
    const stk_stop *stop; /* borrowed */
    sigset_t before;      /* signal mask of the guarded thread before */
};

static void give_up(void) {
    char text[160];
    snprintf(text, sizeof text,
             "stopped; what was under way did not end within %.0f s: look whether the disks are "
             "mounted and alive",
             GRACE_S);
    cli_complain(text);
    _exit(stk_status_exit_code(STK_ERR_STOPPED));
}

static void *watch(void *argument) {
    struct cli_guard *g = argument;
    int64_t asked_ns = 0;
    pthread_mutex_lock(&g->lock);
    while (!g->over) {
        (void)stk_cond_wait_until(&g->changed, &g->lock, stk_clock_ns() + LOOK_NS);
        if (asked_ns == 0 && stk_stop_asked(g->stop) != STK_STOP_NONE) {
            asked_ns = stk_clock_ns();
        }
        if (!g->over && asked_ns != 0 && stk_clock_since_s(asked_ns) >= GRACE_S) {
            give_up();
        }
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void destroy(struct cli_guard *g) {
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    stk_mem_free(g);
}

struct cli_guard *cli_guard_begin(const stk_stop *stop) {
    const stk_thread_config config = {.what = "waits for a request to stop"};
    struct cli_guard *g = stk_mem_new(1, sizeof *g);
    if (g == NULL) {
        return NULL;
    }
    pthread_mutex_init(&g->lock, NULL);
    stk_cond_init(&g->changed);
    g->stop = stop;
    if (stk_thread_start(&g->thread, &config, watch, g, NULL) != STK_OK) {
        destroy(g);
        return NULL;
    }
    sigset_t asking;
    sigemptyset(&asking);
    sigaddset(&asking, SIGINT);
    sigaddset(&asking, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &asking, &g->before);
    return g;
}

void cli_guard_end(struct cli_guard *g) {
    if (g == NULL) {
        return;
    }
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pthread_sigmask(SIG_SETMASK, &g->before, NULL);
    destroy(g);
}
