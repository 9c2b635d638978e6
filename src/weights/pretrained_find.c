/* pretrained_find.c - finds pretrained weights: by path, in the hub's cache, in Stoker's own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "weights/pretrained.h"

#define HUB_PREFIX "models--timm--" /* of a folder of the hub's cache */
#define FILE_NAME "model.safetensors"
#define MAX_REVISION 200 /* bytes of a file that names a snapshot */
#define MOST_PLACES 8

/* The tag that timm means by a bare name; NULL: it has published none. */
static const struct {
    const char *name;
    const char *tag;
} defaults[] = {
    {"resnet18", "a1_in1k"},
    {"resnet34", "a1_in1k"},
    {"resnet50", "a1_in1k"},
    {"resnet101", "a1h_in1k"},
    {"resnet152", "a1h_in1k"},
    {"efficientnet_b0", "ra_in1k"},
    {"efficientnet_b1", "ra4_e3600_r240_in1k"},
    {"efficientnet_b2", "ra_in1k"},
    {"efficientnet_b3", "ra2_in1k"},
    {"efficientnet_b4", "ra2_in1k"},
    {"efficientnet_b5", "sw_in12k_ft_in1k"},
    {"tf_efficientnet_b0", "ns_jft_in1k"},
    {"tf_efficientnet_b1", "ns_jft_in1k"},
    {"tf_efficientnet_b2", "ns_jft_in1k"},
    {"tf_efficientnet_b3", "ns_jft_in1k"},
    {"tf_efficientnet_b4", "ns_jft_in1k"},
    {"tf_efficientnet_b5", "ns_jft_in1k"},
    {"tf_efficientnet_b6", "ns_jft_in1k"},
    {"tf_efficientnet_b7", "ns_jft_in1k"},
    {"tf_efficientnet_lite0", "in1k"},
    {"tf_efficientnet_lite1", "in1k"},
    {"tf_efficientnet_lite2", "in1k"},
    {"tf_efficientnet_lite3", "in1k"},
    {"tf_efficientnet_lite4", "in1k"},
    {"mobilenetv2_100", "ra_in1k"},
};

/* Endings of names from before timm had tags. */
static const struct {
    const char *ending;
    const char *tag;
} old_endings[] = {{"_ns", "ns_jft_in1k"}, {"_ap", "ap_in1k"}};

/* How well a file answers; the highest wins. */
typedef enum match_quality { NOT_FOUND, OF_THE_MODEL, DEFAULT_TAG, EXACT } match_quality;

typedef struct weight_search {
    char base[96];           /* the model: "resnet50" */
    char tag[96];            /* "a1_in1k"; "": any */
    const char *default_tag; /* or NULL */
    match_quality best;      /* so far */
    char *path;              /* owned: the best file so far */
    char found_tag[96];      /* tag of that file */
    struct timespec changed; /* when that file last changed */
    int others;              /* files that were neither exact nor of the default tag */
    char *seen[MOST_PLACES]; /* owned: folders that were looked at */
    int seen_count;
    stk_str places; /* the folders, for people */
    stk_str *names; /* not NULL: no weights are searched; all names are noted here */
    bool no_memory;
} weight_search;

/* "resnet50.a1_in1k" in its two parts; false when it is too long for a name. */
static bool split_name(const char *name, char *base, char *tag, size_t size) {
    size_t length = strcspn(name, ".");
    const char *after = name[length] == '.' ? name + length + 1 : "";
    if (length >= size || strlen(after) >= size) {
        return false;
    }
    snprintf(base, size, "%.*s", (int)length, name);
    snprintf(tag, size, "%s", after);
    return true;
}

static void free_search(weight_search *s) {
    for (int i = 0; i < s->seen_count; i++) {
        stk_mem_free(s->seen[i]);
    }
    stk_mem_free(s->path);
    stk_str_free(&s->places);
}

static bool set_name(weight_search *s, const char *name) {
    if (!split_name(name, s->base, s->tag, sizeof s->base)) {
        return false;
    }
    for (size_t i = 0; s->tag[0] == '\0' && i < STK_COUNT(old_endings); i++) {
        if (stk_str_ends_with_nocase(s->base, old_endings[i].ending)) {
            s->base[strlen(s->base) - strlen(old_endings[i].ending)] = '\0';
            snprintf(s->tag, sizeof s->tag, "%s", old_endings[i].tag);
        }
    }
    for (size_t i = 0; i < STK_COUNT(defaults); i++) {
        if (strcmp(defaults[i].name, s->base) == 0) {
            s->default_tag = defaults[i].tag;
        }
    }
    return true;
}

