/* tree.c - objects sorted by path, so that a folder is a stretch of the list. */
#include "storage/tree.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* Names with more parts are passed over: code that walks folders recurses. */
#define DEPTH_MAX 256

/* Whether a path is that of a file, without `.` and `..`, and has at most DEPTH_MAX parts. */
static bool is_plain(const char *path, size_t length) {
    size_t parts = 0;
    if (length == 0 || path[length - 1] == '/' || memchr(path, '\0', length) != NULL) {
        return false;
    }
    for (size_t start = 0; start < length;) {
        const char *slash = memchr(path + start, '/', length - start);
        size_t end = slash != NULL ? (size_t)(slash - path) : length;
        size_t part = end - start;
        if (++parts > DEPTH_MAX || (part == 1 && path[start] == '.') ||
            (part == 2 && path[start] == '.' && path[start + 1] == '.')) {
            return false;
        }
        start = end + 1;
    }
    return true;
}

stk_status stk_tree_add(stk_tree *tree, const char *path, size_t length, uint64_t size,
                        const char *version, uint64_t value, stk_error *err) {
    while (length >= 2 && path[0] == '.' && path[1] == '/') {
        path += 2;
        length -= 2;
    }
    if (!is_plain(path, length)) {
        return STK_OK;
    }
    if (!STK_RESERVE(tree->objects, tree->capacity, tree->count + 1)) {
        return STK_FAIL_MEMORY(err, "the list of objects");
    }
    if (tree->last_version == NULL || !stk_str_equal(tree->last_version, version)) {
        tree->last_version = stk_text_blocks_keep(&tree->texts, version, strlen(version));
    }
    const char *copy = stk_text_blocks_keep(&tree->texts, path, length);
    if (copy == NULL || tree->last_version == NULL) {
        return STK_FAIL_MEMORY(err, "the list of objects");
    }
    tree->objects[tree->count++] = (stk_tree_object){
        .path = copy, .version = tree->last_version, .size = size, .value = value};
    return STK_OK;
}

/* A merge sort, which keeps the order of equal names; most lists come sorted. */
static bool merge_sort(stk_tree_object *objects, size_t count) {
    size_t sorted = 1;
    while (sorted < count && strcmp(objects[sorted - 1].path, objects[sorted].path) <= 0) {
        sorted++;
    }
    if (sorted >= count) {
        return true;
    }
    stk_tree_object *other = stk_mem_raw(count, sizeof *other);
    if (other == NULL) {
        return false;
    }
    stk_tree_object *from = objects;
    stk_tree_object *to = other;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = start + width < count ? start + width : count;
            size_t end = start + 2 * width < count ? start + 2 * width : count;
            for (size_t i = start, j = middle, k = start; k < end; k++) {
                bool left = i < middle && (j >= end || strcmp(from[i].path, from[j].path) <= 0);
                to[k] = left ? from[i++] : from[j++];
            }
        }
        stk_tree_object *swap = from;
        from = to;
        to = swap;
    }
    if (from != objects) {
        memcpy(objects, from, count * sizeof *objects);
    }
    stk_mem_free(other);
    return true;
}

stk_status stk_tree_finish(stk_tree *tree, stk_error *err) {
    if (!merge_sort(tree->objects, tree->count)) {
        return STK_FAIL_MEMORY(err, "the list of objects");
    }
    size_t kept = 0;
    for (size_t i = 0; i < tree->count; i++) {
        if (i + 1 == tree->count ||
            !stk_str_equal(tree->objects[i].path, tree->objects[i + 1].path)) {
            tree->objects[kept++] = tree->objects[i];
        }
    }
    tree->count = kept;
    return STK_OK;
}

void stk_tree_free(stk_tree *tree) {
    stk_text_blocks_free(&tree->texts);
    stk_mem_free(tree->objects);
    memset(tree, 0, sizeof *tree);
}

/*
 * The first object from `low` on whose path is not before `path`, or, with `after`, is after it;
 * `length` bytes are compared.
 */
static size_t search(const stk_tree *tree, size_t low, const char *path, size_t length,
                     bool after) {
    size_t high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(tree->objects[middle].path, path, length);
        if (order < 0 || (order == 0 && after)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const stk_tree_object *stk_tree_find(const stk_tree *tree, const char *path) {
    size_t i = search(tree, 0, path, strlen(path) + 1, false);
    return i < tree->count && stk_str_equal(tree->objects[i].path, path) ? &tree->objects[i] : NULL;
}

bool stk_tree_has(const stk_tree *tree, const char *path) {
    size_t length = strlen(path);
    /* Names such as "a-b" may stand between "a" and "a/b", so what is below is looked for alone. */
    size_t low = search(tree, 0, path, length, false);
    while (low < tree->count && strncmp(tree->objects[low].path, path, length) == 0) {
        char next = tree->objects[low].path[length];
        if (next == '\0' || next == '/') {
            return true;
        }
        if (next > '/') {
            return false;
        }
        low = search(tree, low + 1, tree->objects[low].path, length + 1, true);
    }
    return false;
}

/* Adds what stands right in the folder whose path with its slash is `prefix`. */
static bool list_prefix(const stk_tree *tree, const char *prefix, size_t length,
                        stk_dir_list *list) {
    size_t capacity = 0;
    bool good = true;
    size_t i = search(tree, 0, prefix, length, false);
    while (good && i < tree->count && strncmp(tree->objects[i].path, prefix, length) == 0) {
        const char *path = tree->objects[i].path;
        const char *name = path + length;
        size_t name_length = strcspn(name, "/");
        bool is_dir = name[name_length] == '/';
        if (name[0] != '.' && name_length > 0) {
            good = stk_dir_list_add(list, &capacity, name, name_length, is_dir);
        }
        /* All objects below a folder lie together in the list: skip them. */
        i = is_dir ? search(tree, i + 1, path, length + name_length + 1, true) : i + 1;
    }
    return good;
}

stk_status stk_tree_list(const stk_tree *tree, const char *folder, stk_dir_list *list,
                         stk_error *err) {
    memset(list, 0, sizeof *list);
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/') {
        length--;
    }
    char *prefix = length > 0 ? stk_str_format("%.*s/", (int)length, folder) : stk_mem_strdup("");
    if (prefix == NULL || !list_prefix(tree, prefix, strlen(prefix), list)) {
        stk_mem_free(prefix);
        stk_dir_list_free(list);
        return STK_FAIL_MEMORY(err, "the list of objects");
    }
    stk_mem_free(prefix);
    stk_dir_list_sort(list);
    return STK_OK;
}
