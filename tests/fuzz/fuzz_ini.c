/*
 * fuzz_ini.c - the reader of the AWS tools' files: whatever comes, no section is without a name,
 * only sections that are there have values, no value is empty or longer than the input, and an
 * error neither shows the input nor has another status.
 */
#include "fuzz.h"

#include <string.h>

#include "storage/s3/ini.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("[default]\nregion = eu-central-1\n\n[profile work]\nregion=us-west-2\n"),
    FUZZ_SEED(
        "\xEF\xBB\xBF[default]\r\naws_access_key_id = AKID\r\naws_secret_access_key: x/y=\r\n"),
    FUZZ_SEED(
        "# a\n[profile \"a b\"]\ns3 =\n  addressing_style = path\n; b\n  endpoint_url = h\nx = 1"),
    FUZZ_SEED(
        "[a]\ncredential_process = run\n  --this\n\n  --that # not a comment\n[a]\nb=\n\tc=d\n"),
};
FUZZ_PLAN(seeds)

/* The sections of the seeds. */
static const char *const sections[] = {"default", "profile work", "profile a b", "a"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"region", "s3.addressing_style", "credential_process", "x"};
    stk_ini *ini = NULL;
    stk_error err = {0};
    stk_status status = stk_ini_parse(&ini, (const char *)data, size, "input", &err);
    if (status != STK_OK) {
        FUZZ_REQUIRE(ini == NULL && status == STK_ERR_USAGE);
        FUZZ_REQUIRE(strncmp(err.message, "cannot read input: ", 19) == 0);
        return 0;
    }
    FUZZ_REQUIRE(!stk_ini_has(ini, ""));
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        bool there = stk_ini_has(ini, sections[i]);
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            const char *value = stk_ini_get(ini, sections[i], names[j]);
            FUZZ_REQUIRE(value == NULL || (there && *value != '\0' && strlen(value) <= size));
        }
    }
    stk_ini_free(ini);
    return 0;
}
