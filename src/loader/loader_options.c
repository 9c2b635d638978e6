/* loader_options.c - the loader's options and what they come to on a machine. */
#include "loader/loader.h"

static const stk_option options[] = {
    {.name = "workers",
     .aliases = "num_workers",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_loader_options, workers),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 0,
     .max = 1024,
     .metavar = "N",
     .help = "threads that read and decode; 0 means 1"},
    {.name = "prefetch",
     .aliases = "prefetch_factor",
     .type = STK_OPTION_INT,
     .offset = offsetof(stk_loader_options, prefetch),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 1,
     .max = 1024,
     .metavar = "N",
     .help = "batches prepared ahead, per worker"},
    {.name = "loader-memory",
     .type = STK_OPTION_BYTES,
     .offset = offsetof(stk_loader_options, loader_memory),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "SIZE",
     .help = "most memory for prepared batches; auto is an eighth of the machine's"},
    {.name = "sampling",
     .type = STK_OPTION_CHOICE,
     .offset = offsetof(stk_loader_options, sampling),
     .fallback = "natural",
     .choices = "natural balanced sqrt",
     .help = "how often classes are seen: as often as they are, all equally often, or between"},
    {.name = "max-bad",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(stk_loader_options, max_bad),
     .fallback = "5",
     .min = 0,
     .max = 100,
     .metavar = "PERCENT",
     .help = "stop when more of the pictures than this cannot be used; one never stops a run"},
};

const stk_option_table stk_loader_option_table =
    STK_OPTION_TABLE("Loading", options, stk_loader_options);

/* Training on a CPU needs the cores itself: half of them decode, which real photographs need. */
#define CORES_PER_WORKER 2
#define AUTO_PREFETCH 4
#define LEAST_SLOTS 2

stk_loader_plan stk_loader_plan_make(const stk_loader_options *given, size_t batch, int img_size,
                                     int cores, uint64_t memory) {
    stk_loader_plan plan = {0};
    bool auto_workers = stk_is_auto_int(given->workers);
    plan.workers = auto_workers ? cores / CORES_PER_WORKER : (int)given->workers;
    plan.workers = plan.workers < 1 ? 1 : plan.workers;
    plan.prefetch = stk_is_auto_int(given->prefetch) ? AUTO_PREFETCH : (int)given->prefetch;
    uint64_t cap = given->loader_memory == STK_AUTO_BYTES ? memory / 8 : given->loader_memory;
    uint64_t slot_bytes = (uint64_t)batch * (uint64_t)img_size * (uint64_t)img_size * 3;
    uint64_t wanted = (uint64_t)plan.workers * (uint64_t)plan.prefetch;
    uint64_t allowed = cap / slot_bytes;
    wanted = wanted < LEAST_SLOTS ? LEAST_SLOTS : wanted;
    plan.cut = allowed < wanted;
    wanted = allowed < wanted ? allowed : wanted;
    plan.slots = wanted < LEAST_SLOTS ? LEAST_SLOTS : (int)wanted;
    return plan;
}
