/* read_policy.c - the constants of the read policy, and the arithmetic on them. */
#include "storage/reading/read_policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "storage/fetch.h"

#define MOST_ATTEMPTS 12 /* failed attempts of a read that count against its object */
#define MOST_DAMAGED 4   /* attempts of a read that bring wrong bytes */
#define LEAST_ATTEMPTS 2 /* failed attempts that count, however long they take */
#define READ_TIMEOUTS 2  /* after the first that counts, others begin for so many time-outs */

/* An attempt that does bring something, but slowly, may take this many time-outs. */
#define SLOW_TIMEOUTS 8

/* So many reads given up in a row, and the location is lost. */
#define LOST_AFTER 4

/*
 * A read gets a hedge when its attempt has taken this many times the median of its peers, and at
 * least a quarter of a second: in object stores the slowest reads take over a second where the
 * median is ten milliseconds. At most one read in twenty gets a hedge. Otherwise a location that is
 * slow as a whole would get every request twice.
 */
#define FAR_SLOWER 8
#define HEDGE_LEAST_NS 250000000
#define HEDGE_SHARE 0.05
#define HEDGE_MOST_CREDIT 8.0
#define FEWEST_PEERS 8

void stk_read_policy_init(stk_read_policy *p, double timeout_s, uint64_t seed) {
    *p = (stk_read_policy){.timeout_ns = (int64_t)(timeout_s * STK_NS_PER_S),
                           .credit = 1,
                           .rng = stk_rng_make(seed, STK_RNG_PAUSE, 0, 0)};
}

void stk_read_policy_count_read(stk_read_policy *p) {
    double credit = p->credit + HEDGE_SHARE;
    p->credit = credit < HEDGE_MOST_CREDIT ? credit : HEDGE_MOST_CREDIT;
}

void stk_read_policy_note_answer(stk_read_policy *p, int64_t now_ns) {
    p->answer_ns = now_ns;
    p->given_up = 0;
}

void stk_read_policy_note_success(stk_read_policy *p, int64_t now_ns, int64_t took_ns) {
    p->peers_ns[p->good_reads++ % STK_READ_POLICY_PEERS] = took_ns;
    stk_read_policy_note_answer(p, now_ns);
}

static int compare_times(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void stk_read_policy_update_median(stk_read_policy *p) {
    int64_t sorted[STK_READ_POLICY_PEERS];
    size_t count = p->good_reads < STK_READ_POLICY_PEERS ? p->good_reads : STK_READ_POLICY_PEERS;
    if (count >= FEWEST_PEERS) {
        memcpy(sorted, p->peers_ns, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_times);
        p->median_ns = sorted[count / 2] > 0 ? sorted[count / 2] : 1;
    }
}

int64_t stk_read_policy_backoff_ns(stk_read_policy *p, int failures, double asked_s) {
    return (int64_t)(stk_backoff_s(&p->rng, failures, asked_s) * STK_NS_PER_S);
}

bool stk_read_policy_gives_up(const stk_read_policy *p, int blamed, int damaged, int64_t from_ns,
                              int64_t next_ns) {
    return blamed >= MOST_ATTEMPTS || damaged >= MOST_DAMAGED ||
           (blamed >= LEAST_ATTEMPTS && next_ns - from_ns > READ_TIMEOUTS * p->timeout_ns);
}

bool stk_read_policy_has_timed_out(const stk_read_policy *p, int64_t now_ns, int64_t started_ns,
                                   int64_t heard_ns) {
    int64_t sign_ns = heard_ns > started_ns ? heard_ns : started_ns;
    return now_ns - sign_ns >= p->timeout_ns ||
           now_ns - started_ns >= SLOW_TIMEOUTS * p->timeout_ns;
}

bool stk_read_policy_is_stuck(const stk_read_policy *p, int64_t now_ns, int64_t begun_ns) {
    int64_t since_ns = begun_ns > p->answer_ns ? begun_ns : p->answer_ns;
    return now_ns - since_ns > READ_TIMEOUTS * p->timeout_ns;
}

bool stk_read_policy_take_hedge(stk_read_policy *p, int64_t age_ns) {
    bool slow = p->median_ns > 0 && age_ns > HEDGE_LEAST_NS && age_ns / FAR_SLOWER > p->median_ns;
    if (!slow || p->credit < 1) {
        return false;
    }
    p->credit -= 1;
    return true;
}

bool stk_read_policy_count_given_up(stk_read_policy *p, int64_t failed_ns) {
    bool doubt = p->answer_ns <= failed_ns;
    p->given_up += doubt;
    return doubt;
}

bool stk_read_policy_is_lost(const stk_read_policy *p) {
    return p->given_up >= LOST_AFTER;
}
