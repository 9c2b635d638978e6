/*
 * object_server.h - the server of tests/servers, run beside a test: see the README there. It stands
 * in the folder of the test program.
 */
#ifndef STK_TESTS_OBJECT_SERVER_H
#define STK_TESTS_OBJECT_SERVER_H

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>

typedef struct object_server {
    pid_t pid;
    int input; /* it ends when this is closed, also when the test crashes */
    int port;
    char url[64];
} object_server;

static inline void object_server_die(const char *what) {
    perror(what);
    exit(1);
}

/* Starts it with the arguments of a list that ends with NULL, and waits until it listens. */
static inline void object_server_start(object_server *server, const char *const *arguments) {
    char program[512] = "";
    const char *all[32] = {program, "--until-eof", "--max-seconds", "300"};
    int in[2];
    int out[2];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 20);
    if (length < 0 || pipe(in) != 0 || pipe(out) != 0) {
        object_server_die("object_server");
    }
    program[length] = '\0';
    strcpy(strrchr(program, '/') + 1, "object_server");
    for (size_t i = 0; arguments[i] != NULL && i + 5 < sizeof all / sizeof *all; i++) {
        all[4 + i] = arguments[i];
    }
    server->pid = fork();
    if (server->pid < 0) {
        object_server_die("fork");
    }
    if (server->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int fd = 3; fd < 256; fd++) {
            close(fd);
        }
        execv(program, (char *const *)(uintptr_t)all);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server->input = in[1];
    FILE *lines = fdopen(out[0], "r");
    if (lines == NULL || fscanf(lines, "listening on %63s", server->url) != 1) {
        object_server_die(program);
    }
    fclose(lines);
    server->port = atoi(strrchr(server->url, ':') + 1);
}

static inline void object_server_stop(object_server *server) {
    close(server->input);
    waitpid(server->pid, NULL, 0);
}

/* One request; the answer, with its head, goes to a buffer. */
static inline void object_server_ask(const object_server *server, const char *method,
                                     const char *path, const char *body, char *answer,
                                     size_t size) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)server->port)};
    char request[512];
    int wanted =
        snprintf(request, sizeof request,
                 "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 method, path, strlen(body), body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, request, (size_t)wanted, MSG_NOSIGNAL) != wanted) {
        object_server_die("object_server_ask");
    }
    size_t have = 0;
    ssize_t got;
    while (have + 1 < size && (got = recv(fd, answer + have, size - 1 - have, 0)) > 0) {
        have += (size_t)got;
    }
    answer[have] = '\0';
    close(fd);
}

/* Changes faults: "delay_ms=30&only=cat". */
static inline void object_server_set(const object_server *server, const char *settings) {
    char answer[1024];
    object_server_ask(server, "POST", "/_control", settings, answer, sizeof answer);
    if (strstr(answer, " 200 ") == NULL) {
        fprintf(stderr, "object_server does not take %s: %s\n", settings, answer);
        exit(1);
    }
}

/* A number of /_stats; 0 when it is not there. */
static inline long object_server_count(const object_server *server, const char *name) {
    static char answer[16384];
    char quoted[64];
    object_server_ask(server, "GET", "/_stats", "", answer, sizeof answer);
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *at = strstr(answer, quoted);
    return at != NULL
               ? strtol(at + strlen(quoted) + 1 + strspn(at + strlen(quoted) + 1, " "), NULL, 10)
               : 0;
}

#endif
