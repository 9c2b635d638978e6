/*
 * sample.c - writes a drawn data set to disk.
 *
 * A picture is identified by (split, number). Everything about it, its name included, is a function
 * of these and the seed, so threads may make pictures in any order. They are written into a hidden
 * folder that is renamed at the end, so a kill leaves no half-made data set. Files are not synced:
 * a power cut may cost a data set that can be made again.
 */
#include "stage/sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "base/str.h"
#include "base/threads/pool.h"
#include "image/image.h"
#include "stage/draw.h"

#define QUALITY 85
#define PER_CLASS_MAX 100000

enum { TRAIN, VAL, TEST, SPLITS };

/* Epochs of the random numbers: a picture has the number of its split, other draws have these. */
enum { EPOCH_ORDER = 16, EPOCH_NAMES = 32 };

static const char *const split_names[SPLITS] = {"train", "val", "test"};

/* Pictures of each class by split; val is 0 in the Kaggle layout. */
typedef struct sample_counts {
    int64_t train;
    int64_t val;
    int64_t test;
} sample_counts;

typedef struct sample_work {
    const stk_sample_options *options;
    const stk_stop *stop;
    const char *folder;        /* borrowed: the hidden folder */
    int64_t per_class[SPLITS]; /* pictures */
    size_t begin[SPLITS + 1];  /* number of the first task of each split; the last is their count */
    uint64_t order[SPLITS];    /* keys of the permutations that mix a split */
    stk_rng names;             /* the source of ids */
    atomic_bool ended;    /* after an error or a request to stop: the remaining tasks do nothing */
    pthread_mutex_t lock; /* guards status, failed_task and error */
    stk_status status;
    size_t failed_task; /* task that `error` is from: the lowest number wins */
    stk_error error;
} sample_work;

static sample_counts count_pictures(const stk_sample_options *options) {
    int64_t per_class = options->per_class;
    sample_counts counts = {
        .train = per_class,
        .val = per_class / 5 > 0 ? per_class / 5 : 1,
        .test = per_class / 4 > 0 ? per_class / 4 : 1,
    };
    if (options->layout == STK_SAMPLE_KAGGLE) {
        counts.val = 0;
    }
    return counts;
}

static int class_texture(int64_t class_index) {
    int64_t shape = class_index % STK_DRAW_SHAPES;
    return (int)((shape + class_index / STK_DRAW_SHAPES) % STK_DRAW_TEXTURES);
}

const char *stk_sample_class_name(int64_t class_index, char *buf, size_t size) {
    snprintf(buf, size, "%s_%s", stk_draw_shape_names[class_index % STK_DRAW_SHAPES],
             stk_draw_texture_names[class_texture(class_index)]);
    return buf;
}

static size_t split_size(const sample_work *work, int split) {
    return work->begin[split + 1] - work->begin[split];
}

/* The picture at position i of a split whose classes are mixed. */
static size_t mix_split(const sample_work *work, int split, size_t i) {
    return (size_t)stk_rng_permute(work->order[split], split_size(work, split), i);
}

/*
 * Sixteen hexadecimal digits that look like a hash. The generator maps different counters to
 * different numbers, so no two pictures share an id.
 */
static void make_id(const sample_work *work, int split, size_t i, char id[17]) {
    stk_rng rng = work->names;
    rng.counter = work->begin[split] + i;
    snprintf(id, 17, "%016llx", (unsigned long long)stk_rng_u64(&rng));
}

/* Path of picture i of a split; NULL: no memory. */
static char *picture_path(const sample_work *work, int split, size_t i) {
    const char *folder = work->folder;
    if (work->options->layout == STK_SAMPLE_KAGGLE) {
        char id[17];
        make_id(work, split, i, id);
        return stk_str_format("%s/%s/%s.jpg", folder, split_names[split], id);
    }
    if (split == TEST) {
        return stk_str_format("%s/test/%04zu.jpg", folder, mix_split(work, split, i));
    }
    char name[64];
    size_t per_class = (size_t)work->per_class[split];
    stk_sample_class_name((int64_t)(i / per_class), name, sizeof name);
    return stk_str_format("%s/%s/%s/%04zu.jpg", folder, split_names[split], name, i % per_class);
}

