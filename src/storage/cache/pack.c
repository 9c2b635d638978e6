/* pack.c - the files of one pack: heads, entries, locks. */
#include "storage/cache/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/numbers/checksum.h"
#include "base/random_id.h"

#define VERSION 1
#define MAGIC "STKPACK" /* and one letter for the kind of file */
#define CHECK_AT 56     /* position of the checksum in heads and entries */
#define NAME_BYTES 32

/* Links are not followed and pipes not waited for: the cache touches only files that it made. */
#define OPEN_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

typedef enum file_kind { DATA = 'D', INDEX = 'I' } file_kind;

static void put_number(uint8_t *bytes, int count, uint64_t value) {
    for (int i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint64_t get_number(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << 8 * i;
    }
    return value;
}

static void encode_head(uint8_t *bytes, file_kind kind, uint64_t id) {
    memset(bytes, 0, STK_PACK_HEAD_BYTES);
    memcpy(bytes, MAGIC, sizeof MAGIC - 1);
    bytes[7] = (uint8_t)kind;
    put_number(bytes + 8, 4, VERSION);
    put_number(bytes + 12, 4, STK_PACK_HEAD_BYTES);
    put_number(bytes + 16, 8, id);
    put_number(bytes + CHECK_AT, 8, stk_checksum(bytes, CHECK_AT));
}

/* Compares with the head that would be written for this id, so the zeros are checked too. */
static bool decode_head(const uint8_t *bytes, file_kind kind, uint64_t *id) {
    uint8_t expected[STK_PACK_HEAD_BYTES];
    *id = get_number(bytes + 16, 8);
    encode_head(expected, kind, *id);
    return memcmp(bytes, expected, sizeof expected) == 0;
}

static void encode_entry(uint8_t *bytes, const stk_cache_entry *entry, uint64_t id) {
    memset(bytes, 0, STK_PACK_ENTRY_BYTES);
    put_number(bytes, 8, entry->key.high);
    put_number(bytes + 8, 8, entry->key.low);
    put_number(bytes + 16, 8, entry->at);
    put_number(bytes + 24, 4, entry->length);
    put_number(bytes + 28, 4, entry->generation);
    put_number(bytes + 32, 8, entry->checksum);
    put_number(bytes + CHECK_AT, 8, stk_checksum_seeded(bytes, CHECK_AT, id));
}

static bool decode_entry(const uint8_t *bytes, uint64_t id, stk_cache_entry *entry) {
    uint64_t generation = get_number(bytes + 28, 4);
    *entry = (stk_cache_entry){
        .key = {get_number(bytes, 8), get_number(bytes + 8, 8)},
        .at = get_number(bytes + 16, 8),
        .length = (uint32_t)get_number(bytes + 24, 4),
        .generation = (uint8_t)(generation < UINT8_MAX ? generation : UINT8_MAX),
        .checksum = get_number(bytes + 32, 8),
    };
    return get_number(bytes + CHECK_AT, 8) == stk_checksum_seeded(bytes, CHECK_AT, id);
}

static const char *make_name(char *name, int number, file_kind kind) {
    snprintf(name, NAME_BYTES, "pack-%04d.%s", number, kind == DATA ? "data" : "index");
    return name;
}

static int open_file(int folder_fd, int number, file_kind kind, int flags) {
    char name[NAME_BYTES];
    return openat(folder_fd, make_name(name, number, kind), flags | OPEN_FLAGS, 0600);
}

static void close_file(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Writes all bytes; false: errno says why. */
static bool write_all(int fd, const uint8_t *bytes, size_t size, uint64_t at) {
    while (size > 0) {
        ssize_t written = pwrite(fd, bytes, size, (off_t)at);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return false;
        }
        bytes += written;
        size -= (size_t)written;
        at += (uint64_t)written;
    }
    return true;
}

/* Returns how many bytes were read: fewer at the end of the file or after an error. */
static size_t read_some(int fd, uint8_t *bytes, size_t size, uint64_t at) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, bytes + done, size - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    return done;
}

static bool read_head(int fd, file_kind kind, uint64_t *id) {
    uint8_t head[STK_PACK_HEAD_BYTES];
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
           read_some(fd, head, sizeof head, 0) == sizeof head && decode_head(head, kind, id);
}

static bool write_head(int fd, file_kind kind, uint64_t id) {
    uint8_t head[STK_PACK_HEAD_BYTES];
    encode_head(head, kind, id);
    return write_all(fd, head, sizeof head, 0);
}

void stk_pack_clear(stk_pack *pack, int number) {
    memset(pack, 0, sizeof *pack);
    pack->number = number;
    pack->data_fd = pack->write_fd = pack->index_fd = -1;
}

