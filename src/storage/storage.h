/*
 * storage.h - opens a location, lists its folders and reads its objects.
 *
 * A stk_store is an opened location: a folder of this machine or of a mount, `s3://bucket/prefix`,
 * or tar shards in one of them. Archives in it are shown as if they were unpacked. Paths of objects
 * are below the location; nothing here knows what the bytes are. Calls here read one object and
 * wait for it; to read many at a time, open a stk_reader (reading/reader.h). Nothing waits for
 * ever: an object that does not come in time is tried again and then is an error. A location that
 * answers nobody for longer than an outage may last is an error, too. Errors name the object.
 *
 * Threads: everything but open and close may be called from many threads at once. Opening an S3
 * location looks for credentials and lists on the calling thread, with time-outs; reads never
 * block the caller of a reader.
 */
#ifndef STK_STORAGE_STORAGE_H
#define STK_STORAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "base/files/file.h"
#include "events/events.h"
#include "options/options.h"

/* Larger objects are refused: no picture is so large, but a file given by mistake may be. */
#define STK_STORAGE_MAX_BYTES ((size_t)256 * 1024 * 1024)

/*
 * Seconds that a stop request or a deadline leaves to storage. A store that was just opened and a
 * listing that has just begun may go on for so long, and so may a read when the deadline is over.
 * After a stop request the loader waits until nothing has arrived for so long.
 */
#define STK_STORAGE_STOP_S 2

/* Files at the top of a location that `stoker stage` wrote: the index, and a mark while it writes.
 */
#define STK_SHARD_INDEX_NAME "stoker.index"
#define STK_STAGING_NAME "staging.json"

typedef struct stk_storage_options {
    const char *cache;     /* NULL: auto; "off", "ram", "decoded", or a folder */
    uint64_t cache_size;   /* STK_AUTO_BYTES: what there is room for */
    bool refresh;          /* list again what was listed in an earlier run */
    bool anonymous;        /* S3 without signatures */
    double read_timeout_s; /* how long one attempt to read may be without a sign of life */
    double outage_s;       /* how long to wait for a location that answers nobody; 0: not at all */
    bool cache_later;     /* not a flag: if no cache is configured, make one in memory, unused until
                             stk_store_use_cache() */
    const stk_stop *stop; /* not a flag: ends waiting for an answer; borrowed, or NULL */
    int64_t deadline_ns;  /* not a flag: waiting ends then, by stk_clock_ns; 0: never */
    const stk_events *events; /* not a flag: told of outages; borrowed, or NULL */
} stk_storage_options;

extern const stk_option_table stk_storage_option_table;

/* The values for a measurement, which waits out no outage unless the user gave --outage. */
stk_storage_options stk_storage_to_measure(const stk_options *options);

typedef struct stk_store stk_store;
struct stk_read; /* reading/reader.h */

/*
 * Opens a location. `events` are told which listing and which cache are used; they may be NULL and
 * are used during this call only. `options` NULL: the defaults, without a cache. A location that
 * does not exist is STK_ERR_DATA, one that does not answer STK_ERR_STORAGE.
 */
STK_CHECKED stk_status stk_store_open(stk_store **store, const char *root,
                                      const stk_storage_options *options, const stk_events *events,
                                      stk_error *err);

/* All its readers must be closed. A thread that is stuck in a read stays behind. NULL is fine. */
void stk_store_close(stk_store *store);

/* The most bytes of a cache in memory when --cache-size is not given. */
uint64_t stk_storage_memory_room(void);

/* Bytes that a cache in memory may hold; 0: there is none. */
uint64_t stk_store_cache_memory(const stk_store *store);

/*
 * Switches the cache that options.cache_later has made on or off; its contents stay. False when
 * there is none.
 */
bool stk_store_use_cache(stk_store *store, bool use);

/* Whether options.cache_later has made a cache, and it is switched off. */
bool stk_store_cache_waits(const stk_store *store);

/* The location as it was given, without slashes at its end. */
const char *stk_store_root(const stk_store *store);

/* True with --cache decoded: the cache holds what the loader hands to stk_store_keep(). */
bool stk_store_caches_decoded(const stk_store *store);

/*
 * With --cache decoded: the next read of this object brings `data` instead of the bytes. Does
 * nothing when read->keep is not set.
 */
void stk_store_keep(stk_store *store, const struct stk_read *read, const void *data, size_t size);

/* True where each read is a request to a distant server: avoid listing again and reading twice. */
bool stk_store_is_remote(const stk_store *store);

