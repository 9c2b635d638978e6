/*
 * test_opened_decoder.c - who decodes: what --decode asks for, what a device can, what is told, and
 * which memory is left to the batch. The device is the CPU's, with a decoder that decodes nothing.
 */
#include "check.h"

#include "backend/cpu/device.h"
#include "backend/opened_decoder.h"
#include "base/error.h"
#include "job/training/job.h"

#define MIB ((uint64_t)1 << 20)
#define DECODER_BYTES (400 * MIB)

/* The fake device, and what became of its decoder. */
static struct {
    stk_status opens; /* what decoder_open answers */
    int engines;
    uint64_t total_bytes, free_bytes; /* before the decoder was opened */
    uint64_t held_bytes;              /* that the open decoder has taken */
    int opened, closed;
} fake;

static stk_status fake_memory(stk_device *device, stk_device_memory *memory, stk_error *err) {
    (void)device;
    (void)err;
    uint64_t held = fake.opened > fake.closed ? fake.held_bytes : 0;
    *memory = (stk_device_memory){fake.total_bytes, fake.free_bytes - held};
    return STK_OK;
}

static uint64_t fake_bytes(stk_device *device) {
    (void)device;
    return DECODER_BYTES;
}

static void fake_counts(void *state, stk_device_decoder_counts *counts) {
    (void)state;
    *counts = (stk_device_decoder_counts){.engines = fake.engines, .device_bytes = fake.held_bytes};
}

static stk_status fake_open(stk_device_decoder *decoder, stk_device *device, stk_error *err) {
    (void)device;
    decoder->state = &fake; /* a failure may leave it like this */
    decoder->counts = fake_counts;
    fake.opened += fake.opens == STK_OK;
    return fake.opens == STK_OK ? STK_OK : STK_FAIL(err, fake.opens, "libnvjpeg was not found");
}

static void fake_close(stk_device *device) {
    (void)device;
    fake.closed++;
}

/* A GPU of 80 GiB with seven engines, whose decoder takes all its memory when it is opened. */
static stk_opened_device begin(stk_backend *backend) {
    fake.opens = STK_OK;
    fake.engines = 7;
    fake.total_bytes = 81920 * MIB;
    fake.free_bytes = 80000 * MIB;
    fake.held_bytes = DECODER_BYTES;
    fake.opened = fake.closed = 0;
    *backend = stk_cpu_backend;
    backend->name = "cuda";
    backend->memory = fake_memory;
    backend->decoder_bytes = fake_bytes;
    backend->decoder_open = fake_open;
    backend->decoder_close = fake_close;
    return (stk_opened_device){.backend = backend, .name = "cuda:0", .why = "given"};
}

static const stk_decoder_wish automatic = {.decode = STK_DECODE_AUTO};
static const stk_decoder_wish only_gpu = {.decode = STK_DECODE_GPU};
static const stk_decoder_wish both = {.decode = STK_DECODE_BOTH};

static char told[600];

static void hear(void *user, const stk_event_decision *event) {
    (void)user;
    snprintf(told, sizeof told, "%s: %s", event->what, event->why);
}

/* What is told of an opened decoder; "": nothing. */
static const char *telling(const stk_opened_decoder *opened) {
    static const stk_observer observer = {.decision = hear};
    stk_events events = {0};
    stk_events_add(&events, &observer);
    told[0] = '\0';
    stk_opened_decoder_emit(opened, &events);
    return told;
}

static void a_gpu_with_engines_decodes_beside_the_cpu(void) {
    stk_backend backend;
    stk_opened_device device = begin(&backend);
    stk_opened_decoder opened;
    stk_error err = {0};
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_BOTH);
    CHECK(!opened.always && opened.decoder.state != NULL);
    CHECK(opened.bytes == DECODER_BYTES);
    CHECK_INT(stk_opened_decoder_engines(&opened), 7);
    CHECK_STR(telling(&opened), "decode both: 7 JPEG engines of the GPU, and the CPU's cores");
    stk_opened_decoder_close(&opened);
    stk_opened_decoder_close(&opened);
    CHECK_INT(fake.closed, 1);
    CHECK(opened.decoder.state == NULL);
}

