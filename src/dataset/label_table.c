/* label_table.c - tries the tables of a location, the likeliest first. */
#include "dataset/label_table.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/table_or_folders.h"

/* Ids of the sample submission that are looked for in a test table. */
#define TRIED_IDS 200

/* The share of them that it must have. */
#define NEARLY_ALL 0.9

/* Words in the names of tables that hold labels. */
static const char *const label_words[] = {"labels",  "label",   "annotations", "annotation",
                                          "targets", "classes", NULL};

/* Words in the names of tables that are parts of others. */
static const char *const part_words[] = {"example", "examples", "tiny", "small", NULL};

/* Usual names, the likeliest first. */
static const char *const table_names[] = {"train.csv",       "labels.csv", "train_labels.csv",
                                          "trainLabels.csv", "train.tsv",  "train.json",
                                          "train.jsonl",     NULL};

/* The order in which tables are tried. */
typedef enum turn { USUAL, OF_SET, OTHER, BESIDE_FOLDERS, NEVER, TURNS } turn;

const char *stk_kaggle_table(const stk_listing *listing) {
    return stk_listing_entry(listing, table_names, false);
}

/* Whether a table is of this set, and no sample submission. */
static bool is_of_set(const char *file, stk_set_kind set) {
    bool packed;
    return stk_set_of_table(file) == set && !stk_template_is_name(stk_path_base(file), &packed);
}

/* Whether a picture has the same name but for the ending: the file is a note on that picture. */
static bool is_note(const stk_survey *survey, const char *path) {
    const stk_pictures *all = &survey->pictures;
    const char *dot = strrchr(path, '.');
    size_t length = dot != NULL ? (size_t)(dot - path) + 1 : 0; /* with the dot */
    size_t low = 0;
    size_t high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool before = strncmp(all->paths[middle], path, length) < 0;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return length > 0 && low < all->count && strncmp(all->paths[low], path, length) == 0;
}

static turn turn_of(const stk_survey *survey, const char *path) {
    stk_set_kind set = stk_set_of_table(path);
    bool packed;
    if (stk_template_is_name(stk_path_base(path), &packed) || set == STK_SET_TEST ||
        set == STK_SET_VAL || is_note(survey, path)) {
        return NEVER;
    }
    bool top = strchr(path, '/') == NULL;
    bool part = stk_has_word_of(path, part_words);
    if (set == STK_SET_TRAIN && !part) {
        return OF_SET;
    }
    return !top ? NEVER : survey->class_folders ? BESIDE_FOLDERS : OTHER;
}

bool stk_match_fits(const stk_match *match) {
    return match->hits > 0 && 2 * match->hits >= match->tried;
}

void stk_label_table_free(stk_label_table *t) {
    if (t->file != NULL) {
        stk_csv_free(&t->csv);
        stk_json_table_info_free(&t->info);
        stk_match_free(&t->match);
    }
    memset(t, 0, sizeof *t);
}

static bool has_label_column(const stk_csv *csv) {
    for (size_t i = 0; i < csv->columns; i++) {
        if (stk_table_is_label_name(csv->header[i]) ||
            stk_str_equal(csv->header[i], "category_id")) {
            return true;
        }
    }
    return false;
}

/* Whether a JSON file has boxes or masks, and no labels beside them: what a detector has found. */
static bool is_boxes_alone(const stk_label_table *t) {
    return (t->info.has_boxes || t->info.has_masks) && !has_label_column(&t->csv);
}

/* Reads one table. One that cannot be read, or has boxes instead of labels, counts as none unless
 * it has a usual name. */
static stk_status read_cells(stk_label_table *t, const stk_listing *listing, const char *file,
                             stk_set_kind set, bool usual, stk_error *err) {
    stk_error why = {0};
    memset(t, 0, sizeof *t);
    stk_status status = stk_listing_table(listing, file, &t->csv, &t->info, &why);
    if (status == STK_ERR_DATA && !usual) {
        return STK_OK;
    }
    if (status != STK_OK) {
        return STK_FAIL(err, status, "%s", why.message);
    }
    if (set != STK_SET_TEST && !usual && is_boxes_alone(t)) {
        stk_csv_free(&t->csv);
        stk_json_table_info_free(&t->info);
        return STK_OK;
    }
    t->file = file;
    t->usual = usual;
    stk_csv_trim(&t->csv);
    return STK_OK;
}

/* After a failure to find the pictures. */
static void drop_cells(stk_label_table *t) {
    stk_csv_free(&t->csv);
    stk_json_table_info_free(&t->info);
    memset(t, 0, sizeof *t);
}

