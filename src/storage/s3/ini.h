/*
 * ini.h - files in the format of ~/.aws/config and ~/.aws/credentials.
 *
 *     [profile work]
 *     region = eu-central-1
 *     s3 =
 *       addressing_style = path
 *
 * Read as botocore reads them: sections, and `name = value` lines (or `name: value`). Names are
 * compared without regard to case, sections with it; quotes and repeated blanks in a section are
 * dropped ([profile "a b"] is "profile a b"). A line that is indented deeper than the name before
 * it belongs to that name: below an empty value it is a value of its own, here called
 * "s3.addressing_style"; below other values it continues the text after a line break. Only whole
 * lines that start with # or ; are comments, because commands may contain both characters. A
 * section or name that comes twice is one, and its last value counts. Errors name the file and the
 * line but never quote it: it may contain a secret. Threads: many threads may read one stk_ini.
 */
#ifndef STK_STORAGE_S3_INI_H
#define STK_STORAGE_S3_INI_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_ini stk_ini;

/* Larger files are refused: they are not settings. */
#define STK_INI_MAX_BYTES ((size_t)1024 * 1024)

/* Reads a file. A missing file, or one that is not regular, counts as empty. */
STK_CHECKED stk_status stk_ini_read(stk_ini **ini, const char *path, stk_error *err);

/* Parses a text, which is copied; `name` stands for the path in errors. */
STK_CHECKED stk_status stk_ini_parse(stk_ini **ini, const char *text, size_t size, const char *name,
                                     stk_error *err);

/* Wipes and frees all text; NULL is fine. */
void stk_ini_free(stk_ini *ini);

/* Whether there is such a section. */
bool stk_ini_has(const stk_ini *ini, const char *section);

/* A value, valid as long as ini; NULL: none, or empty. */
const char *stk_ini_get(const stk_ini *ini, const char *section, const char *name);

#endif
