/*
 * manifest.h - the file in which a listing is stored between runs.
 *
 * A manifest is a text file: one line with location and time, one line per object, and a last line
 * with a checksum (manifest.c shows the format). A file that is damaged, cut off, of another
 * location or of another version is ignored. It has names, sizes and ETags, and no secrets. Built
 * with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_MANIFEST_H
#define STK_STORAGE_S3_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

#include "storage/tree.h"

typedef struct stk_s3_manifest {
    const char *location; /* "s3://bucket/prefix" */
    const char *endpoint; /* the store's URL, or "aws" */
    char region[40];      /* the bucket's region */
    int64_t time_s;       /* unix time of the listing */
} stk_s3_manifest;

/* The file's path in a folder, from location and endpoint; NULL without memory. stk_mem_free. */
char *stk_s3_manifest_path(const char *folder, const stk_s3_manifest *manifest);

/* Makes the folder and replaces the file in one step. */
STK_CHECKED stk_status stk_s3_manifest_save(const char *path, const stk_s3_manifest *manifest,
                                            const stk_tree *tree, stk_error *err);

/*
 * Reads the file into a zeroed tree, and into the manifest's region and time. The file must have
 * the manifest's location and endpoint. False: no valid file, or no memory; the tree is empty then.
 */
bool stk_s3_manifest_load(const char *path, stk_s3_manifest *manifest, stk_tree *tree);

/* Parses the bytes of a file. They are changed, and one more byte after them may be written. */
bool stk_s3_manifest_parse(char *data, size_t size, stk_s3_manifest *manifest, stk_tree *tree);

#endif
