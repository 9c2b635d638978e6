/* test_base_str.c - growing text, nearest words, and parsing of hostile text. */
#include "check.h"

#include "base/mem.h"
#include "base/str.h"

static void appends_grow_the_text(void) {
    stk_str str = {0};
    CHECK_STR(stk_str_text(&str), "");
    CHECK(stk_str_ok(&str));
    stk_str_append(&str, "one");
    stk_str_appendf(&str, " %d %s", 2, "three");
    stk_str_append_bytes(&str, "!?", 1);
    stk_str_append_bytes(&str, NULL, 0);
    CHECK_STR(stk_str_text(&str), "one 2 three!");
    CHECK_INT(str.length, 12);
    stk_str_clear(&str);
    CHECK_STR(stk_str_text(&str), "");
    for (int i = 0; i < 10000; i++) {
        stk_str_append(&str, "ab");
    }
    CHECK_INT(str.length, 20000);
    CHECK_INT(strlen(stk_str_text(&str)), 20000);
    stk_str_free(&str);
    CHECK(str.text == NULL && str.length == 0);
    stk_str_free(&str);
}

static void take_hands_over(void) {
    stk_str str = {0};
    char *empty = stk_str_take(&str);
    CHECK_STR(empty, "");
    stk_mem_free(empty);
    stk_str_append(&str, "text");
    char *text = stk_str_take(&str);
    CHECK_STR(text, "text");
    CHECK(str.text == NULL);
    stk_mem_free(text);
    char *formatted = stk_str_format("%s/%05d", "a", 42);
    CHECK_STR(formatted, "a/00042");
    stk_mem_free(formatted);
}

static void failed_append_is_remembered(void) {
    stk_str str = {0};
    stk_str_append(&str, "kept");
    stk_mem_fail_after(0);
    stk_str_append(&str, "this needs more room than the first piece of memory has");
    stk_mem_fail_after(-1);
    CHECK(!stk_str_ok(&str));
    CHECK_STR(stk_str_text(&str), "kept");
    stk_str_append(&str, "!");
    CHECK_STR(stk_str_text(&str), "kept");
    CHECK(stk_str_take(&str) == NULL);
    stk_mem_fail_after(0);
    CHECK(stk_str_format("%d", 1) == NULL);
    stk_mem_fail_after(-1);
}

static void compares_texts(void) {
    CHECK(stk_str_equal("a", "a"));
    CHECK(!stk_str_equal("a", "A"));
    CHECK(stk_str_equal_nocase("JPG", "jpg"));
    CHECK(stk_str_ends_with_nocase("photo.JPG", ".jpg"));
    CHECK(!stk_str_ends_with_nocase("jpg", ".jpg"));
    CHECK(stk_str_ends_with_nocase("x", ""));
}

static void nearest_finds_what_was_meant(void) {
    static const char *const words[] = {"batch", "budget", "epochs", "lr", "model", "img-size"};
    size_t count = sizeof words / sizeof *words;
    CHECK_STR(stk_str_nearest("bacth", words, count), "batch");
    CHECK_STR(stk_str_nearest("epoch", words, count), "epochs");
    CHECK_STR(stk_str_nearest("MODEL", words, count), "model");
    CHECK_STR(stk_str_nearest("modle", words, count), "model");
    CHECK_STR(stk_str_nearest("img", words, count), "img-size");
    CHECK_STR(stk_str_nearest("ir", words, count), "lr");
    CHECK(stk_str_nearest("zzzzzz", words, count) == NULL);
    CHECK(stk_str_nearest("x", words, count) == NULL);
    CHECK(stk_str_nearest("", words, count) == NULL);
    CHECK(stk_str_nearest("batch", words, 0) == NULL);
    char endless[4096];
    memset(endless, 'b', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    CHECK(stk_str_nearest(endless, words, count) == NULL);
    const char *const long_word[] = {endless};
    CHECK(stk_str_nearest("bbb", long_word, 1) == NULL);
}

static void parses_whole_numbers(void) {
    int64_t value = 7;
    CHECK(stk_parse_int("42", &value) && value == 42);
    CHECK(stk_parse_int("  -3 ", &value) && value == -3);
    CHECK(stk_parse_int("9223372036854775807", &value) && value == INT64_MAX);
    value = 7;
    static const char *const bad[] = {
        "",    " ",   "x",  "4x", "4 2", "1.5", "1e3", "0x10", "9223372036854775808",
        "--1", "+-1", "NaN"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (stk_parse_int(bad[i], &value) || value != 7) {
            CHECK_FAIL("\"%s\" passed for a whole number", bad[i]);
        }
    }
}

static void parses_numbers(void) {
    double value = 7;
    CHECK(stk_parse_double("0.1", &value) && value == 0.1);
    CHECK(stk_parse_double(" -1e-3 ", &value) && value == -1e-3);
    CHECK(stk_parse_double(".5", &value) && value == 0.5);
    CHECK(stk_parse_double("+2.", &value) && value == 2);
    CHECK(stk_parse_double("1e-999", &value) && value == 0);
    value = 7;
    static const char *const bad[] = {"",    " ",     ".",         "-",   "e5",
                                      "1e",  "inf",   "-Infinity", "nan", "0x1p3",
                                      "1,5", "1e999", "1 2",       "- 1", "1.2.3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (stk_parse_double(bad[i], &value) || value != 7) {
            CHECK_FAIL("\"%s\" passed for a number", bad[i]);
        }
    }
}

