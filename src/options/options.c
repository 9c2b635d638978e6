/* options.c - values by name: finding an option, checking a value's text, storing it. */
#include "options/options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "options/store.h"

/* More names than all tables of a verb have, aliases included. */
#define MAX_NAMES 256
#define MAX_NAME 64

static bool same_name(const char *a, size_t a_length, const char *b) {
    for (size_t i = 0; i < a_length; i++) {
        char x = a[i] == '_' ? '-' : a[i];
        char y = b[i] == '_' ? '-' : b[i];
        if (x != y) {
            return false;
        }
    }
    return b[a_length] == '\0';
}

/* Walks a list divided by blanks; *word and *length are the next item, false at the end. */
static bool next_word(const char **list, const char **word, size_t *length) {
    const char *p = *list;
    while (p != NULL && *p == ' ') {
        p++;
    }
    if (p == NULL || *p == '\0') {
        return false;
    }
    *word = p;
    *length = strcspn(p, " ");
    *list = p + *length;
    return true;
}

stk_option_entry *stk_options_find(const stk_options *options, const char *name) {
    for (size_t i = 0; i < options->count; i++) {
        const stk_option *option = options->entries[i].option;
        if (same_name(option->name, strlen(option->name), name)) {
            return &options->entries[i];
        }
        const char *aliases = option->aliases;
        const char *word;
        size_t length;
        while (next_word(&aliases, &word, &length)) {
            if (same_name(word, length, name)) {
                return &options->entries[i];
            }
        }
    }
    return NULL;
}

/* A name as flags are written, cut when it is longer than any option's. */
static void copy_name(char to[MAX_NAME], const char *name, size_t length) {
    size_t i;
    for (i = 0; i < length && i < MAX_NAME - 1; i++) {
        to[i] = name[i] == '_' ? '-' : name[i];
    }
    to[i] = '\0';
}

stk_status stk_options_unknown(const stk_options *options, const char *where, const char *prefix,
                               const char *name, stk_error *err) {
    const char *names[MAX_NAMES];
    char words[MAX_NAMES][MAX_NAME];
    size_t count = 0;
    char given[MAX_NAME];
    copy_name(given, name, strlen(name));
    for (size_t i = 0; i < options->count && count < MAX_NAMES; i++) {
        names[count++] = options->entries[i].option->name;
    }
    /* After the names, so that of two equally near words a name is suggested. */
    for (size_t i = 0; i < options->count; i++) {
        const char *aliases = options->entries[i].option->aliases;
        const char *word;
        size_t length;
        while (count < MAX_NAMES && next_word(&aliases, &word, &length)) {
            copy_name(words[count], word, length);
            names[count] = words[count];
            count++;
        }
    }
    const char *nearest = stk_str_nearest(given, names, count);
    return STK_FAIL(err, STK_ERR_USAGE,
                    "%s%s: there is no such option of '%s'%s%s%s; stoker %s "
                    "--help lists them",
                    where, name, options->verb, nearest != NULL ? "; did you mean " : "",
                    nearest != NULL ? prefix : "", nearest != NULL ? nearest : "", options->verb);
}

/* The index of a value among the choices, other spellings included; -1: it is none. */
static int find_choice(const char *choices, const char *text) {
    const char *word;
    size_t length;
    for (int index = 0; next_word(&choices, &word, &length); index++) {
        size_t start = 0;
        while (start <= length) {
            size_t part = strcspn(word + start, "= ");
            part = part > length - start ? length - start : part;
            if (strlen(text) == part && strncasecmp(word + start, text, part) == 0) {
                return index;
            }
            start += part + 1;
        }
    }
    return -1;
}

void stk_options_expected(const stk_option *option, stk_str *out) {
    static const char *const kinds[] = {[STK_OPTION_TEXT] = "text",
                                        [STK_OPTION_INT] = "a whole number",
                                        [STK_OPTION_DOUBLE] = "a number",
                                        [STK_OPTION_BOOL] = "true or false",
                                        [STK_OPTION_BYTES] = "a size such as 512M or 50G",
                                        [STK_OPTION_DURATION] =
                                            "a time such as 90s, 11m, 2h30m or 00:11:00",
                                        [STK_OPTION_CHOICE] = "",
                                        [STK_OPTION_LIST] = "text, once or more"};
    if (option->may_be_default) {
        stk_str_append(out, "default, ");
    }
    if (option->may_be_auto) {
        stk_str_append(out, "auto or ");
    }
    stk_str_append(out, kinds[option->type]);
    if (option->type == STK_OPTION_CHOICE) {
        const char *choices = option->choices;
        const char *word;
        size_t length;
        stk_str_append(out, "one of");
        for (int i = 0; next_word(&choices, &word, &length); i++) {
            size_t shown = strcspn(word, "= ");
            stk_str_appendf(out, "%s %.*s", i > 0 ? "," : "",
                            (int)(shown < length ? shown : length), word);
        }
    }
    bool number = option->type == STK_OPTION_INT || option->type == STK_OPTION_DOUBLE ||
                  option->type == STK_OPTION_DURATION;
    if (number && option->min < option->max) {
        if (option->max < 1e15) {
            stk_str_appendf(out, " from %.10g to %.10g", option->min, option->max);
        } else {
            stk_str_appendf(out, " of at least %.10g", option->min);
        }
        stk_str_append(out, option->type == STK_OPTION_DURATION ? " seconds" : "");
    }
}

