/* main.c - `stoker VERB ...`: finds the verb and runs it. */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/cpu/blas.h"
#include "base/threads/pool.h"
#include "cli/cli.h"

const cli_verb *const cli_verbs[] = {&cli_sample, &cli_stage,      &cli_train,   &cli_lr,
                                     &cli_plan,   &cli_doctor,     &cli_predict, &cli_run,
                                     &cli_report, &cli_status,     &cli_top,     &cli_stop,
                                     &cli_bench,  &cli_completion, &cli_help,    NULL};

/* True: the variable was not set before. */
static bool give_hint(const char *name, const char *value) {
    return getenv(name) == NULL && setenv(name, value, 1) == 0;
}

/*
 * OpenBLAS reads its hints only when it is loaded: which processor to optimise for, and to start no
 * threads of its own, which under a limit on address space never end. So the program sets the hints
 * in the environment and executes itself again. If that fails, everything works, only slower.
 */
static void restart_with_fast_blas(char **argv) {
    const char *core = stk_cpu_blas_core_type();
    struct rlimit space;
    bool again = core != NULL && give_hint("OPENBLAS_CORETYPE", core);
    bool limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    if (again || limited) {
        again = give_hint("OPENBLAS_NUM_THREADS", "1") || again;
    }
    if (again) {
        /* Executed by its own path, so that it keeps its name in process lists. */
        char path[PATH_MAX];
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        execv(path, argv);
        execv("/proc/self/exe", argv);
    }
}

/* Remote data needs hundreds of connections; shells usually allow 1,024 descriptors. */
#define WANTED_DESCRIPTORS 8192

static void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < WANTED_DESCRIPTORS) {
        limit.rlim_cur =
            limit.rlim_max < WANTED_DESCRIPTORS ? limit.rlim_max : (rlim_t)WANTED_DESCRIPTORS;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* if it fails, fewer files are open at a time */
    }
}

/*
 * If the caller closed a standard stream, the next file opened would get its number, and lines for
 * people would be written into that file. /dev/null takes the number; opened the other way round,
 * it makes every use of the stream an error.
 */
static void keep_standard_numbers(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

int main(int argc, char **argv) {
    keep_standard_numbers();
    /* The environment of a supervised command stays as the user set it. */
    if (argc < 2 || strcmp(argv[1], cli_run.name) != 0) {
        restart_with_fast_blas(argv);
        allow_descriptors();
    }
    if (argc < 2) {
        cli_help.run(&cli_help, 0, argv);
        return stk_status_exit_code(STK_ERR_USAGE);
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("stoker %s\n", stk_version());
        return cli_check_printed(0);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        word = cli_help.name;
    }
    const cli_verb *verb = cli_find(cli_verbs, word);
    if (verb == NULL) {
        return cli_unknown(cli_verbs, word);
    }
    int exit_code = verb->run(verb, argc - 2, argv + 2);
    exit_code = verb->options == NULL || verb->prints ? cli_check_printed(exit_code) : exit_code;
    if (stk_pool_any_left()) {
        (void)fflush(stdout);
        _exit(exit_code);
    }
    return exit_code;
}
