/*
 * pictures.c - which pictures lie below a folder, and which of them a row of a table means.
 *
 * Tables name pictures loosely: "a17", "a17.jpg", "x/a17.JPG", "train/x/a17". So a picture is found
 * by its path without the top folder and the extension; extensions are compared afterwards.
 */
#include "dataset/listing.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* A folder being walked and the folders above it, so that a link back up is not followed. */
typedef struct folder_level {
    const struct folder_level *parent;
    stk_store_identity identity;
} folder_level;

/* Where the extension of an image file starts in a name; its end when it has none. */
static const char *image_extension(const char *name) {
    const char *extension = stk_picture_extension(name);
    return name + strlen(name) - (extension != NULL ? strlen(extension) : 0);
}

bool stk_dataset_is_image_name(const char *name) {
    return stk_picture_extension(name) != NULL;
}

bool stk_listing_is_picture(const stk_listing *listing, const stk_dir_entry *entry) {
    const char *ext = image_extension(entry->name);
    return !entry->is_dir && *ext != '\0' &&
           (listing->ext[0] == '\0' || strcasecmp(ext, listing->ext) == 0);
}

static stk_status add_picture(stk_pictures *pictures, const char *path, stk_error *err) {
    if (path == NULL || !STK_RESERVE(pictures->paths, pictures->capacity, pictures->count + 1)) {
        return STK_FAIL_MEMORY(err, "the list of pictures");
    }
    pictures->paths[pictures->count++] = path;
    return STK_OK;
}

/* Files that may be tables, this deep and so many in a folder: more are notes on single pictures.
 */
#define TABLE_DEPTH 2
#define TABLES_IN_FOLDER 24

static const char *const table_tails[] = {".csv", ".tsv", ".json", ".jsonl", ".ndjson"};

bool stk_table_is_name(const char *name) {
    for (size_t i = 0; i < STK_COUNT(table_tails); i++) {
        if (stk_str_ends_with_nocase(name, table_tails[i])) {
            return true;
        }
    }
    return false;
}

/* Adds the files of a folder that may be tables. */
static stk_status add_tables(stk_listing *listing, const char *folder, const stk_dir_list *list,
                             stk_pictures *pictures, stk_error *err) {
    size_t depth = folder[0] != '\0';
    size_t before = pictures->table_count;
    for (const char *at = folder; *at != '\0'; at++) {
        depth += *at == '/';
    }
    for (size_t i = 0; depth <= TABLE_DEPTH && i < list->count; i++) {
        const stk_dir_entry *entry = &list->entries[i];
        if (entry->is_dir || !stk_table_is_name(entry->name)) {
            continue;
        }
        const char *path = stk_listing_join(listing, folder, entry->name);
        if (path == NULL ||
            !STK_RESERVE(pictures->tables, pictures->table_capacity, pictures->table_count + 1)) {
            return STK_FAIL_MEMORY(err, "the list of tables");
        }
        pictures->tables[pictures->table_count++] = path;
        if (pictures->table_count - before > TABLES_IN_FOLDER) {
            pictures->table_count = before;
            return STK_OK;
        }
    }
    return STK_OK;
}

/* Sets *back when the folder is one of the folders above it; fills in `here` for the folders below.
 */
static stk_status leads_back(stk_listing *listing, const char *folder, folder_level *here,
                             bool *back, stk_error *err) {
    stk_status status = stk_store_identify(listing->dataset->store, folder, &here->identity, err);
    *back = false;
    for (const folder_level *up = here->parent; status == STK_OK && up != NULL; up = up->parent) {
        *back = *back || (up->identity.inode != 0 && up->identity.inode == here->identity.inode &&
                          up->identity.device == here->identity.device);
    }
    return status;
}

/* Sets *by_stoker when the folder is one that Stoker wrote. */
static stk_status walk_folder(stk_listing *listing, const char *folder, const char *skip,
                              const folder_level *parent, stk_pictures *pictures, bool *by_stoker,
                              stk_error *err) {
    folder_level here = {.parent = parent};
    bool below_is_by_stoker;
    stk_dir_list list = {0};
    bool back = false;
    stk_status status = leads_back(listing, folder, &here, &back, err);
    if (status == STK_OK && !back) {
        status = stk_listing_dir(listing, folder, &list, by_stoker, err);
    }
    if (status == STK_OK && pictures->folder[0] == '\0') {
        status = add_tables(listing, folder, &list, pictures, err);
    }
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        if (pictures->any && pictures->count > 0) {
            break;
        }
        if (stk_listing_is_picture(listing, entry)) {
            status = add_picture(pictures, stk_listing_join(listing, folder, entry->name), err);
        } else if (entry->is_dir && (skip == NULL || !stk_str_equal(skip, entry->name))) {
            const char *below = stk_listing_join(listing, folder, entry->name);
            status = below != NULL ? walk_folder(listing, below, NULL, &here, pictures,
                                                 &below_is_by_stoker, err)
                                   : STK_FAIL_MEMORY(err, "the list of pictures");
        }
    }
    stk_dir_list_free(&list);
    return status;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fills in *pictures, of which only `any` is set. */
