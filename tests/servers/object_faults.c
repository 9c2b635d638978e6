/*
 * object_faults.c - see the header.
 */
#include "object_faults.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct setting {
    const char *name;
    size_t offset;
    size_t room; /* bytes of a text, or 0 for a number */
    double most; /* of a number; none is below 0 */
    const char *meaning;
} setting;

#define NUMBER(name, most, meaning) \
    { #name, offsetof(os_settings, name), 0, most, meaning }
#define TEXT(name, meaning) \
    { #name, offsetof(os_settings, name), sizeof((os_settings *)0)->name, 0, meaning }

static const setting settings[] = {
    NUMBER(delay_ms, 1e9, "milliseconds before the first byte of every answer"),
    NUMBER(delay_jitter_ms, 1e9, "up to so many milliseconds more, drawn evenly"),
    NUMBER(tail_percent, 100, "so many percent of GETs take tail_ms instead"),
    NUMBER(tail_ms, 1e9, "milliseconds of such a GET"),
    NUMBER(hang_percent, 100, "accepts the request and never answers"),
    NUMBER(fail_percent, 100, "answers with fail_status"),
    NUMBER(fail_status, 599, "500 (the default), 503, 429, 502 or 504"),
    NUMBER(fail_503_for_s, 1e6, "answers 503 to everything for so many seconds from now on"),
    NUMBER(drop_percent, 100, "closes or resets the connection within the body"),
    NUMBER(stall_percent, 100, "sends half of the body, then nothing more"),
    NUMBER(truncate_percent, 100, "a whole answer, but the object is cut short"),
    NUMBER(corrupt_percent, 100, "one bit of the object is wrong"),
    NUMBER(close_percent, 100, "a whole answer, then the connection is closed without notice"),
    NUMBER(endless_percent, 100, "a body that never ends"),
    NUMBER(endless_length, 9e15, "the Content-Length that such a body is told with; 0: none"),
    NUMBER(endless_status, 599, "the status that it comes with; 0: 200"),
    NUMBER(head_percent, 100, "a head that never ends"),
    NUMBER(head_lines, 1, "1: it has many lines; 0: one line that never ends"),
    NUMBER(empty_percent, 100, "answers 200 without a body"),
    NUMBER(away_for_s, 1e6, "resets connections for so many seconds from now on"),
    NUMBER(refuse, 1, "1: resets connections instead of answering"),
    NUMBER(rate_kbps, 1e9, "kilobits per second and connection; 0: no limit"),
    NUMBER(skew_s, 1e9, "the server's clock is ahead by so much (matters with --require-auth)"),
    NUMBER(seed, 9e15, "of the random numbers"),
    NUMBER(nth, 9e15, "faults hit only the request with this number, counted from now on; 0: all"),
    NUMBER(nth_on, 1, "1: and all requests after it"),
    NUMBER(clear_stats, 1, "1: the counts of /_stats start again"),
    TEXT(deny, "answers 403 to keys that contain this"),
    TEXT(deny_code, "the error code that deny answers with; AccessDenied by default"),
    TEXT(missing, "answers 404 to keys that contain this"),
    TEXT(only, "the other faults hit only keys that contain this"),
};

static const char *const fault_names[OS_FAULT_KINDS] = {
    [OS_FAULT_NONE] = "none",       [OS_FAULT_REFUSE] = "refuse", [OS_FAULT_HANG] = "hang",
    [OS_FAULT_FAIL] = "fail",       [OS_FAULT_DENY] = "deny",     [OS_FAULT_MISSING] = "missing",
    [OS_FAULT_DROP] = "drop",       [OS_FAULT_STALL] = "stall",   [OS_FAULT_TRUNCATE] = "truncate",
    [OS_FAULT_CORRUPT] = "corrupt", [OS_FAULT_CLOSE] = "close",   [OS_FAULT_ENDLESS] = "endless",
    [OS_FAULT_HEAD] = "head",       [OS_FAULT_EMPTY] = "empty",
};

const char *os_fault_name(os_fault fault) {
    return fault_names[fault];
}

static os_settings no_faults(void) {
    os_settings none = {.fail_status = 500};
    memcpy(none.deny_code, "AccessDenied", sizeof "AccessDenied");
    return none;
}

void os_faults_start(os_faults *faults) {
    *faults = (os_faults){.now = no_faults(), .asked = {.record_bytes = sizeof(uint64_t)}};
}

void os_faults_free(os_faults *faults) {
    os_table_free(&faults->asked);
}

static const setting *find_setting(const char *name) {
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

bool os_faults_know(const char *name) {
    return find_setting(name) != NULL;
}

void os_faults_help(FILE *file) {
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        fprintf(file, "  %-18s %s\n", settings[i].name, settings[i].meaning);
    }
}

static bool set_one(os_settings *to, const char *name, const char *value, os_text *error) {
    const setting *wanted = find_setting(name);
    if (wanted == NULL) {
        os_text_addf(error, "there is no setting '%s'", name);
        return false;
    }
    char *field = (char *)to + wanted->offset;
    if (wanted->room > 0) {
        if (strlen(value) >= wanted->room) {
            os_text_addf(error, "%s is longer than %zu bytes", name, wanted->room - 1);
            return false;
        }
        memcpy(field, value, strlen(value) + 1);
        return true;
    }
    char *end = NULL;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !(number >= 0 && number <= wanted->most)) {
        os_text_addf(error, "%s is '%s'; it must be a number from 0 to %g", name, value,
                     wanted->most);
        return false;
    }
    memcpy(field, &number, sizeof number);
    return true;
}

bool os_faults_set(os_faults *faults, const char *text, int64_t now_ns, os_text *error) {
    os_settings next = faults->now;
    bool is_reset = false;
    bool counts_anew = false;
    bool good = true;
    while (good && *text != '\0') {
        size_t size = strcspn(text, "&");
        os_text name = {0};
        os_text_add(&name, text, strcspn(text, "=&"));
        char *value = os_query_value(text, name.bytes);
        if (strcmp(name.bytes, "reset") == 0) {
            next = no_faults();
            is_reset = true;
        } else if (size > 0) {
            good = set_one(&next, name.bytes, value, error);
        }
        if (good && strcmp(name.bytes, "fail_503_for_s") == 0) {
            next.fail_until_ns = now_ns + (int64_t)(next.fail_503_for_s * 1e9);
        }
        if (good && strcmp(name.bytes, "away_for_s") == 0) {
            next.away_until_ns = now_ns + (int64_t)(next.away_for_s * 1e9);
        }
        counts_anew = counts_anew || strcmp(name.bytes, "nth") == 0;
        free(value);
        os_text_free(&name);
        text += size;
        text += *text == '&';
    }
    if (good) {
        faults->now = next;
        faults->requests = counts_anew ? 0 : faults->requests;
        if (is_reset) {
            os_table_free(&faults->asked);
        }
    }
    return good;
}

/* A number from 0 up to 1 that belongs to a request and a purpose. */
static double draw(uint64_t request, uint64_t purpose) {
    return (double)(os_mix(request + purpose * 0x9E3779B97F4A7C15U) >> 11) * 0x1p-53;
}

static bool contains(const char *key, const char *part) {
    return part[0] != '\0' && strstr(key, part) != NULL;
}

/* The first of the faults that strikes; each has a draw of its own, so that raising the share of
 * one moves no other. */
static os_fault draw_fault(const os_settings *now, uint64_t request) {
    const struct {
        os_fault fault;
        double percent;
    } order[] = {
        {OS_FAULT_HANG, now->hang_percent},         {OS_FAULT_FAIL, now->fail_percent},
        {OS_FAULT_DROP, now->drop_percent},         {OS_FAULT_STALL, now->stall_percent},
        {OS_FAULT_TRUNCATE, now->truncate_percent}, {OS_FAULT_CORRUPT, now->corrupt_percent},
        {OS_FAULT_CLOSE, now->close_percent},       {OS_FAULT_ENDLESS, now->endless_percent},
        {OS_FAULT_HEAD, now->head_percent},         {OS_FAULT_EMPTY, now->empty_percent}};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (100 * draw(request, (uint64_t)order[i].fault) < order[i].percent) {
            return order[i].fault;
        }
    }
    return OS_FAULT_NONE;
}