static bool is_newer(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static match_quality grade(const weight_search *s, const char *tag) {
    if (strcmp(s->tag, tag) == 0) {
        return EXACT;
    }
    if (s->tag[0] != '\0') {
        return NOT_FOUND;
    }
    return s->default_tag != NULL && strcmp(s->default_tag, tag) == 0 ? DEFAULT_TAG : OF_THE_MODEL;
}

/* Takes the path, and keeps it if the file there, called `name`, is better than the best so far. */
static void consider(weight_search *s, const char *name, char *path) {
    char base[sizeof s->base];
    char tag[sizeof s->tag];
    struct stat info;
    match_quality here = NOT_FOUND;
    if (path == NULL) {
        s->no_memory = true;
        return;
    }
    if (split_name(name, base, tag, sizeof base) && strcmp(base, s->base) == 0 &&
        stk_disk_look(path, &info) == 0 && S_ISREG(info.st_mode)) {
        here = grade(s, tag);
        s->others += here == OF_THE_MODEL;
    }
    if (here > s->best ||
        (here == OF_THE_MODEL && here == s->best && is_newer(info.st_mtim, s->changed))) {
        stk_mem_free(s->path);
        s->path = path;
        s->best = here;
        s->changed = info.st_mtim;
        snprintf(s->found_tag, sizeof s->found_tag, "%s", tag);
    } else {
        stk_mem_free(path);
    }
}

/* Lists a folder and remembers that it was looked at; an absent one is empty. */
static stk_dir_list list_place(weight_search *s, const char *dir) {
    stk_dir_list list = {0};
    stk_status status = stk_dir_read(dir, &list, NULL);
    int why = errno;
    stk_str_appendf(&s->places, "%s%s", s->places.length > 0 ? ", " : "", dir);
    if (status == STK_ERR_MEMORY) {
        s->no_memory = true;
    } else if (status != STK_OK && why != ENOENT) {
        stk_str_appendf(&s->places, " (%s)", strerror(why));
    }
    return list;
}

/* Appends a name and a NUL. */
static void note_name(weight_search *s, const char *name, size_t length) {
    stk_str_append_bytes(s->names, name, length);
    stk_str_append_bytes(s->names, "", 1);
}

/* A snapshot's file, or NULL when it is not there; it is a link to the contents. */
static char *in_snapshot(weight_search *s, const char *snapshots, const char *revision) {
    char *folder = stk_path_join(snapshots, revision);
    char *path = folder != NULL ? stk_path_join(folder, FILE_NAME) : NULL;
    stk_mem_free(folder);
    if (path == NULL) {
        s->no_memory = true;
    } else if (!stk_path_is_file(path)) {
        stk_mem_free(path);
        path = NULL;
    }
    return path;
}

/* The newest of the snapshots that have the file; NULL when there is none. */
static char *newest_snapshot(weight_search *s, const char *snapshots) {
    stk_dir_list list = {0};
    char *newest = NULL;
    struct timespec changed = {0};
    s->no_memory = stk_dir_read(snapshots, &list, NULL) == STK_ERR_MEMORY || s->no_memory;
    for (size_t i = 0; i < list.count; i++) {
        char *path = in_snapshot(s, snapshots, list.entries[i].name);
        struct stat info;
        if (path != NULL && stk_disk_look(path, &info) == 0 &&
            (newest == NULL || is_newer(info.st_mtim, changed))) {
            stk_mem_free(newest);
            newest = path;
            changed = info.st_mtim;
        } else {
            stk_mem_free(path);
        }
    }
    stk_dir_list_free(&list);
    return newest;
}

/* Considers the snapshot of the branch "main", or the newest one where main's has no weights. */
static void consider_repository(weight_search *s, const char *name, const char *repository) {
    char *ref = stk_path_join(repository, "refs/main");
    char *snapshots = stk_path_join(repository, "snapshots");
    char *revision = NULL;
    char *path = NULL;
    size_t size = 0;
    if (ref == NULL || snapshots == NULL) {
        s->no_memory = true;
    } else {
        stk_status status = stk_file_read(ref, MAX_REVISION, &revision, &size, NULL);
        s->no_memory = s->no_memory || status == STK_ERR_MEMORY;
        if (status == STK_OK) {
            revision[strcspn(revision, " \r\n/")] = '\0';
        }
        if (status == STK_OK && revision[0] != '\0' && revision[0] != '.') {
            path = in_snapshot(s, snapshots, revision);
        }
        path = path != NULL ? path : newest_snapshot(s, snapshots);
    }
    if (path != NULL) {
        consider(s, name, path);
    }
    stk_mem_free(revision);
    stk_mem_free(ref);
    stk_mem_free(snapshots);
}

/* DIR/models--timm--resnet50.a1_in1k/snapshots/REVISION/model.safetensors */
static void look_in_hub(weight_search *s, const char *dir) {
    stk_dir_list list = list_place(s, dir);
    size_t prefix = strlen(HUB_PREFIX);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        if (!list.entries[i].is_dir || strncmp(name, HUB_PREFIX, prefix) != 0 ||
            strncmp(name + prefix, s->base, strlen(s->base)) != 0) {
            continue;
        }
        if (s->names != NULL) {
            note_name(s, name + prefix, strlen(name) - prefix);
            continue;
        }
        char *repository = stk_path_join(dir, name);
        if (repository != NULL) {
            consider_repository(s, name + prefix, repository);
        }
        s->no_memory = s->no_memory || repository == NULL;
        stk_mem_free(repository);
    }
    stk_dir_list_free(&list);
}

