/*
 * nested.c - a location that only holds the folder of a data set: DIR/comp-name/train.csv.
 *
 * People unpack a competition into a folder of its name, or keep it in DIR/data beside a readme. A
 * location without a table, a picture and an archive, and with one folder alone, is such a one if
 * that folder holds tables or a training set, or again one folder with them. The location is opened
 * anew there, so that everything else sees the folder as if it had been given.
 */
#include "dataset/listing.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* So many folders that hold one folder alone are passed through. */
#define MOST_LEVELS 4

static const char *const archive_tails[] = {".zip", ".7z", ".rar", ".tar", ".gz",  ".tgz",
                                            ".bz2", ".xz", ".zst", ".lz4", ".bson"};

static bool is_archive_name(const char *name) {
    for (size_t i = 0; i < STK_COUNT(archive_tails); i++) {
        if (stk_str_ends_with_nocase(name, archive_tails[i])) {
            return true;
        }
    }
    return false;
}

/* What a folder of the location has right in it. */
typedef struct content {
    size_t folders;
    bool data; /* tables, pictures, archives or a training set */
    bool sets; /* a table or an archive of a training set, or a folder of one */
    const char *only;
} content;

static content look(const stk_listing *listing, const stk_dir_list *list) {
    content c = {0};
    for (size_t i = 0; i < list->count; i++) {
        const stk_dir_entry *entry = &list->entries[i];
        bool table = !entry->is_dir && stk_table_is_name(entry->name);
        bool archive = !entry->is_dir && is_archive_name(entry->name);
        bool train = entry->is_dir && stk_set_of(entry->name) == STK_SET_TRAIN;
        c.folders += entry->is_dir;
        c.only = entry->is_dir ? entry->name : c.only;
        c.sets = c.sets || table || archive || train;
        c.data = c.data || table || archive || stk_listing_is_picture(listing, entry);
    }
    return c;
}

/* Files that mean something for a data set, and are not looked for above it. */
static void warn_of_description(const stk_listing *listing, const char *inner) {
    static const char *const names[] = {"description.md", "description.txt", NULL};
    const char *above = stk_listing_entry(listing, names, false);
    if (above != NULL) {
        stk_events_warning(listing->events,
                           "%s lies beside the data set and is not read; move it into %s", above,
                           inner);
    }
}

stk_status stk_listing_find_inner(stk_listing *listing, const char **inner, stk_error *err) {
    content outer = look(listing, &listing->top);
    const char *at = outer.only;
    stk_status status = STK_OK;
    bool found = false;
    *inner = NULL;
    if (outer.folders != 1 || outer.data || stk_staged_exists(listing) ||
        stk_store_has_shards(listing->dataset->store)) {
        return STK_OK;
    }
    for (int level = 0; status == STK_OK && at != NULL && !found && level < MOST_LEVELS; level++) {
        stk_dir_list list = {0};
        bool by_stoker = false;
        const char *last = stk_path_base(at);
        if (stk_set_of(last) != STK_SET_NONE || stk_listing_is_set(listing, last)) {
            break;
        }
        at = stk_listing_keep(listing, at, strlen(at));
        status = at != NULL ? stk_listing_dir(listing, at, &list, &by_stoker, err)
                            : STK_FAIL_MEMORY(err, "the folders of the data set");
        content c = look(listing, &list);
        found = status == STK_OK && !by_stoker && c.sets;
        if (status == STK_OK && !found) {
            at = c.folders == 1 && !c.data ? stk_listing_join(listing, at, c.only) : NULL;
        }
        stk_dir_list_free(&list);
    }
    if (status == STK_OK && found) {
        char what[300];
        *inner = at;
        snprintf(what, sizeof what, "the data set from %.250s", at);
        stk_events_decision(listing->events, what, "there is nothing else beside it");
        warn_of_description(listing, at);
    }
    return status;
}
