/*
 * stage.c - carries out a staging list: shard by shard, picture by picture.
 *
 * Pictures come from the queue in order and go into the shard that the list says. Only the shard in
 * work is kept in memory. At the end the index and the tables are made from the records of all
 * shards, so the result is the same after one run or after several interrupted ones.
 */
#include "stage/stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "stage/picture_queue.h"
#include "stage/stage_dest.h"
#include "stage/stage_tables.h"
#include "storage/data_folders.h"
#include "storage/tar/tar_write.h"

#define PATIENCE_NS 100000000

typedef struct staging {
    const stk_stage_request *request;
    stk_staged *staged;
    stk_dataset *dataset;
    stk_staging_list list;
    stk_stage_dest dest;
    bool *finished;     /* owned: for each shard of the list */
    size_t shards_done; /* number of finished shards */
    const char **paths; /* owned: pictures for the queue to read */
    size_t to_read;     /* number of paths */
    stk_picture_queue *queue;
    stk_stage_bad_list bad; /* of all shards so far */
    size_t bad_allowed;
    size_t pictures_before; /* pictures in shards that an earlier run finished */
    int64_t start_ns;
    int64_t told_ns; /* when progress was last reported */
} staging;

/* The shard that is being written. */
typedef struct open_shard {
    const stk_stage_shard *shard;
    stk_tar_writer *tar;
    stk_shard_index index;
    size_t first_bad; /* index in the bad list of its first bad picture */
} open_shard;

/* ---- progress ---- */

static void tell_progress(staging *s) {
    int64_t now = stk_clock_ns();
    char notice[512];
    if (now - s->told_ns < PATIENCE_NS) {
        return;
    }
    s->told_ns = now;
    double seconds = (double)(now - s->start_ns) * 1e-9;
    double done = (double)s->staged->pictures;
    double left = (double)s->to_read - done;
    double rate = seconds > 0 ? done / seconds : 0;
    stk_event_progress event = {.what = "staging",
                                .done = (int64_t)s->pictures_before + s->staged->pictures,
                                .total = (int64_t)s->list.picture_count,
                                .bytes = s->staged->bytes,
                                .per_second = done > 0 ? rate : NAN,
                                .bytes_per_second =
                                    done > 0 ? (double)s->staged->bytes / seconds : NAN,
                                .left_s = rate > 0 ? left / rate : NAN};
    stk_events_progress(s->request->events, &event);
    if (stk_store_take_notice(s->dataset->store, notice, sizeof notice)) {
        stk_events_warning(s->request->events, "%s", notice);
    }
}

/* ---- one picture ---- */

/* Waits for the next picture. */
static stk_status take(staging *s, const stk_queued_picture **queued, stk_error *err) {
    stk_status status = STK_OK;
    *queued = NULL;
    while (status == STK_OK && *queued == NULL) {
        if (stk_stop_asked(s->request->stop) != STK_STOP_NONE) {
            return STK_FAIL(err, STK_ERR_STOPPED, "staging was stopped");
        }
        status = stk_picture_queue_next(s->queue, PATIENCE_NS, queued, err);
        tell_progress(s);
    }
    return status;
}

/* Extension of a member's name: by its content, or else that of the source. */
static const char *extension_of(const stk_queued_picture *queued, const char *path) {
    const char *extension = stk_picture_extension(path);
    if (queued->extension != NULL) {
        return queued->extension;
    }
    return extension != NULL ? extension + 1 : "jpg";
}

