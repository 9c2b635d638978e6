/*
 * folders.c - class folders: DIR/train/<class>/ with DIR/val/<class>/ and DIR/test/, or
 * DIR/<class>/ alone. The name of a folder is the name of its class; pictures may lie deeper in it.
 */
#include "dataset/listing.h"
#include "storage/data_folders.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

static bool is_class_folder(const stk_listing *listing, const stk_dir_entry *entry, bool at_top) {
    return entry->is_dir && !(at_top && stk_listing_is_set(listing, entry->name));
}

/* Adds the pictures below a class folder to a list. */
static stk_status add_pictures(const stk_pictures *pictures, int label, stk_sample_list *list,
                               size_t *capacity, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < pictures->count; i++) {
        stk_sample sample = {.path = pictures->paths[i], .id = pictures->paths[i], .label = label};
        status = stk_listing_add(list, capacity, sample, err);
    }
    return status;
}

/* Pictures beside the class folders belong to no class. */
static stk_status check_loose(stk_listing *listing, const char *where, const stk_first_names *loose,
                              size_t folders, stk_error *err) {
    char names[300];
    if (loose->count == 0) {
        return STK_OK;
    }
    stk_first_names_text(loose, names, sizeof names);
    if (folders == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s holds %zu picture%s but no class folders, so nothing says what they "
                        "show; sort them into one folder per class, or put a labels.csv with the "
                        "columns id,label into %s",
                        where, loose->count, stk_plural(loose->count), listing->dataset->root);
    }
    if (listing->options->mismatch == STK_MISMATCH_SKIP) {
        stk_events_warning(listing->events, "left out %zu picture%s of no class in %s: %s",
                           loose->count, stk_plural(loose->count), where, names);
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%zu picture%s in %s %s beside the class folders and so %s no label (%s); move "
                    "%s into a class folder, or pass --mismatch skip to leave %s out",
                    loose->count, stk_plural(loose->count), where,
                    loose->count == 1 ? "lies" : "lie", loose->count == 1 ? "has" : "have", names,
                    loose->count == 1 ? "it" : "them", loose->count == 1 ? "it" : "them");
}

static stk_status check_empty(stk_listing *listing, const char *where, const stk_first_names *empty,
                              stk_error *err) {
    char names[300];
    char note[64];
    stk_listing_ext_note(listing, note, sizeof note);
    if (listing->dataset->train.count == 0) {
        char others[500];
        return STK_FAIL(
            err, STK_ERR_DATA,
            "no pictures in %s: Stoker looks for files that end with " STK_PICTURE_EXTENSIONS
            " in one folder per class%s; check the path given with --data%s",
            where, note, stk_listing_other_kinds(listing, others, sizeof others));
    }
    if (empty->count > 0) {
        return STK_FAIL(
            err, STK_ERR_DATA,
            "%zu class folder%s in %s %s no pictures: %s%s; add pictures or remove the "
            "folder%s",
            empty->count, stk_plural(empty->count), where, empty->count == 1 ? "has" : "have",
            stk_first_names_text(empty, names, sizeof names), note, stk_plural(empty->count));
    }
    return STK_OK;
}

/* A folder one level too high looks like a single class; the error names the right one. */
static stk_status check_too_high(stk_listing *listing, const char *folder, const char *where,
                                 const char *only, stk_error *err) {
    stk_dir_list list = {0};
    size_t folders = 0;
    if (listing->dataset->class_count != 1 || only == NULL) {
        return STK_OK;
    }
    char *full = stk_path_join(where, only);
    char *below = stk_path_join(folder, only);
    bool by_stoker;
    stk_status status = full != NULL && below != NULL
                            ? stk_listing_dir(listing, below, &list, &by_stoker, err)
                            : STK_FAIL_MEMORY(err, "the list of classes");
    stk_mem_free(below);
    for (size_t i = 0; i < list.count; i++) {
        folders += list.entries[i].is_dir ? 1 : 0;
    }
    stk_dir_list_free(&list);
    if (status == STK_OK && folders > 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s has one class only, '%s', with %zu folder%s in it; if the data set "
                          "lies there, pass --data %s, otherwise add a second class",
                          where, only, folders, stk_plural(folders), full);
    }
    stk_mem_free(full);
    return status;
}

/* Makes a folder a class, unless Stoker wrote it; *count is the number of its pictures. */
static stk_status list_class(stk_listing *listing, const char *folder, const char *name,
                             bool *by_stoker, size_t *count, stk_error *err) {
    stk_pictures pictures = {0};
    int label = -1;
    const char *below = stk_listing_join(listing, folder, name);
    stk_status status = below != NULL ? stk_pictures_scan(listing, below, NULL, &pictures, err)
                                      : STK_FAIL_MEMORY(err, "the list of classes");
    *by_stoker = pictures.by_stoker;
    *count = pictures.count;
    if (status == STK_OK && !pictures.by_stoker) {
        status = stk_listing_class(listing, name, &label, err);
    }
    STK_THEN(status, add_pictures(&pictures, label, &listing->dataset->train,
                                  &listing->train_capacity, err));
    stk_pictures_free(&pictures);
    return status;
}

