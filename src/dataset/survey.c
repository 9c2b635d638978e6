/*
 * survey.c - walks a location once, and finds the folder and the column of a table's pictures.
 *
 * A table does not say where its pictures lie, and they may lie there twice, as JPEG and as DICOM.
 * So some rows of the table are tried in every folder that could be meant, the likeliest first. The
 * folder in which most rows find a picture wins; between equals the one that is cheaper to decode.
 */
#include "dataset/survey.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* Rows that are tried, spread over the table. */
#define TRIED_ROWS 200

/* With more folders than this at the top, only those with the name of a set can be roots. */
#define MOST_FOLDERS 40

/* Pictures of one row, on average at most. */
#define MOST_TOGETHER 16

/* A column with a usual name is taken though another finds a few more pictures. */
#define NEARLY_AS_GOOD 0.9

/* Ids are numbers of pictures where so many of them mean one, and so many pictures have a row:
 * classes and products are counted, too. */
#define NEARLY_ALL 0.95
#define ROWS_OF_PICTURES 0.25

static const char *const usual_train[] = {"train", "train_images", "images"};
static const char *const usual_test[] = {"test", "test_images"};

/* ---- roots ---- */

/* The set of a folder: what the name of its first folder with the name of a set says. */
static stk_set_kind set_of(const stk_listing *listing, const char *folder, size_t length) {
    char name[256]; /* a file name has at most 255 bytes */
    for (size_t at = 0; at < length;) {
        const char *slash = memchr(folder + at, '/', length - at);
        size_t end = slash != NULL ? (size_t)(slash - folder) : length;
        if (end - at < sizeof name) {
            memcpy(name, folder + at, end - at);
            name[end - at] = '\0';
            stk_set_kind set = at == 0 ? stk_listing_set_at_top(listing, name) : stk_set_of(name);
            if (set != STK_SET_NONE) {
                return set;
            }
        }
        at = end + 1;
    }
    return STK_SET_NONE;
}

static stk_status add_root(stk_survey *s, stk_listing *listing, const char *path, size_t length,
                           size_t first, stk_error *err) {
    const char *folder = stk_listing_keep(listing, path, length);
    if (folder == NULL || !STK_RESERVE(s->roots, s->root_capacity, s->root_count + 1)) {
        return STK_FAIL_MEMORY(err, "the folders of the pictures");
    }
    size_t end = first;
    while (end < s->pictures.count &&
           (length == 0 || (strncmp(s->pictures.paths[end], folder, length) == 0 &&
                            s->pictures.paths[end][length] == '/'))) {
        end++;
    }
    s->roots[s->root_count++] = (stk_root){.folder = folder,
                                           .set = set_of(listing, folder, length),
                                           .first = first,
                                           .count = end - first};
    return STK_OK;
}

/* Whether the folder that ends at `length` may be a root: it lies at the top, or has the name of a
 * set and lies in no other set. */
static bool may_be_root(const stk_listing *listing, const char *path, size_t length, bool many) {
    const char *last = path;
    for (size_t i = 0; i < length; i++) {
        last = path[i] == '/' ? path + i + 1 : last;
    }
    bool named = set_of(listing, path, length) != STK_SET_NONE;
    if (last == path) {
        return named || !many;
    }
    return named && set_of(listing, path, (size_t)(last - path) - 1) == STK_SET_NONE;
}

static stk_status find_roots(stk_survey *s, stk_listing *listing, stk_error *err) {
    const char *before = "";
    size_t folders = 0;
    for (size_t i = 0; i < listing->top.count; i++) {
        folders += listing->top.entries[i].is_dir;
    }
    stk_status status = add_root(s, listing, "", 0, 0, err);
    for (size_t i = 0; status == STK_OK && i < s->pictures.count; i++) {
        const char *path = s->pictures.paths[i];
        for (size_t at = 0; status == STK_OK && path[at] != '\0'; at++) {
            bool is_new = path[at] == '/' && strncmp(path, before, at + 1) != 0;
            if (is_new && may_be_root(listing, path, at, folders > MOST_FOLDERS)) {
                status = add_root(s, listing, path, at, i, err);
            }
        }
        before = path;
    }
    return status;
}