static void parses_sizes(void) {
    uint64_t bytes = 7;
    CHECK(stk_parse_bytes("1024", &bytes) && bytes == 1024);
    CHECK(stk_parse_bytes("50G", &bytes) && bytes == 50ull << 30);
    CHECK(stk_parse_bytes("64MiB", &bytes) && bytes == 64ull << 20);
    CHECK(stk_parse_bytes("64MIB", &bytes) && bytes == 64ull << 20);
    CHECK(stk_parse_bytes(" 1.5 kB ", &bytes) && bytes == 1536);
    CHECK(stk_parse_bytes("2t", &bytes) && bytes == 2ull << 40);
    CHECK(stk_parse_bytes("10b", &bytes) && bytes == 10);
    CHECK(stk_parse_bytes("0", &bytes) && bytes == 0);
    bytes = 7;
    static const char *const bad[] = {"",     "G",   "-1",   "1X",    "1GG",  "1iB", "5e30",
                                      "1e9T", "nan", "infG", "12 34", "1G 2", "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (stk_parse_bytes(bad[i], &bytes) || bytes != 7) {
            CHECK_FAIL("\"%s\" passed for a size", bad[i]);
        }
    }
}

static void parses_durations(void) {
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"11m", 660},         {"2h30m", 9000}, {"90s", 90},        {"1.5h", 5400},
                {"00:11:00", 660},    {"11:30", 690},  {"660", 660},       {"1d", 86400},
                {"1D2H", 93600},      {"0", 0},        {" 1h 30m ", 5400}, {"0:0.5", 0.5},
                {"100:00:00", 360000}};
    double seconds;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        seconds = -1;
        if (!stk_parse_duration(good[i].text, &seconds) || seconds != good[i].seconds) {
            CHECK_FAIL("\"%s\" is %g s, expected %g", good[i].text, seconds, good[i].seconds);
        }
    }
    static const char *const bad[] = {
        "",       " ",      "m",       "-5",     "5x",     "30m2h", "1h1h", "1h30", "1m-5s",
        "1m -5s", "1:60",   "1:2:3:4", "1.5:30", "1e2:00", ":30",   "30:",  "1:-5", "1: 5",
        "inf",    "1e308d", "nan",     "0x5m",   "500ms",  "1:30m", "1:xx", "1e999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        seconds = 7;
        if (stk_parse_duration(bad[i], &seconds) || seconds != 7) {
            CHECK_FAIL("\"%s\" passed for a duration (%g)", bad[i], seconds);
        }
    }
}

static void parses_truth(void) {
    bool value = false;
    CHECK(stk_parse_bool("yes", &value) && value);
    CHECK(stk_parse_bool("OFF", &value) && !value);
    CHECK(stk_parse_bool(" true ", &value) && value);
    CHECK(stk_parse_bool("0", &value) && !value);
    CHECK(stk_parse_bool("1", &value) && value);
    static const char *const bad[] = {"", " ", "y", "2", "truee", "on off", "10", "nope"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (stk_parse_bool(bad[i], &value)) {
            CHECK_FAIL("\"%s\" passed for a truth value", bad[i]);
        }
    }
}

