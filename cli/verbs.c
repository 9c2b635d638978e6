/* verbs.c - finds verbs with names of one or two words. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define MAX_VERBS 32 /* most verbs in one list */

const cli_verb *cli_command(size_t i) {
    for (size_t v = 0; cli_verbs[v] != NULL; v++) {
        const cli_verb *const *subjects = cli_verbs[v]->subjects;
        if (subjects == NULL && i-- == 0) {
            return cli_verbs[v];
        }
        for (size_t s = 0; subjects != NULL && subjects[s] != NULL; s++) {
            if (i-- == 0) {
                return subjects[s];
            }
        }
    }
    return NULL;
}

const char *cli_word(const cli_verb *verb) {
    const char *blank = strrchr(verb->name, ' ');
    return blank != NULL ? blank + 1 : verb->name;
}

const cli_verb *cli_find(const cli_verb *const *verbs, const char *word) {
    for (; *verbs != NULL; verbs++) {
        if (strcmp(cli_word(*verbs), word) == 0) {
            return *verbs;
        }
    }
    return NULL;
}

int cli_unknown(const cli_verb *const *verbs, const char *word) {
    const char *names[MAX_VERBS];
    char above[64] = ""; /* first word of a list of subjects, with a blank; or "" */
    size_t count = 0;
    for (; count < MAX_VERBS && verbs[count] != NULL; count++) {
        const char *name = verbs[count]->name;
        names[count] = cli_word(verbs[count]);
        snprintf(above, sizeof above, "%.*s", (int)(names[count] - name), name);
    }
    const char *nearest = stk_str_nearest(word, names, count);
    fprintf(stderr, "stoker: there is no verb '%s%s'", above, cli_clean(word));
    if (nearest != NULL) {
        fprintf(stderr, "; did you mean %s%s", above, nearest);
    }
    fprintf(stderr, "; stoker %s--help lists them\n", above);
    return stk_status_exit_code(STK_ERR_USAGE);
}
