/*
 * torch_probe.c - runs torch_step.py in a process of its own and reads the lines that it prints.
 *
 * The script's standard error is dropped: PyTorch prints many warnings there. Compiling may take
 * minutes, so there is no time-out: only a request to stop ends the script.
 */
#include "probe/torch_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/json.h"
#include "base/threads/process.h"
#include "base/threads/thread.h"
#include "probe/probe_texts.h"

#define POLL_MS 200
#define MOST_LINE ((size_t)1 << 16)

/* What the script has printed so far. */
typedef struct torch_answer {
    const stk_torch_listener *listener;
    stk_str text; /* the line that is not complete yet */
    bool any;     /* the listener was called */
    char *missing;
    size_t room;
} torch_answer;

static void put_number(stk_json_writer *writer, const char *key, double value) {
    stk_json_key(writer, key);
    stk_json_put_double(writer, value);
}

/* What the script is to measure. */
static void write_settings(const stk_step_figures *step, double seconds, stk_str *text) {
    stk_json_writer writer = stk_json_write_to(text, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "model");
    stk_json_put_string(&writer, step->model);
    stk_json_key(&writer, "device");
    stk_json_put_string(&writer, step->device);
    stk_json_key(&writer, "precision");
    stk_json_put_string(&writer, step->precision);
    put_number(&writer, "batch", (double)step->batch);
    put_number(&writer, "img_size", (double)step->img_size);
    put_number(&writer, "classes", (double)step->classes);
    put_number(&writer, "threads", (double)step->threads);
    put_number(&writer, "seconds", seconds);
    stk_json_key(&writer, "inference");
    stk_json_put_bool(&writer, step->inference);
    stk_json_key(&writer, "modes");
    stk_json_begin_array(&writer);
    stk_json_put_string(&writer, "eager");
    stk_json_put_string(&writer, "compile");
    if (strcmp(step->device, "cpu") != 0) { /* with CUDA graphs, which a CPU has not */
        stk_json_put_string(&writer, "reduce-overhead");
    }
    stk_json_end_array(&writer);
    stk_json_end_object(&writer);
}

/* Starts Python on the script. Returns an errno. */
static int start(const char *settings, int out, pid_t *pid) {
    char python[] = "python3";
    char as_text[] = "-c";
    char *list[] = {python, as_text, (char *)(uintptr_t)stk_probe_texts[0].text,
                    (char *)(uintptr_t)settings, NULL};
    return stk_process_start(list, out, pid);
}

static void copy_text(const stk_json *line, const char *key, char *to, size_t room) {
    const char *text = stk_json_string(stk_json_get(line, key));
    snprintf(to, room, "%s", text != NULL ? text : "");
}

/* Reads one line. Lines that are not the script's own are skipped. */
static void read_line(torch_answer *a, const char *text, size_t size) {
    stk_json *line = NULL;
    stk_error ignored = {0};
    if (stk_json_parse(text, size, &line, &ignored) != STK_OK) {
        return;
    }
    if (stk_json_get(line, "missing") != NULL) {
        copy_text(line, "missing", a->missing, a->room);
    } else if (stk_json_get(line, "mode") != NULL) {
        stk_torch_figures f = {
            .images_per_second = stk_json_number(stk_json_get(line, "images_per_second"), NAN),
            .ms_per_step = stk_json_number(stk_json_get(line, "ms_per_step"), NAN),
            .warmup_s = stk_json_number(stk_json_get(line, "warmup_s"), NAN)};
        copy_text(line, "mode", f.mode, sizeof f.mode);
        copy_text(line, "version", f.version, sizeof f.version);
        copy_text(line, "error", f.error, sizeof f.error);
        a->listener->told(a->listener->user, &f);
        a->any = true;
    }
    stk_json_free(line);
}

/* Reads every line that is complete; the beginning of the next one stays. */
static void read_lines(torch_answer *a) {
    const char *text = stk_str_text(&a->text);
    const char *p = text;
    for (const char *end = strchr(p, '\n'); end != NULL; end = strchr(p, '\n')) {
        read_line(a, p, (size_t)(end - p));
        p = end + 1;
    }
    stk_str rest = {0};
    stk_str_append(&rest, p);
    stk_str_free(&a->text);
    a->text = rest;
}

/* Reads until the other end is closed; false when somebody asked to stop. */
static bool read_all(int fd, const stk_stop *stop, torch_answer *a) {
    char block[4096];
    while (a->text.length < MOST_LINE) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, POLL_MS);
        if (stk_stop_asked(stop) != STK_STOP_NONE) {
            return false;
        }
        ssize_t got = ready > 0 ? read(fd, block, sizeof block) : -1;
        if (got > 0) {
            stk_str_append_bytes(&a->text, block, (size_t)got);
            read_lines(a);
        } else if (ready > 0 && (got == 0 || errno != EINTR)) {
            return true;
        }
    }
    return true;
}

/* Runs the script and passes its figures to the listener. */
static stk_status run_script(const char *settings, const stk_stop *stop, torch_answer *a,
                             stk_error *err) {
    int ends[2];
    int ended = 0;
    pid_t pid = 0;
    if (stk_pipe(ends, 0) != 0) {
        return STK_FAIL(err, STK_ERR_MEMORY, "cannot run python3: %s", strerror(errno));
    }
    int error = start(settings, ends[1], &pid);
    close(ends[1]);
    bool stopped = error == 0 && !read_all(ends[0], stop, a);
    close(ends[0]);
    if (error != 0) {
        snprintf(a->missing, a->room, "python3 cannot be run: %s", strerror(error));
        return STK_OK;
    }
    if (stopped) {
        kill(-pid, SIGKILL); /* a group of its own: torch.compile starts processes */
    }
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    return stopped ? STK_FAIL(err, STK_ERR_STOPPED, "stopped while PyTorch was measured") : STK_OK;
}

stk_status stk_probe_torch(const stk_step_figures *step, double seconds, const stk_stop *stop,
                           const stk_torch_listener *listener, char *missing, size_t room,
                           stk_error *err) {
    stk_str settings = {0};
    torch_answer a = {.listener = listener, .missing = missing, .room = room};
    missing[0] = '\0';
    write_settings(step, seconds, &settings);
    stk_status status = stk_str_ok(&settings) ? run_script(stk_str_text(&settings), stop, &a, err)
                                              : STK_FAIL_MEMORY(err, "the comparison");
    if (status == STK_OK && !a.any && missing[0] == '\0') {
        snprintf(missing, room, "python3 ended without an answer");
    }
    stk_str_free(&settings);
    stk_str_free(&a.text);
    return status;
}
