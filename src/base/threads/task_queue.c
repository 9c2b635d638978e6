/*
 * task_queue.c - one timed call that does tasks until the queue is closed and empty.
 *
 * No task runs under the lock. Whoever waits, for room or for the tasks to end, watches the count
 * of done tasks: a count that stands still for too long means a disk that does not answer.
 */
#include "base/threads/task_queue.h"

#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "base/threads/timed_call.h"

typedef struct queue_entry {
    stk_queue_task task;
    struct queue_entry *next;
} queue_entry;

struct stk_task_queue {
    stk_timed_call *thread; /* owned: its one call is do_all */
    size_t most_bytes;
    pthread_mutex_t lock;   /* guards all fields below */
    pthread_cond_t changed; /* a task was put or done, or `ending` was set */
    queue_entry *first;     /* owned list; the first task runs or is the next to run */
    queue_entry *last;
    queue_entry last_task; /* of stk_task_queue_put_last; needs no allocation */
    size_t bytes;          /* held by all tasks of the list */
    uint64_t given;        /* tasks that were put */
    uint64_t done;         /* tasks that are done */
    uint64_t stuck_at;     /* `done` when a wait for room ran out; UINT64_MAX: none has */
    int64_t begun_ns;      /* when the running task began; 0: none is running */
    bool ending;           /* the thread ends when the list is empty */
};

static void destroy(void *state) {
    stk_task_queue *q = state;
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    stk_mem_free(q);
}

/* With the lock, which is released while the task runs. */
static void do_first(stk_task_queue *q) {
    queue_entry *e = q->first;
    q->begun_ns = stk_clock_ns();
    pthread_mutex_unlock(&q->lock);
    e->task.work(e->task.user);
    pthread_mutex_lock(&q->lock);
    q->begun_ns = 0;
    q->first = e->next;
    q->last = q->first != NULL ? q->last : NULL;
    q->bytes -= e->task.bytes;
    q->done++;
    pthread_cond_broadcast(&q->changed);
    if (e != &q->last_task) {
        stk_mem_free(e);
    }
}

static void do_all(void *state) {
    stk_task_queue *q = state;
    pthread_mutex_lock(&q->lock);
    while (q->first != NULL || !q->ending) {
        if (q->first != NULL) {
            do_first(q);
        } else {
            pthread_cond_wait(&q->changed, &q->lock);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

stk_status stk_task_queue_open(stk_task_queue **queue, const char *what, size_t most_bytes,
                               stk_error *err) {
    stk_task_queue *q = stk_mem_new(1, sizeof *q);
    if (q == NULL) {
        return STK_FAIL_MEMORY(err, "a queue");
    }
    stk_cond_init(&q->changed);
    pthread_mutex_init(&q->lock, NULL);
    q->most_bytes = most_bytes;
    q->stuck_at = UINT64_MAX;
    stk_status status = stk_timed_call_open(&q->thread, what, err);
    if (status != STK_OK) {
        destroy(q);
        return status;
    }
    stk_timed_call_begin(q->thread, do_all, q, destroy);
    *queue = q;
    return STK_OK;
}

static bool has_room(const stk_task_queue *q, size_t bytes) {
    return bytes == 0 || (bytes <= q->most_bytes && q->bytes <= q->most_bytes - bytes);
}

/* With the lock; true: there is room. */
static bool await_room(stk_task_queue *q, size_t bytes, double wait_s) {
    uint64_t done = q->done;
    int64_t until_ns = stk_clock_in(wait_s);
    while (!has_room(q, bytes) && q->stuck_at != q->done && q->first != NULL) {
        bool changed = stk_cond_wait_until(&q->changed, &q->lock, until_ns);
        if (q->done != done) {
            done = q->done;
            until_ns = stk_clock_in(wait_s);
        } else if (!changed) {
            q->stuck_at = done;
        }
    }
    return has_room(q, bytes);
}

/* With the lock. */
static void append(stk_task_queue *q, queue_entry *e) {
    q->bytes += e->task.bytes;
    q->given++;
    if (q->last != NULL) {
        q->last->next = e;
    } else {
        q->first = e;
    }
    q->last = e;
    pthread_cond_broadcast(&q->changed);
}

stk_status stk_task_queue_put(stk_task_queue *queue, const stk_queue_task *task, double wait_s) {
    queue_entry *e = stk_mem_new(1, sizeof *e);
    if (e == NULL) {
        return STK_ERR_MEMORY;
    }
    e->task = *task;
    pthread_mutex_lock(&queue->lock);
    bool room = await_room(queue, task->bytes, wait_s);
    if (room) {
        append(queue, e);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!room) {
        stk_mem_free(e);
    }
    return room ? STK_OK : STK_ERR_STORAGE;
}

void stk_task_queue_put_last(stk_task_queue *queue, const stk_queue_task *task) {
    queue->last_task.task = *task;
    pthread_mutex_lock(&queue->lock);
    append(queue, &queue->last_task);
    pthread_mutex_unlock(&queue->lock);
}

/* With the lock. */
static bool await_done(stk_task_queue *q, uint64_t wanted, int64_t until_ns) {
    while (q->done < wanted && stk_cond_wait_until(&q->changed, &q->lock, until_ns)) {
    }
    return q->done >= wanted;
}

bool stk_task_queue_flush(stk_task_queue *queue, double within_s) {
    int64_t until_ns = stk_clock_in(within_s);
    pthread_mutex_lock(&queue->lock);
    bool done = await_done(queue, queue->given, until_ns);
    pthread_mutex_unlock(&queue->lock);
    return done;
}

double stk_task_queue_busy_s(stk_task_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    int64_t begun_ns = queue->begun_ns;
    pthread_mutex_unlock(&queue->lock);
    return begun_ns != 0 ? stk_clock_since_s(begun_ns) : 0;
}

bool stk_task_queue_close(stk_task_queue *queue, double within_s) {
    stk_task_queue *q = queue;
    if (q == NULL) {
        return true;
    }
    int64_t until_ns = stk_clock_in(within_s);
    stk_timed_call *thread = q->thread;
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_broadcast(&q->changed);
    bool done = await_done(q, q->given, until_ns);
    pthread_mutex_unlock(&q->lock);
    if (done) {
        (void)stk_timed_call_wait(
            thread, stk_clock_in(INFINITY)); /* the list is empty, so do_all returns */
    }
    if (stk_timed_call_close(thread)) {
        return false;
    }
    destroy(q);
    return true;
}
