/*
 * hide.c - one pass over a text, which looks for names, their values, addresses and known tokens.
 *
 * A name consists of parts, as in HF_HUB_TOKEN or --wandb.api-key. Names that only sound like
 * secrets (tokenizer, max-tokens, sort-key) must stay readable. So whole parts are compared, and
 * `key` counts only after a word such as api.
 */
#include "base/hide.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define PART_MOST 24 /* bytes of a part of a name that is looked at */
#define PARTS_MOST 8

/* Shorter values of variables are words like any other. */
#define VALUE_LEAST 8

/* A value of at least this length, with letters and digits, may be a key. */
#define RANDOM_LEAST 16
#define LARGE_LEAST 3 /* capitals that a key without digits has; a name made of words has fewer */

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether a value without quotes ends before this character. */
static bool ends_value(char c) {
    return c == '\0' || is_blank(c) || strchr("\"'`;&|()<>,}]", c) != NULL;
}

/* ---- names ---- */

typedef struct name_parts {
    char text[PARTS_MOST][PART_MOST]; /* the last ones, in small letters */
    int count;
} name_parts;

static void add_part(name_parts *p, const char *from, size_t length) {
    if (length == 0) {
        return;
    }
    if (p->count == PARTS_MOST) {
        memmove(p->text[0], p->text[1], sizeof p->text - sizeof p->text[0]);
        p->count--;
    }
    /* Of a long part the end tells what it is: myserviceaccesstoken. */
    size_t taken = length < PART_MOST - 1 ? length : PART_MOST - 1;
    for (size_t i = 0; i < taken; i++) {
        p->text[p->count][i] = (char)tolower((unsigned char)from[length - taken + i]);
    }
    p->text[p->count++][taken] = '\0';
}

static name_parts split(const char *name, size_t length) {
    name_parts p = {.count = 0};
    size_t from = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i == length || name[i] == '_' || name[i] == '-' || name[i] == '.') {
            add_part(&p, name + from, i - from);
            from = i + 1;
        }
    }
    return p;
}

