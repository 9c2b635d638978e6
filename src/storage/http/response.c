/*
 * response.c - parses header lines with one small function per header name.
 *
 * A new header is one more row of the table `headers` and one more `take_` function.
 */
#include "storage/http/response.h"

#ifdef STK_HAVE_S3

#include <ctype.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/numbers/digest.h"

/* Copies a value as text, cut to fit. */
static void copy_value(char *out, size_t room, const char *value, size_t size) {
    size_t length = size < room ? size : room - 1;
    memcpy(out, value, length);
    out[length] = '\0';
}

/* Reads digits and moves *at past them; false without digits or above 64 bits. */
static bool take_number(const char **at, const char *end, uint64_t *number) {
    const char *start = *at;
    uint64_t value = 0;
    while (*at < end && **at >= '0' && **at <= '9') {
        uint64_t digit = (uint64_t)(**at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
        (*at)++;
    }
    *number = value;
    return *at > start;
}

static void take_length(stk_http_response *response, const char *value, size_t size) {
    const char *at = value;
    uint64_t length;
    if (take_number(&at, value + size, &length) && at == value + size) {
        response->has_length = true;
        response->length = length;
    }
}

/* "bytes 0-99/1234"; the total may be "*": unknown. */
static void take_range(stk_http_response *response, const char *value, size_t size) {
    const char *end = value + size;
    const char *at = value + 6;
    uint64_t last;
    if (size <= 6 || strncasecmp(value, "bytes ", 6) != 0 ||
        !take_number(&at, end, &response->range_first) || at == end || *at++ != '-' ||
        !take_number(&at, end, &last) || at == end || *at++ != '/') {
        return;
    }
    response->has_range = true;
    if (!take_number(&at, end, &response->range_total)) {
        response->range_total = 0;
    }
}

static void take_etag(stk_http_response *response, const char *value, size_t size) {
    if (size >= 2 && value[0] == 'W' && value[1] == '/') {
        value += 2;
        size -= 2;
    }
    if (size >= 2 && value[0] == '"' && value[size - 1] == '"') {
        value++;
        size -= 2;
    }
    copy_value(response->etag, sizeof response->etag, value, size);
}

static int64_t parse_date(const char *value, size_t size) {
    char text[64];
    copy_value(text, sizeof text, value, size);
    time_t date = curl_getdate(text, NULL);
    return date > 0 ? (int64_t)date : 0;
}

/* Retry-After has two forms: seconds, or a date. */
static void take_retry(stk_http_response *response, const char *value, size_t size) {
    const char *at = value;
    uint64_t seconds;
    if (take_number(&at, value + size, &seconds)) {
        response->retry_after_s = (double)seconds;
        return;
    }
    int64_t date_s = parse_date(value, size);
    int64_t server_s = stk_http_response_date_s(response);
    int64_t now_s = server_s > 0 ? server_s : (int64_t)time(NULL);
    if (date_s > now_s) {
        response->retry_after_s = (double)(date_s - now_s);
    }
}

static void take_date(stk_http_response *response, const char *value, size_t size) {
    copy_value(response->date, sizeof response->date, value, size);
}

static void take_region(stk_http_response *response, const char *value, size_t size) {
    copy_value(response->region, sizeof response->region, value, size);
}

/* AES256 means a key of the store's own, which leaves ETags as they are. A KMS key does not. */
static void take_encryption(stk_http_response *response, const char *value, size_t size) {
    response->user_encrypted =
        response->user_encrypted || (size >= 7 && strncasecmp(value, "aws:kms", 7) == 0);
}

static void take_customer_key(stk_http_response *response, const char *value, size_t size) {
    (void)value;
    response->user_encrypted = response->user_encrypted || size > 0;
}

static const struct {
    const char *name;
    size_t length;
    void (*take)(stk_http_response *response, const char *value, size_t size);
} headers[] = {
#define HEADER(name, take) \
    { name, sizeof(name) - 1, take }
    HEADER("Content-Length", take_length),
    HEADER("Content-Range", take_range),
    HEADER("ETag", take_etag),
    HEADER("Date", take_date),
    HEADER("Retry-After", take_retry),
    HEADER("x-amz-bucket-region", take_region),
    HEADER("x-amz-server-side-encryption", take_encryption),
    HEADER("x-amz-server-side-encryption-customer-algorithm", take_customer_key),
#undef HEADER
};

/* "HTTP/1.1 200 OK" */
static void take_status(stk_http_response *response, const char *line, size_t size) {
    memset(response, 0, sizeof *response);
    const char *end = line + size;
    const char *at = memchr(line, ' ', size);
    uint64_t status;
    if (at != NULL && ++at < end && take_number(&at, end, &status) && status < 1000) {
        response->status = (int)status;
    }
}

/* Control characters: no honest server sends them, and in a message they would break its line. */
static bool has_control(const char *value, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)value[i] < ' ' && value[i] != '\t') {
            return true;
        }
    }
    return false;
}

void stk_http_response_line(stk_http_response *response, const char *line, size_t size) {
    while (size > 0 && strchr(" \t\r\n", line[size - 1]) != NULL) {
        size--;
    }
    if (size > 5 && memcmp(line, "HTTP/", 5) == 0) {
        take_status(response, line, size);
        return;
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t length = headers[i].length;
        if (size > length && line[length] == ':' &&
            strncasecmp(line, headers[i].name, length) == 0) {
            const char *value = line + length + 1;
            size_t left = size - length - 1;
            while (left > 0 && (*value == ' ' || *value == '\t')) {
                value++;
                left--;
            }
            if (!has_control(value, left)) {
                headers[i].take(response, value, left);
            }
            return;
        }
    }
}

int64_t stk_http_response_date_s(const stk_http_response *response) {
    return parse_date(response->date, strlen(response->date));
}

bool stk_http_response_has_md5(const stk_http_response *response) {
    size_t length = 0;
    while (isxdigit((unsigned char)response->etag[length])) {
        length++;
    }
    return length == (size_t)2 * STK_MD5_BYTES && response->etag[length] == '\0';
}

bool stk_http_response_is_changed(const stk_http_response *response, const char *etag) {
    return etag[0] != '\0' && response->etag[0] != '\0' &&
           strncmp(etag, response->etag, sizeof response->etag - 1) != 0;
}

#endif
