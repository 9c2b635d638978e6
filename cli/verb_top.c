/*
 * verb_top.c - `stoker top`: a run in a terminal, drawn anew twice a second.
 *
 * The picture is drawn on the terminal's alternate screen, with keys unbuffered and not echoed;
 * Ctrl-C is a key like others. However the view ends, screen and keys are restored, and the last
 * picture is printed on the normal screen.
 */
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "run/run_watch.h"
#include "report/observers/lines.h"
#include "report/status/top_draw.h"

#define REDRAW_MS 500
#define PLAIN_COLUMNS 80
#define CTRL_C 3

#define ENTER_VIEW "\x1b[?1049h\x1b[?25l"
#define LEAVE_VIEW "\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define ERASE_LINE "\x1b[K"
#define ERASE_BELOW "\x1b[J"

/* A terminal that is drawn on. */
typedef struct top_terminal {
    struct termios before; /* terminal settings to restore */
    bool keys;             /* the settings were changed */
    stk_lines out;
} top_terminal;

static void on_resize(int number) {
    (void)number; /* the signal only interrupts the wait; the next picture has the new size */
}

static void enter(top_terminal *terminal) {
    struct sigaction action = {.sa_handler = on_resize};
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, NULL);
    terminal->keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &terminal->before) == 0;
    if (terminal->keys) {
        struct termios raw = terminal->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        terminal->keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
}

static void leave(const top_terminal *terminal) {
    ssize_t written = write(STDOUT_FILENO, LEAVE_VIEW, sizeof LEAVE_VIEW - 1);
    (void)written;
    if (terminal->keys) {
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
    }
}

/* Whether the terminal shows characters beyond ASCII. */
static bool has_utf8(void) {
    locale_t own = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (own == (locale_t)0) {
        return false;
    }
    bool utf8 = strcmp(nl_langinfo_l(CODESET, own), "UTF-8") == 0;
    freelocale(own);
    return utf8;
}

static stk_top_look look_of(bool live) {
    struct winsize size = {0};
    const char *no_colour = getenv("NO_COLOR");
    stk_top_look look = {.columns = PLAIN_COLUMNS, .utf8 = has_utf8(), .live = live};
    if (live) {
        look.colour = no_colour == NULL || no_colour[0] == '\0';
        look.rows = 23;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1) {
            look.columns = size.ws_col;
            look.rows = size.ws_row - 1; /* a line break in the last row would scroll the screen */
        }
    }
    return look;
}

/* Replaces the picture on the terminal; false: the terminal is gone. */
static bool redraw(top_terminal *terminal, const stk_run_status *seen) {
    stk_top_look look = look_of(true);
    stk_str picture = {0};
    stk_str text = {0};
    stk_top_draw(seen, &look, &picture);
    stk_str_append(&text, HOME);
    for (const char *p = stk_str_text(&picture); *p != '\0';) {
        size_t length = strcspn(p, "\n");
        stk_str_append_bytes(&text, p, length);
        stk_str_append(&text, ERASE_LINE "\n");
        p += length + (p[length] == '\n');
    }
    stk_str_append(&text, ERASE_BELOW);
    bool shown = !stk_str_ok(&text) ||
                 stk_lines_write(&terminal->out, text.text, text.length, NULL) == STK_OK;
    stk_str_free(&picture);
    stk_str_free(&text);
    return shown;
}

/* Waits for a key, a change of the terminal's size or the next picture; true: q was pressed. */
static bool is_left(const top_terminal *terminal) {
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    char keys[64];
    if (poll(&wait, terminal->keys ? 1 : 0, REDRAW_MS) <= 0) {
        return false;
    }
    ssize_t got = read(STDIN_FILENO, keys, sizeof keys);
    for (ssize_t i = 0; i < got; i++) {
        if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == CTRL_C) {
            return true;
        }
    }
    return got == 0 || (got < 0 && errno != EINTR); /* the terminal is gone */
}

/* Redraws until the run ends or the user leaves. */
static stk_status follow(const cli_session *session, stk_run_status *seen, stk_error *err) {
    top_terminal terminal = {.out = {.fd = STDOUT_FILENO, .name = "the terminal"}};
    stk_status status = STK_OK;
    enter(&terminal);
    bool shown = stk_lines_write(&terminal.out, ENTER_VIEW, sizeof ENTER_VIEW - 1, NULL) == STK_OK;
    while (status == STK_OK && shown && seen->running &&
           stk_stop_asked(session->run.stop) == STK_STOP_NONE) {
        shown = redraw(&terminal, seen);
        if (is_left(&terminal)) {
            break;
        }
        status = stk_watch_look(seen, err);
    }
    leave(&terminal);
    return status;
}

/* Draws one picture; plain text unless it goes to a terminal. */
static stk_status draw_once(const cli_session *session, const stk_run_status *seen, bool live,
                            stk_error *err) {
    stk_str text = {0};
    stk_top_look look = look_of(live);
    look.live = false;
    look.rows = 0;
    if (session->quiet) {
        return STK_OK;
    }
    stk_top_draw(seen, &look, &text);
    return cli_print_lines(&text, err);
}

/* Whether the output is a terminal that can move its cursor. */
static bool is_screen(void) {
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && kind != NULL && kind[0] != '\0' &&
           strcmp(kind, "dumb") != 0;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_run_status seen;
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    const stk_top_options *options = stk_options_values(session.options, &stk_top_option_table);
    stk_status status = cli_look_at_run(&session, true, !session.json, &seen, &err);
    bool live = is_screen() && !options->once && !session.json;
    if (status == STK_OK && session.json) {
        status = cli_print_run(&seen, &err);
    } else if (status == STK_OK) {
        status = live ? follow(&session, &seen, &err) : STK_OK;
        status = status == STK_OK ? draw_once(&session, &seen, live, &err) : status;
    }
    stk_run_status_close(&seen);
    return cli_close(&session, status, &err);
}

const cli_verb cli_top = {
    .name = "top",
    .prints = true,
    .summary = "Shows a running run in the terminal: bars, the curve of the loss, what is left.",
    .usage = "[RUN] [--once]",
    .options = stk_options_for_top,
    .run = run,
};
