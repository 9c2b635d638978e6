/*
 * store_state.h - inside storage: the struct of an opened store, for the files that read from it.
 *
 * store/store.c fills it in while it opens the store. Afterwards only the fields with a lock and
 * the atomic ones change. The functions here know things without asking the location. The struct is
 * in this folder because reading/ and shards/ use it, and both come before store/.
 */
#ifndef STK_STORAGE_READING_STORE_STATE_H
#define STK_STORAGE_READING_STORE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/cache/cache.h"
#include "storage/reading/outage.h"
#include "storage/reading/reader.h"
#include "storage/reading/quarantine.h"
#include "storage/io_threads.h"
#include "storage/source.h"
#include "storage/tar/members.h"

struct stk_store {
    char *root; /* owned: as given, without slashes at its end */
    char *base; /* owned: the root that the source was opened with; for a single tar its folder */
    char *name; /* owned: absolute form of `base`, part of the keys of the cache */
    stk_storage_options options;
    int64_t begun_ns; /* when opening began */
    const stk_storage_source *source;
    void *location;                   /* owned: what the source's open returned */
    stk_io_threads *cache_io_threads; /* for reads of the cache, so that a location that hangs does
                                         not block them */
    const stk_tree *tree;             /* of the shards or of the source, or NULL */
    stk_shards *shards;               /* owned, or NULL */
    stk_shards *mounts;               /* owned: members of archives, shown beside the other objects,
                                         or NULL. What is in its tree comes before `tree` */
    stk_texts mounted;                /* the archives that are shown as their members, by name */
    char *made;                       /* owned: the folder of unpacked archives and of files that
                                         are made of objects, or NULL: there is none */
    void *unpacked;                   /* owned: the folder of unpacked archives as a location of
                                         stk_storage_local; NULL: nothing is read from there */
    stk_cache *cache;                 /* owned, or NULL */
    bool cache_later;                 /* the cache was made by options.cache_later */
    atomic_bool cache_waits;          /* the cache is not to be used now */
    atomic_int cache_silent;          /* reads of the cache in a row that gave no answer */
    bool caches_decoded;              /* the cache holds decoded pictures instead of bytes */
    uint64_t
        cache_memory; /* bytes that the cache may hold when it lies in memory; 0: it does not */
    pthread_mutex_t lock;
    stk_reader *reader;        /* owned: for single reads; made when first needed; lock */
    pthread_mutex_t lost_lock; /* taken inside the locks of readers */
    atomic_bool is_lost;       /* a reader has found that nothing can be read any more */
    stk_error lost;            /* the reason; lost_lock; set before is_lost */
    stk_quarantine quarantine; /* objects that gave no answer lately */
    stk_outage outage;         /* since when the location has answered nobody */
    /* Counters: written by readers, read by anybody. */
    atomic_ullong retries, hedges, timeouts;
};

/*
 * The one name of an object, however the location was spelled: the real path of a local file, else
 * the address. What is made of objects and kept is found by it. stk_mem_free. NULL: no memory.
 */
char *stk_store_real_name(const stk_store *store, const char *object);

/*
 * The member that a path names, in an archive or a tar; false: it names none.
 */
bool stk_store_find_member(const stk_store *store, const char *path, stk_extent *extent);

/*
 * For a part of an object: if `part->object` is a member of an archive that lies there as it is,
 * makes the part one of the archive; fewer bytes where the member ends earlier.
 */
void stk_store_place_part(const stk_store *store, stk_extent *part);

/* The object or member with a path, where it is known without asking; or NULL. */
const stk_tree_object *stk_store_known(const stk_store *store, const char *path);

/* The caller lacks bytes: the source and the cache serve one more read at a time, if they can. */
void stk_store_hurry(stk_store *store);

/* Tells all readers that nothing can be had from this location any more; the first reason stays. */
void stk_store_lose(stk_store *store, const stk_error *why);

/* Whether stk_store_lose() was called; then *why is the reason. */
bool stk_store_is_lost(stk_store *store, stk_error *why);

/*
 * The key under which an object is cached. `version` is NULL or what a fetch of STK_FETCH_VERSION
 * brought. False when the version must be asked for first.
 */
bool stk_store_key(const stk_store *store, const char *path, const char *version,
                   stk_cache_key *key);

/*
 * Puts a member of a tar into the cache, if there is a cache: for code that has read its bytes
 * anyway. The cache drops members that come faster than it can write, so flush now and then.
 */
void stk_store_put_member(stk_store *store, const char *object, const char *version,
                          uint64_t offset, const void *data, size_t size);
void stk_store_flush_cache(stk_store *store);

#endif
