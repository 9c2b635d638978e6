/*
 * ini.c - parses the AWS tools' files in one pass and in place.
 *
 * All text that is handed out lies in the one block that the file was read into; freeing wipes that
 * block, and with it every secret.
 */
#include "storage/s3/ini.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/map.h"
#include "base/mem.h"

#define BLANKS " \t\v\f\r"

typedef struct ini_entry {
    const char *name;
    char *value;
    const char
        *parent;    /* the name above that it belongs to; NULL: it belongs to the section itself */
    size_t section; /* index of its section */
} ini_entry;

struct stk_ini {
    char *text;  /* owned; cut up by NULs */
    size_t size; /* bytes in text, without the last NUL */
    const char **sections;
    size_t section_count;
    size_t section_capacity;
    ini_entry *entries; /* in the order of the file */
    size_t entry_count;
    size_t entry_capacity;
};

/* The parser's position and state. */
typedef struct ini_parser {
    stk_ini *ini;
    stk_map known;    /* sections by name */
    size_t section;   /* index of the current section */
    bool in_section;  /* false before the first section */
    size_t top;       /* index of the entry that deeper lines belong to */
    bool has_top;     /* the current section has such an entry */
    size_t indent;    /* of that entry's line */
    char *end;        /* of that entry's value, where a continuation goes; NULL: it is empty */
    size_t line;      /* number of the line, from 1 */
    const char *file; /* for errors */
} ini_parser;

/* Cuts blanks off both ends in place; returns the new start. */
static char *trim(char *text) {
    text += strspn(text, BLANKS);
    size_t length = strlen(text);
    while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL) {
        length--;
    }
    text[length] = '\0';
    return text;
}

/* Removes quotes and merges repeated blanks, in place. */
static void simplify(char *name) {
    char *to = name;
    for (const char *from = name; *from != '\0'; from++) {
        bool blank = strchr(BLANKS, *from) != NULL;
        if (*from == '"' || *from == '\'' || (blank && to > name && to[-1] == ' ')) {
            continue;
        }
        *to++ = (char)(blank ? ' ' : *from);
    }
    *to = '\0';
}

static stk_status malformed(const ini_parser *at, const char *what, stk_error *err) {
    return STK_FAIL(err, STK_ERR_USAGE, "cannot read %s: line %zu %s; correct the file", at->file,
                    at->line, what);
}

static stk_status read_section(ini_parser *at, char *line, stk_error *err) {
    stk_ini *ini = at->ini;
    char *end = strchr(line, ']');
    if (end == NULL) {
        return malformed(at, "begins a section that has no ]", err);
    }
    *end = '\0';
    char *name = trim(line + 1);
    simplify(name);
    if (*name == '\0') {
        return malformed(at, "has a section without a name", err);
    }
    at->in_section = true;
    at->has_top = false;
    if (stk_map_find(&at->known, name, &at->section)) {
        return STK_OK;
    }
    bool added = false;
    if (!STK_RESERVE(ini->sections, ini->section_capacity, ini->section_count + 1) ||
        !stk_map_add(&at->known, name, ini->section_count, &added)) {
        return STK_FAIL_MEMORY(err, at->file);
    }
    at->section = ini->section_count;
    ini->sections[ini->section_count++] = name;
    return STK_OK;
}

/* Reads `name = value`, where `marks` are the characters that may stand for '='. */
static stk_status read_entry(ini_parser *at, char *line, const char *marks, const char *parent,
                             stk_error *err) {
    stk_ini *ini = at->ini;
    char *mark = strpbrk(line, marks);
    if (mark == NULL || mark == line) {
        return malformed(at, "is neither a [section] nor a `name = value`", err);
    }
    if (!STK_RESERVE(ini->entries, ini->entry_capacity, ini->entry_count + 1)) {
        return STK_FAIL_MEMORY(err, at->file);
    }
    *mark = '\0';
    ini->entries[ini->entry_count++] = (ini_entry){
        .name = trim(line), .value = trim(mark + 1), .parent = parent, .section = at->section};
    return STK_OK;
}

static stk_status read_top(ini_parser *at, char *line, size_t indent, stk_error *err) {
    if (!at->in_section) {
        return malformed(at, "stands before the first [section]", err);
    }
    stk_status status = read_entry(at, line, "=:", NULL, err);
    if (status == STK_OK) {
        at->top = at->ini->entry_count - 1;
        at->has_top = true;
        at->indent = indent;
        char *value = at->ini->entries[at->top].value;
        at->end = *value != '\0' ? value + strlen(value) : NULL;
    }
    return status;
}

