/* response.c - the headers that matter here, out of all that servers send. */
#include "storage/http/response.h"

#ifdef STK_HAVE_S3

#include <curl/curl.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/str.h"

/* A value as text: blanks at both ends left out, cut to fit. */
static void copy_value(char *out, size_t room, const char *value, size_t size) {
    size_t kept = size < room ? size : room - 1;
    memcpy(out, value, kept);
    out[kept] = '\0';
}

/* Digits at *at; false when there are none or the number is too large. */
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

static void take_length(stk_http_head *answer, const char *value, size_t size) {
    const char *at = value;
    uint64_t length;
    if (take_number(&at, value + size, &length) && at == value + size) {
        answer->has_length = true;
        answer->length = length;
    }
}

/* "bytes 0-99/1234"; the whole may be "*", which is not known. */
static void take_range(stk_http_head *answer, const char *value, size_t size) {
    const char *end = value + size;
    const char *at = value + 6;
    uint64_t last;
    if (size <= 6 || strncasecmp(value, "bytes ", 6) != 0 ||
        !take_number(&at, end, &answer->range_first) || at == end || *at++ != '-' ||
        !take_number(&at, end, &last) || at == end || *at++ != '/') {
        return;
    }
    answer->has_range = true;
    if (!take_number(&at, end, &answer->range_total)) {
        answer->range_total = 0;
    }
}

static void take_etag(stk_http_head *answer, const char *value, size_t size) {
    if (size >= 2 && value[0] == 'W' && value[1] == '/') {
        value += 2;
        size -= 2;
    }
    if (size >= 2 && value[0] == '"' && value[size - 1] == '"') {
        value++;
        size -= 2;
    }
    copy_value(answer->etag, sizeof answer->etag, value, size);
}

static int64_t parse_date(const char *value, size_t size) {
    char text[64];
    copy_value(text, sizeof text, value, size);
    time_t date = curl_getdate(text, NULL);
    return date > 0 ? (int64_t)date : 0;
}

/* Seconds, or a date. */
static void take_retry(stk_http_head *answer, const char *value, size_t size) {
    const char *at = value;
    uint64_t seconds;
    if (take_number(&at, value + size, &seconds)) {
        answer->retry_after_s = (double)seconds;
        return;
    }
    int64_t date_s = parse_date(value, size);
    int64_t server_s = stk_http_head_date_s(answer);
    int64_t now_s = server_s > 0 ? server_s : (int64_t)time(NULL);
    if (date_s > now_s) {
        answer->retry_after_s = (double)(date_s - now_s);
    }
}

static void take_date(stk_http_head *answer, const char *value, size_t size) {
    copy_value(answer->date, sizeof answer->date, value, size);
}

static void take_region(stk_http_head *answer, const char *value, size_t size) {
    copy_value(answer->region, sizeof answer->region, value, size);
}

/* AES256 is a key of the store's, with which ETags stay what they are. */
static void take_encryption(stk_http_head *answer, const char *value, size_t size) {
    answer->sealed = answer->sealed || (size >= 7 && strncasecmp(value, "aws:kms", 7) == 0);
}

static void take_customer_key(stk_http_head *answer, const char *value, size_t size) {
    (void)value;
    answer->sealed = answer->sealed || size > 0;
}

static const struct {
    const char *name;
    size_t length;
    void (*take)(stk_http_head *answer, const char *value, size_t size);
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
static void take_status(stk_http_head *answer, const char *line, size_t size) {
    memset(answer, 0, sizeof *answer);
    const char *end = line + size;
    const char *at = memchr(line, ' ', size);
    uint64_t status;
    if (at != NULL && ++at < end && take_number(&at, end, &status) && status < 1000) {
        answer->status = (int)status;
    }
}

/* No server that means well sends any; where the value went on to, they would end a line. */
static bool has_control(const char *value, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)value[i] < ' ' && value[i] != '\t') {
            return true;
        }
    }
    return false;
}

void stk_http_head_line(stk_http_head *answer, const char *line, size_t size) {
    while (size > 0 && strchr(" \t\r\n", line[size - 1]) != NULL) {
        size--;
    }
    if (size > 5 && memcmp(line, "HTTP/", 5) == 0) {
        take_status(answer, line, size);
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
                headers[i].take(answer, value, left);
            }
            return;
        }
    }
}

int64_t stk_http_head_date_s(const stk_http_head *answer) {
    return parse_date(answer->date, strlen(answer->date));
}

#endif
