/*
 * object_store.c - see the header.
 */
#include "object_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "object_md5.h"

/* Links may lead in circles. */
#define MAX_DEPTH 32

/* The clock that stamps files ticks every few milliseconds: a folder that changed so shortly before
 * it was read may change again without a new stamp. */
#define STAMP_NS 50000000

struct os_seen_folder {
    char *path;
    int64_t changed_ns;
};

/* What the table of files knows. */
typedef struct known_file {
    uint64_t size;
    int64_t changed_ns;
    ino_t inode;
    char etag[48]; /* "" while it was not made */
} known_file;

static int64_t stamp_ns(const struct timespec *at) {
    return (int64_t)at->tv_sec * 1000000000 + at->tv_nsec;
}

void os_store_start(os_store *store) {
    *store =
        (os_store){.files = {.record_bytes = sizeof(known_file)}, .multipart_bytes = 64U << 20};
}

static void forget_keys(os_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->keys[i]);
    }
    for (size_t i = 0; i < keys->folder_count; i++) {
        free(keys->folders[i].path);
    }
    free(keys->keys);
    free(keys->folders);
    *keys = (os_keys){0};
}

void os_store_free(os_store *store) {
    for (size_t i = 0; i < store->bucket_count; i++) {
        free(store->buckets[i].name);
        free(store->buckets[i].folder);
        forget_keys(&store->buckets[i].keys);
    }
    free(store->buckets);
    os_table_free(&store->files);
}

void os_store_add(os_store *store, const char *name, const char *folder) {
    struct stat info;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)) {
        os_die("%s is not a folder", folder);
    }
    store->buckets = os_resize(store->buckets, (store->bucket_count + 1) * sizeof *store->buckets);
    store->buckets[store->bucket_count++] =
        (os_bucket){.name = os_copy(name), .folder = os_copy(folder)};
}

os_bucket *os_store_bucket(os_store *store, const char *name, size_t size) {
    for (size_t i = 0; i < store->bucket_count; i++) {
        os_bucket *bucket = &store->buckets[i];
        if (strlen(bucket->name) == size && memcmp(bucket->name, name, size) == 0) {
            return bucket;
        }
    }
    return NULL;
}

/* Makes the ETag of an open file; false when it cannot be read. */
static bool make_etag(int fd, const struct stat *info, uint64_t multipart_bytes, char etag[48]) {
    static char buffer[256 * 1024];
    char hex[33];
    os_md5 md5;
    os_md5_start(&md5);
    if ((uint64_t)info->st_size > multipart_bytes) {
        int size = snprintf(buffer, sizeof buffer, "%lld %lld", (long long)info->st_size,
                            (long long)stamp_ns(&info->st_mtim));
        os_md5_add(&md5, buffer, (size_t)size);
        os_md5_end(&md5, hex);
        snprintf(etag, 48, "%s-%lld", hex, info->st_size / (8LL << 20) + 1);
        return true;
    }
    off_t at = 0;
    ssize_t got;
    while ((got = pread(fd, buffer, sizeof buffer, at)) > 0) {
        os_md5_add(&md5, buffer, (size_t)got);
        at += got;
    }
    os_md5_end(&md5, hex);
    memcpy(etag, hex, sizeof hex);
    return got == 0;
}

/* Whether a key names a file in a way that only one key does, and one below the folder. */
static bool is_plain_key(const char *key) {
    while (*key != '\0') {
        size_t size = strcspn(key, "/");
        if (size == 0 || strncmp(key, "./", size + 1) == 0 || strncmp(key, "../", size + 1) == 0 ||
            strcmp(key, ".") == 0 || strcmp(key, "..") == 0) {
            return false;
        }
        key += size;
        key += *key == '/';
    }
    return true;
}

/* Fills in size, time and ETag of an open regular file. */
static bool look_at(os_store *store, const char *path, int fd, os_object *object) {
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    known_file *known = os_table_get(&store->files, path);
    if (known->etag[0] == '\0' || known->size != (uint64_t)info.st_size ||
        known->inode != info.st_ino || known->changed_ns != stamp_ns(&info.st_mtim)) {
        known->size = (uint64_t)info.st_size;
        known->inode = info.st_ino;
        known->changed_ns = stamp_ns(&info.st_mtim);
        if (!make_etag(fd, &info, store->multipart_bytes, known->etag)) {
            known->etag[0] = '\0';
            return false;
        }
    }
    object->size = known->size;
    object->modified = info.st_mtim.tv_sec;
    memcpy(object->etag, known->etag, sizeof object->etag);
    return true;
}