static stk_status scan(stk_listing *listing, const char *folder, const char *skip,
                       stk_pictures *pictures, stk_error *err) {
    pictures->folder = stk_listing_keep(listing, folder, strlen(folder));
    if (pictures->folder == NULL) {
        return STK_FAIL_MEMORY(err, "the list of pictures");
    }
    /* A link inside may lead back to the data set's folder or to one between. */
    folder_level above[2] = {{0}};
    bool back;
    stk_status status = leads_back(listing, "", &above[0], &back, err);
    const char *slash = strrchr(pictures->folder, '/');
    if (status == STK_OK && slash != NULL) {
        const char *between =
            stk_listing_keep(listing, pictures->folder, (size_t)(slash - pictures->folder));
        above[1].parent = &above[0];
        status = between != NULL ? leads_back(listing, between, &above[1], &back, err)
                                 : STK_FAIL_MEMORY(err, "the list of pictures");
    }
    const folder_level *parent = pictures->folder[0] == '\0' ? NULL
                                 : slash != NULL             ? &above[1]
                                                             : &above[0];
    STK_THEN(status, walk_folder(listing, pictures->folder, skip, parent, pictures,
                                 &pictures->by_stoker, err));
    if (status != STK_OK) {
        stk_pictures_free(pictures);
        return status;
    }
    /* Each folder came sorted, but "a.jpg" sorts before "a/b.jpg" while "a" sorts before both. */
    if (pictures->count > 1) {
        qsort(pictures->paths, pictures->count, sizeof *pictures->paths, compare_paths);
    }
    return STK_OK;
}

stk_status stk_pictures_scan(stk_listing *listing, const char *folder, const char *skip,
                             stk_pictures *pictures, stk_error *err) {
    *pictures = (stk_pictures){0};
    return scan(listing, folder, skip, pictures, err);
}

stk_status stk_pictures_look(stk_listing *listing, stk_pictures *pictures, stk_error *err) {
    *pictures = (stk_pictures){.any = true};
    return scan(listing, "", NULL, pictures, err);
}

const char *stk_pictures_below(const stk_pictures *pictures, size_t file) {
    size_t n = strlen(pictures->folder);
    return pictures->paths[file] + (n > 0 ? n + 1 : 0);
}

/* Adds picture i under a key, after the first one that has it. */
static bool chain(stk_map *map, size_t *next, const char *key, size_t i) {
    bool added;
    size_t first;
    next[i] = SIZE_MAX;
    if (!stk_map_add(map, key, i, &added)) {
        return false;
    }
    if (!added && stk_map_find(map, key, &first)) {
        next[i] = next[first];
        next[first] = i;
    }
    return true;
}

stk_status stk_pictures_index(stk_listing *listing, stk_pictures *pictures, stk_error *err) {
    size_t count = pictures->count;
    bool deep = false;
    pictures->stems = stk_mem_new(count, sizeof *pictures->stems);
    pictures->next = stk_mem_new(count, sizeof *pictures->next);
    pictures->next_base = stk_mem_new(count, sizeof *pictures->next_base);
    pictures->used = stk_mem_new(count, sizeof *pictures->used);
    bool ok = pictures->stems != NULL && pictures->next != NULL && pictures->next_base != NULL &&
              pictures->used != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const char *below = stk_pictures_below(pictures, i);
        const char *stem =
            stk_listing_keep(listing, below, (size_t)(image_extension(below) - below));
        pictures->stems[i] = stem;
        ok = stem != NULL && chain(&pictures->by_stem, pictures->next, stem, i);
        deep = deep || (ok && strchr(stem, '/') != NULL);
    }
    for (size_t i = 0; ok && deep && i < count; i++) {
        ok = chain(&pictures->by_base, pictures->next_base, stk_path_base(pictures->stems[i]), i);
    }
    return ok ? stk_pictures_index_folded(listing, pictures, err)
              : STK_FAIL_MEMORY(err, "the list of pictures");
}

void stk_pictures_free(stk_pictures *pictures) {
    stk_mem_free(pictures->paths);
    stk_mem_free(pictures->tables);
    stk_mem_free(pictures->stems);
    stk_mem_free(pictures->next);
    stk_mem_free(pictures->next_base);
    stk_mem_free(pictures->next_number);
    stk_mem_free(pictures->used);
    stk_map_free(&pictures->by_stem);
    stk_map_free(&pictures->by_base);
    stk_map_free(&pictures->by_folded);
    stk_map_free(&pictures->folded_twice);
    stk_map_free(&pictures->by_number);
    memset(pictures, 0, sizeof *pictures);
}

