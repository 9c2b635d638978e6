/*
 * listing.h - only for this room: the state of one stk_dataset_open() call, and the functions that
 * the layouts share.
 *
 * A stk_listing lives as long as the call and fills the data set step by step; after a failure the
 * caller frees the data set. Until stk_listing_finish() sorts the classes, a label is the order in
 * which its class was first found. Threads: one.
 */
#ifndef STK_DATASET_LISTING_H
#define STK_DATASET_LISTING_H

#include "base/files/file.h"
#include "base/map.h"
#include "base/text/csv.h"
#include "base/text/text_blocks.h"
#include "dataset/dataset.h"
#include "dataset/json_table.h"
#include "storage/data_folders.h"

#define STK_EXT_MAX 8

struct stk_dataset_texts {
    stk_text_blocks blocks; /* every text */
    const char **classes;   /* stk_dataset.classes points to it */
    const char **parts;     /* stk_dataset.parts points to it */
    const char **header;    /* stk_dataset.template_header points to it */
};

/* A count and the first three names, for messages about many things. */
typedef struct stk_first_names {
    size_t count;
    const char *first[3]; /* borrowed */
} stk_first_names;

/* Which set a folder holds. */
typedef enum stk_set_kind {
    STK_SET_NONE,
    STK_SET_TRAIN,
    STK_SET_VAL,
    STK_SET_TEST,
    STK_SET_KINDS
} stk_set_kind;

/* The folder of one set; names are borrowed from stk_listing.top. */
typedef struct stk_set_folder {
    const char *name;           /* NULL: there is none */
    bool usual;                 /* it has the set's usual name */
    bool told;                  /* the unusual name was reported */
    stk_first_names candidates; /* without a usual name: all folders that could be it */
} stk_set_folder;

/* A JSON file whose pictures are shown beside it. */
typedef struct stk_unfolded {
    const char *path;  /* below the location; a text of the data set */
    const char *table; /* the file with its other fields; a text of the data set */
} stk_unfolded;

typedef struct stk_listing {
    const stk_dataset_options *options; /* borrowed */
    const stk_events *events;           /* borrowed, may be NULL */
    stk_dataset *dataset;               /* being made */
    stk_dir_list top;                   /* entries of the root folder */
    stk_skipped_folders skipped;        /* folders that Stoker wrote; reported at the end */
    stk_set_folder sets[STK_SET_KINDS];
    stk_unfolded *unfolded; /* owned */
    size_t unfolded_count;
    size_t unfolded_capacity;
    stk_first_names samples_below; /* sample submissions in folders of the location */
    bool told_sample;              /* that one of them is used was told */
    const char *found_group;       /* the column that divides without being named; NULL: none */
    const char *positive;          /* the positive class, until classes are sorted; NULL: none */
    const char *stranger;          /* the class of strangers; NULL: none */
    char ext[STK_EXT_MAX];         /* ".jpg" of --image-ext; "": every picture counts */
    stk_map class_labels;          /* class name to label */
    stk_map part_numbers;          /* value of the column that divides, to part */
    size_t class_capacity;
    size_t part_capacity;
    size_t train_capacity;
    size_t val_capacity;
    size_t test_capacity;
    size_t row_capacity;
    int all_classes; /* classes before the subset was taken */
} stk_listing;

void stk_first_names_add(stk_first_names *few, const char *name);

/* "a, b, c" or "a, b, c ..." into buf; returns buf. */
const char *stk_first_names_text(const stk_first_names *few, char *buf, size_t size);

/* "s" for all counts but one. */
const char *stk_plural(size_t count);

/* Copies a text into the data set; NULL without memory. */
char *stk_listing_keep(stk_listing *listing, const char *text, size_t length);

/* Copies "folder/name" into the data set, or the name alone when folder is "". */
char *stk_listing_join(stk_listing *listing, const char *folder, const char *name);

/* The full name of something below the root, for people; NULL without memory; stk_mem_free. */
char *stk_listing_full(const stk_listing *listing, const char *below);

/*
 * Reads a table below the root: CSV, cells with other separators, or JSON. What a JSON file holds
 * besides goes into *info, unless that is NULL; stk_json_table_info_free. STK_ERR_DATA: it is no
 * table.
 */
STK_CHECKED stk_status stk_listing_table(const stk_listing *listing, const char *path, stk_csv *csv,
                                         stk_json_table_info *info, stk_error *err);

/*
 * Where no file of the location is a picture: shows the pictures that JSON files hold as numbers.
 */
