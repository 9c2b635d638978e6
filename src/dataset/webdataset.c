/*
 * webdataset.c - shards as WebDataset has them: a sample is all members with one key, which is the
 * path up to the first dot of the name. KEY.jpg is the picture. KEY.cls has the class, as a number
 * or as a name; without it KEY.json ("label", "class" or "cls") or KEY.txt has it. The sets are
 * folders here (train, val, test), which storage makes from the names of the shards.
 */
#include "dataset/listing.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"

/* Longer texts are captions, not classes. */
#define CLASS_BYTES 200

/* Pictures that are checked for labels beside them. */
#define PROBE_PICTURES 100

static const char *const class_files[] = {"classes.txt", "labels.txt", NULL};

/* The members of one sample: neighbouring entries of a folder. */
typedef struct sample_group {
    const char *folder;
    const stk_dir_entry *entries;
    size_t count;
} sample_group;

/* One set being listed. */
typedef struct shard_part {
    stk_listing *listing;
    const char *folder; /* of the set */
    bool is_train;      /* classes are met here; in other sets they must be known */
    stk_sample_list *list;
    size_t *capacity;
    const char **names; /* of the classes by number; the reader of class_files owns it */
    size_t name_count;
    const char *names_file;
    stk_first_names unlabelled;
    stk_first_names orphans; /* labels without pictures */
} shard_part;

/* Calls back for each sample in and below a folder until *stop. */
typedef struct walker {
    stk_listing *listing;
    stk_status (*visit)(void *user, const sample_group *group, bool *stop, stk_error *err);
    void *user;
    bool at_top; /* folders of other sets are not entered */
} walker;

/* The part of a name after its key; a name without a dot is all key. */
static const char *behind_key(const char *name) {
    return name + strcspn(name, ".");
}

static size_t group_length(const stk_dir_list *list, size_t first) {
    const char *name = list->entries[first].name;
    size_t key = (size_t)(behind_key(name) - name);
    size_t end = first + 1;
    while (end < list->count && !list->entries[end].is_dir &&
           strncmp(list->entries[end].name, name, key) == 0 &&
           (list->entries[end].name[key] == '.' || list->entries[end].name[key] == '\0')) {
        end++;
    }
    return end - first;
}

static stk_status walk(const walker *w, const char *folder, bool *stop, stk_error *err) {
    stk_dir_list list = {0};
    bool by_stoker;
    stk_status status = stk_listing_dir(w->listing, folder, &list, &by_stoker, err);
    for (size_t i = 0; status == STK_OK && !*stop && i < list.count;) {
        const stk_dir_entry *entry = &list.entries[i];
        if (!entry->is_dir) {
            sample_group group = {
                .folder = folder, .entries = entry, .count = group_length(&list, i)};
            status = w->visit(w->user, &group, stop, err);
            i += group.count;
            continue;
        }
        i++;
        if (!(w->at_top && stk_listing_is_set(w->listing, entry->name))) {
            walker below = *w;
            below.at_top = false;
            const char *path = stk_listing_join(w->listing, folder, entry->name);
            status = path != NULL ? walk(&below, path, stop, err)
                                  : STK_FAIL_MEMORY(err, "the list of samples");
        }
    }
    stk_dir_list_free(&list);
    return status;
}

/* The member of a sample that ends so, or NULL. */
static const stk_dir_entry *member_with(const sample_group *group, const char *tail) {
    for (size_t i = 0; i < group->count; i++) {
        if (stk_str_equal_nocase(behind_key(group->entries[i].name), tail)) {
            return &group->entries[i];
        }
    }
    return NULL;
}

/*
 * The picture of a sample: KEY.jpg rather than KEY.mask.png. *other is set to a second one that is
 * as good; NULL: there is none.
 */
static const stk_dir_entry *find_picture(const stk_listing *listing, const sample_group *group,
                                         const stk_dir_entry **other) {
    const stk_dir_entry *found[2] = {NULL, NULL}; /* with a plain ending, with a longer one */
    const stk_dir_entry *second[2] = {NULL, NULL};
    for (size_t i = 0; i < group->count; i++) {
        const stk_dir_entry *entry = &group->entries[i];
        if (stk_listing_is_picture(listing, entry)) {
            int longer = strchr(behind_key(entry->name) + 1, '.') != NULL;
            *(found[longer] == NULL ? &found[longer] : &second[longer]) = entry;
        }
    }
    int which = found[0] != NULL ? 0 : 1;
    *other = second[which];
    return found[which];
}

/* ---- labels ---- */

