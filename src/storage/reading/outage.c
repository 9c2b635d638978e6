/* outage.c - since when a location is silent, and what people are told about it. */
#include "storage/reading/outage.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

/* A warning is due after ten seconds or a tenth of --outage, whichever is less. */
#define TELL_NS (10 * STK_NS_PER_S)
#define TELL_SHARE 10

/* An outage is dated back at most so far; this process may have been stopped. */
#define MOST_BEFORE_NS (60 * STK_NS_PER_S)

/* A gap this long between two looks means that this process was stopped. */
#define STOPPED_NS (2 * STK_NS_PER_S)

/* How much one read moves the share of failing reads; above the second share a location is ill. */
#define FAILING_WEIGHT 0.02
#define FAILING_MOST 0.25

void stk_outage_open(stk_outage *o, double most_s) {
    *o = (stk_outage){.most_ns = (int64_t)(most_s * STK_NS_PER_S)};
    pthread_mutex_init(&o->lock, NULL);
}

void stk_outage_close(stk_outage *o) {
    pthread_mutex_destroy(&o->lock);
}

bool stk_outage_is_waited_out(const stk_outage *o) {
    return o->most_ns > 0 && atomic_load(&o->answer_ns) > 0;
}

/* Under the lock. */
static void count_first(stk_outage *o, bool failed) {
    o->failing += FAILING_WEIGHT * ((failed ? 1 : 0) - o->failing);
}

void stk_outage_answered(stk_outage *o, int64_t now_ns, bool first) {
    atomic_store(&o->answer_ns, now_ns);
    if (o->most_ns == 0) {
        return;
    }
    pthread_mutex_lock(&o->lock);
    int64_t begun_ns = atomic_load(&o->begun_ns);
    if (begun_ns > 0) {
        o->over_s = o->told ? (double)(now_ns - begun_ns) / STK_NS_PER_S : 0;
        o->told = false;
        atomic_store(&o->begun_ns, 0);
    }
    if (first) {
        count_first(o, false);
    }
    pthread_mutex_unlock(&o->lock);
}

bool stk_outage_missed(stk_outage *o, int64_t since_ns, int64_t now_ns, bool first,
                       const char *why) {
    if (!stk_outage_is_waited_out(o)) {
        return false;
    }
    pthread_mutex_lock(&o->lock);
    int64_t answer_ns = atomic_load(&o->answer_ns);
    bool silent = answer_ns <= since_ns;
    if (silent) {
        if (atomic_load(&o->begun_ns) == 0) {
            int64_t least_ns = now_ns - MOST_BEFORE_NS;
            atomic_store(&o->begun_ns, since_ns > least_ns ? since_ns : least_ns);
            o->looked_ns = now_ns;
        }
        snprintf(o->why, sizeof o->why, "%s", why);
    } else if (first) {
        count_first(o, true);
    }
    pthread_mutex_unlock(&o->lock);
    return silent;
}

bool stk_outage_is_ill(stk_outage *o) {
    pthread_mutex_lock(&o->lock);
    bool ill = stk_outage_is_waited_out(o) && o->failing > FAILING_MOST;
    pthread_mutex_unlock(&o->lock);
    return ill;
}

bool stk_outage_is_too_long(stk_outage *o, int64_t now_ns) {
    if (atomic_load(&o->begun_ns) == 0) {
        return false;
    }
    pthread_mutex_lock(&o->lock);
    int64_t begun_ns = atomic_load(&o->begun_ns);
    int64_t gap_ns = now_ns - o->looked_ns;
    if (begun_ns > 0 && gap_ns > STOPPED_NS) {
        begun_ns += gap_ns;
        atomic_store(&o->begun_ns, begun_ns);
    }
    o->looked_ns = now_ns;
    pthread_mutex_unlock(&o->lock);
    return begun_ns > 0 && now_ns - begun_ns >= o->most_ns;
}

bool stk_outage_notice(stk_outage *o, const char *location, int64_t now_ns, char *buf,
                       size_t size) {
    int64_t least_ns = o->most_ns / TELL_SHARE < TELL_NS ? o->most_ns / TELL_SHARE : TELL_NS;
    pthread_mutex_lock(&o->lock);
    int64_t begun_ns = atomic_load(&o->begun_ns);
    bool begins = begun_ns > 0 && !o->told && now_ns - begun_ns >= least_ns;
    bool ends = !begins && o->over_s > 0;
    if (begins) {
        o->told = true;
        o->over_s = 0; /* the last end was not told: people see one outage */
        snprintf(buf, size, "%s: no answer for %s (%s): waiting up to %s", location,
                 stk_format_span((double)(now_ns - begun_ns) / STK_NS_PER_S).text, o->why,
                 stk_format_span((double)o->most_ns / STK_NS_PER_S).text);
    } else if (ends) {
        snprintf(buf, size, "%s answers again after %s", location, stk_format_span(o->over_s).text);
        o->over_s = 0;
    }
    pthread_mutex_unlock(&o->lock);
    return begins || ends;
}
