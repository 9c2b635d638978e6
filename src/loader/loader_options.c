/* loader_options.c - the loader's options, and the sizing that follows from them on a machine. */
#include "loader/loader.h"

#define FIELD(name) offsetof(stk_loader_options, name)

static const stk_option options[] = {
    STK_OPTION(
        INT, "workers", workers, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 1024), .may_change = true,
        .aliases = "num_workers", .metavar = "N",
        .help = "threads that decode; auto starts with the cores and follows the need; 0 means 1"),
    STK_OPTION(CHOICE, "decode", decode, .fallback = "auto", .choices = STK_DECODE_CHOICES,
               .may_change = true, .help = STK_DECODE_HELP),
    STK_OPTION(INT, "prefetch", prefetch, STK_OPTION_AUTO, STK_OPTION_RANGE(1, 1024),
               .may_change = true, .aliases = "prefetch_factor", .metavar = "N",
               .help = "batches prepared ahead, per worker; auto is what the consumer needs"),
    STK_OPTION(BYTES, "loader-memory", loader_memory, STK_OPTION_AUTO, .may_change = true,
               .metavar = "SIZE",
               .help =
                   "most memory for prepared batches and reads; auto is an eighth of the memory"),
    STK_OPTION(CHOICE, "sampling", sampling, .fallback = "auto",
               .choices = "natural balanced sqrt auto",
               .help = "how often classes are seen: as often as the data set has them, all equally "
                       "often, or in between (square root); auto: in between where the largest "
                       "class has at least five times as many pictures as the others on average, "
                       "otherwise natural"),
    STK_OPTION(DOUBLE, "max-bad", max_bad, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 100),
               .may_change = true, .metavar = "PERCENT",
               .help = "stop when more of the pictures than this cannot be used; auto is 5, and "
                       "more than three pictures"),
};

const stk_option_table stk_loader_option_table =
    STK_OPTION_TABLE("Loading", options, stk_loader_options);

/*
 * Automatic number of slots, for any number of workers, since all workers fill the same batches:
 * one in use, one or two complete, one or two being filled.
 */
#define AUTO_SLOTS 4
#define AUTO_MOST_SLOTS 8

/* stk_loader_resize may double the number of slots, up to this. */
#define MOST_ROOM_SLOTS 1024

/* Fewer samples under way per worker would make workers wait for each other. */
#define SAMPLES_PER_WORKER 8

/*
 * Shares of --loader-memory. A quarter, at most MOST_REST_MEMORY, is for connections and for bytes
 * on their way to the cache's disk. At most an eighth is for the scratch of workers. Reads take at
 * most a sixth, at most MOST_READ_MEMORY, and less where two batches need it.
 */
#define REST_SHARE 4
#define MOST_REST_MEMORY ((uint64_t)32 << 20)
#define WORKER_SHARE 8
#define WORKER_MEMORY ((uint64_t)1 << 20)
#define READ_SHARE 6
#define LEAST_READ_MEMORY ((uint64_t)1 << 20)
#define MOST_READ_MEMORY ((uint64_t)64 << 20)
#define MOST_READS 512

/* Decoding one picture may take this share of the machine's memory where no limit was given. */
#define PICTURE_SHARE 4

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high) {
    return value < low ? low : value > high ? high : value;
}

stk_loader_sizing stk_loader_sizing_make(const stk_loader_options *given, size_t batch,
                                         int img_size, int cores, uint64_t memory) {
    uint64_t image_bytes = (uint64_t)img_size * (uint64_t)img_size * 3;
    return stk_loader_sizing_for(given, batch, image_bytes, cores, memory);
}

stk_loader_sizing stk_loader_sizing_for(const stk_loader_options *given, size_t batch,
                                        uint64_t image_bytes, int cores, uint64_t memory) {
    bool auto_workers = stk_is_auto_int(given->workers);
    bool auto_prefetch = stk_is_auto_int(given->prefetch);
    stk_loader_sizing sizing = {
        .most_reads = MOST_READS, .tune_workers = auto_workers, .tune_slots = auto_prefetch};
    sizing.workers = auto_workers ? cores : (int)given->workers;
    sizing.workers = sizing.workers < 1 ? 1 : sizing.workers;
    sizing.most_workers = sizing.workers;
    bool auto_memory = given->loader_memory == STK_AUTO_BYTES;
    uint64_t cap = auto_memory ? memory / 8 : given->loader_memory;
    sizing.slot_bytes = (uint64_t)batch * image_bytes;
    uint64_t rest = clamp(cap / REST_SHARE, 0, MOST_REST_MEMORY) +
                    clamp((uint64_t)sizing.workers * WORKER_MEMORY, 0, cap / WORKER_SHARE);
    uint64_t taken = rest + STK_LOADER_LEAST_SLOTS * sizing.slot_bytes;
    uint64_t left = cap > taken + LEAST_READ_MEMORY ? cap - taken : LEAST_READ_MEMORY;
    sizing.read_memory = clamp(cap / READ_SHARE, 1, MOST_READ_MEMORY);
    sizing.read_memory = sizing.read_memory < left ? sizing.read_memory : left;
    sizing.picture_memory = auto_memory ? memory / PICTURE_SHARE : cap;
    taken = rest + sizing.read_memory;
    uint64_t allowed = cap > taken ? (cap - taken) / sizing.slot_bytes : 0;
    allowed = allowed > STK_LOADER_LEAST_SLOTS ? allowed : STK_LOADER_LEAST_SLOTS;
    uint64_t workers = (uint64_t)sizing.workers;
    uint64_t wanted = auto_prefetch ? AUTO_SLOTS + SAMPLES_PER_WORKER * workers / batch
                                    : workers * (uint64_t)given->prefetch;
    uint64_t most = auto_prefetch ? wanted + AUTO_MOST_SLOTS - AUTO_SLOTS : wanted;
    sizing.cut = allowed < wanted;
    sizing.slots = (int)clamp(wanted, STK_LOADER_LEAST_SLOTS, allowed);
    sizing.most_slots = (int)clamp(most, STK_LOADER_LEAST_SLOTS, allowed);
    sizing.room_workers = sizing.workers > cores ? sizing.workers : cores;
    sizing.room_slots = (int)clamp(clamp(2 * most, AUTO_MOST_SLOTS, MOST_ROOM_SLOTS),
                                   (uint64_t)sizing.most_slots, allowed);
    sizing.prefetch =
        auto_prefetch ? (sizing.slots + sizing.workers - 1) / sizing.workers : (int)given->prefetch;
    return sizing;
}

size_t stk_loader_bad_limit(const stk_loader_options *given, size_t count) {
    return stk_dataset_bad_allowed(given->max_bad, count) + 1;
}
