/* test_supervise_output.c - output is passed on, kept and heard, byte for byte. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "supervise/output/output.h"
#include "supervise/output/transcript.h"

#define PATIENCE_S 60 /* with a busy machine */

/* What was heard, a line each, with bars at both ends. */
typedef struct ear {
    pthread_mutex_t lock;
    stk_str lines;
    bool counts_only;
    size_t count;
} ear;

typedef struct play {
    char log[300];
    char out[300]; /* files that output is passed on to */
    char err[300];
    int out_fd, err_fd;
    int out_end, err_end;
    ear heard;
    stk_output *output;
} play;

static void listen_to(void *user, const char *line, size_t length, double at_s) {
    ear *e = user;
    pthread_mutex_lock(&e->lock);
    e->count++;
    if (!e->counts_only) {
        stk_str_append(&e->lines, "|");
        stk_str_append_bytes(&e->lines, line, length);
        stk_str_append(&e->lines, at_s >= 0 ? "|\n" : "early\n");
    }
    pthread_mutex_unlock(&e->lock);
}

static size_t heard_count(play *p) {
    pthread_mutex_lock(&p->heard.lock);
    size_t count = p->heard.count;
    pthread_mutex_unlock(&p->heard.lock);
    return count;
}

/* Opens with files to pass on to where out_fd and err_fd are 0. */
static bool begin(play *p) {
    const char *folder = check_folder();
    stk_error err = {0};
    snprintf(p->log, sizeof p->log, "%s/log", folder);
    snprintf(p->out, sizeof p->out, "%s/out", folder);
    snprintf(p->err, sizeof p->err, "%s/err", folder);
    p->out_fd = p->out_fd != 0 ? p->out_fd : open(p->out, O_WRONLY | O_CREAT, 0666);
    p->err_fd = p->err_fd != 0 ? p->err_fd : open(p->err, O_WRONLY | O_CREAT, 0666);
    pthread_mutex_init(&p->heard.lock, NULL);
    stk_output_config config = {.out = p->out_fd,
                                .err = p->err_fd,
                                .log_path = p->log,
                                .start_ns = stk_clock_ns(),
                                .on_line = listen_to,
                                .user = &p->heard};
    if (stk_output_open(&p->output, &config, &p->out_end, &p->err_end, &err) != STK_OK) {
        CHECK_FAIL("open failed: %s", err.message);
        return false;
    }
    return true;
}

static void finish(play *p) {
    stk_output_close(p->output, PATIENCE_S);
    close(p->out_end);
    close(p->err_end);
    close(p->out_fd);
    close(p->err_fd);
    stk_str_free(&p->heard.lines);
}

static void say(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t put = write(fd, bytes, size);
        if (put < 0 && errno != EINTR) {
            CHECK_FAIL("writing failed: %s", strerror(errno));
            return;
        }
        bytes += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
}

/* The bytes of a stream from the log's records, which must have the form that output.h promises. */
static void rebuild(const char *log, size_t size, char stream, stk_str *bytes) {
    const char *end = log + size;
    while (log < end) {
        const char *newline = memchr(log, '\n', (size_t)(end - log));
        REQUIRE(newline != NULL && newline - log >= STK_TRANSCRIPT_STAMP);
        char mark = log[12];
        CHECK(log[6] == '.' && log[10] == ' ' && log[13] == ' ');
        CHECK(log[11] == 'o' || log[11] == 'e');
        CHECK(mark == ' ' || mark == 'r' || mark == '+');
        if (log[11] == stream) {
            size_t length = (size_t)(newline - log) - STK_TRANSCRIPT_STAMP;
            stk_str_append_bytes(bytes, log + STK_TRANSCRIPT_STAMP, length);
            stk_str_append(bytes, mark == ' ' ? "\n" : mark == 'r' ? "\r" : "");
        }
        log = newline + 1;
    }
}