STK_CHECKED stk_status stk_listing_unfold(stk_listing *listing, stk_error *err);

/* The folder in which the data set lies where the location holds nothing else; NULL: the location
 * itself. A line tells of it. The text belongs to the data set. */
STK_CHECKED stk_status stk_listing_find_inner(stk_listing *listing, const char **inner,
                                              stk_error *err);

/* Whether a file's name is that of a table. */
bool stk_table_is_name(const char *name);

/* Whether a file's name is that of JSON. */
bool stk_table_is_json(const char *path);

/*
 * The entry of the top folder with one of the names (NULL ends them); exact spelling first, then
 * case aside, the earlier name first. NULL when there is none.
 */
const char *stk_listing_entry(const stk_listing *listing, const char *const *names, bool is_dir);

/* The label of a class; a new class is added. */
STK_CHECKED stk_status stk_listing_class(stk_listing *listing, const char *name, int *label,
                                         stk_error *err);

STK_CHECKED stk_status stk_listing_add(stk_sample_list *list, size_t *capacity, stk_sample sample,
                                       stk_error *err);

STK_CHECKED stk_status stk_listing_add_row(stk_listing *listing, stk_row row, stk_error *err);

/* " (only .png files count, as --image-ext says)" or "", into buf; returns buf. */
const char *stk_listing_ext_note(const stk_listing *listing, char *buf, size_t size);

/* "; there are videos (a/7.mp4), which ..." of a location without pictures, or "", into buf;
 * returns buf. */
const char *stk_listing_other_kinds(stk_listing *listing, char *buf, size_t size);

/* Lists a folder without folders that are no data. *by_stoker: Stoker wrote it, and the list is
 * empty. */
STK_CHECKED stk_status stk_listing_dir(stk_listing *listing, const char *folder, stk_dir_list *list,
                                       bool *by_stoker, stk_error *err);

/* Finds the folders of the sets in the root folder. */
void stk_listing_find_sets(stk_listing *listing);

/* The folder of a set, or NULL; emits an event once when its name is unusual. */
const char *stk_listing_set(stk_listing *listing, stk_set_kind kind);

/* Whether a folder of the root has the name of a set, so that it is no class. */
bool stk_listing_is_set(const stk_listing *listing, const char *name);

/* The set that a folder's name clearly says, or none. At the top of the location the folders that
 * were found for the sets count, too. */
stk_set_kind stk_set_of(const char *name);
stk_set_kind stk_listing_set_at_top(const stk_listing *listing, const char *name);

/* The set that a word means, case aside, or none. *weak: it means other things as well. */
stk_set_kind stk_set_word(const char *word, bool *weak);

/* The set that the words of a table's path name; where they name several, training comes before
 * validation, and test beside training means none. */
stk_set_kind stk_set_of_table(const char *path);

/* Sorts by whole path. That is not the order of a folder walk: ' ' sorts before '/', so "a b/x"
 * comes before "a/x". */
void stk_listing_sort(stk_sample_list *list);

/* Whether an entry is a file with the name of an image and, with --image-ext, that extension. */
bool stk_listing_is_picture(const stk_listing *listing, const stk_dir_entry *entry);

/* Sorts the classes by name; labels follow. */
STK_CHECKED stk_status stk_listing_sort_classes(stk_dataset *dataset, stk_error *err);

/* Takes classes out, with their samples; test rows stay and lose the label. One flag per class. */
STK_CHECKED stk_status stk_listing_drop_classes(stk_dataset *dataset, const bool *dropped,
                                                stk_error *err);

/* Keeps as many classes as --classes says. The classes must be sorted. */
STK_CHECKED stk_status stk_subset_classes(stk_listing *listing, stk_error *err);

/* Keeps as many pictures as --per-class and --val-per-class say, and reports the subset. */
STK_CHECKED stk_status stk_subset_pictures(stk_listing *listing, stk_error *err);

/*
 * Sorts the classes, applies --rare-class, takes the subset, checks that there are two classes at
 * least.
 */
STK_CHECKED stk_status stk_listing_finish(stk_listing *listing, stk_error *err);

