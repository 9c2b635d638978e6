/*
 * decoder.c - the threads that decode groups of pictures, and what loaders ask of them.
 *
 * Each lane is a group with a thread. One lane at a time gathers pictures. Its thread takes
 * whatever has gathered if no other lane decodes; otherwise it waits until the group is full. So
 * groups are as large as the load makes them, and lanes decode at the same time where one is too
 * slow: nvJPEG copies every plane by itself and waits for it, and while the network computes, each
 * of these copies waits for its turn on the GPU.
 */
#include "backend/cuda/decode/decoder.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/pool.h"
#include "base/threads/thread.h"

#define LANES 4

/* Device memory of all groups: a share of the GPU's, within limits. */
#define MEMORY_SHARE 160
#define LEAST_PIXELS ((size_t)16 << 20)
#define MOST_PIXELS ((size_t)96 << 20)

/* A group with fewer pictures waits so long for more. */
#define FEW_PICTURES 16
#define GATHER_NS 300000

/* A group of 64 takes milliseconds. After this time the device counts as lost. */
#define HANG_NS ((int64_t)5 * 1000 * 1000 * 1000)

/* How long withdrawing and closing wait for the thread. */
#define WITHDRAW_NS ((int64_t)1000 * 1000 * 1000)

typedef enum lane_state {
    LANE_FREE,
    LANE_FILLING, /* takes pictures */
    LANE_RUNNING, /* its thread decodes */
    LANE_ENDING,  /* its thread calls `done` of its pictures */
    LANE_LOST     /* its pictures were given back; nobody uses it again */
} lane_state;

typedef struct lane {
    cuda_decoder *decoder; /* borrowed */
    cuda_group group;
    pthread_t thread;
    bool has_thread;
    pthread_cond_t work; /* for the thread: a picture has come, or the end */
    lane_state state;    /* lock */
    int copying;         /* pictures that are reserved and not filled in yet; lock */
    int64_t since_ns;    /* running: since when; lock */
} lane;

struct cuda_decoder {
    cuda_decoder_config config;
    cuda_jpeg jpeg;
    cuda_decode_tools tools;
    pthread_mutex_t lock;
    pthread_cond_t idle; /* a picture is filled in, a lane is free, or a thread has ended */
    lane lanes[LANES];
    lane *filling;        /* NULL: all lanes are busy; lock */
    int running;          /* lanes in LANE_RUNNING; lock */
    int threads;          /* that have not ended; lock */
    bool filling_is_full; /* a picture found no room in it; lock */
    bool quit;            /* lock */
    bool lost;            /* lock */
    int giving_back;      /* threads that call `done` for lost pictures; lock */
    int64_t idle_since_ns; /* since no lane runs; 0: one does; lock */
    atomic_int mood;      /* stk_offer: what an offer would probably be answered */
    int engines;          /* hardware engines; 0: the processors decode */
    atomic_ullong images, failed, bytes;
    atomic_ullong idle_ns; /* in which no lane had pictures to decode */
};

/* ---- giving up ---- */

/* Under the lock: takes the pictures of all lanes that the thread does not end itself. */
static int take_back(cuda_decoder *d, stk_device_picture *pictures) {
    int count = 0;
    for (int i = 0; i < LANES; i++) {
        lane *l = &d->lanes[i];
        if (l->state != LANE_FILLING && l->state != LANE_RUNNING) {
            continue;
        }
        while (l->copying > 0) { /* a worker copies: that is soon done */
            pthread_cond_wait(&d->idle, &d->lock);
        }
        for (int k = 0; k < l->group.count; k++) {
            pictures[count++] = l->group.pictures[k];
        }
        l->state = LANE_LOST;
    }
    return count;
}