bool stk_pack_parse_name(const char *name, int *number, bool *is_index) {
    char expected[NAME_BYTES];
    if (strncmp(name, "pack-", 5) != 0) {
        return false;
    }
    *number = 0;
    for (const char *p = name + 5; *p >= '0' && *p <= '9' && *number < STK_PACKS_MOST; p++) {
        *number = *number * 10 + (*p - '0');
    }
    if (*number >= STK_PACKS_MOST) {
        return false;
    }
    *is_index = strcmp(name, make_name(expected, *number, INDEX)) == 0;
    return *is_index || strcmp(name, make_name(expected, *number, DATA)) == 0;
}

int stk_pack_open_index(const stk_pack *pack, int folder_fd) {
    uint64_t id = 0;
    int fd = open_file(folder_fd, pack->number, INDEX, O_RDONLY);
    if (fd >= 0 && (!read_head(fd, INDEX, &id) || id != pack->id)) {
        close_file(&fd);
    }
    return fd;
}

bool stk_pack_open(stk_pack *pack, int folder_fd) {
    uint64_t id = 0;
    int fd = open_file(folder_fd, pack->number, DATA, O_RDONLY);
    if (fd >= 0 && !read_head(fd, DATA, &id)) {
        close_file(&fd);
    }
    if (fd < 0) {
        return false;
    }
    pack->id = id;
    int index_fd = stk_pack_open_index(pack, folder_fd);
    if (index_fd < 0) {
        close_file(&fd);
        return false;
    }
    close_file(&index_fd);
    pack->known_bytes = STK_PACK_HEAD_BYTES;
    pack->data_fd = fd;
    return true;
}

bool stk_pack_read_entries(stk_pack *pack, int index_fd, stk_cache_entry *entries, size_t *count) {
    uint8_t raw[STK_PACK_BATCH * STK_PACK_ENTRY_BYTES];
    struct stat info;
    *count = 0;
    size_t read = read_some(index_fd, raw, sizeof raw, pack->known_bytes) / STK_PACK_ENTRY_BYTES;
    /* Ask for the size after reading the entries: an entry's bytes were written before it. */
    if (fstat(pack->data_fd, &info) != 0) {
        return false;
    }
    uint64_t data_bytes = (uint64_t)info.st_size;
    size_t known = 0; /* entries up to the last whole one */
    for (size_t i = 0; i < read; i++) {
        stk_cache_entry *entry = &entries[*count];
        if (decode_entry(raw + i * STK_PACK_ENTRY_BYTES, pack->id, entry)) {
            entry->pack = (uint16_t)pack->number;
            entry->gone = entry->at < STK_PACK_HEAD_BYTES || entry->length > data_bytes ||
                          entry->at > data_bytes - entry->length;
            known = i + 1;
            (*count)++;
        }
    }
    bool more = read == STK_PACK_BATCH;
    pack->known_bytes += (uint64_t)(more ? read : known) * STK_PACK_ENTRY_BYTES;
    return more;
}

size_t stk_pack_read(const stk_pack *pack, uint8_t *bytes, size_t size, uint64_t at) {
    return read_some(pack->data_fd, bytes, size, at);
}

/*
 * Locks the index, just opened for writing; true: it is locked and still the file of that name. On
 * a file system without locks, only the process that has just made the file may use it.
 */