/* The pictures in and below one folder. */
typedef struct stk_pictures {
    bool any;            /* the first picture is enough */
    bool by_stoker;      /* the folder is one that Stoker wrote: it has no pictures */
    const char *folder;  /* below the root; "": the root itself; belongs to the data set */
    const char **paths;  /* owned array of texts of the data set: below the root, sorted */
    const char **stems;  /* owned array: below the folder and without extension */
    size_t *next;        /* owned: another picture with the same stem; SIZE_MAX ends */
    size_t *next_base;   /* owned: another picture with the same last part of the stem */
    size_t *next_number; /* owned: another picture with the same number; NULL: not indexed */
    bool *used;          /* owned: some row of a table means this picture */
    size_t count;
    size_t capacity;
    const char **tables; /* owned array of texts of the data set: files that may be tables, below
                            the root, sorted; of a scan of the root alone */
    size_t table_count;
    size_t table_capacity;
    stk_map by_stem;   /* the first picture with a stem */
    stk_map by_base;   /* the first picture with a last part of a stem; empty without subfolders */
    stk_map by_folded; /* the first picture whose folded stem is another one */
    stk_map folded_twice; /* another picture with such a folded stem */
    stk_map by_number;    /* the first picture whose name ends with a number */
} stk_pictures;

typedef enum stk_found { STK_FOUND_NONE, STK_FOUND_ONE, STK_FOUND_SEVERAL } stk_found;

/* Looks for any picture of the location. Without one all tables are listed; otherwise nothing of
 * the result counts but that there is one. */
STK_CHECKED stk_status stk_pictures_look(stk_listing *listing, stk_pictures *pictures,
                                         stk_error *err);

/* Lists the pictures below `folder`; `skip` (or NULL) is a folder right in it that is left out. */
STK_CHECKED stk_status stk_pictures_scan(stk_listing *listing, const char *folder, const char *skip,
                                         stk_pictures *pictures, stk_error *err);

/* Makes stems and maps, which stk_pictures_find() needs. */
STK_CHECKED stk_status stk_pictures_index(stk_listing *listing, stk_pictures *pictures,
                                          stk_error *err);
void stk_pictures_free(stk_pictures *pictures);

/*
 * The picture that an id means: with or without extension and subfolder, with the folder's own name
 * in front or not. When it means several, *file and *other are two of them.
 */
stk_found stk_pictures_find(const stk_listing *listing, const stk_pictures *pictures,
                            const char *id, size_t *file, size_t *other);

/* A name in small letters without accents into `out`, which has room for length + 1 bytes. */
void stk_picture_fold(const char *name, size_t length, char *out);

/* Makes the maps that stk_pictures_find_folded() needs, of pictures with stems. */
STK_CHECKED stk_status stk_pictures_index_folded(stk_listing *listing, stk_pictures *pictures,
                                                 stk_error *err);

/* The picture whose stem is the same but for capitals and accents. */
stk_found stk_pictures_find_folded(const stk_pictures *pictures, const char *stem, size_t length,
                                   size_t *file, size_t *other);

/* Makes the map that stk_pictures_find_number() needs, of indexed pictures. Pictures whose names
 * say that they belong to another set than `set` are left out. */
STK_CHECKED stk_status stk_pictures_index_numbers(stk_pictures *pictures, stk_set_kind set,
                                                  stk_error *err);

/* The picture whose name ends with the number that is the id, with any zeros in front. */
stk_found stk_pictures_find_number(const stk_pictures *pictures, const char *id, size_t *file,
                                   size_t *other);

/* The path of a picture below the scanned folder; points into its whole path. */
const char *stk_pictures_below(const stk_pictures *pictures, size_t file);

/* The column that an option names; STK_ERR_USAGE with the nearest name when there is none. */
STK_CHECKED stk_status stk_table_column(const stk_csv *csv, const char *file, const char *flag,
                                        const char *name, size_t *column, stk_error *err);

/* The columns that --label-column names: one, or several with commas between. `columns` has room
 * for all columns of the table. */
STK_CHECKED stk_status stk_table_label_columns(const stk_csv *csv, const char *file,
                                               const char *names, size_t *columns, size_t *count,
                                               stk_error *err);

/* Whether the table has all columns that --label-column names. */
bool stk_table_has_columns(const stk_csv *csv, const char *names);

/* Whether a column is one of those that --label-column names; `names` may be NULL. */
bool stk_table_is_named(const stk_csv *csv, const char *names, size_t column);

/* Whether a column or row is in a list of them. */
bool stk_table_is_in(const size_t *list, size_t count, size_t value);

bool stk_table_is_id_name(const char *name);
bool stk_table_is_label_name(const char *name);

/* "id, label, ..." into buf; returns buf. */
const char *stk_table_names(const stk_csv *csv, char *buf, size_t size);

