/*
 * test_emulated.c - the emulated GPU itself (tests/emulated): the same kernels give the same on a
 * real one, where there is one.
 */
#include "backend/cuda/emit/emit.h"
#include "cuda_play.h"

/* ---- small kernels ---- */

/* Allocates, uploads. */
static cuda_pointer upload(play_device *play, const void *from, size_t bytes) {
    cuda_pointer to = 0;
    if (PLAY_GOOD(play, memory_take(&to, bytes)) && from != NULL) {
        (void)PLAY_GOOD(play, copy_in(to, from, bytes, play->stream));
    }
    return to;
}

static void download(play_device *play, void *to, cuda_pointer from, size_t bytes) {
    (void)PLAY_GOOD(play, copy_out(to, from, bytes, play->stream));
    (void)PLAY_GOOD(play, stream_wait(play->stream));
}

static int start(play_device *play, cuda_function function, unsigned blocks, unsigned threads,
                 unsigned shared_bytes, const void *const *arguments) {
    return play->driver->launch(function, blocks, 1, 1, threads, 1, 1, shared_bytes, play->stream,
                                (void **)(uintptr_t)arguments, NULL);
}

static const char sum_text[] = "KERNEL block_sum(const float *x, float *y, int count) {\n"
                               "    SHARED(float, part);\n"
                               "    int t = (int)threadIdx.x;\n"
                               "    int at = (int)(blockIdx.x * blockDim.x) + t;\n"
                               "    part[t] = at < count ? x[at] : 0;\n"
                               "    __syncthreads();\n"
                               "    for (int step = (int)blockDim.x / 2; step > 0; step /= 2) {\n"
                               "        if (t < step) {\n"
                               "            part[t] += part[t + step];\n"
                               "        }\n"
                               "        __syncthreads();\n"
                               "    }\n"
                               "    if (t == 0) {\n"
                               "        y[blockIdx.x] = part[0];\n"
                               "    }\n"
                               "}\n";

static void sum_blocks(play_device *play, cuda_function function, int blocks, int threads) {
    int count = blocks * threads - threads / 16; /* the last block is not full */
    float *x = stk_mem_new((size_t)count, sizeof *x);
    float *y = stk_mem_new((size_t)blocks, sizeof *y);
    for (int i = 0; i < count; i++) {
        x[i] = (float)(i % 7);
    }
    cuda_pointer dx = upload(play, x, (size_t)count * sizeof *x);
    cuda_pointer dy = upload(play, NULL, (size_t)blocks * sizeof *y);
    const void *arguments[] = {&dx, &dy, &count};
    CHECK_INT(start(play, function, (unsigned)blocks, (unsigned)threads, (unsigned)threads * 4,
                    arguments),
              0);
    download(play, y, dy, (size_t)blocks * sizeof *y);
    for (int b = 0; b < blocks; b++) {
        float wanted = 0;
        for (int i = b * threads; i < (b + 1) * threads && i < count; i++) {
            wanted += (float)(i % 7);
        }
        CHECK_NEAR(y[b], wanted, 0);
    }
    CHECK_INT(play->driver->memory_free(dx), 0);
    CHECK_INT(play->driver->memory_free(dy), 0);
    stk_mem_free(x);
    stk_mem_free(y);
}

static void barriers(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, sum_text, "sum", "block_sum", CUDA_TYPE_F32, "");
    if (f != NULL) {
        sum_blocks(&play, f, 1, 1);
        sum_blocks(&play, f, 3, 64);
        sum_blocks(&play, f, 100, 256);
        sum_blocks(&play, f, 2, 1024);
    }
    play_close(&play);
}

static const char shuffle_text[] =
    "KERNEL shuffles(int *out) {\n"
    "    int t = (int)threadIdx.x, lane = t % 32;\n"
    "    float f = (float)t;\n"
    "    int *o = out + t * 8;\n"
    "    o[0] = __shfl_sync(0xFFFFFFFFu, t, 5);\n"
    "    o[1] = __shfl_xor_sync(0xFFFFFFFFu, t, 1);\n"
    "    o[2] = __shfl_down_sync(0xFFFFFFFFu, t, 4);\n"
    "    o[3] = __shfl_up_sync(0xFFFFFFFFu, t, 4);\n"
    "    o[4] = (int)__shfl_xor_sync(0xFFFFFFFFu, f, 16);\n"
    "    o[5] = __shfl_down_sync(0xFFFFFFFFu, t, 4, 8);\n"
    "    __syncwarp();\n"
    "    for (int step = 16; step > 0; step /= 2) {\n"
    "        f += __shfl_xor_sync(0xFFFFFFFFu, f, step);\n"
    "    }\n"
    "    o[6] = (int)f;\n"
    "    o[7] = (int)__ballot_sync(0xFFFFFFFFu, lane % 3 == 0) + (int)blockDim.x;\n"
    "}\n";

