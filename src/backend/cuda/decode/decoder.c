/*
 * decoder.c - the thread that decodes groups of pictures, and what loaders ask of it.
 *
 * Of three groups one gathers pictures, one is with nvJPEG and one with the kernels. The thread
 * takes whatever has gathered as soon as it is free, so groups are as large as the load makes them;
 * only a very small one waits some tenths of a millisecond for more.
 */
#include "backend/cuda/decode/decoder.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/pool.h"
#include "base/threads/thread.h"

#define LANES 3

/* Device memory of all groups: a share of the GPU's, within limits. */
#define MEMORY_SHARE 160
#define LEAST_PIXELS ((size_t)16 << 20)
#define MOST_PIXELS ((size_t)96 << 20)

/* A group with fewer pictures waits so long for more. */
#define FEW_PICTURES 16
#define GATHER_NS 300000

/*
 * A group of 64 takes milliseconds. Once nvJPEG has had it for so long, and so many checks have
 * seen that (a process that was stopped meanwhile makes none), the device counts as lost. Warming
 * up loads code and takes memory. What is with the kernels is written when the GPU goes on, which
 * the network waits for as well: it is given up only when nothing else can be done.
 */
#define HANG_NS ((int64_t)5 * 1000 * 1000 * 1000)
#define WARM_NS ((int64_t)10 * 1000 * 1000 * 1000)
#define STUCK_NS ((int64_t)60 * 1000 * 1000 * 1000)
#define LEAST_CHECKS 50

/* So many groups in a row without one good picture: the device cannot decode these. */
#define MOST_BARREN 3

/* Memory of the device that nvJPEG takes for itself. */
#define LIBRARY_BYTES ((size_t)64 << 20)

/* The picture for warming up, px. */
#define WARM_WIDTH 512
#define WARM_HEIGHT 384

/* How long withdrawing and closing wait for the thread. */
#define WITHDRAW_NS ((int64_t)1000 * 1000 * 1000)

typedef enum lane_state {
    LANE_FREE,
    LANE_FILLING,  /* takes pictures */
    LANE_DECODING, /* with nvJPEG */
    LANE_LAUNCHED, /* its kernels and copies are with the GPU */
    LANE_ENDING,   /* the thread calls `done` of its pictures */
    LANE_LOST      /* its pictures were given back; nobody uses it again */
} lane_state;

typedef struct lane {
    cuda_group group;
    lane_state state; /* lock */
    int copying;      /* pictures that are reserved and not filled in yet; lock */
    int64_t since_ns; /* decoding or launched: since when; lock */
    int64_t limit_ns; /* decoding: for how long that may be; lock */
    int checks;       /* that have seen it so since then; lock */
} lane;

struct cuda_decoder {
    cuda_decoder_config config;
    cuda_jpeg jpeg;
    cuda_decode_tools tools;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the thread: a picture has come, or the end */
    pthread_cond_t idle; /* a picture is filled in, a lane is free, or the thread has ended */
    lane lanes[LANES];
    lane *filling;   /* NULL: all lanes are busy; lock */
    bool quit;       /* lock */
    bool lost;       /* lock */
    int giving_back; /* threads that call `done` for lost pictures; lock */
    int barren;      /* groups without a good picture, in a row; lock */
    bool has_ended;  /* the thread; lock */
    atomic_int mood; /* stk_offer: what an offer would probably be answered */
    int engines;     /* hardware engines; 0: the processors decode */
    atomic_ullong images, failed;
    atomic_ullong idle_ns; /* in which the thread waited for pictures */
};

/* ---- giving up ---- */

/* Under the lock: takes the pictures of all lanes that the thread does not end itself; with `all`
 * also those of which the GPU may still write squares. */
static int take_back(cuda_decoder *d, bool all, stk_device_picture *pictures) {
    int count = 0;
    for (int i = 0; i < LANES; i++) {
        lane *l = &d->lanes[i];
        if (l->state != LANE_FILLING && l->state != LANE_DECODING &&
            !(all && l->state == LANE_LAUNCHED)) {
            continue;
        }
        while (l->copying > 0) { /* a worker copies: that is soon done */
            pthread_cond_wait(&d->idle, &d->lock);
        }
        for (int k = 0; k < l->group.count; k++) {
            pictures[count++] = l->group.pictures[k];
        }
        l->group.count = 0;
        l->state = LANE_LOST;
    }
    return count;
}

