/*
 * object_text.h - growing text, the spellings of HTTP and XML, and a table by name, for the test
 * server.
 *
 * The server is a tool of the tests and needs none of the library. Without memory it can only end,
 * so that nothing here fails.
 */
#ifndef OBJECT_TEXT_H
#define OBJECT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that grows; starts as all zero. `bytes` ends with a NUL that `size` does not count. */
typedef struct os_text {
    char *bytes; /* owned; NULL while nothing was added */
    size_t size;
    size_t room;
} os_text;

/* A table from names to records of one size, which start as all zero and never move. */
typedef struct os_table {
    struct os_table_slot *slots; /* room of them, or NULL */
    size_t room;                 /* a power of two, or 0 */
    size_t count;
    size_t record_bytes; /* to be set before the first use */
} os_table;

/* Prints a sentence and ends the program. */
_Noreturn void os_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As realloc and strdup, but they never return NULL. */
void *os_resize(void *memory, size_t size);
char *os_copy(const char *string);

void os_text_add(os_text *text, const char *bytes, size_t size);
void os_text_addf(os_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void os_text_free(os_text *text);

/* Adds a string with the characters that mean something in XML escaped. */
void os_text_add_xml(os_text *text, const char *string);

/* Adds a string as S3 spells keys when encoding-type=url is asked for: a blank is a plus sign and
 * slashes stay. */
void os_text_add_url(os_text *text, const char *string);

/* Decodes %XX in place. False when an escape is broken or stands for NUL; the text is then spoilt.
 */
bool os_percent_decode(char *text);

/* The value of a name in `a=b&c=d`, decoded (a plus sign is a blank), to be freed; NULL when it is
 * not there. A broken escape makes the value empty. */
char *os_query_value(const char *query, const char *name);

/* A number for a string: FNV-1a with the bits mixed. */
uint64_t os_hash(const char *string);

/* Mixes the bits of a number well: the finisher of splitmix64. */
uint64_t os_mix(uint64_t value);

/* The record of a name, made when it is new. */
void *os_table_get(os_table *table, const char *name);

void os_table_free(os_table *table);

#endif