static void shows_durations_and_sizes(void) {
    char buf[32];
    CHECK_STR(stk_format_duration(buf, sizeof buf, 41), "0:41");
    CHECK_STR(stk_format_duration(buf, sizeof buf, 725), "12:05");
    CHECK_STR(stk_format_duration(buf, sizeof buf, 3723), "1:02:03");
    CHECK_STR(stk_format_duration(buf, sizeof buf, 59.6), "1:00");
    CHECK_STR(stk_format_duration(buf, sizeof buf, -5), "0:00");
    CHECK_STR(stk_format_duration(buf, sizeof buf, NAN), "0:00");
    CHECK_STR(stk_format_duration(buf, sizeof buf, INFINITY), "9999:00:00");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, 0), "0 B");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, 999), "999 B");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, 412000), "412 kB");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, 999700), "1.0 MB");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, 9960), "10 kB");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, 1300000000), "1.3 GB");
    CHECK_STR(stk_format_bytes(buf, sizeof buf, UINT64_MAX), "18446744 TB");
    CHECK_INT(strlen(stk_format_duration(buf, 4, 3723)), 3);
    CHECK_STR(stk_format_span(0.0349).text, "0.035 s");
    CHECK_STR(stk_format_span(0.999).text, "1 s");
    CHECK_STR(stk_format_amount(0.2345, 2, "epoch").text, "0.23 epochs");
    CHECK_STR(stk_format_amount(0.998, 2, "epoch").text, "1 epoch");
    CHECK_STR(stk_format_amount(114.4, 2, "epoch").text, "114 epochs");
    CHECK_STR(stk_format_amount(5000, 3, "epoch").text, "5000 epochs");
    CHECK_STR(stk_format_amount(12.43, 3, "epoch").text, "12.4 epochs");
    CHECK_STR(stk_format_amount(0, 2, "picture").text, "0 pictures");
    CHECK_STR(stk_format_amount(1e-5, 2, "epoch").text, "0 epochs");
    CHECK_STR(stk_format_span(9.94).text, "9.9 s");
    CHECK_STR(stk_format_span(9.96).text, "10 s");
    CHECK_STR(stk_format_span(599).text, "599 s");
    CHECK_STR(stk_format_span(1930).text, "32 min");
    CHECK_STR(stk_format_span(19800).text, "5.5 h");
    CHECK_STR(stk_format_span(NAN).text, "0 s");
    CHECK_STR(stk_format_span(-1).text, "0 s");
    CHECK_STR(stk_format_span(INFINITY).text, "9999.0 h");
}

static void counts_are_grouped(void) {
    char buf[32];
    CHECK_STR(stk_format_count(buf, sizeof buf, 0), "0");
    CHECK_STR(stk_format_count(buf, sizeof buf, 999), "999");
    CHECK_STR(stk_format_count(buf, sizeof buf, 1000), "1,000");
    CHECK_STR(stk_format_count(buf, sizeof buf, 1234567), "1,234,567");
    CHECK_STR(stk_format_count(buf, sizeof buf, UINT64_MAX), "18,446,744,073,709,551,615");
    CHECK_STR(stk_format_count(buf, 4, 1234567), "1,2"); /* cut, not written over */
}

static void knows_what_a_terminal_obeys(void) {
    static const struct {
        const char *text;
        int code;
    } cases[] = {{"\x1b", 0x1b},
                 {"\n", 10},
                 {"\x7f", 0x7f},
                 {" ", -1},
                 {"~", -1},
                 {"\xC2\x80", 128},
                 {"\xC2\x9B", 155},
                 {"\xC2\xA0", -1},
                 {"\xC3\x9B", -1},
                 {"\xE2\x80\xA9", -1},
                 {"\xE2\x80\xAA", 0x202A},
                 {"\xE2\x80\xAE", 0x202E},
                 {"\xE2\x80\xAF", -1},
                 {"\xE2\x81\xA5", -1},
                 {"\xE2\x81\xA6", 0x2066},
                 {"\xE2\x81\xA9", 0x2069},
                 {"\xE2\x81\xAA", -1},
                 {"\xF0\x9F\x98\x80", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i].text);
        CHECK_INT(stk_utf8_length(cases[i].text, length), length);
        CHECK_INT(stk_utf8_control(cases[i].text, length), cases[i].code);
    }
}

static const check_test tests[] = {
    TEST(knows_what_a_terminal_obeys),
    TEST(counts_are_grouped),
    TEST(appends_grow_the_text),
    TEST(take_hands_over),
    TEST(failed_append_is_remembered),
    TEST(compares_texts),
    TEST(nearest_finds_what_was_meant),
    TEST(parses_whole_numbers),
    TEST(parses_numbers),
    TEST(parses_sizes),
    TEST(parses_durations),
    TEST(parses_truth),
    TEST(shows_durations_and_sizes),
};

CHECK_MAIN(tests)