/* A line below a name. A continuation is moved up after its value; it always fits there. */
static stk_status read_deeper(ini_parser *at, char *line, stk_error *err) {
    if (at->end == NULL) {
        return read_entry(at, line, "=", at->ini->entries[at->top].name, err);
    }
    size_t length = strlen(line);
    *at->end++ = '\n';
    memmove(at->end, line, length + 1);
    at->end += length;
    return STK_OK;
}

static stk_status read_line(ini_parser *at, char *line, stk_error *err) {
    size_t indent = strspn(line, BLANKS);
    char *start = trim(line);
    if (*start == '\0' || *start == '#' || *start == ';') {
        return STK_OK;
    }
    if (at->has_top && indent > at->indent) {
        return read_deeper(at, start, err);
    }
    return *start == '[' ? read_section(at, start, err) : read_top(at, start, indent, err);
}

/* Reads all lines of ini->text. */
static stk_status read_lines(stk_ini *ini, const char *file, stk_error *err) {
    ini_parser at = {.ini = ini, .file = file};
    stk_status status = STK_OK;
    char *line = ini->text;
    const char *end = ini->text + ini->size;
    if (memchr(ini->text, '\0', ini->size) != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot read %s: it is no text", file);
    }
    if (strncmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3; /* the byte order mark that some editors write */
    }
    while (line != NULL && status == STK_OK) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        if (next != NULL) {
            *next++ = '\0';
        }
        at.line++;
        status = read_line(&at, line, err);
        line = next;
    }
    stk_map_free(&at.known);
    return status;
}

/* Takes text, which has a NUL after its size bytes. */
static stk_status parse(stk_ini **ini, char *text, size_t size, const char *file, stk_error *err) {
    stk_ini *made = stk_mem_new(1, sizeof *made);
    if (made == NULL) {
        explicit_bzero(text, size);
        stk_mem_free(text);
        return STK_FAIL_MEMORY(err, file);
    }
    made->text = text;
    made->size = size;
    stk_status status = read_lines(made, file, err);
    if (status != STK_OK) {
        stk_ini_free(made);
        made = NULL;
    }
    *ini = made;
    return status;
}

stk_status stk_ini_read(stk_ini **ini, const char *path, stk_error *err) {
    char *text = NULL;
    size_t size = 0;
    /* A home on a mount that does not answer has no settings; the environment may be enough. */
    char *folder = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
    stk_disk_root(folder != NULL && folder[0] != '\0' ? folder : NULL, true);
    stk_mem_free(folder);
    if (!stk_path_is_file(path)) {
        return stk_ini_parse(ini, "", 0, path, err);
    }
    stk_status status = stk_file_read(path, STK_INI_MAX_BYTES, &text, &size, err);
    return status == STK_OK ? parse(ini, text, size, path, err) : status;
}

stk_status stk_ini_parse(stk_ini **ini, const char *text, size_t size, const char *name,
                         stk_error *err) {
    char *copy = stk_mem_strndup(text, size);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, name);
    }
    return parse(ini, copy, size, name, err);
}

void stk_ini_free(stk_ini *ini) {
    if (ini == NULL) {
        return;
    }
    explicit_bzero(ini->text, ini->size);
    stk_mem_free(ini->text);
    stk_mem_free(ini->sections);
    stk_mem_free(ini->entries);
    stk_mem_free(ini);
}

/* The index of a section, or the count when there is none. */
static size_t find_section(const stk_ini *ini, const char *section) {
    size_t i = 0;
    while (i < ini->section_count && strcmp(ini->sections[i], section) != 0) {
        i++;
    }
    return i;
}

bool stk_ini_has(const stk_ini *ini, const char *section) {
    return find_section(ini, section) < ini->section_count;
}

/* Whether `name` means this entry: its own name or parent.name. */
static bool is_called(const ini_entry *e, const char *name) {
    if (e->parent == NULL) {
        return strcasecmp(e->name, name) == 0;
    }
    size_t length = strlen(e->parent);
    return strncasecmp(e->parent, name, length) == 0 && name[length] == '.' &&
           strcasecmp(e->name, name + length + 1) == 0;
}

const char *stk_ini_get(const stk_ini *ini, const char *section, const char *name) {
    size_t index = find_section(ini, section);
    for (size_t i = ini->entry_count; i > 0 && index < ini->section_count; i--) {
        const ini_entry *e = &ini->entries[i - 1];
        if (e->section == index && is_called(e, name)) {
            return *e->value != '\0' ? e->value : NULL;
        }
    }
    return NULL;
}
