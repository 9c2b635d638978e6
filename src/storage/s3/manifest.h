/*
 * manifest.h - inside storage: a listing that is kept between runs.
 *
 * A text file: a line that names the place and the time, a line for each object, and a line with a
 * checksum at the end. A file that is damaged, cut off, of another place or of another version is
 * as good as none. It holds names, sizes and ETags; nothing in it is secret. Built with STK_HAVE_S3
 * only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_MANIFEST_H
#define STK_STORAGE_S3_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

#include "storage/tree.h"

typedef struct stk_s3_manifest {
    const char *location; /* "s3://bucket/prefix" */
    const char *endpoint; /* which store that is */
    char region[40];      /* where the bucket was found */
    int64_t time_s;       /* when it was listed, unix time */
} stk_s3_manifest;

/* The file for a listing in a folder; NULL without memory. stk_mem_free. */
char *stk_s3_manifest_path(const char *folder, const stk_s3_manifest *manifest);

/* Writes the file in one step and makes its folder. */
STK_CHECKED stk_status stk_s3_manifest_save(const char *path, const stk_s3_manifest *manifest,
                                            const stk_tree *tree, stk_error *err);

/*
 * Fills a zeroed tree, and region and time of the manifest, whose place and endpoint the file must
 * have. False: there is none that is any good, or no memory; the tree is empty.
 */
bool stk_s3_manifest_load(const char *path, stk_s3_manifest *manifest, stk_tree *tree);

/* The same from the bytes of a file, with a byte of room behind them, which are changed. */
bool stk_s3_manifest_parse(char *data, size_t size, stk_s3_manifest *manifest, stk_tree *tree);

#endif