static void a_gpu_alone_or_deterministic_decodes_all_that_it_can(void) {
    stk_decoder_wish same = {.decode = STK_DECODE_AUTO, .deterministic = true};
    stk_backend backend;
    stk_opened_device device = begin(&backend);
    stk_opened_decoder opened;
    stk_error err = {0};
    fake.engines = 1;
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &only_gpu, &err), &err);
    CHECK(opened.always && opened.decode == STK_DECODE_GPU);
    CHECK_STR(telling(&opened), "decode gpu: 1 JPEG engine of the GPU; the CPU decodes the rest");
    stk_opened_decoder_close(&opened);
    fake.engines = 0;
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &same, &err), &err);
    CHECK(opened.always && opened.decode == STK_DECODE_BOTH);
    CHECK_STR(telling(&opened), "decode both: the GPU's processors; the CPU decodes the rest");
    stk_opened_decoder_close(&opened);
}

static void the_cpu_decodes_where_that_is_asked_for(void) {
    stk_decoder_wish cpu = {.decode = STK_DECODE_CPU};
    stk_backend backend;
    stk_opened_device device = begin(&backend);
    stk_opened_decoder opened;
    stk_error err = {0};
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &cpu, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_CPU);
    CHECK_INT(fake.opened, 0);
    CHECK(opened.bytes == 0 && stk_opened_decoder_owed(&opened) == 0);
    CHECK_STR(telling(&opened), "");
    stk_opened_decoder_close(&opened);
    CHECK_INT(fake.closed, 0);
}

static void a_cpu_needs_no_decoder_and_no_words(void) {
    stk_opened_device device = {.backend = &stk_cpu_backend, .name = "cpu", .why = "given"};
    stk_decoder_wish kept = {.decode = STK_DECODE_BOTH, .kept = true};
    stk_opened_decoder opened;
    stk_error err = {0};
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_CPU);
    CHECK_STR(telling(&opened), "");
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &kept, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_CPU);
    CHECK_INT(stk_opened_decoder_open(&opened, &device, &only_gpu, &err), STK_ERR_USAGE);
    CHECK_STR(err.message,
              "--decode gpu needs a GPU, and the device is cpu (given); use --decode cpu or auto");
    stk_error_clear(&err);
    CHECK_INT(stk_opened_decoder_check("cpu", &both, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--decode both needs a GPU");
    stk_error_clear(&err);
    REQUIRE_OK(stk_opened_decoder_check("cpu", &automatic, &err), &err);
    REQUIRE_OK(stk_opened_decoder_check("cpu", &kept, &err), &err);
}

static void a_gpu_that_cannot_leaves_it_to_the_cpu_unless_it_must(void) {
    stk_decoder_wish kept = {.decode = STK_DECODE_GPU, .kept = true};
    static const stk_status reasons[] = {STK_ERR_DEVICE, STK_ERR_MEMORY};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        stk_backend backend;
        stk_opened_device device = begin(&backend);
        stk_opened_decoder opened;
        stk_error err = {0};
        fake.opens = reasons[i];
        REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
        CHECK(opened.decode == STK_DECODE_CPU && opened.decoder.state == NULL);
        CHECK(opened.bytes == 0 && stk_opened_decoder_owed(&opened) == 0);
        CHECK_STR(telling(&opened), "decode cpu: libnvjpeg was not found");
        REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &kept, &err), &err);
        CHECK_INT(opened.decode, STK_DECODE_CPU);
        CHECK_INT(stk_opened_decoder_open(&opened, &device, &both, &err), reasons[i]);
        CHECK_STR(err.message, "--decode both: cuda:0 cannot decode pictures: libnvjpeg was not "
                               "found; use --decode cpu or auto");
        stk_opened_decoder_close(&opened);
        CHECK_INT(fake.closed, 0);
    }
}

static void an_interrupted_opening_is_an_error(void) {
    stk_backend backend;
    stk_opened_device device = begin(&backend);
    stk_opened_decoder opened;
    stk_error err = {0};
    fake.opens = STK_ERR_STOPPED;
    CHECK_INT(stk_opened_decoder_open(&opened, &device, &automatic, &err), STK_ERR_STOPPED);
    CHECK(opened.decoder.state == NULL);
}

static void a_backend_without_functions_cannot_decode(void) {
    stk_backend backend;
    stk_opened_device device = begin(&backend);
    stk_opened_decoder opened;
    stk_error err = {0};
    backend.decoder_bytes = NULL;
    backend.decoder_open = NULL;
    backend.decoder_close = NULL;
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_CPU);
    CHECK_CONTAINS(telling(&opened), "decode cpu: there is no decoder");
    CHECK_INT(stk_opened_decoder_open(&opened, &device, &only_gpu, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "--decode gpu: cuda:0 cannot decode pictures: ");
}

