/*
 * zip_member.h - the bytes of a member of a zip, from its span.
 *
 * Threads: any, it keeps no state.
 */
#ifndef STK_STORAGE_ZIP_ZIP_MEMBER_H
#define STK_STORAGE_ZIP_ZIP_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/files/file.h"

/* What the directory says of a member. */
typedef struct stk_zip_promise {
    uint64_t size; /* bytes when unpacked; no more are ever written */
    uint32_t crc32;
    uint16_t method;
} stk_zip_promise;

/*
 * Replaces the span of a member (its header, its data, and perhaps bytes behind) by the member's
 * own bytes. NULL: it went well; otherwise the reason, which follows "its bytes in X are damaged:
 * ". *no_memory tells that memory was short and nothing is damaged.
 */
const char *stk_zip_member_unpack(stk_bytes *bytes, const stk_zip_promise *promise,
                                  bool *no_memory);

#endif
