/* emu_text.c - conditions and kernels in a kernel's text: a scanner that knows lines and words. */
#include "emu_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 64 };

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_blank(char c) {
    return isspace((unsigned char)c);
}

/* ---- comments ---- */

char *emu_text_plain(const char *text) {
    char *plain = strdup(text);
    char quote = 0;
    for (char *p = plain; p != NULL && *p != '\0'; p++) {
        if (quote != 0) {
            if (*p == '\\' && p[1] != '\0') {
                p++;
            } else if (*p == quote || *p == '\n') {
                quote = 0;
            }
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        } else if (p[0] == '/' && (p[1] == '*' || p[1] == '/')) {
            bool line = p[1] == '/';
            const char *end = line ? strchr(p, '\n') : strstr(p + 2, "*/");
            end = end == NULL ? p + strlen(p) : line ? end : end + 2;
            for (; p < end; p++) {
                *p = *p == '\n' ? '\n' : ' ';
            }
            p--;
        }
    }
    return plain;
}

/* ---- directives ---- */

/* The end of a directive's line, with the lines that continue it. */
static const char *line_end(const char *p) {
    while (*p != '\0' && (*p != '\n' || p[-1] == '\\')) {
        p++;
    }
    return p;
}

/* The next directive after `p`, at its name; NULL: there is none. */
static const char *next_directive(const char *p, const char *text) {
    for (; *p != '\0'; p++) {
        if (*p == '#' && (p == text || p[-1] == '\n')) {
            p++;
            while (*p == ' ') {
                p++;
            }
            return p;
        }
    }
    return NULL;
}

static bool is_directive(const char *p, const char *name) {
    size_t length = strlen(name);
    return strncmp(p, name, length) == 0 && !is_word(p[length]);
}

bool emu_words_have(const emu_words *words, const char *name, size_t length) {
    for (int i = 0; i < words->count; i++) {
        if (words->all[i].length == length && memcmp(words->all[i].at, name, length) == 0) {
            return true;
        }
    }
    return words->full;
}

/* Notes the words of p .. end - 1 that are not noted yet. */
static void add_words(emu_words *words, const char *p, const char *end) {
    bool asked = false; /* the word before was "defined" */
    while (p < end) {
        const char *from = p;
        while (p < end && is_word(*p)) {
            p++;
        }
        size_t length = (size_t)(p - from);
        if (length == 0) {
            p++;
            continue;
        }
        if (!asked && !isdigit((unsigned char)*from) && !emu_words_have(words, from, length)) {
            if (words->count == (int)(sizeof words->all / sizeof *words->all)) {
                words->full = true;
                return;
            }
            words->all[words->count].at = from;
            words->all[words->count++].length = length;
        }
        asked = length == 7 && memcmp(from, "defined", 7) == 0;
    }
}

/* The place after the brackets that begin at `p`, as in [A][B]. */
static const char *brackets_end(const char *p) {
    int depth = 0;
    do {
        depth += *p == '[';
        depth -= *p == ']';
        p += *p != '\0';
    } while (*p != '\0' && (depth > 0 || *p == '['));
    return p;
}

/*
 * Lengths of arrays in structs, and of arrays that begin with values. A block at the top is that of
 * a struct if the word stands in front of it.
 */
static void add_lengths(emu_words *words, const char *plain) {
    int depth = 0;
    bool in_struct = false; /* a struct or its beginning */
    for (const char *p = plain; *p != '\0'; p++) {
        if (*p == '#' && (p == plain || p[-1] == '\n')) {
            p = line_end(p) - 1;
        } else if (*p == '{' || *p == '}') {
            depth += *p == '{' ? 1 : -1;
            in_struct = in_struct && depth > 0;
        } else if (depth == 0 && (*p == ';' || *p == ')')) {
            in_struct = false;
        } else if (depth == 0 && strncmp(p, "struct", 6) == 0 && !is_word(p[6])) {
            in_struct = true;
        } else if (*p == '[') {
            const char *end = brackets_end(p);
            const char *next = end;
            while (is_blank(*next)) {
                next++;
            }
            if ((in_struct && depth > 0) || (next[0] == '=' && next[1] == ' ' && next[2] == '{')) {
                add_words(words, p, end);
            }
            p = end - 1;
        }
    }
}

void emu_text_constants(const char *plain, emu_words *words) {
    int before = -1;
    words->count = 0;
    words->full = false;
    add_lengths(words, plain);
    for (const char *p = plain; (p = next_directive(p, plain)) != NULL;) {
        const char *end = line_end(p);
        if (is_directive(p, "if") || is_directive(p, "elif")) {
            add_words(words, p + (*p == 'e' ? 4 : 2), end);
        }
        p = end;
    }
    while (before != words->count && !words->full) { /* macros may be made of macros */
        before = words->count;
        for (const char *p = plain; (p = next_directive(p, plain)) != NULL;) {
            const char *end = line_end(p);
            if (is_directive(p, "define")) {
                const char *name = p + 6;
                while (*name == ' ') {
                    name++;
                }
                const char *after = name;
                while (is_word(*after)) {
                    after++;
                }
                if (emu_words_have(words, name, (size_t)(after - name))) {
                    add_words(words, after, end);
                }
            }
            p = end;
        }
    }
}

/* ---- what calls a kernel ---- */

static void write_line(FILE *to, const char *begin, const char *end) {
    for (const char *p = begin; p < end; p++) {
        fputc(*p == '\n' || *p == '\\' ? ' ' : *p, to);
    }
}

