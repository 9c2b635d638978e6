/*
 * test_dataset.h - what the tests of data sets share: making folders of pictures (empty files,
 * since listing never reads them), listening to warnings, and expecting failures.
 */
#ifndef STK_TESTS_TEST_DATASET_H
#define STK_TESTS_TEST_DATASET_H

#include "check.h"

#include <limits.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/dataset.h"

static char root[256];      /* the folder of this test */
static char warnings[4096]; /* each with a line break behind it */
static char decisions[1024];
static stk_error error;

/* Makes `root/name` with the text, and the folders above it. */
static inline void put_text(const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        mkdir(path, 0777);
    }
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(text, 1, strlen(text), file) != strlen(text)) {
        perror(path);
        exit(1);
    }
    fclose(file);
}

static inline void put(const char *name) {
    put_text(name, "");
}

static inline void put_folder(const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    mkdir(path, 0777);
}

/* Class folders of cats and dogs, three pictures each. */
static inline void put_cats_and_dogs(const char *folder) {
    char name[128];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s/cat/%d.jpg", folder, i);
        put(name);
        snprintf(name, sizeof name, "%s/dog/%d.PNG", folder, i);
        put(name);
    }
}

static inline void fresh(void) {
    snprintf(root, sizeof root, "%s", check_folder());
    warnings[0] = '\0';
    decisions[0] = '\0';
    stk_error_clear(&error);
}

static inline void note_warning(void *user, const char *text) {
    (void)user;
    size_t length = strlen(warnings);
    snprintf(warnings + length, sizeof warnings - length, "%s\n", text);
}

static inline void note_decision(void *user, const stk_event_decision *event) {
    (void)user;
    snprintf(decisions, sizeof decisions, "%s: %s", event->what, event->why);
}

static const stk_observer listener = {.warning = note_warning, .decision = note_decision};
static const stk_events events __attribute__((unused)) = {.observers = {&listener}, .count = 1};

static inline stk_dataset_options options(void) {
    return (stk_dataset_options){.data = root, .val_fraction = 0.2};
}

/* Opens and expects failure with the status; the sentence is in error.message. */
static inline void expect_failure(const stk_dataset_options *o, stk_status status) {
    stk_dataset *dataset = NULL;
    stk_error_clear(&error);
    CHECK_INT(stk_dataset_open(&dataset, o, NULL, &events, &error), status);
    CHECK_INT(error.status, status);
    CHECK(dataset == NULL);
    stk_dataset_free(dataset);
}

static inline void fails_with(stk_status status, const char *part) {
    stk_dataset_options o = options();
    expect_failure(&o, status);
    CHECK_CONTAINS(error.message, part);
}

/* Opens what must open; NULL, and a failed check, when it does not. */
static inline stk_dataset *open_with(const stk_dataset_options *o) {
    stk_dataset *dataset = NULL;
    stk_error_clear(&error);
    if (stk_dataset_open(&dataset, o, NULL, &events, &error) != STK_OK) {
        CHECK_FAIL("cannot open: %s", error.message);
    }
    return dataset;
}

static inline stk_dataset *open_plain(void) {
    stk_dataset_options o = options();
    return open_with(&o);
}

/* Opens what must open, and each time before one more request for memory fails. */
static inline void open_without_memory(const stk_dataset_options *o) {
    stk_status status = STK_ERR_MEMORY;
    for (int n = 0; n < 2000 && status != STK_OK; n++) {
        stk_dataset *dataset = NULL;
        stk_error_clear(&error);
        stk_mem_fail_after(n);
        status = stk_dataset_open(&dataset, o, NULL, NULL, &error);
        stk_mem_fail_after(-1);
        CHECK((status == STK_OK) == (dataset != NULL));
        stk_dataset_free(dataset);
        if (status != STK_OK && status != STK_ERR_MEMORY) {
            CHECK_FAIL("it fails otherwise: %s", error.message);
            return;
        }
    }
    CHECK_INT(status, STK_OK);
}

#endif
