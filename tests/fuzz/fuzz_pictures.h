/*
 * fuzz_pictures.h - what the fuzz targets share whose seeds are files of tests/golden/pictures, and
 * what must hold: as in fuzz_image.h, and also for grey and for six channels.
 */
#ifndef STK_TESTS_FUZZ_PICTURES_H
#define STK_TESTS_FUZZ_PICTURES_H

#include "fuzz_image.h"

/* The files whose names end so, `mutations` mutations of them. The seeds live as long as the
 * program. */
static inline fuzz_plan fuzz_plan_files(const char *ending, uint64_t mutations) {
    static fuzz_seed seeds[FUZZ_MOST_SEEDS];
    const char *folder = STK_GOLDEN_FOLDER "/pictures";
    stk_dir_list list = {0};
    stk_error err = {0};
    size_t count = 0;
    FUZZ_REQUIRE(stk_dir_read(folder, &list, &err) == STK_OK);
    for (size_t i = 0; i < list.count && count < FUZZ_MOST_SEEDS; i++) {
        const char *name = list.entries[i].name;
        size_t length = strlen(name);
        char *path = stk_path_join(folder, name);
        char *bytes = NULL;
        size_t size = 0;
        if (length > strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0) {
            FUZZ_REQUIRE(stk_file_read(path, 0, &bytes, &size, &err) == STK_OK);
            seeds[count++] = (fuzz_seed){bytes, size};
        }
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
    return (fuzz_plan){.seeds = seeds,
                       .count = count,
                       .prefixed = count < FUZZ_PREFIXED ? count : FUZZ_PREFIXED,
                       .mutations = mutations,
                       .large = 10};
}

/* Other numbers of channels fill the square, too, or give a reason. */
static inline void fuzz_channels(const uint8_t *data, size_t size) {
    static const stk_transform transforms[] = {
        {.size = 9, .crop_fraction = 1, .channels = 1},
        {.size = 9, .crop_fraction = 0.8, .channels = 6},
    };
    static uint8_t out[9 * 9 * 6];
    static stk_image_scratch *scratch; /* lives as long as the program */
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++) {
        stk_error err = {0};
        if (scratch == NULL) {
            FUZZ_REQUIRE(stk_image_scratch_new(&scratch, NULL, &err) == STK_OK);
        }
        stk_status status =
            stk_transform_apply(scratch, &transforms[i], data, size, (stk_rng){0}, out, NULL, &err);
        if (status != STK_OK) {
            fuzz_check_failure(status, &err);
        }
    }
}

#endif