static void shuffles(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, shuffle_text, "shuffle", "shuffles", CUDA_TYPE_F32, "");
    int out[96 * 8];
    cuda_pointer d = upload(&play, NULL, sizeof out);
    const void *arguments[] = {&d};
    unsigned thirds = 0;
    for (int i = 0; i < 32; i += 3) {
        thirds |= 1u << i;
    }
    if (f != NULL && PLAY_GOOD((&play), launch(f, 1, 1, 1, 96, 1, 1, 0, play.stream,
                                               (void **)(uintptr_t)arguments, NULL))) {
        download(&play, out, d, sizeof out);
        for (int t = 0; t < 96; t++) {
            const int *o = &out[t * 8];
            int lane = t % 32;
            int warp = t - lane;
            CHECK_INT(o[0], warp + 5);
            CHECK_INT(o[1], t ^ 1);
            CHECK_INT(o[2], lane + 4 < 32 ? t + 4 : t);
            CHECK_INT(o[3], lane >= 4 ? t - 4 : t);
            CHECK_INT(o[4], t ^ 16);
            CHECK_INT(o[5], lane % 8 + 4 < 8 ? t + 4 : t);
            CHECK_INT(o[6], warp * 32 + 31 * 16);
            CHECK_INT((unsigned)o[7], thirds + 96);
        }
    }
    CHECK_INT(play.driver->memory_free(d), 0);
    play_close(&play);
}

static const char last_text[] =
    "KERNEL sum_parts(u32 *counter, int *part, long long *out, float *sum, float one) {\n"
    "    SHARED(int, last);\n"
    "    if (threadIdx.x == 0) {\n"
    "        part[blockIdx.x] = (int)blockIdx.x + 1;\n"
    "        __threadfence();\n"
    "        last[0] = atomicAdd(counter, 1u) == gridDim.x - 1;\n"
    "        atomicAdd(sum, one);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (last[0] && threadIdx.x == 0) {\n"
    "        long long all = 0;\n"
    "        for (u32 i = 0; i < gridDim.x; i++) {\n"
    "            all += part[i];\n"
    "        }\n"
    "        *out = all;\n"
    "        *counter = 0;\n"
    "    }\n"
    "}\n";

static void atomics(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, last_text, "last", "sum_parts", CUDA_TYPE_F32, "");
    unsigned zero[2] = {0, 0};
    cuda_pointer counter = upload(&play, &zero[0], 4);
    cuda_pointer sum = upload(&play, &zero[1], 4);
    cuda_pointer part = upload(&play, NULL, 50 * sizeof(int));
    cuda_pointer out = upload(&play, NULL, 8);
    float one = 1;
    const void *arguments[] = {&counter, &part, &out, &sum, &one};
    for (int round = 0; round < 2 && f != NULL; round++) {
        long long result = 0;
        float counted = 0;
        CHECK_INT(start(&play, f, 50, 64, 16, arguments), 0);
        download(&play, &result, out, 8);
        download(&play, &counted, sum, 4);
        CHECK_INT(result, 50 * 51 / 2);
        CHECK_NEAR(counted, 50 * (round + 1), 0);
    }
    CHECK_INT(play.driver->memory_free(counter), 0);
    CHECK_INT(play.driver->memory_free(sum), 0);
    CHECK_INT(play.driver->memory_free(part), 0);
    CHECK_INT(play.driver->memory_free(out), 0);
    play_close(&play);
}

/* ---- 16-bit floats ---- */

