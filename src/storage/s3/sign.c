/*
 * sign.c - Signature Version 4, after Amazon's "Authenticating Requests (AWS Signature Version 4)".
 *
 * The canonical request is never put together as a text: its parts go straight into the hash, so
 * that tokens are not copied. The hash of the empty body is signed. The alternative, the word
 * UNSIGNED-PAYLOAD, is not accepted by every store without TLS.
 */
#include "storage/s3/sign.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/digest.h"
#include "base/str.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define HASH_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* Most headers of the caller's. Authorization and three x-amz headers are sent as well. */
#define EXTRA_MAX (STK_S3_HEADERS_MAX - 4)
#define SIGNED_MAX (EXTRA_MAX + 4) /* three x-amz headers and Host */

/* The time of a request in the two forms that the signature needs. */
typedef struct sign_time {
    char time[24]; /* "20130524T000000Z" */
    char date[12]; /* "20130524" */
} sign_time;

/* RFC 3986's unreserved characters: never encoded. */
static bool is_unreserved(unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* Appends text; every byte that is neither unreserved nor in `keep` becomes %XX. */
static void append_encoded(stk_str *out, const char *text, const char *keep) {
    static const char digits[] = "0123456789ABCDEF";
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (is_unreserved(c) || strchr(keep, c) != NULL) {
            stk_str_append_bytes(out, p, 1);
        } else {
            const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
            stk_str_append_bytes(out, escape, sizeof escape);
        }
    }
}

char *stk_s3_encode_path(const char *path) {
    stk_str out = {0};
    append_encoded(&out, path, "/");
    return stk_str_take(&out);
}

typedef struct query_part {
    char *name;  /* owned, encoded */
    char *value; /* owned, encoded */
} query_part;

/* By name, then by value. Compared as one text, "a-b=" would come before "a=". */
static int compare_parts(const void *a, const void *b) {
    const query_part *x = a;
    const query_part *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->value, y->value);
}

static char *encoded(const char *text) {
    stk_str out = {0};
    append_encoded(&out, text, "");
    return stk_str_take(&out);
}

static stk_status encode_query(const stk_s3_unsigned *request, char **query, stk_error *err) {
    size_t count = request->query_count;
    stk_str out = {0};
    query_part *parts = stk_mem_new(count > 0 ? count : 1, sizeof *parts);
    bool good = parts != NULL;
    for (size_t i = 0; i < count && good; i++) {
        parts[i].name = encoded(request->query[i].name);
        parts[i].value = encoded(request->query[i].value);
        good = parts[i].name != NULL && parts[i].value != NULL;
    }
    if (good) {
        qsort(parts, count, sizeof *parts, compare_parts);
        for (size_t i = 0; i < count; i++) {
            stk_str_appendf(&out, "%s%s=%s", i > 0 ? "&" : "", parts[i].name, parts[i].value);
        }
    }
    for (size_t i = 0; i < count && parts != NULL; i++) {
        stk_mem_free(parts[i].name);
        stk_mem_free(parts[i].value);
    }
    stk_mem_free(parts);
    *query = good ? stk_str_take(&out) : NULL;
    return *query != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the query of a request to S3");
}

