/* test_storage_reader.c - reads in flight: all arrive, errors too, and any of them can be dropped.
 */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "storage/reader.h"

#define READS 40

typedef struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t more;
    stk_read *done[READS];
    int count;
    bool blocked; /* callbacks wait until it is false */
    int waiting;  /* callbacks that do */
} inbox;

static void receive(void *user, stk_read *read) {
    inbox *in = user;
    pthread_mutex_lock(&in->lock);
    in->waiting++;
    pthread_cond_broadcast(&in->more);
    while (in->blocked) {
        pthread_cond_wait(&in->more, &in->lock);
    }
    in->waiting--;
    in->done[in->count++] = read;
    pthread_cond_broadcast(&in->more);
    pthread_mutex_unlock(&in->lock);
}

static void open_inbox(inbox *in, bool blocked) {
    *in = (inbox){.blocked = blocked};
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->more, NULL);
}

static void wait_for(inbox *in, int count) {
    pthread_mutex_lock(&in->lock);
    while (in->count < count) {
        pthread_cond_wait(&in->more, &in->lock);
    }
    pthread_mutex_unlock(&in->lock);
}

static void wait_for_blocked(inbox *in, int count) {
    pthread_mutex_lock(&in->lock);
    while (in->waiting < count) {
        pthread_cond_wait(&in->more, &in->lock);
    }
    pthread_mutex_unlock(&in->lock);
}

static void unblock(inbox *in) {
    pthread_mutex_lock(&in->lock);
    in->blocked = false;
    pthread_cond_broadcast(&in->more);
    pthread_mutex_unlock(&in->lock);
}

static char names[READS][16];

/* File i holds i+1 times the byte i; every seventh is missing. */
static const char *make_files(void) {
    static char root[256];
    stk_error err = {0};
    if (root[0] != '\0') {
        return root;
    }
    snprintf(root, sizeof root, "%s", check_folder());
    for (int i = 0; i < READS; i++) {
        char bytes[READS];
        snprintf(names[i], sizeof names[i], "f%d", i);
        memset(bytes, i, sizeof bytes);
        char *path = stk_path_join(root, names[i]);
        if (i % 7 != 6 && stk_file_write(path, bytes, (size_t)i + 1, &err) != STK_OK) {
            printf("%s\n", err.message);
            exit(1);
        }
        stk_mem_free(path);
    }
    return root;
}

static stk_reader *open_reader(inbox *in, int threads) {
    stk_error err = {0};
    stk_reader *reader = NULL;
    stk_reader_config config = {
        .root = make_files(), .most_threads = threads, .done = receive, .user = in};
    if (stk_reader_open(&reader, &config, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return reader;
}

static void free_reads(stk_read *reads) {
    for (int i = 0; i < READS; i++) {
        stk_bytes_free(&reads[i].bytes);
    }
}

static void every_read_arrives(void) {
    for (int threads = 1; threads <= 8; threads += 7) {
        inbox in;
        stk_read reads[READS] = {0};
        open_inbox(&in, false);
        stk_reader *reader = open_reader(&in, threads);
        for (int round = 0; round < 3; round++) { /* the blocks are used again */
            in.count = 0;
            for (int i = 0; i < READS; i++) {
                reads[i].path = names[i];
                stk_reader_submit(reader, &reads[i]);
                stk_reader_hurry(reader);
            }
            wait_for(&in, READS);
            for (int i = 0; i < READS; i++) {
                if (i % 7 == 6) {
                    CHECK_INT(reads[i].error.status, STK_ERR_STORAGE);
                    CHECK_CONTAINS(reads[i].error.message, names[i]);
                    continue;
                }
                CHECK_INT(reads[i].error.status, STK_OK);
                CHECK_INT(reads[i].bytes.size, i + 1);
                CHECK_INT(reads[i].bytes.data[i], i);
                CHECK(reads[i].ns >= 0);
            }
        }
        CHECK(stk_reader_threads(reader) >= 1 && stk_reader_threads(reader) <= threads);
        stk_reader_close(reader);
        free_reads(reads);
    }
}

/* Threads come when reads wait and bytes are missing, and only then, and no more than allowed. */
static void threads_follow_the_need(void) {
    inbox in;
    stk_read reads[READS] = {0};
    open_inbox(&in, true);
    stk_reader *reader = open_reader(&in, 3);
    stk_reader_hurry(reader); /* nothing waits */
    CHECK_INT(stk_reader_threads(reader), 1);
    for (int i = 0; i < READS; i++) {
        reads[i].path = names[i];
        stk_reader_submit(reader, &reads[i]);
    }
    wait_for_blocked(&in, 1);
    CHECK_INT(stk_reader_threads(reader), 1);
    stk_reader_hurry(reader);
    wait_for_blocked(&in, 2);
    CHECK_INT(stk_reader_threads(reader), 2);
    stk_reader_hurry(reader);
    stk_reader_hurry(reader);
    wait_for_blocked(&in, 3);
    CHECK_INT(stk_reader_threads(reader), 3);
    unblock(&in);
    wait_for(&in, READS);
    stk_reader_close(reader);
    free_reads(reads);
}

static void reads_that_have_not_begun_are_taken_back(void) {
    inbox in;
    stk_read reads[READS] = {0};
    open_inbox(&in, true);
    stk_reader *reader = open_reader(&in, 1);
    for (int i = 0; i < READS; i++) {
        reads[i].path = names[i];
        stk_reader_submit(reader, &reads[i]);
    }
    wait_for_blocked(&in, 1);
    int back = 0;
    for (stk_read *read = stk_reader_take_back(reader); read != NULL; read = read->next) {
        CHECK(read == &reads[1 + back]); /* in their order, behind the one that has begun */
        back++;
    }
    CHECK_INT(back, READS - 1);
    CHECK(stk_reader_take_back(reader) == NULL);
    unblock(&in);
    wait_for(&in, 1);
    stk_reader_submit(reader, &reads[5]); /* it goes on afterwards */
    wait_for(&in, 2);
    CHECK(in.done[1] == &reads[5]);
    stk_reader_close(reader);
    free_reads(reads);
}

static void close_with_reads_waiting(void) {
    for (int i = 0; i < 20; i++) {
        inbox in;
        stk_read reads[READS] = {0};
        open_inbox(&in, false);
        stk_reader *reader = open_reader(&in, 4);
        for (int k = 0; k < READS; k++) {
            reads[k].path = names[k];
            stk_reader_submit(reader, &reads[k]);
        }
        stk_reader_close(reader);
        CHECK(in.count <= READS);
        free_reads(reads);
    }
    stk_reader_close(NULL);
}

static void open_without_memory(void) {
    for (int64_t n = 0; n < 2; n++) {
        stk_error err = {0};
        stk_reader *reader = NULL;
        stk_reader_config config = {.root = make_files(), .most_threads = 2};
        stk_mem_fail_after(n);
        CHECK_INT(stk_reader_open(&reader, &config, &err), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
    }
}

static const check_test tests[] = {
    TEST(every_read_arrives),
    TEST(threads_follow_the_need),
    TEST(reads_that_have_not_begun_are_taken_back),
    TEST(close_with_reads_waiting),
    TEST(open_without_memory),
};

CHECK_MAIN(tests)