/* What a folder has right in it. */
typedef struct folder_look {
    size_t folders;
    bool pictures;
    const char *only; /* the last folder: a text of the data set */
} folder_look;

static stk_status look_into(stk_listing *listing, const char *folder, folder_look *look,
                            stk_error *err) {
    stk_dir_list list = {0};
    bool by_stoker;
    *look = (folder_look){0};
    stk_status status = stk_listing_dir(listing, folder, &list, &by_stoker, err);
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        look->pictures = look->pictures || stk_listing_is_picture(listing, entry);
        if (entry->is_dir) {
            look->folders++;
            look->only = stk_listing_keep(listing, entry->name, strlen(entry->name));
            status = look->only != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the list of classes");
        }
    }
    stk_dir_list_free(&list);
    return status;
}

/*
 * Archives are often unpacked into a folder that holds one folder alone: train/train/cat. It is
 * looked through if it has the name of the same set; or if it is no class that is known and has
 * folders alone, of which a training set needs two. *folder becomes the lowest such folder.
 */
static stk_status look_through(stk_listing *listing, stk_set_kind kind, const char **folder,
                               stk_error *err) {
    const char *given = *folder;
    const char *above = NULL;
    stk_status status = STK_OK;
    while (status == STK_OK && above != *folder) {
        folder_look outer;
        folder_look inner = {0};
        const char *below = NULL;
        above = *folder;
        status = look_into(listing, above, &outer, err);
        if (status == STK_OK && outer.folders == 1 && !outer.pictures) {
            below = stk_listing_join(listing, above, outer.only);
            status = below != NULL ? look_into(listing, below, &inner, err)
                                   : STK_FAIL_MEMORY(err, "the list of classes");
        }
        bool holds = !inner.pictures && inner.folders >= (kind == STK_SET_TRAIN ? 2 : 1);
        if (status == STK_OK && below != NULL && (stk_set_of(outer.only) == kind || holds) &&
            !stk_map_find(&listing->class_labels, outer.only, NULL)) {
            *folder = below;
        }
    }
    if (status == STK_OK && *folder != given) {
        char what[300];
        snprintf(what, sizeof what, "class folders from %.250s", *folder);
        stk_events_decision(listing->events, what, "there is nothing else above them");
    }
    return status;
}

/* The entries of the folder that holds the class folders become classes and training samples. */
static stk_status list_train(stk_listing *listing, const char *folder, const stk_dir_list *entries,
                             stk_error *err) {
    stk_first_names loose = {0};
    stk_first_names empty = {0};
    size_t folders = 0;
    const char *only = NULL;
    char *where = stk_listing_full(listing, folder);
    stk_status status = where != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the list of classes");
    for (size_t i = 0; status == STK_OK && i < entries->count; i++) {
        const stk_dir_entry *entry = &entries->entries[i];
        if (stk_listing_is_picture(listing, entry)) {
            stk_first_names_add(&loose, entry->name);
        }
        if (!is_class_folder(listing, entry, folder[0] == '\0')) {
            continue;
        }
        bool by_stoker = false;
        size_t count = 0;
        status = list_class(listing, folder, entry->name, &by_stoker, &count, err);
        if (by_stoker) {
            continue;
        }
        folders++;
        only = entry->name;
        if (status == STK_OK && count == 0) {
            stk_first_names_add(&empty, entry->name);
        }
    }
    STK_THEN(status, check_loose(listing, where, &loose, folders, err));
    STK_THEN(status, check_empty(listing, where, &empty, err));
    STK_THEN(status, check_too_high(listing, folder, where, only, err));
    stk_mem_free(where);
    return status;
}

/* Adds a folder of the validation set, unless Stoker wrote it. */
static stk_status list_val_class(stk_listing *listing, const char *folder, const char *name,
                                 stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_pictures pictures = {0};
    size_t label;
    const char *below = stk_listing_join(listing, folder, name);
    stk_status status = below != NULL ? stk_pictures_scan(listing, below, NULL, &pictures, err)
                                      : STK_FAIL_MEMORY(err, "the validation set");
    if (status == STK_OK && !pictures.by_stoker &&
        !stk_map_find(&listing->class_labels, name, &label)) {
        const char *near = stk_str_nearest(name, dataset->classes, (size_t)dataset->class_count);
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s/%s/%s is no class of the training set%s%s%s; rename the folder or "
                          "remove it",
                          dataset->root, folder, name, near != NULL ? " (did you mean '" : "",
                          near != NULL ? near : "", near != NULL ? "'?)" : "");
    } else if (status == STK_OK && !pictures.by_stoker) {
        status = add_pictures(&pictures, (int)label, &dataset->val, &listing->val_capacity, err);
    }
    stk_pictures_free(&pictures);
    return status;
}

