/*
 * process_provider.c - credential_process: a command of the profile that prints credentials as
 * JSON.
 *
 * The command is split into words as a shell would split them, but no shell runs and nothing is
 * expanded. Its standard input is empty; its standard error is dropped, because it may contain
 * secrets. Its time is limited. It runs in a process group of its own, so that it can be killed
 * together with everything that it has started.
 */
#include "storage/s3/providers.h"

#ifdef STK_HAVE_S3

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/process.h"
#include "base/threads/thread.h"

#define WORDS_MAX 64
#define BLANKS " \t\r\n"

/* The words of a command; they point into one copy of its text. */
typedef struct command_words {
    char *text;                /* owned */
    char *list[WORDS_MAX + 1]; /* the last one is NULL */
    size_t count;
} command_words;

/* Copies one word from *from to *to, without its quotes; false when a quote is not closed. */
static bool split_word(const char **from, char **to) {
    char quote = '\0';
    for (; **from != '\0' && (quote != '\0' || strchr(BLANKS, **from) == NULL); (*from)++) {
        char c = **from;
        if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote != '\0' && c == quote) {
            quote = '\0';
        } else if (c == '\\' &&
                   (quote == '\0' || (quote == '"' && ((*from)[1] == '"' || (*from)[1] == '\\')))) {
            (*from)++;
            if (**from == '\0') {
                return false;
            }
            *(*to)++ = **from;
        } else {
            *(*to)++ = c;
        }
    }
    *(*to)++ = '\0';
    return quote == '\0';
}

/* Splits a command. False when it is empty, has too many words or an open quote. */
static bool split(const char *command, command_words *out) {
    const char *from = command + strspn(command, BLANKS);
    char *to = out->text;
    while (*from != '\0') {
        if (out->count == WORDS_MAX) {
            return false;
        }
        out->list[out->count++] = to;
        if (!split_word(&from, &to)) {
            return false;
        }
        from += strspn(from, BLANKS);
    }
    out->list[out->count] = NULL;
    return out->count > 0;
}

/* How the command ended. */
typedef enum process_end {
    ENDED,
    TOO_LONG, /* it took more than its time */
    TOO_MUCH  /* it printed more than STK_S3_ANSWER_MAX bytes */
} process_end;

/* Reads until the other end is closed, the buffer is full or the time is over. */
static process_end collect(int fd, int64_t deadline_ns, char *buffer, size_t *size) {
    for (;;) {
        int64_t left_ms = (deadline_ns - stk_clock_ns()) / 1000000;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = left_ms > 0 ? poll(&wait, 1, (int)left_ms) : 0;
        if (ready == 0) {
            return TOO_LONG;
        }
        if (ready < 0) {
            continue; /* a signal */
        }
        ssize_t got = read(fd, buffer + *size, STK_S3_ANSWER_MAX + 1 - *size);
        if (got > 0) {
            *size += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return ENDED;
        }
        if (*size > STK_S3_ANSWER_MAX) {
            return TOO_MUCH;
        }
    }
}

/* Waits for the command's end until the deadline, then kills it; kills at once unless `wait`. */
static process_end finish(pid_t pid, int64_t deadline_ns, bool wait, int *status) {
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    process_end how = ENDED;
    *status = 0;
    pid_t done = 0;
    while (wait && done == 0) {
        done = waitpid(pid, status, WNOHANG);
        if (done == 0 && stk_clock_ns() >= deadline_ns) {
            how = TOO_LONG;
            break;
        }
        if (done == 0) {
            nanosleep(&moment, NULL);
        }
    }
    if (done == 0) {
        kill(-pid, SIGKILL);
        while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
        }
    }
    return how;
}

/* Fails if the command did. */
static stk_status check_end(process_end how, int status, int limit_s, const char *source,
                            stk_error *err) {
    if (how == TOO_LONG) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "%s did not end within %d s and was stopped; run its command by hand to "
                        "see what it waits for",
                        source, limit_s);
    }
    if (how == TOO_MUCH) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "%s printed more than %zu bytes, which cannot be credentials", source,
                        STK_S3_ANSWER_MAX);
    }
    if (WIFSIGNALED(status)) {
        return STK_FAIL(err, STK_ERR_STORAGE, "%s was ended by signal %d", source,
                        WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != 0) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "%s failed with exit code %d; run its command by hand to see why", source,
                        WEXITSTATUS(status));
    }
    return STK_OK;
}

/* Runs a command; its output goes into buffer, which has STK_S3_ANSWER_MAX bytes and two more. */
static stk_status run(const command_words *command, int limit_s, const char *source, char *buffer,
                      size_t *size, stk_error *err) {
    int ends[2];
    int status = 0;
    pid_t pid = 0;
    if (stk_pipe(ends, 0) != 0) {
        return STK_FAIL(err, STK_ERR_MEMORY, "cannot run %s: %s", source, strerror(errno));
    }
    int error = stk_process_start(command->list, ends[1], &pid);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        return STK_FAIL(err, STK_ERR_USAGE, "cannot run %s: its command %s: %s", source,
                        command->list[0], strerror(error));
    }
    int64_t deadline_ns = stk_clock_ns() + (int64_t)limit_s * 1000000000;
    process_end how = collect(ends[0], deadline_ns, buffer, size);
    process_end end = finish(pid, deadline_ns, how == ENDED, &status);
    close(ends[0]);
    return check_end(how != ENDED ? how : end, status, limit_s, source, err);
}

stk_status stk_s3_from_process(const char *command, const char *profile, int limit_s,
                               stk_s3_credentials *credentials, stk_error *err) {
    size_t room = strlen(command) + 1;
    command_words words = {.text = stk_mem_new(room, 1)};
    char *source = stk_str_format("credential_process of the AWS profile '%s'", profile);
    char *buffer = stk_mem_new(STK_S3_ANSWER_MAX + 2, 1);
    size_t size = 0;
    stk_status status = STK_OK;
    if (words.text == NULL || source == NULL || buffer == NULL) {
        status = STK_FAIL_MEMORY(err, "credentials");
    } else if (!split(command, &words)) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "cannot run %s: a quote is not closed, or it has more than %d words",
                          source, WORDS_MAX);
    } else {
        status = run(&words, limit_s, source, buffer, &size, err);
    }
    STK_THEN(status,
             stk_s3_credentials_parse(buffer, size, "SessionToken", source, credentials, err));
    if (buffer != NULL) {
        explicit_bzero(buffer, size);
    }
    stk_mem_free(buffer);
    stk_mem_free(source);
    if (words.text != NULL) {
        explicit_bzero(words.text, room);
    }
    stk_mem_free(words.text);
    return status;
}

#endif
