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
 * it belongs to that: below an empty value it is a value of its own, called "s3.addressing_style"
 * here, else it continues the text after a line break. Only whole lines that start with # or ; are
 * comments, since commands may hold both. A section or name that comes twice is one, and the last
 * value counts. Errors name file and line but never show what stands there: it may be a secret.
 * Threads: a file that was read may be asked by many.
 */
#ifndef STK_STORAGE_S3_INI_H
#define STK_STORAGE_S3_INI_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_ini stk_ini;

/* Files with more bytes are refused: nobody wrote them as settings. */
#define STK_INI_MAX_BYTES ((size_t)1024 * 1024)

/* Reads a file. One that is not there or no regular file is empty. */
STK_CHECKED stk_status stk_ini_read(stk_ini **ini, const char *path, stk_error *err);

/* The same from text, which is copied; `name` stands for the path in errors. */
STK_CHECKED stk_status stk_ini_parse(stk_ini **ini, const char *text, size_t size, const char *name,
                                     stk_error *err);

/* Wipes what was read; NULL is fine. */
void stk_ini_free(stk_ini *ini);

bool stk_ini_has(const stk_ini *ini, const char *section);

/* The value, or NULL when there is none or it is empty; it lives as long as ini does. */
const char *stk_ini_get(const stk_ini *ini, const char *section, const char *name);

/* The name of each section once, in the order of the file; NULL behind the last. */
const char *stk_ini_section(const stk_ini *ini, size_t index);

#endif
