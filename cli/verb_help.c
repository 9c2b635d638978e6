/* verb_help.c - `stoker help [VERB]`, and docs/options.md with --markdown. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "options/options.h"

static void print_overview(void) {
    printf("usage: stoker VERB [options]\n\n"
           "Trains image classifiers, keeps the hardware busy and delivers in time.\n\nVerbs:\n");
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        printf("  %-12s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    printf("\nStart with:\n"
           "  stoker sample pictures --layout kaggle\n"
           "  stoker train --data pictures --budget 60s\n\n"
           "stoker VERB --help shows a verb's options. Exit codes: 0 what was asked for exists,\n"
           "2 wrong usage or configuration, 3 data, 4 device or memory, 5 storage or writing,\n"
           "130 interrupted before anything could be delivered, or a second time. stoker run\n"
           "mostly ends as its command does.\n");
}

static int print_markdown(void) {
    printf("# Options\n\nThis page is made from the option tables by `make docs`. Dashes and\n"
           "underscores are the same; every name and alias is a flag (`--name`) and a key of the\n"
           "YAML file that `--config` reads. A flag wins over the file.\n");
    for (size_t i = 0; cli_command(i) != NULL; i++) {
        const cli_verb *verb = cli_command(i);
        stk_options *options = NULL;
        stk_error err = {0};
        stk_str text = {0};
        if (verb->options == NULL) {
            continue;
        }
        if (verb->options(&options, &err) != STK_OK) {
            cli_complain(err.message);
            return stk_status_exit_code(err.status);
        }
        stk_options_markdown(options, &text);
        printf("\n## stoker %s\n\n`stoker %s %s`\n\n%s\n%s", verb->name, verb->name, verb->usage,
               verb->summary, stk_str_text(&text));
        stk_str_free(&text);
        stk_options_free(options);
    }
    return 0;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    if (argc < 1 || strcmp(argv[0], "--help") == 0) {
        print_overview();
        return 0;
    }
    if (strcmp(argv[0], "--markdown") == 0) {
        return print_markdown();
    }
    const cli_verb *const *list = cli_verbs;
    const cli_verb *about = verb;
    for (int i = 0; i < argc && list != NULL; i++) {
        about = cli_find(list, argv[i]);
        if (about == NULL) {
            return cli_unknown(list, argv[i]);
        }
        list = about->subjects;
    }
    if (about == verb) {
        print_overview();
        return 0;
    }
    return cli_print_help(about);
}

const cli_verb cli_help = {
    .name = "help",
    .summary = "Shows this, or the options of a verb.",
    .usage = "[VERB]",
    .run = run,
};
