/* store.h - only for this room: the fields of stk_options, and the steps that its files share. */
#ifndef STK_OPTIONS_STORE_H
#define STK_OPTIONS_STORE_H

#include "base/text/text_blocks.h"
#include "options/options.h"

typedef struct stk_option_entry {
    const stk_option *option;
    const stk_option_table *table;
    void *field;              /* in the table's struct; NULL for a noted option */
    char *text;               /* owned: the value as given, or the default; never NULL */
    char *resolved;           /* owned: the value that is used instead of `text`, or NULL */
    char *why;                /* owned: the reason for `resolved`, or NULL */
    stk_texts items;          /* the values of a list; `text` is the last one */
    stk_option_source source; /* of text */
} stk_option_entry;

struct stk_options {
    const char *verb;                      /* borrowed */
    const stk_option_table *const *tables; /* borrowed */
    size_t table_count;
    void **values;             /* owned: one struct per table */
    stk_option_entry *entries; /* owned: every option, in the order of the tables */
    size_t count;
};

/* The entry whose name or alias this is, dashes and underscores being the same; or NULL. */
stk_option_entry *stk_options_find(const stk_options *options, const char *name);

/* Sets an entry; `where` begins the error message: "--batch" or "c.yaml, line 3: batch". */
STK_CHECKED stk_status stk_options_assign(stk_option_entry *entry, const char *text,
                                          stk_option_source source, const char *where,
                                          stk_error *err);

/* Checks a value's text and stores it in entry->field, unless that is NULL; false: not valid. */
bool stk_options_store(const stk_option_entry *entry, const char *text);

/* True for options whose values args.json and args.yaml hold. */
static inline bool stk_option_is_written(const stk_option_entry *entry) {
    return !entry->option->noted && !entry->option->momentary &&
           entry->option->type != STK_OPTION_LIST;
}

/* "unknown option --x; did you mean --y?", with `where` as above and `prefix` "--" or "". */
stk_status stk_options_unknown(const stk_options *options, const char *where, const char *prefix,
                               const char *name, stk_error *err);

/* What values an option takes, in words: "auto or a whole number from 1 to 65536". */
void stk_options_expected(const stk_option *option, stk_str *out);

/* The effective value: `resolved` if there is one, else as given. */
static inline const char *stk_option_effective(const stk_option_entry *entry) {
    return entry->resolved != NULL ? entry->resolved : entry->text;
}

#endif