static stk_status add_member(open_shard *o, const stk_stage_picture *picture,
                             const stk_queued_picture *queued, stk_error *err) {
    char path[64];
    char name[48];
    char label[16];
    const char *split = stk_stage_split_names[picture->split];
    stk_index_member member = {
        .path = path, .size = queued->size, .checksum = queued->checksum, .has_checksum = true};
    snprintf(name, sizeof name, "%0*zu.%s", STK_STAGE_MEMBER_DIGITS, picture->number,
             extension_of(queued, picture->sample->path));
    snprintf(path, sizeof path, "%s/%s", split, name);
    stk_status status =
        stk_tar_writer_add(o->tar, name, queued->bytes, queued->size, &member.offset, err);
    if (status == STK_OK && picture->split != STK_STAGE_TEST) {
        int length = snprintf(label, sizeof label, "%d", picture->sample->label);
        snprintf(name, sizeof name, "%0*zu.cls", STK_STAGE_MEMBER_DIGITS, picture->number);
        status = stk_tar_writer_add(o->tar, name, label, (size_t)length, NULL, err);
    }
    return status == STK_OK ? stk_shard_index_add(&o->index, &member, err) : status;
}

static stk_status add_bad(staging *s, size_t picture, const char *reason, stk_error *err) {
    const stk_stage_picture *p = &s->list.pictures[picture];
    stk_status status = stk_stage_bad_add(&s->bad, picture, reason, err);
    stk_events_bad_image(s->request->events, p->sample->path, stk_stage_split_names[p->split],
                         reason);
    if (status == STK_OK && s->bad.count > s->bad_allowed) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%zu of %zu pictures cannot be used, more than --max-bad allows; the "
                          "last one is %s: %s",
                          s->bad.count, s->list.picture_count, p->sample->path, reason);
    }
    return status;
}

static stk_status add_picture(staging *s, open_shard *o, size_t picture, stk_error *err) {
    const stk_queued_picture *queued = NULL;
    stk_status status = take(s, &queued, err);
    if (status != STK_OK) {
        return status;
    }
    if (queued->reason != NULL) {
        status = add_bad(s, picture, queued->reason, err);
    } else {
        status = add_member(o, &s->list.pictures[picture], queued, err);
        s->staged->pictures++;
        s->staged->recoded += queued->recoded;
        s->staged->bytes += (int64_t)queued->size;
        s->staged->source_bytes += (int64_t)queued->source_bytes;
    }
    stk_picture_queue_release(s->queue);
    return status;
}

/* ---- shards ---- */

static stk_status begin_shard(staging *s, open_shard *o, const stk_stage_shard *shard,
                              stk_error *err) {
    char name[STK_STAGE_NAME_SIZE];
    uint32_t number;
    *o = (open_shard){.shard = shard, .first_bad = s->bad.count};
    char *path = stk_stage_dest_file(&s->dest, stk_stage_shard_name(shard, name));
    stk_status status = path != NULL ? stk_shard_index_add_shard(&o->index, name, 0, &number, err)
                                     : STK_FAIL_MEMORY(err, name);
    STK_THEN(status, stk_tar_writer_open(&o->tar, path, err));
    stk_mem_free(path);
    return status;
}

static stk_status end_shard(staging *s, open_shard *o, stk_error *err) {
    stk_tar_writer *tar = o->tar;
    o->tar = NULL;
    stk_status status = stk_tar_writer_commit(tar, &o->index.shards[0].size, err);
    STK_THEN(status, stk_stage_record_save(s->dest.path, &s->list, o->shard, &o->index,
                                           s->bad.count > 0 ? s->bad.items + o->first_bad : NULL,
                                           s->bad.count - o->first_bad, err));
    s->shards_done += status == STK_OK;
    return status;
}

static stk_status make_shard(staging *s, const stk_stage_shard *shard, stk_error *err) {
    open_shard o;
    stk_status status = begin_shard(s, &o, shard, err);
    for (size_t i = 0; status == STK_OK && i < shard->count; i++) {
        status = add_picture(s, &o, shard->first + i, err);
    }
    STK_THEN(status, end_shard(s, &o, err));
    stk_tar_writer_discard(o.tar);
    stk_shard_index_free(&o.index);
    return status;
}

/*
 * Whether a shard is finished. A shard with bad pictures is made again: a picture that could not be
 * read, because of an outage or a permission, may be readable now.
 */