/* The device decodes nothing any more: all pictures go back to the CPU. Without the lock. */
static void lose(cuda_decoder *d) {
    stk_device_picture pictures[LANES * CUDA_GROUP_PICTURES];
    pthread_mutex_lock(&d->lock);
    bool was_lost = d->lost;
    d->lost = true;
    atomic_store(&d->mood, STK_OFFER_REFUSED);
    int count = was_lost ? 0 : take_back(d, pictures);
    d->giving_back++;
    d->filling = NULL;
    for (int i = 0; i < LANES; i++) { /* threads that wait for pictures end */
        pthread_cond_signal(&d->lanes[i].work);
    }
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

/* ---- the threads ---- */

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

/* Under the lock: one lane more or less decodes. */
static void count_running(cuda_decoder *d, int more) {
    int64_t now = stk_clock_ns();
    if (d->running == 0) {
        atomic_fetch_add(&d->idle_ns, (uint64_t)(now - d->idle_since_ns));
    }
    d->running += more;
    d->idle_since_ns = now;
    if (d->running == 0 && d->filling != NULL) {
        pthread_cond_signal(&d->filling->work); /* it waits no longer for a full group */
    }
}

/* Under the lock: whether the lane has pictures that it need not keep waiting. */
static bool may_run(const lane *l) {
    const cuda_decoder *d = l->decoder;
    return l->state == LANE_FILLING && l->group.count > 0 &&
           (d->running == 0 || d->filling_is_full);
}

/* Waits for pictures and closes the group; false: the decoder ends or is lost. */
static bool take_pictures(lane *l) {
    cuda_decoder *d = l->decoder;
    pthread_mutex_lock(&d->lock);
    while (!d->quit && !d->lost && !may_run(l)) {
        pthread_cond_wait(&l->work, &d->lock);
    }
    int64_t end = stk_clock_ns() + GATHER_NS;
    while (!d->quit && !d->lost && l->group.count < FEW_PICTURES && !d->filling_is_full &&
           stk_cond_wait_until(&l->work, &d->lock, end)) {
    }
    bool goes_on = !d->quit && !d->lost;
    if (goes_on) {
        d->filling = NULL;
        d->filling_is_full = false;
        atomic_store(&d->mood, STK_OFFER_FULL);
        open_lane(d);
        count_running(d, 1);
        l->state = LANE_RUNNING;
        l->since_ns = stk_clock_ns();
        while (l->copying > 0) {
            pthread_cond_wait(&d->idle, &d->lock);
        }
        goes_on = !d->lost;
    }
    pthread_mutex_unlock(&d->lock);
    return goes_on;
}

static bool is_lost(cuda_decoder *d) {
    pthread_mutex_lock(&d->lock);
    bool lost = d->lost;
    pthread_mutex_unlock(&d->lock);
    return lost;
}

/* Makes the squares of a lane's pictures; false: the device is lost, and nothing of it may be
 * touched. */
static bool run(lane *l) {
    cuda_decoder *d = l->decoder;
    stk_cuda_group_decode(&l->group);
    if (is_lost(d)) {
        return false;
    }
    int result = stk_cuda_group_launch(&l->group);
    result = result == CUDA_GOOD ? stk_cuda_group_wait(&l->group) : result;
    if (result != CUDA_GOOD) {
        lose(d);
    }
    return result == CUDA_GOOD;
}

/* Tells of a lane's pictures; false as in run(). */
static bool end(lane *l) {
    cuda_decoder *d = l->decoder;
    pthread_mutex_lock(&d->lock);
    bool lost = d->lost;
    if (!lost) {
        l->state = LANE_ENDING;
        count_running(d, -1);
    }
    pthread_mutex_unlock(&d->lock);
    if (lost) {
        return false;
    }
    for (int i = 0; i < l->group.count; i++) {
        bool good = !l->group.failed[i];
        atomic_fetch_add(good ? &d->images : &d->failed, 1);
        l->group.pictures[i].done(l->group.pictures[i].user, good);
    }
    pthread_mutex_lock(&d->lock);
    l->state = LANE_FREE;
    open_lane(d);
    pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
    return true;
}

static void *work(void *argument) {
    lane *l = argument;
    cuda_decoder *d = l->decoder;
    if (d->config.driver->context_use(d->config.context) != CUDA_GOOD) {
        lose(d);
    }
    while (take_pictures(l) && run(l) && end(l)) {
    }
    pthread_mutex_lock(&d->lock);
    d->threads--;
    pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- loaders ---- */

/* Under the lock: reserves room in the lane that gathers pictures. */
static stk_offer reserve(cuda_decoder *d, const stk_device_picture *picture,
                         cuda_group_place *place) {
    lane *l = d->filling;
    if (d->lost || d->quit) {
        return STK_OFFER_REFUSED;
    }
    if (l == NULL) {
        return STK_OFFER_FULL;
    }
    stk_offer answer = stk_cuda_group_reserve(&l->group, picture, place);
    l->copying += answer == STK_OFFER_TAKEN;
    if (answer == STK_OFFER_FULL || l->group.count == CUDA_GROUP_PICTURES) {
        d->filling_is_full = true;
        atomic_store(&d->mood, STK_OFFER_FULL);
        pthread_cond_signal(&l->work);
    }
    return answer;
}

static stk_offer offer(void *state, const stk_device_picture *picture) {
    cuda_decoder *d = state;
    cuda_group_place place;
    pthread_mutex_lock(&d->lock);
    lane *l = d->filling;
    stk_offer answer = reserve(d, picture, &place);
    pthread_mutex_unlock(&d->lock);
    if (answer != STK_OFFER_TAKEN) {
        return answer;
    }
    stk_cuda_group_fill(&l->group, picture, &place);
    atomic_fetch_add(&d->bytes, picture->size);
    pthread_mutex_lock(&d->lock);
    l->copying--;
    if (l->copying == 0) {
        pthread_cond_broadcast(&d->idle);
    }
    if (place.index == 0 || place.index == FEW_PICTURES - 1) {
        pthread_cond_signal(&l->work);
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
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < LANES; i++) {
        hangs = hangs ||
                (d->lanes[i].state == LANE_RUNNING && now - d->lanes[i].since_ns > HANG_NS);
    }
    pthread_mutex_unlock(&d->lock);
    if (hangs) {
        lose(d);
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

static void withdraw(void *state, const void *owner) {
    cuda_decoder *d = state;
    int64_t end = stk_clock_ns() + WITHDRAW_NS;
    bool waits = true;
    pthread_mutex_lock(&d->lock);
    while (waits && has_picture(d, owner)) {
        waits = stk_cond_wait_until(&d->idle, &d->lock, end);
    }
    bool hangs = !waits && has_picture(d, owner);
    pthread_mutex_unlock(&d->lock);
    if (hangs) {
        lose(d);
        pthread_mutex_lock(&d->lock);
        while (has_picture(d, owner)) { /* another thread gives them back */
            pthread_cond_wait(&d->idle, &d->lock);
        }
        pthread_mutex_unlock(&d->lock);
    }
}

static void counts(void *state, stk_device_decoder_counts *to) {
    cuda_decoder *d = state;
    *to = (stk_device_decoder_counts){.images = atomic_load(&d->images),
                                      .failed = atomic_load(&d->failed),
                                      .bytes = atomic_load(&d->bytes),
                                      .idle_ns = atomic_load(&d->idle_ns),
                                      .device_bytes = d->config.memory_bytes,
                                      .engines = d->engines,
                                      .lost = atomic_load(&d->mood) == STK_OFFER_REFUSED};
}

stk_device_decoder stk_cuda_decoder_for_loaders(cuda_decoder *d) {
    return (stk_device_decoder){.state = d,
                                .is_sparing = d->engines == 0,
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

size_t stk_cuda_decoder_bytes(size_t total_bytes) {
    return LANES * lane_bytes(total_bytes);
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
    int result = d->config.by_processors
                     ? CUDA_JPEG_NO_SUCH_WAY
                     : j->create(CUDA_JPEG_BY_ENGINES, NULL, NULL, 0, &d->tools.handle);
    if (result == CUDA_JPEG_GOOD) {
        bool told = j->engines != NULL &&
                    j->engines(d->tools.handle, &engines, &cores) == CUDA_JPEG_GOOD && engines > 0;
        d->engines = told ? (int)engines : 1;
        return STK_OK;
    }
    d->tools.handle = NULL;
    return stk_cuda_jpeg_check(
        j->create(CUDA_JPEG_BY_PROCESSORS, NULL, NULL, 0, &d->tools.handle), "opening nvJPEG", err);
}

static stk_status open_lanes(cuda_decoder *d, stk_error *err) {
    size_t each = d->config.memory_bytes / LANES;
    stk_status status = STK_OK;
    for (int i = 0; i < LANES && status == STK_OK; i++) {
        status = stk_cuda_group_open(&d->lanes[i].group, &d->tools,
                                     d->config.memory + (size_t)i * each, each, err);
    }
    if (status == STK_OK) {
        open_lane(d);
    }
    return status;
}

static stk_status start_threads(cuda_decoder *d, stk_error *err) {
    const stk_thread_config config = {.what = "decodes pictures on the GPU"};
    stk_status status = STK_OK;
    for (int i = 0; i < LANES && status == STK_OK; i++) {
        lane *l = &d->lanes[i];
        status = stk_thread_start(&l->thread, &config, work, l, err);
        pthread_mutex_lock(&d->lock);
        l->has_thread = status == STK_OK;
        d->threads += l->has_thread;
        pthread_mutex_unlock(&d->lock);
    }
    return status;
}

/* Ends the threads; false: one hangs in a library, and all were abandoned. */
static bool end_threads(cuda_decoder *d) {
    int64_t end_ns = stk_clock_ns() + WITHDRAW_NS;
    bool waits = true;
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    for (int i = 0; i < LANES; i++) {
        pthread_cond_signal(&d->lanes[i].work);
    }
    while (waits && d->threads > 0) {
        waits = stk_cond_wait_until(&d->idle, &d->lock, end_ns);
    }
    bool ended = d->threads == 0;
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < LANES; i++) {
        if (d->lanes[i].has_thread && ended) {
            pthread_join(d->lanes[i].thread, NULL);
        } else if (d->lanes[i].has_thread) {
            pthread_detach(d->lanes[i].thread);
        }
    }
    return ended;
}

static void free_all(cuda_decoder *d) {
    for (int i = 0; i < LANES; i++) {
        stk_cuda_group_close(&d->lanes[i].group);
        pthread_cond_destroy(&d->lanes[i].work);
    }
    if (d->tools.handle != NULL) {
        (void)d->jpeg.destroy(d->tools.handle);
    }
    stk_cuda_jpeg_close(&d->jpeg);
    pthread_cond_destroy(&d->idle);
    pthread_mutex_destroy(&d->lock);
    stk_mem_free(d);
}

static void begin(cuda_decoder *d, const cuda_decoder_config *config) {
    d->config = *config;
    d->tools.driver = config->driver;
    d->tools.jpeg = &d->jpeg;
    d->idle_since_ns = stk_clock_ns();
    pthread_mutex_init(&d->lock, NULL);
    stk_cond_init(&d->idle);
    for (int i = 0; i < LANES; i++) {
        d->lanes[i].decoder = d;
        stk_cond_init(&d->lanes[i].work);
    }
}

stk_status stk_cuda_decoder_open(cuda_decoder **decoder, const cuda_decoder_config *config,
                                 stk_error *err) {
    cuda_decoder *d = stk_mem_new(1, sizeof *d);
    if (d == NULL) {
        return STK_FAIL_MEMORY(err, "the decoder of the GPU");
    }
    begin(d, config);
    stk_status status = open_jpeg(d, err);
    STK_THEN(status, stk_cuda_picture_kernels_make(&d->tools.kernels, config->kernels,
                                                   config->driver, err));
    STK_THEN(status, open_lanes(d, err));
    STK_THEN(status, start_threads(d, err));
    if (status != STK_OK) {
        if (end_threads(d)) {
            free_all(d);
        }
        return status;
    }
    *decoder = d;
    return STK_OK;
}

bool stk_cuda_decoder_close(cuda_decoder *d) {
    if (!end_threads(d)) {
        stk_pool_leave();
        return false;
    }
    free_all(d);
    return true;
}