/* Whether the folder of the training set, or the location, has pictures in folders alone. */
static bool has_class_folders(const stk_survey *s, const stk_listing *listing) {
    const char *folder = listing->sets[STK_SET_TRAIN].name;
    size_t skip = folder != NULL ? strlen(folder) + 1 : 0;
    size_t folders = 0;
    const char *before = "";
    for (size_t i = 0; i < s->pictures.count; i++) {
        const char *path = s->pictures.paths[i];
        if (folder != NULL && (strncmp(path, folder, skip - 1) != 0 || path[skip - 1] != '/')) {
            continue;
        }
        path += skip;
        size_t length = strcspn(path, "/");
        if (path[length] == '\0') {
            return false;
        }
        if (folder == NULL && set_of(listing, path, length) != STK_SET_NONE) {
            continue;
        }
        folders += strncmp(path, before, length + 1) != 0;
        before = path;
    }
    return folders >= 2;
}

stk_status stk_survey_make(stk_survey *s, stk_listing *listing, stk_error *err) {
    memset(s, 0, sizeof *s);
    listing->samples_below = (stk_first_names){0};
    stk_status status = stk_pictures_scan(listing, "", NULL, &s->pictures, err);
    STK_THEN(status, find_roots(s, listing, err));
    s->class_folders = has_class_folders(s, listing);
    for (size_t i = 0; status == STK_OK && i < s->pictures.table_count; i++) {
        stk_template_note(listing, s->pictures.tables[i]);
    }
    if (status != STK_OK) {
        stk_survey_free(s);
    }
    return status;
}

void stk_survey_free(stk_survey *s) {
    stk_pictures_free(&s->pictures);
    stk_mem_free(s->roots);
    memset(s, 0, sizeof *s);
}

/* ---- views ---- */

stk_status stk_survey_view(const stk_survey *s, stk_listing *listing, const stk_root *root,
                           stk_set_kind set, stk_pictures *view, stk_error *err) {
    size_t last = 0; /* bytes of the folder of the picture before */
    stk_set_kind its_set = STK_SET_NONE;
    memset(view, 0, sizeof *view);
    view->folder = root->folder;
    view->paths = stk_mem_new(root->count, sizeof *view->paths);
    if (view->paths == NULL) {
        return STK_FAIL_MEMORY(err, "the list of pictures");
    }
    view->capacity = root->count;
    for (size_t i = root->first; i < root->first + root->count; i++) {
        const char *path = s->pictures.paths[i];
        size_t length = (size_t)(stk_path_base(path) - path);
        bool same = i > root->first && length == last &&
                    strncmp(path, s->pictures.paths[i - 1], length) == 0;
        if (!same && root->set == STK_SET_NONE) {
            its_set = set_of(listing, path, length > 0 ? length - 1 : 0);
        }
        last = length;
        if (its_set == STK_SET_NONE || its_set == set) {
            view->paths[view->count++] = path;
        }
    }
    stk_status status = stk_pictures_index(listing, view, err);
    if (status != STK_OK) {
        stk_pictures_free(view);
    }
    return status;
}

/* ---- matching ---- */

/* How good a root is if all else is equal; less is better. */
static int rank_of(const stk_listing *listing, const stk_root *root, stk_set_kind set) {
    const char *const *usual = set == STK_SET_TEST ? usual_test : usual_train;
    int count = set == STK_SET_TEST ? (int)STK_COUNT(usual_test) : (int)STK_COUNT(usual_train);
    const char *named = listing->sets[set].name;
    for (int i = 0; i < count; i++) {
        if (stk_str_equal_nocase(root->folder, usual[i])) {
            return i;
        }
    }
    return named != NULL && stk_str_equal(root->folder, named) ? count
           : root->set == set                                  ? count + 1
           : root->folder[0] != '\0'                           ? count + 2
                                                               : count + 3;
}

