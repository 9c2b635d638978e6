/* deadline.c - reading a time of day, with or without a date. */
#include "budget/deadline.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"

/*
 * A time of day that passed within so many seconds is an error, since the user is late and hardly
 * means tomorrow. A time that passed longer ago means the next day: in the evening 8:00 is
 * tomorrow's.
 */
#define LATE_S (3 * 3600)

/* A whole number of so many digits within a range; moves *text past it. */
static bool take(const char **text, int least_digits, int most_digits, int min, int max,
                 int *value) {
    int digits = 0;
    *value = 0;
    while (digits < most_digits && isdigit((unsigned char)**text)) {
        *value = *value * 10 + (**text - '0');
        digits++;
        (*text)++;
    }
    return digits >= least_digits && *value >= min && *value <= max;
}

static bool take_sign(const char **text, const char *signs) {
    bool there = **text != '\0' && strchr(signs, **text) != NULL;
    *text += there;
    return there;
}

static bool read_date(const char **text, struct tm *day) {
    int year = 0;
    int month = 0;
    bool good = take(text, 4, 4, 1970, 9999, &year) && take_sign(text, "-") &&
                take(text, 2, 2, 1, 12, &month) && take_sign(text, "-") &&
                take(text, 2, 2, 1, 31, &day->tm_mday) && take_sign(text, "Tt ");
    day->tm_year = year - 1900;
    day->tm_mon = month - 1;
    return good;
}

static bool read_time(const char **text, struct tm *day) {
    day->tm_sec = 0;
    bool good = take(text, 1, 2, 0, 23, &day->tm_hour) && take_sign(text, ":") &&
                take(text, 2, 2, 0, 59, &day->tm_min);
    if (good && take_sign(text, ":")) {
        good = take(text, 2, 2, 0, 59, &day->tm_sec);
    }
    return good && **text == '\0';
}

/* mktime turns the 30th of February into a day of March: then the date is wrong. */
static bool same_day(const struct tm *a, const struct tm *b) {
    return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday;
}

/* Days between two dates, counted from noon to noon, which summer time does not change. */
static int days_between(struct tm from, struct tm to) {
    from.tm_hour = to.tm_hour = 12;
    from.tm_min = to.tm_min = from.tm_sec = to.tm_sec = 0;
    from.tm_isdst = to.tm_isdst = -1;
    double days = difftime(mktime(&to), mktime(&from)) / 86400;
    return (int)(days + (days < 0 ? -0.5 : 0.5));
}

static stk_status fail_format(const char *text, stk_error *err) {
    return STK_FAIL(err, STK_ERR_USAGE,
                    "--deadline %s is no time; give one such as 14:30, 14:30:00 or "
                    "2026-11-16T14:30",
                    text);
}

/* The moment of this time of day, `days` after its date; *day becomes the date then. */
static time_t moment_after(struct tm *day, int days) {
    day->tm_mday += days;
    day->tm_isdst = -1;
    return mktime(day);
}

/* The next moment with this time of day, unless it has just passed. */
static stk_status next_time(const char *text, time_t now_s, struct tm *day, time_t *moment,
                            stk_error *err) {
    bool late = false;
    struct tm asked = *day;
    *moment = 0;
    for (int days = -1; days <= 1 && *moment <= now_s; days++) {
        *day = asked;
        *moment = moment_after(day, days);
        late = late || (*moment <= now_s && now_s - *moment <= LATE_S);
    }
    if (late) {
        char shown[32];
        char date[16];
        struct tm now;
        strftime(shown, sizeof shown, "%Y-%m-%d %H:%M:%S", localtime_r(&now_s, &now));
        strftime(date, sizeof date, "%Y-%m-%d", day);
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--deadline %s is past: it is %s; if the next is meant give its date, "
                        "%sT%s",
                        text, shown, date, text);
    }
    return STK_OK;
}

stk_status stk_deadline_read(stk_deadline *deadline, const char *text, int64_t now_ns,
                             stk_error *err) {
    time_t now_s = (time_t)(now_ns / STK_NS_PER_S);
    struct tm now;
    if (localtime_r(&now_s, &now) == NULL) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "--deadline: the clock shows no time of day");
    }
    struct tm wanted = now;
    bool dated = strchr(text, '-') != NULL;
    const char *p = text;
    if ((dated && !read_date(&p, &wanted)) || !read_time(&p, &wanted)) {
        return fail_format(text, err);
    }
    struct tm asked = wanted;
    time_t moment = 0;
    if (!dated) {
        stk_status status = next_time(text, now_s, &wanted, &moment, err);
        if (status != STK_OK) {
            return status;
        }
    } else {
        moment = moment_after(&wanted, 0);
        if (!same_day(&asked, &wanted)) {
            return fail_format(text, err);
        }
    }
    deadline->left_s =
        ((double)moment - (double)now_s) - (double)(now_ns % STK_NS_PER_S) / STK_NS_PER_S;
    deadline->days_ahead = days_between(now, wanted);
    strftime(deadline->moment, sizeof deadline->moment, "%Y-%m-%d %H:%M:%S", &wanted);
    if (deadline->left_s <= 0) {
        char shown[32];
        strftime(shown, sizeof shown, "%Y-%m-%d %H:%M:%S", &now);
        return STK_FAIL(err, STK_ERR_USAGE, "--deadline %s is past: it is %s", text, shown);
    }
    return STK_OK;
}