static const char convert_text[] =
    "KERNEL convert(const float *x, u16 *halves, u16 *bfloats, u32 *both, float *up, float *bup, "
    "int count) {\n"
    "    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count;\n"
    "         i += (int)(gridDim.x * blockDim.x)) {\n"
    "        halves[i] = half_down(x[i]);\n"
    "        bfloats[i] = bfloat_down(x[i]);\n"
    "        both[i] = half_down2(x[i], -x[i]) ^ bfloat_down2(x[i], -x[i]);\n"
    "        up[i] = half_up((u16)(i & 0xFFFF));\n"
    "        bup[i] = bfloat_up((u16)(i & 0xFFFF));\n"
    "    }\n"
    "}\n";

/* Every half, and the ties between neighbours, and what lies just beside the ties. */
enum { CONVERTED = 4 * 65536 };

static void fill_conversions(float *x) {
    for (int i = 0; i < 65536; i++) {
        float here = play_half_up((uint16_t)i);
        float next = play_half_up((uint16_t)(i < 65535 ? i + 1 : i));
        float tie = here / 2 + next / 2;
        x[i] = here;
        x[65536 + i] = tie;
        x[2 * 65536 + i] = nextafterf(tie, INFINITY);
        x[3 * 65536 + i] = nextafterf(tie, 0);
    }
    x[65536] = 65519.996f;
    x[65537] = 65520;
    x[65538] = 0x1.0p-25f;
    x[65539] = 0x1.000002p-25f;
    x[65540] = 3.4e38f;
    x[65541] = -0x1.fffffep-14f;
    x[65542] = -0.0f;
}

static void check_conversions(const float *x, const uint16_t *halves, const uint16_t *bfloats,
                              const uint32_t *both, const float *up, const float *bup) {
    int bad = 0;
    for (int i = 0; i < CONVERTED && bad < 10; i++) {
        uint32_t half = play_half_down(x[i]);
        uint32_t bfloat = play_bfloat_down(x[i]);
        uint32_t pair = (half | (uint32_t)play_half_down(-x[i]) << 16) ^
                        (bfloat | (uint32_t)play_bfloat_down(-x[i]) << 16);
        float wanted = play_half_up((uint16_t)i);
        float bwanted = play_bfloat_up((uint16_t)i);
        bool same = halves[i] == half && bfloats[i] == bfloat && both[i] == pair &&
                    (memcmp(&up[i], &wanted, 4) == 0 || (isnan(up[i]) && isnan(wanted))) &&
                    (memcmp(&bup[i], &bwanted, 4) == 0 || (isnan(bup[i]) && isnan(bwanted)));
        if (!same) {
            CHECK_FAIL("%d: %a becomes %04x and %04x, expected %04x and %04x; up %a, expected %a",
                       i, (double)x[i], halves[i], bfloats[i], half, bfloat, (double)up[i],
                       (double)wanted);
            bad++;
        }
    }
}

static void conversions(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, convert_text, "convert", "convert", CUDA_TYPE_F16, "");
    int count = CONVERTED;
    size_t n = CONVERTED;
    float *x = stk_mem_new(n, 4);
    fill_conversions(x);
    cuda_pointer places[6] = {upload(&play, x, n * 4),    upload(&play, NULL, n * 2),
                              upload(&play, NULL, n * 2), upload(&play, NULL, n * 4),
                              upload(&play, NULL, n * 4), upload(&play, NULL, n * 4)};
    const void *arguments[] = {&places[0], &places[1], &places[2], &places[3],
                               &places[4], &places[5], &count};
    uint16_t *halves = stk_mem_new(n, 2);
    uint16_t *bfloats = stk_mem_new(n, 2);
    uint32_t *both = stk_mem_new(n, 4);
    float *up = stk_mem_new(n, 4);
    float *bup = stk_mem_new(n, 4);
    if (f != NULL && start(&play, f, 16, 128, 0, arguments) == 0) {
        download(&play, halves, places[1], n * 2);
        download(&play, bfloats, places[2], n * 2);
        download(&play, both, places[3], n * 4);
        download(&play, up, places[4], n * 4);
        download(&play, bup, places[5], n * 4);
        check_conversions(x, halves, bfloats, both, up, bup);
    } else {
        CHECK_FAIL("it did not run");
    }
    for (int i = 0; i < 6; i++) {
        CHECK_INT(play.driver->memory_free(places[i]), 0);
    }
    stk_mem_free(x);
    stk_mem_free(halves);
    stk_mem_free(bfloats);
    stk_mem_free(both);
    stk_mem_free(up);
    stk_mem_free(bup);
    play_close(&play);
}

