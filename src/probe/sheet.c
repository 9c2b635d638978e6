/*
 * sheet.c - choosing pictures for a contact sheet and drawing their views.
 *
 * The views come from the same call that the loader makes. A picture that cannot be used gives its
 * row to the one after it in the list.
 */
#include "probe/sheet.h"

#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "loader/folder_samples.h"
#include "storage/storage.h"

typedef struct sheet_maker {
    stk_folder_samples samples;
    stk_image_scratch *scratch; /* owned */
    stk_bytes bytes;            /* owned: of the picture in work */
    stk_transform centre;
    stk_transform training;
    uint64_t seed;
    uint8_t *view;    /* owned: (size, size, 3) */
    stk_image *sheet; /* borrowed */
} sheet_maker;

static const stk_sample *sample_at(const sheet_maker *m, size_t i) {
    return &m->samples.list->items[m->samples.indices != NULL ? m->samples.indices[i] : i];
}

/* The index in the list at which the search for a row's picture begins. */
static size_t choose_sample(const sheet_maker *m, size_t row, size_t rows) {
    size_t classes = (size_t)m->samples.dataset->class_count;
    if (classes == 0 || sample_at(m, 0)->label < 0) {
        return row * m->samples.count / rows;
    }
    /* More rows than classes: a class comes again with another of its pictures. */
    size_t label = classes >= rows ? row * classes / rows : row % classes;
    size_t wanted = classes >= rows ? 0 : row / classes;
    size_t found = 0;
    for (size_t i = 0; i < m->samples.count; i++) {
        if ((size_t)sample_at(m, i)->label == label) {
            found = i;
            if (wanted-- == 0) {
                break;
            }
        }
    }
    return found;
}

/* Draws one view into its cell of the sheet. */
static stk_status draw_view(sheet_maker *m, size_t sample, size_t row, size_t column,
                            stk_error *err) {
    const stk_transform *transform = column == 0 ? &m->centre : &m->training;
    uint64_t epoch = column == 0 ? 0 : column - 1;
    stk_rng rng = stk_rng_make(m->seed, STK_RNG_AUGMENT, epoch, sample);
    size_t side = (size_t)transform->size;
    size_t row_bytes = (size_t)m->sheet->width * 3;
    size_t x = STK_SHEET_GAP_PX + column * (side + STK_SHEET_GAP_PX);
    size_t y = STK_SHEET_GAP_PX + row * (side + STK_SHEET_GAP_PX);
    stk_status status = stk_transform_apply(m->scratch, transform, m->bytes.data, m->bytes.size,
                                            rng, m->view, NULL, err);
    for (size_t i = 0; i < side && status == STK_OK; i++) {
        memcpy(m->sheet->pixels + (y + i) * row_bytes + x * 3, m->view + i * side * 3, side * 3);
    }
    return status;
}

static stk_status draw_sample(sheet_maker *m, size_t sample, size_t row, stk_error *err) {
    const char *path = sample_at(m, sample)->path;
    if (path == NULL) {
        return STK_FAIL(err, STK_ERR_DATA, "the picture of a row is missing");
    }
    stk_status status = stk_store_read(m->samples.dataset->store, path, &m->bytes, err);
    for (size_t column = 0; column <= STK_SHEET_VIEWS && status == STK_OK; column++) {
        status = draw_view(m, sample, row, column, err);
    }
    return status;
}

/* The first picture that can be used, from the chosen one on, around the list. */
static stk_status draw_row(sheet_maker *m, size_t row, size_t rows, const stk_stop *stop,
                           stk_error *err) {
    stk_error why = {0};
    size_t first = choose_sample(m, row, rows);
    for (size_t i = 0; i < m->samples.count; i++) {
        if (stk_stop_asked(stop) != STK_STOP_NONE) {
            return STK_FAIL(err, STK_ERR_STOPPED, "stopped before the sheet was drawn");
        }
        stk_error_clear(&why);
        stk_status status = draw_sample(m, (first + i) % m->samples.count, row, &why);
        if (status == STK_OK || status == STK_ERR_MEMORY) {
            return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
        }
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "cannot draw a sheet: none of the %zu pictures in %s can be used; the last "
                    "reason: %s",
                    m->samples.count, m->samples.dataset->root, why.message);
}

static stk_status new_sheet(stk_image *sheet, size_t rows, int64_t side_px, stk_error *err) {
    int64_t cell = side_px + STK_SHEET_GAP_PX;
    int64_t width = (STK_SHEET_VIEWS + 1) * cell + STK_SHEET_GAP_PX;
    int64_t height = (int64_t)rows * cell + STK_SHEET_GAP_PX;
    if (width * height > STK_IMAGE_MAX_PIXELS) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "a sheet of pictures of %lld pixels a side would be too large; pass a "
                        "smaller --img-size",
                        (long long)side_px);
    }
    stk_status status = stk_image_new(sheet, (int)width, (int)height, err);
    if (status == STK_OK) {
        memset(sheet->pixels, 255, (size_t)width * (size_t)height * 3);
    }
    return status;
}

stk_status stk_sheet_draw(stk_options *options, const stk_stop *stop, const stk_events *events,
                          stk_image *sheet, stk_error *err) {
    const stk_folder_options *feed = stk_options_values(options, &stk_folder_option_table);
    stk_image drawn = {0};
    stk_augment_options augment = stk_folder_augment(options);
    bool native = augment.resize == STK_RESIZE_NONE;
    int side = (int)feed->img_size;
    sheet_maker m = {
        .centre = {.size = side, .native = native, .crop_fraction = STK_FOLDER_CROP_FRACTION},
        .training = {.size = side, .native = native, .train = true, .augment = augment},
        .seed = (uint64_t)feed->seed,
        .sheet = &drawn};
    stk_status status = stk_folder_samples_open(&m.samples, options, stop, events, err);
    size_t rows = m.samples.count < STK_SHEET_ROWS ? m.samples.count : STK_SHEET_ROWS;
    STK_THEN(status, stk_image_scratch_new(&m.scratch, NULL, err));
    if (status == STK_OK) {
        m.view = stk_mem_raw((size_t)side * (size_t)side, 3);
        status =
            m.view != NULL ? new_sheet(&drawn, rows, side, err) : STK_FAIL_MEMORY(err, "the sheet");
    }
    for (size_t row = 0; row < rows && status == STK_OK; row++) {
        status = draw_row(&m, row, rows, stop, err);
    }
    stk_mem_free(m.view);
    stk_bytes_free(&m.bytes);
    stk_image_scratch_free(m.scratch);
    stk_folder_samples_close(&m.samples);
    if (status != STK_OK) {
        stk_image_free(&drawn);
        return status;
    }
    *sheet = drawn;
    return STK_OK;
}

stk_status stk_sheet_write(stk_options *options, const stk_stop *stop, const stk_events *events,
                           const char *path, stk_error *err) {
    stk_image sheet = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    const stk_file_how how = {.chosen = true, .stop = stop};
    stk_status status = stk_sheet_draw(options, stop, events, &sheet, err);
    STK_THEN(status, stk_image_encode_png(&sheet, &bytes, &size, err));
    STK_THEN(status, stk_file_write_how(path, bytes, size, &how, err));
    stk_image_free(&sheet);
    stk_mem_free(bytes);
    return status;
}
