/*
 * object_server.c - a small HTTP server that speaks enough of S3 for tests and benchmarks and
 * misbehaves on demand. README.md in this folder tells how to use it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object_answers.h"
#include "object_loop.h"

/* The value of a flag as a whole number in a range. */
static int read_number(const char *flag, const char *value, long least, long most) {
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < least || number > most) {
        os_die("%s is '%s'; it must be a whole number from %ld to %ld", flag, value, least, most);
    }
    return (int)number;
}

static void print_help(void) {
    printf("usage: object_server [--root DIR] [--bucket NAME=DIR ...] [flags]\n"
           "  --root DIR           the files of DIR are the objects of the bucket `bucket`\n"
           "  --bucket NAME=DIR    one more bucket\n"
           "  --port N             0, the default, is any free port\n"
           "  --until-eof          end when standard input does\n"
           "  --max-seconds N      end after so long in any case; 3600 by default\n"
           "  --page N             keys of a page of a listing at most; 1000 by default\n"
           "  --warm               make all ETags before the first request\n"
           "  --multipart-mb N     larger files have an ETag that is no MD5; 64 by default\n"
           "  --folder-markers     every folder is also an empty object with a slash at its end\n"
           "  --log FILE           a line for each answer\n"
           "  --require-auth       refuse requests that are not signed (no signature is checked)\n"
           "  --access-key KEY     requests must be signed with it; also given out as credentials\n"
           "  --secret-key KEY     given out\n"
           "  --session-token T    requests must bring it; also given out\n"
           "  --metadata           play the services that hand out credentials\n"
           "  --role NAME          of the instance; stoker-test by default\n"
           "  --container-token T  the Authorization that /container-credentials takes\n"
           "  --expires-s N        seconds that credentials are good for; 3600 by default\n"
           "Faults, as flags (--delay-ms 30) or at any time (POST /_control with delay_ms=30):\n");
    os_faults_help(stdout);
    printf("  %-18s %s\n", "reset", "1: no faults any more");
}

static void add_bucket(os_server *server, const char *value) {
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value) {
        os_die("--bucket is '%s'; it must be NAME=DIR", value);
    }
    os_text name = {0};
    os_text_add(&name, value, (size_t)(equals - value));
    os_store_add(&server->store, name.bytes, equals + 1);
    os_text_free(&name);
}

/* Takes a flag that names a fault. */
static bool take_fault(os_server *server, const char *flag, const char *value) {
    os_text setting = {0};
    os_text_addf(&setting, "%s", flag + 2);
    for (char *c = setting.bytes; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    bool known = os_faults_know(setting.bytes);
    if (known) {
        os_text error = {0};
        os_text_addf(&setting, "=");
        os_text_add_url(&setting, value);
        if (!os_faults_set(&server->faults, setting.bytes, os_now_ns(), &error)) {
            os_die("%s", error.bytes);
        }
        os_text_free(&error);
    }
    os_text_free(&setting);
    return known;
}

/* Takes a flag without a value; false when it has one. */
static bool take_switch(os_server *server, os_loop_options *options, bool *warm, const char *flag) {
    if (strcmp(flag, "--help") == 0) {
        print_help();
        exit(0);
    } else if (strcmp(flag, "--until-eof") == 0) {
        options->until_eof = true;
    } else if (strcmp(flag, "--warm") == 0) {
        *warm = true;
    } else if (strcmp(flag, "--folder-markers") == 0) {
        server->store.folder_markers = true;
    } else if (strcmp(flag, "--require-auth") == 0) {
        server->require_auth = true;
    } else if (strcmp(flag, "--metadata") == 0) {
        server->credentials.is_on = true;
    } else {
        return false;
    }
    return true;
}

static void open_log(os_loop_options *options, const char *path) {
    options->log = fopen(path, "ae");
    if (options->log == NULL) {
        os_die("%s: %s", path, strerror(errno));
    }
}

/* Takes a flag with a value. */
static void take_flag(os_server *server, os_loop_options *options, const char *flag,
                      const char *value) {
    if (strcmp(flag, "--root") == 0) {
        os_store_add(&server->store, "bucket", value);
    } else if (strcmp(flag, "--bucket") == 0) {
        add_bucket(server, value);
    } else if (strcmp(flag, "--port") == 0) {
        options->port = read_number(flag, value, 0, 65535);
    } else if (strcmp(flag, "--max-seconds") == 0) {
        options->max_seconds = read_number(flag, value, 1, 1000000);
    } else if (strcmp(flag, "--page") == 0) {
        server->page = read_number(flag, value, 1, 1000);
    } else if (strcmp(flag, "--multipart-mb") == 0) {
        server->store.multipart_bytes = (uint64_t)read_number(flag, value, 0, 1000000) << 20;
    } else if (strcmp(flag, "--log") == 0) {
        open_log(options, value);
    } else if (strcmp(flag, "--access-key") == 0) {
        server->access_key = server->credentials.access_key = value;
    } else if (strcmp(flag, "--secret-key") == 0) {
        server->credentials.secret_key = value;
    } else if (strcmp(flag, "--session-token") == 0) {
        server->session_token = server->credentials.session_token = value;
    } else if (strcmp(flag, "--role") == 0) {
        server->credentials.role = value;
    } else if (strcmp(flag, "--container-token") == 0) {
        server->credentials.container_token = value;
    } else if (strcmp(flag, "--expires-s") == 0) {
        server->credentials.expires_s = read_number(flag, value, 0, 1000000);
    } else if (strncmp(flag, "--", 2) != 0 || !take_fault(server, flag, value)) {
        os_die("there is no flag '%s'; --help lists them", flag);
    }
}

#ifdef __aarch64__
/* There a leak sanitizer takes four seconds to look at the memory of a process that ends, whatever
 * its size, and a test may start twenty servers. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return 1;
}
#endif

int main(int argc, char **argv) {
    os_server server = {.page = 1000,
                        .credentials = {.role = "stoker-test",
                                        .access_key = "AKIDOFTHETESTSERVER",
                                        .secret_key = "secret-of-the-test-server",
                                        .session_token = "session-of-the-test-server",
                                        .expires_s = 3600}};
    os_loop_options options = {.max_seconds = 3600};
    bool warm = false;
    os_store_start(&server.store);
    os_faults_start(&server.faults);
    for (int i = 1; i < argc; i++) {
        if (take_switch(&server, &options, &warm, argv[i])) {
            continue;
        }
        if (i + 1 == argc) {
            os_die("%s needs a value, or is no flag; --help lists them", argv[i]);
        }
        take_flag(&server, &options, argv[i], argv[i + 1]);
        i++;
    }
    if (server.store.bucket_count == 0 && !server.credentials.is_on) {
        os_die("--root DIR or --bucket NAME=DIR is needed; --help lists all flags");
    }
    if (warm) {
        os_store_warm(&server.store);
    }
    os_loop_run(&server, &options);
    if (options.log != NULL) {
        fclose(options.log);
    }
    os_faults_free(&server.faults);
    os_store_free(&server.store);
    return 0;
}
