/*
 * object_http.h - requests and answers of HTTP/1.1, for the test server.
 */
#ifndef OBJECT_HTTP_H
#define OBJECT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "object_text.h"

/* A head or a body larger than this is refused. */
#define OS_MAX_HEAD (64 * 1024)
#define OS_MAX_BODY (64 * 1024)
#define OS_MAX_HEADERS 64

/* A request, cut apart in the bytes that came: the strings point into them. */
typedef struct os_request {
    const char *method;
    const char *path;  /* decoded; starts with a slash */
    const char *query; /* what follows the question mark as it came, or "" */
    struct {
        const char *name, *value;
    } headers[OS_MAX_HEADERS];
    size_t header_count;
    const char *body; /* body_size bytes without a NUL */
    size_t body_size;
    bool keep_alive;
} os_request;

/* What happens after the last byte of an answer. */
typedef enum os_end {
    OS_END_KEEP,   /* the connection waits for the next request */
    OS_END_CLOSE,  /* it is closed */
    OS_END_RESET,  /* it is closed with a reset, so that the client's kernel reports one */
    OS_END_SILENT, /* it stays open and nothing more comes */
} os_end;

/* An answer on its way. The body lies in memory or in a file. */
typedef struct os_answer {
    int status;        /* 0: no answer at all, only `end` */
    const char *fault; /* the name of a fault in it, for the log, or NULL */
    os_text head;      /* the status line and the headers */
    os_text body;      /* when fd is negative */
    bool endless;      /* the body is sent over and over */
    int fd;            /* owned; a file whose bytes from `offset` are the body, or -1 */
    uint64_t offset;
    uint64_t length;  /* of the body in bytes, as promised; a HEAD has none to send */
    uint64_t stop_at; /* so many bytes of the body are sent; less than length in a broken one */
    uint64_t flip_at; /* this byte of the body is sent with flip_mask applied; from stop_at: none */
    unsigned char flip_mask;
    os_end end;
} os_answer;

/* Whether bytes begin with a whole request: its size with the body, 0 when more must come, or, when
 * it cannot be taken, the HTTP status to refuse it with as a negative number. */
ssize_t os_request_size(const char *bytes, size_t size);

/* Cuts up a whole request, writing into the bytes. False when it makes no sense. */
bool os_request_parse(char *bytes, size_t size, os_request *request);

/* The value of a header, its name in small letters; NULL when it is not there. */
const char *os_header(const os_request *request, const char *name);

/* The words of a status, "Not Found". */
const char *os_status_words(int status);

/* A moment as HTTP spells it (`Sun, 06 Nov 1994 08:49:37 GMT`) and as S3's XML does. */
void os_http_date(time_t seconds, char text[40]);
void os_xml_date(time_t seconds, char text[40]);

void os_answer_start(os_answer *answer);
void os_answer_free(os_answer *answer);

/* Opens the head: the status line and the headers that every answer has. More headers follow
 * (os_text_addf on the head), then os_head_end with the length of the body. */
void os_head_start(os_answer *answer, const os_request *request, int status);
void os_head_end(os_answer *answer, const os_request *request, const char *type, uint64_t length);

/* A whole answer whose body is answer->body; a file that was opened for it is closed. */
void os_answer_text(os_answer *answer, const os_request *request, int status, const char *type);

#endif
