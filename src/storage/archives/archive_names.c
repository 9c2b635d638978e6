/* archive_names.c - endings of names and magic bytes. */
#include "storage/archives/archive_names.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

size_t stk_archive_stem(const char *name) {
    /* Longer endings come first: what `.gz` would leave of x.tar.gz is no stem. */
    static const char *const endings[] = {".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tar.lz4",
                                          ".tgz",    ".tzst",    ".tbz2",    ".tbz",    ".txz",
                                          ".tar",    ".zip",     ".7z",      ".rar",    ".gz",
                                          ".xz",     ".bz2",     ".zst",     ".lz4",    ".bson"};
    size_t length = strlen(name);
    if (length == 0 || strchr("24nprtzNPRTZ", name[length - 1]) == NULL) {
        return 0; /* a folder may have a million names */
    }
    for (size_t i = 0; i < STK_COUNT(endings); i++) {
        size_t end = strlen(endings[i]);
        if (length > end && strcasecmp(name + length - end, endings[i]) == 0) {
            return length - end;
        }
    }
    return 0;
}

bool stk_archive_is_whole(const char *name) {
    return stk_str_ends_with_nocase(name, ".zip") || stk_str_ends_with_nocase(name, ".7z") ||
           stk_str_ends_with_nocase(name, ".rar");
}

bool stk_archive_is_bson(const char *name, size_t *whole) {
    static const char *const parts[] = {"_example", "_examples", "_sample", "_tiny", "_small"};
    if (!stk_str_ends_with_nocase(name, ".bson")) {
        return false;
    }
    size_t length = strlen(name) - strlen(".bson");
    for (size_t i = 0; whole != NULL && i < STK_COUNT(parts); i++) {
        size_t end = strlen(parts[i]);
        bool is_part = length > end && strncasecmp(name + length - end, parts[i], end) == 0;
        *whole = is_part ? length - end : i == 0 ? 0 : *whole;
    }
    return true;
}

stk_archive_kind stk_archive_kind_of(const uint8_t *head, size_t size, const char **format) {
    static const struct {
        const char *format;
        stk_archive_kind kind;
        size_t at;
        size_t size;
        const char *magic;
    } formats[] = {{"zip", STK_ARCHIVE_ZIP, 0, 4, "PK\x03\x04"},
                   {"zip", STK_ARCHIVE_ZIP, 0, 4, "PK\x05\x06"}, /* without members */
                   {"7z", STK_ARCHIVE_PACKED, 0, 6, "7z\xbc\xaf\x27\x1c"},
                   {"gzip", STK_ARCHIVE_PACKED, 0, 2, "\x1f\x8b"},
                   {"xz", STK_ARCHIVE_PACKED, 0, 6, "\xfd\x37zXZ\0"},
                   {"bzip2", STK_ARCHIVE_PACKED, 0, 3, "BZh"},
                   {"zstd", STK_ARCHIVE_PACKED, 0, 4, "\x28\xb5\x2f\xfd"},
                   {"lz4", STK_ARCHIVE_PACKED, 0, 4, "\x04\x22\x4d\x18"},
                   {"rar", STK_ARCHIVE_PACKED, 0, 6, "Rar!\x1a\x07"},
                   {"tar", STK_ARCHIVE_TAR, 257, 5, "ustar"}};
    for (size_t i = 0; i < STK_COUNT(formats); i++) {
        size_t end = formats[i].at + formats[i].size;
        if (size >= end && memcmp(head + formats[i].at, formats[i].magic, formats[i].size) == 0) {
            *format = formats[i].format;
            return formats[i].kind;
        }
    }
    return STK_ARCHIVE_NONE;
}

bool stk_archive_is_table(const char *name) {
    static const char *const endings[] = {".csv",  ".tsv",     ".json", ".jsonl", ".ndjson",
                                          ".bson", ".parquet", ".txt",  ".md",    ".xml",
                                          ".yaml", ".yml",     ".pkl",  ".h5",    ".hdf5"};
    for (size_t i = 0; i < STK_COUNT(endings); i++) {
        if (stk_str_ends_with_nocase(name, endings[i])) {
            return true;
        }
    }
    return false;
}

bool stk_archive_is_part(const char *name) {
    return strncasecmp(name, "train", 5) == 0 || strncasecmp(name, "test", 4) == 0 ||
           strncasecmp(name, "val", 3) == 0;
}