static bool in_range(const stk_option *option, double value) {
    return option->min >= option->max || (value >= option->min && value <= option->max);
}

/* A TEXT field points to entry->text, which holds the value already. */
bool stk_options_store(const stk_option_entry *entry, const char *text) {
    const stk_option *option = entry->option;
    bool is_default = option->may_be_default && stk_str_equal_nocase(text, "default");
    bool is_auto = is_default || (option->may_be_auto && stk_str_equal_nocase(text, "auto"));
    int64_t whole = STK_AUTO_INT;
    double number = is_default ? STK_DEFAULT_DOUBLE : STK_AUTO_DOUBLE;
    uint64_t bytes = STK_AUTO_BYTES;
    bool truth = false;
    int choice = 0;
    bool good = true;
    switch (option->type) {
    case STK_OPTION_TEXT:
    case STK_OPTION_LIST:
        break;
    case STK_OPTION_INT:
        good = is_auto || (stk_parse_int(text, &whole) && in_range(option, (double)whole));
        break;
    case STK_OPTION_DOUBLE:
        good = is_auto || (stk_parse_double(text, &number) && in_range(option, number));
        break;
    case STK_OPTION_DURATION:
        good = is_auto || (stk_parse_duration(text, &number) && in_range(option, number));
        break;
    case STK_OPTION_BYTES:
        good = is_auto || stk_parse_bytes(text, &bytes);
        break;
    case STK_OPTION_BOOL:
        good = stk_parse_bool(text, &truth);
        break;
    case STK_OPTION_CHOICE:
        choice = find_choice(option->choices, text);
        good = choice >= 0;
        break;
    }
    if (!good || entry->field == NULL) {
        return good;
    }
    switch (option->type) {
    case STK_OPTION_TEXT:
        *(const char **)entry->field = is_auto || entry->text[0] == '\0' ? NULL : entry->text;
        break;
    case STK_OPTION_INT:
        *(int64_t *)entry->field = whole;
        break;
    case STK_OPTION_DOUBLE:
    case STK_OPTION_DURATION:
        *(double *)entry->field = number;
        break;
    case STK_OPTION_BYTES:
        *(uint64_t *)entry->field = bytes;
        break;
    case STK_OPTION_BOOL:
        *(bool *)entry->field = truth;
        break;
    case STK_OPTION_CHOICE:
        *(int *)entry->field = choice;
        break;
    case STK_OPTION_LIST:
        *(stk_option_list *)entry->field =
            (stk_option_list){(const char *const *)entry->items.items, entry->items.count};
        break;
    }
    return true;
}

/*
 * Values of the same source add up; those of a stronger source begin the list anew. An empty text
 * adds nothing.
 */
static bool add_item(stk_option_entry *entry, const char *text, stk_option_source source) {
    stk_texts fresh = {0};
    stk_texts *items = source == entry->source ? &entry->items : &fresh;
    if (text[0] != '\0' && !stk_texts_take(items, stk_mem_strdup(text))) {
        return false;
    }
    if (items == &fresh) {
        stk_texts_free(&entry->items);
        entry->items = fresh;
    }
    return true;
}

static void drop_resolved(stk_option_entry *entry) {
    stk_mem_free(entry->resolved);
    stk_mem_free(entry->why);
    entry->resolved = NULL;
    entry->why = NULL;
}

stk_status stk_options_assign(stk_option_entry *entry, const char *text, stk_option_source source,
                              const char *where, stk_error *err) {
    char *copy = stk_mem_strdup(text);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, "options");
    }
    /*
     * A flag wins over the file, wherever it stands; what loses is checked all the same, so that
     * the order on the command line makes no difference.
     */
    bool wins = source >= entry->source;
    if (wins && entry->option->type == STK_OPTION_LIST && !add_item(entry, copy, source)) {
        stk_mem_free(copy);
        return STK_FAIL_MEMORY(err, "options");
    }
    stk_option_entry changed = *entry;
    changed.text = copy;
    changed.field = wins ? entry->field : NULL;
    if (!stk_options_store(&changed, copy)) {
        stk_str expected = {0};
        stk_options_expected(entry->option, &expected);
        stk_status status = STK_FAIL(err, STK_ERR_USAGE, "%s: '%s' is not a value for it; give %s",
                                     where, copy, stk_str_text(&expected));
        stk_str_free(&expected);
        stk_mem_free(copy);
        return status;
    }
    if (!wins) {
        stk_mem_free(copy);
        return STK_OK;
    }
    drop_resolved(entry);
    stk_mem_free(entry->text);
    entry->text = copy;
    entry->source = source;
    return STK_OK;
}

