/* watch.c - ends the decoding of pictures that are cancelled, out of time or too slow. */
#include "image/decode/decoders.h"

#include "base/clock.h"
#include "base/error.h"

/* limit.wall_ns applies after this part (one in so many) of limit.cpu_ns was used. */
#define LEAST_PART 8

/* Reading a thread's CPU time is a system call, so it is done only after this many calls or this
 * much time. */
#define LOOK_CALLS 64
#define LOOK_NS 5000000

stk_image_watch stk_image_watch_start(const stk_image_receiver *receiver) {
    const stk_image_limit *limit = &receiver->limit;
    stk_image_watch watch = {.limit = *limit, .cpu_end_ns = INT64_MAX, .wall_end_ns = INT64_MAX};
    bool own =
        limit->cpu_ns > 0 && (receiver->max_cpu_ns <= 0 || limit->cpu_ns < receiver->max_cpu_ns);
    int64_t most_ns = own ? limit->cpu_ns : receiver->max_cpu_ns;
    if (most_ns > 0) {
        watch.cpu_end_ns = stk_clock_cpu_ns() + most_ns;
        watch.end_is_limit = own;
    }
    if (own && limit->wall_ns > 0) {
        watch.least_ns = watch.cpu_end_ns - most_ns + most_ns / LEAST_PART;
        watch.wall_end_ns = stk_clock_ns() + limit->wall_ns;
    }
    watch.timed = most_ns > 0 || limit->deadline_ns > 0;
    return watch;
}

static stk_image_halt look(stk_image_watch *watch, int64_t now_ns) {
    watch->calls = 0;
    watch->looked_ns = now_ns;
    if (watch->limit.deadline_ns > 0 && now_ns >= watch->limit.deadline_ns) {
        return STK_IMAGE_OVER_LIMIT;
    }
    if (watch->cpu_end_ns == INT64_MAX) {
        return STK_IMAGE_GOES_ON;
    }
    int64_t cpu_ns = stk_clock_cpu_ns();
    if (cpu_ns > watch->cpu_end_ns) {
        return watch->end_is_limit ? STK_IMAGE_OVER_LIMIT : STK_IMAGE_REFUSED;
    }
    bool over = now_ns >= watch->wall_end_ns && cpu_ns > watch->least_ns;
    return over ? STK_IMAGE_OVER_LIMIT : STK_IMAGE_GOES_ON;
}

bool stk_image_halted(stk_image_watch *watch) {
    const atomic_bool *cancelled = watch->limit.cancelled;
    if (cancelled != NULL && atomic_load_explicit(cancelled, memory_order_relaxed)) {
        watch->halt = STK_IMAGE_CANCELLED;
    } else if (watch->timed) {
        int64_t now_ns = stk_clock_ns();
        if (++watch->calls >= LOOK_CALLS || now_ns - watch->looked_ns >= LOOK_NS) {
            watch->halt = look(watch, now_ns);
        }
    }
    return watch->halt != STK_IMAGE_GOES_ON;
}

stk_status stk_image_refuse_halted(const stk_image_watch *watch, const char *format,
                                   stk_error *err) {
    switch (watch->halt) {
    case STK_IMAGE_CANCELLED:
        return STK_FAIL(err, STK_ERR_STOPPED, "decoding the %s was cancelled", format);
    case STK_IMAGE_OVER_LIMIT:
        return STK_FAIL(err, STK_ERR_STOPPED, "there was no time to decode the %s", format);
    default:
        return STK_FAIL(err, STK_ERR_DATA,
                        "the %s takes too long to decode, perhaps on purpose; convert it", format);
    }
}
