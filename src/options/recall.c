/* recall.c - takes over the options of an earlier call, to resume its run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/json.h"
#include "options/store.h"

#define MAX_KEY 80
#define MAX_NUMBER 40

/* The member of an object by an option's name; keys have underscores where flags have dashes. */
static const stk_json *member(const stk_json *object, const char *name) {
    char key[MAX_KEY];
    size_t i = 0;
    for (; i < MAX_KEY - 1 && name[i] != '\0'; i++) {
        key[i] = name[i] == '-' ? '_' : name[i];
    }
    key[i] = '\0';
    return stk_json_get(object, key);
}

/* A value of args.json as the text that would be given for it; numbers are written into buf. */
static const char *text_of(const stk_json *value, char buf[MAX_NUMBER]) {
    uint64_t whole;
    switch (stk_json_kind_of(value)) {
    case STK_JSON_STRING:
        return stk_json_string(value);
    case STK_JSON_BOOL:
        return stk_json_bool(value, false) ? "true" : "false";
    case STK_JSON_NUMBER:
        if (stk_json_u64(value, &whole)) {
            snprintf(buf, MAX_NUMBER, "%llu", (unsigned long long)whole);
        } else {
            double number = stk_json_number(value, 0);
            for (int digits = 6; digits <= 17; digits++) { /* the shortest that is exact */
                snprintf(buf, MAX_NUMBER, "%.*g", digits, number);
                if (strtod(buf, NULL) == number) {
                    break;
                }
            }
        }
        return buf;
    default:
        return "";
    }
}

static size_t field_bytes(stk_option_type type) {
    switch (type) {
    case STK_OPTION_INT:
        return sizeof(int64_t);
    case STK_OPTION_BYTES:
        return sizeof(uint64_t);
    case STK_OPTION_BOOL:
        return sizeof(bool);
    case STK_OPTION_CHOICE:
        return sizeof(int);
    default:
        return sizeof(double);
    }
}

/* Whether a text means the value that an option has. */
static bool means_same(const stk_option_entry *entry, const char *text) {
    const stk_option *option = entry->option;
    if (option->type == STK_OPTION_TEXT) {
        return strcmp(entry->text, text) == 0;
    }
    _Alignas(8) char value[8] = {0};
    stk_option_entry other = *entry;
    other.field = value;
    return stk_options_store(&other, text) &&
           memcmp(value, entry->field, field_bytes(option->type)) == 0;
}

static bool is_auto(const stk_option_entry *entry) {
    return entry->option->may_be_auto && stk_str_equal_nocase(entry->text, "auto");
}

static stk_status take_up(stk_option_entry *entry, const char *text, stk_error *err) {
    return stk_options_assign(entry, text, STK_FROM_RUN, entry->option->name, err);
}

stk_status stk_options_recall(stk_options *options, const stk_json *args, const stk_json *given,
                              void (*changed)(void *user, const char *name, const char *now,
                                              const char *before),
                              void *user, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; i < options->count && status == STK_OK; i++) {
        stk_option_entry *entry = &options->entries[i];
        const stk_option *option = entry->option;
        const stk_json *value = member(args, option->name);
        const char *asked = stk_json_string(member(given, option->name)); /* earlier, or NULL */
        char number[MAX_NUMBER];
        const char *before = text_of(value, number);
        if (!stk_option_is_written(entry) || value == NULL) {
            continue;
        }
        /* `auto` asks for nothing where the choice is not made again: the earlier value stays. */
        bool chosen_again = option->may_change && !option->lasting;
        bool given_now = entry->source != STK_FROM_DEFAULT && !(is_auto(entry) && !chosen_again);
        bool same = means_same(entry, before);
        bool free_again = chosen_again && option->may_be_auto && asked == NULL;
        if (!given_now) {
            status = same || free_again ? STK_OK : take_up(entry, before, err);
        } else if (same || (asked != NULL && means_same(entry, asked))) {
            status = take_up(entry, before, err);
        } else if (!option->may_change) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "--%s %s: the run was begun with %s, and what was trained so far "
                              "depends on it; leave it out, or begin a new run",
                              option->name, entry->text, before[0] != '\0' ? before : "none");
        } else if (changed != NULL) {
            changed(user, option->name, entry->text, before[0] != '\0' ? before : "none");
        }
    }
    return status;
}

void stk_options_given(const stk_options *options, const stk_json *before, stk_str *out) {
    stk_json_writer writer = stk_json_write_to(out, 0);
    writer.exact = true; /* paths are read back */
    stk_json_begin_object(&writer);
    for (size_t i = 0; i < options->count; i++) {
        const stk_option_entry *entry = &options->entries[i];
        const char *text = stk_json_string(member(before, entry->option->name));
        if (entry->source == STK_FROM_CONFIG || entry->source == STK_FROM_FLAG) {
            text = entry->text;
        }
        if (stk_option_is_written(entry) && text != NULL) {
            char key[MAX_KEY];
            snprintf(key, sizeof key, "%s", entry->option->name);
            for (char *p = key; *p != '\0'; p++) {
                *p = *p == '-' ? '_' : *p;
            }
            stk_json_key(&writer, key);
            stk_json_put_string(&writer, text);
        }
    }
    stk_json_end_object(&writer);
}