static stk_status add_table(stk_options *options, size_t index, stk_error *err) {
    const stk_option_table *table = options->tables[index];
    options->values[index] = stk_mem_new(1, table->size);
    if (options->values[index] == NULL) {
        return STK_FAIL_MEMORY(err, "options");
    }
    for (size_t i = 0; i < table->count; i++) {
        const stk_option *option = &table->options[i];
        stk_option_entry *entry = &options->entries[options->count++];
        entry->option = option;
        entry->table = table;
        entry->field = option->noted ? NULL : (char *)options->values[index] + option->offset;
        const char *fallback = option->fallback != NULL          ? option->fallback
                               : option->type == STK_OPTION_BOOL ? "false"
                                                                 : "";
        if (option->noted) {
            entry->text = stk_mem_strdup("");
            if (entry->text == NULL) {
                return STK_FAIL_MEMORY(err, "options");
            }
            continue;
        }
        stk_status status =
            stk_options_assign(entry, fallback, STK_FROM_DEFAULT, option->name, err);
        if (status != STK_OK) {
            return status;
        }
    }
    return STK_OK;
}

stk_status stk_options_new(stk_options **out, const char *verb,
                           const stk_option_table *const *tables, size_t count, stk_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += tables[i]->count;
    }
    stk_options *options = stk_mem_new(1, sizeof *options);
    if (options == NULL) {
        return STK_FAIL_MEMORY(err, "options");
    }
    options->verb = verb;
    options->tables = tables;
    options->table_count = count;
    options->values = stk_mem_new(count, sizeof *options->values);
    options->entries = stk_mem_new(total, sizeof *options->entries);
    stk_status status = options->values != NULL && options->entries != NULL
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, "options");
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        status = add_table(options, i, err);
    }
    if (status != STK_OK) {
        stk_options_free(options);
        return status;
    }
    *out = options;
    return STK_OK;
}

const void *stk_options_values(const stk_options *options, const stk_option_table *table) {
    for (size_t i = 0; i < options->table_count; i++) {
        if (options->tables[i] == table) {
            return options->values[i];
        }
    }
    return NULL;
}

stk_option_source stk_options_source(const stk_options *options, const char *name) {
    const stk_option_entry *entry = stk_options_find(options, name);
    return entry != NULL ? entry->source : STK_FROM_DEFAULT;
}

stk_status stk_options_resolve(stk_options *options, const char *name, const char *value,
                               const char *why, stk_error *err) {
    stk_option_entry *entry = stk_options_find(options, name);
    if (entry == NULL) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "there is no option %s to resolve", name);
    }
    char *text = stk_mem_strdup(value);
    char *reason = stk_mem_strdup(why);
    if (text == NULL || reason == NULL) {
        stk_mem_free(text);
        stk_mem_free(reason);
        return STK_FAIL_MEMORY(err, "options");
    }
    drop_resolved(entry);
    entry->resolved = text;
    entry->why = reason;
    return STK_OK;
}

stk_status stk_options_resolve_number(stk_options *options, const char *name, double value,
                                      const char *why, stk_error *err) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return stk_options_resolve(options, name, text, why, err);
}

const char *stk_options_show(const stk_options *options, const char *name, char *buf, size_t size) {
    const stk_option_entry *entry = stk_options_find(options, name);
    if (entry == NULL) {
        snprintf(buf, size, "?");
    } else if (entry->resolved != NULL) {
        snprintf(buf, size, "%s (%s)", entry->resolved, entry->why);
    } else {
        const char *source = entry->source == STK_FROM_DEFAULT  ? " (default)"
                             : entry->source == STK_FROM_CONFIG ? " (config)"
                             : entry->source == STK_FROM_RUN    ? " (run)"
                                                                : "";
        snprintf(buf, size, "%s%s", entry->text, source);
    }
    return buf;
}

void stk_options_noted(const stk_options *options, stk_str *out) {
    for (size_t i = 0; i < options->count; i++) {
        const stk_option_entry *entry = &options->entries[i];
        if (entry->option->noted && entry->source != STK_FROM_DEFAULT) {
            stk_str_appendf(out, "%s%s", out->length > 0 ? ", " : "", entry->option->name);
        }
    }
}

stk_status stk_options_set(stk_options *options, const char *name, const char *value,
                           stk_error *err) {
    stk_option_entry *entry = stk_options_find(options, name);
    if (entry == NULL) {
        return stk_options_unknown(options, "", "", name, err);
    }
    stk_locale locale = stk_locale_enter();
    stk_status status = stk_options_assign(entry, value, STK_FROM_FLAG, name, err);
    stk_locale_leave(locale);
    return status;
}

const char *stk_options_get(const stk_options *options, const char *name) {
    const stk_option_entry *entry = stk_options_find(options, name);
    return entry != NULL ? stk_option_effective(entry) : NULL;
}

void stk_options_free(stk_options *options) {
    if (options == NULL) {
        return;
    }
    for (size_t i = 0; i < options->count; i++) {
        stk_mem_free(options->entries[i].text);
        stk_texts_free(&options->entries[i].items);
        drop_resolved(&options->entries[i]);
    }
    for (size_t i = 0; i < options->table_count && options->values != NULL; i++) {
        stk_mem_free(options->values[i]);
    }
    stk_mem_free(options->entries);
    stk_mem_free(options->values);
    stk_mem_free(options);
}
