/* bson_files.h - BSON documents for tests, one field after the other. */
#ifndef STK_TESTS_BSON_FILES_H
#define STK_TESTS_BSON_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static stk_str bson_file; /* being made */

static inline void put_number(uint64_t value, int size) {
    for (int i = 0; i < size; i++) {
        char byte = (char)(value >> (8 * i));
        stk_str_append_bytes(&bson_file, &byte, 1);
    }
}

static inline void head(int type, const char *name) {
    put_number((uint64_t)type, 1);
    stk_str_append_bytes(&bson_file, name, strlen(name) + 1);
}

/* Begins a document, whose length close_document() sets. */
static inline size_t open_document(void) {
    size_t at = bson_file.length;
    put_number(0, 4);
    return at;
}

static inline void close_document(size_t at) {
    put_number(0, 1);
    size_t length = bson_file.length - at;
    for (int i = 0; i < 4; i++) {
        bson_file.text[at + (size_t)i] = (char)(length >> (8 * i));
    }
}

static inline void put_int32(const char *name, int32_t value) {
    head(0x10, name);
    put_number((uint32_t)value, 4);
}

static inline void put_int64(const char *name, int64_t value) {
    head(0x12, name);
    put_number((uint64_t)value, 8);
}

static inline void put_string(const char *name, const char *text) {
    head(0x02, name);
    put_number(strlen(text) + 1, 4);
    stk_str_append_bytes(&bson_file, text, strlen(text) + 1);
}

static inline void put_binary(const char *name, int subtype, const char *bytes) {
    head(0x05, name);
    put_number(strlen(bytes), 4);
    put_number((uint64_t)subtype, 1);
    stk_str_append(&bson_file, bytes);
}

/* imgs: [{picture: ...}, ...] */
static inline void put_pictures(const char *const *pictures) {
    head(0x04, "imgs");
    size_t list = open_document();
    for (int i = 0; pictures[i] != NULL; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        head(0x03, name);
        size_t one = open_document();
        put_binary("picture", 0, pictures[i]);
        close_document(one);
    }
    close_document(list);
}

#define PICTURES(...) put_pictures((const char *const[]){__VA_ARGS__, NULL})

#endif
