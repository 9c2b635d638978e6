/*
 * nvjpeg_emulated.c - a look-alike of libnvjpeg.so.13: batches of JPEGs become planes, by libjpeg.
 *
 * A batch is checked first, then decoded into memory of the host, then copied as one step of the
 * stream. So a batch that is slow or hangs holds no lock of the emulated driver.
 *
 * As with the library on an H200, one picture that cannot be decoded refuses the whole batch before
 * anything is written, and damage behind a header is not reported: the rows that it spoils hold
 * GARBAGE. README.md tells what STK_EMU_JPEG does.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "emu_enqueue.h"

#define EXPORT __attribute__((visibility("default")))

enum { /* nvjpegStatus_t */
       GOOD = 0,
       NOT_INITIALIZED = 1,
       INVALID_PARAMETER = 2,
       BAD_JPEG = 3,
       JPEG_NOT_SUPPORTED = 4,
       ALLOCATOR_FAILURE = 5,
       EXECUTION_FAILED = 6,
       ARCH_MISMATCH = 7,
       IMPLEMENTATION_NOT_SUPPORTED = 9
};

enum { BACKEND_GPU_HYBRID = 2, BACKEND_HARDWARE = 3 }; /* nvjpegBackend_t */
enum { OUTPUT_YUV = 1 };                               /* nvjpegOutputFormat_t */
enum { VERSION_MAJOR = 13, VERSION_MINOR = 0 };
enum { ENGINES = 7, CORES_OF_AN_ENGINE = 1 };

enum {
    HANDLE_SEAL = 0x4e564a48,
    STATE_SEAL = 0x4e564a53,
    CHANNELS = 4,
    MOST_PLANES = 3,
    MOST_COARSER = 2, /* how much coarser colour may be than brightness in each direction */
    GARBAGE = 0xA7
};

typedef struct nvjpeg_image {
    unsigned char *channel[CHANNELS];
    size_t pitch[CHANNELS];
} nvjpeg_image;

typedef struct nvjpeg_handle {
    uint32_t seal;
    atomic_int states; /* that are alive */
} nvjpeg_handle;

typedef struct nvjpeg_state {
    uint32_t seal;
    nvjpeg_handle *handle;
    int count; /* pictures of a batch; 0: not told yet */
    atomic_flag busy;
} nvjpeg_state;

/* What no correct program does; the process ends, so that no test can overlook it. */
__attribute__((noreturn)) static void die(const char *what) {
    (void)fflush(stdout);
    (void)fprintf(stderr, "emulated GPU: nvJPEG: %s\n", what);
    abort();
}

/* ---- faults ---- */

/* Whether STK_EMU_JPEG tells of this kind; *rest is then what stands behind the colon, or "". */
static bool told(const char *kind, const char **rest) {
    const char *text = getenv("STK_EMU_JPEG");
    size_t length = strlen(kind);
    *rest = "";
    if (text == NULL || strncmp(text, kind, length) != 0 ||
        (text[length] != '\0' && text[length] != ':')) {
        return false;
    }
    *rest = text + length + (text[length] == ':');
    return true;
}

/* The number of this batch, counted from when the variable was set. */
static long count_batch(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char last[64];
    static long batches;
    const char *text = getenv("STK_EMU_JPEG");
    text = text != NULL ? text : "";
    (void)pthread_mutex_lock(&lock);
    if (strcmp(text, last) != 0) {
        (void)snprintf(last, sizeof last, "%s", text);
        batches = 0;
    }
    long number = ++batches;
    (void)pthread_mutex_unlock(&lock);
    return number;
}

/* Whether KIND (every batch), KIND:N (the Nth) or KIND:N+ (from the Nth on) means this batch. */
static bool is_meant(const char *kind, long batch) {
    const char *rest;
    char *end;
    if (!told(kind, &rest)) {
        return false;
    }
    long first = strtol(rest, &end, 10);
    return *rest == '\0' || (*end == '+' ? batch >= first : batch == first);
}