/* DIR/resnet50.a1_in1k.safetensors or DIR/resnet50.a1_in1k/model.safetensors */
static void look_in_own(weight_search *s, const char *dir) {
    stk_dir_list list = list_place(s, dir);
    for (size_t i = 0; i < list.count; i++) {
        const char *entry = list.entries[i].name;
        static const char ending[] = ".safetensors";
        bool is_file = !list.entries[i].is_dir && stk_str_ends_with_nocase(entry, ending);
        size_t length = strlen(entry) - (is_file ? strlen(ending) : 0);
        if (strncmp(entry, s->base, strlen(s->base)) != 0) {
            continue;
        }
        if (s->names != NULL) {
            note_name(s, entry, length);
            continue;
        }
        char *path = stk_path_join(dir, entry);
        char *name = stk_mem_strdup(entry);
        if (path != NULL && name != NULL && list.entries[i].is_dir) {
            char *inside = stk_path_join(path, FILE_NAME);
            consider(s, name, inside);
        } else if (path != NULL && name != NULL && is_file) {
            name[length] = '\0';
            consider(s, name, path);
            path = NULL;
        }
        s->no_memory = s->no_memory || name == NULL;
        stk_mem_free(path);
        stk_mem_free(name);
    }
    stk_dir_list_free(&list);
}

/* Each folder once, whatever variables lead there. */
static bool is_new_place(const weight_search *s, const char *dir) {
    for (int i = 0; i < s->seen_count; i++) {
        if (strcmp(s->seen[i], dir) == 0) {
            return false;
        }
    }
    return s->seen_count < MOST_PLACES;
}

/* Looks below what a variable says; "~/x" is below HOME, as the hub's library has it. */
static void look(weight_search *s, const char *variable, const char *below,
                 void (*look_in)(weight_search *s, const char *dir)) {
    const char *value = getenv(variable);
    const char *home = getenv("HOME");
    if (value == NULL || value[0] == '\0') {
        return;
    }
    bool at_home = value[0] == '~' && value[1] == '/' && home != NULL;
    char *dir = at_home ? stk_str_format("%s%s%s", home, value + 1, below)
                        : stk_str_format("%s%s", value, below);
    if (dir == NULL) {
        s->no_memory = true;
    } else if (is_new_place(s, dir)) {
        s->seen[s->seen_count++] = dir;
        look_in(s, dir);
    } else {
        stk_mem_free(dir);
    }
}

static void look_everywhere(weight_search *s) {
    look(s, "HF_HUB_CACHE", "", look_in_hub);
    look(s, "HUGGINGFACE_HUB_CACHE", "", look_in_hub);
    look(s, "HF_HOME", "/hub", look_in_hub);
    look(s, "XDG_CACHE_HOME", "/huggingface/hub", look_in_hub);
    look(s, "HOME", "/.cache/huggingface/hub", look_in_hub);
    look(s, "XDG_CACHE_HOME", "/stoker", look_in_own);
    look(s, "HOME", "/.cache/stoker", look_in_own);
}

/* The model and the tag of the file that was found. */
static char *found_name(const weight_search *s) {
    return stk_str_format("%s%s%s", s->base, s->found_tag[0] != '\0' ? "." : "", s->found_tag);
}

/* Why it is that one. */
static char *explain(const weight_search *s, const char *name) {
    char *why = NULL;
    if (name != NULL && s->best == DEFAULT_TAG) {
        why = stk_str_format("%s, timm's default for %s", name, s->base);
    } else if (name != NULL && s->best == OF_THE_MODEL && s->others > 1) {
        why = stk_str_format("%s, the newest of %d for %s that are here; a tag chooses another",
                             name, s->others, s->base);
    } else if (name != NULL && s->best == OF_THE_MODEL) {
        why = stk_str_format("%s, the only one for %s that is here", name, s->base);
    } else if (name != NULL) {
        why = stk_str_format("%s", name);
    }
    return why;
}

