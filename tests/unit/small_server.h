/*
 * small_server.h - an HTTP server in a thread of the test, on a free port of this machine, that
 * answers by a list of rules. For services that answer a short question with a short text.
 */
#ifndef STK_TESTS_SMALL_SERVER_H
#define STK_TESTS_SMALL_SERVER_H

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#define SMALL_SERVER_REQUESTS 16

typedef struct small_rule {
    const char *request; /* how the first line begins: "GET /role " */
    int status;          /* 200; 0: hang up without a word */
    const char *body;    /* one that begins with "HTTP/" is the whole answer, head and all */
    int times;           /* how often this rule holds before a later one does; 0: always */
} small_rule;

typedef struct small_server {
    const small_rule *rules;         /* the last one has no request */
    int used[SMALL_SERVER_REQUESTS]; /* how often each rule was used; thread's own */
    int listener;
    int port;
    pthread_t thread;
    char requests[SMALL_SERVER_REQUESTS][2048]; /* read after small_server_stop */
    int count;                                  /* of requests, also those that were not kept */
} small_server;

static inline void small_server_answer(small_server *server, int fd, const char *request) {
    char head[256];
    for (size_t i = 0; server->rules[i].request != NULL; i++) {
        const small_rule *rule = &server->rules[i];
        if (strncmp(request, rule->request, strlen(rule->request)) != 0 ||
            (rule->times > 0 && server->used[i] >= rule->times)) {
            continue;
        }
        server->used[i]++;
        if (rule->status == 0) {
            return;
        }
        if (strncmp(rule->body, "HTTP/", 5) == 0) {
            (void)!send(fd, rule->body, strlen(rule->body), MSG_NOSIGNAL);
            return;
        }
        int length = snprintf(head, sizeof head,
                              "HTTP/1.1 %d Whatever\r\nContent-Length: %zu\r\nConnection: close\r\n"
                              "\r\n",
                              rule->status, strlen(rule->body));
        if (send(fd, head, (size_t)length, MSG_NOSIGNAL) == length) {
            (void)!send(fd, rule->body, strlen(rule->body), MSG_NOSIGNAL);
        }
        return;
    }
    static const char none[] = "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    (void)!send(fd, none, sizeof none - 1, MSG_NOSIGNAL);
}

/* Requests have no bodies: the empty line is their end. */
static inline void *small_server_run(void *user) {
    small_server *server = user;
    for (;;) {
        int fd = accept(server->listener, NULL, NULL);
        if (fd < 0) {
            return NULL;
        }
        char request[2048] = "";
        size_t size = 0;
        ssize_t got = 1;
        while (got > 0 && size + 1 < sizeof request && strstr(request, "\r\n\r\n") == NULL) {
            got = recv(fd, request + size, sizeof request - 1 - size, 0);
            size += got > 0 ? (size_t)got : 0;
            request[size] = '\0';
        }
        if (server->count < SMALL_SERVER_REQUESTS) {
            memcpy(server->requests[server->count], request, sizeof request);
        }
        server->count++;
        small_server_answer(server, fd, request);
        shutdown(fd, SHUT_WR);
        while (recv(fd, request, sizeof request, 0) > 0) {
        }
        close(fd);
    }
}

static inline void small_server_start(small_server *server, const small_rule *rules) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    memset(server, 0, sizeof *server);
    server->rules = rules;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server->listener < 0 ||
        bind(server->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server->listener, 16) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&server->thread, NULL, small_server_run, server) != 0) {
        perror("small_server_start");
        exit(1);
    }
    server->port = ntohs(address.sin_port);
}

static inline void small_server_stop(small_server *server) {
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

#endif