/* The host's own conversions, against numbers that are known. */
static void known_halves(void) {
    CHECK_INT(play_half_down(1.0f), 0x3C00);
    CHECK_INT(play_half_down(-2.0f), 0xC000);
    CHECK_INT(play_half_down(65504.0f), 0x7BFF);
    CHECK_INT(play_half_down(65519.996f), 0x7BFF);
    CHECK_INT(play_half_down(65520.0f), 0x7C00);
    CHECK_INT(play_half_down(0x1.0p-24f), 0x0001);
    CHECK_INT(play_half_down(0x1.0p-25f), 0x0000);
    CHECK_INT(play_half_down(0x1.8p-24f), 0x0002);
    CHECK_INT(play_half_down(0x1.ff8p-15f), 0x03FF);
    CHECK_INT(play_half_down(0x1.0p-14f), 0x0400);
    CHECK_INT(play_half_down(0x1.ffcp-15f), 0x0400);
    CHECK_INT(play_half_down(1 + 0x1.0p-11f), 0x3C00);
    CHECK_INT(play_half_down(1 + 0x1.8p-10f), 0x3C02);
    CHECK_INT(play_half_down(NAN), 0x7FFF);
    CHECK_INT(play_bfloat_down(1.0f), 0x3F80);
    CHECK_INT(play_bfloat_down(1 + 0x1.0p-8f), 0x3F80);
    CHECK_INT(play_bfloat_down(1 + 0x1.8p-7f), 0x3F82);
    CHECK_INT(play_bfloat_down(3.4e38f), 0x7F80);
    CHECK_INT(play_bfloat_down(NAN), 0x7FFF);
    for (int i = 0; i < 65536; i++) {
        float up = play_half_up((uint16_t)i);
        if (!isnan(up)) {
            CHECK_INT(play_half_down(up), i);
        }
    }
}

/* ---- graphs ---- */

static const char step_text[] = "KERNEL add_to(int *x, int value) {\n"
                                "    x[threadIdx.x] += value;\n"
                                "}\n";

/* What the emulated cuDNN puts on a stream. */
static int calls;

static void count_call(void *argument) {
    int amount;
    memcpy(&amount, argument, sizeof amount);
    calls += amount;
}

typedef int (*enqueue_function)(cuda_stream stream, void (*fn)(void *), const void *argument,
                                size_t bytes);

static enqueue_function find_enqueue(const play_device *play) {
    enqueue_function enqueue = NULL;
    void *found = dlsym(play->libraries.handles[CUDA_LIBRARY_DRIVER], "emu_enqueue");
    memcpy(&enqueue, &found, sizeof found);
    return enqueue;
}