/* Whether the request with this number is one of those that faults may hit. */
static bool may_be_hit(const os_settings *now, uint64_t number) {
    uint64_t nth = (uint64_t)now->nth;
    return nth == 0 || number == nth || (number > nth && now->nth_on > 0);
}

void os_faults_plan(os_faults *faults, const char *key, bool is_get, int64_t now_ns,
                    os_plan *plan) {
    enum { JITTER = OS_FAULT_KINDS, TAIL, WHERE, MASK, RESET };
    const os_settings *now = &faults->now;
    uint64_t *asked = os_table_get(&faults->asked, key);
    uint64_t request = os_mix(os_hash(key) ^ os_mix((uint64_t)now->seed) ^ ++*asked);
    *plan = (os_plan){.status = (int)now->fail_status,
                      .where = draw(request, WHERE),
                      .mask = (unsigned char)(1U << (unsigned)(8 * draw(request, MASK))),
                      .reset = draw(request, RESET) < 0.5,
                      .told = (uint64_t)now->endless_length,
                      .endless_status = now->endless_status > 0 ? (int)now->endless_status : 200,
                      .many_lines = now->head_lines > 0};
    bool may_fail = may_be_hit(now, ++faults->requests);
    if (may_fail && (now->only[0] == '\0' || contains(key, now->only))) {
        double delay_ms = now->delay_ms + now->delay_jitter_ms * draw(request, JITTER);
        plan->is_tail = is_get && 100 * draw(request, TAIL) < now->tail_percent;
        plan->delay_ns = (int64_t)(1e6 * (plan->is_tail ? now->tail_ms : delay_ms));
        plan->bytes_per_s = now->rate_kbps * 1000 / 8;
        plan->fault = draw_fault(now, request);
        if (now_ns < now->fail_until_ns) {
            plan->fault = OS_FAULT_FAIL;
            plan->status = 503;
        }
        if (now->refuse > 0 || now_ns < now->away_until_ns) {
            plan->fault = OS_FAULT_REFUSE;
        }
    }
    if (may_fail && plan->fault != OS_FAULT_REFUSE && plan->fault != OS_FAULT_HANG) {
        plan->fault = contains(key, now->missing) ? OS_FAULT_MISSING : plan->fault;
        plan->fault = contains(key, now->deny) ? OS_FAULT_DENY : plan->fault;
    }
}
