/* store.c - opening and closing a location: its source, its shards and archives, its cache. */
#include "storage/store/store.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/archives/archive_names.h"
#include "storage/archives/archives.h"
#include "storage/shards/shard_names.h"
#include "storage/shards/shards.h"

#define DEFAULT_TIMEOUT "30"
#define DEFAULT_TIMEOUT_S 30.0
#define DEFAULT_OUTAGE "300"

#define FIELD(name) offsetof(stk_storage_options, name)

static const stk_option options[] = {
    STK_OPTION(TEXT, "cache", cache, STK_OPTION_AUTO, .may_change = true,
               .metavar = "DIR|ram|decoded|off",
               .help = "where pictures are kept after the first read: a folder, memory, or decoded "
                       "in memory; auto is a folder of the user's cache for data that is far away, "
                       "and off for other data"),
    STK_OPTION(BYTES, "cache-size", cache_size, STK_OPTION_AUTO, .may_change = true,
               .metavar = "SIZE",
               .help = "most that the cache may hold; auto is half of what is free on its disk, or "
                       "a quarter of the memory"),
    STK_OPTION(BOOL, "refresh", refresh, .fallback = "false", .may_change = true,
               .help = "list remote data again instead of taking the list of an earlier run"),
    STK_OPTION(BOOL, "anonymous", anonymous, .fallback = "false", .may_change = true,
               .aliases = "no_sign_request", .help = "read public buckets without credentials"),
    STK_OPTION(DURATION, "read-timeout", read_timeout_s, .fallback = DEFAULT_TIMEOUT,
               STK_OPTION_RANGE(0.1, 86400), .may_change = true, .metavar = "T",
               .help = "how long an attempt to read may give no sign of life; then it is repeated, "
                       "and after that the picture counts as bad"),
    STK_OPTION(DURATION, "outage", outage_s, .fallback = DEFAULT_OUTAGE,
               STK_OPTION_RANGE(0, 86400 * 7), .may_change = true, .metavar = "T",
               .help = "how long training, prediction and staging wait for a location that answers "
                       "nothing at all, before the run ends; 0: no longer than for a few reads"),
};

const stk_option_table stk_storage_option_table =
    STK_OPTION_TABLE("Storage", options, stk_storage_options);

stk_storage_options stk_storage_to_measure(const stk_options *given) {
    stk_storage_options values =
        *(const stk_storage_options *)stk_options_values(given, &stk_storage_option_table);
    if (stk_options_source(given, "outage") == STK_FROM_DEFAULT) {
        values.outage_s = 0;
    }
    return values;
}

static const stk_storage_source *const sources[] = {
#ifdef STK_HAVE_S3
    &stk_storage_s3,
#endif
    &stk_storage_local,
};

/* ---- opening ---- */

static stk_status choose_source(stk_store *s, stk_error *err) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        if (sources[i]->matches(s->base)) {
            s->source = sources[i];
            return STK_OK;
        }
    }
#ifndef STK_HAVE_S3
    if (strncmp(s->root, "s3://", 5) == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot open %s: this build of Stoker has no S3 support; build it where "
                        "libcurl and expat are installed, or copy the data to a folder",
                        s->root);
    }
#endif
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot open %s: data can lie in a folder of this machine or in "
                    "s3://bucket/prefix; copy it to one of them",
                    s->root);
}

/* An absolute name of the root. Asks no mount, which might not answer. */
static char *full_name(const char *root) {
    char here[PATH_MAX];
    bool relative = root != NULL && root[0] != '/' && strstr(root, "://") == NULL;
    return relative && getcwd(here, sizeof here) != NULL ? stk_path_join(here, root)
                                                         : stk_mem_strdup(root != NULL ? root : "");
}

/* Whether the root is a single archive that is no tar. A folder may have such a name, too. */
static bool is_archive(const char *root, const char *scheme) {
    struct stat info;
    return stk_archive_is_whole(root) &&
           (scheme != NULL || (stk_disk_look(root, &info) == 0 && S_ISREG(info.st_mode)));
}

/* Stores the root, and what the source is opened on: the root, or the folder of a single archive.
 */