static bool is_file(const char *path, const char *bytes, size_t size) {
    stk_error err = {0};
    char *data = NULL;
    size_t length = 0;
    bool same = stk_file_read(path, 0, &data, &length, &err) == STK_OK && length == size &&
                memcmp(data, bytes, size) == 0;
    stk_mem_free(data);
    return same;
}

static bool is_logged(const play *p, char stream, const char *bytes, size_t size) {
    stk_error err = {0};
    stk_str rebuilt = {0};
    char *log = NULL;
    size_t length = 0;
    bool same = stk_file_read(p->log, 0, &log, &length, &err) == STK_OK;
    if (same) {
        rebuild(log, length, stream, &rebuilt);
        same = rebuilt.length == size && memcmp(stk_str_text(&rebuilt), bytes, size) == 0;
    }
    stk_mem_free(log);
    stk_str_free(&rebuilt);
    return same;
}

/* Says it in pieces of `part` bytes, and checks that it arrives everywhere. */
static void comes_through(const char *bytes, size_t size, size_t part, const char *lines) {
    play p = {0};
    if (!begin(&p)) {
        return;
    }
    for (size_t at = 0; at < size; at += part) {
        say(p.out_end, bytes + at, part < size - at ? part : size - at);
        if (part < size) {
            usleep(2000);
        }
    }
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK(is_file(p.out, bytes, size));
    CHECK(is_file(p.err, "", 0));
    CHECK(is_logged(&p, 'o', bytes, size));
    CHECK(is_logged(&p, 'e', "", 0));
    CHECK_STR(stk_str_text(&p.heard.lines), lines);
    CHECK_INT(stk_output_bytes(p.output), size);
    finish(&p);
}

static void lines_of_every_kind(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *lines; /* as heard */
    } cases[] = {
        {"one\ntwo\n", 8, "|one|\n|two|\n"},
        {"\n\n\n", 3, "||\n||\n||\n"},
        {"dos\r\n\r\nline\r\n", 13, "|dos|\n||\n|line|\n"},
        {"\r 1%\r 2%\r 3%\n", 13, "||\n| 1%|\n| 2%|\n| 3%|\n"},
        {"a\r\r\nb\r", 6, "|a|\n||\n|b|\n"},
        {"no end", 6, "|no end|\n"},
        {"\r", 1, "||\n"},
        {"x\n\ry\n", 5, "|x|\n||\n|y|\n"},
        {"+ o  \n e\n", 9, "|+ o  |\n| e|\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        comes_through(cases[i].bytes, cases[i].size, cases[i].size, cases[i].lines);
        comes_through(cases[i].bytes, cases[i].size, 1, cases[i].lines);
    }
}

/* Both pipes at once; what is one stream's stays one stream's. */
typedef struct speaker {
    int fd;
    const char *bytes;
    size_t size;
    size_t part; /* of one write, at most */
} speaker;

static void *speak(void *argument) {
    const speaker *s = argument;
    size_t part = 1;
    for (size_t at = 0; at < s->size; at += part, part = part * 7 % s->part + 1) {
        say(s->fd, s->bytes + at, part < s->size - at ? part : s->size - at);
    }
    return NULL;
}

static char *room_for(size_t size) {
    char *bytes = malloc(size);
    if (bytes == NULL) {
        perror("malloc");
        exit(1);
    }
    return bytes;
}

static char *any_bytes(size_t size, unsigned seed, bool ends) {
    char *bytes = room_for(size);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned value = seed >> 16;
        bytes[i] = (char)(value & 0xff);
        if (ends && value % 19 == 0) {
            bytes[i] = value % 3 == 0 ? '\r' : '\n';
        }
    }
    return bytes;
}

