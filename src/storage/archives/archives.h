/*
 * archives.h - opens the archives at the top of a location. tar/members.h has the look-ups.
 *
 * Members of archives are shown as if the archives had been unpacked, beside the location's own
 * files and folders. Members of zips and plain tars are read in place, in any order and many at a
 * time; other archives are unpacked once, into a folder that outlives the run. An archive that
 * cannot be used is a warning: the data may not need it.
 */
#ifndef STK_STORAGE_ARCHIVES_ARCHIVES_H
#define STK_STORAGE_ARCHIVES_ARCHIVES_H

#include "storage/archives/archive.h"

/*
 * Whether a location that looks like one of tar shards, by its names, is one of archives: its tars
 * have names of compressed ones, which competitions give to plain tars, and other files beside.
 */
bool stk_archives_instead_of_shards(const stk_dir_list *top);

/*
 * Opens all archives of a location, at whose top `top` stands. Where shards were opened before,
 * tars are no archives. Sets the store's mounts. Nothing happens where there is no archive.
 */
STK_CHECKED stk_status stk_archives_open(stk_store *store, const stk_dir_list *top,
                                         const stk_archive_folders *folders,
                                         const stk_events *events, stk_error *err);

#endif