static stk_status list_val(stk_listing *listing, const char *folder, stk_error *err) {
    stk_dir_list entries = {0};
    stk_first_names loose = {0};
    size_t folders = 0;
    bool by_stoker;
    char *full = stk_listing_full(listing, folder);
    stk_status status = full != NULL ? stk_listing_dir(listing, folder, &entries, &by_stoker, err)
                                     : STK_FAIL_MEMORY(err, "the validation set");
    for (size_t i = 0; status == STK_OK && i < entries.count; i++) {
        const stk_dir_entry *entry = &entries.entries[i];
        if (is_class_folder(listing, entry, false)) {
            folders++;
            status = list_val_class(listing, folder, entry->name, err);
        } else if (stk_listing_is_picture(listing, entry)) {
            stk_first_names_add(&loose, entry->name);
        }
    }
    STK_THEN(status, check_loose(listing, full, &loose, folders, err));
    if (status == STK_OK && listing->dataset->val.count == 0) {
        stk_events_warning(listing->events,
                           "%s has no pictures; a part of the training set will validate instead",
                           full);
    }
    stk_dir_list_free(&entries);
    stk_mem_free(full);
    return status;
}

stk_status stk_folders_exist(const stk_listing *listing, bool *exist, stk_error *err) {
    size_t folders = 0;
    stk_status status = STK_OK;
    *exist = listing->sets[STK_SET_TRAIN].name != NULL;
    for (size_t i = 0; status == STK_OK && !*exist && i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        bool by_stoker = false;
        if (is_class_folder(listing, entry, true)) {
            status = stk_data_is_by_stoker(listing->dataset->store, entry->name, &by_stoker, err);
            folders += by_stoker ? 0 : 1;
            *exist = folders >= 2;
        }
    }
    return status;
}

/* Fails if several folders could be the training set, or if there are only other sets. */
static stk_status check_train(const stk_listing *listing, stk_error *err) {
    const stk_first_names *candidates = &listing->sets[STK_SET_TRAIN].candidates;
    stk_first_names sets = {0};
    size_t classes = 0;
    char names[300];
    if (listing->sets[STK_SET_TRAIN].name != NULL) {
        return STK_OK;
    }
    if (candidates->count > 1) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has %zu folders that could be the training set: %s; rename the one "
                        "that is meant to train, or put their class folders into one",
                        listing->dataset->root, candidates->count,
                        stk_first_names_text(candidates, names, sizeof names));
    }
    for (size_t i = 0; i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        classes += is_class_folder(listing, entry, true);
        if (entry->is_dir && !is_class_folder(listing, entry, true)) {
            stk_first_names_add(&sets, entry->name);
        }
    }
    if (sets.count == 0 || classes > 0) {
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has no training set: %s %s no class but another part of a data set, as the "
                    "name says; add a folder train with one folder per class, or rename the "
                    "folder%s if %s a class",
                    listing->dataset->root, stk_first_names_text(&sets, names, sizeof names),
                    sets.count == 1 ? "is" : "are", stk_plural(sets.count),
                    sets.count == 1 ? "it is" : "each is");
}

/* The reason for the task says that the classes are folders, and names some. */
static stk_status tell_classes(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_first_names few = {0};
    char names[300];
    for (int c = 0; c < dataset->class_count; c++) {
        stk_first_names_add(&few, dataset->classes[c]);
    }
    if (dataset->has_versions || dataset->class_count == 0) {
        return STK_OK;
    }
    char *text = stk_str_format(
        "%s%sclasses: folders %s", dataset->reason != NULL ? dataset->reason : "",
        dataset->reason != NULL ? "; " : "", stk_first_names_text(&few, names, sizeof names));
    dataset->reason = text != NULL ? stk_listing_keep(listing, text, strlen(text)) : NULL;
    stk_mem_free(text);
    return dataset->reason != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the list of classes");
}

stk_status stk_folders_list(stk_listing *listing, stk_error *err) {
    const char *train = stk_listing_set(listing, STK_SET_TRAIN);
    const char *val = stk_listing_set(listing, STK_SET_VAL);
    stk_status status = check_train(listing, err);
    if (status != STK_OK) {
        return status;
    }
    if (train == NULL) {
        status = list_train(listing, "", &listing->top, err);
    } else {
        stk_dir_list entries = {0};
        bool by_stoker;
        status = look_through(listing, STK_SET_TRAIN, &train, err);
        STK_THEN(status, stk_listing_dir(listing, train, &entries, &by_stoker, err));
        STK_THEN(status, list_train(listing, train, &entries, err));
        stk_dir_list_free(&entries);
    }
    if (status == STK_OK && val != NULL) {
        status = look_through(listing, STK_SET_VAL, &val, err);
        STK_THEN(status, list_val(listing, val, err));
    }
    stk_listing_sort(&listing->dataset->train);
    stk_listing_sort(&listing->dataset->val);
    STK_THEN(status, stk_testset_of_classes(listing, true, err));
    STK_THEN(status, tell_classes(listing, err));
    return status;
}