static void little_memory_is_left_to_the_batch(void) {
    stk_backend backend;
    stk_opened_device device = begin(&backend);
    stk_opened_decoder opened;
    stk_error err = {0};
    fake.total_bytes = STK_DECODER_LEAST_MEMORY - 1;
    fake.free_bytes = 3000 * MIB;
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_CPU);
    CHECK_CONTAINS(telling(&opened), "decode cpu: cuda:0 has 4.");
    CHECK_CONTAINS(told, " of memory, which are left to the batch");
    fake.total_bytes = STK_DECODER_LEAST_MEMORY;
    fake.free_bytes = 4 * DECODER_BYTES - 4;
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
    CHECK_CONTAINS(telling(&opened), "decode cpu: the GPU's decoder takes ");
    CHECK_INT(fake.opened, 0);
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &both, &err), &err); /* asked for */
    CHECK_INT(opened.decode, STK_DECODE_BOTH);
    stk_opened_decoder_close(&opened);
    fake.free_bytes = 4 * DECODER_BYTES;
    REQUIRE_OK(stk_opened_decoder_open(&opened, &device, &automatic, &err), &err);
    CHECK_INT(opened.decode, STK_DECODE_BOTH);
    stk_opened_decoder_close(&opened);
}

/* Whether the decoder takes its memory at once, later or in parts, a batch has the same. */
static void the_decoder_s_memory_counts_once(void) {
    static const uint64_t held[] = {0, DECODER_BYTES / 3, DECODER_BYTES, DECODER_BYTES + 5 * MIB};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        stk_backend backend;
        stk_job_network network = {.opened = begin(&backend)};
        stk_error err = {0};
        fake.held_bytes = held[i];
        REQUIRE_OK(stk_network_note_memory(&network, &err), &err);
        CHECK(network.memory.free_bytes == fake.free_bytes);
        REQUIRE_OK(stk_opened_decoder_open(&network.decoder, &network.opened, &both, &err), &err);
        REQUIRE_OK(stk_network_note_memory(&network, &err), &err);
        uint64_t most = held[i] > DECODER_BYTES ? held[i] : DECODER_BYTES;
        CHECK(network.memory.free_bytes == fake.free_bytes - most);
        CHECK(network.memory.total_bytes == fake.total_bytes);
        stk_opened_decoder_close(&network.decoder);
        REQUIRE_OK(stk_network_note_memory(&network, &err), &err);
        CHECK(network.memory.free_bytes == fake.free_bytes);
    }
}

static void loaders_of_a_job_have_the_decoder(void) {
    stk_backend backend;
    stk_job job = {.verb = "train", .out = {.folder = {.lock_fd = -1}}};
    stk_dataset dataset = {0};
    stk_model model = {.name = "m"};
    stk_sample sample = {0};
    stk_options *options = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    stk_job_open(&job, options, NULL);
    job.dataset = &dataset;
    job.recipe.model = &model;
    job.network.opened = begin(&backend);
    REQUIRE_OK(stk_opened_decoder_open(&job.network.decoder, &job.network.opened, &only_gpu, &err),
               &err);
    for (int train = 0; train < 2; train++) {
        stk_loader_config config = stk_job_loader_config(&job, train, &sample, NULL, 1);
        CHECK(config.decoder.state == &fake && config.device_first);
    }
    stk_opened_decoder_close(&job.network.decoder);
    stk_loader_config config = stk_job_loader_config(&job, true, &sample, NULL, 1);
    CHECK(config.decoder.state == NULL && !config.device_first);
    job.dataset = NULL;
    job.network.opened = (stk_opened_device){0};
    stk_job_close(&job);
    stk_options_free(options);
}

static const check_test tests[] = {
    TEST(a_gpu_with_engines_decodes_beside_the_cpu),
    TEST(a_gpu_alone_or_deterministic_decodes_all_that_it_can),
    TEST(the_cpu_decodes_where_that_is_asked_for),
    TEST(a_cpu_needs_no_decoder_and_no_words),
    TEST(a_gpu_that_cannot_leaves_it_to_the_cpu_unless_it_must),
    TEST(an_interrupted_opening_is_an_error),
    TEST(a_backend_without_functions_cannot_decode),
    TEST(little_memory_is_left_to_the_batch),
    TEST(the_decoder_s_memory_counts_once),
    TEST(loaders_of_a_job_have_the_decoder),
};

CHECK_MAIN(tests)