static stk_status look_at_shard(staging *s, const stk_stage_shard *shard, bool *finished,
                                stk_error *err) {
    stk_shard_index index;
    size_t bad = s->bad.count;
    stk_status status =
        stk_stage_record_load(s->dest.path, &s->list, shard, &index, &s->bad, finished, err);
    if (status == STK_OK && s->bad.count > bad) {
        stk_stage_bad_cut(&s->bad, bad);
        *finished = false;
        status = stk_stage_record_drop(s->dest.path, shard, err);
    }
    s->pictures_before += *finished ? index.member_count : 0;
    s->shards_done += *finished;
    stk_shard_index_free(&index);
    return status;
}

/* Finds the finished shards, and the pictures that are left to read. */
static stk_status look_back(staging *s, stk_error *err) {
    stk_staging_list *list = &s->list;
    s->finished = stk_mem_new(list->shard_count, sizeof *s->finished);
    s->paths = stk_mem_new(list->picture_count, sizeof *s->paths);
    stk_status status = s->finished != NULL && s->paths != NULL
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, "the list of pictures");
    for (size_t i = 0; status == STK_OK && i < list->shard_count; i++) {
        const stk_stage_shard *shard = &list->shards[i];
        status = look_at_shard(s, shard, &s->finished[i], err);
        for (size_t k = 0; status == STK_OK && !s->finished[i] && k < shard->count; k++) {
            s->paths[s->to_read++] = list->pictures[shard->first + k].sample->path;
        }
    }
    s->staged->kept_shards = (int64_t)s->shards_done;
    return status;
}

static stk_status make_shards(staging *s, stk_error *err) {
    const stk_stage_options *o = s->request->options;
    int workers = stk_is_auto_int(o->workers) ? stk_machine_cores() : (int)o->workers;
    stk_picture_queue_config config = {
        .store = s->dataset->store,
        .paths = s->paths,
        .count = s->to_read,
        .recode = {.max_side = (int)o->max_side, .quality = (int)o->quality},
        .workers = workers > 1 ? workers : 1};
    stk_status status = stk_picture_queue_open(&s->queue, &config, err);
    for (size_t i = 0; status == STK_OK && i < s->list.shard_count; i++) {
        if (!s->finished[i]) {
            status = make_shard(s, &s->list.shards[i], err);
        }
    }
    stk_picture_queue_close(s->queue);
    s->queue = NULL;
    return status;
}

/* ---- the end ---- */

/* Notes the name of each picture's member, from the paths ("train/000000012.jpg") in the index. */
static stk_status note_members(const stk_staging_list *list, const stk_stage_shard *shard,
                               const stk_shard_index *index, const char **members, stk_error *err) {
    size_t first = list->pictures[shard->first].number;
    for (size_t i = 0; i < index->member_count; i++) {
        const char *name = stk_path_base(index->members[i].path);
        size_t number = (size_t)strtoull(name, NULL, 10);
        if (number < first || number - first >= shard->count) {
            return STK_FAIL(err, STK_ERR_INTERNAL, "the record of a shard names %s", name);
        }
        members[shard->first + number - first] = name;
    }
    return STK_OK;
}

static void count_members(const stk_staging_list *list, const char *const *members,
                          stk_staged *staged) {
    int64_t *counts[STK_STAGE_SPLITS] = {&staged->train, &staged->val, &staged->test};
    for (size_t i = 0; i < list->picture_count; i++) {
        *counts[list->pictures[i].split] += members[i] != NULL;
    }
}

/* Merges the records of all shards. */
static stk_status gather(staging *s, stk_shard_index *all, stk_stage_bad_list *bad,
                         const char **members, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < s->list.shard_count; i++) {
        const stk_stage_shard *shard = &s->list.shards[i];
        stk_shard_index index;
        bool finished = false;
        status = stk_stage_record_load(s->dest.path, &s->list, shard, &index, bad, &finished, err);
        if (status == STK_OK && !finished) {
            status = STK_FAIL(err, STK_ERR_STORAGE,
                              "a shard in %s was changed or removed by someone else meanwhile",
                              s->dest.path);
        }
        STK_THEN(status, note_members(&s->list, shard, &index, members, err));
        STK_THEN(status, stk_shard_index_merge(all, &index, err));
        stk_shard_index_free(&index);
    }
    return status;
}

