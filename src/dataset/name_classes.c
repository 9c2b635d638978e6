/*
 * name_classes.c - a training folder whose pictures lie side by side and have their class in the
 * name: cat.0.jpg, dog_17.jpg.
 *
 * They may all lie in one folder below it (train/train/cat.0.jpg), as some archives have them. The
 * class is what stands in front of the number. Every picture must have one, and a class must
 * have several: IMG_0001.jpg alone says nothing.
 */
#include "dataset/listing.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* Pictures of a class, on average at least; and so many classes at most. */
#define LEAST_EACH 4
#define MOST_CLASSES 1000

/* The length of the class in a name; 0: there is none. */
static size_t class_length(const char *name) {
    const char *extension = stk_picture_extension(name);
    size_t length = strlen(name) - (extension != NULL ? strlen(extension) : 0);
    size_t end = length;
    while (end > 0 && isdigit((unsigned char)name[end - 1])) {
        end--;
    }
    if (end == length) {
        return 0; /* no number at the end */
    }
    while (end > 0 && !isalpha((unsigned char)name[end - 1])) {
        end--;
    }
    return end > 0 && isalpha((unsigned char)name[0]) ? end : 0;
}

/* The length of the folder of a picture below the scanned one, with its slash; 0: there is none. */
static size_t folder_length(const char *below) {
    const char *slash = strrchr(below, '/');
    return slash != NULL ? (size_t)(slash - below) + 1 : 0;
}

/* Whether all pictures lie side by side and have a class in their names, of which there are
 * several. */
static stk_status judge(const stk_pictures *pictures, bool *fits, stk_error *err) {
    stk_map classes = {0};
    stk_text_blocks texts = {0};
    bool ok = true;
    *fits = pictures->count > 0;
    const char *first = *fits ? stk_pictures_below(pictures, 0) : "";
    size_t folder = folder_length(first);
    for (size_t i = 0; ok && *fits && i < pictures->count; i++) {
        const char *below = stk_pictures_below(pictures, i);
        bool beside = folder_length(below) == folder && strncmp(below, first, folder) == 0;
        size_t length = beside ? class_length(below + folder) : 0;
        bool added;
        *fits = length > 0;
        const char *name = *fits ? stk_text_blocks_keep(&texts, below + folder, length) : NULL;
        ok = !*fits || (name != NULL && stk_map_add(&classes, name, 0, &added));
        *fits = *fits && classes.count <= MOST_CLASSES;
    }
    *fits = *fits && classes.count >= 2 && pictures->count >= LEAST_EACH * classes.count;
    stk_map_free(&classes);
    stk_text_blocks_free(&texts);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the names of the pictures");
}

static stk_status list_set(stk_listing *listing, const stk_pictures *pictures, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < pictures->count; i++) {
        const char *below = stk_pictures_below(pictures, i);
        stk_sample sample = {.path = pictures->paths[i], .id = pictures->paths[i], .record = -1};
        const char *file = stk_path_base(below);
        char *name = stk_listing_keep(listing, file, class_length(file));
        status = name != NULL ? stk_listing_class(listing, name, &sample.label, err)
                              : STK_FAIL_MEMORY(err, "the class names");
        STK_THEN(status, stk_listing_add(&dataset->train, &listing->train_capacity, sample, err));
    }
    return status;
}

stk_status stk_named_classes_list(stk_listing *listing, bool *fits, stk_error *err) {
    const char *folder = listing->sets[STK_SET_TRAIN].name;
    const char *test = listing->sets[STK_SET_TEST].name;
    stk_pictures pictures = {0};
    stk_status status = stk_pictures_scan(listing, folder != NULL ? folder : "",
                                          folder == NULL ? test : NULL, &pictures, err);
    *fits = false;
    STK_THEN(status, judge(&pictures, fits, err));
    if (status == STK_OK && *fits) {
        (void)stk_listing_set(listing, STK_SET_TRAIN); /* says so where its name is unusual */
        stk_events_decision(listing->events, "classes from the names of the pictures",
                            stk_pictures_below(&pictures, 0));
        status = list_set(listing, &pictures, err);
        STK_THEN(status, stk_testset_of_classes(listing, false, err));
    }
    stk_pictures_free(&pictures);
    return status;
}