/* Copies a text without the blanks at its ends; false when the text cannot be a class. */
static bool copy_class(const char *text, char *buf, size_t size) {
    static const char blanks[] = " \t\r\n";
    text += strspn(text, blanks);
    size_t length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]) != NULL) {
        length--;
    }
    if (length == 0 || length >= size || memchr(text, '\n', length) != NULL) {
        return false;
    }
    memcpy(buf, text, length);
    buf[length] = '\0';
    return true;
}

static bool class_in_json(const char *text, char *buf, size_t size) {
    static const char *const keys[] = {"label", "class", "cls"};
    stk_json *root = NULL;
    bool found = false;
    if (stk_json_parse(text, strlen(text), &root, NULL) != STK_OK) {
        return false;
    }
    for (size_t i = 0; !found && i < sizeof keys / sizeof *keys; i++) {
        const stk_json *value = stk_json_get(root, keys[i]);
        uint64_t number;
        if (stk_json_u64(value, &number)) {
            snprintf(buf, size, "%llu", (unsigned long long)number);
            found = true;
        } else if (stk_json_string(value) != NULL) {
            found = copy_class(stk_json_string(value), buf, size);
        }
    }
    stk_json_free(root);
    return found;
}

/* The text of a member; storage may know it without reading. */
static stk_status read_text(const stk_listing *listing, const char *path, stk_bytes *bytes,
                            const char **text, stk_error *err) {
    *text = stk_store_text(listing->dataset->store, path);
    if (*text != NULL) {
        return STK_OK;
    }
    stk_status status = stk_store_read(listing->dataset->store, path, bytes, err);
    if (status == STK_OK && !stk_bytes_reserve(bytes, bytes->size + 1)) {
        status = STK_FAIL_MEMORY(err, path);
    }
    if (status == STK_OK) {
        bytes->data[bytes->size] = '\0';
        *text = (const char *)bytes->data;
    }
    return status;
}

/* The class that a sample's members give, and the member that gives it; *buf is "" when none does.
 */
static stk_status read_class(const stk_listing *listing, const sample_group *group, char *buf,
                             size_t size, const char **member, stk_error *err) {
    static const char *const tails[] = {".cls", ".json", ".txt"};
    stk_bytes bytes = {0};
    stk_status status = STK_OK;
    bool found = false;
    buf[0] = '\0';
    for (size_t i = 0; status == STK_OK && !found && i < 3; i++) {
        const stk_dir_entry *entry = member_with(group, tails[i]);
        const char *text = NULL;
        char *path = entry != NULL ? stk_path_join(group->folder, entry->name) : NULL;
        if (entry == NULL) {
            continue;
        }
        *member = entry->name;
        status = path != NULL ? read_text(listing, path, &bytes, &text, err)
                              : STK_FAIL_MEMORY(err, entry->name);
        if (status == STK_OK) {
            found = i == 1 ? class_in_json(text, buf, size) : copy_class(text, buf, size);
        }
        stk_mem_free(path);
    }
    stk_bytes_free(&bytes);
    return status;
}

/* Reads the names of the classes, one a line; numbers count the lines from 0. */
static stk_status read_names(shard_part *p, stk_error *err) {
    stk_listing *listing = p->listing;
    const char *file = stk_listing_entry(listing, class_files, false);
    stk_bytes bytes = {0};
    const char *text = "";
    size_t capacity = 0;
    stk_status status = file != NULL ? read_text(listing, file, &bytes, &text, err) : STK_OK;
    p->names_file = file;
    for (const char *line = text; status == STK_OK && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char name[CLASS_BYTES + 1];
        char *copy = stk_mem_strndup(line, length);
        if (copy == NULL || !STK_RESERVE(p->names, capacity, p->name_count + 1)) {
            status = STK_FAIL_MEMORY(err, file);
        } else if (!copy_class(copy, name, sizeof name)) {
            name[0] = '\0'; /* a blank line counts, so that numbers stay right */
        }
        if (status == STK_OK) {
            p->names[p->name_count] = stk_listing_keep(listing, name, strlen(name));
            status = p->names[p->name_count++] != NULL ? STK_OK : STK_FAIL_MEMORY(err, file);
        }
        stk_mem_free(copy);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    stk_bytes_free(&bytes);
    return status;
}

/* Two classes of one name stay two: the number tells them apart. */
static stk_status divide_names(shard_part *p, stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < p->name_count; i++) {
        char name[CLASS_BYTES + 32];
        bool added = true;
        if (p->names[i][0] != '\0' && !stk_map_add(&seen, p->names[i], i, &added)) {
            status = STK_FAIL_MEMORY(err, p->names_file);
        } else if (!added) {
            snprintf(name, sizeof name, "%s (%zu)", p->names[i], i);
            p->names[i] = stk_listing_keep(p->listing, name, strlen(name));
            status = p->names[i] != NULL ? STK_OK : STK_FAIL_MEMORY(err, p->names_file);
        }
    }
    stk_map_free(&seen);
    return status;
}

