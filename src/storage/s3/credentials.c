/* credentials.c - checks candidates before anything is signed with them. */
#include "storage/s3/credentials.h"

#ifdef STK_HAVE_S3

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text/json.h"
#include "base/mem.h"

#define STALE_S 300

bool stk_s3_credentials_stale(const stk_s3_credentials *credentials, int64_t now_s) {
    return credentials->expires_s != 0 && credentials->expires_s - STALE_S <= now_s;
}

void stk_s3_credentials_free(stk_s3_credentials *credentials) {
    stk_mem_free_secret(credentials->key_id);
    stk_mem_free_secret(credentials->secret);
    stk_mem_free_secret(credentials->token);
    stk_mem_free(credentials->source);
    memset(credentials, 0, sizeof *credentials);
}

/* ---- times ---- */

/* Reads exactly `digits` digits and moves past them; -1 when they are not there. */
static int read_number(const char **at, int digits) {
    int number = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (!isdigit((unsigned char)**at)) {
            return -1;
        }
        number = number * 10 + (**at - '0');
    }
    return number;
}

/* Reads a separator and then a number. */
static int read_field(const char **at, char mark, int digits) {
    if (**at != mark) {
        return -1;
    }
    (*at)++;
    return read_number(at, digits);
}

/* Reads "Z", "+01:00" or "+0100" up to the end of the text. */
static bool read_zone(const char *at, int *seconds) {
    *seconds = 0;
    if ((*at == 'Z' || *at == 'z') && at[1] == '\0') {
        return true;
    }
    if (*at != '+' && *at != '-') {
        return false;
    }
    int sign = *at++ == '-' ? -1 : 1;
    int hours = read_number(&at, 2);
    int minutes = *at == ':' ? read_field(&at, ':', 2) : read_number(&at, 2);
    *seconds = sign * (hours * 3600 + minutes * 60);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60 && *at == '\0';
}

bool stk_s3_parse_time(const char *text, int64_t *unix_s) {
    const char *at = text;
    int zone = 0;
    int year = read_number(&at, 4);
    int month = read_field(&at, '-', 2);
    int day = read_field(&at, '-', 2);
    int hour = *at == ' ' ? read_field(&at, ' ', 2) : read_field(&at, 'T', 2);
    int minute = read_field(&at, ':', 2);
    int second = read_field(&at, ':', 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60) {
        return false;
    }
    if (*at == '.' && isdigit((unsigned char)at[1])) {
        at += 1 + strspn(at + 1, "0123456789");
    }
    if (!read_zone(at, &zone)) {
        return false;
    }
    struct tm utc = {.tm_year = year - 1900,
                     .tm_mon = month - 1,
                     .tm_mday = day,
                     .tm_hour = hour,
                     .tm_min = minute,
                     .tm_sec = second};
    *unix_s = (int64_t)timegm(&utc) - zone;
    return true;
}

/* ---- candidates ---- */

/* Keys and tokens are printable and have no blanks; a blank often means a comment after a key. */
static bool is_clean(const char *text) {
    for (const char *p = text; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~') {
            return false;
        }
    }
    return true;
}

static stk_status check(const stk_s3_candidate *candidate, int64_t *expires_s, stk_error *err) {
    if (candidate->key_id == NULL || candidate->secret == NULL) {
        bool id_missing = candidate->key_id == NULL;
        return STK_FAIL(err, candidate->failure,
                        "cannot use the credentials of %s: %s is there, but %s "
                        "is not; give both or none",
                        candidate->source,
                        id_missing ? candidate->secret_name : candidate->key_id_name,
                        id_missing ? candidate->key_id_name : candidate->secret_name);
    }
    if (!is_clean(candidate->key_id) || !is_clean(candidate->secret) ||
        (candidate->token != NULL && !is_clean(candidate->token))) {
        return STK_FAIL(err, candidate->failure,
                        "cannot use the credentials of %s: one of them holds a blank or another "
                        "character that keys do not have; perhaps a comment stands on its line",
                        candidate->source);
    }
    *expires_s = 0;
    if (candidate->expires != NULL && !stk_s3_parse_time(candidate->expires, expires_s)) {
        return STK_FAIL(err, candidate->failure,
                        "cannot use the credentials of %s: the time at which they expire cannot be "
                        "read",
                        candidate->source);
    }
    if (candidate->expires != NULL && *expires_s <= (int64_t)time(NULL)) {
        return STK_FAIL(err, candidate->failure,
                        "cannot use the credentials of %s: they expired at %s; renew them and run "
                        "again (or set this machine's clock, if it is wrong)",
                        candidate->source, candidate->expires);
    }
    return STK_OK;
}