static bool find_marker(const os_store *store, const char *path, os_object *object) {
    static const char etag_of_nothing[] = "d41d8cd98f00b204e9800998ecf8427e";
    struct stat info;
    if (!store->folder_markers || stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return false;
    }
    object->modified = info.st_mtim.tv_sec;
    memcpy(object->etag, etag_of_nothing, sizeof etag_of_nothing);
    return true;
}

bool os_store_find(os_store *store, const os_bucket *bucket, const char *key, bool open_it,
                   os_object *object) {
    *object = (os_object){.fd = -1};
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", bucket->folder, key);
    if (key[0] == '\0' || size < 0 || (size_t)size >= sizeof path || !is_plain_key(key)) {
        return false;
    }
    if (path[size - 1] == '/') {
        return find_marker(store, path, object);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool found = look_at(store, path, fd, object);
    if (found && open_it) {
        object->fd = fd;
    } else {
        close(fd);
    }
    return found;
}

static void add_key(os_keys *keys, const char *key, const char *ending) {
    if (keys->count == keys->room) {
        keys->room = keys->room > 0 ? 2 * keys->room : 256;
        keys->keys = os_resize(keys->keys, keys->room * sizeof *keys->keys);
    }
    os_text text = {0};
    os_text_addf(&text, "%s%s", key, ending);
    keys->keys[keys->count++] = text.bytes;
}

static void add_folder(os_keys *keys, const char *path) {
    struct stat info;
    int64_t changed_ns = stat(path, &info) == 0 ? stamp_ns(&info.st_mtim) : 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (stamp_ns(&now) - changed_ns < STAMP_NS) {
        keys->is_fresh = false;
    }
    if (keys->folder_count == keys->folder_room) {
        keys->folder_room = keys->folder_room > 0 ? 2 * keys->folder_room : 64;
        keys->folders = os_resize(keys->folders, keys->folder_room * sizeof *keys->folders);
    }
    keys->folders[keys->folder_count++] = (struct os_seen_folder){os_copy(path), changed_ns};
}

/* Adds all keys at and below `below`, which is "" or ends with a slash. */
static void scan(const os_store *store, const char *folder, const char *below, int depth,
                 os_keys *keys) {
    char path[PATH_MAX];
    if (depth > MAX_DEPTH ||
        (size_t)snprintf(path, sizeof path, "%s/%s", folder, below) >= sizeof path) {
        return;
    }
    /* The time is taken before the names, so that a change in between is seen as one. */
    add_folder(keys, path);
    DIR *entries = opendir(path);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        struct stat info = {.st_mode = entry->d_type == DT_DIR ? S_IFDIR : S_IFREG};
        if (entry->d_type != DT_DIR && entry->d_type != DT_REG &&
            fstatat(dirfd(entries), entry->d_name, &info, 0) != 0) {
            continue;
        }
        os_text key = {0};
        os_text_addf(&key, "%s%s", below, entry->d_name);
        if (S_ISDIR(info.st_mode)) {
            if (store->folder_markers) {
                add_key(keys, key.bytes, "/");
            }
            os_text_addf(&key, "/");
            scan(store, folder, key.bytes, depth + 1, keys);
        } else if (S_ISREG(info.st_mode)) {
            add_key(keys, key.bytes, "");
        }
        os_text_free(&key);
    }
    if (entries != NULL) {
        closedir(entries);
    }
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_current(const os_keys *keys) {
    for (size_t i = 0; i < keys->folder_count; i++) {
        struct stat info;
        if (stat(keys->folders[i].path, &info) != 0 ||
            stamp_ns(&info.st_mtim) != keys->folders[i].changed_ns) {
            return false;
        }
    }
    return keys->is_fresh && keys->folder_count > 0;
}

const os_keys *os_store_keys(os_store *store, os_bucket *bucket) {
    os_keys *keys = &bucket->keys;
    if (!is_current(keys)) {
        forget_keys(keys);
        keys->is_fresh = true;
        scan(store, bucket->folder, "", 0, keys);
        if (keys->count > 0) {
            qsort(keys->keys, keys->count, sizeof *keys->keys, by_bytes);
        }
    }
    return keys;
}

void os_store_warm(os_store *store) {
    for (size_t i = 0; i < store->bucket_count; i++) {
        const os_keys *keys = os_store_keys(store, &store->buckets[i]);
        for (size_t k = 0; k < keys->count; k++) {
            os_object object;
            os_store_find(store, &store->buckets[i], keys->keys[k], false, &object);
        }
    }
}
