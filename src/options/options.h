/*
 * options.h - option tables and the values they describe.
 *
 * A room that has options defines a struct for their values and one const stk_option_table that
 * gives, for each option, its name, aliases, type, place in the struct, default, range and a line
 * of help. A verb is a list of tables: stk_options_new() makes the structs and fills in the
 * defaults; flags and YAML keys are set by name; the room reads its struct through
 * stk_options_values(). Help, docs/options.md, shell completion and args.yaml come from the same
 * tables. This room does not know what any option means.
 */
#ifndef STK_OPTIONS_OPTIONS_H
#define STK_OPTIONS_OPTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/options.h>

#include "base/str.h"
#include "base/text/json.h"

/* The value of "auto" in a field; for text it is NULL. */
#define STK_AUTO_INT INT64_MIN
#define STK_AUTO_DOUBLE NAN
#define STK_AUTO_BYTES UINT64_MAX

/* The value of "default" in a double whose default depends on other options and is not "auto". */
#define STK_DEFAULT_DOUBLE (-INFINITY)

static inline bool stk_is_auto_int(int64_t value) {
    return value == STK_AUTO_INT;
}

static inline bool stk_is_auto_double(double value) {
    return isnan(value);
}

static inline bool stk_is_default_double(double value) {
    return isinf(value) && value < 0;
}

typedef enum stk_option_type {
    STK_OPTION_TEXT,     /* const char *, NULL when empty; owned by the stk_options */
    STK_OPTION_INT,      /* int64_t */
    STK_OPTION_DOUBLE,   /* double */
    STK_OPTION_BOOL,     /* bool; flags --name and --no-name */
    STK_OPTION_BYTES,    /* uint64_t; "50G" */
    STK_OPTION_DURATION, /* double, seconds; "11m" */
    STK_OPTION_CHOICE,   /* int: the index in `choices` */
    STK_OPTION_LIST      /* stk_option_list; never written to args.yaml */
} stk_option_type;

/* The values of an option that was given several times, in that order; owned by the stk_options. */
typedef struct stk_option_list {
    const char *const *items; /* NULL when there is none */
    size_t count;
} stk_option_list;

typedef struct stk_option {
    const char *name;    /* with dashes; the flag is --name */
    const char *aliases; /* more names, divided by blanks; or NULL */
    stk_option_type type;
    size_t offset;        /* of the field in the table's struct; unused when noted */
    const char *fallback; /* the default as text; NULL: empty text */
    bool may_be_auto;     /* "auto" is a value of this number or text */
    bool may_be_default;  /* this STK_OPTION_DOUBLE also takes the word "default" */
    bool noted;           /* accepted because other tools have it; no effect, but a line says so */
    bool momentary;       /* holds for one call only; not written to args.yaml */
    bool dashed;          /* its value may begin with a dash: a flag of another program */
    bool may_change;      /* a resumed run may give another value: see stk_options_recall */
    bool lasting;         /* what `auto` became stays in a resumed run, though it may change */
    double min;           /* least number; checked when min < max */
    double max;
    /* Values divided by blanks; other spellings of one are added with '=': "auto=true fp32=32". */
    const char *choices;
    const char *metavar; /* the value's name in help: "N" */
    const char *help;    /* one line, no full stop */
} stk_option;

/*
 * A row of an option table: the type without STK_OPTION_, the name, the field, then other members
 * of stk_option. The file defines FIELD(name) as the offset in the table's struct.
 */