/* The device decodes nothing any more: pictures go back to the CPU. Without the lock. */
static void lose(cuda_decoder *d, bool all) {
    stk_device_picture pictures[LANES * CUDA_GROUP_PICTURES];
    pthread_mutex_lock(&d->lock);
    d->lost = true;
    d->giving_back++; /* before take_back(), which may release the lock */
    d->filling = NULL;
    atomic_store(&d->mood, STK_OFFER_REFUSED);
    int count = take_back(d, all, pictures);
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < count; i++) {
        pictures[i].done(pictures[i].user, false);
    }
    atomic_fetch_add(&d->failed, (uint64_t)count);
    pthread_mutex_lock(&d->lock);
    d->giving_back--;
    pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
}

/* ---- the thread ---- */

/* Under the lock: lets a free lane gather pictures, if none does. */
static void open_lane(cuda_decoder *d) {
    for (int i = 0; i < LANES && d->filling == NULL && !d->lost; i++) {
        if (d->lanes[i].state == LANE_FREE) {
            stk_cuda_group_clear(&d->lanes[i].group);
            d->lanes[i].state = LANE_FILLING;
            d->filling = &d->lanes[i];
            atomic_store(&d->mood, STK_OFFER_TAKEN);
        }
    }
}

/* Under the lock: the lane begins something that may hang. */
static void enter(lane *l, lane_state state, int64_t limit_ns) {
    l->state = state;
    l->since_ns = stk_clock_ns();
    l->limit_ns = limit_ns;
    l->checks = 0;
}

/* Under the lock: whether pictures wait for the thread. */
static bool is_gathering(const cuda_decoder *d) {
    return !d->quit && !d->lost && d->filling != NULL && d->filling->group.count > 0;
}

/*
 * Takes the lane that gathers pictures. With `at_once` it does not wait for pictures. NULL: there
 * are none.
 */
