/* main.c - `stoker VERB ...`: finds the verb and runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/cpu_blas.h"
#include "cli/cli.h"

const cli_verb *const cli_verbs[] = {&cli_sample,     &cli_train, &cli_predict, &cli_bench,
                                     &cli_completion, &cli_help,  NULL};

/*
 * Some libraries can only be told at their loading how to be fast: start again with the hint in the
 * environment. Where that fails, all works as before, only slower.
 */
static void restart_with_fast_blas(char **argv) {
    const char *core = stk_cpu_blas_core_type();
    if (core != NULL && getenv("OPENBLAS_CORETYPE") == NULL &&
        setenv("OPENBLAS_CORETYPE", core, 1) == 0) {
        execv("/proc/self/exe", argv);
    }
}

/* What a verb that only prints has printed must have arrived; a reader that left is fine. */
static int check_printed(int exit_code) {
    if (fflush(stdout) != 0 && errno != EPIPE && exit_code == 0) {
        cli_complain("cannot write to standard output");
        return stk_status_exit_code(STK_ERR_STORAGE);
    }
    return exit_code;
}

int main(int argc, char **argv) {
    restart_with_fast_blas(argv);
    if (argc < 2) {
        cli_help.run(&cli_help, 0, argv);
        return stk_status_exit_code(STK_ERR_USAGE);
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("stoker %s\n", stk_version());
        return 0;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        word = cli_help.name;
    }
    const cli_verb *verb = cli_find(cli_verbs, word);
    if (verb == NULL) {
        return cli_unknown(cli_verbs, word);
    }
    int exit_code = verb->run(verb, argc - 2, argv + 2);
    return verb->options == NULL ? check_printed(exit_code) : exit_code;
}
