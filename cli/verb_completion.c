/* verb_completion.c - `stoker completion SHELL`: completion scripts made from the option tables. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "options/options.h"

/* Calls visit for every flag of a verb. */
static void each_flag(const cli_verb *verb,
                      void (*visit)(void *user, const char *flag, const stk_option *option),
                      void *user) {
    stk_options *options = NULL;
    if (verb->options != NULL && verb->options(&options, NULL) == STK_OK) {
        stk_options_each_flag(options, visit, user);
        stk_options_free(options);
    }
}

/* Prints the choices without their alternative spellings, separated by blanks. */
static void print_choices(const char *choices) {
    for (const char *p = choices; *p != '\0';) {
        size_t word = strcspn(p, " ");
        size_t shown = strcspn(p, "= ");
        printf("%.*s%s", (int)shown, p, p[word] != '\0' ? " " : "");
        p += word;
        p += strspn(p, " ");
    }
}

static void print_word(void *user, const char *flag, const stk_option *option) {
    (void)user;
    (void)option;
    printf(" %s", flag);
}

static void print_bash_choice(void *user, const char *flag, const stk_option *option) {
    const char *verb = user;
    if (option->choices != NULL) {
        printf("        '%s:%s') words='", verb, flag);
        print_choices(option->choices);
        printf("' ;;\n");
    }
}

/* For a verb with subjects: completes the second word; then both words are the verb. */
static void print_bash_subjects(void) {
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        const cli_verb *const *subjects = cli_verbs[i]->subjects;
        if (subjects == NULL) {
            continue;
        }
        printf("    if [ \"$verb\" = %s ]; then\n"
               "        verb=\"$verb ${COMP_WORDS[2]}\"\n"
               "        [ \"$COMP_CWORD\" -ne 2 ] || words='--help",
               cli_verbs[i]->name);
        for (size_t s = 0; subjects[s] != NULL; s++) {
            printf(" %s", cli_word(subjects[s]));
        }
        printf("'\n    fi\n");
    }
}

/* Zsh reads bash's completions once bashcompinit has run. */
static void print_bash(void) {
    printf("_stoker() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
           "    local verb=${COMP_WORDS[1]}\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        words='");
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        printf("%s ", cli_verbs[i]->name);
    }
    printf("--help --version'\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n");
    print_bash_subjects();
    printf("    case $verb:$before in\n");
    for (size_t i = 0; cli_command(i) != NULL; i++) {
        each_flag(cli_command(i), print_bash_choice, (void *)(size_t)cli_command(i)->name);
    }
    printf("    esac\n"
           "    if [ -z \"$words\" ] && [ \"${word#-}\" != \"$word\" ]; then\n"
           "        case $verb in\n");
    for (size_t i = 0; cli_command(i) != NULL; i++) {
        printf("            '%s') words='--help", cli_command(i)->name);
        each_flag(cli_command(i), print_word, NULL);
        printf("' ;;\n");
    }
    printf("        esac\n"
           "    fi\n"
           "    if [ -n \"$words\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _stoker stoker\n");
}

/*
 * If the script is a file on zsh's fpath, zsh runs all of it as the body of the function _stoker at
 * the first completion. So after defining the real function it must also answer that first request.
 */
static void print_zsh(void) {
    printf("#compdef stoker\nautoload -U +X bashcompinit && bashcompinit\n");
    print_bash();
    printf("if [ \"${funcstack[1]}\" = _stoker ]; then\n"
           "    _bash_complete -o filenames -F _stoker\n"
           "fi\n");
}

/* Condition for offering a verb's flags: all words of its name are on the line. */
static void print_fish_seen(const char *verb) {
    size_t first = strcspn(verb, " ");
    printf("__fish_seen_subcommand_from %.*s", (int)first, verb);
    if (verb[first] == ' ') {
        printf("; and __fish_seen_subcommand_from %s", verb + first + 1);
    }
}

static void print_fish_flag(void *user, const char *flag, const stk_option *option) {
    printf("complete -c stoker -n '");
    print_fish_seen(user);
    printf("' -l %s", flag + 2);
    if (option->choices != NULL) {
        printf(" -x -a '");
        print_choices(option->choices);
        printf("'");
    } else if (option->type != STK_OPTION_BOOL) {
        printf(" -r");
    }
    printf(" -d '");
    for (const char *p = option->help; *p != '\0'; p++) {
        printf(*p == '\'' ? "\\%c" : "%c", *p);
    }
    printf("'\n");
}

/* Offers the second words of a verb until one of them is on the line. */
static void print_fish_subjects(const cli_verb *verb) {
    for (size_t i = 0; verb->subjects[i] != NULL; i++) {
        printf("complete -c stoker -n '__fish_seen_subcommand_from %s; and not "
               "__fish_seen_subcommand_from",
               verb->name);
        for (size_t s = 0; verb->subjects[s] != NULL; s++) {
            printf(" %s", cli_word(verb->subjects[s]));
        }
        printf("' -f -a %s -d '%s'\n", cli_word(verb->subjects[i]), verb->subjects[i]->summary);
    }
}

static void print_fish(void) {
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        printf("complete -c stoker -n __fish_use_subcommand -f -a %s -d '%s'\n", cli_verbs[i]->name,
               cli_verbs[i]->summary);
        if (cli_verbs[i]->subjects != NULL) {
            print_fish_subjects(cli_verbs[i]);
        }
    }
    for (size_t i = 0; cli_command(i) != NULL; i++) {
        each_flag(cli_command(i), print_fish_flag, (void *)(size_t)cli_command(i)->name);
    }
}

static int run(const cli_verb *verb, int argc, char **argv) {
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; argc == 1 && i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(argv[0], shells[i].shell) == 0) {
            shells[i].print();
            return 0;
        }
    }
    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        return cli_print_help(verb);
    }
    cli_complain("completion takes one of bash, zsh and fish");
    return stk_status_exit_code(STK_ERR_USAGE);
}

const cli_verb cli_completion = {
    .name = "completion",
    .summary = "Prints a completion script for bash, zsh or fish.",
    .usage = "bash|zsh|fish",
    .run = run,
};