/* Reads one table and finds its pictures. */
static stk_status read_table(stk_label_table *t, stk_listing *listing, const stk_survey *survey,
                             const char *file, stk_set_kind set, bool usual, stk_error *err) {
    size_t wanted = SIZE_MAX;
    const stk_dataset_options *options = listing->options;
    stk_status status = read_cells(t, listing, file, set, usual, err);
    if (status != STK_OK || t->file == NULL) {
        return status;
    }
    if (options->id_column != NULL && set == STK_SET_TRAIN) {
        wanted = stk_csv_column(&t->csv, options->id_column);
    }
    status = stk_survey_match(survey, listing, &t->csv, set, wanted,
                              wanted == SIZE_MAX ? options->label_column : NULL, &t->match, err);
    if (status != STK_OK) {
        drop_cells(t);
    }
    return status;
}

stk_status stk_label_table_match(stk_label_table *t, stk_listing *listing, const stk_survey *survey,
                                 stk_set_kind set, size_t id, stk_error *err) {
    stk_match other;
    stk_status status = stk_survey_match(survey, listing, &t->csv, set, id, NULL, &t->match, err);
    if (status != STK_OK || set == STK_SET_TRAIN || t->match.hits == t->match.tried) {
        return status;
    }
    status = stk_survey_match(survey, listing, &t->csv, STK_SET_TRAIN, id, NULL, &other, err);
    if (status != STK_OK) {
        stk_match_free(&t->match);
        return status;
    }
    stk_match worse = other.hits > t->match.hits ? t->match : other;
    t->match = other.hits > t->match.hits ? other : t->match;
    stk_match_free(&worse);
    return STK_OK;
}

/* ---- the training table ---- */

/* Whether the columns that options name are there. */
static bool has_named_columns(const stk_listing *listing, const stk_csv *csv) {
    const stk_dataset_options *o = listing->options;
    return (o->id_column == NULL || stk_csv_column(csv, o->id_column) != SIZE_MAX) &&
           (o->label_column == NULL || stk_table_has_columns(csv, o->label_column));
}

/* Rows that lead to a picture of their own; tables of which a picture has several rows count less
 * than any other. */
static double points_of(const stk_label_table *t) {
    stk_map seen = {0};
    size_t step = t->csv.rows / TRIED_IDS + 1;
    size_t tried = 0;
    size_t new_ids = 0;
    for (size_t row = 0; row + 1 < t->csv.rows && tried < TRIED_IDS; row += step) {
        /* Neighbours: rows of one picture mostly stand together. */
        bool added = true;
        const char *id = stk_csv_cell(&t->csv, row, t->match.column);
        const char *next = stk_csv_cell(&t->csv, row + 1, t->match.column);
        bool repeats = stk_str_equal(id, next);
        if (!stk_map_add(&seen, id, row, &added)) {
            break;
        }
        tried++;
        new_ids += added && !repeats;
    }
    stk_map_free(&seen);
    double rows = (double)t->csv.rows * (double)t->match.hits / (double)t->match.tried;
    double labels = stk_has_word_of(t->file, label_words) ? 1.01 : 1;
    labels += has_label_column(&t->csv) ? 0.01 : 0;
    return (10 * new_ids >= 9 * tried ? rows : rows * 1e-9) * labels;
}

/* Replaces the best table so far by a better one, and frees the other. */
static void keep_better(stk_label_table *best, double *points, stk_label_table *t) {
    double its = t->file != NULL && stk_match_fits(&t->match) ? points_of(t) : 0;
    if (its > *points) {
        stk_label_table_free(best);
        *best = *t;
        *points = its;
    } else {
        stk_label_table_free(t);
    }
}

/* Whether a table counts: where pictures lie in class folders, only one that tells more than these,
 * or that has the columns which options name. */
static stk_status counts_here(const stk_label_table *t, const stk_listing *listing, turn now,
                              bool *counts, stk_error *err) {
    const stk_dataset_options *o = listing->options;
    *counts = has_named_columns(listing, &t->csv);
    if (!*counts || now != BESIDE_FOLDERS || o->label_column != NULL) {
        return STK_OK;
    }
    *counts = stk_match_fits(&t->match);
    return *counts ? stk_table_beats_folders(t, listing, counts, err) : STK_OK;
}

/* Keeps the best one of the tables whose turn it is. */
static stk_status try_tables(stk_label_table *best, stk_listing *listing, const stk_survey *survey,
                             turn now, const char *except, stk_error *err) {
    stk_status status = STK_OK;
    double points = 0;
    for (size_t i = 0; status == STK_OK && i < survey->pictures.table_count; i++) {
        const char *file = survey->pictures.tables[i];
        stk_label_table t;
        bool counts = false;
        if (turn_of(survey, file) != now || (except != NULL && stk_str_equal(file, except))) {
            continue;
        }
        status = read_table(&t, listing, survey, file, STK_SET_TRAIN, false, err);
        if (status == STK_OK && t.file != NULL) {
            status = counts_here(&t, listing, now, &counts, err);
        }
        if (counts) {
            keep_better(best, &points, &t);
        } else {
            stk_label_table_free(&t);
        }
    }
    return status;
}

