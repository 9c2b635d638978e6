/* range_source.c - blocks of memory as sources of ranges, and exact reads of any source. */
#include "base/files/range_source.h"

#include <string.h>

#include "base/error.h"

/* How many of `size` bytes from `offset` a source of `all` bytes has. */
static size_t within(uint64_t all, uint64_t offset, size_t size) {
    uint64_t left = offset < all ? all - offset : 0;
    return size < left ? size : (size_t)left;
}

static stk_status read_block(void *user, uint64_t offset, void *into, size_t size, size_t *got,
                             stk_error *err) {
    const stk_bytes *block = user;
    (void)err;
    *got = within(block->size, offset, size);
    if (*got > 0) {
        memcpy(into, block->data + offset, *got);
    }
    return STK_OK;
}

stk_range_source stk_range_of_block(const char *name, stk_bytes *block) {
    return (stk_range_source){.name = name, .user = block, .read = read_block};
}

stk_status stk_range_read(const stk_range_source *source, uint64_t offset, void *into, size_t size,
                          stk_error *err) {
    size_t got = 0;
    stk_status status = source->read(source->user, offset, into, size, &got, err);
    if (status == STK_OK && got < size) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s ends at byte %llu, in the middle of something; copy or download it "
                          "again",
                          source->name, (unsigned long long)(offset + got));
    }
    return status;
}