static stk_status write_plainly(const char *path, const uint8_t *bytes, size_t size,
                                stk_error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: %s", path, strerror(errno));
    }
    stk_status status = STK_OK;
    while (size > 0 && status == STK_OK) {
        ssize_t written = write(fd, bytes, size);
        if (written >= 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (errno != EINTR) {
            status = STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: %s", path, strerror(errno));
        }
    }
    if (close(fd) != 0 && status == STK_OK) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: %s", path, strerror(errno));
    }
    return status;
}

static stk_status make_picture(const sample_work *work, int split, size_t i, stk_error *err) {
    int64_t class_index = (int64_t)i / work->per_class[split];
    stk_rng rng = stk_rng_make((uint64_t)work->options->seed, STK_RNG_SAMPLE_DATA, (uint64_t)split,
                               (uint64_t)i);
    stk_image image = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    char *path = picture_path(work, split, i);
    stk_status status = path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a sample picture");
    STK_THEN(status, stk_draw_picture(&image, (int)(class_index % STK_DRAW_SHAPES),
                                      class_texture(class_index), rng, err));
    STK_THEN(status, stk_image_encode_jpeg(&image, QUALITY, &bytes, &size, err));
    STK_THEN(status, write_plainly(path, bytes, size, err));
    stk_mem_free(bytes);
    stk_image_free(&image);
    stk_mem_free(path);
    return status;
}

static void run_task(void *context, size_t task, int thread) {
    (void)thread;
    sample_work *work = context;
    if (atomic_load(&work->ended)) {
        return;
    }
    stk_error error = {0};
    stk_status status = STK_OK;
    if (stk_stop_asked(work->stop) != STK_STOP_NONE) {
        status = STK_FAIL(&error, STK_ERR_STOPPED, "stopped before %s was made; nothing was left",
                          work->options->dir);
    } else {
        int split = task >= work->begin[TEST] ? TEST : task >= work->begin[VAL] ? VAL : TRAIN;
        status = make_picture(work, split, task - work->begin[split], &error);
    }
    if (status != STK_OK) {
        atomic_store(&work->ended, true);
        pthread_mutex_lock(&work->lock);
        if (work->status == STK_OK || task < work->failed_task) {
            work->status = status;
            work->failed_task = task;
            work->error = error;
        }
        pthread_mutex_unlock(&work->lock);
    }
}

static stk_status make_folders(const sample_work *work, stk_error *err) {
    stk_status status = STK_OK;
    for (int split = 0; split < SPLITS && status == STK_OK; split++) {
        bool flat = split == TEST || work->options->layout == STK_SAMPLE_KAGGLE;
        int64_t folders = work->per_class[split] == 0 ? 0 : flat ? 1 : work->options->classes;
        for (int64_t k = 0; k < folders && status == STK_OK; k++) {
            char name[64] = "";
            char *path = stk_str_format("%s/%s/%s", work->folder, split_names[split],
                                        flat ? "" : stk_sample_class_name(k, name, sizeof name));
            status = path != NULL ? stk_dir_make(path, err) : STK_FAIL_MEMORY(err, work->folder);
            stk_mem_free(path);
        }
    }
    return status;
}