/* How well the extension of a picture fits that of an id: 0 not at all, 2 letter by letter. */
static int fits_extension(const stk_listing *listing, const char *path, const char *ext) {
    const char *own = image_extension(path);
    if (*ext == '\0' || stk_str_equal(own, ext)) {
        return 2;
    }
    /* With --image-ext only that extension counts, whatever the table says. */
    return stk_str_equal_nocase(own, ext) || listing->ext[0] != '\0' ? 1 : 0;
}

/* The pictures under a key of one of the two maps whose extension fits. */
static stk_found find_key(const stk_listing *listing, const stk_pictures *pictures, bool by_base,
                          const char *key, const char *ext, size_t *file, size_t *other) {
    const size_t *next = by_base ? pictures->next_base : pictures->next;
    size_t first;
    if (!stk_map_find(by_base ? &pictures->by_base : &pictures->by_stem, key, &first)) {
        return STK_FOUND_NONE;
    }
    for (int wanted = 2; wanted >= 1; wanted--) {
        stk_found found = STK_FOUND_NONE;
        for (size_t i = first; i != SIZE_MAX && found != STK_FOUND_SEVERAL; i = next[i]) {
            if (fits_extension(listing, pictures->paths[i], ext) == wanted) {
                *(found == STK_FOUND_NONE ? file : other) = i;
                found = found == STK_FOUND_NONE ? STK_FOUND_ONE : STK_FOUND_SEVERAL;
            }
        }
        if (found != STK_FOUND_NONE) {
            return found;
        }
    }
    return STK_FOUND_NONE;
}

/* Looks an id up as written: its extension cut off first, then as a name without extension. */
static stk_found find_name(const stk_listing *listing, const stk_pictures *pictures, bool by_base,
                           char *name, size_t *file, size_t *other) {
    char ext[STK_EXT_MAX] = "";
    char *dot = name + (image_extension(name) - name);
    stk_found found = STK_FOUND_NONE;
    if (*dot != '\0') {
        memcpy(ext, dot, strlen(dot) + 1);
        *dot = '\0';
        found = find_key(listing, pictures, by_base, name, ext, file, other);
        *dot = '.';
    }
    return found != STK_FOUND_NONE ? found
                                   : find_key(listing, pictures, by_base, name, "", file, other);
}

/* Looks up what stands behind the scanned folder in a longer path: a table made elsewhere has
 * /kaggle/input/comp/train/a17.jpg. Where the location itself was scanned, any end may fit. */
static stk_found find_end(const stk_listing *listing, const stk_pictures *pictures, char *path,
                          size_t *file, size_t *other) {
    size_t n = strlen(pictures->folder);
    stk_found found = STK_FOUND_NONE;
    for (char *at = strchr(path, '/'); found == STK_FOUND_NONE && at != NULL;
         at = strchr(at + 1, '/')) {
        char *end = at + 1;
        if (n > 0 && (strncmp(end, pictures->folder, n) != 0 || end[n] != '/')) {
            continue;
        }
        end += n > 0 ? n + 1 : 0;
        found = find_name(listing, pictures, false, end, file, other);
    }
    return found;
}

stk_found stk_pictures_find(const stk_listing *listing, const stk_pictures *pictures,
                            const char *id, size_t *file, size_t *other) {
    char name[PATH_MAX];
    static const char blanks[] = " \t\r\n";
    id += strspn(id, blanks);
    size_t length = strlen(id);
    while (length > 0 && strchr(blanks, id[length - 1]) != NULL) {
        length--;
    }
    if (length == 0 || length >= sizeof name) {
        return STK_FOUND_NONE;
    }
    memcpy(name, id, length);
    name[length] = '\0';
    char *start = name;
    bool elsewhere = name[0] == '/' || strncmp(name, "../", 3) == 0 || name[1] == ':';
    while (strncmp(start, "./", 2) == 0) {
        start += 2;
    }
    stk_found found = find_name(listing, pictures, false, start, file, other);
    size_t n = strlen(pictures->folder);
    if (found == STK_FOUND_NONE && n > 0 && strncmp(start, pictures->folder, n) == 0 &&
        start[n] == '/') {
        start += n + 1;
        found = find_name(listing, pictures, false, start, file, other);
    }
    /* A bare name may lie in any subfolder, as long as only one has it. */
    if (found == STK_FOUND_NONE && strchr(start, '/') == NULL) {
        found = find_name(listing, pictures, true, start, file, other);
    }
    if (found == STK_FOUND_NONE && elsewhere) {
        found = find_end(listing, pictures, name, file, other);
    }
    if (found == STK_FOUND_NONE) {
        const char *ext = image_extension(start);
        found = stk_pictures_find_folded(pictures, start, (size_t)(ext - start), file, other);
        if (found == STK_FOUND_ONE && fits_extension(listing, pictures->paths[*file], ext) == 0) {
            found = STK_FOUND_NONE;
        }
    }
    if (found == STK_FOUND_NONE && strchr(start, '\\') != NULL) {
        for (char *at = start; (at = strchr(at, '\\')) != NULL;) {
            *at = '/';
        }
        found = stk_pictures_find(listing, pictures, start, file, other);
    }
    return found;
}