static bool lock_index(int fd, int folder_fd, int number, bool fresh) {
    char name[NAME_BYTES];
    struct stat held;
    struct stat named;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || !fresh)) {
        return false;
    }
    return fstat(fd, &held) == 0 && S_ISREG(held.st_mode) &&
           fstatat(folder_fd, make_name(name, number, INDEX), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* Whether the open files belong together. Sets their sizes; cuts a torn entry off the index. */
static bool prepare_to_append(stk_pack *pack) {
    uint64_t index_id = 0;
    struct stat index;
    struct stat data;
    struct stat reading;
    if (!read_head(pack->index_fd, INDEX, &index_id) || index_id != pack->id ||
        fstat(pack->index_fd, &index) != 0 || fstat(pack->write_fd, &data) != 0 ||
        fstat(pack->data_fd, &reading) != 0 || data.st_ino != reading.st_ino ||
        data.st_dev != reading.st_dev) {
        return false;
    }
    uint64_t torn = (uint64_t)index.st_size % STK_PACK_ENTRY_BYTES;
    pack->index_bytes = (uint64_t)index.st_size - torn;
    pack->data_bytes = (uint64_t)data.st_size;
    return torn == 0 || ftruncate(pack->index_fd, (off_t)pack->index_bytes) == 0;
}

stk_pack_result stk_pack_take(stk_pack *pack, int folder_fd) {
    pack->index_fd = open_file(folder_fd, pack->number, INDEX, O_RDWR);
    if (pack->index_fd < 0 || !lock_index(pack->index_fd, folder_fd, pack->number, false)) {
        stk_pack_release(pack);
        return STK_PACK_TAKEN;
    }
    pack->write_fd = open_file(folder_fd, pack->number, DATA, O_WRONLY);
    if (pack->write_fd < 0 || !prepare_to_append(pack)) {
        stk_pack_release(pack);
        return STK_PACK_TAKEN;
    }
    return STK_PACK_OURS;
}

/* Removes the files after a failure; keeps errno. */
static stk_pack_result fail_making(stk_pack *pack, int folder_fd, bool fresh) {
    int reason = errno;
    char name[NAME_BYTES];
    if (pack->write_fd >= 0) {
        unlinkat(folder_fd, make_name(name, pack->number, DATA), 0);
    }
    if (fresh) {
        unlinkat(folder_fd, make_name(name, pack->number, INDEX), 0);
    }
    stk_pack_close(pack);
    errno = reason;
    return STK_PACK_FAILED;
}

stk_pack_result stk_pack_make(stk_pack *pack, int folder_fd) {
    struct stat info;
    pack->index_fd = open_file(folder_fd, pack->number, INDEX, O_RDWR | O_CREAT | O_EXCL);
    bool fresh = pack->index_fd >= 0;
    if (!fresh && errno != EEXIST) {
        return STK_PACK_FAILED;
    }
    if (!fresh) {
        pack->index_fd = open_file(folder_fd, pack->number, INDEX, O_RDWR);
    }
    if (pack->index_fd < 0 || !lock_index(pack->index_fd, folder_fd, pack->number, fresh) ||
        fstat(pack->index_fd, &info) != 0 || info.st_size >= STK_PACK_HEAD_BYTES) {
        stk_pack_release(pack);
        return STK_PACK_TAKEN;
    }
    /* The index gets its head last: until then nobody uses the data. */
    pack->id = stk_random_id();
    pack->write_fd = open_file(folder_fd, pack->number, DATA, O_RDWR | O_CREAT | O_TRUNC);
    pack->data_fd = pack->write_fd >= 0 ? fcntl(pack->write_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (pack->data_fd < 0 || !write_head(pack->write_fd, DATA, pack->id) ||
        !write_head(pack->index_fd, INDEX, pack->id)) {
        return fail_making(pack, folder_fd, fresh);
    }
    pack->known_bytes = pack->index_bytes = STK_PACK_HEAD_BYTES;
    pack->data_bytes = STK_PACK_HEAD_BYTES;
    return STK_PACK_OURS;
}

bool stk_pack_append_bytes(stk_pack *pack, struct iovec *pieces, size_t count) {
    while (count > 0) {
        if (pieces->iov_len == 0) {
            pieces++;
            count--;
            continue;
        }
        ssize_t written = pwritev(pack->write_fd, pieces, (int)count, (off_t)pack->data_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return false;
        }
        pack->data_bytes += (uint64_t)written;
        size_t left = (size_t)written;
        while (left > 0) {
            size_t used = left < pieces->iov_len ? left : pieces->iov_len;
            pieces->iov_base = (uint8_t *)pieces->iov_base + used;
            pieces->iov_len -= used;
            left -= used;
            if (pieces->iov_len == 0) {
                pieces++;
                count--;
            }
        }
    }
    return true;
}

bool stk_pack_append_entries(stk_pack *pack, const stk_cache_entry *entries, size_t count) {
    uint8_t raw[STK_PACK_BATCH * STK_PACK_ENTRY_BYTES];
    for (size_t i = 0; i < count; i++) {
        encode_entry(raw + i * STK_PACK_ENTRY_BYTES, &entries[i], pack->id);
    }
    if (!write_all(pack->index_fd, raw, count * STK_PACK_ENTRY_BYTES, pack->index_bytes)) {
        int reason = errno;
        (void)(ftruncate(pack->index_fd, (off_t)pack->index_bytes) == 0);
        errno = reason;
        return false;
    }
    pack->index_bytes += (uint64_t)count * STK_PACK_ENTRY_BYTES;
    pack->known_bytes = pack->index_bytes;
    return true;
}

void stk_pack_cut(stk_pack *pack, uint64_t data_bytes) {
    int reason = errno;
    if (ftruncate(pack->write_fd, (off_t)data_bytes) == 0) {
        pack->data_bytes = data_bytes;
    }
    errno = reason;
}

bool stk_pack_is_removed(const stk_pack *pack) {
    struct stat index;
    struct stat data;
    return fstat(pack->index_fd, &index) != 0 || fstat(pack->write_fd, &data) != 0 ||
           index.st_nlink == 0 || data.st_nlink == 0;
}

void stk_pack_release(stk_pack *pack) {
    close_file(&pack->write_fd);
    close_file(&pack->index_fd);
}

void stk_pack_close(stk_pack *pack) {
    stk_pack_release(pack);
    close_file(&pack->data_fd);
}
