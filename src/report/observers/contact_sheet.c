/* contact_sheet.c - laying pictures of one size out in a grid that is about square. */
#include "report/observers/contact_sheet.h"

#include <string.h>

#define GAP_PX 2
#define MOST_SIDE_PX 2048 /* of the sheet, as long as one picture is no larger */
#define MOST_COLUMNS 8

/* As many columns as make the grid of `count` pictures square. */
static int columns_for(size_t count, int size) {
    int most = MOST_SIDE_PX / (size + GAP_PX);
    int columns = 1;
    most = most < MOST_COLUMNS ? most : MOST_COLUMNS;
    while (columns < most && (size_t)columns * (size_t)columns < count) {
        columns++;
    }
    return columns;
}

/* A row as RGB: the first three channels of many, or the first again where there are fewer. */
static void put_row(const uint8_t *from, size_t channels, size_t width, uint8_t *to) {
    for (size_t x = 0; x < width; x++) {
        for (size_t c = 0; c < 3; c++) {
            to[3 * x + c] = from[channels * x + (c < channels ? c : 0)];
        }
    }
}

stk_status stk_contact_sheet(const stk_event_batch *batch, stk_image *sheet, stk_error *err) {
    int columns = columns_for(batch->count, batch->size);
    size_t room = (size_t)columns * (size_t)columns;
    size_t count = batch->count < room ? batch->count : room;
    int rows = (int)((count + (size_t)columns - 1) / (size_t)columns);
    int pitch = batch->size + GAP_PX;
    stk_status status = stk_image_new(sheet, columns * pitch - GAP_PX, rows * pitch - GAP_PX, err);
    if (status != STK_OK) {
        return status;
    }
    size_t channels = batch->channels > 0 ? (size_t)batch->channels : 3;
    size_t line = (size_t)batch->size * channels;
    size_t sheet_line = (size_t)sheet->width * 3;
    memset(sheet->pixels, 0xFF, sheet_line * (size_t)sheet->height);
    for (size_t i = 0; i < count; i++) {
        size_t top = i / (size_t)columns * (size_t)pitch;
        size_t left = i % (size_t)columns * (size_t)pitch;
        const uint8_t *from = batch->images + i * line * (size_t)batch->size;
        uint8_t *to = sheet->pixels + top * sheet_line + left * 3;
        for (int y = 0; y < batch->size; y++) {
            put_row(from + (size_t)y * line, channels, (size_t)batch->size,
                    to + (size_t)y * sheet_line);
        }
    }
    return STK_OK;
}