stk_status stk_label_table_find(stk_label_table *best, stk_listing *listing,
                                const stk_survey *survey, stk_error *err) {
    stk_label_table usual = {0};
    const char *usual_name = stk_kaggle_table(listing);
    stk_status status = STK_OK;
    memset(best, 0, sizeof *best);
    if (usual_name != NULL) {
        status = read_table(&usual, listing, survey, usual_name, STK_SET_TRAIN, true, err);
        if (status != STK_OK ||
            (stk_match_fits(&usual.match) && has_named_columns(listing, &usual.csv))) {
            *best = usual;
            return status;
        }
    }
    for (turn now = OF_SET; status == STK_OK && best->file == NULL && now < NEVER; now++) {
        status = try_tables(best, listing, survey, now, usual_name, err);
    }
    if (best->file == NULL && status == STK_OK) {
        *best = usual; /* for the sentence that says what does not fit */
    } else {
        stk_label_table_free(&usual);
    }
    return status;
}

/* ---- the table of validation rows ---- */

stk_status stk_label_table_find_val(stk_label_table *best, stk_listing *listing,
                                    const stk_survey *survey, const char *id_name, stk_error *err) {
    stk_status status = STK_OK;
    memset(best, 0, sizeof *best);
    for (size_t i = 0; status == STK_OK && best->file == NULL && i < survey->pictures.table_count;
         i++) {
        const char *file = survey->pictures.tables[i];
        stk_label_table t;
        if (!is_of_set(file, STK_SET_VAL) || is_note(survey, file)) {
            continue;
        }
        status = read_cells(&t, listing, file, STK_SET_VAL, false, err);
        size_t id = t.file != NULL ? stk_csv_column(&t.csv, id_name) : SIZE_MAX;
        if (status != STK_OK || id == SIZE_MAX || t.csv.rows == 0) {
            stk_label_table_free(&t);
            continue;
        }
        status = stk_label_table_match(&t, listing, survey, STK_SET_VAL, id, err);
        if (status == STK_OK) {
            *best = t;
        } else {
            drop_cells(&t);
        }
    }
    return status;
}

/* ---- the table of test rows ---- */

/* The share of the sample's ids that a column has. */
static stk_status share_of_ids(const stk_csv *csv, size_t column, const stk_csv *sample,
                               size_t sample_id, double *share, stk_error *err) {
    stk_map values = {0};
    size_t step = sample->rows / TRIED_IDS + 1;
    size_t tried = 0;
    size_t found = 0;
    bool added;
    bool ok = true;
    for (size_t row = 0; ok && row < csv->rows; row++) {
        ok = stk_map_add(&values, stk_csv_cell(csv, row, column), row, &added);
    }
    for (size_t row = 0; ok && row < sample->rows; row += step) {
        tried++;
        found += stk_map_find(&values, stk_csv_cell(sample, row, sample_id), NULL);
    }
    stk_map_free(&values);
    *share = tried > 0 ? (double)found / (double)tried : 0;
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the ids of the test rows");
}

/* The column of ids of a test table; SIZE_MAX: it has none. */
static stk_status find_key(const stk_label_table *t, const stk_csv *sample, size_t sample_id,
                           const char *id_name, size_t *key, stk_error *err) {
    stk_status status = STK_OK;
    double best = 0;
    *key = SIZE_MAX;
    if (sample == NULL) {
        *key = stk_csv_column(&t->csv, id_name);
        *key = *key == SIZE_MAX ? t->match.column : *key;
        return STK_OK;
    }
    size_t same = stk_csv_column(&t->csv, sample->header[sample_id]);
    for (size_t c = 0; status == STK_OK && best < 1 && c <= t->csv.columns; c++) {
        size_t column = c == 0 ? same : c - 1; /* the one with the same name first */
        double share = 0;
        if (column != SIZE_MAX) {
            status = share_of_ids(&t->csv, column, sample, sample_id, &share, err);
        }
        if (share > best && share >= NEARLY_ALL) {
            best = share;
            *key = column;
        }
    }
    return status;
}

stk_status stk_label_table_find_test(stk_label_table *best, stk_listing *listing,
                                     const stk_survey *survey, const stk_csv *sample,
                                     size_t sample_id, const char *id_name, size_t *key,
                                     stk_error *err) {
    stk_status status = STK_OK;
    memset(best, 0, sizeof *best);
    *key = SIZE_MAX;
    for (size_t i = 0; status == STK_OK && best->file == NULL && i < survey->pictures.table_count;
         i++) {
        const char *file = survey->pictures.tables[i];
        stk_label_table t;
        if (!is_of_set(file, STK_SET_TEST)) {
            continue;
        }
        status = read_table(&t, listing, survey, file, STK_SET_TEST, false, err);
        if (status == STK_OK && t.file != NULL) {
            status = find_key(&t, sample, sample_id, id_name, key, err);
        }
        if (status == STK_OK && t.file != NULL && *key != SIZE_MAX) {
            *best = t;
        } else {
            stk_label_table_free(&t);
        }
    }
    return status;
}