static stk_status keep_root(stk_store *s, const char *root, const char **only, stk_error *err) {
    size_t length = strlen(root);
    const char *scheme = strstr(root, "://");
    size_t least = scheme != NULL ? (size_t)(scheme - root) + 3 : 1;
    while (length > least && root[length - 1] == '/') {
        length--;
    }
    s->root = stk_mem_strndup(root, length);
    s->base = stk_mem_strndup(root, length);
    if (s->root == NULL || s->base == NULL) {
        return STK_FAIL_MEMORY(err, root);
    }
    *only = NULL;
    size_t head = (size_t)(stk_path_base(s->root) - s->root);
    bool is_file = root[length] == '\0' && /* "x.tar/" is no tar */
                   (stk_shards_is_tar_name(s->root) || is_archive(s->root, scheme));
    if (is_file && (scheme == NULL || head > least)) {
        *only = s->root + head;
        stk_mem_free(s->base);
        s->base =
            head > 1 ? stk_mem_strndup(root, head - 1) : stk_mem_strdup(head == 1 ? "/" : ".");
    }
    s->name = full_name(s->base);
    return s->base != NULL && s->name != NULL ? STK_OK : STK_FAIL_MEMORY(err, root);
}

/* The folder for files that outlive a run; NULL when there is none. */
static char *kept_folder(const stk_storage_options *given) {
    const char *cache = given->cache;
    if (cache != NULL && !stk_str_equal(cache, "off") && !stk_str_equal(cache, "ram") &&
        !stk_str_equal(cache, "decoded")) {
        return stk_mem_strdup(cache);
    }
    return stk_path_user_cache();
}

/* Opens the shards of the location, if it consists of shards. `top`: what stands at its top. */
static stk_status open_shards(stk_store *s, const stk_dir_list *top, const char *only,
                              const char *kept, const stk_events *events, stk_error *err) {
    stk_skipped_folders skipped = {0};
    stk_status status = STK_OK;
    bool wanted = only != NULL;
    if (!wanted) {
        status = stk_shards_wanted(s, top, &skipped, &wanted, err);
        wanted = wanted && !stk_archives_instead_of_shards(top);
    }
    if (status == STK_OK && wanted) { /* otherwise the code that lists the folder reports them */
        stk_skipped_folders_report(&skipped, s->root, events);
    }
    stk_skipped_folders_free(&skipped);
    if (status == STK_OK && wanted) {
        status = stk_shards_open(&s->shards, s, only, kept, s->options.refresh, events, err);
        s->tree = status == STK_OK ? stk_shards_tree(s->shards) : s->tree;
    }
    return status;
}

/* Shows the members of one archive alone, and nothing that lies beside it. */
static stk_status open_archive(stk_store *s, const stk_dir_list *top, const char *only,
                               const stk_archive_folders *folders, const stk_events *events,
                               stk_error *err) {
    stk_dir_list alone = {.count = 1};
    for (size_t i = 0; alone.entries == NULL && i < top->count; i++) {
        if (!top->entries[i].is_dir && stk_str_equal(top->entries[i].name, only)) {
            alone.entries = &top->entries[i];
        }
    }
    if (alone.entries == NULL) {
        return STK_FAIL(err, STK_ERR_DATA, "there is no archive %s", s->root);
    }
    stk_status status = stk_archives_open(s, &alone, folders, events, err);
    if (status == STK_OK && s->mounts == NULL) {
        status =
            STK_FAIL(err, STK_ERR_DATA,
                     "%s cannot be read in place; unpack it by hand and pass the folder", s->root);
    }
    if (status == STK_OK) {
        s->tree = stk_shards_tree(s->mounts);
    }
    return status;
}

/* Opens shards and archives, whose members are shown in their place. */
static stk_status open_members(stk_store *s, const char *only, const char *kept,
                               const stk_events *events, stk_error *err) {
    char *lists = kept != NULL ? stk_path_join(kept, "lists") : NULL;
    char *unpacked = kept != NULL ? stk_path_join(kept, "unpacked") : NULL;
    stk_archive_folders folders = {.lists = lists, .unpacked = unpacked};
    stk_dir_list top = {0};
    bool archive = only != NULL && !stk_shards_is_tar_name(only);
    stk_status status = stk_store_list(s, "", &top, err);
    if (status == STK_OK && archive) {
        status = open_archive(s, &top, only, &folders, events, err);
    } else {
        STK_THEN(status, open_shards(s, &top, only, lists, events, err));
    }
    if (status == STK_OK && s->shards != NULL) {
        stk_dir_list_free(&top);
        status = stk_store_list(s, "", &top, err);
    }
    if (status == STK_OK && only == NULL) {
        status = stk_archives_open(s, &top, &folders, events, err);
    }
    stk_dir_list_free(&top);
    s->made = unpacked;
    stk_mem_free(lists);
    return status;
}

