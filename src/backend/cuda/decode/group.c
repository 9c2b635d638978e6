/* group.c - memory, tables and launches of pictures that are decoded together. */
#include "backend/cuda/decode/group.h"

#include <string.h>

#include "base/error.h"
#include "image/resample/resample.h"

/* Pinned memory of a group. Larger pictures than its files are left to the CPU. */
#define TABLE_BYTES ((size_t)2 << 20)
#define FILE_BYTES ((size_t)16 << 20)

/* Every block of memory begins at a multiple of this. */
#define ALIGN ((size_t)256)

/* So many pictures make nvJPEG take all memory that it works with. */
#define WARM_PICTURES 16

#define MIDDLE_GREY 128

/* The longest side that hardware decodes. */
#define MOST_SIDE 16384

static size_t aligned(size_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

size_t stk_cuda_group_bytes(size_t pixel_bytes) {
    return TABLE_BYTES + aligned(pixel_bytes);
}

size_t stk_cuda_group_most_bytes(void) {
    return FILE_BYTES;
}

stk_status stk_cuda_group_open(cuda_group *g, const cuda_decode_tools *tools, cuda_pointer memory,
                               size_t memory_bytes, stk_error *err) {
    const cuda_driver *d = tools->driver;
    void *host = NULL;
    *g = (cuda_group){.tools = tools, .memory = memory, .memory_bytes = memory_bytes};
    /* The network's kernels occupy the whole GPU; those of pictures are small, and a step waits for
     * all pictures of its batch. */
    int result = d->stream_new_first(&g->stream, CUDA_STREAM_NON_BLOCKING, CUDA_STREAM_FIRST);
    if (result == CUDA_GOOD) {
        result = d->event_new(&g->ended, CUDA_EVENT_NO_TIMING | CUDA_EVENT_BLOCKING);
    }
    if (result == CUDA_GOOD) {
        result = d->host_take(&host, TABLE_BYTES + FILE_BYTES, CUDA_HOST_PORTABLE);
    }
    stk_status status = stk_cuda_check(d, result, "opening the decoder of the GPU", err);
    if (status != STK_OK) {
        return status;
    }
    g->host = host;
    g->entries = host;
    stk_cuda_group_clear(g);
    return stk_cuda_jpeg_check(tools->jpeg->state_new(tools->handle, &g->decoder),
                               "opening the decoder of the GPU", err);
}

void stk_cuda_group_close(cuda_group *g) {
    if (g->tools == NULL) {
        return;
    }
    const cuda_driver *d = g->tools->driver;
    if (g->stream != NULL) {
        (void)d->stream_wait(g->stream);
    }
    if (g->decoder != NULL) {
        (void)g->tools->jpeg->state_free(g->decoder);
    }
    if (g->host != NULL) {
        (void)d->host_free(g->host);
    }
    if (g->ended != NULL) {
        (void)d->event_free(g->ended);
    }
    if (g->stream != NULL) {
        (void)d->stream_free(g->stream);
    }
    memset(g, 0, sizeof *g);
}

void stk_cuda_group_clear(cuda_group *g) {
    g->count = 0;
    g->tables = aligned(CUDA_GROUP_PICTURES * sizeof *g->entries);
    g->files = 0;
    g->pixels = 0;
    g->squares = 0;
}

/* ---- one picture ---- */

/* Sizes of the colour planes, which odd pictures round up; 0: there are none. */
static int colour_width(const stk_picture_plan *plan) {
    return plan->planes == STK_PLANES_GREY  ? 0
           : plan->planes == STK_PLANES_444 ? plan->width
                                            : (plan->width + 1) / 2;
}

static int colour_height(const stk_picture_plan *plan) {
    return plan->planes == STK_PLANES_GREY  ? 0
           : plan->planes == STK_PLANES_420 ? (plan->height + 1) / 2
                                            : plan->height;
}

/* Bytes of one table of an axis. */
static size_t firsts_bytes(const stk_picture_plan *plan) {
    return aligned((size_t)plan->size * sizeof(int));
}

static size_t weights_bytes(const stk_picture_plan *plan, const stk_resample_axis *axis) {
    return aligned((size_t)plan->size * (size_t)axis->taps * sizeof *axis->weights);
}

static size_t table_bytes(const stk_picture_plan *plan) {
    return 2 * firsts_bytes(plan) + weights_bytes(plan, plan->across) +
           weights_bytes(plan, plan->down);
}

static size_t square_bytes(int size) {
    return 3 * (size_t)size * (size_t)size;
}

/* Blocks of a picture behind the tables, in this order: planes, RGB, and for its changes the square
 * and its spare. */
typedef struct pixel_blocks {
    size_t pitch[3];
    size_t plane[3]; /* bytes */
    size_t rgb_pitch;
    size_t rgb;       /* bytes */
    size_t square[2]; /* bytes; 0: the picture is not changed */
} pixel_blocks;

static pixel_blocks blocks_of(const stk_picture_plan *plan) {
    pixel_blocks b = {0};
    size_t columns = (size_t)(plan->across->to - plan->across->from);
    size_t rows = (size_t)(plan->down->to - plan->down->from);
    for (int i = 0; i < 3; i++) {
        b.pitch[i] = aligned((size_t)(i == 0 ? plan->width : colour_width(plan)));
        b.plane[i] = b.pitch[i] * (size_t)(i == 0 ? plan->height : colour_height(plan));
    }
    b.rgb_pitch = (3 * columns + 12 + 15) / 16 * 16;
    b.rgb = aligned(b.rgb_pitch * rows);
    b.square[0] = b.square[1] = plan->changes.count > 0 ? aligned(square_bytes(plan->size)) : 0;
    return b;
}

static size_t pixel_bytes(const pixel_blocks *b) {
    return b->plane[0] + b->plane[1] + b->plane[2] + b->rgb + b->square[0] + b->square[1];
}

stk_offer stk_cuda_group_reserve(cuda_group *g, const stk_device_picture *picture,
                                 cuda_group_place *place) {
    const stk_picture_plan *plan = picture->plan;
    const pixel_blocks blocks = blocks_of(plan);
    const size_t first_table = aligned(CUDA_GROUP_PICTURES * sizeof *g->entries);
    size_t table = table_bytes(plan);
    size_t pixels = pixel_bytes(&blocks);
    size_t square = square_bytes(plan->size);
    size_t room = g->memory_bytes - TABLE_BYTES;
    if (plan->width > MOST_SIDE || plan->height > MOST_SIDE ||
        plan->across->to - plan->across->from > stk_cuda_widest_part(plan->size) ||
        first_table + table > TABLE_BYTES || aligned(picture->size) > FILE_BYTES ||
        pixels + square > room) {
        return STK_OFFER_REFUSED;
    }
    if (g->count == CUDA_GROUP_PICTURES || g->tables + table > TABLE_BYTES ||
        g->files + aligned(picture->size) > FILE_BYTES ||
        g->pixels + g->squares + pixels + square > room) {
        return STK_OFFER_FULL;
    }
    *place = (cuda_group_place){g->count++, g->tables, g->files, g->pixels};
    g->tables += table;
    g->files += aligned(picture->size);
    g->pixels += pixels;
    g->squares += square;
    return STK_OFFER_TAKEN;
}

/* Copies a table to the pinned memory and returns its address on the device; *at moves on. */
static unsigned long long put_table(const cuda_group *g, size_t *at, const void *table,
                                    size_t bytes) {
    cuda_pointer address = g->memory + *at;
    memcpy(g->host + *at, table, bytes);
    *at += aligned(bytes);
    return address;
}

/* The address of a block behind the tables; *at moves on. */
static unsigned long long put_block(size_t *at, const cuda_group *g, size_t bytes) {
    cuda_pointer address = g->memory + TABLE_BYTES + *at;
    *at += bytes;
    return address;
}

static void fill_axes(const cuda_group *g, const stk_picture_plan *plan, size_t at,
                      cuda_picture *to) {
    const stk_resample_axis *across = plan->across;
    const stk_resample_axis *down = plan->down;
    size_t size = (size_t)plan->size;
    to->left = across->from;
    to->top = down->from;
    to->columns = across->to - across->from;
    to->rows = down->to - down->from;
    to->taps_x = across->taps;
    to->taps_y = down->taps;
    to->used_x = across->used;
    to->used_y = down->used;
    to->first_x = put_table(g, &at, across->first, size * sizeof *across->first);
    to->first_y = put_table(g, &at, down->first, size * sizeof *down->first);
    to->weights_x =
        put_table(g, &at, across->weights, size * (size_t)across->taps * sizeof *across->weights);
    to->weights_y =
        put_table(g, &at, down->weights, size * (size_t)down->taps * sizeof *down->weights);
}

void stk_cuda_group_fill(cuda_group *g, const stk_device_picture *picture,
                         const cuda_group_place *place) {
    const stk_picture_plan *plan = picture->plan;
    const pixel_blocks blocks = blocks_of(plan);
    cuda_picture *to = &g->entries[place->index];
    uint8_t *bytes = g->host + TABLE_BYTES + place->file;
    size_t at = place->pixel;
    memcpy(bytes, picture->bytes, picture->size);
    g->pictures[place->index] = *picture;
    g->encoded[place->index] = bytes;
    g->sizes[place->index] = picture->size;
    g->failed[place->index] = false;
    *to = (cuda_picture){.kind = (int)plan->planes,
                         .width = plan->width,
                         .height = plan->height,
                         .colour_width = colour_width(plan),
                         .colour_height = colour_height(plan),
                         .size = plan->size,
                         .mirror_y = plan->mirror_y,
                         .swapped = plan->swapped,
                         .rgb_pitch = (int)blocks.rgb_pitch,
                         .change_count = plan->changes.count};
    for (int i = 0; i < 3; i++) {
        to->planes[i] = put_block(&at, g, blocks.plane[i]);
        to->pitch[i] = (int)blocks.pitch[i];
        g->planes[place->index].channel[i] = (unsigned char *)(uintptr_t)to->planes[i];
        g->planes[place->index].pitch[i] = blocks.pitch[i];
    }
    to->rgb = put_block(&at, g, blocks.rgb);
    to->square = put_block(&at, g, blocks.square[0]);
    to->spare = put_block(&at, g, blocks.square[1]);
    for (int i = 0; i < plan->changes.count; i++) {
        stk_cuda_change_of(&plan->changes.changes[i], plan->size, &to->changes[i]);
    }
    fill_axes(g, plan, place->table, to);
}

/* ---- all pictures ---- */

/* One refused picture fails all that are decoded in the same call, so halves are tried again,
 * unless that cannot help. What the call has begun ends first. */
static void decode_some(cuda_group *g, int first, int count) {
    const cuda_jpeg *jpeg = g->tools->jpeg;
    int result = CUDA_JPEG_GOOD;
    if (g->begun != count) {
        result = jpeg->begin(g->tools->handle, g->decoder, count, 1, CUDA_JPEG_PLANES);
        g->begun = result == CUDA_JPEG_GOOD ? count : 0;
    }
    if (result == CUDA_JPEG_GOOD) {
        result = jpeg->decode(g->tools->handle, g->decoder, g->encoded + first, g->sizes + first,
                              g->planes + first, g->stream);
    }
    if (result == CUDA_JPEG_GOOD) {
        return;
    }
    g->begun = 0;
    (void)g->tools->driver->stream_wait(g->stream);
    if (count > 1 && result != CUDA_JPEG_NO_MEMORY) {
        decode_some(g, first, count / 2);
        decode_some(g, first + count / 2, count - count / 2);
        return;
    }
    for (int i = 0; i < count; i++) {
        g->failed[first + i] = true;
    }
}

/* What a damaged picture leaves out is grey, not a part of another picture. */
void stk_cuda_group_decode(cuda_group *g) {
    (void)g->tools->driver->fill(g->memory + TABLE_BYTES, MIDDLE_GREY, g->pixels, g->stream);
    decode_some(g, 0, g->count);
}

/* The group's pictures in the order in which their squares lie on the host. */
static void order_squares(const cuda_group *g, int *order) {
    for (int i = 0; i < g->count; i++) {
        int at = i;
        for (; at > 0 && g->pictures[order[at - 1]].out > g->pictures[i].out; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

/* Lays the squares behind the pixels, in that order, so that neighbours are copied at once. */
static void place_squares(cuda_group *g, const int *order) {
    size_t at = g->pixels;
    for (int i = 0; i < g->count; i++) {
        cuda_picture *p = &g->entries[order[i]];
        if (!g->failed[order[i]]) {
            p->out = put_block(&at, g, square_bytes(p->size));
        } else { /* nothing is made of it */
            p->size = 0;
            p->rows = 0;
            p->change_count = 0;
        }
    }
}

/* Whether a picture's square lies right behind `bytes` at `out` on the host, in the same block: a
 * copy may not leave the block that the driver knows. */
static bool continues(const cuda_group *g, int picture, const uint8_t *out, size_t bytes,
                      const void *block) {
    return !g->failed[picture] && g->pictures[picture].block == block &&
           g->pictures[picture].out == out + bytes;
}

/* Copies the squares to the host. Kernels that wrote there would occupy the GPU for as long as the
 * bus takes; these copies do not. */
static int copy_squares(cuda_group *g, const int *order) {
    int result = CUDA_GOOD;
    for (int i = 0; i < g->count && result == CUDA_GOOD;) {
        const cuda_picture *first = &g->entries[order[i]];
        uint8_t *out = g->pictures[order[i]].out;
        const void *block = g->pictures[order[i]].block;
        size_t bytes = square_bytes(first->size);
        for (i++; i < g->count && bytes > 0 && continues(g, order[i], out, bytes, block); i++) {
            bytes += square_bytes(g->entries[order[i]].size);
        }
        if (bytes > 0) {
            result = g->tools->driver->copy_out(out, first->out, bytes, g->stream);
        }
    }
    return result;
}

int stk_cuda_group_launch(cuda_group *g) {
    const cuda_driver *d = g->tools->driver;
    cuda_picture_extent extent = {.pictures = g->count};
    int order[CUDA_GROUP_PICTURES];
    order_squares(g, order);
    place_squares(g, order);
    for (int i = 0; i < g->count; i++) {
        const cuda_picture *p = &g->entries[i];
        unsigned shared = stk_cuda_square_shared(p->columns, p->size);
        extent.shared_bytes = shared > extent.shared_bytes ? shared : extent.shared_bytes;
        extent.size = p->size > extent.size ? p->size : extent.size;
        extent.changed = extent.changed || p->change_count > 0;
    }
    int result = d->copy_in(g->memory, g->host, g->tables, g->stream);
    if (result == CUDA_GOOD && extent.size > 0) {
        result = stk_cuda_picture_kernels_launch(&g->tools->kernels, g->memory, &extent, g->stream);
    }
    result = result == CUDA_GOOD ? copy_squares(g, order) : result;
    return result == CUDA_GOOD ? d->event_record(g->ended, g->stream) : result;
}

int stk_cuda_group_wait(cuda_group *g) {
    return g->tools->driver->event_wait(g->ended);
}

void stk_cuda_group_warm_up(cuda_group *g, const uint8_t *bytes, size_t size, int width,
                            int height) {
    const size_t plane = (size_t)width * (size_t)height;
    if (size > FILE_BYTES || 3 * plane > g->memory_bytes - TABLE_BYTES) {
        return;
    }
    memcpy(g->host + TABLE_BYTES, bytes, size);
    for (int i = 0; i < WARM_PICTURES;
         i++) { /* all planes lie on each other: nobody looks at them */
        g->encoded[i] = g->host + TABLE_BYTES;
        g->sizes[i] = size;
        for (size_t k = 0; k < 3; k++) {
            g->planes[i].channel[k] =
                (unsigned char *)(uintptr_t)(g->memory + TABLE_BYTES + k * plane);
            g->planes[i].pitch[k] = (size_t)width;
        }
    }
    decode_some(g, 0, WARM_PICTURES);
    (void)g->tools->driver->stream_wait(g->stream);
}