static lane *take_lane(cuda_decoder *d, bool at_once) {
    lane *taken = NULL;
    int64_t start = stk_clock_ns();
    pthread_mutex_lock(&d->lock);
    while (!at_once && !d->quit && !d->lost && d->filling->group.count == 0) {
        pthread_cond_wait(&d->work, &d->lock);
    }
    int64_t end = stk_clock_ns() + GATHER_NS;
    while (!at_once && is_gathering(d) && d->filling->group.count < FEW_PICTURES &&
           stk_cond_wait_until(&d->work, &d->lock, end)) {
    }
    atomic_fetch_add(&d->idle_ns, at_once ? 0 : (uint64_t)(stk_clock_ns() - start));
    if (is_gathering(d)) {
        taken = d->filling;
        d->filling = NULL;
        atomic_store(&d->mood, STK_OFFER_FULL);
        open_lane(d);
        while (taken->copying > 0) {
            pthread_cond_wait(&d->idle, &d->lock);
        }
        if (d->lost) {
            taken = NULL;
        } else {
            enter(taken, LANE_DECODING, HANG_NS);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return taken;
}

/* Goes on from one state to the next, unless the lane's pictures were given back meanwhile. */
static bool step(cuda_decoder *d, lane *l, lane_state from, lane_state to) {
    pthread_mutex_lock(&d->lock);
    bool is_ours = l->state == from;
    if (is_ours) {
        enter(l, to, STUCK_NS);
    }
    pthread_mutex_unlock(&d->lock);
    return is_ours;
}

/* Decodes a lane's pictures and launches the rest; false: they were given back. */
static bool run_lane(cuda_decoder *d, lane *l) {
    stk_cuda_group_decode(&l->group);
    if (!step(d, l, LANE_DECODING, LANE_LAUNCHED)) {
        return false;
    }
    if (stk_cuda_group_launch(&l->group) != CUDA_GOOD) {
        lose(d, true);
        return false;
    }
    return true;
}

/* Waits for a lane's squares and tells of them; false: they were given back. */
static bool end_lane(cuda_decoder *d, lane *l) {
    int good = 0;
    if (stk_cuda_group_wait(&l->group) != CUDA_GOOD) {
        lose(d, true);
        return false;
    }
    if (!step(d, l, LANE_LAUNCHED, LANE_ENDING)) {
        return false;
    }
    for (int i = 0; i < l->group.count; i++) {
        bool decoded = !l->group.failed[i];
        good += decoded;
        atomic_fetch_add(decoded ? &d->images : &d->failed, 1);
        l->group.pictures[i].done(l->group.pictures[i].user, decoded);
    }
    pthread_mutex_lock(&d->lock);
    d->barren = good > 0 ? 0 : d->barren + 1;
    bool useless = d->barren == MOST_BARREN;
    l->state = d->lost ? LANE_LOST : LANE_FREE;
    open_lane(d);
    pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
    if (useless) {
        lose(d, false);
    }
    return true;
}

/* A picture for warming up: a gradient under a pattern. No memory: the first pictures are slower.
 */
static stk_status make_picture(uint8_t **bytes, size_t *size) {
    stk_image image = {0};
    stk_error ignored = {0};
    stk_status status = stk_image_new(&image, WARM_WIDTH, WARM_HEIGHT, &ignored);
    for (unsigned i = 0; i < 3 * WARM_WIDTH * WARM_HEIGHT && status == STK_OK; i++) {
        image.pixels[i] = (uint8_t)(i / (3 * WARM_WIDTH) + i % 3 * 40 + i * i % 61);
    }
    STK_THEN(status, stk_image_encode_jpeg(&image, 90, bytes, size, &ignored));
    stk_image_free(&image);
    return status;
}

/* The lanes decode something before they take pictures; false: the device is lost. */
static bool warm_up(cuda_decoder *d) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool made = make_picture(&bytes, &size) == STK_OK;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < LANES && made && !d->quit && !d->lost; i++) {
        lane *l = &d->lanes[i];
        enter(l, LANE_DECODING, WARM_NS);
        pthread_mutex_unlock(&d->lock);
        stk_cuda_group_warm_up(&l->group, bytes, size, WARM_WIDTH, WARM_HEIGHT);
        pthread_mutex_lock(&d->lock);
    }
    stk_mem_free(bytes);
    for (int i = 0; i < LANES && !d->lost; i++) {
        d->lanes[i].state = LANE_FREE;
    }
    open_lane(d);
    bool lost = d->lost;
    pthread_mutex_unlock(&d->lock);
    return !lost;
}

static void *work(void *argument) {
    cuda_decoder *d = argument;
    lane *under_way = NULL;
    bool goes_on = d->config.driver->context_use(d->config.context) == CUDA_GOOD;
    if (!goes_on) {
        lose(d, true);
    }
    goes_on = goes_on && warm_up(d);
    while (goes_on) {
        lane *next = take_lane(d, under_way != NULL);
        bool runs = next != NULL && run_lane(d, next);
        bool is_end = next == NULL && under_way == NULL;
        goes_on = !is_end && (next == NULL || runs);
        goes_on = (under_way == NULL || end_lane(d, under_way)) && goes_on;
        under_way = runs ? next : NULL;
    }
    if (under_way != NULL) { /* the GPU may still write its squares */
        (void)end_lane(d, under_way);
    }
    pthread_mutex_lock(&d->lock);
    d->has_ended = true;
    pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- loaders ---- */

static stk_offer offer(void *state, const stk_device_picture *picture) {
    cuda_decoder *d = state;
    cuda_group_place place;
    pthread_mutex_lock(&d->lock);
    lane *l = d->filling;
    stk_offer answer = d->lost || d->quit ? STK_OFFER_REFUSED
                       : l == NULL        ? STK_OFFER_FULL
                                          : stk_cuda_group_reserve(&l->group, picture, &place);
    if (answer == STK_OFFER_TAKEN) {
        l->copying++;
        if (l->group.count == CUDA_GROUP_PICTURES) {
            atomic_store(&d->mood, STK_OFFER_FULL);
        }
    }
    pthread_mutex_unlock(&d->lock);
    if (answer != STK_OFFER_TAKEN) {
        return answer;
    }
    stk_cuda_group_fill(&l->group, picture, &place);
    pthread_mutex_lock(&d->lock);
    l->copying--;
    if (l->copying == 0) {
        pthread_cond_broadcast(&d->idle);
    }
    if (place.index == 0 || place.index == FEW_PICTURES - 1) {
        pthread_cond_signal(&d->work);
    }
    pthread_mutex_unlock(&d->lock);
    return STK_OFFER_TAKEN;
}

static stk_offer mood(void *state) {
    cuda_decoder *d = state;
    return (stk_offer)atomic_load(&d->mood);
}

static void check(void *state) {
    cuda_decoder *d = state;
    int64_t now = stk_clock_ns();
    bool hangs = false;
    bool is_stuck = false;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < LANES; i++) {
        lane *l = &d->lanes[i];
        bool late = ++l->checks >= LEAST_CHECKS && now - l->since_ns > l->limit_ns;
        hangs = hangs || (late && l->state == LANE_DECODING);
        is_stuck = is_stuck || (late && l->state == LANE_LAUNCHED);
    }
    pthread_mutex_unlock(&d->lock);
    if (hangs || is_stuck) {
        lose(d, is_stuck);
    }
}

