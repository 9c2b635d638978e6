/*
 * text_blocks.c - a list of blocks of memory. The first block has room for the next texts; all
 * others are only there to be freed.
 */
#include "base/text/text_blocks.h"

#include <string.h>

#include "base/mem.h"

#define BLOCK_BYTES ((size_t)256 * 1024)

typedef struct stk_text_block {
    struct stk_text_block *next;
    void *adopted; /* owned: somebody else's block; NULL: the texts are in `text` */
    size_t used;   /* bytes of `text` */
    size_t size;   /* bytes of `text`; 0 with `adopted` */
    char text[];
} stk_text_block;

char *stk_text_blocks_cut(stk_text_blocks *texts, size_t size) {
    stk_text_block *block = texts->first;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = stk_mem_raw(1, sizeof *block + room);
        if (block == NULL) {
            return NULL;
        }
        *block = (stk_text_block){.next = texts->first, .size = room};
        texts->first = block;
    }
    char *text = block->text + block->used;
    block->used += size;
    return text;
}

char *stk_text_blocks_keep(stk_text_blocks *texts, const char *text, size_t length) {
    char *copy = stk_text_blocks_cut(texts, length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

/* Adds blocks after the first, which may have room left. */
static void insert_blocks(stk_text_blocks *texts, stk_text_block *blocks) {
    stk_text_block **place = texts->first != NULL ? &texts->first->next : &texts->first;
    stk_text_block *last = blocks;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = *place;
    *place = blocks;
}

bool stk_text_blocks_adopt(stk_text_blocks *texts, void *bytes) {
    stk_text_block *block = stk_mem_raw(1, sizeof *block);
    if (block == NULL) {
        return false;
    }
    *block = (stk_text_block){.adopted = bytes};
    insert_blocks(texts, block);
    return true;
}

void stk_text_blocks_merge(stk_text_blocks *into, stk_text_blocks *from) {
    if (from->first != NULL) {
        insert_blocks(into, from->first);
    }
    from->first = NULL;
}

void stk_text_blocks_free(stk_text_blocks *texts) {
    while (texts->first != NULL) {
        stk_text_block *block = texts->first;
        texts->first = block->next;
        stk_mem_free(block->adopted);
        stk_mem_free(block);
    }
}

bool stk_texts_take(stk_texts *texts, char *text) {
    if (text == NULL || !STK_RESERVE(texts->items, texts->capacity, texts->count + 1)) {
        stk_mem_free(text);
        return false;
    }
    texts->items[texts->count++] = text;
    return true;
}

void stk_texts_free(stk_texts *texts) {
    for (size_t i = 0; i < texts->count; i++) {
        stk_mem_free(texts->items[i]);
    }
    stk_mem_free(texts->items);
    *texts = (stk_texts){0};
}
