/*
 * text_blocks.h - texts that are freed together: in few large blocks of memory, or in a list.
 *
 * A million paths in blocks take some hundred allocations. A text stays where it is until
 * stk_text_blocks_free() or stk_texts_free(). Threads: one at a time.
 */
#ifndef STK_BASE_TEXT_TEXT_BLOCKS_H
#define STK_BASE_TEXT_TEXT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_text_blocks {
    struct stk_text_block *first; /* owned: the block that texts are cut from; NULL: none yet */
} stk_text_blocks;                /* starts zeroed */

/* Memory of `size` bytes, for the caller to fill in; NULL without memory. */
char *stk_text_blocks_cut(stk_text_blocks *texts, size_t size);

/* A copy of the text, with a NUL after its `length` bytes; NULL without memory. */
char *stk_text_blocks_keep(stk_text_blocks *texts, const char *text, size_t length);

/* Takes over a block of stk_mem_* with texts in it. False without memory: it is not taken. */
STK_CHECKED bool stk_text_blocks_adopt(stk_text_blocks *texts, void *bytes);

/* Moves all texts of `from` to `into`; leaves `from` empty. */
void stk_text_blocks_merge(stk_text_blocks *into, stk_text_blocks *from);

/* Frees all texts; the struct is empty then. */
void stk_text_blocks_free(stk_text_blocks *texts);

/* A list of texts, each a block of its own. */
typedef struct stk_texts {
    char **items; /* owned array of owned texts */
    size_t count;
    size_t capacity;
} stk_texts; /* starts zeroed */

/* Adds the text, which it takes even where it fails. False without memory, or if text is NULL. */
bool stk_texts_take(stk_texts *texts, char *text);

/* Frees all texts and the list; the struct is empty then. */
void stk_texts_free(stk_texts *texts);

#endif
