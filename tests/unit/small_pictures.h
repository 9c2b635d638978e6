/*
 * small_pictures.h - small JPEG files for the tests of the rooms that load, train and predict.
 *
 * A picture of class c has its own plain colour under a little noise, so that two or three steps of
 * a tiny network learn the classes, and no two pictures are alike.
 */
#ifndef STK_TESTS_SMALL_PICTURES_H
#define STK_TESTS_SMALL_PICTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "dataset/dataset.h"
#include "image/image.h"

#define PICTURE_CLASSES 4

static inline void must(stk_status status, const stk_error *err) {
    if (status != STK_OK) {
        printf("cannot prepare the test: %s\n", err->message);
        exit(1);
    }
}

/* Writes the picture; which one it is derives from (label, number). */
static inline void write_picture(const char *path, int label, int number) {
    static const int colours[PICTURE_CLASSES][3] = {
        {200, 60, 60}, {60, 200, 60}, {60, 60, 200}, {190, 190, 60}};
    stk_error err = {0};
    stk_image image = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    stk_rng rng = stk_rng_make((uint64_t)number, STK_RNG_TEST, 0, (uint64_t)label);
    must(stk_image_new(&image, 20 + (int)stk_rng_below(&rng, 8), 24, &err), &err);
    for (int i = 0; i < image.width * image.height * 3; i++) {
        int value = colours[label % PICTURE_CLASSES][i % 3] + (int)stk_rng_below(&rng, 80) - 40;
        image.pixels[i] = (uint8_t)value;
    }
    must(stk_image_encode_jpeg(&image, 90, &bytes, &size, &err), &err);
    must(stk_file_write(path, bytes, size, &err), &err);
    stk_image_free(&image);
    stk_mem_free(bytes);
}

static inline void write_text(const char *folder, const char *name, const char *text) {
    stk_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    must(stk_file_write(path, text, strlen(text), &err), &err);
}

/* A list of samples with files of its own: number i is p<i>.jpg of class i mod PICTURE_CLASSES. */
typedef struct picture_set {
    char root[256];
    size_t count;
    stk_sample *samples; /* owned, with their paths */
    stk_store *store;    /* owned: the folder, opened */
} picture_set;

static inline picture_set make_pictures(const char *folder, size_t count) {
    picture_set set = {.count = count, .samples = stk_mem_new(count, sizeof(stk_sample))};
    snprintf(set.root, sizeof set.root, "%s", folder);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        char path[320];
        snprintf(name, sizeof name, "p%zu.jpg", i);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        char *copy = stk_mem_strdup(name);
        set.samples[i] =
            (stk_sample){.path = copy, .id = copy, .label = (int)(i % PICTURE_CLASSES)};
        write_picture(path, set.samples[i].label, (int)i);
    }
    stk_error err = {0};
    must(stk_store_open(&set.store, folder, NULL, NULL, &err), &err);
    return set;
}

static inline void free_pictures(picture_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        stk_mem_free((char *)(uintptr_t)set->samples[i].id);
    }
    stk_mem_free(set->samples);
    stk_store_close(set->store);
    *set = (picture_set){0};
}

/* FNV-1a, 64 bits: goes on from `hash`. */
#define HASH_START 0xcbf29ce484222325u
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

#endif