static void binary_on_both_at_once(void) {
    size_t size = check_is_quick() ? 300000 : 3000000;
    char *first = any_bytes(size, 1, true);
    char *second = any_bytes(size, 2, false);
    play p = {.heard.counts_only = true};
    REQUIRE(begin(&p));
    speaker speakers[] = {{p.out_end, first, size, 5000}, {p.err_end, second, size, 90000}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, speak, &speakers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK(is_file(p.out, first, size));
    CHECK(is_file(p.err, second, size));
    CHECK(is_logged(&p, 'o', first, size));
    CHECK(is_logged(&p, 'e', second, size));
    CHECK_INT(stk_output_bytes(p.output), 2 * size);
    finish(&p);
    free(first);
    free(second);
}

/* STK_TEST_OUTPUT_MB=100 measures by hand. */
static void very_much_in_short_lines(void) {
    const char *wish = getenv("STK_TEST_OUTPUT_MB");
    size_t size = (wish != NULL ? (size_t)atoi(wish) : check_is_quick() ? 1 : 20) * 1000000;
    play p = {.heard.counts_only = true};
    REQUIRE(begin(&p));
    char *bytes = room_for(size + 64);
    size_t lines = 0;
    size_t length = 0;
    while (length < size) {
        length += (size_t)sprintf(bytes + length, "step %zu loss 0.5\n", lines++);
    }
    int64_t began_ns = stk_clock_ns();
    say(p.out_end, bytes, length);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    if (wish != NULL) {
        printf("  %zu lines, %zu bytes in %.3f s\n", lines, length, stk_clock_since_s(began_ns));
    }
    CHECK_INT(heard_count(&p), lines);
    CHECK(is_file(p.out, bytes, length));
    CHECK(is_logged(&p, 'o', bytes, length));
    finish(&p);
    free(bytes);
}

/* It is heard while it stands, once for what is new in it, and the log has it. */
static void a_line_that_never_ends(void) {
    play p = {0};
    REQUIRE(begin(&p));
    char said[4000];
    size_t length = 0;
    for (; heard_count(&p) == 0 && length < sizeof said; length++) {
        said[length] = (char)('a' + (char)(length % 26));
        say(p.out_end, said + length, 1);
        usleep(10000);
    }
    CHECK(heard_count(&p) == 1);
    CHECK(length > 10); /* not at the first byte */
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    size_t heard = heard_count(&p);
    CHECK(heard == 1 || heard == 2);
    CHECK(is_logged(&p, 'o', said, length));
    CHECK(is_file(p.out, said, length));
    say(p.out_end, "\n", 1);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK_INT(heard_count(&p), heard); /* its end brought nothing new */
    finish(&p);
}

static void a_long_line(void) {
    size_t size = 10000000;
    play p = {0};
    REQUIRE(begin(&p));
    char *bytes = room_for(size);
    memset(bytes, 'x', size);
    say(p.out_end, bytes, size);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK_INT(heard_count(&p), 1);
    CHECK_INT(p.heard.lines.length, STK_OUTPUT_LINE + 3);
    CHECK(is_logged(&p, 'o', bytes, size));
    CHECK(is_file(p.out, bytes, size));
    finish(&p);
    free(bytes);
}

/* One command after another; the end of all writers is the end, and nothing to spin on. */
static void settles_again_and_after_the_end(void) {
    play p = {0};
    REQUIRE(begin(&p));
    CHECK(stk_output_bytes(p.output) == 0);
    say(p.out_end, "first", 5);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    say(p.err_end, "second\n", 7);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    say(p.out_end, "third\n", 6); /* another command's, which does not go on with the first */
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    close(p.out_end);
    p.out_end = -1;
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK_STR(stk_str_text(&p.heard.lines), "|first|\n|second|\n|third|\n");
    CHECK(is_logged(&p, 'o', "firstthird\n", 11));
    CHECK(is_logged(&p, 'e', "second\n", 7));
    finish(&p);
}

/* As `head` would: whoever reads no more is passed nothing more, and the log has all. */
static void nobody_reads_any_more(void) {
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    /* Now, since a process that starts later, such as one that syncs a log, would have it open. */
    close(fds[0]);
    play p = {.out_fd = fds[1]};
    REQUIRE(begin(&p));
    say(p.out_end, "one\n", 4);
    CHECK(!stk_output_flush(p.output, PATIENCE_S));
    say(p.out_end, "two\n", 4);
    say(p.err_end, "three\n", 6);
    CHECK(!stk_output_flush(p.output, PATIENCE_S));
    say(p.err_end, "four\n", 5);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK(is_logged(&p, 'o', "one\ntwo\n", 8));
    CHECK(is_file(p.err, "three\nfour\n", 11));
    finish(&p);
}

static void nowhere_to_pass_on_to(void) {
    play p = {.out_fd = -1, .err_fd = 999999};
    REQUIRE(begin(&p));
    say(p.out_end, "one\n", 4);
    say(p.err_end, "two\n", 4);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK(is_logged(&p, 'o', "one\n", 4));
    CHECK(is_logged(&p, 'e', "two\n", 4));
    finish(&p);
}

static void without_a_log(void) {
    const char *folder = check_folder();
    char path[300];
    stk_error err = {0};
    stk_output *output = NULL;
    int out_end = -1;
    int err_end = -1;
    snprintf(path, sizeof path, "%s/out", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    stk_output_config config = {.out = fd, .err = -1};
    REQUIRE_OK(stk_output_open(&output, &config, &out_end, &err_end, &err), &err);
    say(out_end, "one\ntwo", 7);
    CHECK(stk_output_flush(output, PATIENCE_S));
    CHECK(stk_output_error(output, &err) == STK_OK);
    stk_output_close(output, PATIENCE_S);
    CHECK(is_file(path, "one\ntwo", 7));
    close(out_end);
    close(err_end);
    close(fd);
}

/* A full pipe: the command waits, its owner does not, and what was said is in the log. */
static void stuck(int reader, int writer) {
    play p = {.out_fd = writer};
    REQUIRE(begin(&p));
    size_t size = 900000; /* more than what takes it, less than what keeps it for us */
    size_t pipe_size = (size_t)fcntl(p.out_end, F_GETPIPE_SZ);
    size = pipe_size < size ? pipe_size : size;
    char *bytes = any_bytes(size, 3, true);
    say(p.out_end, bytes, size);
    CHECK(!stk_output_flush(p.output, 0.3));
    bool logged = false;
    for (int i = 0; i < PATIENCE_S * 20 && !logged; i++) { /* it may come late on a busy machine */
        logged = is_logged(&p, 'o', bytes, size);
        usleep(50000);
    }
    CHECK(logged);
    /* Whoever reads again gets what comes from then on. */
    char *got = room_for(size);
    CHECK(fcntl(reader, F_SETFL, O_NONBLOCK) == 0);
    ssize_t length = read(reader, got, size);
    CHECK(length > 0 && memcmp(got, bytes, (size_t)length) == 0);
    (void)stk_output_flush(p.output, PATIENCE_S); /* what of it comes late is told of here */
    while (read(reader, got, size) > 0) {
    }
    say(p.out_end, "again\n", 6);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK(read(reader, got, size) == 6 && memcmp(got, "again\n", 6) == 0);
    CHECK((fcntl(writer, F_GETFL) & O_NONBLOCK) == 0); /* it is not only ours */
    say(p.out_end, bytes, size);
    stk_output_close(p.output, 0.1);
    p.output = NULL;
    close(reader);
    finish(&p);
    free(got);
    free(bytes);
}

static void a_pipe_that_is_full(void) {
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    stuck(fds[0], fds[1]);
}

/* A terminal that was stopped, as by Ctrl-S. */
static void a_terminal_that_takes_nothing(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        CHECK_SKIP("there are no pseudo-terminals");
    }
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    play p = {.out_fd = terminal};
    REQUIRE(begin(&p));
    char *bytes = any_bytes(300000, 4, true);
    say(p.out_end, bytes, 50000);
    CHECK(!stk_output_flush(p.output, 0.3));
    stk_output_close(p.output, 0.1);
    p.output = NULL;
    close(master);
    finish(&p);
    free(bytes);
}

/* The log fails and recovers; what is missing is said in its place, and only there. */
static void a_disk_that_is_full_for_a_while(void) {
    play p = {0};
    REQUIRE(begin(&p));
    struct rlimit before;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    stk_error err = {0};
    say(p.err_end, "good\n", 5);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    CHECK(stk_output_error(p.output, &err) == STK_OK);
    struct rlimit small = {.rlim_cur = 60, .rlim_max = before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    say(p.err_end, "fits\nis too much for it\npart", 28);
    stk_output_flush(p.output, PATIENCE_S);
    say(p.err_end, "\nmore\n", 6);
    stk_output_flush(p.output, PATIENCE_S);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(stk_output_error(p.output, &err) == STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, p.log);
    say(p.err_end, "well\n", 5);
    CHECK(stk_output_flush(p.output, PATIENCE_S));
    char *log = NULL;
    size_t length = 0;
    stk_error_clear(&err);
    REQUIRE_OK(stk_file_read(p.log, 0, &log, &length, &err), &err);
    const char *const texts[] = {"e  good\n", "e  fits\n",
                                 "!  29 bytes could not be written here\n", "e  well\n"};
    const char *at = log;
    for (size_t i = 0; i < 4; i++) {
        const char *line_end = strchr(at, '\n');
        REQUIRE(line_end != NULL && line_end - at > 11);
        size_t text = strlen(texts[i]);
        CHECK((size_t)(line_end - at) + 1 == 11 + text && memcmp(at + 11, texts[i], text) == 0);
        at = line_end + 1;
    }
    CHECK(*at == '\0');
    CHECK_CONTAINS(stk_str_text(&p.heard.lines), "|is too much for it|\n|part|\n|more|\n|well|\n");
    stk_mem_free(log);
    finish(&p);
}

static void what_cannot_be_opened(void) {
    stk_error err = {0};
    stk_output *output = NULL;
    int out_end = 0;
    int err_end = 0;
    stk_output_config config = {.out = -1, .err = -1, .log_path = "/nowhere/at/all"};
    CHECK(stk_output_open(&output, &config, &out_end, &err_end, &err) == STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "/nowhere/at/all");
    CHECK(output == NULL && out_end == -1 && err_end == -1);
    char path[300];
    snprintf(path, sizeof path, "%s/log", check_folder());
    config.log_path = path;
    for (int i = 0; i < 3; i++) {
        stk_error_clear(&err);
        stk_mem_fail_after(i);
        stk_status status = stk_output_open(&output, &config, &out_end, &err_end, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_ERR_MEMORY);
    }
    stk_output_close(NULL, 1);
}

static void stamps_keep_their_width(void) {
    char stamp[STK_TRANSCRIPT_STAMP + 1];
    stk_transcript_stamp(stamp, 12345678901, 'o', ' ');
    CHECK_STR(stamp, "    12.345 o  ");
    stk_transcript_stamp(stamp, -5, 'e', '+');
    CHECK_STR(stamp, "     0.000 e+ ");
    stk_transcript_stamp(stamp, 999999999999999, 'o', 'r');
    CHECK_STR(stamp, "999999.999 or ");
    stk_transcript_stamp(stamp, 1000000000000000, 'o', 'r');
    CHECK_STR(stamp, "   1000000 or ");
}

static const check_test tests[] = {
    TEST(lines_of_every_kind),
    TEST(binary_on_both_at_once),
    TEST(very_much_in_short_lines),
    TEST(a_line_that_never_ends),
    TEST(a_long_line),
    TEST(settles_again_and_after_the_end),
    TEST(nobody_reads_any_more),
    TEST(nowhere_to_pass_on_to),
    TEST(without_a_log),
    TEST(a_pipe_that_is_full),
    TEST(a_terminal_that_takes_nothing),
    TEST(a_disk_that_is_full_for_a_while),
    TEST(what_cannot_be_opened),
    TEST(stamps_keep_their_width),
};

CHECK_MAIN(tests)
