/*
 * archive.h - inside storage: one archive of a location, and where its members are.
 *
 * list_members.c finds the members: those of a zip from its directory, those of a tar from its
 * headers, those of a BSON file from its documents (bson.h), and those of all else by unpacking it
 * once (unpack.h). Threads: one at a time for each
 * stk_archive.
 */
#ifndef STK_STORAGE_ARCHIVES_ARCHIVE_H
#define STK_STORAGE_ARCHIVES_ARCHIVE_H

#include "storage/archives/archive_names.h"
#include "storage/storage.h"
#include "storage/tar/shard_index.h"

/* Folders for files that outlive a run; NULL: there are none. */
typedef struct stk_archive_folders {
    const char *lists;    /* positions of members */
    const char *unpacked; /* unpacked archives */
} stk_archive_folders;

typedef struct stk_archive {
    char *name;                            /* owned: of the object at the top of the location */
    char *stem;                            /* owned: the name without the archive's ending */
    char version[STK_STORE_VERSION_BYTES]; /* changes whenever the object does */
    uint64_t size;                         /* bytes of the object */
    stk_archive_kind kind;
    const char *format;    /* for people */
    bool listed;           /* `found` holds its members */
    bool used;             /* its members are shown */
    stk_shard_index found; /* their paths are those in the archive */
    uint64_t links; /* members that are left out because they are no files, or lead outside */
    uint64_t outside;
    uint64_t encrypted; /* members that are left out because they need a password */
    stk_error error;    /* why it cannot be used */
} stk_archive;          /* starts zeroed */

/*
 * Looks what an archive is: version, size and kind. An object that is no archive is an error. Zips
 * are `listed` then, and so are archives that an earlier run has unpacked or stored the members of.
 */
STK_CHECKED stk_status stk_archive_look(stk_store *store, const stk_archive_folders *folders,
                                        stk_archive *archive, stk_error *err);

/* Finds the members of an archive that is not `listed`; unpacks it, if its kind needs that. */
STK_CHECKED stk_status stk_archive_list(stk_store *store, const stk_archive_folders *folders,
                                        stk_archive *archive, stk_error *err);

/* Fails when reading an archive must end: after a request to stop, or after the deadline. */
STK_CHECKED stk_status stk_archive_check_end(const stk_store *store, const stk_archive *archive,
                                             stk_error *err);

void stk_archive_free(stk_archive *archive);

#endif