static stk_status finish(staging *s, stk_error *err) {
    stk_shard_index all = {0};
    stk_stage_bad_list bad = {0};
    const char **members = stk_mem_new(s->list.picture_count, sizeof *members);
    char *index = stk_stage_dest_file(&s->dest, STK_SHARD_INDEX_NAME);
    stk_status status = members != NULL && index != NULL
                            ? gather(s, &all, &bad, members, err)
                            : STK_FAIL_MEMORY(err, "the index of the shards");
    if (status == STK_OK) {
        stk_staged *staged = s->staged;
        count_members(&s->list, members, staged);
        staged->classes = s->dataset->class_count;
        staged->bad = (int64_t)bad.count;
        staged->shards = (int64_t)s->list.shard_count;
        staged->bytes = 0;
        for (size_t i = 0; i < all.shard_count; i++) {
            staged->bytes += (int64_t)all.shards[i].size;
        }
        status = stk_stage_write_tables(&s->dest, &s->list, s->request, members, &bad, staged, err);
    }
    STK_THEN(status, stk_shard_index_save(&all, "", index, err));
    STK_THEN(status, stk_stage_dest_end(&s->dest, err));
    if (status == STK_OK && bad.count > 0) {
        stk_events_warning(s->request->events,
                           "%zu of %zu pictures could not be used; %s/bad_images.csv names them",
                           bad.count, s->list.picture_count, s->dest.path);
    }
    stk_stage_bad_free(&bad);
    stk_shard_index_free(&all);
    stk_mem_free(members);
    stk_mem_free(index);
    return status;
}

/* ---- a whole staging ---- */

/* Real path of a folder or, if it does not exist yet, of the nearest one above; freed with free().
 */
static char *nearest_real(char *path) {
    bool absolute = path[0] == '/';
    char *real = realpath(path, NULL);
    for (char *slash = strrchr(path, '/'); real == NULL && slash != NULL && slash > path;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        real = realpath(path, NULL);
    }
    return real != NULL ? real : realpath(absolute ? "/" : ".", NULL);
}

/* Fails if the folder lies in the data set that is staged. */
static stk_status check_dir(const staging *s, stk_error *err) {
    const char *dir = s->request->dir;
    const char *root = s->dataset->root;
    char *copy = stk_mem_strdup(dir);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, dir);
    }
    char *source = realpath(root, NULL);
    char *real = nearest_real(copy);
    size_t length = source != NULL ? strlen(source) : 0;
    stk_status status = STK_OK;
    if (real != NULL && length > 0 && strncmp(real, source, length) == 0 &&
        (real[length] == '\0' || real[length] == '/')) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "cannot stage to %s: it lies in the data set %s; name a folder outside",
                          dir, root);
    }
    free(real);
    free(source);
    stk_mem_free(copy);
    return status;
}

/* What the staged format has no place for; NULL: it can hold the data set. */
static const char *lost_in_copy(const stk_dataset *dataset) {
    bool classes = stk_task_has_classes(dataset->task);
    bool asks = dataset->template_header != NULL;
    return dataset->task == STK_TASK_REGRESSION       ? "numbers to predict"
           : !classes                                 ? "several labels per picture"
           : dataset->row_count < dataset->test.count ? "rows of several pictures in its submission"
           : asks && dataset->answer.kind == STK_ANSWER_POSITIVE
               ? "a probability of one class to predict"
           : asks && dataset->answer.kind == STK_ANSWER_RANKED
               ? "ranked lists of classes to predict"
           : asks && dataset->answer.kind == STK_ANSWER_SURE
               ? "a class and its probability to predict"
               : NULL;
}