/* Under the lock: whether a picture of the owner is with the device or on its way back. */
static bool has_picture(const cuda_decoder *d, const void *owner) {
    bool found = d->giving_back > 0;
    for (int i = 0; i < LANES && !found; i++) {
        const lane *l = &d->lanes[i];
        bool in_use = l->state != LANE_FREE && l->state != LANE_LOST;
        found = in_use && l->copying > 0;
        for (int k = 0; in_use && k < l->group.count && !found; k++) {
            found = l->group.pictures[k].owner == owner;
        }
    }
    return found;
}

/* Waits until no picture of the owner is under way; false: not in time. */
static bool wait_without(cuda_decoder *d, const void *owner, int64_t ns) {
    int64_t end = stk_clock_ns() + ns;
    bool waits = true;
    pthread_mutex_lock(&d->lock);
    while (waits && has_picture(d, owner)) {
        waits = stk_cond_wait_until(&d->idle, &d->lock, end);
    }
    bool none = !has_picture(d, owner);
    pthread_mutex_unlock(&d->lock);
    return none;
}

static void withdraw(void *state, const void *owner) {
    cuda_decoder *d = state;
    if (wait_without(d, owner, WITHDRAW_NS)) {
        return;
    }
    lose(d, false);
    if (!wait_without(d, owner, HANG_NS)) {
        lose(d, true);
        while (!wait_without(d, owner, HANG_NS)) { /* another thread gives them back */
        }
    }
}

static void counts(void *state, stk_device_decoder_counts *to) {
    cuda_decoder *d = state;
    *to = (stk_device_decoder_counts){.images = atomic_load(&d->images),
                                      .failed = atomic_load(&d->failed),
                                      .idle_ns = atomic_load(&d->idle_ns),
                                      .device_bytes = d->config.memory_bytes,
                                      .engines = d->engines,
                                      .lost = atomic_load(&d->mood) == STK_OFFER_REFUSED};
}

stk_device_decoder stk_cuda_decoder_for_loaders(cuda_decoder *d) {
    return (stk_device_decoder){.state = d,
                                .is_sparing = d->engines == 0,
                                .most_bytes = stk_cuda_group_most_bytes(),
                                .offer = offer,
                                .mood = mood,
                                .check = check,
                                .withdraw = withdraw,
                                .counts = counts};
}

/* ---- opening and closing ---- */

static size_t lane_bytes(size_t total_bytes) {
    size_t share = total_bytes / MEMORY_SHARE / LANES;
    share = share > LEAST_PIXELS ? share : LEAST_PIXELS;
    return stk_cuda_group_bytes(share < MOST_PIXELS ? share : MOST_PIXELS);
}

