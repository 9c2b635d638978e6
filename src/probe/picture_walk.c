/* picture_walk.c - walks the folders of a location until enough pictures are found. */
#include "probe/picture_walk.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/dataset.h"
#include "storage/data_folders.h"

/* A folder being walked and those it lies in, so that a link that leads back up is not followed. */
typedef struct level {
    const struct level *above;
    stk_store_identity identity;
} level;

typedef struct picture_walk {
    stk_store *store;
    size_t most;
    stk_skipped_folders *passed;
    stk_texts *paths;
} picture_walk;

static bool leads_back(const level *here) {
    const stk_store_identity *mine = &here->identity;
    bool back = false;
    for (const level *up = here->above; up != NULL && mine->inode != 0; up = up->above) {
        back = back || (up->identity.inode == mine->inode && up->identity.device == mine->device);
    }
    return back;
}

static char *join(const char *folder, const char *name) {
    return folder[0] != '\0' ? stk_path_join(folder, name) : stk_mem_strdup(name);
}

static stk_status walk_folder(const picture_walk *w, const char *folder, const level *above,
                              stk_error *err) {
    level here = {.above = above};
    stk_dir_list list = {0};
    bool by_stoker;
    stk_status status = stk_store_identify(w->store, folder, &here.identity, err);
    if (status == STK_OK && !leads_back(&here)) {
        status = stk_data_list(w->store, folder, w->passed, &list, &by_stoker, err);
    }
    for (size_t i = 0; status == STK_OK && i < list.count && w->paths->count < w->most; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        if (entry->is_dir) {
            char *below = join(folder, entry->name);
            status = below != NULL ? walk_folder(w, below, &here, err)
                                   : STK_FAIL_MEMORY(err, "the list of pictures");
            stk_mem_free(below);
        } else if (stk_dataset_is_image_name(entry->name)) {
            bool added = stk_texts_take(w->paths, join(folder, entry->name));
            status = added ? STK_OK : STK_FAIL_MEMORY(err, "the list of pictures");
        }
    }
    stk_dir_list_free(&list);
    return status;
}

stk_status stk_picture_walk(stk_store *store, size_t most, const stk_events *events,
                            stk_texts *paths, stk_error *err) {
    stk_skipped_folders passed = {0};
    picture_walk w = {.store = store, .most = most, .passed = &passed, .paths = paths};
    memset(paths, 0, sizeof *paths);
    stk_status status = walk_folder(&w, "", NULL, err);
    stk_skipped_folders_report(&passed, stk_store_root(store), events);
    stk_skipped_folders_free(&passed);
    if (status == STK_OK && paths->count == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "there are no pictures in %s: Stoker looks for files that end "
                          "with " STK_PICTURE_EXTENSIONS
                          " in it and below it; check the path given with --data",
                          stk_store_root(store));
    }
    return status;
}