/* A copy has one class per picture and rows of one picture: anything else would be lost, and a
 * training on the copy would answer another question. */
static stk_status check_format(const staging *s, stk_error *err) {
    const stk_dataset *dataset = s->dataset;
    const char *lost = lost_in_copy(dataset);
    if (lost != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot stage %s: it has %s, and a staged copy keeps one class per "
                        "picture; train on the data set itself, with --cache to keep its pictures "
                        "near",
                        dataset->root, lost);
    }
    if (dataset->features.count > 0) {
        stk_events_warning(s->request->events,
                           "the columns beside the pictures of %s (%s) are not staged: a training "
                           "on the copy does without them",
                           dataset->root, dataset->features.names);
    }
    return STK_OK;
}

/* Adds to an error which shards are finished and how to continue. */
static stk_status add_remedy(const staging *s, stk_status status, const stk_error *cause,
                             stk_error *err) {
    return STK_FAIL(err, status,
                    "%.700s; %zu of %zu shards are finished and stay in %s: the same command goes "
                    "on from there",
                    cause->message, s->shards_done, s->list.shard_count, s->dest.path);
}

static stk_status fill(staging *s, stk_error *err) {
    stk_error cause = {0};
    stk_status status = look_back(s, &cause);
    s->bad_allowed = stk_dataset_bad_allowed(s->request->options->max_bad, s->list.picture_count);
    if (status == STK_OK && s->shards_done > 0) {
        char why[100];
        snprintf(why, sizeof why, "%zu of %zu shards were finished before", s->shards_done,
                 s->list.shard_count);
        stk_events_decision(s->request->events, "going on", why);
    }
    STK_THEN(status, make_shards(s, &cause));
    STK_THEN(status, finish(s, &cause));
    return status == STK_OK ? STK_OK : add_remedy(s, status, &cause, err);
}

static stk_status run(staging *s, stk_error *err) {
    const stk_stage_request *r = s->request;
    stk_str about = {0};
    stk_dest_state state = STK_DEST_OPEN;
    stk_status status = stk_dataset_open_any(&s->dataset, r->data, r->storage, r->events, err);
    STK_THEN(status, check_dir(s, err));
    STK_THEN(status, check_format(s, err));
    STK_THEN(status, stk_staging_list_make(&s->list, s->dataset, r->options, err));
    STK_THEN(status, stk_stage_dest_open(&s->dest, r->dir, err));
    if (status == STK_OK) {
        stk_stage_about(&about, &s->list, r, NULL);
        status = stk_str_ok(&about) ? stk_stage_dest_begin(&s->dest, &s->list, stk_str_text(&about),
                                                           r->options->overwrite, &state, err)
                                    : STK_FAIL_MEMORY(err, r->dir);
    }
    if (status == STK_OK && state == STK_DEST_FINISHED) {
        s->staged->already = true;
        status = stk_stage_read_about(&s->dest, s->staged, err);
        STK_THEN(status, stk_stage_dest_end(&s->dest, err));
    } else if (status == STK_OK) {
        status = fill(s, err);
    }
    stk_str_free(&about);
    return status;
}

stk_status stk_stage_run(const stk_stage_request *request, stk_staged *staged, stk_error *err) {
    staging s = {
        .request = request, .staged = staged, .dest = {.lock_fd = -1}, .start_ns = stk_clock_ns()};
    memset(staged, 0, sizeof *staged);
    if (strstr(request->dir, "://") != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot stage to %s: name a folder of this machine, and copy it from there",
                        request->dir);
    }
    stk_status status = run(&s, err);
    staged->seconds = stk_clock_since_s(s.start_ns);
    stk_stage_dest_close(&s.dest);
    stk_staging_list_free(&s.list);
    stk_stage_bad_free(&s.bad);
    stk_mem_free(s.finished);
    stk_mem_free(s.paths);
    stk_dataset_free(s.dataset);
    return status;
}