/* True where objects are members of tar shards. */
bool stk_store_has_shards(const stk_store *store);

/* True where some objects are members of archives, which are shown as if they were unpacked. */
bool stk_store_has_archives(const stk_store *store);

/*
 * A folder of this machine for files that are made of an object of the location and outlive the
 * run; other objects have others. It need not be there yet. NULL: there is none, or no memory.
 * stk_mem_free.
 */
char *stk_store_made_folder(const stk_store *store, const char *object);

/*
 * Shows the files right in a folder below stk_store_made_folder() as files of the location, in the
 * folder `shown` at its top, in which nothing else is shown then. `version` changes when the files
 * do. Nobody else may use the store meanwhile. After a failure it must be closed.
 */
STK_CHECKED stk_status stk_store_show(stk_store *store, const char *folder, const char *shown,
                                      const char *version, stk_error *err);

/* What stands in a folder ("": the location itself), sorted, hidden names left out. */
STK_CHECKED stk_status stk_store_list(stk_store *store, const char *folder, stk_dir_list *list,
                                      stk_error *err);

/* Device and inode of a folder, by which a caller notices that a link leads back to a folder above.
 * Zeros where a location has no links, such as S3. */
typedef struct stk_store_identity {
    uint64_t device;
    uint64_t inode;
} stk_store_identity;

STK_CHECKED stk_status stk_store_identify(stk_store *store, const char *folder,
                                          stk_store_identity *identity, stk_error *err);

/*
 * Reads one whole object into a block that may be used again and again. Reading and listing end
 * with STK_ERR_STOPPED after a request to stop (options.stop), unless the store was opened less
 * than STK_STORAGE_STOP_S ago, and with STK_ERR_STORAGE when no answer comes and the options'
 * deadline is over.
 */
STK_CHECKED stk_status stk_store_read(stk_store *store, const char *path, stk_bytes *bytes,
                                      stk_error *err);

/*
 * Reads a part of an object of the location itself (of a shard, not of its member) or of a member
 * of an archive. Fewer bytes come where the object ends earlier. A length of 0 means all of the
 * object. For a part of a zip's member the whole member is read.
 */
STK_CHECKED stk_status stk_store_read_part(stk_store *store, const char *object, uint64_t offset,
                                           uint64_t length, stk_bytes *bytes, stk_error *err);

/* Room for the text of stk_store_version(), the NUL included. */
#define STK_STORE_VERSION_BYTES 160

/*
 * A text that changes when an object of the location itself does; cut to fit. A source that listed
 * everything knows it; other sources ask the location. It ends with a dot and the object's bytes.
 */
STK_CHECKED stk_status stk_store_version(stk_store *store, const char *object, char *buf,
                                         size_t size, stk_error *err);

/* The version of an object of the location itself, and how many bytes it has. */
STK_CHECKED stk_status stk_store_measure(stk_store *store, const char *object, char *version,
                                         size_t room, uint64_t *size, stk_error *err);

/* Whether the location says that it has such an object. Without an answer STK_ERR_STORAGE. */
STK_CHECKED stk_status stk_store_has(stk_store *store, const char *path, bool *has, stk_error *err);

/* The bytes of an object where they are known without reading it; 0: not known. */
uint64_t stk_store_size(const stk_store *store, const char *path);

/* The contents of a small text if they are known without reading it (labels in shards), or NULL. */
const char *stk_store_text(const stk_store *store, const char *path);

typedef struct stk_store_counters {
    uint64_t cache_hits;
    uint64_t cache_misses;
    uint64_t retries;  /* attempts after the first that failed */
    uint64_t hedges;   /* second requests because the first was slow */
    uint64_t timeouts; /* attempts that were given up */
} stk_store_counters;

void stk_store_stats(const stk_store *store, stk_store_counters *counters);

/*
 * Limits the memory of all responses in flight together; a single read may exceed the limit.
 */
void stk_store_bound(stk_store *store, uint64_t bytes);

/* Threads that serve reads now. */
int stk_store_threads(const stk_store *store);

/*
 * A thread that waits for reads calls this now and then: it tells the options' events of an outage
 * that has begun or is over.
 */
void stk_store_tell_outage(stk_store *store);

/* Whether stk_store_tell_outage() may have something to tell. */
bool stk_store_tells(const stk_store *store);

/* Writes one sentence about something new, such as a full cache; false when there is none. */
bool stk_store_take_notice(stk_store *store, char *buf, size_t size);

#endif