/* Writes the table id,label of a split in mixed order; `dummy`: all labels are the first class. */
static stk_status write_table(const sample_work *work, const char *name, int split, bool dummy,
                              stk_error *err) {
    stk_str text = {0};
    stk_str_append(&text, "id,label\n");
    for (size_t row = 0; row < split_size(work, split); row++) {
        size_t i = mix_split(work, split, row);
        char id[17];
        char label[64];
        make_id(work, split, i, id);
        stk_sample_class_name(dummy ? 0 : (int64_t)i / work->per_class[split], label, sizeof label);
        stk_str_appendf(&text, "%s,%s\n", id, label);
    }
    char *path = stk_path_join(work->folder, name);
    stk_status status = STK_OK;
    if (path == NULL || !stk_str_ok(&text)) {
        status = STK_FAIL_MEMORY(err, name);
    } else {
        status = write_plainly(path, (const uint8_t *)stk_str_text(&text), text.length, err);
    }
    stk_mem_free(path);
    stk_str_free(&text);
    return status;
}

static stk_status write_tables(const sample_work *work, stk_error *err) {
    stk_status status = write_table(work, "train.csv", TRAIN, false, err);
    STK_THEN(status, write_table(work, "sample_submission.csv", TEST, true, err));
    STK_THEN(status, write_table(work, "solution.csv", TEST, false, err));
    return status;
}

static stk_status fill_folder(sample_work *work, int threads, stk_error *err) {
    stk_status status = make_folders(work, err);
    stk_pool *pool = NULL;
    STK_THEN(status, stk_pool_new(&pool, threads > 1 ? threads : 1, err));
    if (status == STK_OK) {
        pthread_mutex_init(&work->lock, NULL);
        stk_pool_run(pool, work->begin[SPLITS], run_task, work);
        pthread_mutex_destroy(&work->lock);
        status = work->status;
        if (status != STK_OK) {
            (void)STK_FAIL(err, status, "%s", work->error.message);
        }
    }
    stk_pool_free(pool);
    if (status == STK_OK && work->options->layout == STK_SAMPLE_KAGGLE) {
        status = write_tables(work, err);
    }
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_folder(const char *path, const stk_events *events) {
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        stk_events_warning(events, "cannot remove the unfinished folder %s: %s; remove it by hand",
                           path, strerror(errno));
    }
}

/* Fails unless dir is missing or empty, hidden files included: rename replaces only an empty
 * folder. */
static stk_status check_target(const char *dir, stk_error *err) {
    DIR *folder = opendir(dir);
    if (folder == NULL && errno == ENOENT) {
        return STK_OK;
    }
    if (folder == NULL && errno == ENOTDIR) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot make the sample data in %s: it is, or lies below, a file; name "
                        "another folder",
                        dir);
    }
    if (folder == NULL) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot make the sample data in %s: %s", dir,
                        strerror(errno));
    }
    bool empty = true;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        empty = empty && (stk_str_equal(entry->d_name, ".") || stk_str_equal(entry->d_name, ".."));
    }
    closedir(folder);
    if (!empty) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot make the sample data in %s: the folder is not empty; name a new "
                        "one or empty it",
                        dir);
    }
    return STK_OK;
}

static stk_status check_options(const stk_sample_options *options, stk_error *err) {
    const char *base = options->dir != NULL ? stk_path_base(options->dir) : "";
    if (base[0] == '\0' || stk_str_equal(base, ".") || stk_str_equal(base, "..")) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot make the sample data: \"%s\" has no name of its own; name a new "
                        "folder",
                        options->dir != NULL ? options->dir : "");
    }
    if (options->classes < 2 || options->classes > STK_SAMPLE_MAX_CLASSES) {
        return STK_FAIL(err, STK_ERR_USAGE, "classes is %lld; it must be from 2 to %d",
                        (long long)options->classes, STK_SAMPLE_MAX_CLASSES);
    }
    if (options->per_class < 2 || options->per_class > PER_CLASS_MAX) {
        return STK_FAIL(err, STK_ERR_USAGE, "per-class is %lld; it must be from 2 to %d",
                        (long long)options->per_class, PER_CLASS_MAX);
    }
    return STK_OK;
}

