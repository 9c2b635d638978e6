/* queued.c - events copied by the tables of their fields, and told again elsewhere. */
#include "report/observers/queued.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "report/text/event_fields.h"

/* Something that an event points to. */
typedef struct kept {
    struct kept *next;
    char bytes[];
} kept;

typedef union any_event {
    stk_event_start start;
    stk_event_plan plan;
    stk_event_decision decision;
    stk_event_step step;
    stk_event_epoch epoch;
    stk_event_checkpoint checkpoint;
    stk_event_bad_image bad_image;
    stk_event_submission submission;
    stk_event_sample sample;
    stk_event_verdict verdict;
    stk_event_attempt attempt;
    stk_summary stop;
    const char *warning;
} any_event;

typedef struct message {
    stk_observer_told told;
    void (*tell)(const stk_observer *to, const any_event *event);
    int64_t moment_ns;
    uint64_t lost;    /* events before this one */
    bool lost_memory; /* some of them for lack of memory */
    any_event event;
    kept *first;  /* owned, as all behind it */
    size_t bytes; /* of all */
    bool failed;  /* there was no memory */
} message;

struct stk_observer_aside {
    stk_observer observer;
    stk_observer_told told;
    stk_task_queue *queue; /* borrowed */
    stk_observer_lost lost;
    uint64_t untold;    /* events that were lost since the last one that was taken */
    bool untold_memory; /* some of these for lack of memory */
};

/* ---- copies ---- */

static void free_message(message *m) {
    while (m->first != NULL) {
        kept *next = m->first->next;
        stk_mem_free(m->first);
        m->first = next;
    }
    stk_mem_free(m);
}

/* A copy that lives as long as the message; NULL of nothing, and without memory. */
static void *keep(message *m, const void *data, size_t size) {
    kept *k = data != NULL ? stk_mem_raw(1, sizeof *k + size) : NULL;
    if (k == NULL) {
        m->failed = m->failed || data != NULL;
        return NULL;
    }
    memcpy(k->bytes, data, size);
    k->next = m->first;
    m->first = k;
    m->bytes += sizeof *k + size;
    return k->bytes;
}

static const char *keep_text(message *m, const char *text) {
    return keep(m, text, text != NULL ? strlen(text) + 1 : 0);
}

/* All texts of an event, or of a part of one, which is a copy already. */
static void keep_texts(message *m, const stk_fields *fields, void *event) {
    for (size_t i = 0; i < fields->count; i++) {
        if (fields->rows[i].kind == STK_FIELD_TEXT) {
            const char **place = (const char **)((char *)event + fields->rows[i].offset);
            *place = keep_text(m, *place);
        }
    }
}

/* ---- the thread's side ---- */

static void deliver(void *user) {
    message *m = user;
    const stk_observer *to = m->told.observer;
    stk_locale locale = stk_locale_enter();
    if (m->told.at != NULL) {
        m->told.at(m->told.user, m->moment_ns);
    }
    if (m->lost > 0 && to->warning != NULL) {
        char text[120];
        snprintf(text, sizeof text, "%" PRIu64 " events are missing here: %s", m->lost,
                 m->lost_memory ? "there was no memory for them" : "the disk did not answer");
        to->warning(to->user, text);
    }
    m->tell(to, &m->event);
    stk_locale_leave(locale);
    free_message(m);
}

#define TELL(callback)                                                            \
    static void tell_##callback(const stk_observer *to, const any_event *event) { \
        if (to->callback != NULL) {                                               \
            to->callback(to->user, &event->callback);                             \
        }                                                                         \
    }

TELL(start)
TELL(plan)
TELL(decision)
TELL(step)
TELL(epoch)
TELL(checkpoint)
TELL(bad_image)
TELL(submission)
TELL(sample)
TELL(verdict)
TELL(attempt)
TELL(stop)

static void tell_warning(const stk_observer *to, const any_event *event) {
    if (to->warning != NULL) {
        to->warning(to->user, event->warning);
    }
}

/* ---- the giver's side ---- */

static void lose(stk_observer_aside *a, stk_status why) {
    a->lost.events++;
    a->untold++;
    a->lost.memory = a->lost.memory || why == STK_ERR_MEMORY;
    a->untold_memory = a->untold_memory || why == STK_ERR_MEMORY;
}

/* NULL without memory: the event is lost then. */
static message *begin(stk_observer_aside *a,
                      void (*tell)(const stk_observer *to, const any_event *event)) {
    message *m = stk_mem_new(1, sizeof *m);
    if (m == NULL) {
        lose(a, STK_ERR_MEMORY);
        return NULL;
    }
    *m = (message){.told = a->told,
                   .tell = tell,
                   .moment_ns = stk_clock_ns(),
                   .lost = a->untold,
                   .lost_memory = a->untold_memory,
                   .bytes = sizeof *m};
    return m;
}