/* The command that fetches it, where timm has published it, comes before what may be long. */
static stk_status not_found(const weight_search *s, const char *wanted, stk_error *err) {
    const char *tag = s->tag[0] != '\0' ? s->tag : s->default_tag;
    const char *places = s->seen_count > 0 ? s->places.text : "no folder: HOME is not set";
    if (tag == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--pretrained %s: there are no such weights here, and none that timm has "
                        "published under this name; give a file: --pretrained FILE.safetensors; "
                        "looked in %s",
                        wanted, places);
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "--pretrained %s: there are no such weights here; fetch them with `hf download "
                    "timm/%s.%s %s` (from pip install huggingface_hub) or give a file: "
                    "--pretrained FILE.safetensors; looked in %s",
                    wanted, s->base, tag, FILE_NAME, places);
}

/* Whether a text can only be a path. */
static bool is_path(const char *text) {
    static const char *const endings[] = {".safetensors", ".pth", ".pt", ".bin"};
    bool path = strchr(text, '/') != NULL;
    for (size_t i = 0; i < STK_COUNT(endings); i++) {
        path = path || stk_str_ends_with_nocase(text, endings[i]);
    }
    return path;
}

/* "timm/resnet50" and "hf-hub:timm/resnet50" name the same as "resnet50". */
static const char *without_hub(const char *wanted) {
    static const char *const heads[] = {"hf-hub:timm/", "hf_hub:timm/", "timm/"};
    for (size_t i = 0; i < STK_COUNT(heads); i++) {
        if (strncmp(wanted, heads[i], strlen(heads[i])) == 0) {
            return wanted + strlen(heads[i]);
        }
    }
    return wanted;
}

static stk_status hand_over(char *path, char *name, char *why, stk_pretrained_file *place,
                            stk_error *err) {
    *place = (stk_pretrained_file){path, name, why};
    if (path == NULL || name == NULL || why == NULL) {
        stk_pretrained_file_free(place);
        return STK_FAIL_MEMORY(err, "the weights' path");
    }
    return STK_OK;
}

const char *stk_pretrained_wanted(const char *given, const char *model) {
    bool yes = false;
    if (given == NULL || given[0] == '\0' || stk_str_equal_nocase(given, "none") ||
        stk_str_equal_nocase(given, "null")) {
        return NULL;
    }
    if (stk_parse_bool(given, &yes)) {
        return yes ? model : NULL;
    }
    return given;
}

stk_status stk_pretrained_find(const char *wanted, stk_pretrained_file *place, stk_error *err) {
    memset(place, 0, sizeof *place);
    const char *name = without_hub(wanted);
    if (stk_path_is_file(wanted)) {
        return hand_over(stk_mem_strdup(wanted), stk_mem_strdup(""),
                         stk_mem_strdup("the file that was given"), place, err);
    }
    stk_status answers = stk_path_check_answer(wanted, err);
    if (answers != STK_OK) {
        return answers;
    }
    if (is_path(name)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--pretrained %s: there is no such file; a model's name, such as resnet50, "
                        "is looked for where the Hugging Face hub and Stoker keep weights",
                        wanted);
    }
    weight_search s = {0};
    if (!set_name(&s, name)) {
        return STK_FAIL(err, STK_ERR_USAGE, "--pretrained %.80s...: no model has so long a name",
                        wanted);
    }
    look_everywhere(&s);
    stk_status status = STK_OK;
    if (s.no_memory || !stk_str_ok(&s.places)) {
        status = STK_FAIL_MEMORY(err, "the weights' path");
    } else if (s.path == NULL) {
        status = not_found(&s, wanted, err);
    } else {
        char *found = found_name(&s);
        status = hand_over(s.path, found, explain(&s, found), place, err);
        s.path = NULL;
    }
    free_search(&s);
    return status;
}

stk_status stk_pretrained_names(stk_str *names, stk_str *places, stk_error *err) {
    weight_search s = {.names = names};
    look_everywhere(&s);
    bool whole = !s.no_memory && stk_str_ok(names) && stk_str_ok(&s.places);
    stk_str_append(places, stk_str_text(&s.places));
    free_search(&s);
    return whole && stk_str_ok(places) ? STK_OK : STK_FAIL_MEMORY(err, "names of weights");
}

void stk_pretrained_file_free(stk_pretrained_file *place) {
    stk_mem_free(place->path);
    stk_mem_free(place->name);
    stk_mem_free(place->why);
    memset(place, 0, sizeof *place);
}
