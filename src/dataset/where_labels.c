/*
 * where_labels.c - recognises folders that say where something is in a picture: masks and boxes.
 *
 * Segmentation and detection come as images/7.png beside masks/7.png or labels/7.txt. Such folders
 * look like classes, so a network would learn to tell a picture from its mask. The names of the
 * folders alone say little: the files in them must have the names of the pictures.
 */
#include "dataset/listing.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The share of files that must have the names of pictures. */
#define NEARLY_ALL 0.9

/* More folders than this are classes, and comparing their names would take long. */
#define MOST_FOLDERS 40

#define TASK_OF_STOKER "Stoker trains classes, labels and numbers of whole pictures"

static bool is_of_images(const char *name) {
    static const char *const words[] = {"image", "images", "img",        "imgs",
                                        "photo", "photos", "jpegimages", NULL};
    return stk_has_word_of(name, words);
}

static bool is_of_places(const char *name) {
    static const char *const words[] = {
        "mask",   "masks",       "label", "labels", "annotation",   "annotations",   "gt", "truth",
        "truths", "groundtruth", "seg",   "segs",   "segmentation", "segmentations", NULL};
    return stk_has_word_of(name, words);
}

/* The name of a file without its ending and without what tells a mask apart: 7_mask.png is 7. */
static size_t stem_length(const char *name) {
    static const char *const tails[] = {"_mask", "_masks", "_label", "_labels", "_gt", "_seg"};
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL ? (size_t)(dot - name) : strlen(name);
    for (size_t i = 0; i < STK_COUNT(tails); i++) {
        size_t n = strlen(tails[i]);
        if (length > n && strncmp(name + length - n, tails[i], n) == 0) {
            return length - n;
        }
    }
    return length;
}

/* Lists a folder, or the first folder in it where files lie deeper: labels/train/7.txt, perhaps
 * beside labels/classes.txt. */
static stk_status list_files(stk_listing *listing, const char *folder, stk_dir_list *list,
                             stk_error *err) {
    bool by_stoker;
    stk_status status = stk_listing_dir(listing, folder, list, &by_stoker, err);
    for (int level = 0; status == STK_OK && level < 2; level++) {
        const char *below = NULL;
        size_t files = 0;
        for (size_t i = 0; i < list->count; i++) {
            const stk_dir_entry *e = &list->entries[i];
            files += !e->is_dir;
            below = e->is_dir && below == NULL ? e->name : below;
        }
        if (files > 1 || below == NULL) {
            break;
        }
        folder = stk_listing_join(listing, folder, below);
        stk_dir_list_free(list);
        status = folder != NULL ? stk_listing_dir(listing, folder, list, &by_stoker, err)
                                : STK_FAIL_MEMORY(err, "the folders of the data set");
    }
    return status;
}

static bool is_note_name(const char *name) {
    return stk_str_ends_with_nocase(name, ".txt") || stk_str_ends_with_nocase(name, ".xml") ||
           stk_str_ends_with_nocase(name, ".json");
}

/* How many files of the second list have the name of a picture of the first one. */
static stk_status count_same(const stk_listing *listing, const stk_dir_list *images,
                             const stk_dir_list *places, size_t *masks, size_t *notes,
                             size_t *files, stk_error *err) {
    stk_map stems = {0};
    stk_text_blocks texts = {0};
    bool ok = true;
    bool added;
    *masks = *notes = *files = 0;
    for (size_t i = 0; ok && i < images->count; i++) {
        const stk_dir_entry *e = &images->entries[i];
        if (stk_listing_is_picture(listing, e)) {
            const char *stem = stk_text_blocks_keep(&texts, e->name, stem_length(e->name));
            ok = stem != NULL && stk_map_add(&stems, stem, i, &added);
        }
    }
    for (size_t i = 0; ok && i < places->count; i++) {
        const stk_dir_entry *e = &places->entries[i];
        const char *stem = stk_text_blocks_keep(&texts, e->name, stem_length(e->name));
        ok = stem != NULL;
        bool same = ok && !e->is_dir && stk_map_find(&stems, stem, NULL);
        *files += !e->is_dir;
        *masks += same && stk_listing_is_picture(listing, e);
        *notes += same && is_note_name(e->name);
    }
    stk_map_free(&stems);
    stk_text_blocks_free(&texts);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the folders of the data set");
}

static stk_status check_pair(stk_listing *listing, const char *folder, const char *images,
                             const char *places, stk_error *err) {
    stk_dir_list pictures = {0};
    stk_dir_list others = {0};
    size_t masks = 0;
    size_t notes = 0;
    size_t files = 0;
    const char *a = stk_listing_join(listing, folder, images);
    const char *b = stk_listing_join(listing, folder, places);
    stk_status status =
        a != NULL && b != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the folders of the data set");
    STK_THEN(status, list_files(listing, a, &pictures, err));
    STK_THEN(status, list_files(listing, b, &others, err));
    STK_THEN(status, count_same(listing, &pictures, &others, &masks, &notes, &files, err));
    if (status == STK_OK && masks > 0 && (double)masks >= NEARLY_ALL * (double)files) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s has pictures of the same names in %s and %s: these are masks "
                          "(segmentation), which are not trained; " TASK_OF_STOKER,
                          listing->dataset->root, a, b);
    } else if (status == STK_OK && notes > 0 && (double)notes >= NEARLY_ALL * (double)(files - 1)) {
        status =
            STK_FAIL(err, STK_ERR_DATA,
                     "%s has pictures in %s, and in %s a file with the name of each: these "
                     "are boxes or outlines (detection), which are not trained; " TASK_OF_STOKER,
                     listing->dataset->root, a, b);
    }
    stk_dir_list_free(&pictures);
    stk_dir_list_free(&others);
    return status;
}

static stk_status check_folder(stk_listing *listing, const char *folder, const stk_dir_list *list,
                               stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; i < list->count && list->count <= MOST_FOLDERS; i++) {
        const stk_dir_entry *a = &list->entries[i];
        if (!a->is_dir || !is_of_images(a->name) || is_of_places(a->name)) {
            continue;
        }
        for (size_t k = 0; status == STK_OK && k < list->count; k++) {
            const stk_dir_entry *b = &list->entries[k];
            if (b->is_dir && is_of_places(b->name)) {
                status = check_pair(listing, folder, a->name, b->name, err);
            }
        }
    }
    return status;
}

stk_status stk_places_check(stk_listing *listing, stk_error *err) {
    const char *train = listing->sets[STK_SET_TRAIN].name;
    stk_dir_list list = {0};
    bool by_stoker;
    stk_status status = check_folder(listing, "", &listing->top, err);
    if (train != NULL) {
        STK_THEN(status, stk_listing_dir(listing, train, &list, &by_stoker, err));
        STK_THEN(status, check_folder(listing, train, &list, err));
    }
    stk_dir_list_free(&list);
    return status;
}

/* The folder in which a file lies right. */
static const char *folder_of(const char *path, char *buf, size_t size) {
    const char *base = stk_path_base(path);
    size_t length = base > path ? (size_t)(base - path) - 1 : 0;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    snprintf(buf, size, "%.*s", (int)(length - start), path + start);
    return buf;
}

bool stk_places_are_masks(const char *path, const char *other) {
    char a[256];
    char b[256];
    folder_of(path, a, sizeof a);
    folder_of(other, b, sizeof b);
    return (is_of_images(a) && is_of_places(b)) || (is_of_images(b) && is_of_places(a));
}
