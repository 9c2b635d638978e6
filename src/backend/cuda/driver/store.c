/*
 * store.c - blobs on disk, one file each: FOLDER/<digest of machine>/<digest of key>.
 *
 * A file holds a head, the machine and the key that it belongs to, and the blob. A checksum covers
 * all after the head. The digests only make file names; the texts in a file say what it is for.
 */
#include "backend/cuda/driver/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/numbers/digest.h"
#include "base/str.h"

/* Larger files were not written by Stoker. */
#define MOST_FILE_BYTES ((size_t)64 << 20)

/* The time of a file tells when it was last used, to within this. */
#define USED_AGAIN_S ((time_t)24 * 3600)

/* Time limit of one call to the disk. */
#define WAIT_S 3.0

typedef struct file_head {
    char magic[8];
    uint64_t key_bytes; /* machine and key, with a line's end between them */
    uint64_t blob_bytes;
    uint64_t checksum;
} file_head;

static const char magic[8] = {'S', 'T', 'K', 'C', 'U', 'D', 'A', '1'};

struct cuda_store {
    char *folder;  /* owned; NULL: there is none */
    char *machine; /* owned */
    char *place;   /* owned: the machine's folder in `folder` */
    atomic_bool written;
    atomic_bool silent; /* its disk does not answer: nothing is looked for any more */
    atomic_bool off;    /* nothing can be written any more */
    stk_error trouble;  /* why not: written by the thread that found it */
    atomic_bool known;  /* `trouble` was written */
};

/* A name for a text. */
static void name_of(const char *text, char name[STK_SHA256_TEXT]) {
    uint8_t digest[STK_SHA256_BYTES];
    stk_sha256_of(text, strlen(text), digest);
    stk_hex(digest, sizeof digest / 2, name);
}

stk_status stk_cuda_store_open(cuda_store **store, const char *folder, const char *machine,
                               stk_error *err) {
    char name[STK_SHA256_TEXT];
    cuda_store *s = stk_mem_new(1, sizeof *s);
    if (s == NULL) {
        return STK_FAIL_MEMORY(err, "the store of kernels");
    }
    char *kept = folder == NULL ? stk_path_user_cache() : NULL;
    s->folder = folder != NULL ? stk_mem_strdup(folder)
                : kept != NULL ? stk_path_join(kept, "cuda")
                               : NULL;
    stk_mem_free(kept);
    s->machine = stk_mem_strdup(machine);
    name_of(machine, name);
    if (s->folder != NULL) {
        s->place = stk_path_join(s->folder, name);
    }
    if (s->machine == NULL || (s->folder != NULL && s->place == NULL)) {
        stk_cuda_store_close(s);
        return STK_FAIL_MEMORY(err, "the store of kernels");
    }
    *store = s;
    return STK_OK;
}

/* Sets the time of a file, so that files in use are removed last. */
static void note_use(const char *path) {
    struct stat info;
    if (stk_disk_look(path, &info) == 0 && time(NULL) - info.st_mtime > USED_AGAIN_S) {
        (void)utimensat(AT_FDCWD, path, NULL, 0);
    }
}

/* Enters the disk with a short time limit, on every thread: all of this can be made again. */
static stk_disk *enter_disk(const cuda_store *s) {
    stk_disk *disk = stk_disk_is_entered()
                         ? NULL
                         : stk_disk_enter(&(stk_disk_config){.look_s = WAIT_S, .move_s = WAIT_S});
    stk_disk_root(disk != NULL ? s->folder : NULL, true);
    return disk;
}

/* After each use; a disk that hangs is not asked again. */
static void leave_disk(cuda_store *s, stk_disk *disk) {
    if (s->folder != NULL && stk_disk_hangs(s->folder) && !atomic_exchange(&s->silent, true) &&
        !atomic_exchange(&s->off, true)) {
        (void)STK_FAIL(&s->trouble, STK_ERR_STORAGE, "%s: %s", s->folder,
                       stk_disk_reason(ETIMEDOUT));
        atomic_store(&s->known, true);
    }
    stk_disk_leave(disk);
}

static void trim(void *folder) {
    stk_cuda_store_trim(folder, CUDA_STORE_MOST_BYTES);
}

void stk_cuda_store_close(cuda_store *store) {
    if (store == NULL) {
        return;
    }
    if (atomic_load(&store->written) && !atomic_load(&store->silent)) {
        stk_disk *disk = enter_disk(store);
        char *folder = stk_mem_strdup(store->folder);
        if (folder != NULL && stk_disk_run(folder, trim, folder, stk_mem_free)) {
            stk_mem_free(folder);
        }
        stk_disk_leave(disk);
    }
    stk_mem_free(store->folder);
    stk_mem_free(store->machine);
    stk_mem_free(store->place);
    stk_mem_free(store);
}

/* The whole key and the file's path; false where there is nothing to be found. */
static bool find_place(const cuda_store *s, const char *key, char **whole, char **path) {
    char name[STK_SHA256_TEXT];
    *whole = NULL;
    *path = NULL;
    if (s->place == NULL) {
        return false;
    }
    *whole = stk_str_format("%s\n%s", s->machine, key);
    if (*whole != NULL) {
        name_of(*whole, name);
        *path = stk_path_join(s->place, name);
    }
    return *path != NULL;
}

