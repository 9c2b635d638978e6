/*
 * picture_folded.c - finds a picture whose name is written in another way: in capitals, or with
 * accents put together of two characters, as some file systems store them.
 *
 * Names are folded: small letters, without accents. Only names that folding changes are kept, since
 * the others are found as they are.
 */
#include "dataset/listing.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The letters of U+00C0 to U+017F without their accents; '.': a letter that has none. */
static const char plain_letters[] = "aaaaaa.ceeeeiiii.nooooo..uuuuy.."
                                    "aaaaaa.ceeeeiiii.nooooo..uuuuy.y"
                                    "aaaaaaccccccccdd..eeeeeeeeeegggg"
                                    "gggghh..iiiiiiiii...jjkk.llllll."
                                    "...nnnnnn...oooooo..rrrrrrssssss"
                                    "sstttt..uuuuuuuuuuuuwwyyyzzzzzz.";

void stk_picture_fold(const char *name, size_t length, char *out) {
    for (size_t i = 0; i < length; i++) {
        unsigned char a = (unsigned char)name[i];
        unsigned char b = i + 1 < length ? (unsigned char)name[i + 1] : 0;
        bool two = a >= 0xC3 && a <= 0xCD && (b & 0xC0) == 0x80;
        unsigned code = two ? ((unsigned)(a & 0x1F) << 6) | (b & 0x3F) : a;
        if (two && code >= 0x300 && code < 0x370) {
            i++; /* an accent of its own */
        } else if (two && code < 0x180 && plain_letters[code - 0xC0] != '.') {
            *out++ = plain_letters[code - 0xC0];
            i++;
        } else {
            *out++ = (char)tolower(a);
        }
    }
    *out = '\0';
}

stk_status stk_pictures_index_folded(stk_listing *listing, stk_pictures *pictures, stk_error *err) {
    bool ok = true;
    char folded[512];
    for (size_t i = 0; ok && i < pictures->count; i++) {
        const char *stem = pictures->stems[i];
        size_t length = strlen(stem);
        bool added;
        size_t before;
        if (length >= sizeof folded) {
            continue;
        }
        stk_picture_fold(stem, length, folded);
        if (stk_str_equal(folded, stem)) {
            continue;
        }
        const char *key = stk_listing_keep(listing, folded, strlen(folded));
        ok = key != NULL && stk_map_add(&pictures->by_folded, key, i, &added);
        if (ok && !added && stk_map_find(&pictures->by_folded, key, &before)) {
            ok = stk_map_add(&pictures->folded_twice, key, i, &added);
        }
    }
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the list of pictures");
}

stk_found stk_pictures_find_folded(const stk_pictures *pictures, const char *stem, size_t length,
                                   size_t *file, size_t *other) {
    char folded[512];
    size_t places[3];
    size_t found = 0;
    if (length >= sizeof folded) {
        return STK_FOUND_NONE;
    }
    stk_picture_fold(stem, length, folded);
    found += stk_map_find(&pictures->by_folded, folded, &places[found]);
    found += stk_map_find(&pictures->folded_twice, folded, &places[found]);
    found += stk_map_find(&pictures->by_stem, folded, &places[found]);
    if (found == 0) {
        return STK_FOUND_NONE;
    }
    *file = places[0];
    *other = found > 1 ? places[1] : places[0];
    return found > 1 ? STK_FOUND_SEVERAL : STK_FOUND_ONE;
}
