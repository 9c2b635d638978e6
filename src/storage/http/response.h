/*
 * response.h - the header lines of an HTTP response that storage looks at.
 *
 * libcurl hands over one header line after another; stk_http_response_line() keeps the values that
 * storage uses and ignores all other lines. A server may send anything: every value is
 * cut to its field, and values with control characters are dropped. Built with STK_HAVE_S3 only.
 * Threads: safe on different responses.
 */
#ifndef STK_STORAGE_HTTP_RESPONSE_H
#define STK_STORAGE_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stk_http_response { /* starts zeroed */
    int status;                    /* 200, 404; 0: no status line came */
    bool has_length;               /* Content-Length was sent and is a number */
    bool has_range;                /* Content-Range was sent: the body is a part of the object */
    bool user_encrypted;           /* encrypted with a user's key: the ETag is not an MD5 */
    uint64_t length;               /* Content-Length, bytes */
    uint64_t range_first;          /* Content-Range: offset of the body's first byte */
    uint64_t range_total;          /* Content-Range: bytes of the whole object; 0: not sent */
    double retry_after_s;          /* Retry-After, seconds from the server's Date; 0: not sent */
    char date[40];                 /* Date, as the server writes it; "" */
    char etag[128];                /* ETag without quotes, cut when longer; "" */
    char region[40];               /* x-amz-bucket-region; "" */
} stk_http_response;

/*
 * Takes one header line as it came, with or without CR LF. A status line begins a new response and
 * clears all fields, so that after "100 Continue" only the final response counts.
 */
void stk_http_response_line(stk_http_response *response, const char *line, size_t size);

/* The server's clock (Date) as unix time; 0: not sent or not understood. */
int64_t stk_http_response_date_s(const stk_http_response *response);

/* Whether the ETag has the form of an MD5: 32 hexadecimal digits in either case. */
bool stk_http_response_has_md5(const stk_http_response *response);

/*
 * Whether the response belongs to another version of the object than the one with this ETag. False
 * where either ETag is empty: nothing is known then.
 */
bool stk_http_response_is_changed(const stk_http_response *response, const char *etag);

#endif