/* Pictures of these kinds take long to decode: others are preferred where both are there. */
static bool is_dear(const stk_pictures *view) {
    const char *ext = view->count > 0 ? stk_picture_extension(view->paths[0]) : NULL;
    return ext != NULL && (ext[1] == 'd' || ext[1] == 'n'); /* .dcm and the like, .npy */
}

/* A root together with what its trial found. */
typedef struct trial {
    stk_match match;
    size_t points; /* two for a row that finds a picture of its own, one where several fit */
    bool dear;
} trial;

/* The pictures right in the folder that an id names, which are a range of the view. */
static stk_found find_folder(const stk_pictures *view, const char *id, size_t *first,
                             size_t *count) {
    size_t length = strlen(id);
    size_t low = 0;
    size_t high = view->count;
    while (low < high) { /* the first picture not before "id/" */
        size_t middle = low + (high - low) / 2;
        const char *below = stk_pictures_below(view, middle);
        int order = strncmp(below, id, length);
        bool before = order < 0 || (order == 0 && (unsigned char)below[length] < '/');
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    *first = low;
    *count = 0;
    while (low + *count < view->count) {
        const char *below = stk_pictures_below(view, low + *count);
        if (strncmp(below, id, length) != 0 || below[length] != '/') {
            break;
        }
        ++*count;
    }
    return *count > 0 ? STK_FOUND_ONE : STK_FOUND_NONE;
}

stk_found stk_match_find(const stk_listing *listing, const stk_match *match, const char *id,
                         size_t *first, size_t *count, size_t *other) {
    *count = 1;
    if (match->whole) {
        return find_folder(&match->view, id, first, count);
    }
    stk_found found = stk_pictures_find(listing, &match->view, id, first, other);
    return found == STK_FOUND_NONE && match->by_number
               ? stk_pictures_find_number(&match->view, id, first, other)
               : found;
}

/* Whether the rows that are tried have numbers in the column, and no number twice. */
static stk_status has_own_numbers(const stk_csv *csv, size_t column, bool *counts, stk_error *err) {
    stk_map seen = {0};
    size_t step = csv->rows / TRIED_ROWS + 1;
    bool ok = true;
    *counts = csv->rows > 0;
    for (size_t row = 0; ok && *counts && row < csv->rows; row += step) {
        const char *id = stk_csv_cell(csv, row, column);
        *counts = id[0] != '\0' && id[strspn(id, "0123456789")] == '\0';
        bool added = true;
        ok = stk_map_add(&seen, id, row, &added);
        *counts = *counts && added;
    }
    stk_map_free(&seen);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the ids of a table");
}

/* How well a column names pictures: two points for a row that finds one of its own, a point for
 * several that fit. Ages, too, may be names of pictures, but of few. */
static size_t try_column(const stk_listing *listing, const stk_match *match, const stk_csv *csv,
                         size_t column, size_t *hits) {
    size_t found_before[TRIED_ROWS];
    size_t own = 0;
    size_t points = 0;
    size_t pictures = 0;
    size_t step = csv->rows / TRIED_ROWS + 1;
    *hits = 0;
    for (size_t row = 0; row < csv->rows; row += step) {
        size_t first;
        size_t count;
        size_t other;
        const char *id = stk_csv_cell(csv, row, column);
        stk_found found = stk_match_find(listing, match, id, &first, &count, &other);
        points += found == STK_FOUND_SEVERAL;
        *hits += found == STK_FOUND_ONE;
        pictures += found == STK_FOUND_ONE ? count : 0;
        if (found == STK_FOUND_ONE && !stk_table_is_in(found_before, own, first)) {
            found_before[own++] = first;
            points += 2;
        }
    }
    /* A table about classes names folders, too: with many pictures each, and under a label's name.
     */
    bool classes = match->whole && (stk_table_is_label_name(csv->header[column]) ||
                                    pictures > MOST_TOGETHER * *hits);
    size_t rows = (csv->rows + step - 1) / step;
    bool too_few = match->by_number &&
                   ((double)*hits < NEARLY_ALL * (double)rows ||
                    (double)csv->rows < ROWS_OF_PICTURES * (double)match->view.by_number.count);
    return classes || too_few ? 0 : points;
}

/* Finds the column with the most hits, of those that may be it; one with a usual name is preferred.
 */
static void try_columns(const stk_listing *listing, trial *t, const stk_csv *csv,
                        const bool *may_be) {
    bool usual = false;
    t->match.column = SIZE_MAX;
    size_t step = csv->rows / TRIED_ROWS + 1;
    t->match.tried = (csv->rows + step - 1) / step;
    for (size_t c = 0; c < csv->columns; c++) {
        size_t hits;
        if (!may_be[c]) {
            continue;
        }
        size_t points = try_column(listing, &t->match, csv, c, &hits);
        bool is_usual = stk_table_is_id_name(csv->header[c]);
        double needed = (double)t->points * (is_usual && !usual ? NEARLY_AS_GOOD : 1);
        bool over = usual && !is_usual ? NEARLY_AS_GOOD * (double)points > (double)t->points
                                       : (double)points > needed;
        if (points > 0 && (over || (is_usual && !usual && (double)points >= needed))) {
            t->points = points;
            t->match.column = c;
            t->match.hits = hits;
            usual = is_usual;
        }
    }
}

/* Orders the roots that may hold pictures of the set by rank; returns their number. */
static size_t order_roots(const stk_survey *s, const stk_listing *listing, stk_set_kind set,
                          const stk_root **order) {
    size_t count = 0;
    for (size_t i = 0; i < s->root_count; i++) {
        const stk_root *root = &s->roots[i];
        if (root->set != STK_SET_NONE && root->set != set) {
            continue;
        }
        size_t at = count++;
        int rank = rank_of(listing, root, set);
        for (; at > 0 && rank_of(listing, order[at - 1], set) > rank; at--) {
            order[at] = order[at - 1];
        }
        order[at] = root;
    }
    return count;
}

static bool is_better(const trial *a, const trial *b) {
    if (a->points == 0 || b->points == 0 || a->dear == b->dear) {
        return a->points > b->points;
    }
    /* The cheaper pictures need not be all there, but nearly. */
    return b->dear ? (double)a->points > NEARLY_AS_GOOD * (double)b->points
                   : NEARLY_AS_GOOD * (double)a->points > (double)b->points;
}

/* How the ids of a column may lead to pictures, in the order in which it is tried. */
typedef enum way { BY_NAME, BY_FOLDER, BY_NUMBER, WAYS } way;

/* Where and how the pictures of a table are looked for. */
typedef struct picture_search {
    const stk_survey *survey;
    stk_listing *listing;
    const stk_csv *csv;
    stk_set_kind set;
    const stk_root **order; /* owned: the likeliest first */
    size_t count;
    bool *may_be; /* owned: columns that may name pictures */
    trial best;   /* owned */
    bool any;
} picture_search;

/* Tries all roots in one way. */
static stk_status try_roots(picture_search *s, way how, stk_error *err) {
    stk_status status = STK_OK;
    bool full = false;
    for (size_t i = 0; status == STK_OK && !full && i < s->count; i++) {
        trial t = {.match = {.whole = how == BY_FOLDER, .by_number = how == BY_NUMBER}};
        status = stk_survey_view(s->survey, s->listing, s->order[i], s->set, &t.match.view, err);
        if (status == STK_OK && how == BY_NUMBER) {
            status = stk_pictures_index_numbers(&t.match.view, s->set, err);
        }
        if (status != STK_OK) {
            stk_match_free(&t.match);
            break;
        }
        try_columns(s->listing, &t, s->csv, s->may_be);
        t.dear = is_dear(&t.match.view);
        if (!s->any || is_better(&t, &s->best)) {
            stk_match_free(&s->best.match);
            s->best = t;
            s->any = true;
        } else {
            stk_match_free(&t.match);
        }
        full = s->best.points > 0 && s->best.points >= 2 * s->best.match.tried && !s->best.dear;
    }
    return status;
}

/* Whether another way is worth a trial after those before. Folders are tried unless most rows find
 * a picture: products have ids, too, that are names of pictures by chance ("0" and 0.jpg). Where
 * names lead half of the rows to a picture, numbers may only complete the same column: a column
 * that counts the rows fits any pictures that are counted. */
static stk_status is_worth(picture_search *s, way how, bool *worth, stk_error *err) {
    size_t tried = s->best.match.tried;
    stk_status status = STK_OK;
    *worth = how == BY_NAME || (how == BY_FOLDER && s->best.points <= tried);
    if (how != BY_NUMBER || (double)s->best.points >= 2 * NEARLY_ALL * (double)tried) {
        return STK_OK;
    }
    for (size_t c = 0; status == STK_OK && c < s->csv->columns; c++) {
        s->may_be[c] = s->may_be[c] && (s->best.points < tried ||
                                        (!s->best.match.whole && c == s->best.match.column));
        if (s->may_be[c]) {
            status = has_own_numbers(s->csv, c, &s->may_be[c], err);
            *worth = *worth || s->may_be[c];
        }
    }
    return status;
}

stk_status stk_survey_match(const stk_survey *survey, stk_listing *listing, const stk_csv *csv,
                            stk_set_kind set, size_t wanted, const char *not_wanted,
                            stk_match *match, stk_error *err) {
    picture_search s = {.survey = survey,
                        .listing = listing,
                        .csv = csv,
                        .set = set,
                        .order = stk_mem_new(survey->root_count, sizeof *s.order),
                        .may_be = stk_mem_new(csv->columns, sizeof *s.may_be),
                        .best.match.column = SIZE_MAX};
    stk_status status = s.order != NULL && s.may_be != NULL
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, "the folders of the pictures");
    if (status == STK_OK) {
        s.count = order_roots(survey, listing, set, s.order);
    }
    for (size_t c = 0; status == STK_OK && c < csv->columns; c++) {
        s.may_be[c] =
            (wanted == SIZE_MAX || c == wanted) && !stk_table_is_named(csv, not_wanted, c);
    }
    for (way how = BY_NAME; status == STK_OK && how < WAYS; how++) {
        bool worth = false;
        status = is_worth(&s, how, &worth, err);
        if (status == STK_OK && worth) {
            status = try_roots(&s, how, err);
        }
    }
    stk_mem_free(s.order);
    stk_mem_free(s.may_be);
    if (status != STK_OK) {
        stk_match_free(&s.best.match);
        return status;
    }
    s.best.match.whole = s.best.match.whole && s.best.points > 0;
    *match = s.best.match;
    return STK_OK;
}