/*
 * The next word of a name in small letters, or its next number; false at the end. Words end where
 * letters, digits and other characters meet, and where a capital follows a small letter.
 */
#define STK_WORD_MOST 16
bool stk_next_word(const char **at, char word[STK_WORD_MOST]);

/* Whether a name has one of the words; NULL ends them. */
bool stk_has_word_of(const char *name, const char *const *words);

/* Whether the name has a word that columns of labels have: "breed_name". */
bool stk_table_has_label_word(const char *name);

/* Whether a column is called like something that is measured, or like who or where. */
bool stk_table_is_measure_name(const char *name);
bool stk_table_is_group_name(const char *name);

/* The sample submission while a location is listed. */
typedef struct stk_sample_file {
    const char *file; /* its name below the location; NULL: there is none */
    stk_csv csv;      /* owned, where there is one */
    int further;      /* a column that no answer can be made for, and is copied; -1: none */
} stk_sample_file;

/* Finds and reads the sample submission, if there is one. */
STK_CHECKED stk_status stk_testset_open_sample(stk_listing *listing, stk_sample_file *sample,
                                               stk_error *err);
void stk_testset_close_sample(stk_sample_file *sample);

/* The id column of a sample submission. `id_name` is the id column of the labels' table, or NULL.
 */
size_t stk_testset_sample_id(const stk_listing *listing, const stk_csv *csv, const char *id_name);

/* Finds the column that is copied in a sample of three columns, of which the training table has one
 * beside the id: Usage, confidence, a column of texts. A warning tells of it. */
void stk_sample_find_further(stk_sample_file *sample, size_t id, const stk_csv *train,
                             const stk_events *told);

/* The column whose cells the submission copies: one without a name, or a further one; -1: none. */
int stk_template_kept(const stk_sample_file *sample, size_t id_column);

/* Whether a file's name says that it is a sample submission. *packed: it has to be unpacked. */
bool stk_template_is_name(const char *name, bool *packed);

/* The name of the sample submission below the location; NULL: there is none. */
STK_CHECKED stk_status stk_template_find(stk_listing *listing, const char **file, stk_error *err);

/* Notes a table in a folder if its name says that it is a sample submission. */
void stk_template_note(stk_listing *listing, const char *path);

/*
 * Lists the test rows where no table leads to their pictures: those of the sample submission, else
 * the files of the test folder, else none. Where there is no test folder, pictures are looked for
 * everywhere. With `by_class` a folder below the test folder that is called like a class tells the
 * label.
 */
STK_CHECKED stk_status stk_testset_list(stk_listing *listing, const stk_sample_file *sample,
                                        bool by_class, stk_error *err);

/* The same where classes come from folders or names, with what the sample submission asks for. */
STK_CHECKED stk_status stk_testset_of_classes(stk_listing *listing, bool by_class, stk_error *err);

/* How the ids of test rows lead to pictures; see survey.h. */
typedef struct stk_test_source {
    const struct stk_match *match; /* of the pictures */
    const stk_csv *table; /* a table that leads from ids to pictures; NULL: ids name pictures */
    size_t key;           /* its column of ids; an id may be in several rows, then it has several
                             pictures */
    size_t column;        /* its column that names pictures */
    size_t first_record;  /* the record of its first row */
} stk_test_source;

/* Lists the rows of the sample submission. */
STK_CHECKED stk_status stk_testset_from_sample(stk_listing *listing, const stk_sample_file *sample,
                                               size_t id_column, const stk_test_source *source,
                                               bool by_class, stk_error *err);

/* Lists the ids of a test table, each once, where there is no sample submission. */
STK_CHECKED stk_status stk_testset_from_table(stk_listing *listing, const char *file,
                                              const stk_test_source *source, stk_error *err);

/* Whether there is anything that stk_testset_list() would look at. */
STK_CHECKED stk_status stk_testset_exists(stk_listing *listing, bool *exists, stk_error *err);

/* Makes test rows of the pictures; the ids are as short as they can be and still differ. */
STK_CHECKED stk_status stk_testset_from_files(stk_listing *listing, stk_pictures *pictures,
                                              bool by_class, stk_error *err);

/* Reads only the header of the sample submission, if there is one; the rows come from elsewhere. */
STK_CHECKED stk_status stk_testset_header(stk_listing *listing, const char *id_name,
                                          stk_error *err);

