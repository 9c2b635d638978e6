/*
 * object_text.c - see the header.
 */
#include "object_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct os_table_slot {
    char *name;   /* owned; NULL in a free slot */
    void *record; /* owned */
};

void os_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("object_server: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

void *os_resize(void *memory, size_t size) {
    void *resized = realloc(memory, size > 0 ? size : 1);
    if (resized == NULL) {
        os_die("out of memory");
    }
    return resized;
}

char *os_copy(const char *string) {
    size_t size = strlen(string) + 1;
    return memcpy(os_resize(NULL, size), string, size);
}

static void make_room(os_text *text, size_t more) {
    size_t needed = text->size + more + 1;
    if (needed > text->room) {
        text->room = needed > 2 * text->room ? needed : 2 * text->room;
        text->bytes = os_resize(text->bytes, text->room);
    }
}

void os_text_add(os_text *text, const char *bytes, size_t size) {
    make_room(text, size);
    if (size > 0) {
        memcpy(text->bytes + text->size, bytes, size);
    }
    text->size += size;
    text->bytes[text->size] = '\0';
}

void os_text_addf(os_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0) {
        os_die("cannot format '%s'", format);
    }
    make_room(text, (size_t)size);
    vsnprintf(text->bytes + text->size, (size_t)size + 1, format, again);
    va_end(again);
    text->size += (size_t)size;
}

void os_text_free(os_text *text) {
    free(text->bytes);
    *text = (os_text){0};
}

void os_text_add_xml(os_text *text, const char *string) {
    for (; *string != '\0'; string++) {
        unsigned char byte = (unsigned char)*string;
        switch (byte) {
        case '&':
            os_text_addf(text, "&amp;");
            break;
        case '<':
            os_text_addf(text, "&lt;");
            break;
        case '>':
            os_text_addf(text, "&gt;");
            break;
        case '"':
            os_text_addf(text, "&quot;");
            break;
        default:
            if (byte < 0x20) {
                os_text_addf(text, "&#x%X;", byte);
            } else {
                os_text_add(text, string, 1);
            }
        }
    }
}

void os_text_add_url(os_text *text, const char *string) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.*/";
    for (; *string != '\0'; string++) {
        if (*string == ' ') {
            os_text_add(text, "+", 1);
        } else if (strchr(plain, *string) != NULL) {
            os_text_add(text, string, 1);
        } else {
            os_text_addf(text, "%%%02X", (unsigned char)*string);
        }
    }
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool os_percent_decode(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_digit(from[1]);
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low < 0 || high + low == 0) {
            return false;
        }
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return true;
}

char *os_query_value(const char *query, const char *name) {
    size_t name_size = strlen(name);
    while (*query != '\0') {
        size_t size = strcspn(query, "&");
        if (size >= name_size && memcmp(query, name, name_size) == 0 &&
            (size == name_size || query[name_size] == '=')) {
            size_t skipped = size == name_size ? size : name_size + 1;
            os_text value = {0};
            os_text_add(&value, query + skipped, size - skipped);
            for (char *c = value.bytes; *c != '\0'; c++) {
                *c = *c == '+' ? ' ' : *c;
            }
            if (!os_percent_decode(value.bytes)) {
                value.bytes[0] = '\0';
            }
            return value.bytes;
        }
        query += size;
        query += *query == '&';
    }
    return NULL;
}

uint64_t os_mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

uint64_t os_hash(const char *string) {
    uint64_t hash = 0xCBF29CE484222325U;
    for (; *string != '\0'; string++) {
        hash = (hash ^ (unsigned char)*string) * 0x100000001B3U;
    }
    return os_mix(hash);
}

static struct os_table_slot *find_slot(const os_table *table, const char *name) {
    size_t at = (size_t)os_hash(name) & (table->room - 1);
    while (table->slots[at].name != NULL && strcmp(table->slots[at].name, name) != 0) {
        at = (at + 1) & (table->room - 1);
    }
    return &table->slots[at];
}

static void grow(os_table *table) {
    os_table larger = {.room = table->room > 0 ? 2 * table->room : 256,
                       .count = table->count,
                       .record_bytes = table->record_bytes};
    larger.slots = os_resize(NULL, larger.room * sizeof *larger.slots);
    memset(larger.slots, 0, larger.room * sizeof *larger.slots);
    for (size_t i = 0; i < table->room; i++) {
        if (table->slots[i].name != NULL) {
            *find_slot(&larger, table->slots[i].name) = table->slots[i];
        }
    }
    free(table->slots);
    *table = larger;
}

void *os_table_get(os_table *table, const char *name) {
    if (2 * (table->count + 1) > table->room) {
        grow(table);
    }
    struct os_table_slot *slot = find_slot(table, name);
    if (slot->name == NULL) {
        slot->name = os_copy(name);
        slot->record = os_resize(NULL, table->record_bytes);
        memset(slot->record, 0, table->record_bytes);
        table->count++;
    }
    return slot->record;
}

void os_table_free(os_table *table) {
    for (size_t i = 0; i < table->room; i++) {
        free(table->slots[i].name);
        free(table->slots[i].record);
    }
    free(table->slots);
    *table = (os_table){.record_bytes = table->record_bytes};
}