/* Writes "TYPE" of the parameter "TYPE name" in begin .. end - 1. */
static void write_type(FILE *to, const char *begin, const char *end) {
    while (end > begin && is_blank(end[-1])) {
        end--;
    }
    while (end > begin && is_word(end[-1])) {
        end--;
    }
    write_line(to, begin, end);
}

/* The parameters of a kernel: "TYPE name" each, from[i] .. to[i] - 1. */
typedef struct parameters {
    const char *from[MOST_PARAMETERS], *to[MOST_PARAMETERS];
    int count; /* may be more than there is room for */
} parameters;

/* What the macro begin .. end - 1 of the text stands for, and its end; NULL: it is none. */
static const char *macro_of(const char *plain, const char *begin, const char *end,
                            const char **body_end) {
    size_t length = (size_t)(end - begin);
    for (const char *p = plain; (p = next_directive(p, plain)) != NULL; p = line_end(p)) {
        if (is_directive(p, "define") && strncmp(p + 7, begin, length) == 0 &&
            is_blank(p[7 + length])) {
            *body_end = line_end(p);
            return p + 7 + length;
        }
    }
    return NULL;
}

/* Splits begin .. end - 1 at commas. A word by itself may be a macro for several parameters. */
static void split(const char *plain, const char *begin, const char *end, parameters *all) {
    for (const char *p = begin; p <= end; p++) {
        if (p < end && *p != ',') {
            continue;
        }
        const char *last = p;
        while (begin < last && (is_blank(*begin) || *begin == '\\')) {
            begin++;
        }
        while (last > begin && is_blank(last[-1])) {
            last--;
        }
        const char *word = begin;
        while (word < last && is_word(*word)) {
            word++;
        }
        const char *body_end = NULL;
        const char *body =
            word == last && begin < last ? macro_of(plain, begin, last, &body_end) : NULL;
        if (body != NULL) {
            split(plain, body, body_end, all);
        } else if (begin < last && !(last - begin == 4 && strncmp(begin, "void", 4) == 0)) {
            if (all->count < MOST_PARAMETERS) {
                all->from[all->count] = begin;
                all->to[all->count] = last;
            }
            all->count++;
        }
        begin = p + 1;
    }
}

static void write_call(FILE *file, const char *plain, const char *name, int length,
                       const char *begin, const char *end) {
    parameters all = {.count = 0};
    split(plain, begin, end, &all);
    const char *const *from = all.from;
    const char *const *to = all.to;
    int count = all.count;
    if (count > MOST_PARAMETERS) {
        fprintf(file, "_Static_assert(0, \"%.*s has too many parameters\"); ", length, name);
        return;
    }
    fprintf(file, "void %.*s(", length, name);
    write_line(file, begin, end);
    fprintf(file, "); static void emu_call_%.*s(void **a) { (void)a; %.*s(", length, name, length,
            name);
    for (int i = 0; i < count; i++) {
        fprintf(file, "%s*(", i > 0 ? ", " : "");
        write_type(file, from[i], to[i]);
        fprintf(file, " *)a[%d]", i);
    }
    fprintf(file, "); } static const unsigned emu_sizes_%.*s[] = {", length, name);
    for (int i = 0; i < count; i++) {
        fputs("sizeof(", file);
        write_type(file, from[i], to[i]);
        fputs("), ", file);
    }
    fprintf(file, "0}; static const char emu_kinds_%.*s[] = {", length, name);
    for (int i = 0; i < count; i++) {
        if (memchr(from[i], '*', (size_t)(to[i] - from[i])) != NULL) {
            fputs("'p', ", file);
            continue;
        }
        fputs("_Generic((", file);
        write_type(file, from[i], to[i]);
        fputs(")0, int: 'i', unsigned: 'i', long: 'l', unsigned long: 'l', long long: 'l', "
              "unsigned long long: 'l', float: 'f', default: '?'), ",
              file);
    }
    fprintf(file,
            "0}; const emu_kernel emu_kernel_%.*s = {emu_call_%.*s, %d, emu_kinds_%.*s, "
            "emu_sizes_%.*s}; ",
            length, name, length, name, count, length, name, length, name);
}

/* Writes what calls the kernel that begins at `p`: its parameters are in the last brackets. */
static void write_call_of(FILE *file, const char *plain, const char *p) {
    const char *open = NULL;
    const char *close = NULL;
    int depth = 0;
    for (; *p != '\0' && *p != '{' && *p != ';'; p++) {
        if (*p == '(' && depth++ == 0) {
            open = p;
        } else if (*p == ')' && --depth == 0) {
            close = p;
        }
    }
    if (open == NULL || close == NULL) {
        return;
    }
    const char *name_end = open;
    while (is_blank(name_end[-1])) {
        name_end--;
    }
    const char *name = name_end;
    while (is_word(name[-1])) {
        name--;
    }
    write_call(file, plain, name, (int)(name_end - name), open + 1, close);
}

void emu_text_write(FILE *file, const char *text, const char *plain) {
    static const char word[] = "KERNEL";
    const size_t length = sizeof word - 1;
    const char *written = plain;
    for (const char *p = plain; (p = strstr(p, word)) != NULL; p += length) {
        if ((p == plain || p[-1] == '\n') && !is_word(p[length])) {
            fwrite(text + (written - plain), 1, (size_t)(p - written), file);
            write_call_of(file, plain, p + length);
            written = p;
        }
    }
    fputs(text + (written - plain), file);
}