/* Header names are ASCII: the locale must not decide about capitals. */
static char lower(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int compare_headers(const void *a, const void *b) {
    const unsigned char *x = (const unsigned char *)((const stk_s3_pair *)a)->name;
    const unsigned char *y = (const unsigned char *)((const stk_s3_pair *)b)->name;
    while (*x != '\0' && lower((char)*x) == lower((char)*y)) {
        x++;
        y++;
    }
    return (unsigned char)lower((char)*x) - (unsigned char)lower((char)*y);
}

static void append_lower(stk_str *out, const char *name) {
    for (; *name != '\0'; name++) {
        const char c = lower(*name);
        stk_str_append_bytes(out, &c, 1);
    }
}

static void hash_text(stk_sha256 *hash, const char *text) {
    stk_sha256_add(hash, text, strlen(text));
}

/* Hashes a value without blanks at its ends, and with one blank where there are several. */
static void hash_value(stk_sha256 *hash, const char *value) {
    value += strspn(value, " \t");
    while (*value != '\0') {
        size_t word = strcspn(value, " \t");
        stk_sha256_add(hash, value, word);
        value += word;
        value += strspn(value, " \t");
        if (*value != '\0') {
            hash_text(hash, " ");
        }
    }
}

static void hash_header(stk_sha256 *hash, const stk_s3_pair *header) {
    for (const char *p = header->name; *p != '\0'; p++) {
        const char c = lower(*p);
        stk_sha256_add(hash, &c, 1);
    }
    hash_text(hash, ":");
    hash_value(hash, header->value);
    hash_text(hash, "\n");
}

/* The canonical request's hash in hex. Headers are sorted; `names` joins their names: "a;b;c". */
static void hash_request(const stk_s3_unsigned *request, const char *query,
                         const stk_s3_pair *headers, size_t count, const char *names,
                         char text[STK_SHA256_TEXT]) {
    uint8_t digest[STK_SHA256_BYTES];
    stk_sha256 hash;
    stk_sha256_begin(&hash);
    const char *const lines[] = {request->method, request->path, query};
    for (size_t i = 0; i < STK_COUNT(lines); i++) {
        hash_text(&hash, lines[i]);
        hash_text(&hash, "\n");
    }
    for (size_t i = 0; i < count; i++) {
        hash_header(&hash, &headers[i]);
    }
    hash_text(&hash, "\n");
    hash_text(&hash, names);
    hash_text(&hash, "\n" HASH_OF_NOTHING);
    stk_sha256_end(&hash, digest);
    stk_hex(digest, sizeof digest, text);
}

/* Derives the signing key for one day, one region and S3 from the secret. */
static stk_status derive_key(const char *secret, const char *date, const char *region,
                             uint8_t key[STK_SHA256_BYTES], stk_error *err) {
    char *first = stk_str_format("AWS4%s", secret);
    if (first == NULL) {
        return STK_FAIL_MEMORY(err, "the signature of a request to S3");
    }
    stk_hmac_sha256(first, strlen(first), date, strlen(date), key);
    stk_mem_free_secret(first);
    const char *const words[] = {region, "s3", "aws4_request"};
    for (size_t i = 0; i < STK_COUNT(words); i++) {
        stk_hmac_sha256(key, STK_SHA256_BYTES, words[i], strlen(words[i]), key);
    }
    return STK_OK;
}

/* Adds a header to send. libcurl's form for a header without a value is "name;". */
static stk_status put_header(stk_s3_signed *out, const char *name, const char *value,
                             stk_error *err) {
    if (strpbrk(name, "\r\n:;") != NULL || strpbrk(value, "\r\n") != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot sign a request to S3: a header or a part of the credentials "
                        "holds a line break");
    }
    char *line =
        *value != '\0' ? stk_str_format("%s: %s", name, value) : stk_str_format("%s;", name);
    if (line == NULL) {
        return STK_FAIL_MEMORY(err, "the headers of a request to S3");
    }
    out->headers[out->header_count++] = line;
    return STK_OK;
}

