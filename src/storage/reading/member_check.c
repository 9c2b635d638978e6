/* member_check.c - checks the bytes of members, and says whose fault it is when they are wrong. */
#include "storage/reading/member_check.h"

#include "base/numbers/checksum.h"
#include "storage/zip/zip_member.h"

stk_member_check stk_member_check_bytes(const stk_extent *extent, stk_bytes *bytes) {
    stk_member_check check = {.came = bytes->size};
    if (bytes->size != extent->length) {
        check.why = extent->zipped ? "it is cut off" : "";
    } else if (extent->zipped) {
        stk_zip_promise promise = {
            .size = extent->size, .crc32 = extent->crc32, .method = extent->method};
        check.why = stk_zip_member_unpack(bytes, &promise, &check.no_memory);
    } else if (extent->has_checksum && stk_checksum(bytes->data, bytes->size) != extent->checksum) {
        check.why = ", with another checksum";
    }
    return check;
}

void stk_member_blame(const stk_extent *extent, const stk_member_check *check, const char *path,
                      stk_fetch_result *result) {
    if (check->no_memory) {
        (void)stk_fetch_fail(result, STK_FETCH_NO_MEMORY, STK_ERR_MEMORY, "out of memory");
        return;
    }
    if (extent->zipped) {
        (void)stk_fetch_fail(result, STK_FETCH_DAMAGED, STK_ERR_DATA,
                             "cannot read %.200s: its bytes in the archive %.150s are damaged: %s; "
                             "copy the archive again",
                             path, extent->object, check->why);
    } else {
        (void)stk_fetch_fail(
            result, STK_FETCH_DAMAGED, STK_ERR_DATA,
            "cannot read %.200s: its bytes in the shard %.150s are damaged (%zu of "
            "%llu came%s); stage the data set again",
            path, extent->object, check->came, (unsigned long long)extent->length, check->why);
    }
    result->is_sentence = true;
}