#define STK_OPTION(kind, flag, field, ...) \
    { .name = (flag), .type = STK_OPTION_##kind, .offset = FIELD(field), __VA_ARGS__ }

/* A row of an option without effect, and so without a field. */
#define STK_NOTED_OPTION(kind, flag, ...) \
    { .name = (flag), .type = STK_OPTION_##kind, .noted = true, __VA_ARGS__ }

/* Members of a row: the option may be "auto" and is so by default; the range of a number. */
#define STK_OPTION_AUTO .fallback = "auto", .may_be_auto = true
#define STK_OPTION_RANGE(low, high) .min = (low), .max = (high)

typedef struct stk_option_table {
    const char *group; /* heading in help */
    const stk_option *options;
    size_t count;
    size_t size; /* of the struct that offsets refer to */
} stk_option_table;

#define STK_OPTION_TABLE(heading, array, type)                                            \
    {                                                                                     \
        .group = (heading), .options = (array), .count = sizeof(array) / sizeof *(array), \
        .size = sizeof(type)                                                              \
    }

typedef enum stk_option_source {
    STK_FROM_DEFAULT,
    STK_FROM_CONFIG,
    STK_FROM_FLAG,
    STK_FROM_RUN /* from an earlier call: see stk_options_recall */
} stk_option_source;

/* `tables` and `verb` are borrowed for the life of the options. */
STK_CHECKED stk_status stk_options_new(stk_options **options, const char *verb,
                                       const stk_option_table *const *tables, size_t count,
                                       stk_error *err);

/* The struct of one of the tables; fields follow every later set. */
const void *stk_options_values(const stk_options *options, const stk_option_table *table);

/* Where an option's value came from; STK_FROM_DEFAULT for an unknown name. */
stk_option_source stk_options_source(const stk_options *options, const char *name);

/*
 * Reads a command line after the verb. Words that are no options go to `words` (room for
 * max_words; more are an error). `--config FILE` is loaded at once but flags win wherever they
 * stand. `--help` sets *help and ends the reading.
 */
STK_CHECKED stk_status stk_options_parse(stk_options *options, int argc, char *const *argv,
                                         const char **words, size_t max_words, size_t *word_count,
                                         bool *help, stk_error *err);

/*
 * Records the value that is used instead of the one that was given, and why: what `auto` became, or
 * a given value that was changed. The text replaces the value in messages and args.yaml; the field
 * of the struct keeps what was given.
 */
STK_CHECKED stk_status stk_options_resolve(stk_options *options, const char *name,
                                           const char *value, const char *why, stk_error *err);

/* The same for a number. */
STK_CHECKED stk_status stk_options_resolve_number(stk_options *options, const char *name,
                                                  double value, const char *why, stk_error *err);

/*
 * Takes over the options of an earlier call, for example to resume a run. `args` is the earlier
 * result of stk_options_json, `given` that of stk_options_given. An option that is not given now
 * gets its earlier value; if it was `auto` then and may change, it is `auto` again unless it is
 * lasting. An option that is given now must have its earlier value or be one that may change; for
 * the latter `changed` (or NULL) is called. `auto` for an option that may not change, or is
 * lasting, asks for nothing: the earlier value stays.
 */
STK_CHECKED stk_status stk_options_recall(stk_options *options, const stk_json *args,
                                          const stk_json *given,
                                          void (*changed)(void *user, const char *name,
                                                          const char *now, const char *before),
                                          void *user, stk_error *err);

/*
 * Appends the options that were given as a JSON object of texts by name. Options of an earlier
 * call, in `before` (or NULL), are included unless they were given anew.
 */
void stk_options_given(const stk_options *options, const stk_json *before, stk_str *out);

/* "32 (auto)", "32 (config)", "32": a value and where it came from, into buf; returns buf. */
const char *stk_options_show(const stk_options *options, const char *name, char *buf, size_t size);

/* Appends the given options that have no effect, separated by ", ". */
void stk_options_noted(const stk_options *options, stk_str *out);

void stk_options_help(const stk_options *options, stk_str *out);
void stk_options_markdown(const stk_options *options, stk_str *out);
void stk_options_yaml(const stk_options *options, stk_str *out); /* the effective values */
void stk_options_json(const stk_options *options, stk_str *out);

/* Calls visit with each flag ("--batch") and its option. A bool that is not noted is visited twice:
 * as --name and as --no-name. */
void stk_options_each_flag(const stk_options *options,
                           void (*visit)(void *user, const char *flag, const stk_option *option),
                           void *user);

#endif
