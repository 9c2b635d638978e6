/*
 * survey.h - only for this room: all pictures and tables of a location, and where in it the
 * pictures of a table lie.
 *
 * The survey walks the location once. A root is a folder that may hold the pictures of a set:
 * "train", "jpeg/test", or the location itself. A view is the pictures of one root, indexed so that
 * ids find them; it borrows the survey's paths. Threads: one.
 */
#ifndef STK_DATASET_SURVEY_H
#define STK_DATASET_SURVEY_H

#include "dataset/listing.h"

typedef struct stk_root {
    const char *folder;  /* below the location; "": the location itself */
    stk_set_kind set;    /* what its name says, or the name of a folder around it */
    size_t first, count; /* pictures: in stk_survey.pictures */
} stk_root;

typedef struct stk_survey {
    stk_pictures pictures; /* owned: all, without an index */
    bool class_folders; /* the training pictures lie in two folders or more, and none beside them */
    stk_root *roots;    /* owned */
    size_t root_count;
    size_t root_capacity;
} stk_survey; /* starts zeroed */

STK_CHECKED stk_status stk_survey_make(stk_survey *survey, stk_listing *listing, stk_error *err);
void stk_survey_free(stk_survey *survey);

/* Makes and indexes the view of a root. The location itself leaves out the folders of other sets
 * than `set`. Freed with stk_pictures_free(). */
STK_CHECKED stk_status stk_survey_view(const stk_survey *survey, stk_listing *listing,
                                       const stk_root *root, stk_set_kind set, stk_pictures *view,
                                       stk_error *err);

/* A row's pictures: a range of the view. */
typedef struct stk_row_pictures {
    size_t first;
    size_t count; /* 0: there is none */
} stk_row_pictures;

/* Where the pictures of a table lie, and which of its columns names them. */
typedef struct stk_match {
    stk_pictures view; /* owned */
    size_t column;     /* SIZE_MAX: no column names pictures */
    size_t tried;      /* rows that were tried */
    size_t hits;       /* of these, rows that name a picture in that column */
    bool whole;        /* an id names a folder, whose pictures belong together */
    bool by_number;    /* an id that names no picture may be the number in a picture's name */
} stk_match;

/*
 * Finds the root and the column of a table of pictures of this set. `wanted`, unless SIZE_MAX, is
 * the only column that counts; `not_wanted`, unless NULL, names columns that do not count, as
 * --label-column does. Without a hit the view is that of the most usual root.
 */
STK_CHECKED stk_status stk_survey_match(const stk_survey *survey, stk_listing *listing,
                                        const stk_csv *csv, stk_set_kind set, size_t wanted,
                                        const char *not_wanted, stk_match *match, stk_error *err);
void stk_match_free(stk_match *match);

/* Takes numbers for the pictures whose names end with them where nearly all ids of the column mean
 * one, and more than name one. match->view is that of the set. */
STK_CHECKED stk_status stk_match_use_numbers(stk_match *match, const stk_listing *listing,
                                             const stk_csv *csv, size_t column, stk_set_kind set,
                                             stk_error *err);

/* Says that ids are numbers of pictures, with an example; nothing where they are names. */
void stk_match_tell(const stk_match *match, const stk_listing *listing, const stk_csv *csv,
                    const char *file);

/*
 * The pictures that an id means: *count pictures of the view from *first on. More than one only
 * where match->whole. STK_FOUND_SEVERAL: several single pictures fit; *first and *other are two.
 */
stk_found stk_match_find(const stk_listing *listing, const stk_match *match, const char *id,
                         size_t *first, size_t *count, size_t *other);

#endif
