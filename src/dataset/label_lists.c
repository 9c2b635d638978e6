/* label_lists.c - tells lists of labels from names of several words. */
#include "dataset/label_lists.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* What may stand between two labels, the clearest first. A blank may as well be a part of a name.
 */
static const char dividers[] = "|;, ";

#define BLANKS " \t"

/* The texts divided at one character. */
typedef struct divided {
    char *block;            /* owned: the labels of all texts, each with a NUL after it */
    stk_map seen;           /* the words of texts that are made of words alone */
    size_t plain;           /* texts that are made of words alone, not of words and numbers */
    size_t longer;          /* plain texts of two words or more */
    size_t begun;           /* texts whose first word is a label by itself */
    const char *any_longer; /* borrowed */
} divided;

const char *stk_label_list_next(const char **at, char divider, size_t *length) {
    const char ends[] = {divider, divider == ' ' ? '\t' : '\0', '\0'};
    const char *start = *at;
    do {
        start += strspn(start, BLANKS);
        start += *start == divider;
    } while (*start == divider || (*start != '\0' && strchr(BLANKS, *start) != NULL));
    size_t size = strcspn(start, ends);
    *at = start + size;
    while (size > 0 && strchr(BLANKS, start[size - 1]) != NULL) {
        size--;
    }
    *length = size;
    return size > 0 ? start : NULL;
}

size_t stk_label_list_count(const char *cell, char divider) {
    size_t count = 0;
    size_t length;
    while (stk_label_list_next(&cell, divider, &length) != NULL) {
        count++;
    }
    return count;
}

static bool is_digits(const char *word) {
    return word[strspn(word, "0123456789")] == '\0';
}

/* Divides a text, copied to `to`, into labels and counts it. Returns the end of the copy; NULL
 * without memory. */
static char *divide(const stk_column_profile *p, size_t place, char *to, divided *d,
                    stk_label_lists *lists) {
    const char *text = p->texts[place].text;
    size_t words = 0;
    size_t digits = 0;
    size_t known = 0; /* words that are labels by themselves */
    bool first_known = false;
    char *start = to;
    const char *word;
    size_t length;
    for (const char *at = text;
         (word = stk_label_list_next(&at, lists->divider, &length)) != NULL;) {
        memcpy(to, word, length);
        to[length] = '\0';
        digits += is_digits(to);
        bool label = stk_map_find(&p->places, to, NULL);
        known += label;
        first_known = first_known || (label && words == 0);
        words++;
        to += length + 1;
    }
    bool list = words > 1 && (known == words || digits == words);
    bool plain = digits == 0;
    d->plain += plain;
    d->longer += plain && words > 1;
    d->begun += plain && words > 1 && first_known;
    lists->listed += list;
    lists->rows += list ? p->texts[place].rows : 0;
    if (words > 1 && (list || plain)) {
        const char **shown = list ? &lists->example : &d->any_longer;
        *shown = *shown != NULL ? *shown : text;
    }
    bool added;
    for (char *each = start; plain && each < to; each += strlen(each) + 1) {
        if (!stk_map_add(&d->seen, each, 0, &added)) {
            return NULL;
        }
    }
    return to;
}

/* Looks for lists whose labels this character divides. */
static bool try_divider(const stk_column_profile *p, char divider, size_t bytes,
                        stk_label_lists *lists) {
    divided d = {0};
    *lists = (stk_label_lists){.divider = divider};
    d.block = stk_mem_raw(bytes + 1, 1);
    char *to = d.block;
    for (size_t i = 0; to != NULL && i < p->count; i++) {
        to = divide(p, i, to, &d, lists);
    }
    lists->doubtful =
        lists->listed == 0 && (d.begun > 0 || (d.longer > 2 && d.plain >= d.seen.count));
    lists->example = lists->example != NULL ? lists->example : d.any_longer;
    stk_map_free(&d.seen);
    stk_mem_free(d.block);
    return to != NULL;
}

stk_status stk_label_lists_find(stk_label_lists *lists, const stk_column_profile *p,
                                stk_error *err) {
    stk_label_lists best = {.divider = ' '};
    size_t bytes = 0;
    size_t blanks = 0;
    const char *blanks_example = NULL;
    for (size_t i = 0; i < p->count; i++) {
        bool several = p->texts[i].text[strcspn(p->texts[i].text, BLANKS)] != '\0';
        blanks += several;
        blanks_example = several ? p->texts[i].text : blanks_example;
        bytes += strlen(p->texts[i].text) + 1; /* a divider, or the end, after each label */
    }
    for (const char *divider = dividers; *divider != '\0' && best.listed == 0; divider++) {
        stk_label_lists found;
        if (!try_divider(p, *divider, bytes, &found)) {
            return STK_FAIL_MEMORY(err, "the labels of the pictures");
        }
        if (found.listed > 0 || (found.doubtful && !best.doubtful)) {
            best = found;
        }
    }
    best.blanks = 2 * blanks > p->count;
    best.blanks_example = blanks_example;
    *lists = best;
    return STK_OK;
}