/* Makes a hidden folder beside dir; *hidden is its path, freed with stk_mem_free(). */
static stk_status claim_hidden(const char *dir, char **hidden, stk_error *err) {
    const char *base = stk_path_base(dir);
    char *parent = stk_mem_strndup(dir, (size_t)(base - dir));
    if (parent == NULL) {
        return STK_FAIL_MEMORY(err, dir);
    }
    stk_status status = parent[0] != '\0' ? stk_dir_make(parent, err) : STK_OK;
    bool made = false;
    for (int i = 0; status == STK_OK && !made; i++) {
        char *path = stk_str_format("%s.%s.%ld.%d.tmp", parent, base, (long)getpid(), i);
        status = path != NULL ? stk_dir_claim(path, &made, err) : STK_FAIL_MEMORY(err, dir);
        if (made) {
            *hidden = path;
        } else {
            stk_mem_free(path);
        }
    }
    stk_mem_free(parent);
    return status;
}

static void plan_work(sample_work *work) {
    sample_counts counts = count_pictures(work->options);
    uint64_t seed = (uint64_t)work->options->seed;
    work->per_class[TRAIN] = counts.train;
    work->per_class[VAL] = counts.val;
    work->per_class[TEST] = counts.test;
    for (int split = 0; split < SPLITS; split++) {
        work->begin[split + 1] =
            work->begin[split] + (size_t)(work->per_class[split] * work->options->classes);
        stk_rng rng = stk_rng_make(seed, STK_RNG_SAMPLE_DATA, EPOCH_ORDER + (uint64_t)split, 0);
        work->order[split] = stk_rng_u64(&rng);
    }
    work->names = stk_rng_make(seed, STK_RNG_SAMPLE_DATA, EPOCH_NAMES, 0);
}

static stk_status make_in(const stk_sample_options *options, const stk_events *events,
                          const stk_stop *stop, int threads, stk_error *err) {
    char *hidden = NULL;
    stk_status status = check_options(options, err);
    STK_THEN(status, check_target(options->dir, err));
    STK_THEN(status, claim_hidden(options->dir, &hidden, err));
    if (status != STK_OK) {
        return status;
    }
    sample_work work = {.options = options, .stop = stop, .folder = hidden};
    plan_work(&work);
    status = fill_folder(&work, threads, err);
    if (status == STK_OK && rename(hidden, options->dir) != 0) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot make the sample data in %s: %s",
                          options->dir, strerror(errno));
    }
    if (status != STK_OK) {
        remove_folder(hidden, events);
    }
    stk_mem_free(hidden);
    return status;
}

/* Removes slashes at the end of dir, which would hide its name. */
stk_status stk_sample_make(const stk_sample_options *options, const stk_events *events,
                           const stk_stop *stop, int threads, stk_error *err) {
    char *dir = stk_path_trim(options->dir != NULL ? options->dir : "");
    if (dir == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_sample_options trimmed = *options;
    trimmed.dir = dir;
    stk_status status = make_in(&trimmed, events, stop, threads, err);
    stk_mem_free(dir);
    return status;
}

#define FIELD(name) offsetof(stk_sample_options, name)

static const stk_option sample_options[] = {
    STK_OPTION(CHOICE, "layout", layout, .fallback = "folder", .choices = "folder kaggle",
               .help = "class folders, or a competition's images with CSV files"),
    STK_OPTION(INT, "classes", classes, .fallback = "6",
               STK_OPTION_RANGE(2, STK_SAMPLE_MAX_CLASSES), .metavar = "N",
               .help = "how many classes, each a shape with a texture"),
    STK_OPTION(INT, "per-class", per_class, .fallback = "100", STK_OPTION_RANGE(2, PER_CLASS_MAX),
               .metavar = "N", .help = "training pictures of each class"),
    STK_OPTION(INT, "seed", seed, .fallback = "0", STK_OPTION_RANGE(0, 9e15), .metavar = "N",
               .help = "another number makes other pictures"),
};

const stk_option_table stk_sample_option_table =
    STK_OPTION_TABLE("Sample data", sample_options, stk_sample_options);
