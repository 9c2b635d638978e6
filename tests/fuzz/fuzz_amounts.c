/*
 * fuzz_amounts.c - numbers, sizes, times and moments as people write them: read or refused, never
 * out of range, and never by half.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "budget/deadline.h"
#include "probe/storage_figures.h"
#include "supervise/decide/timetable.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("2h30m"),  FUZZ_SEED("00:11:00"), FUZZ_SEED("1.5e3"),
    FUZZ_SEED("50GiB"),  FUZZ_SEED("15%"),      FUZZ_SEED("2026-11-16T14:30"),
    FUZZ_SEED("14:30"),  FUZZ_SEED("1,2,4-64"), FUZZ_SEED("1d2h3m4s"),
    FUZZ_SEED("-0x1p3"), FUZZ_SEED("infnan"),
};
FUZZ_PLAN(seeds)

/* 2026-11-16 12:00:00 UTC. */
#define NOON_NS ((int64_t)1794830400 * 1000000000)

static void try_text(const char *text) {
    int64_t whole = 0;
    double number = 0;
    uint64_t bytes = 0;
    double seconds = 0;
    bool flag = false;
    stk_error err = {0};
    stk_deadline deadline = {0};
    stk_slice slice = {0};
    stk_in_flight_list list = {0};
    (void)stk_parse_int(text, &whole);
    (void)stk_parse_bool(text, &flag);
    (void)stk_parse_bytes(text, &bytes);
    FUZZ_REQUIRE(!stk_parse_double(text, &number) || !isnan(number));
    FUZZ_REQUIRE(!stk_parse_duration(text, &seconds) || (seconds >= 0 && isfinite(seconds)));
    if (stk_deadline_read(&deadline, text, NOON_NS, &err) == STK_OK) {
        FUZZ_REQUIRE(deadline.left_s > 0 && deadline.moment[0] != '\0');
    } else {
        FUZZ_REQUIRE(err.status == STK_ERR_USAGE && err.message[0] != '\0');
    }
    stk_error_clear(&err);
    if (stk_slice_read(&slice, "--reserve", text, &err) == STK_OK) {
        FUZZ_REQUIRE(slice.value >= 0 && isfinite(slice.value));
        FUZZ_REQUIRE(!slice.is_share || slice.value <= 1);
    }
    stk_error_clear(&err);
    if (stk_in_flight_parse(text, &list, &err) != STK_OK) {
        FUZZ_REQUIRE(err.message[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    FUZZ_REQUIRE(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    try_text(text);
    free(text);
    return 0;
}