static bool is_among(const char *part, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(part, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool ends_with_one(const char *part, const char *const *endings, size_t count) {
    size_t length = strlen(part);
    for (size_t i = 0; i < count; i++) {
        size_t tail = strlen(endings[i]);
        if (length >= tail && strcmp(part + length - tail, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool stk_hide_is_secret(const char *name, size_t length) {
    static const char *const anywhere[] = {"secret",      "secrets", "password",   "passwords",
                                           "passwd",      "pwd",     "passphrase", "credential",
                                           "credentials", "apikey",  "bearer"};
    static const char *const last[] = {"auth",   "authorization", "signature", "sig",
                                       "cookie", "creds",         "jwt"};
    static const char *const endings[] = {"token",     "password",   "passwd",    "apikey",
                                          "accesskey", "privatekey", "secretkey", "accountkey",
                                          "secret",    "passphrase"};
    static const char *const whose[] = {"api",     "access",  "private", "secret",  "account",
                                        "auth",    "wandb",   "comet",   "neptune", "kaggle",
                                        "openai",  "aws",     "azure",   "gcp",     "hf",
                                        "mlflow",  "clearml", "signing", "shared",  "encryption",
                                        "storage", "ssh",     "license", "master",  "service"};
    name_parts p = split(name, length);
    for (int i = 0; i < p.count; i++) {
        if (is_among(p.text[i], anywhere, STK_COUNT(anywhere))) {
            return true;
        }
    }
    if (p.count == 0) {
        return false;
    }
    const char *end = p.text[p.count - 1];
    bool key = strcmp(end, "key") == 0 && p.count > 1 &&
               is_among(p.text[p.count - 2], whose, STK_COUNT(whose));
    return key || is_among(end, last, STK_COUNT(last)) ||
           ends_with_one(end, endings, STK_COUNT(endings));
}

static bool looks_random(const char *value, size_t length) {
    size_t digits = 0;
    size_t letters = 0;
    for (size_t i = 0; i < length; i++) {
        digits += isdigit((unsigned char)value[i]) != 0;
        letters += isalpha((unsigned char)value[i]) != 0;
    }
    return length >= RANDOM_LEAST && digits > 1 && letters > 1;
}

/* Some services give out letters alone, small and large ones, or large ones only. */
static bool looks_mixed(const char *value, size_t length) {
    size_t small = 0;
    size_t large = 0;
    for (size_t i = 0; i < length; i++) {
        small += islower((unsigned char)value[i]) != 0;
        large += isupper((unsigned char)value[i]) != 0;
    }
    return length >= RANDOM_LEAST && large >= LARGE_LEAST && (small >= LARGE_LEAST || small == 0);
}

/* A name with "pass" or "key" may mean something harmless: its value decides. */
static stk_hide_when hide_when(const char *name, size_t length) {
    name_parts p = split(name, length);
    const char *end = p.count > 0 ? p.text[p.count - 1] : "";
    return stk_hide_is_secret(name, length)                     ? STK_HIDE_ALWAYS
           : strcmp(end, "key") == 0                            ? STK_HIDE_RANDOM
           : strcmp(end, "pass") == 0 || strcmp(end, "pw") == 0 ? STK_HIDE_TEXT
                                                                : STK_HIDE_NEVER;
}

/* Whether the value is a number, or true or false: then it is a setting, not a secret. */
static bool is_setting(const char *value, size_t length) {
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off"};
    for (size_t i = 0; i < STK_COUNT(words); i++) {
        if (strlen(words[i]) == length && strncasecmp(value, words[i], length) == 0) {
            return true;
        }
    }
    return strspn(value, "0123456789.") >= length;
}

static bool is_hidden(stk_hide_when when, const char *value, size_t length) {
    return when == STK_HIDE_ALWAYS || (when == STK_HIDE_RANDOM && looks_random(value, length)) ||
           (when == STK_HIDE_TEXT && !is_setting(value, length));
}

/* Beginnings of tokens that services give out, by which they are known without a name. */
static bool is_known_token(const char *word, size_t length) {
    static const char *const beginnings[] = {
        "ghp_",  "gho_", "ghs_", "ghu_",  "ghr_",  "github_pat_", "glpat-", "sk-",
        "sk_",   "hf_",  "AKIA", "ASIA",  "xoxb-", "xoxa-",       "xoxp-",  "xoxs-",
        "xoxr-", "AIza", "npm_", "pypi-", "eyJ",   "dckr_pat_",   "r8_",    "lsv2_",
    };
    for (size_t i = 0; i < STK_COUNT(beginnings); i++) {
        size_t known = strlen(beginnings[i]);
        if (length >= known + RANDOM_LEAST && strncmp(word, beginnings[i], known) == 0 &&
            (looks_random(word + known, length - known) ||
             looks_mixed(word + known, length - known))) {
            return true;
        }
    }
    return false;
}

/* ---- the text ---- */

/* The end of the value that begins here: its closing quote, or the end of the word. */
static const char *end_of_value(const char *p) {
    if (*p == '"' || *p == '\'') {
        const char *close = strchr(p + 1, *p);
        return close != NULL ? close + 1 : p + strlen(p);
    }
    while (!ends_value(*p)) {
        p += *p == '\\' && p[1] != '\0' ? 2 : 1;
    }
    return p;
}

/* A header's value has blanks in it: it goes to the quote that the header began with, or the line's
 * end. */
static const char *end_of_header(const char *p) {
    return p + strcspn(p, "\"'\r\n");
}

static void append_part(stk_str *out, const char *from, const char *to) {
    stk_str_append_bytes(out, from, (size_t)(to - from));
}

/* *** with the quotes that the value has. */
static const char *append_hidden(stk_str *out, const char *value, const char *end) {
    bool quoted = *value == '"' || *value == '\'';
    stk_str_append_bytes(out, value, quoted ? 1 : 0);
    stk_str_append(out, STK_HIDDEN);
    stk_str_append_bytes(out, value, quoted ? 1 : 0);
    return end;
}

/* What follows a name, without blanks and a closing quote: = or :, or the blanks after a flag. */
static const char *value_after(const char *name, const char *p) {
    const char *at = p;
    if (*at == '=') {
        return at + 1;
    }
    if (*at == '"' || *at == '\'') {
        at++;
    }
    while (*at == ' ') {
        at++;
    }
    if (*at == ':' && at[1] != '/') {
        at++;
        while (*at == ' ') {
            at++;
        }
        return at;
    }
    return name[0] == '-' && is_blank(*p) ? p + strspn(p, " \t") : NULL;
}

/* Whether the value of a header, which may have blanks and marks in it, stands after a name. */
static bool is_header(const char *name, const char *end) {
    static const char *const headers[] = {"authorization", "cookie"};
    for (size_t i = 0; i < STK_COUNT(headers); i++) {
        size_t length = strlen(headers[i]);
        if ((size_t)(end - name) >= length && strncasecmp(end - length, headers[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Copies a name that begins here and hides its value; returns where to go on. `first`: an argument
 * begins with the name, and all after = or : is its value.
 */
static const char *pass_name(stk_hider *hider, const char *name, bool first, stk_str *out) {
    const char *end = name;
    while (is_name(*end)) {
        end++;
    }
    size_t length = (size_t)(end - name);
    if (is_known_token(name, length)) {
        stk_str_append(out, STK_HIDDEN);
        return end_of_value(end);
    }
    append_part(out, name, end);
    if (*end == '\0') {
        hider->next = name[0] == '-' ? hide_when(name, length) : STK_HIDE_NEVER;
        return end;
    }
    const char *value = value_after(name, end);
    bool flag = value != NULL && is_blank(*end) && name[0] == '-';
    if (value == NULL || *value == '\0' || (flag && *value == '-')) {
        return end;
    }
    const char *after = first && !flag         ? value + strlen(value)
                        : is_header(name, end) ? end_of_header(value)
                                               : end_of_value(value);
    if (after == value || !is_hidden(hide_when(name, length), value, (size_t)(after - value))) {
        return end;
    }
    append_part(out, end, value);
    return append_hidden(out, value, after);
}

/*
 * The bytes of user and password that an address begins with after "://". A secret of S3 may have a
 * slash in it. So after a colon, all that is no port belongs to the password, up to the last @ of
 * the word.
 */
static size_t user_length(const char *p) {
    size_t host = strcspn(p, "/?# \t\r\n\"'");
    size_t word = strcspn(p, " \t\r\n\"'");
    const char *colon = memchr(p, ':', host);
    const char *at = memrchr(p, '@', host);
    if (at != NULL) {
        size_t length = (size_t)(at - p);
        return (colon != NULL && colon < at) || length >= RANDOM_LEAST ? length : 0;
    }
    bool port = colon != NULL && strspn(colon + 1, "0123456789") == host - (size_t)(colon + 1 - p);
    at = colon != NULL && !port && p[0] != '[' ? memrchr(p, '@', word) : NULL;
    return at != NULL ? (size_t)(at - p) : 0;
}

/* After "://": copies an address up to its host, without user and password. */
static const char *pass_host(const char *p, stk_str *out) {
    size_t length = user_length(p);
    if (length > 0) {
        stk_str_append(out, STK_HIDDEN);
    }
    return p + length;
}

void stk_hide_addresses(char *text) {
    for (char *at = strstr(text, "://"); at != NULL; at = strstr(at, "://")) {
        at += 3;
        size_t length = user_length(at);
        size_t stars = length < strlen(STK_HIDDEN) ? length : strlen(STK_HIDDEN);
        memset(at, STK_HIDDEN[0], stars);
        memmove(at + stars, at + length, strlen(at + length) + 1);
    }
}

/* -c, or -lc and the like, before a line for a shell or for Python. */
static bool is_before_line(const char *word) {
    size_t letters = word[0] == '-' ? strspn(word + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    return letters > 0 && word[1 + letters] == '\0' && word[letters] == 'c';
}

void stk_hide_word(stk_hider *hider, const char *word, stk_str *out) {
    bool argument = hider->arguments && !hider->line_next;
    const char *first = argument ? word + strspn(word, "+/") : NULL;
    bool value = word[0] != '-' && is_hidden(hider->next, word, strlen(word));
    hider->next = STK_HIDE_NEVER;
    hider->line_next = is_before_line(word);
    if (value) {
        stk_str_append(out, STK_HIDDEN);
        return;
    }
    const char *p = word;
    while (*p != '\0') {
        if (is_name(*p)) {
            p = pass_name(hider, p, p == first, out);
        } else if (strncmp(p, "://", 3) == 0) {
            stk_str_append(out, "://");
            p = pass_host(p + 3, out);
        } else {
            stk_str_append_bytes(out, p++, 1);
        }
    }
}

/* Puts *** in the place of a text, wherever it stands. */
static void hide_text(stk_str *word, const char *secret) {
    stk_str changed = {0};
    const char *from = stk_str_text(word);
    const char *at = strstr(from, secret);
    if (at == NULL) {
        return;
    }
    for (; at != NULL; at = strstr(from, secret)) {
        stk_str_append_bytes(&changed, from, (size_t)(at - from));
        stk_str_append(&changed, STK_HIDDEN);
        from = at + strlen(secret);
    }
    stk_str_append(&changed, from);
    stk_str_free(word);
    *word = changed;
}

void stk_hide_values(char *const *environment, stk_str *text) {
    for (size_t i = 0; environment[i] != NULL; i++) {
        const char *name = environment[i];
        const char *equals = strchr(name, '=');
        size_t length = equals != NULL ? strlen(equals + 1) : 0;
        if (length >= VALUE_LEAST &&
            is_hidden(hide_when(name, (size_t)(equals - name)), equals + 1, length)) {
            hide_text(text, equals + 1);
        }
    }
}
