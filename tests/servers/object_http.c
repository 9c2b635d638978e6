/*
 * object_http.c - see the header. It understands what clients of S3 send: a head, and a body of a
 * told length.
 */
#include "object_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The end of the head: the place after the empty line, or NULL. */
static const char *head_end(const char *bytes, size_t size) {
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    return end != NULL ? end + 4 : NULL;
}

/* The value of Content-Length in a head: -1 when it is not a number, -2 for a chunked body. */
static int64_t body_size(const char *head, const char *end) {
    int64_t size = 0;
    for (const char *line = head; line < end;) {
        const char *next = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        if (strncasecmp(line, "transfer-encoding:", 18) == 0) {
            return -2;
        }
        if (strncasecmp(line, "content-length:", 15) == 0) {
            const char *digit = line + 15 + strspn(line + 15, " \t");
            size = *digit >= '0' && *digit <= '9' ? strtoll(digit, NULL, 10) : -1;
            if (size < 0) {
                return -1;
            }
        }
        line = next;
    }
    return size;
}

ssize_t os_request_size(const char *bytes, size_t size) {
    const char *end = head_end(bytes, size);
    if (end == NULL) {
        return size >= OS_MAX_HEAD ? -431 : 0;
    }
    int64_t body = body_size(bytes, end);
    if (body < 0) {
        return body == -2 ? -501 : -400;
    }
    if (body > OS_MAX_BODY) {
        return -413;
    }
    size_t whole = (size_t)(end - bytes) + (size_t)body;
    return size >= whole ? (ssize_t)whole : 0;
}

/* Cuts the line at *at off and moves *at behind it. */
static char *take_line(char **at) {
    char *line = *at;
    char *end = strstr(line, "\r\n");
    *end = '\0';
    *at = end + 2;
    return line;
}

static bool parse_first_line(char *line, os_request *request) {
    char *target = strchr(line, ' ');
    char *version = target != NULL ? strchr(target + 1, ' ') : NULL;
    if (version == NULL) {
        return false;
    }
    *target++ = '\0';
    *version++ = '\0';
    if (*target != '/' || strncmp(version, "HTTP/1.", 7) != 0) {
        return false;
    }
    char *query = strchr(target, '?');
    request->query = "";
    if (query != NULL) {
        *query = '\0';
        request->query = query + 1;
    }
    request->method = line;
    request->path = target;
    request->keep_alive = strcmp(version, "HTTP/1.0") != 0;
    return os_percent_decode(target);
}

bool os_request_parse(char *bytes, size_t size, os_request *request) {
    *request = (os_request){0};
    char *end = (char *)memmem(bytes, size, "\r\n\r\n", 4) + 4;
    if (memchr(bytes, '\0', (size_t)(end - bytes)) != NULL) {
        return false;
    }
    request->body = end;
    request->body_size = size - (size_t)(end - bytes);
    char *at = bytes;
    if (!parse_first_line(take_line(&at), request)) {
        return false;
    }
    while (at < end - 2) {
        char *line = take_line(&at);
        char *colon = strchr(line, ':');
        if (colon == NULL || request->header_count == OS_MAX_HEADERS) {
            return false;
        }
        *colon = '\0';
        char *value = colon + 1 + strspn(colon + 1, " \t");
        for (size_t last = strlen(value); last > 0 && strchr(" \t", value[last - 1]) != NULL;) {
            value[--last] = '\0';
        }
        request->headers[request->header_count].name = line;
        request->headers[request->header_count++].value = value;
    }
    const char *connection = os_header(request, "connection");
    if (connection != NULL) {
        request->keep_alive = strcasecmp(connection, "close") != 0 &&
                              (request->keep_alive || strcasecmp(connection, "keep-alive") == 0);
    }
    return true;
}

const char *os_header(const os_request *request, const char *name) {
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, name) == 0) {
            return request->headers[i].value;
        }
    }
    return NULL;
}

const char *os_status_words(int status) {
    static const struct {
        int status;
        const char *words;
    } all[] = {{200, "OK"},
               {206, "Partial Content"},
               {301, "Moved Permanently"},
               {400, "Bad Request"},
               {401, "Unauthorized"},
               {403, "Forbidden"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {412, "Precondition Failed"},
               {413, "Content Too Large"},
               {416, "Range Not Satisfiable"},
               {429, "Too Many Requests"},
               {431, "Request Header Fields Too Large"},
               {500, "Internal Server Error"},
               {501, "Not Implemented"},
               {502, "Bad Gateway"},
               {503, "Service Unavailable"},
               {504, "Gateway Timeout"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].status == status) {
            return all[i].words;
        }
    }
    return "Unknown";
}

static void format_time(time_t seconds, const char *format, char text[40]) {
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL || strftime(text, 40, format, &parts) == 0) {
        text[0] = '\0';
    }
}

void os_http_date(time_t seconds, char text[40]) {
    format_time(seconds, "%a, %d %b %Y %H:%M:%S GMT", text);
}

void os_xml_date(time_t seconds, char text[40]) {
    format_time(seconds, "%Y-%m-%dT%H:%M:%S.000Z", text);
}

void os_answer_start(os_answer *answer) {
    *answer = (os_answer){.fd = -1, .flip_at = UINT64_MAX};
}

void os_answer_free(os_answer *answer) {
    os_text_free(&answer->head);
    os_text_free(&answer->body);
    if (answer->fd >= 0) {
        close(answer->fd);
    }
    os_answer_start(answer);
}

void os_head_start(os_answer *answer, const os_request *request, int status) {
    char date[40];
    os_http_date(time(NULL), date);
    answer->status = status;
    answer->head.size = 0;
    answer->end = request->keep_alive ? OS_END_KEEP : OS_END_CLOSE;
    os_text_addf(&answer->head, "HTTP/1.1 %d %s\r\nDate: %s\r\nServer: object_server\r\n", status,
                 os_status_words(status), date);
}

void os_head_end(os_answer *answer, const os_request *request, const char *type, uint64_t length) {
    os_text_addf(&answer->head, "Content-Type: %s\r\nContent-Length: %llu\r\n%s\r\n", type,
                 (unsigned long long)length, request->keep_alive ? "" : "Connection: close\r\n");
    answer->length = request->method != NULL && strcmp(request->method, "HEAD") == 0 ? 0 : length;
    answer->stop_at = answer->length;
}

void os_answer_text(os_answer *answer, const os_request *request, int status, const char *type) {
    if (answer->fd >= 0) {
        close(answer->fd);
        answer->fd = -1;
    }
    os_head_start(answer, request, status);
    os_head_end(answer, request, type, answer->body.size);
}