/* The name of a class that was read; a number becomes a name where there are names. */
static stk_status name_class(const shard_part *p, const sample_group *group, const char *member,
                             char *text, size_t size, const char **name, stk_error *err) {
    int64_t number;
    *name = text;
    if (!stk_parse_int(text, &number)) {
        return STK_OK;
    }
    if (p->name_count == 0) {
        snprintf(text, size, "%lld", (long long)number); /* "007" is 7 */
        return STK_OK;
    }
    if (number < 0 || (uint64_t)number >= p->name_count || p->names[number][0] == '\0') {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s/%s%s%s says class %lld, but %s has no line for it (it has %zu, counted "
                        "from 0); add the name, or remove the file to have numbers as names",
                        p->listing->dataset->root, group->folder,
                        group->folder[0] != '\0' ? "/" : "", member, (long long)number,
                        p->names_file, p->name_count);
    }
    *name = p->names[number];
    return STK_OK;
}

/* The label of a class. Only the training set may add classes; elsewhere a new one is an error. */
static stk_status find_label(const shard_part *p, const sample_group *group, const char *member,
                             const char *name, int *label, stk_error *err) {
    stk_listing *listing = p->listing;
    const stk_dataset *dataset = listing->dataset;
    size_t place;
    if (p->is_train) {
        return stk_listing_class(listing, name, label, err);
    }
    if (!stk_map_find(&listing->class_labels, name, &place)) {
        const char *near = stk_str_nearest(name, dataset->classes, (size_t)dataset->class_count);
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s/%s/%s says class '%s', which is no class of the training set%s%s%s",
                        dataset->root, group->folder, member, name,
                        near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                        near != NULL ? "'?)" : "");
    }
    *label = (int)place;
    return STK_OK;
}

/* ---- samples ---- */

static stk_status take_sample(void *user, const sample_group *group, bool *stop, stk_error *err) {
    shard_part *p = user;
    stk_listing *listing = p->listing;
    const stk_dir_entry *other = NULL;
    const stk_dir_entry *picture = find_picture(listing, group, &other);
    const stk_dir_entry *label_member = member_with(group, ".cls");
    const char *member = NULL;
    const char *name = NULL;
    char text[CLASS_BYTES + 1];
    (void)stop;
    if (picture == NULL && label_member == NULL) {
        return STK_OK; /* something else, such as a read-me */
    }
    const char *path = stk_listing_join(listing, group->folder,
                                        picture != NULL ? picture->name : label_member->name);
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, "the list of samples");
    }
    if (picture == NULL) {
        stk_first_names_add(&p->orphans, path);
        return STK_OK;
    }
    if (other != NULL) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: the sample of %s has two pictures, the other is %s; keep one, or pass "
                        "--image-ext to say which kind counts",
                        listing->dataset->root, path, other->name);
    }
    stk_status status = read_class(listing, group, text, sizeof text, &member, err);
    if (status == STK_OK && text[0] == '\0') {
        stk_first_names_add(&p->unlabelled, path);
        return STK_OK;
    }
    stk_sample sample = {.path = path, .id = path};
    STK_THEN(status, name_class(p, group, member, text, sizeof text, &name, err));
    STK_THEN(status, find_label(p, group, member, name, &sample.label, err));
    return status == STK_OK ? stk_listing_add(p->list, p->capacity, sample, err) : status;
}

/* Refuses pictures without labels and labels without pictures, or warns with --mismatch skip. */
static stk_status check_pairs(const shard_part *p, stk_error *err) {
    char names[300];
    const stk_listing *listing = p->listing;
    for (int side = 0; side < 2; side++) {
        const stk_first_names *few = side == 0 ? &p->unlabelled : &p->orphans;
        const char *what = side == 0 ? "picture" : "label";
        const char *lacks = side == 0 ? "label" : "picture";
        stk_first_names_text(few, names, sizeof names);
        if (few->count > 0 && listing->options->mismatch == STK_MISMATCH_SKIP) {
            stk_events_warning(listing->events, "left out %zu %s%s without a %s: %s", few->count,
                               what, stk_plural(few->count), lacks, names);
        } else if (few->count > 0) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "the shards in %s have %zu %s%s without a %s: %s; a sample is KEY.jpg "
                            "and KEY.cls with one KEY, so add what is missing, or pass --mismatch "
                            "skip to leave %s out",
                            listing->dataset->root, few->count, what, stk_plural(few->count), lacks,
                            names, few->count == 1 ? "it" : "them");
        }
    }
    return STK_OK;
}

