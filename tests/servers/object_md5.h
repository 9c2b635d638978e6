/*
 * object_md5.h - MD5 (RFC 1321), which S3 uses for the ETag of an object that came in one piece.
 */
#ifndef OBJECT_MD5_H
#define OBJECT_MD5_H

#include <stddef.h>
#include <stdint.h>

typedef struct os_md5 {
    uint32_t state[4];
    uint64_t size;             /* bytes so far */
    unsigned char waiting[64]; /* size % 64 bytes that fill no block yet */
} os_md5;

void os_md5_start(os_md5 *md5);
void os_md5_add(os_md5 *md5, const void *bytes, size_t size);

/* Writes 32 hexadecimal digits and a NUL. */
void os_md5_end(os_md5 *md5, char hex[33]);

#endif
