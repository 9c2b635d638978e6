/*
 * picture_numbers.c - finds pictures by the numbers at the end of their names.
 *
 * A table counts 7, 8, 9 while the files are called 00007.jpg or test-000007.jpg. So a number may
 * mean the one picture whose name ends with it, however many zeros stand in front.
 */
#include "dataset/survey.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The number at the end of a name, without zeros in front; NULL: there is none. */
static const char *last_number(const char *name) {
    const char *at = name + strlen(name);
    while (at > name && isdigit((unsigned char)at[-1])) {
        at--;
    }
    while (at[0] == '0' && at[1] != '\0') {
        at++;
    }
    return at[0] != '\0' ? at : NULL;
}

/* Whether the words in front of the number say that the picture belongs to another set. */
static bool is_of_other_set(const char *name, stk_set_kind set) {
    char words[256]; /* a file name has at most 255 bytes */
    size_t length = strlen(name);
    while (length > 0 && isdigit((unsigned char)name[length - 1])) {
        length--;
    }
    if (length >= sizeof words) {
        return false;
    }
    memcpy(words, name, length);
    words[length] = '\0';
    stk_set_kind its_set = stk_set_of(words);
    return its_set != STK_SET_NONE && its_set != set;
}

stk_status stk_pictures_index_numbers(stk_pictures *pictures, stk_set_kind set, stk_error *err) {
    pictures->next_number = stk_mem_new(pictures->count, sizeof *pictures->next_number);
    bool ok = pictures->next_number != NULL;
    for (size_t i = 0; ok && i < pictures->count; i++) {
        const char *base = stk_path_base(pictures->stems[i]);
        const char *number = last_number(base);
        size_t first;
        bool added;
        pictures->next_number[i] = SIZE_MAX;
        if (number == NULL || is_of_other_set(base, set)) {
            continue;
        }
        ok = stk_map_add(&pictures->by_number, number, i, &added);
        if (ok && !added && stk_map_find(&pictures->by_number, number, &first)) {
            pictures->next_number[first] = i; /* one more is enough to be unclear */
        }
    }
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the list of pictures");
}

stk_found stk_pictures_find_number(const stk_pictures *pictures, const char *id, size_t *file,
                                   size_t *other) {
    const char *number = last_number(id);
    if (id[0] == '\0' || id[strspn(id, "0123456789")] != '\0' ||
        !stk_map_find(&pictures->by_number, number, file)) {
        return STK_FOUND_NONE;
    }
    *other = pictures->next_number[*file];
    return *other == SIZE_MAX ? STK_FOUND_ONE : STK_FOUND_SEVERAL;
}