stk_status stk_match_use_numbers(stk_match *match, const stk_listing *listing, const stk_csv *csv,
                                 size_t column, stk_set_kind set, stk_error *err) {
    size_t by_name = 0;
    size_t by_number = 0;
    bool counts = false;
    try_column(listing, match, csv, column, &by_name);
    stk_status status = has_own_numbers(csv, column, &counts, err);
    if (status != STK_OK || !counts) {
        return status;
    }
    status = stk_pictures_index_numbers(&match->view, set, err);
    match->by_number = true;
    match->by_number = status == STK_OK &&
                       try_column(listing, match, csv, column, &by_number) > 0 &&
                       by_number > by_name;
    return status;
}

void stk_match_tell(const stk_match *match, const stk_listing *listing, const stk_csv *csv,
                    const char *file) {
    for (size_t row = 0; match->by_number && row < csv->rows; row++) {
        const char *id = stk_csv_cell(csv, row, match->column);
        size_t first;
        size_t other;
        if (stk_pictures_find(listing, &match->view, id, &first, &other) == STK_FOUND_NONE &&
            stk_pictures_find_number(&match->view, id, &first, &other) == STK_FOUND_ONE) {
            char what[400];
            char why[400];
            snprintf(what, sizeof what, "pictures of %.200s by their numbers", file);
            snprintf(why, sizeof why, "no picture is called %.60s, and only %.200s ends with it",
                     id, match->view.paths[first]);
            stk_events_decision(listing->events, what, why);
            return;
        }
    }
}

void stk_match_free(stk_match *match) {
    stk_pictures_free(&match->view);
}