static void sleep_ms(long ms) {
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Whatever the environment says shall happen to this batch. A batch that hung is not decoded when
 * the variable changes: its memory may be gone by then. */
static int suffer(void) {
    long batch = count_batch();
    const char *rest;
    if (is_meant("hang", batch)) {
        while (is_meant("hang", batch)) {
            sleep_ms(50);
        }
        return EXECUTION_FAILED;
    }
    if (told("slow", &rest)) {
        sleep_ms(strtol(rest, NULL, 10));
    }
    return is_meant("reject", batch) ? EXECUTION_FAILED : GOOD;
}

/* ---- one picture ---- */

typedef struct plane {
    unsigned char *values; /* uint8 (rows, stride), whole blocks of the host; owned */
    size_t rows, stride;
    size_t width, height; /* px, what is wanted of it */
} plane;

typedef struct picture {
    int count;
    plane planes[MOST_PLANES];
} picture;

typedef struct trouble {
    struct jpeg_error_mgr base; /* first: libjpeg knows only this */
    jmp_buf back;
} trouble;

__attribute__((noreturn)) static void leave(j_common_ptr j) {
    longjmp(((trouble *)(void *)j->err)->back, 1);
}

static void count_warning(j_common_ptr j, int level) {
    j->err->num_warnings += level < 0;
}

static struct jpeg_error_mgr *quiet(trouble *t) {
    (void)jpeg_std_error(&t->base);
    t->base.error_exit = leave;
    t->base.emit_message = count_warning;
    return &t->base;
}

/* The marker of the frame, which tells how it is coded; 0: this is no JPEG. */
static int frame_marker(const unsigned char *bytes, size_t size) {
    size_t at = 2;
    if (size < 4 || bytes[0] != 0xFF || bytes[1] != 0xD8) {
        return 0;
    }
    while (at + 4 <= size && bytes[at] == 0xFF) {
        int marker = bytes[at + 1];
        bool tables = marker == 0xC4 || marker == 0xC8 || marker == 0xCC; /* of codes */
        if (marker >= 0xC0 && marker <= 0xCF && !tables) {
            return marker;
        }
        at += marker == 0xFF ? 1 : 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
    }
    return 0;
}

/* Whether the engines take it: grey or three components of one scan, the first the finest. */
static bool is_supported(const struct jpeg_decompress_struct *j) {
    const jpeg_component_info *c = j->comp_info;
    bool good = (j->num_components == 1 || j->num_components == MOST_PLANES) &&
                j->comps_in_scan == j->num_components && j->data_precision == 8 &&
                c[0].h_samp_factor == j->max_h_samp_factor &&
                c[0].v_samp_factor == j->max_v_samp_factor;
    for (int i = 0; i < j->num_components; i++) {
        int across = j->max_h_samp_factor / c[i].h_samp_factor;
        int down = j->max_v_samp_factor / c[i].v_samp_factor;
        good = good && across * c[i].h_samp_factor == j->max_h_samp_factor &&
               down * c[i].v_samp_factor == j->max_v_samp_factor && across <= MOST_COARSER &&
               down <= MOST_COARSER;
    }
    return good;
}

static void measure(const struct jpeg_decompress_struct *j, picture *p) {
    size_t mcu_width = (size_t)j->max_h_samp_factor * DCTSIZE;
    size_t mcu_height = (size_t)j->max_v_samp_factor * DCTSIZE;
    p->count = j->num_components;
    for (int i = 0; i < p->count; i++) {
        size_t across = (size_t)j->comp_info[i].h_samp_factor;
        size_t down = (size_t)j->comp_info[i].v_samp_factor;
        size_t width = j->image_width * across;
        size_t height = j->image_height * down;
        p->planes[i] = (plane){
            .rows = (j->image_height + mcu_height - 1) / mcu_height * down * DCTSIZE,
            .stride = (j->image_width + mcu_width - 1) / mcu_width * across * DCTSIZE,
            .width = (width + (size_t)j->max_h_samp_factor - 1) / (size_t)j->max_h_samp_factor,
            .height = (height + (size_t)j->max_v_samp_factor - 1) / (size_t)j->max_v_samp_factor};
    }
}

/* Reads the header and decides; sets the sizes in *p. */
static int look(const unsigned char *bytes, size_t size, picture *p) {
    struct jpeg_decompress_struct j = {0};
    trouble t;
    int marker = frame_marker(bytes, size);
    if (marker != 0xC0) {
        return marker == 0 ? BAD_JPEG : JPEG_NOT_SUPPORTED;
    }
    j.err = quiet(&t);
    if (setjmp(t.back) != 0) {
        jpeg_destroy_decompress(&j);
        return BAD_JPEG;
    }
    jpeg_create_decompress(&j);
    jpeg_mem_src(&j, bytes, size);
    (void)jpeg_read_header(&j, TRUE);
    int status = is_supported(&j) ? GOOD : JPEG_NOT_SUPPORTED;
    if (status == GOOD) {
        measure(&j, p);
    }
    jpeg_destroy_decompress(&j);
    return status;
}

/* Reads rows of MCUs as far as they are good. */
static void read_rows(struct jpeg_decompress_struct *j, picture *p) {
    long warnings = j->err->num_warnings;
    JSAMPROW rows[MOST_PLANES][MAX_SAMP_FACTOR * DCTSIZE];
    JSAMPARRAY places[MOST_PLANES];
    for (size_t mcu_row = 0; j->output_scanline < j->output_height; mcu_row++) {
        for (int i = 0; i < p->count; i++) {
            size_t down = (size_t)j->comp_info[i].v_samp_factor * DCTSIZE;
            places[i] = rows[i];
            for (size_t r = 0; r < down; r++) {
                rows[i][r] = p->planes[i].values + (mcu_row * down + r) * p->planes[i].stride;
            }
        }
        (void)jpeg_read_raw_data(j, places, (JDIMENSION)j->max_v_samp_factor * DCTSIZE);
        for (int i = 0; i < p->count && j->err->num_warnings > warnings; i++) {
            size_t down = (size_t)j->comp_info[i].v_samp_factor * DCTSIZE;
            memset(rows[i][0], GARBAGE, down * p->planes[i].stride);
        }
        if (j->err->num_warnings > warnings) {
            return;
        }
    }
}

/* Fills the planes, whose memory is there. */
static void decode(const unsigned char *bytes, size_t size, picture *p) {
    struct jpeg_decompress_struct j = {0};
    trouble t;
    j.err = quiet(&t);
    if (setjmp(t.back) == 0) {
        jpeg_create_decompress(&j);
        jpeg_mem_src(&j, bytes, size);
        (void)jpeg_read_header(&j, TRUE);
        j.raw_data_out = TRUE;
        j.dct_method = JDCT_ISLOW;
        j.out_color_space = j.jpeg_color_space;
        (void)jpeg_start_decompress(&j);
        read_rows(&j, p);
    }
    jpeg_destroy_decompress(&j);
}

static bool take_planes(picture *p) {
    for (int i = 0; i < p->count; i++) {
        plane *q = &p->planes[i];
        q->values = malloc(q->rows * q->stride);
        if (q->values == NULL) {
            return false;
        }
        memset(q->values, GARBAGE, q->rows * q->stride);
    }
    return true;
}

/* Whether the places of a picture are large enough. The library would write elsewhere. */
static int check_places(const picture *p, const nvjpeg_image *image) {
    for (int i = 0; i < p->count; i++) {
        const plane *q = &p->planes[i];
        if (image->channel[i] == NULL || image->pitch[i] < q->width) {
            return INVALID_PARAMETER;
        }
        if (!emu_is_memory(image->channel[i], (q->height - 1) * image->pitch[i] + q->width)) {
            die("a plane is larger than the memory of the device that it would be written to");
        }
    }
    return GOOD;
}

/* ---- batches ---- */

typedef struct batch {
    picture *pictures;
    const nvjpeg_image *images;
    int count;
    bool *done;
} batch;

static void write_planes(void *argument) {
    const batch *b = argument;
    for (int i = 0; i < b->count; i++) {
        for (int c = 0; c < b->pictures[i].count; c++) {
            const plane *q = &b->pictures[i].planes[c];
            for (size_t y = 0; y < q->height; y++) {
                memcpy(b->images[i].channel[c] + y * b->images[i].pitch[c],
                       q->values + y * q->stride, q->width);
            }
        }
    }
    *b->done = true;
}

static int decode_batch(const batch *b, const unsigned char *const *files, const size_t *sizes,
                        void *stream) {
    int status = GOOD;
    for (int i = 0; i < b->count && status == GOOD; i++) {
        status = files[i] == NULL ? INVALID_PARAMETER : look(files[i], sizes[i], &b->pictures[i]);
        if (status == GOOD) {
            status = check_places(&b->pictures[i], &b->images[i]);
        }
    }
    for (int i = 0; i < b->count && status == GOOD; i++) {
        status = take_planes(&b->pictures[i]) ? GOOD : ALLOCATOR_FAILURE;
        if (status == GOOD) {
            decode(files[i], sizes[i], &b->pictures[i]);
        }
    }
    if (status == GOOD) {
        status =
            emu_put_on_stream(stream, write_planes, b, sizeof *b) == 0 ? GOOD : EXECUTION_FAILED;
        if (status == GOOD && !*b->done) {
            die("a batch is decoded while its stream captures");
        }
    }
    return status;
}

static bool is_handle(const nvjpeg_handle *handle) {
    return handle != NULL && handle->seal == HANDLE_SEAL;
}

static bool is_state_of(const nvjpeg_state *state, const nvjpeg_handle *handle) {
    return is_handle(handle) && state != NULL && state->seal == STATE_SEAL &&
           state->handle == handle;
}

static void enter(nvjpeg_state *state) {
    if (atomic_flag_test_and_set(&state->busy)) {
        die("a state is used by a thread while another decodes with it");
    }
}

/* ---- what the library exports ---- */

EXPORT int nvjpegGetProperty(int property, int *value);
EXPORT int nvjpegCreateEx(int backend, void *device_allocator, void *pinned_allocator,
                          unsigned flags, nvjpeg_handle **handle);
EXPORT int nvjpegDestroy(nvjpeg_handle *handle);
EXPORT int nvjpegGetHardwareDecoderInfo(nvjpeg_handle *handle, unsigned *engines, unsigned *cores);
EXPORT int nvjpegJpegStateCreate(nvjpeg_handle *handle, nvjpeg_state **state);
EXPORT int nvjpegJpegStateDestroy(nvjpeg_state *state);
EXPORT int nvjpegDecodeBatchedInitialize(nvjpeg_handle *handle, nvjpeg_state *state, int count,
                                         int cpu_threads, int output);
EXPORT int nvjpegDecodeBatched(nvjpeg_handle *handle, nvjpeg_state *state,
                               const unsigned char *const *files, const size_t *sizes,
                               nvjpeg_image *images, void *stream);

int nvjpegGetProperty(int property, int *value) {
    static const int version[] = {VERSION_MAJOR, VERSION_MINOR, 0};
    if (value == NULL || property < 0 || property > 2) {
        return INVALID_PARAMETER;
    }
    *value = version[property];
    return GOOD;
}

int nvjpegCreateEx(int backend, void *device_allocator, void *pinned_allocator, unsigned flags,
                   nvjpeg_handle **handle) {
    const char *rest;
    if (handle == NULL || device_allocator != NULL || pinned_allocator != NULL || flags != 0) {
        return INVALID_PARAMETER;
    }
    if (backend != BACKEND_HARDWARE && backend != BACKEND_GPU_HYBRID) {
        return IMPLEMENTATION_NOT_SUPPORTED;
    }
    if (backend == BACKEND_HARDWARE && told("noengine", &rest)) {
        return ARCH_MISMATCH;
    }
    *handle = calloc(1, sizeof **handle);
    if (*handle == NULL) {
        return ALLOCATOR_FAILURE;
    }
    (*handle)->seal = HANDLE_SEAL;
    return GOOD;
}

int nvjpegDestroy(nvjpeg_handle *handle) {
    if (!is_handle(handle)) {
        return INVALID_PARAMETER;
    }
    if (atomic_load(&handle->states) != 0) {
        die("a handle is freed before its states");
    }
    handle->seal = 0;
    free(handle);
    return GOOD;
}

int nvjpegGetHardwareDecoderInfo(nvjpeg_handle *handle, unsigned *engines, unsigned *cores) {
    const char *rest;
    if (!is_handle(handle) || engines == NULL || cores == NULL) {
        return INVALID_PARAMETER;
    }
    bool none = told("noengine", &rest);
    *engines = none ? 0 : ENGINES;
    *cores = none ? 0 : CORES_OF_AN_ENGINE;
    return GOOD;
}

int nvjpegJpegStateCreate(nvjpeg_handle *handle, nvjpeg_state **state) {
    const char *rest;
    if (!is_handle(handle) || state == NULL) {
        return INVALID_PARAMETER;
    }
    *state = told("nomemory", &rest) ? NULL : calloc(1, sizeof **state);
    if (*state == NULL) {
        return ALLOCATOR_FAILURE;
    }
    (*state)->seal = STATE_SEAL;
    (*state)->handle = handle;
    atomic_flag_clear(&(*state)->busy);
    atomic_fetch_add(&handle->states, 1);
    return GOOD;
}

int nvjpegJpegStateDestroy(nvjpeg_state *state) {
    if (state == NULL || !is_state_of(state, state->handle)) {
        return INVALID_PARAMETER;
    }
    enter(state);
    atomic_fetch_sub(&state->handle->states, 1);
    state->seal = 0;
    free(state);
    return GOOD;
}

int nvjpegDecodeBatchedInitialize(nvjpeg_handle *handle, nvjpeg_state *state, int count,
                                  int cpu_threads, int output) {
    if (!is_state_of(state, handle) || count < 1 || cpu_threads < 1) {
        return INVALID_PARAMETER;
    }
    if (output != OUTPUT_YUV) {
        return IMPLEMENTATION_NOT_SUPPORTED;
    }
    enter(state);
    state->count = count;
    atomic_flag_clear(&state->busy);
    return GOOD;
}

int nvjpegDecodeBatched(nvjpeg_handle *handle, nvjpeg_state *state,
                        const unsigned char *const *files, const size_t *sizes,
                        nvjpeg_image *images, void *stream) {
    if (!is_state_of(state, handle) || files == NULL || sizes == NULL || images == NULL) {
        return INVALID_PARAMETER;
    }
    enter(state);
    int status = state->count > 0 ? suffer() : NOT_INITIALIZED;
    if (status == GOOD) {
        bool done = false;
        batch b = {.images = images, .count = state->count, .done = &done};
        b.pictures = calloc((size_t)b.count, sizeof *b.pictures);
        status = b.pictures != NULL ? decode_batch(&b, files, sizes, stream) : ALLOCATOR_FAILURE;
        for (int i = 0; i < b.count && b.pictures != NULL; i++) {
            for (int c = 0; c < MOST_PLANES; c++) {
                free(b.pictures[i].planes[c].values);
            }
        }
        free(b.pictures);
    }
    atomic_flag_clear(&state->busy);
    return status;
}
