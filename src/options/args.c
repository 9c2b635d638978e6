/* args.c - the command line after a verb. */
#include "options/options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "options/store.h"

/* A bool may be followed by the word true or false, or True as users of argparse write it. */
static bool is_truth_word(const char *word) {
    return word != NULL &&
           (stk_str_equal_nocase(word, "true") || stk_str_equal_nocase(word, "false"));
}

/*
 * One flag at argv[*at] (dashes already taken off), moving *at past a value it takes. A noted
 * option takes a value only when it is not a bool.
 */
static stk_status read_flag(stk_options *options, const char *flag, int argc, char *const *argv,
                            int *at, stk_error *err) {
    char name[128];
    char where[144];
    size_t length = strcspn(flag, "=");
    const char *value = flag[length] == '=' ? flag + length + 1 : NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, flag);
    snprintf(where, sizeof where, "--%s", name);
    stk_option_entry *entry = stk_options_find(options, name);
    bool negated = false;
    if (entry == NULL && (strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0)) {
        entry = stk_options_find(options, name + 3);
        negated = true;
    }
    if (entry == NULL || (negated && entry->option->type != STK_OPTION_BOOL)) {
        return stk_options_unknown(options, "--", "--", name, err);
    }
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    if (negated) {
        if (value != NULL) {
            return STK_FAIL(err, STK_ERR_USAGE, "--%s takes no value; write --%s or --%s=false",
                            name, name, name + 3);
        }
        value = "false";
    } else if (value == NULL && entry->option->type == STK_OPTION_BOOL) {
        value = is_truth_word(next) ? argv[++*at] : "true";
    } else if (value == NULL) {
        bool is_flag = next != NULL && strncmp(next, "--", 2) == 0 && next[2] != '\0';
        if (next == NULL || (is_flag && !entry->option->dashed)) {
            stk_str expected = {0};
            stk_options_expected(entry->option, &expected);
            stk_status status = STK_FAIL(err, STK_ERR_USAGE, "%s needs a value: %s", where,
                                         stk_str_text(&expected));
            stk_str_free(&expected);
            return status;
        }
        value = argv[++*at];
    }
    stk_status status = stk_options_assign(entry, value, STK_FROM_FLAG, where, err);
    if (status == STK_OK && strcmp(entry->option->name, "config") == 0) {
        status = stk_options_load(options, value, err);
    }
    return status;
}

stk_status stk_options_parse(stk_options *options, int argc, char *const *argv, const char **words,
                             size_t max_words, size_t *word_count, bool *help, stk_error *err) {
    bool only_words = false;
    *word_count = 0;
    *help = false;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (!only_words && strcmp(arg, "--") == 0) {
            only_words = true;
        } else if (!only_words && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
            *help = true;
            return STK_OK;
        } else if (!only_words && strncmp(arg, "--", 2) == 0) {
            stk_status status = read_flag(options, arg + 2, argc, argv, &i, err);
            if (status != STK_OK) {
                return status;
            }
        } else if (!only_words && arg[0] == '-' && arg[1] != '\0') {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "%s: options are written with two dashes; stoker %s --help lists them",
                            arg, options->verb);
        } else if (*word_count < max_words) {
            words[(*word_count)++] = arg;
        } else {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "'%s' is one word too many for '%s'; stoker %s --help shows its usage",
                            arg, options->verb, options->verb);
        }
    }
    return STK_OK;
}