/* Whether a file is whole and belongs to the key. */
static bool is_good(const char *data, size_t size, const char *whole, file_head *head) {
    if (size < sizeof *head) {
        return false;
    }
    memcpy(head, data, sizeof *head);
    size_t rest = size - sizeof *head;
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->key_bytes == strlen(whole) &&
           head->key_bytes <= rest && head->blob_bytes == rest - head->key_bytes &&
           memcmp(data + sizeof *head, whole, (size_t)head->key_bytes) == 0 &&
           stk_checksum(data + sizeof *head, rest) == head->checksum;
}

void stk_cuda_store_get(cuda_store *store, const char *key, void **blob, size_t *bytes) {
    char *whole;
    char *path;
    char *data = NULL;
    size_t size = 0;
    file_head head;
    stk_error ignored = {0};
    *blob = NULL;
    *bytes = 0;
    if (atomic_load(&store->silent)) {
        return;
    }
    stk_disk *disk = enter_disk(store);
    if (find_place(store, key, &whole, &path) && stk_path_is_file(path) &&
        stk_file_read(path, MOST_FILE_BYTES, &data, &size, &ignored) == STK_OK &&
        is_good(data, size, whole, &head)) {
        memmove(data, data + sizeof head + head.key_bytes, (size_t)head.blob_bytes);
        *bytes = (size_t)head.blob_bytes;
        *blob = data;
        data = NULL;
        note_use(path);
    }
    leave_disk(store, disk);
    stk_mem_free(data);
    stk_mem_free(whole);
    stk_mem_free(path);
}

void stk_cuda_store_put(cuda_store *store, const char *key, const void *blob, size_t bytes) {
    char *whole;
    char *path;
    stk_str file = {0};
    stk_error why = {0};
    if (atomic_load(&store->off) || bytes > MOST_FILE_BYTES / 2) {
        return;
    }
    if (find_place(store, key, &whole, &path)) {
        file_head head = {.key_bytes = strlen(whole), .blob_bytes = bytes};
        memcpy(head.magic, magic, sizeof magic);
        stk_str_append_bytes(&file, &head, sizeof head);
        stk_str_append(&file, whole);
        stk_str_append_bytes(&file, blob, bytes);
    }
    if (path != NULL && stk_str_ok(&file)) {
        uint64_t sum = stk_checksum(file.text + sizeof(file_head), file.length - sizeof(file_head));
        memcpy(file.text + offsetof(file_head, checksum), &sum, sizeof sum);
        stk_disk *disk = enter_disk(store);
        bool done = stk_dir_make(store->place, &why) == STK_OK &&
                    stk_file_write(path, file.text, file.length, &why) == STK_OK;
        leave_disk(store, disk);
        if (done) {
            atomic_store(&store->written, true);
        } else if (!atomic_exchange(&store->off, true)) {
            store->trouble = why;
            atomic_store(&store->known, true);
        }
    }
    stk_str_free(&file);
    stk_mem_free(whole);
    stk_mem_free(path);
}

const char *stk_cuda_store_trouble(const cuda_store *store) {
    return atomic_load(&store->known) ? store->trouble.message : NULL;
}

typedef struct stored_file {
    char *path; /* owned */
    uint64_t bytes;
    time_t used;
} stored_file;

typedef struct stored_files {
    stored_file *files; /* owned */
    size_t count;
    size_t capacity;
    uint64_t bytes; /* of all */
} stored_files;

/* Adds the files of one machine; hidden ones too, which a process that was killed left behind. */
static void add_files(stored_files *all, const char *place) {
    DIR *dir = opendir(place);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        struct stat info;
        char *path = stk_path_join(place, entry->d_name);
        if (path != NULL && STK_RESERVE(all->files, all->capacity, all->count + 1) &&
            lstat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            all->files[all->count++] = (stored_file){path, (uint64_t)info.st_size, info.st_mtime};
            all->bytes += (uint64_t)info.st_size;
        } else {
            stk_mem_free(path);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static int compare_use(const void *a, const void *b) {
    const stored_file *x = a;
    const stored_file *y = b;
    return x->used != y->used ? (x->used > y->used) - (x->used < y->used)
                              : strcmp(x->path, y->path);
}

void stk_cuda_store_trim(const char *folder, uint64_t most_bytes) {
    stored_files all = {0};
    stk_dir_list places = {0};
    stk_error ignored = {0};
    if (stk_dir_read(folder, &places, &ignored) != STK_OK) {
        return;
    }
    for (size_t i = 0; i < places.count; i++) {
        char *place =
            places.entries[i].is_dir ? stk_path_join(folder, places.entries[i].name) : NULL;
        if (place != NULL) {
            add_files(&all, place);
        }
        stk_mem_free(place);
    }
    if (all.bytes > most_bytes) {
        qsort(all.files, all.count, sizeof *all.files, compare_use);
    }
    for (size_t i = 0; i < all.count; i++) {
        if (all.bytes > most_bytes && unlink(all.files[i].path) == 0) {
            all.bytes -= all.files[i].bytes;
        }
        stk_mem_free(all.files[i].path);
    }
    stk_mem_free(all.files);
    stk_dir_list_free(&places);
}
