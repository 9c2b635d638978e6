/*
 * test_cuda_changes.c - random changes of pictures on a GPU: the bytes are those of the CPU.
 *
 * Many pictures go through one launch, as in a batch, each with changes of its own.
 */
#include "backend/cuda/emit/changes.h"
#include "cuda_play.h"

#define MOST_SIZE 224
#define MOST_VALUES ((size_t)3 * MOST_SIZE * MOST_SIZE)
#define MOST_PICTURES 512
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- a batch ---- */

typedef struct batch {
    int size; /* px */
    int count;
    stk_augment_draw draws[MOST_PICTURES];
} batch;

static batch all; /* too large for a stack */

static size_t values_of(int size) {
    return 3 * (size_t)size * (size_t)size;
}

/* Squares begin on boundaries of words, places in the batch anywhere. */
static size_t stride_of(int size) {
    return (values_of(size) + 3) / 4 * 4;
}

static void begin(int size) {
    all.size = size;
    all.count = 0;
}

static void add(stk_change change) {
    REQUIRE(all.count < MOST_PICTURES);
    all.draws[all.count++] = (stk_augment_draw){.count = 1, .changes = {change}};
}

static void add_none(void) {
    REQUIRE(all.count < MOST_PICTURES);
    all.draws[all.count++].count = 0;
}

/* Noise, smooth colours, few colours, or a single one. */
static void make_picture(int size, int number, uint8_t *pixels) {
    stk_rng rng = stk_rng_make(3, STK_RNG_TEST, 0, (uint64_t)number);
    size_t count = values_of(size);
    uint32_t base[3];
    for (size_t c = 0; c < 3; c++) {
        base[c] = (uint32_t)stk_rng_below(&rng, 256);
    }
    for (size_t i = 0; i < count; i++) {
        size_t x = i / 3 % (size_t)size;
        size_t y = i / 3 / (size_t)size;
        uint32_t noise = (uint32_t)stk_rng_below(&rng, 256);
        uint32_t smooth = base[i % 3] + (uint32_t)(x * (i % 3 + 1) + y * 2) + noise % 8;
        uint32_t few = noise < 200 ? base[i % 3] : 40 + noise % 3 * 70;
        uint32_t value[] = {noise, smooth, few, base[i % 3]};
        pixels[i] = (uint8_t)value[number % 8 == 7 ? 3 : number % 3];
    }
}

/* ---- on the device ---- */

typedef struct memory {
    cuda_pointer squares, spares, table;
    uint8_t *out; /* (count, size, size, 3) on the host, behind OUT_BEFORE bytes */
    size_t square_bytes, out_bytes;
} memory;

#define OUT_BEFORE 16
#define UNTOUCHED 0xA5

static bool take_memory(play_device *play, memory *m) {
    size_t count = (size_t)all.count;
    *m = (memory){.square_bytes = count * stride_of(all.size),
                  .out_bytes = count * values_of(all.size) + OUT_BEFORE + 4};
    return PLAY_GOOD(play, memory_take(&m->squares, m->square_bytes)) &&
           PLAY_GOOD(play, memory_take(&m->spares, m->square_bytes)) &&
           PLAY_GOOD(play, memory_take(&m->table, count * sizeof(cuda_picture))) &&
           PLAY_GOOD(play, host_take((void **)&m->out, m->out_bytes, 1));
}

static void give_memory_back(play_device *play, const memory *m) {
    cuda_pointer all_of_it[] = {m->squares, m->spares, m->table};
    for (size_t i = 0; i < COUNT(all_of_it); i++) {
        if (all_of_it[i] != 0) {
            (void)PLAY_GOOD(play, memory_free(all_of_it[i]));
        }
    }
    if (m->out != NULL) {
        (void)PLAY_GOOD(play, host_free(m->out));
    }
}

static void fill_table(const memory *m, size_t shift, cuda_picture *table) {
    for (size_t i = 0; i < (size_t)all.count; i++) {
        const stk_augment_draw *draw = &all.draws[i];
        memset(&table[i], 0xFF,
               sizeof table[i]); /* other fields are none of the kernel's business */
        table[i].size = all.size;
        table[i].square = m->squares + i * stride_of(all.size);
        table[i].spare = m->spares + i * stride_of(all.size);
        table[i].out = (uintptr_t)m->out + OUT_BEFORE + shift + i * values_of(all.size);
        table[i].change_count = draw->count;
        for (int k = 0; k < draw->count; k++) {
            stk_cuda_change_of(&draw->changes[k], all.size, &table[i].changes[k]);
        }
    }
}

