/*
 * stacks.c - reads /proc process by process and thread by thread.
 *
 * The reading must not hang with the command. The files read here need no lock that a process may
 * hold for long, with one exception: the command line is read from the process's memory, whose lock
 * a thread that waits for a device may hold. In that case the kernel's short name is shown instead.
 * Links of open files are read, never followed.
 */
#include "supervise/process/stacks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hide.h"
#include "base/threads/proc_tree.h"
#include "report/text/text.h"

#define PROCESSES 200      /* limit of processes described */
#define THREADS 64         /* limit of threads per process */
#define FILES 20           /* limit of open files per process */
#define COMMAND_BYTES 400  /* limit of a command line */
#define TEXT_BYTES 1048576 /* length of the text after which no further process is added */

typedef struct stacks_text {
    stk_str *text;
    /* What could not be read for lack of permission: */
    bool no_stacks;  /* kernel stacks */
    bool no_calls;   /* system calls */
    bool no_files;   /* open files */
    bool no_threads; /* lists of threads */
} stacks_text;

typedef struct thread_state {
    char name[64];
    char state;
} thread_state;

static const char *state_words(char state) {
    switch (state) {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps";
    case 'D':
        return "waits for a device";
    case 'Z':
        return "has ended";
    case 'T':
        return "is stopped";
    case 't':
        return "is traced";
    default:
        return "is in another state";
    }
}

static bool is_denied(void) {
    return errno == EACCES || errno == EPERM;
}

/* Reads the beginning of a file and ends it with NUL; returns its length, -1: not readable. */
static ssize_t read_start(const char *path, char *text, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -1;
    }
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length + 1 < room) {
        got = read(fd, text + length, room - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    int why = errno;
    close(fd);
    errno = why;
    text[length] = '\0';
    return got < 0 ? -1 : (ssize_t)length;
}

/* Opens /proc/PID/`what`. */
static DIR *open_folder(pid_t pid, const char *what) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, what);
    return opendir(path);
}

/* The next entry that is a number; -1: none. */
static long next_number(DIR *folder) {
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (end != entry->d_name && *end == '\0') {
            return number;
        }
    }
    return -1;
}

/* Appends how many things were left out. */
static void append_rest(stk_str *text, size_t rest, const char *things) {
    if (rest > 0) {
        stk_str_appendf(text, "  and %zu more %s\n", rest, things);
    }
}

/* Reads name and state. The name may hold blanks and brackets; nothing after it does. */
static bool read_thread(const char *base, thread_state *t) {
    char path[96];
    char text[512];
    snprintf(path, sizeof path, "%s/stat", base);
    if (read_start(path, text, sizeof text) <= 0) {
        return false;
    }
    char *open = strchr(text, '(');
    char *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open || close[1] != ' ') {
        return false;
    }
    *close = '\0';
    snprintf(t->name, sizeof t->name, "%.63s", open + 1);
    t->state = close[2];
    return true;
}

/* Appends one line of a file; false: it is empty. */
static bool read_line(const char *base, const char *what, char *text, size_t room) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", base, what);
    ssize_t length = read_start(path, text, room);
    text[length > 0 ? strcspn(text, "\n") : 0] = '\0';
    return length >= 0;
}

static void append_kernel_stack(stacks_text *v, const char *base) {
    char path[96];
    char text[4096];
    snprintf(path, sizeof path, "%s/stack", base);
    if (read_start(path, text, sizeof text) < 0) {
        v->no_stacks = v->no_stacks || is_denied();
        return;
    }
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (line[0] != '\0') {
            stk_str_append(v->text, "      ");
            stk_report_append_line(v->text, line);
            stk_str_append(v->text, "\n");
        }
    }
}

/* Describes a thread; returns its state, 0: it has ended. */
static char append_thread(stacks_text *v, pid_t pid, long number) {
    char base[64];
    char where[160];
    thread_state t;
    snprintf(base, sizeof base, "/proc/%lld/task/%ld", (long long)pid, number);
    if (!read_thread(base, &t)) {
        return 0;
    }
    stk_str_appendf(v->text, "  thread %ld ", number);
    stk_report_append_line(v->text, t.name);
    stk_str_appendf(v->text, ": %c (%s)", t.state, state_words(t.state));
    if (read_line(base, "wchan", where, sizeof where) && where[0] != '\0' &&
        strcmp(where, "0") != 0) {
        stk_str_append(v->text, ", in ");
        stk_report_append_line(v->text, where);
    }
    if (read_line(base, "syscall", where, sizeof where)) {
        stk_str_append(v->text, ", system call ");
        stk_report_append_line(v->text, where);
    } else {
        v->no_calls = v->no_calls || is_denied();
    }
    stk_str_append(v->text, "\n");
    append_kernel_stack(v, base);
    return t.state;
}

