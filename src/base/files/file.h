/*
 * file.h - reading whole files, writing them so that a kill leaves the old or the new one, folders.
 *
 * Errors are STK_ERR_STORAGE with the path and the system's reason; where the process has run out
 * of memory or of file descriptors, which is not the file's fault, STK_ERR_MEMORY. A regular file
 * that becomes shorter while it is read is an error. After a failed read errno is the system's
 * reason, or 0 when it was another. Threads: safe. On a thread that has entered a stk_disk (disk.h)
 * no call waits for ever: a disk that does not answer is an error like others.
 */
#ifndef STK_BASE_FILES_FILE_H
#define STK_BASE_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include <stoker/status.h>
#include <stoker/stop.h>

/* Bytes in a block that is used again and again; starts zeroed, ends with stk_bytes_free. */
typedef struct stk_bytes {
    uint8_t *data; /* owned */
    size_t size;   /* that are there */
    size_t capacity;
} stk_bytes;

void stk_bytes_free(stk_bytes *bytes);

/* Makes room for `capacity` bytes and keeps those that are there; false without memory. */
STK_CHECKED bool stk_bytes_reserve(stk_bytes *bytes, size_t capacity);

/* Reads all of a regular file into a block, which grows as it must. */
STK_CHECKED stk_status stk_file_read_into(const char *path, size_t max_bytes, stk_bytes *bytes,
                                          stk_error *err);

/* Reads `length` bytes from an offset on, or as many as there are. */
STK_CHECKED stk_status stk_file_read_part(const char *path, uint64_t offset, size_t length,
                                          stk_bytes *bytes, stk_error *err);

/*
 * Reads all of a regular file. The buffer has one NUL behind the contents and is freed with
 * stk_mem_free. A file over max_bytes is an error; 0 means no limit.
 */
STK_CHECKED stk_status stk_file_read(const char *path, size_t max_bytes, char **data, size_t *size,
                                     stk_error *err);

/* The same for what a shell hands over, pipes included; it waits until they end. */
STK_CHECKED stk_status stk_file_read_stream(const char *path, size_t max_bytes, char **data,
                                            size_t *size, stk_error *err);

/*
 * A regular file that is read in pieces, by any number of threads. Reading beyond its end is an
 * error: the file has become shorter. Close (NULL is fine) frees the reader.
 */
typedef struct stk_file_reader stk_file_reader;
STK_CHECKED stk_status stk_file_open(stk_file_reader **reader, const char *path, stk_error *err);
uint64_t stk_file_size(const stk_file_reader *reader); /* bytes, when it was opened */
STK_CHECKED stk_status stk_file_read_at(const stk_file_reader *reader, uint64_t offset, void *data,
                                        size_t size, stk_error *err);
void stk_file_close(stk_file_reader *reader);

/*
 * How a file is written. All zeros, or NULL for all of it: a file of Stoker's own, in a run folder,
 * say, which is on the disk when it is in place. Where something else than a file has its name, a
 * link above all, it is refused: somebody else put it there.
 *
 * A path that a user has `chosen` says where bytes go to. Links are followed, and the file that
 * they lead to is replaced or made. Into named pipes, terminals, character devices and the
 * descriptors of this process (/dev/stdout, /dev/fd/N) bytes are written one after the other, and
 * what was written before an error stays written. Who writes to a pipe waits for its reader; a
 * request to `stop` ends that, and so does the deadline.
 *
 * A file that is replaced hands its mode on, and its owner where the system allows it.
 */
typedef struct stk_file_how {
    bool chosen;     /* a user named the path */
    bool passing;    /* replaced again soon: no disk is waited for, and everybody may read it */
    bool owner_only; /* nobody else may read it, whatever the umask and the mode before say */
    const stk_stop *stop; /* borrowed; NULL: nobody can ask */
    int64_t deadline_ns;  /* of stk_clock_ns, for readers of a pipe; 0: none */
} stk_file_how;

/* Replaces or creates `path` in one step: a reader sees the old contents or all of the new ones. */
STK_CHECKED stk_status stk_file_write(const char *path, const void *data, size_t size,
                                      stk_error *err);
STK_CHECKED stk_status stk_file_write_how(const char *path, const void *data, size_t size,
                                          const stk_file_how *how, stk_error *err);

/* The same for a file that is somebody else's, as one that a user has chosen; it must be there. */
STK_CHECKED stk_status stk_file_rewrite(const char *path, const void *data, size_t size,
                                        stk_error *err);

/*
 * Gives the file `path` the second name `alias` in one step, in place of what has that name: a
 * link, or a copy where there are none. Whoever replaces one of them leaves the other alone.
 */
STK_CHECKED stk_status stk_file_alias(const char *path, const char *alias, stk_error *err);

/*
 * Writes a `passing` file that a user has chosen. A reader of a pipe who is not there is not waited
 * for: what others look at meanwhile must not hold up the work.
 */
STK_CHECKED stk_status stk_file_show(const char *path, const void *data, size_t size,
                                     stk_error *err);