/* x = 1; x += 10 (thrice as often as launched); y = x. */
static void record(play_device *play, cuda_function f, cuda_pointer x, cuda_pointer y) {
    int value = 10;
    int more = 2;
    const void *arguments[] = {&x, &value};
    CHECK_INT(play->driver->capture_begin(play->stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(play->driver->fill(x, 1, 32 * sizeof(int), play->stream), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(start(play, f, 1, 32, 0, arguments), 0);
    }
    CHECK_INT(play->driver->copy(y, x, 32 * sizeof(int), play->stream), 0);
    if (play->emulated) {
        CHECK_INT(find_enqueue(play)(play->stream, count_call, &more, sizeof more), 0);
    }
    value = 1000; /* arguments were copied */
    more = 1000;
}

static void graphs(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_function f = play_kernel_of(&play, step_text, "step", "add_to", CUDA_TYPE_F32, "");
    int given[32];
    int got[32];
    memset(given, 0x7F, sizeof given);
    calls = 0;
    cuda_pointer x = upload(&play, given, sizeof given);
    cuda_pointer y = upload(&play, given, sizeof given);
    cuda_graph graph = NULL;
    cuda_graph_exec exec = NULL;
    if (f != NULL) {
        record(&play, f, x, y);
        CHECK_INT(play.driver->capture_end(play.stream, &graph), 0);
        download(&play, got, y, sizeof got);
        CHECK_INT(got[5], given[5]); /* nothing has happened yet */
        CHECK_INT(play.driver->graph_make(&exec, graph, 0), 0);
        CHECK_INT(play.driver->graph_free(graph), 0);
        for (int i = 1; i <= 2; i++) {
            CHECK_INT(play.driver->graph_launch(exec, play.stream), 0);
            download(&play, got, y, sizeof got);
            CHECK_INT(got[0], 0x01010101 + 30);
            CHECK_INT(got[31], 0x01010101 + 30);
            CHECK_INT(calls, play.emulated ? 2 * i : 0);
        }
        CHECK_INT(play.driver->graph_exec_free(exec), 0);
    }
    CHECK_INT(play.driver->memory_free(x), 0);
    CHECK_INT(play.driver->memory_free(y), 0);
    play_close(&play);
}

/* What may not be done while a stream captures spoils the capture. */
static void forbidden_while_capturing(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_graph graph = NULL;
    cuda_pointer x = 0;
    CHECK_INT(play.driver->capture_begin(play.stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(play.driver->stream_wait(play.stream), 900);
    CHECK_INT(play.driver->capture_end(play.stream, &graph), 901);
    CHECK(graph == NULL);
    CHECK_INT(play.driver->capture_begin(play.stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(play.driver->memory_take(&x, 64), 900);
    CHECK_INT(play.driver->capture_end(play.stream, &graph), 901);
    CHECK_INT(play.driver->capture_begin(play.stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(play.driver->capture_end(play.stream, &graph), 0);
    CHECK_INT(play.driver->graph_free(graph), 0);
    play_close(&play);
}

/* A second stream joins a capture by waiting for an event of it. */
static void joined_capture(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_stream side = NULL;
    cuda_event fork_event = NULL;
    cuda_event join_event = NULL;
    cuda_graph graph = NULL;
    cuda_graph_exec exec = NULL;
    unsigned char got = 0;
    cuda_pointer x = upload(&play, &got, 1);
    CHECK_INT(play.driver->stream_new(&side, CUDA_STREAM_NON_BLOCKING), 0);
    CHECK_INT(play.driver->event_new(&fork_event, CUDA_EVENT_NO_TIMING), 0);
    CHECK_INT(play.driver->event_new(&join_event, CUDA_EVENT_NO_TIMING), 0);
    CHECK_INT(play.driver->capture_begin(play.stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(play.driver->event_record(fork_event, play.stream), 0);
    CHECK_INT(play.driver->stream_wait_event(side, fork_event, 0), 0);
    CHECK_INT(play.driver->fill(x, 7, 1, side), 0);
    CHECK_INT(play.driver->event_record(join_event, side), 0);
    CHECK_INT(play.driver->stream_wait_event(play.stream, join_event, 0), 0);
    CHECK_INT(play.driver->capture_end(play.stream, &graph), 0);
    download(&play, &got, x, 1);
    CHECK_INT(got, 0);
    CHECK_INT(play.driver->graph_make(&exec, graph, 0), 0);
    CHECK_INT(play.driver->graph_launch(exec, play.stream), 0);
    download(&play, &got, x, 1);
    CHECK_INT(got, 7);
    CHECK_INT(play.driver->graph_exec_free(exec), 0);
    CHECK_INT(play.driver->graph_free(graph), 0);
    CHECK_INT(play.driver->event_free(fork_event), 0);
    CHECK_INT(play.driver->event_free(join_event), 0);
    CHECK_INT(play.driver->stream_free(side), 0);
    CHECK_INT(play.driver->memory_free(x), 0);
    play_close(&play);
}

static void events(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_event begin = NULL;
    cuda_event end = NULL;
    float ms = -1;
    CHECK_INT(play.driver->event_new(&begin, 0), 0);
    CHECK_INT(play.driver->event_new(&end, 0), 0);
    CHECK_INT(play.driver->event_elapsed_ms(&ms, begin, end), 400);
    CHECK_INT(play.driver->event_record(begin, play.stream), 0);
    CHECK_INT(play.driver->event_record(end, play.stream), 0);
    CHECK_INT(play.driver->event_wait(end), 0);
    CHECK_INT(play.driver->event_query(end), 0);
    CHECK_INT(play.driver->event_elapsed_ms(&ms, begin, end), 0);
    CHECK(ms >= 0);
    CHECK_INT(play.driver->event_free(begin), 0);
    CHECK_INT(play.driver->event_free(end), 0);
    play_close(&play);
}

/* ---- programs ---- */

/* The harness: numbers of every type go to a kernel and come back. */
static void programs(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    enum { COUNT = 1003 };
    static float a[COUNT], b[COUNT], got[COUNT], wanted[COUNT];
    for (int type = 0; type < 3; type++) {
        cuda_program p;
        stk_cuda_program_begin(&p, (cuda_type)type, false, play.multiprocessors);
        size_t bytes = COUNT * cuda_type_bytes(p.type);
        cuda_ref x = stk_cuda_buffer(&p, bytes);
        cuda_ref y = stk_cuda_buffer(&p, bytes);
        cuda_ref sum = stk_cuda_buffer(&p, bytes);
        play_random(p.type, a, COUNT, -1, 1, 1);
        play_random(p.type, b, COUNT, -1, 1, 2);
        for (int i = 0; i < COUNT; i++) {
            wanted[i] = a[i] + b[i];
        }
        play_round(p.type, wanted, COUNT);
        stk_cuda_add(&p, COUNT, x, y, sum);
        play_data data[] = {play_in(x, PLAY_T, COUNT, a), play_in(y, PLAY_T, COUNT, b),
                            play_out(sum, PLAY_T, COUNT, got)};
        CHECK(play_run(&play, &p, data, 3));
        play_check_each("sum", got, wanted, COUNT, 0, 0);
        stk_cuda_program_free(&p);
    }
    play_close(&play);
}

/* Defines in every place that a kernel may have them in. */
static const char define_text[] = "#define TWICE (2 * ROWS)\n"
                                  "#define ALL \\\n"
                                  "    int *y, int more\n"
                                  "typedef struct some_ints {\n"
                                  "    int v[HELD + 1];\n"
                                  "} some_ints;\n"
                                  "#ifdef K_other\n"
                                  "KERNEL other(float x) {\n    nobody(x);\n}\n"
                                  "#endif\n"
                                  "KERNEL tells(const int *x /* (A, B) */, ALL) {\n"
                                  "    int many[TWICE];\n"
                                  "    int zeros[ZEROS] = {0};\n"
                                  "    for (int i = 0; i < TWICE; i++) {\n"
                                  "        many[i] = x[0] + i;\n"
                                  "    }\n"
                                  "    y[0] = many[TWICE - 1] + zeros[ZEROS - 1];\n"
                                  "    y[1] = (int)sizeof(some_ints) + more;\n"
                                  "#if KIND == 2\n"
                                  "    y[2] = KIND * ROWS;\n"
                                  "#else\n"
                                  "    y[2] = -1;\n"
                                  "#endif\n"
                                  "}\n";

static void defines(void) {
    static const struct {
        int rows, held, zeros, kind;
    } cases[] = {{3, 1, 2, 2}, {40, 1, 2, 2}, {3, 6, 2, 2}, {3, 1, 5, 1}, {1000, 0, 1, 2}};
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[100];
        int first = 7;
        int more = 100;
        int got[3] = {0};
        int rows = cases[i].rows;
        snprintf(words, sizeof words, "-DROWS=%d -DHELD=%d -DZEROS=%d -DKIND=%d", rows,
                 cases[i].held, cases[i].zeros, cases[i].kind);
        cuda_function f =
            play_kernel_of(&play, define_text, "defines", "tells", CUDA_TYPE_F32, words);
        if (f == NULL) {
            break;
        }
        cuda_pointer x = upload(&play, &first, sizeof first);
        cuda_pointer y = upload(&play, NULL, sizeof got);
        const void *arguments[] = {&x, &y, &more};
        CHECK_INT(start(&play, f, 1, 1, 0, arguments), 0);
        download(&play, got, y, sizeof got);
        CHECK_INT(got[0], first + 2 * rows - 1);
        CHECK_INT(got[1], (int)sizeof(int) * (cases[i].held + 1) + more);
        CHECK_INT(got[2], cases[i].kind == 2 ? 2 * rows : -1);
        CHECK_INT(play.driver->memory_free(x), 0);
        CHECK_INT(play.driver->memory_free(y), 0);
    }
    play_close(&play);
}

static const check_test tests[] = {
    TEST(barriers),       TEST(shuffles),     TEST(atomics), TEST(defines),
    TEST(conversions),    TEST(known_halves), TEST(graphs),  TEST(forbidden_while_capturing),
    TEST(joined_capture), TEST(events),       TEST(programs)};
CHECK_MAIN(tests)