/* Describes the threads; returns whether one of them waits for a device. */
static bool append_threads(stacks_text *v, pid_t pid) {
    DIR *folder = open_folder(pid, "task");
    if (folder == NULL) {
        v->no_threads = v->no_threads || is_denied();
        return false;
    }
    bool blocked = false;
    size_t count = 0;
    for (long number; (number = next_number(folder)) >= 0; count++) {
        if (count < THREADS) {
            blocked = append_thread(v, pid, number) == 'D' || blocked;
        }
    }
    closedir(folder);
    append_rest(v->text, count > THREADS ? count - THREADS : 0, "threads");
    return blocked;
}

static void append_files(stacks_text *v, pid_t pid) {
    DIR *folder = open_folder(pid, "fd");
    if (folder == NULL) {
        v->no_files = v->no_files || is_denied();
        return;
    }
    size_t count = 0;
    for (long number; (number = next_number(folder)) >= 0; count++) {
        char path[64];
        char target[512];
        snprintf(path, sizeof path, "/proc/%lld/fd/%ld", (long long)pid, number);
        ssize_t length = count < FILES ? readlink(path, target, sizeof target - 1) : -1;
        if (length >= 0) {
            target[length] = '\0';
            stk_str_appendf(v->text, "  file %ld ", number);
            stk_report_append_line(v->text, target);
            stk_str_append(v->text, "\n");
        }
    }
    closedir(folder);
    append_rest(v->text, count > FILES ? count - FILES : 0, "files");
}

/* Appends words that are ended by NUL, with secrets hidden. */
static void append_words(stk_str *out, const char *words, size_t length) {
    stk_hider hider = {.arguments = true};
    stk_str line = {0};
    for (size_t at = 0; at < length; at += strlen(words + at) + 1) {
        stk_str_append(&line, at > 0 ? " " : "");
        stk_hide_word(&hider, words + at, &line);
    }
    stk_hide_values(environ, &line);
    out->failed = out->failed || !stk_str_ok(&line);
    stk_report_append_line(out, stk_str_text(&line));
    stk_str_free(&line);
}

/* Appends the command line, or the kernel's short name if it cannot be read. */
static void append_command(stacks_text *v, const stk_proc *proc, bool blocked) {
    char path[64];
    char text[COMMAND_BYTES + 1];
    snprintf(path, sizeof path, "/proc/%lld/cmdline", (long long)proc->pid);
    ssize_t length = blocked ? 0 : read_start(path, text, sizeof text);
    while (length > 0 && text[length - 1] == '\0') {
        length--;
    }
    if (length > 0) {
        append_words(v->text, text, (size_t)length);
    } else {
        stk_str_append(v->text, "[");
        stk_report_append_line(v->text, proc->name);
        stk_str_append(v->text, "]");
    }
}

static void append_process(stacks_text *v, const stk_proc *proc) {
    stk_str threads = {0};
    stacks_text inner = *v;
    inner.text = &threads;
    bool ended = proc->state == 'Z' || proc->state == 'X';
    bool blocked = !ended && append_threads(&inner, proc->pid);
    stk_str *text = v->text;
    *v = inner;
    v->text = text;
    stk_str_appendf(text, "process %lld, started by %lld: %c (%s): ", (long long)proc->pid,
                    (long long)proc->parent, proc->state, state_words(proc->state));
    append_command(v, proc, ended || blocked || proc->state == 'D');
    stk_str_append(text, "\n");
    stk_str_append(text, stk_str_text(&threads));
    stk_str_free_part(text, &threads);
    if (!ended) {
        append_files(v, proc->pid);
    }
}

static void append_denied(const stacks_text *v) {
    const struct {
        bool denied;
        const char *name;
    } parts[] = {{v->no_stacks, "kernel stacks"},
                 {v->no_calls, "system calls"},
                 {v->no_threads, "threads"},
                 {v->no_files, "open files"}};
    const char *before = "may not be read by this user: ";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].denied) {
            stk_str_appendf(v->text, "%s%s", before, parts[i].name);
            before = ", ";
        }
    }
    if (before[0] == ',') {
        stk_str_append(v->text, "\n");
    }
}

void stk_stacks_describe(pid_t root, stk_str *text) {
    stk_proc_tree tree = {0};
    stacks_text v = {.text = text};
    if (!stk_proc_tree_read(&tree, root) || tree.count < 2) {
        stk_str_append(text, "no process can be seen\n");
    }
    size_t begun = text->length;
    size_t done = 1; /* the root comes first */
    while (done < tree.count && done <= PROCESSES && text->length - begun < TEXT_BYTES) {
        append_process(&v, &tree.items[done++]);
    }
    append_rest(text, done < tree.count ? tree.count - done : 0, "processes");
    append_denied(&v);
    stk_proc_tree_free(&tree);
}