/* Puts everything on the device and launches the kernel; results are in m->out. */
static bool launch(play_device *play, const cuda_launch *l, const memory *m, const uint8_t *squares,
                   const cuda_picture *table) {
    cuda_function function = stk_cuda_kernels_find(play->kernels, l, CUDA_TYPE_F16);
    const void *arguments[] = {&m->table};
    memset(m->out, UNTOUCHED, m->out_bytes);
    return function != NULL && play_fits(play, l, function) &&
           PLAY_GOOD(play, copy_in(m->squares, squares, m->square_bytes, play->stream)) &&
           PLAY_GOOD(play, fill(m->spares, 0xFF, m->square_bytes, play->stream)) &&
           PLAY_GOOD(play,
                     copy_in(m->table, table, (size_t)all.count * sizeof *table, play->stream)) &&
           PLAY_GOOD(play,
                     launch(function, l->grid[0], l->grid[1], 1, l->threads, 1, 1, l->shared_bytes,
                            play->stream, (void **)(uintptr_t)arguments, NULL)) &&
           PLAY_GOOD(play, stream_wait(play->stream));
}

/* ---- comparison ---- */

/* What the CPU makes of a picture; false: nothing is to be written. */
static bool make_wanted(size_t number, const uint8_t *from, uint8_t *wanted) {
    static uint8_t spare[MOST_VALUES];
    const stk_augment_draw *draw = &all.draws[number];
    memcpy(wanted, from, values_of(all.size));
    for (int k = 0; k < draw->count; k++) {
        stk_augment_make(&draw->changes[k], all.size, 3, wanted, spare);
    }
    return draw->count > 0;
}

static void compare(const memory *m, size_t shift, const uint8_t *squares) {
    static uint8_t wanted[MOST_VALUES];
    size_t values = values_of(all.size);
    size_t first = OUT_BEFORE + shift;
    for (size_t i = 0; i < (size_t)all.count; i++) {
        const uint8_t *got = m->out + first + i * values;
        if (!make_wanted(i, squares + i * stride_of(all.size), wanted)) {
            memset(wanted, UNTOUCHED, values);
        }
        size_t bad = 0;
        while (bad < values && got[bad] == wanted[bad]) {
            bad++;
        }
        if (bad < values) {
            const stk_change *change = &all.draws[i].changes[0];
            CHECK_FAIL("%d px, picture %zu: %d changes, the first of kind %d by %d: byte %zu is "
                       "%d, expected %d",
                       all.size, i, all.draws[i].count, (int)change->kind, change->amount, bad,
                       got[bad], wanted[bad]);
        }
    }
    for (size_t i = 0; i < m->out_bytes; i++) {
        if (i < first || i >= first + (size_t)all.count * values) {
            CHECK_INT(m->out[i], UNTOUCHED);
        }
    }
}

/* Runs the batch, on the emulated GPU also with blocks and threads in the opposite order. The first
 * picture begins `shift` bytes behind a boundary of words. */
static void run(play_device *play, size_t shift) {
    stk_error err = {0};
    memory m;
    cuda_program p;
    const cuda_program *programs[] = {&p};
    cuda_picture *table = stk_mem_new((size_t)all.count, sizeof *table);
    uint8_t *squares = stk_mem_new((size_t)all.count, stride_of(all.size));
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, play->multiprocessors);
    stk_cuda_picture_changes(&p, all.count, stk_cuda_buffer(&p, 8));
    bool good =
        take_memory(play, &m) && stk_cuda_program_lay_out(&p, &err) == STK_OK &&
        stk_cuda_kernels_make(play->kernels, programs, 1, &err) == STK_OK &&
        (play->proofs == NULL || stk_cuda_kernels_make(play->proofs, programs, 1, &err) == STK_OK);
    for (int i = 0; i < all.count; i++) {
        make_picture(all.size, i, squares + (size_t)i * stride_of(all.size));
    }
    if (good) {
        fill_table(&m, shift, table);
    } else {
        CHECK_FAIL("%s", err.message);
    }
    for (int turned = 0; turned < (play->emulated ? 2 : 1) && good; turned++) {
        if (play->emulated) {
            play->set_order(turned);
        }
        good = launch(play, &p.ops[0].launch, &m, squares, table);
        if (good) {
            compare(&m, shift, squares);
        }
    }
    if (play->emulated) {
        play->set_order(0);
    }
    give_memory_back(play, &m);
    stk_cuda_program_free(&p);
    stk_mem_free(squares);
    stk_mem_free(table);
}

/* ---- the tests ---- */

