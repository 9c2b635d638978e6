/* test_loader_hang.c - a loader whose pictures do not come: it can be left at any time. */
#include "check.h"

#include "loader/loader.h"
#include "scripted_place.h"

#define SAMPLES 12

/* A store in which the first picture cannot be had and all others hang. */
typedef struct hung {
    scripted_place *place;
    stk_store *store;
    stk_sample samples[SAMPLES];
    char paths[SAMPLES][16];
    stk_stop stop;
} hung;

static void open_hung(hung *h, double timeout_s) {
    stk_error err = {0};
    stk_storage_options options = {.read_timeout_s = timeout_s};
    memset(h, 0, sizeof *h);
    h->place = scripted_new();
    if (stk_store_open_on(&h->store, &scripted_source, h->place, &options, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    for (int i = 0; i < SAMPLES; i++) {
        snprintf(h->paths[i], sizeof h->paths[i], i == 0 ? "bad?n" : "h%d?h", i);
        h->samples[i] = (stk_sample){.path = h->paths[i], .id = h->paths[i], .label = i % 2};
    }
}

static stk_loader *start(hung *h, bool replace_bad) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    stk_loader_config config = {.store = h->store,
                                .samples = h->samples,
                                .count = SAMPLES,
                                .transform = {.size = 8, .crop_fraction = 1},
                                .batch = 4,
                                .stop = &h->stop,
                                .order.replace_bad = replace_bad};
    if (stk_loader_start(&loader, &config, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return loader;
}

/*
 * Waits until a worker asks for the sample behind the bad one, in its place: nobody else does
 * before the first picture has come.
 */
static void wait_for_substitute(hung *h) {
    pthread_mutex_lock(&h->place->lock);
    while (scripted_find(h->place, h->paths[1])->attempts < 1) {
        pthread_cond_wait(&h->place->changed, &h->place->lock);
    }
    pthread_mutex_unlock(&h->place->lock);
}

static void close_while_nothing_comes(void) {
    for (int replace = 0; replace < 2; replace++) {
        hung h;
        open_hung(&h, 3600);
        stk_loader *loader = start(&h, replace == 1);
        if (replace == 1) {
            wait_for_substitute(&h);
        }
        stk_loader_close(loader);
        stk_store_close(h.store);
    }
}

static void seek_while_nothing_comes(void) {
    hung h;
    stk_error err = {0};
    open_hung(&h, 3600);
    stk_loader *loader = start(&h, true);
    wait_for_substitute(&h);
    CHECK_INT(stk_loader_seek(loader, 5, 0, &err), STK_OK);
    CHECK_INT(stk_loader_seek(loader, 0, 1, &err), STK_OK);
    stk_loader_close(loader);
    stk_store_close(h.store);
}

static void who_is_asked_to_stop_does_not_wait_for_ever(void) {
    hung h;
    stk_error err = {0};
    const stk_batch *batch = NULL;
    open_hung(&h, 3600);
    stk_loader *loader = start(&h, true);
    stk_stop_request(&h.stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_loader_next(loader, &batch, &err), STK_ERR_STOPPED);
    CHECK(batch == NULL);
    stk_loader_close(loader);
    stk_store_close(h.store);
}

/* A worker that reads in the place of a bad one learns of a lost place like anybody else. */
static void a_lost_place_ends_the_loader(void) {
    for (int replace = 0; replace < 2; replace++) {
        hung h;
        stk_error err = {0};
        const stk_batch *batch = NULL;
        open_hung(&h, 0.2);
        stk_loader *loader = start(&h, replace == 1);
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            CHECK(replace == 0 && batch->bad[0] && batch->bad[3]); /* as long as it is not sure */
            stk_loader_release(loader, batch);
        }
        CHECK_INT(err.status, STK_ERR_STORAGE);
        CHECK_CONTAINS(err.message, "nothing can be read from scripted any more");
        stk_loader_close(loader);
        stk_store_close(h.store);
    }
}

static const check_test tests[] = {
    TEST(close_while_nothing_comes),
    TEST(seek_while_nothing_comes),
    TEST(who_is_asked_to_stop_does_not_wait_for_ever),
    TEST(a_lost_place_ends_the_loader),
};

CHECK_MAIN(tests)