/* Adds the Authorization header, which has the signature. */
static stk_status put_authorization(const stk_s3_unsigned *request,
                                    const stk_s3_credentials *credentials, const char *region,
                                    const sign_time *when, const stk_s3_pair *headers, size_t count,
                                    stk_s3_signed *out, stk_error *err) {
    uint8_t key[STK_SHA256_BYTES] = {0};
    char hash[STK_SHA256_TEXT];
    stk_str names = {0};
    stk_str to_sign = {0};
    char *value = NULL;
    for (size_t i = 0; i < count; i++) {
        stk_str_append(&names, i > 0 ? ";" : "");
        append_lower(&names, headers[i].name);
    }
    hash_request(request, out->query, headers, count, stk_str_text(&names), hash);
    stk_str_appendf(&to_sign, ALGORITHM "\n%s\n%s/%s/s3/aws4_request\n%s", when->time, when->date,
                    region, hash);
    stk_status status = stk_str_ok(&names) && stk_str_ok(&to_sign)
                            ? derive_key(credentials->secret, when->date, region, key, err)
                            : STK_FAIL_MEMORY(err, "the signature of a request to S3");
    if (status == STK_OK) {
        stk_hmac_sha256(key, sizeof key, to_sign.text, to_sign.length, key);
        stk_hex(key, sizeof key, hash);
        value = stk_str_format(ALGORITHM " Credential=%s/%s/%s/s3/aws4_request, SignedHeaders=%s, "
                                         "Signature=%s",
                               credentials->key_id, when->date, region, stk_str_text(&names), hash);
        status = value != NULL ? put_header(out, "Authorization", value, err)
                               : STK_FAIL_MEMORY(err, "the signature of a request to S3");
    }
    stk_mem_free_secret(value);
    stk_str_free(&names);
    stk_str_free(&to_sign);
    explicit_bzero(key, sizeof key);
    explicit_bzero(hash, sizeof hash);
    return status;
}

static stk_status write_stamp(int64_t now_s, sign_time *when, stk_error *err) {
    time_t now = (time_t)now_s;
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || utc.tm_year < 70 || utc.tm_year > 9999 - 1900) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot sign a request to S3: the clock shows no year from 1970 to 9999");
    }
    strftime(when->time, sizeof when->time, "%Y%m%dT%H%M%SZ", &utc);
    memcpy(when->date, when->time, 8);
    when->date[8] = '\0';
    return STK_OK;
}

/* Adds the x-amz headers and the signature; the caller's headers were added before. */
static stk_status sign(const stk_s3_unsigned *request, const stk_s3_credentials *credentials,
                       const char *region, int64_t now_s, stk_s3_signed *out, stk_error *err) {
    sign_time when = {0};
    stk_s3_pair headers[SIGNED_MAX];
    size_t count = request->header_count;
    stk_status status = write_stamp(now_s, &when, err);
    for (size_t i = 0; i < count; i++) {
        headers[i] = request->headers[i];
    }
    headers[count++] = (stk_s3_pair){"x-amz-content-sha256", HASH_OF_NOTHING};
    headers[count++] = (stk_s3_pair){"x-amz-date", when.time};
    if (credentials->token != NULL) {
        headers[count++] = (stk_s3_pair){"x-amz-security-token", credentials->token};
    }
    for (size_t i = request->header_count; i < count && status == STK_OK; i++) {
        status = put_header(out, headers[i].name, headers[i].value, err);
    }
    if (status != STK_OK) {
        return status;
    }
    headers[count++] = (stk_s3_pair){"host", request->host};
    qsort(headers, count, sizeof *headers, compare_headers);
    return put_authorization(request, credentials, region, &when, headers, count, out, err);
}

stk_status stk_s3_sign(const stk_s3_unsigned *request, const stk_s3_credentials *credentials,
                       const char *region, int64_t now_s, stk_s3_signed *out, stk_error *err) {
    if (request->header_count > EXTRA_MAX) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot sign more than %d headers of a request to S3",
                        EXTRA_MAX);
    }
    stk_status status = encode_query(request, &out->query, err);
    for (size_t i = 0; i < request->header_count && status == STK_OK; i++) {
        status = put_header(out, request->headers[i].name, request->headers[i].value, err);
    }
    if (status == STK_OK && credentials->key_id != NULL) {
        status = sign(request, credentials, region, now_s, out, err);
    }
    if (status != STK_OK) {
        stk_s3_signed_free(out);
    }
    return status;
}

void stk_s3_signed_free(stk_s3_signed *out) {
    stk_mem_free_secret(out->query);
    for (size_t i = 0; i < out->header_count; i++) {
        stk_mem_free_secret(out->headers[i]);
    }
    memset(out, 0, sizeof *out);
}