static const struct {
    stk_change_kind kind;
    int amounts[10];
    int count;
} kinds[] = {
    {STK_CHANGE_IDENTITY, {0}, 1},
    {STK_CHANGE_SHEAR_X, {0, 1, -1, 19661, -64881, 64881, STK_SHEAR_ONE, 5 * STK_SHEAR_ONE}, 8},
    {STK_CHANGE_SHEAR_Y, {0, 1, -1, 19661, -64881, 64881, -STK_SHEAR_ONE, -3 * STK_SHEAR_ONE}, 8},
    {STK_CHANGE_TRANSLATE_X, {0, 1, -1, 2, -3, 31, -64, 65, INT32_MAX, INT32_MIN + 1}, 10},
    {STK_CHANGE_TRANSLATE_Y, {0, 1, -1, 2, -3, 31, -64, 65, INT32_MAX, INT32_MIN + 1}, 10},
    {STK_CHANGE_ROTATE, {0, 1, -1, 15000, -30000, 45000, 90000, -135000, 180000, 123457}, 10},
    {STK_CHANGE_BRIGHTNESS, {0, 1, 1638, 16383, 16384, 16385, 20000, STK_FACTOR_MAX}, 8},
    {STK_CHANGE_SATURATION, {0, 1, 1638, 16383, 16384, 16385, 20000, STK_FACTOR_MAX}, 8},
    {STK_CHANGE_CONTRAST, {0, 1, 1638, 16383, 16384, 16385, 20000, STK_FACTOR_MAX}, 8},
    {STK_CHANGE_SHARPNESS, {0, 1, 1638, 16383, 16384, 16385, 20000, STK_FACTOR_MAX}, 8},
    {STK_CHANGE_POSTERIZE, {0, 1, 2, 4, 6, 7, 8}, 7},
    {STK_CHANGE_SOLARIZE, {0, 1, 100, 128, 255, 256}, 6},
    {STK_CHANGE_AUTOCONTRAST, {0, 0, 0, 0, 0, 0, 0, 0}, 8},
    {STK_CHANGE_EQUALIZE, {0, 0, 0, 0, 0, 0, 0, 0}, 8},
    {STK_CHANGE_HUE, {0, 1, -1, 4915, -4915, STK_HUE_SIXTH, -STK_HUE_MAX, STK_HUE_MAX}, 8},
};

/* Pictures differ by their number: so those of a change without an amount are of every sort. */
static void each_kind(void) {
    static const int sizes[] = {1, 2, 3, 7, 32, 65};
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (size_t s = 0; s < COUNT(sizes); s++) {
        int size = sizes[s];
        begin(size);
        add_none();
        for (size_t k = 0; k < COUNT(kinds); k++) {
            for (int i = 0; i < kinds[k].count; i++) {
                add((stk_change){.kind = kinds[k].kind, .amount = kinds[k].amounts[i]});
            }
        }
        for (int i = 0; i < size && i < 4; i++) {
            add((stk_change){.kind = STK_CHANGE_ERASE,
                             .x = i,
                             .y = i / 2,
                             .width = (size - i + 1) / 2,
                             .height = size - i / 2});
        }
        add((stk_change){.kind = STK_CHANGE_ERASE, .x = size / 2});
        add_none();
        run(&play, s % 4);
    }
    play_close(&play);
}

/* Chains as they are drawn, and the longest that can be. */
static void drawn_chains(void) {
    static const stk_augment_options options[] = {
        {.augment = STK_POLICY_RANDAUGMENT, .augment_ops = 3, .augment_magnitude = 9},
        {.augment = STK_POLICY_RANDAUGMENT, .augment_ops = 3, .augment_magnitude = 30},
        {.augment = STK_POLICY_TRIVIALAUGMENT, .augment_ops = 1},
        {.color_jitter = 0.4, .hue = 0.1, .erasing = 0.5},
        {.color_jitter = 1, .hue = 0.5, .rotate = 180},
        {.color_jitter = 0.4,
         .hue = 0.1,
         .rotate = 15,
         .augment = STK_POLICY_RANDAUGMENT,
         .augment_ops = STK_AUGMENT_MAX_OPS,
         .augment_magnitude = 12,
         .erasing = 1},
    };
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (int size = 31; size <= 32; size++) {
        int pictures = check_is_full() || !play.emulated ? MOST_PICTURES : 120;
        begin(size);
        for (; all.count < pictures; all.count++) {
            size_t which = (size_t)all.count % COUNT(options);
            stk_rng rng = stk_rng_make(7, STK_RNG_AUGMENT, (uint64_t)size, (uint64_t)all.count);
            stk_augment_choose(&options[which], size, &rng, &all.draws[all.count]);
        }
        run(&play, 0);
    }
    play_close(&play);
}

/* As large as a network's pictures: every thread goes many rounds. */
static void a_usual_size(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    begin(MOST_SIZE);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        add((stk_change){.kind = kinds[k].kind, .amount = kinds[k].amounts[kinds[k].count / 2]});
    }
    run(&play, 0);
    play_close(&play);
}

/* The places of rotations in the largest squares fit into the table. */
static void maps_fit(void) {
    for (int angle = -180000; angle <= 180000; angle += 1500) {
        for (int size = CUDA_MOST_SIDE - 1; size <= CUDA_MOST_SIDE; size++) {
            stk_change change = {.kind = STK_CHANGE_ROTATE, .amount = angle};
            stk_augment_map map;
            cuda_change given;
            REQUIRE(stk_augment_map_of(&change, size, &map));
            stk_cuda_change_of(&change, size, &given);
            CHECK(map.x_x == given.amount && map.y_y == given.amount);
            CHECK(map.x_y == given.x && map.y_x == given.y);
            CHECK(map.x_at == given.width && map.y_at == given.height);
        }
    }
}

static const check_test tests[] = {TEST(each_kind), TEST(drawn_chains), TEST(a_usual_size),
                                   TEST(maps_fit)};
CHECK_MAIN(tests)