stk_status stk_s3_credentials_accept(const stk_s3_candidate *candidate,
                                     stk_s3_credentials *credentials, stk_error *err) {
    int64_t expires_s = 0;
    if (candidate->key_id == NULL && candidate->secret == NULL) {
        return STK_OK;
    }
    stk_status status = check(candidate, &expires_s, err);
    if (status != STK_OK) {
        return status;
    }
    credentials->key_id = stk_mem_strdup(candidate->key_id);
    credentials->secret = stk_mem_strdup(candidate->secret);
    credentials->token = candidate->token != NULL ? stk_mem_strdup(candidate->token) : NULL;
    credentials->source = stk_mem_strdup(candidate->source);
    credentials->expires_s = expires_s;
    if (credentials->key_id == NULL || credentials->secret == NULL || credentials->source == NULL ||
        (candidate->token != NULL && credentials->token == NULL)) {
        stk_s3_credentials_free(credentials);
        return STK_FAIL_MEMORY(err, "credentials");
    }
    return STK_OK;
}

/* A member that is a string and not empty, or NULL. */
static const char *text_of(const stk_json *object, const char *key) {
    const char *text = stk_json_string(stk_json_get(object, key));
    return text != NULL && *text != '\0' ? text : NULL;
}

/* Fails with the reason why a JSON text has no credentials; root may be NULL. */
static stk_status fail_json(const stk_json *root, bool known_version, const char *source,
                            stk_error *err) {
    const char *code = text_of(root, "Code");
    if (!known_version) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "cannot use the credentials of %s: the answer is not of version 1", source);
    }
    if (code != NULL && is_clean(code)) {
        return STK_FAIL(
            err, STK_ERR_STORAGE,
            "cannot use the credentials of %s: there are none, and the reason is '%.64s'", source,
            code);
    }
    return STK_FAIL(err, STK_ERR_STORAGE,
                    "cannot use the credentials of %s: the answer is not the JSON object with "
                    "AccessKeyId and SecretAccessKey that it should be",
                    source);
}

stk_status stk_s3_credentials_parse(const char *json, size_t size, const char *token_name,
                                    const char *source, stk_s3_credentials *credentials,
                                    stk_error *err) {
    stk_json *root = NULL;
    stk_error ignored = {0}; /* not passed on: its message may contain a part of the text */
    uint64_t version = 0;
    stk_status status = stk_json_parse(json, size, &root, &ignored);
    if (status == STK_ERR_MEMORY) {
        return STK_FAIL_MEMORY(err, "credentials");
    }
    const stk_s3_candidate candidate = {
        .key_id = text_of(root, "AccessKeyId"),
        .secret = text_of(root, "SecretAccessKey"),
        .token = text_of(root, token_name),
        .expires = text_of(root, "Expiration"),
        .key_id_name = "AccessKeyId",
        .secret_name = "SecretAccessKey",
        .source = source,
        .failure = STK_ERR_STORAGE,
    };
    const stk_json *stated = stk_json_get(root, "Version");
    bool known = stated == NULL || (stk_json_u64(stated, &version) && version == 1);
    if (!known || (candidate.key_id == NULL && candidate.secret == NULL)) {
        status = fail_json(root, known, source, err);
    } else {
        status = stk_s3_credentials_accept(&candidate, credentials, err);
    }
    stk_json_free(root);
    return status;
}

#endif