/*
 * The same for contents that come piece by piece. Pieces go to a hidden file beside the one that
 * is replaced; commit syncs it and renames it; discard (NULL is fine) removes it. Both free the
 * writer.
 */
typedef struct stk_file_writer stk_file_writer;
STK_CHECKED stk_status stk_file_create(stk_file_writer **writer, const char *path, stk_error *err);
STK_CHECKED stk_status stk_file_create_how(stk_file_writer **writer, const char *path,
                                           const stk_file_how *how, stk_error *err);
STK_CHECKED stk_status stk_file_append(stk_file_writer *writer, const void *data, size_t size,
                                       stk_error *err);
STK_CHECKED stk_status stk_file_commit(stk_file_writer *writer, stk_error *err);
void stk_file_discard(stk_file_writer *writer);

/*
 * The same with the pieces gathered in a block, as long as there is memory for them. After commit a
 * block with bytes in it has all of them, and nothing was written; when it is empty the file is in
 * place. It is borrowed until then, and what it held before is gone.
 */
STK_CHECKED stk_status stk_file_gather(stk_file_writer **writer, const char *path, stk_bytes *block,
                                       stk_error *err);

/*
 * Opens a file of Stoker's own that grows or is changed where it lies, for open(2)'s flags; with
 * O_CREAT it is made with this mode. A link, a pipe or a device is refused. close(2) ends it.
 */
STK_CHECKED stk_status stk_file_open_own(const char *path, int flags, mode_t mode, int *fd,
                                         stk_error *err);

/* Whether a path that a user has chosen means this descriptor of the process: /dev/stdout is 1. */
bool stk_path_is_descriptor(const char *path, int descriptor);

/* Makes a folder and its parents; one that exists is fine. */
STK_CHECKED stk_status stk_dir_make(const char *path, stk_error *err);

/* Makes one folder that must not exist yet: *made says whether it was this call that made it. */
STK_CHECKED stk_status stk_dir_claim(const char *path, bool *made, stk_error *err);

typedef struct stk_dir_entry {
    char *name;  /* owned by the list */
    bool is_dir; /* links are followed */
} stk_dir_entry;

typedef struct stk_dir_list {
    stk_dir_entry *entries; /* by the bytes of the name, files first; hidden ones left out */
    size_t count;
} stk_dir_list;

STK_CHECKED stk_status stk_dir_read(const char *path, stk_dir_list *list, stk_error *err);

/* The same where an entry may be long in coming: calls each(user) after every one. */
STK_CHECKED stk_status stk_dir_read_watched(const char *path, stk_dir_list *list,
                                            void (*each)(void *user), void *user, stk_error *err);

/* For lists that come from elsewhere: adds an entry, whose name is copied; false without memory. */
bool stk_dir_list_add(stk_dir_list *list, size_t *capacity, const char *name, size_t length,
                      bool is_dir);
void stk_dir_list_sort(stk_dir_list *list);
void stk_dir_list_free(stk_dir_list *list);

bool stk_path_is_dir(const char *path);
bool stk_path_is_file(const char *path);

/*
 * For who did not find what should be at `path`: STK_ERR_STORAGE where its disk does not answer
 * (disk.h), since it may well be there. Nothing is asked of the disk.
 */
STK_CHECKED stk_status stk_path_check_answer(const char *path, stk_error *err);

/*
 * Whether a file that is written later can be put at `path`, which a user has chosen: the folder of
 * the file that links lead to must exist and may be written to, or what is there takes bytes.
 * Otherwise the error is one of usage, or, where the disk does not answer, of storage, and names
 * the option that gave the path.
 */
STK_CHECKED stk_status stk_path_check_place(const char *option, const char *path, stk_error *err);

/* "a/b" from "a" and "b"; an absolute b stands alone. NULL without memory; stk_mem_free. */
char *stk_path_join(const char *a, const char *b);

/*
 * The folder of what is kept between runs, $XDG_CACHE_HOME/stoker or ~/.cache/stoker; it need not
 * exist. NULL where there is none, and without memory; stk_mem_free.
 */
char *stk_path_kept(void);

/* What stands behind the last slash; a pointer into path. */
const char *stk_path_base(const char *path);

/*
 * Takes an exclusive lock on a file, which is created: *fd holds it until stk_file_unlock or the
 * end of the process. *taken is false, and *fd -1, when another process (or this one)
 * holds it.
 */
STK_CHECKED stk_status stk_file_lock(const char *path, int *fd, bool *taken, stk_error *err);
void stk_file_unlock(int fd, const char *path);

typedef enum stk_lock_state {
    STK_LOCK_FREE,
    STK_LOCK_HELD,
    STK_LOCK_UNKNOWN /* the file system has no locks */
} stk_lock_state;

/*
 * Whether a process holds that lock. To know it this one shares the lock for an instant: who finds
 * it taken should look twice. Nothing is changed, and a missing file is free.
 */
STK_CHECKED stk_status stk_file_lock_look(const char *path, stk_lock_state *state, stk_error *err);

#endif
