/*
 * fuzz_config.c - the places of keys in JSON and YAML: whatever comes, they lie within the text,
 * and a number that is found can be replaced and is found again at its place.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "supervise/settings/config_keys.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("{\"lr\": 0.1, \"train\": {\"batch_size\": 32, \"l\": [1, {\"b\": 2}]}}\n"),
    FUZZ_SEED("%YAML 1.2\n--- # one\nlr: 1\nbatch_size: 32  # all\n...\n"),
    FUZZ_SEED(
        "train:\r\n  - name: 'a''b'\r\n    batch_size: 3\r\n  - - >-\r\n      x\r\n    - 4\r\n"),
    FUZZ_SEED("\xEF\xBB\xBFo: {lr: [1, 2,], # c\n  b: 3 }\nt: |\n  b: 4\n\n\"u\" : a\n  b\n"),
};
FUZZ_PLAN(seeds)

/* Of so many numbers it is tried whether they can be replaced; each takes another scan. */
#define MOST_CHECKED 40

/* The text with another digit where the entry's value begins; freed with free(). */
static char *changed(const uint8_t *data, size_t size, const stk_config_key *entry) {
    char *copy = malloc(size);
    FUZZ_REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    copy[entry->start] = copy[entry->start] == '7' ? '8' : '7';
    return copy;
}

static void check_number(const char *name, const uint8_t *data, size_t size,
                         const stk_config_key *entry, int64_t value) {
    stk_config_keys again;
    const stk_config_key *found = NULL;
    int64_t other = value;
    char *copy = changed(data, size, entry);
    FUZZ_REQUIRE(stk_config_scan(&again, name, copy, size, NULL) == STK_OK);
    FUZZ_REQUIRE(stk_config_keys_find(&again, entry->key_path, &found, &other, NULL) == STK_OK);
    FUZZ_REQUIRE(found->start == entry->start && found->length == entry->length && other != value);
    stk_config_keys_free(&again);
    free(copy);
}

static void try_as(const char *name, const uint8_t *data, size_t size) {
    stk_config_keys entries;
    stk_error err = {0};
    stk_status status = stk_config_scan(&entries, name, (const char *)data, size, &err);
    FUZZ_REQUIRE(status == STK_OK || (status == STK_ERR_USAGE && err.message[0] != '\0'));
    for (size_t i = 0; status == STK_OK && i < entries.count; i++) {
        const stk_config_key *entry = &entries.list[i];
        const stk_config_key *found = NULL;
        int64_t value;
        FUZZ_REQUIRE(entry->start <= size && entry->length <= size - entry->start);
        FUZZ_REQUIRE(entry->name <= strlen(entry->key_path) && entry->depth > 0);
        if (i < MOST_CHECKED &&
            stk_config_keys_find(&entries, entry->key_path, &found, &value, NULL) == STK_OK) {
            check_number(name, data, size, found, value);
        }
    }
    stk_config_keys_free(&entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_as("input.json", data, size);
    try_as("input.yaml", data, size);
    return 0;
}