static stk_status list_part(shard_part *p, stk_error *err) {
    bool stop = false;
    walker w = {
        .listing = p->listing, .visit = take_sample, .user = p, .at_top = p->folder[0] == '\0'};
    p->unlabelled = (stk_first_names){0};
    p->orphans = (stk_first_names){0};
    stk_status status = walk(&w, p->folder, &stop, err);
    STK_THEN(status, check_pairs(p, err));
    stk_listing_sort(p->list);
    return status;
}

/* Test pictures may have labels too; those that are no class of the training set stay unknown. */
static stk_status label_test(const shard_part *p, stk_error *err) {
    stk_listing *listing = p->listing;
    stk_sample_list *test = &listing->dataset->test;
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < test->count; i++) {
        const char *path = test->items[i].path;
        const char *base = path != NULL ? stk_path_base(path) : "";
        const char *dot = behind_key(base);
        if (path == NULL || *dot == '\0') {
            continue;
        }
        char *beside = stk_str_format("%.*s.cls", (int)(dot - path), path);
        const char *text = beside != NULL ? stk_store_text(listing->dataset->store, beside) : NULL;
        char buf[CLASS_BYTES + 1];
        const char *name = buf;
        int64_t number;
        size_t label;
        if (beside == NULL) {
            status = STK_FAIL_MEMORY(err, "the test set");
        } else if (text != NULL && copy_class(text, buf, sizeof buf)) {
            if (stk_parse_int(buf, &number) && number >= 0 && (uint64_t)number < p->name_count) {
                name = p->names[number];
            }
            if (stk_map_find(&listing->class_labels, name, &label)) {
                test->items[i].label = (int)label;
            }
        }
        stk_mem_free(beside);
    }
    return status;
}

/* ---- the layout ---- */

/* What checking some samples showed. */
typedef struct label_probe {
    stk_listing *listing;
    const char *folder;
    size_t pictures;
    bool found;
} label_probe;

static stk_status probe_sample(void *user, const sample_group *group, bool *stop, stk_error *err) {
    label_probe *p = user;
    const stk_dir_entry *other;
    (void)err;
    if (find_picture(p->listing, group, &other) != NULL) {
        /* In class folders a text beside a picture is a caption: there only .cls is a label. */
        bool flat = stk_str_equal(group->folder, p->folder);
        p->found = member_with(group, ".cls") != NULL ||
                   (flat && (member_with(group, ".json") != NULL || member_with(group, ".txt")));
        p->pictures++;
    }
    *stop = p->found || p->pictures >= PROBE_PICTURES;
    return STK_OK;
}

stk_status stk_webdataset_exists(stk_listing *listing, bool *exists, stk_error *err) {
    const char *train = stk_listing_set(listing, STK_SET_TRAIN);
    label_probe p = {.listing = listing, .folder = train != NULL ? train : ""};
    bool stop = false;
    *exists = false;
    if (!stk_store_has_shards(listing->dataset->store)) {
        return STK_OK;
    }
    walker w = {.listing = listing, .visit = probe_sample, .user = &p, .at_top = train == NULL};
    stk_status status = walk(&w, p.folder, &stop, err);
    *exists = p.found;
    return status;
}

stk_status stk_webdataset_list(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const char *train = stk_listing_set(listing, STK_SET_TRAIN);
    const char *val = stk_listing_set(listing, STK_SET_VAL);
    shard_part p = {.listing = listing,
                    .folder = train != NULL ? train : "",
                    .is_train = true,
                    .list = &dataset->train,
                    .capacity = &listing->train_capacity};
    stk_status status = read_names(&p, err);
    STK_THEN(status, divide_names(&p, err));
    STK_THEN(status, list_part(&p, err));
    if (status == STK_OK && val != NULL) {
        p.folder = val;
        p.is_train = false;
        p.list = &dataset->val;
        p.capacity = &listing->val_capacity;
        status = list_part(&p, err);
    }
    STK_THEN(status, stk_testset_of_classes(listing, false, err));
    STK_THEN(status, label_test(&p, err));
    stk_mem_free(p.names);
    return status;
}
