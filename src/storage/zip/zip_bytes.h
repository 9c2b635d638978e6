/*
 * zip_bytes.h - inside zip: numbers in its records, little-endian, and the header of a member.
 */
#ifndef STK_STORAGE_ZIP_ZIP_BYTES_H
#define STK_STORAGE_ZIP_ZIP_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* The header in front of a member's data: its name and extra fields follow. */
#define STK_ZIP_HEADER_BYTES 30
#define STK_ZIP_HEADER_MAGIC 0x04034b50u
#define STK_ZIP_EXTRA_MOST 65535 /* bytes of extra fields */

static inline uint64_t stk_zip_number(const uint8_t *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    return value;
}

#endif