static stk_status open_all(stk_store *s, const char *root, const stk_events *events,
                           stk_error *err) {
    const char *only = NULL;
    char *kept = kept_folder(&s->options);
    char *lists = kept != NULL ? stk_path_join(kept, "lists") : NULL;
    stk_disk_root(kept, true);
    stk_status status = keep_root(s, root, &only, err);
    STK_THEN(status, choose_source(s, err));
    STK_THEN(status, s->source->open(&s->location, s->base, &s->options, lists, events, err));
    if (status == STK_OK) {
        s->tree = s->source->tree != NULL ? s->source->tree(s->location) : NULL;
        if (s->tree != NULL) { /* it has been listed, now or in an earlier run: it is there */
            stk_outage_answered(&s->outage, stk_clock_ns(), false);
        }
        status = stk_store_open_cache(s, kept, events, err);
    }
    STK_THEN(status, open_members(s, only, kept, events, err));
    stk_mem_free(kept);
    stk_mem_free(lists);
    return status;
}

/* A store of which nothing is open yet. */
static stk_store *new_store(const stk_storage_options *given) {
    static const stk_storage_options plain = {
        .cache = "off", .cache_size = STK_AUTO_BYTES, .read_timeout_s = DEFAULT_TIMEOUT_S};
    stk_store *s = stk_mem_new(1, sizeof *s);
    if (s != NULL) {
        s->options = given != NULL ? *given : plain;
        s->options.read_timeout_s =
            s->options.read_timeout_s > 0 ? s->options.read_timeout_s : DEFAULT_TIMEOUT_S;
        pthread_mutex_init(&s->lock, NULL);
        pthread_mutex_init(&s->lost_lock, NULL);
        s->begun_ns = stk_clock_ns();
        stk_quarantine_open(&s->quarantine);
        stk_outage_open(&s->outage, s->options.outage_s);
    }
    return s;
}

/* Ends opening: hands the store out, or closes it after a failure. */
static stk_status hand_out(stk_store **out, stk_store *s, stk_status status) {
    s->options.cache = NULL; /* the caller's text */
    if (status == STK_OK) {
        *out = s;
    } else {
        stk_store_close(s);
    }
    return status;
}

stk_status stk_store_open(stk_store **out, const char *root, const stk_storage_options *given,
                          const stk_events *events, stk_error *err) {
    stk_store *s = new_store(given);
    return s != NULL ? hand_out(out, s, open_all(s, root, events, err))
                     : STK_FAIL_MEMORY(err, root);
}

stk_status stk_store_open_on(stk_store **out, const stk_storage_source *source, void *location,
                             const stk_storage_options *given, stk_error *err) {
    stk_store *s = new_store(given);
    if (s == NULL) {
        source->close(location);
        return STK_FAIL_MEMORY(err, source->name);
    }
    s->source = source;
    s->location = location;
    const char *only = NULL;
    return hand_out(out, s, keep_root(s, source->name, &only, err));
}

void stk_store_close(stk_store *s) {
    if (s == NULL) {
        return;
    }
    stk_reader_close(s->reader);
    stk_store_close_cache(s);
    if (s->location != NULL) {
        s->source->close(s->location);
    }
    if (s->unpacked != NULL) {
        stk_storage_local.close(s->unpacked);
    }
    stk_shards_close(s->shards);
    stk_shards_close(s->mounts);
    stk_texts_free(&s->mounted);
    stk_mem_free(s->made);
    stk_quarantine_close(&s->quarantine);
    stk_outage_close(&s->outage);
    pthread_mutex_destroy(&s->lost_lock);
    pthread_mutex_destroy(&s->lock);
    stk_mem_free(s->root);
    stk_mem_free(s->base);
    stk_mem_free(s->name);
    stk_mem_free(s);
}