/* False: the event is lost. */
static bool send(stk_observer_aside *a, message *m, bool in_any_case) {
    stk_queue_task job = {.work = deliver, .user = m, .bytes = in_any_case ? 0 : m->bytes};
    stk_status status = m->failed ? STK_ERR_MEMORY : stk_task_queue_put(a->queue, &job, 0);
    if (status != STK_OK) {
        free_message(m);
        lose(a, status);
        return false;
    }
    a->untold = 0;
    a->untold_memory = false;
    return true;
}

/* A callback for an event whose fields have a table and that points to nothing else. */
#define PASS_ON(callback, type)                                 \
    static void on_##callback(void *user, const type *event) {  \
        message *m = begin(user, tell_##callback);              \
        if (m != NULL) {                                        \
            m->event.callback = *event;                         \
            keep_texts(m, &stk_##callback##_fields, &m->event); \
            (void)send(user, m, false);                         \
        }                                                       \
    }

PASS_ON(start, stk_event_start)
PASS_ON(plan, stk_event_plan)
PASS_ON(decision, stk_event_decision)
PASS_ON(step, stk_event_step)
PASS_ON(epoch, stk_event_epoch)
PASS_ON(checkpoint, stk_event_checkpoint)
PASS_ON(bad_image, stk_event_bad_image)
PASS_ON(submission, stk_event_submission)
PASS_ON(attempt, stk_event_attempt)

static void on_sample(void *user, const stk_event_sample *event) {
    message *m = begin(user, tell_sample);
    if (m != NULL) {
        stk_event_sample *copy = &m->event.sample;
        *copy = *event;
        keep_texts(m, &stk_sample_fields, copy);
        copy->cores = event->core_count > 0
                          ? keep(m, event->cores, (size_t)event->core_count * sizeof(float))
                          : NULL;
        (void)send(user, m, false);
    }
}

static void on_verdict(void *user, const stk_event_verdict *event) {
    message *m = begin(user, tell_verdict);
    if (m != NULL) {
        stk_event_verdict *copy = &m->event.verdict;
        *copy = *event;
        keep_texts(m, &stk_verdict_fields, copy);
        for (int i = 0; i < copy->remedy_count; i++) {
            keep_texts(m, &stk_remedy_fields, &copy->remedies[i]);
        }
        (void)send(user, m, false);
    }
}

static void on_warning(void *user, const char *text) {
    message *m = begin(user, tell_warning);
    if (m != NULL) {
        m->event.warning = keep_text(m, text);
        (void)send(user, m, false);
    }
}

static void on_stop(void *user, const stk_summary *summary) {
    stk_observer_aside *a = user;
    message *m = begin(a, tell_stop);
    a->lost.stop = m == NULL;
    if (m == NULL) {
        return;
    }
    stk_summary *copy = &m->event.stop;
    *copy = *summary;
    keep_texts(m, &stk_summary_fields, copy);
    keep_texts(m, &stk_summary_command_fields, copy);
    stk_event_attempt *attempts =
        copy->attempt_count > 0
            ? keep(m, summary->attempts, (size_t)copy->attempt_count * sizeof *attempts)
            : NULL;
    for (int i = 0; attempts != NULL && i < copy->attempt_count; i++) {
        keep_texts(m, &stk_attempt_fields, &attempts[i]);
    }
    copy->attempts = attempts;
    a->lost.stop = !send(a, m, true);
}

stk_status stk_observer_aside_new(stk_observer_aside **aside, stk_task_queue *queue,
                                  const stk_observer_told *told, stk_error *err) {
    stk_observer_aside *a = stk_mem_new(1, sizeof *a);
    if (a == NULL) {
        return STK_FAIL_MEMORY(err, "an observer");
    }
    a->told = *told;
    a->queue = queue;
    a->observer = (stk_observer){
        .user = a,
        .start = on_start,
        .plan = on_plan,
        .decision = on_decision,
        .step = on_step,
        .epoch = on_epoch,
        .checkpoint = on_checkpoint,
        .bad_image = on_bad_image,
        .submission = on_submission,
        .warning = on_warning,
        .stop = on_stop,
        .sample = on_sample,
        .verdict = on_verdict,
        .attempt = on_attempt,
    };
    *aside = a;
    return STK_OK;
}

void stk_observer_aside_free(stk_observer_aside *aside) {
    stk_mem_free(aside);
}

const stk_observer *stk_observer_aside_observer(stk_observer_aside *aside) {
    return &aside->observer;
}

stk_observer_lost stk_observer_aside_lost(const stk_observer_aside *aside) {
    return aside->lost;
}
