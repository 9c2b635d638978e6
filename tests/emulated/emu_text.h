/*
 * emu_text.h - what the emulated NVRTC reads from a kernel's text before it is compiled.
 *
 * All of it takes the plain text beside the text itself: the same length, with blanks in the place
 * of comments, so that a place in one is the same place in the other.
 */
#ifndef STK_TESTS_EMU_TEXT_H
#define STK_TESTS_EMU_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/* The caller frees it; NULL: no memory. */
char *emu_text_plain(const char *text);

/* Words of a text, which must outlive them. */
typedef struct emu_words {
    struct {
        const char *at;
        size_t length;
    } all[1024];
    int count;
    bool full; /* there were more */
} emu_words;

/*
 * The names whose values must be constants: those in conditions of the preprocessor, in the lengths
 * of arrays in structs and of arrays that begin with values, and in the macros that stand there.
 * Whether a name is defined is no question of its value.
 */
void emu_text_constants(const char *plain, emu_words *words);

/* Also true when not all words were noted. */
bool emu_words_have(const emu_words *words, const char *name, size_t length);

/*
 * Writes the text, and in front of each kernel, on the same line, what calls it with an array of
 * pointers: an emu_kernel called emu_kernel_NAME.
 */
void emu_text_write(FILE *file, const char *text, const char *plain);

#endif
