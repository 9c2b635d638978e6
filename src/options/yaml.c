/* yaml.c - `name: value` lines of a YAML file, through libyaml where the build has it. */
#include "options/options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "options/store.h"

/* No configuration is larger, but a file given by mistake may be. */
#define MAX_CONFIG_BYTES ((size_t)1 << 20)

#ifdef STK_HAVE_YAML

#include <yaml.h>

typedef struct yaml_reader {
    stk_options *options;
    const char *path;
    yaml_parser_t parser;
    char key[128]; /* "" between pairs */
    int depth;     /* open mappings */
    bool in_list;  /* between the values of a list */
    bool done;
} yaml_reader;

static bool is_null(const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text[0] == '\0' || strcmp(text, "~") == 0 || stk_str_equal_nocase(text, "null"));
}

static stk_status take_scalar(yaml_reader *r, const yaml_event_t *event, stk_error *err) {
    const char *text = (const char *)event->data.scalar.value;
    size_t line = event->start_mark.line + 1;
    char where[512];
    if (r->depth == 0 && is_null(event)) {
        return STK_OK; /* a document of comments only */
    }
    if (r->depth == 0) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s, line %zu: expected `name: value` lines", r->path,
                        line);
    }
    if (strlen(text) != event->data.scalar.length) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s, line %zu: a text holds a NUL byte; take it out",
                        r->path, line);
    }
    if (r->key[0] == '\0') {
        snprintf(r->key, sizeof r->key, "%s", text[0] != '\0' ? text : "?");
        return STK_OK;
    }
    stk_option_entry *entry = stk_options_find(r->options, r->key);
    stk_status status = STK_OK;
    if (entry != NULL && strcmp(entry->option->name, "config") == 0) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "%s, line %zu: a configuration file cannot name another; give --config "
                          "for each",
                          r->path, line);
    } else if (entry == NULL && strcmp(r->key, "run_id") == 0) {
        status = STK_OK; /* args.json of a run names that run; the next one has its own */
    } else if (entry == NULL) {
        snprintf(where, sizeof where, "%s, line %zu: ", r->path, line);
        status = stk_options_unknown(r->options, where, "", r->key, err);
    } else if (!is_null(event)) {
        snprintf(where, sizeof where, "%s, line %zu: %s", r->path, line, r->key);
        status = stk_options_assign(entry, text, STK_FROM_CONFIG, where, err);
    }
    if (!r->in_list) {
        r->key[0] = '\0';
    }
    return status;
}

/* Only options that may be given more than once have lists. */
static stk_status begin_list(yaml_reader *r, size_t line, stk_error *err) {
    const stk_option_entry *entry = stk_options_find(r->options, r->key);
    if (r->depth == 0) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s, line %zu: expected `name: value` lines", r->path,
                        line);
    }
    if (r->in_list || entry == NULL || entry->option->type != STK_OPTION_LIST) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s, line %zu: '%s' is a list; give one value", r->path,
                        line, r->key);
    }
    r->in_list = true;
    return STK_OK;
}

static stk_status take_event(yaml_reader *r, const yaml_event_t *event, stk_error *err) {
    size_t line = event->start_mark.line + 1;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(r, event, err);
    case YAML_MAPPING_START_EVENT:
        if (r->depth++ > 0) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "%s, line %zu: '%s' holds further keys; write every option on the top "
                            "level",
                            r->path, line, r->key);
        }
        return STK_OK;
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return STK_OK;
    case YAML_SEQUENCE_START_EVENT:
        return begin_list(r, line, err);
    case YAML_SEQUENCE_END_EVENT:
        r->in_list = false;
        r->key[0] = '\0';
        return STK_OK;
    case YAML_ALIAS_EVENT:
        return STK_FAIL(err, STK_ERR_USAGE, "%s, line %zu: aliases are not understood", r->path,
                        line);
    case YAML_STREAM_END_EVENT:
        r->done = true;
        return STK_OK;
    default:
        return STK_OK;
    }
}

/* The line of a parser's error; for bytes that are no text the parser knows the offset only. */
static size_t problem_line(const yaml_parser_t *parser, const char *text, size_t size) {
    size_t line = parser->problem_mark.line + 1;
    if (parser->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < size && i < parser->problem_offset; i++) {
            line += text[i] == '\n';
        }
    }
    return line;
}

static stk_status read_yaml(stk_options *options, const char *path, const char *text, size_t size,
                            stk_error *err) {
    yaml_reader r = {.options = options, .path = path};
    if (!yaml_parser_initialize(&r.parser)) {
        return STK_FAIL_MEMORY(err, path);
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, size);
    stk_status status = STK_OK;
    while (status == STK_OK && !r.done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r.parser, &event)) {
            status = STK_FAIL(err, STK_ERR_USAGE, "%s, line %zu: not valid YAML: %s", path,
                              problem_line(&r.parser, text, size),
                              r.parser.problem != NULL ? r.parser.problem : "unreadable");
            break;
        }
        status = take_event(&r, &event, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&r.parser);
    return status;
}

#else

static stk_status read_yaml(stk_options *options, const char *path, const char *text, size_t size,
                            stk_error *err) {
    (void)options;
    (void)text;
    (void)size;
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot read %s: this build has no YAML; give the options as flags, or build "
                    "with libyaml",
                    path);
}

#endif

stk_status stk_options_load(stk_options *options, const char *path, stk_error *err) {
    char *text = NULL;
    size_t size = 0;
    stk_error cause = {0};
    if (stk_file_read_stream(path, MAX_CONFIG_BYTES, &text, &size, &cause) != STK_OK) {
        bool memory = cause.status == STK_ERR_MEMORY;
        return STK_FAIL(err, memory ? STK_ERR_MEMORY : STK_ERR_USAGE, "--config: %s",
                        cause.message);
    }
    stk_locale locale = stk_locale_enter();
    stk_status status = read_yaml(options, path, text, size, err);
    stk_locale_leave(locale);
    stk_mem_free(text);
    return status;
}