size_t stk_cuda_decoder_own_bytes(size_t total_bytes) {
    return LANES * lane_bytes(total_bytes);
}

size_t stk_cuda_decoder_bytes(size_t total_bytes) {
    return stk_cuda_decoder_own_bytes(total_bytes) + LIBRARY_BYTES;
}

/* Opens nvJPEG for the engines, or where there are none for the processors. */
static stk_status open_jpeg(cuda_decoder *d, stk_error *err) {
    unsigned engines = 0;
    unsigned cores = 0;
    stk_status status = stk_cuda_jpeg_open(&d->jpeg, d->config.libraries, err);
    if (status != STK_OK) {
        return status;
    }
    cuda_jpeg *j = &d->jpeg;
    int result = j->create(CUDA_JPEG_BY_ENGINES, NULL, NULL, 0, &d->tools.handle);
    if (result == CUDA_JPEG_GOOD) {
        bool told = j->engines != NULL &&
                    j->engines(d->tools.handle, &engines, &cores) == CUDA_JPEG_GOOD && engines > 0;
        d->engines = told ? (int)engines : 1;
        return STK_OK;
    }
    d->tools.handle = NULL;
    return stk_cuda_jpeg_check(j->create(CUDA_JPEG_BY_PROCESSORS, NULL, NULL, 0, &d->tools.handle),
                               "opening nvJPEG", err);
}

static stk_status open_lanes(cuda_decoder *d, stk_error *err) {
    size_t each = d->config.memory_bytes / LANES;
    stk_status status = STK_OK;
    for (int i = 0; i < LANES && status == STK_OK; i++) {
        enter(&d->lanes[i], LANE_DECODING, WARM_NS);
        status = stk_cuda_group_open(&d->lanes[i].group, &d->tools, d->config.memory + i * each,
                                     each, err);
    }
    return status;
}

static void free_all(cuda_decoder *d) {
    for (int i = 0; i < LANES; i++) {
        stk_cuda_group_close(&d->lanes[i].group);
    }
    if (d->tools.handle != NULL) {
        (void)d->jpeg.destroy(d->tools.handle);
    }
    stk_cuda_jpeg_close(&d->jpeg);
    pthread_cond_destroy(&d->work);
    pthread_cond_destroy(&d->idle);
    pthread_mutex_destroy(&d->lock);
    stk_mem_free(d);
}

stk_status stk_cuda_decoder_open(cuda_decoder **decoder, const cuda_decoder_config *config,
                                 stk_error *err) {
    cuda_decoder *d = stk_mem_new(1, sizeof *d);
    if (d == NULL) {
        return STK_FAIL_MEMORY(err, "the decoder of the GPU");
    }
    d->config = *config;
    d->tools.driver = config->driver;
    d->tools.jpeg = &d->jpeg;
    pthread_mutex_init(&d->lock, NULL);
    stk_cond_init(&d->work);
    stk_cond_init(&d->idle);
    atomic_store(&d->mood, STK_OFFER_FULL); /* until it is warm */
    stk_status status = open_jpeg(d, err);
    STK_THEN(status, stk_cuda_picture_kernels_make(&d->tools.kernels, config->kernels,
                                                   config->driver, err));
    STK_THEN(status, open_lanes(d, err));
    if (status == STK_OK) {
        const stk_thread_config thread = {.what = "decodes pictures on the GPU"};
        status = stk_thread_start(&d->thread, &thread, work, d, err);
    }
    if (status != STK_OK) {
        free_all(d);
        return status;
    }
    *decoder = d;
    return STK_OK;
}

bool stk_cuda_decoder_close(cuda_decoder *d) {
    int64_t end = stk_clock_ns() + 2 * WITHDRAW_NS;
    bool waits = true;
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    pthread_cond_signal(&d->work);
    while (waits && !d->has_ended) {
        waits = stk_cond_wait_until(&d->idle, &d->lock, end);
    }
    bool ended = d->has_ended;
    pthread_mutex_unlock(&d->lock);
    if (!ended) {
        pthread_detach(d->thread);
        stk_pool_leave();
        return false;
    }
    pthread_join(d->thread, NULL);
    free_all(d);
    return true;
}
