/*
 * unpack.h - inside storage: unpacks an archive whose members cannot be read one by one.
 *
 * All members go into one file in the folder of unpacked archives, one behind the other, and an
 * index says where each begins. So no path of a stranger is ever written to, a hundred thousand
 * members are one file, and they are read as those of a tar are. Both files appear only when they
 * are complete, the index last; several processes may unpack one archive at the same time.
 *
 * Reading goes through the store, so an archive in S3 needs no copy, and a request to stop ends it.
 * Threads: any, for different archives.
 */
#ifndef STK_STORAGE_ARCHIVES_UNPACK_H
#define STK_STORAGE_ARCHIVES_UNPACK_H

#include "storage/archives/archive.h"

/* Whether an earlier run has unpacked this version of the archive; its members are `listed` then.
 */
bool stk_archive_recall_unpacked(stk_store *store, const char *folder, stk_archive *archive);

/* The file in the folder of unpacked archives for what this version of an archive is made into;
 * NULL without memory; stk_mem_free. */
char *stk_archive_output_name(const stk_store *store, const stk_archive *archive,
                              const char *ending);

/*
 * Unpacks the archive and finds its members. Limits: the free room of the disk, a thousand times
 * the archive's own size, and ten million members. Links and devices are left out and counted.
 */
STK_CHECKED stk_status stk_archive_unpack(stk_store *store, const char *folder,
                                          stk_archive *archive, stk_error *err);

#endif