/* Refuses folders of masks or boxes beside their pictures, which are no classes. */
STK_CHECKED stk_status stk_places_check(stk_listing *listing, stk_error *err);

/* Whether of two pictures of the same name one lies in a folder of pictures, one in one of masks.
 */
bool stk_places_are_masks(const char *path, const char *other);

STK_CHECKED stk_status stk_folders_list(stk_listing *listing, stk_error *err);

/* Whether the location has class folders: a train folder, or at least two that could be classes. */
STK_CHECKED stk_status stk_folders_exist(const stk_listing *listing, bool *exist, stk_error *err);

/* Whether the location holds WebDataset shards, in which labels lie beside pictures. */
STK_CHECKED stk_status stk_webdataset_exists(stk_listing *listing, bool *exists, stk_error *err);
STK_CHECKED stk_status stk_webdataset_list(stk_listing *listing, stk_error *err);

/*
 * The column of a table whose values stay together, of those that are not taken; SIZE_MAX: none.
 * `test` may be NULL.
 */
STK_CHECKED stk_status stk_groups_find(const stk_csv *train, const stk_csv *test, const bool *taken,
                                       size_t *column, stk_error *err);

/* Where class folders hold originals and versions of the same pictures, and the sample submission
 * takes one number, keeps the versions of each picture together, and
 * makes two classes of them. */
STK_CHECKED stk_status stk_versions_find(stk_listing *listing, const stk_sample_file *sample,
                                         size_t sample_id, stk_error *err);

/* Lists pictures whose names have their class in front of a number; *fits is false, and nothing is
 * listed, where they have not. */
STK_CHECKED stk_status stk_named_classes_list(stk_listing *listing, bool *fits, stk_error *err);

/* Makes rows of single pictures, unless there are rows. */
STK_CHECKED stk_status stk_listing_make_rows(stk_listing *listing, stk_error *err);

/* Notes what is asked for in the data set. */
struct stk_ask;
STK_CHECKED stk_status stk_listing_set_ask(stk_listing *listing, const struct stk_ask *ask,
                                           stk_error *err);

/* Whether pictures are divided one by one, though a column shows groups: --group-column none. */
bool stk_division_is_free(const stk_dataset_options *options);

/* The column that divides the samples, and in *flag the option that names it; NULL: none. */
const char *stk_division_column(const stk_dataset_options *options, const char **flag);

/* Refuses options that contradict each other; called before anything is listed. */
STK_CHECKED stk_status stk_division_check(const stk_dataset_options *options, stk_error *err);

/* STK_ERR_USAGE when a column was named and the layout has no table. */
STK_CHECKED stk_status stk_division_need_table(const stk_listing *listing, stk_error *err);

/* The part of a training sample, by its value in the column; a new value is added. */
STK_CHECKED stk_status stk_division_add(stk_listing *listing, const char *value, int *part,
                                        stk_error *err);

/* Sorts the parts; samples follow. */
STK_CHECKED stk_status stk_division_sort(stk_listing *listing, stk_error *err);

/* After the subset: checks that no given fold has lost all its samples. */
STK_CHECKED stk_status stk_division_finish(const stk_listing *listing, stk_error *err);

/*
 * Distributes groups over `bins`, which get these shares of every class (the shares sum to 1).
 * bin_of has an element for every training sample. The group of a class with one image gets -1: no
 * bin. `folds`: the bins are folds, for messages.
 */
STK_CHECKED stk_status stk_groups_deal(const stk_dataset *dataset, const double *shares, int bins,
                                       bool folds, uint64_t seed, int *bin_of, stk_error *err);

/* Which file of the folder has a usual name of a table of labels; NULL: none. */
const char *stk_kaggle_table(const stk_listing *listing);

/* *fits is false, and nothing is listed, if there is no table of labels, or if no id names a
 * picture but subfolders hold pictures. */
STK_CHECKED stk_status stk_kaggle_list(stk_listing *listing, bool *fits, stk_error *err);

/*
 * Lists the rows of a test table that leads to pictures, alone or through the ids of a sample
 * submission, where nothing tells labels. *fits is false, and nothing is listed, without one.
 */
STK_CHECKED stk_status stk_kaggle_list_test(stk_listing *listing, bool *fits, stk_error *err);

/* Whether the location is a staged data set. */
bool stk_staged_exists(const stk_listing *listing);

/* Lists a staged data set; with `only_test` its test rows alone, without labels. */
STK_CHECKED stk_status stk_staged_list(stk_listing *listing, bool only_test, stk_error *err);

#endif
