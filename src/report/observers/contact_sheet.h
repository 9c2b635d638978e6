/* contact_sheet.h - inside the report room: the pictures of a batch side by side in one image.
 * Threads: safe. */
#ifndef STK_REPORT_OBSERVERS_CONTACT_SHEET_H
#define STK_REPORT_OBSERVERS_CONTACT_SHEET_H

#include <stoker/events.h>

#include "image/image.h"

/*
 * Makes *sheet of the first pictures of a batch that is not empty: 64, or fewer where the sheet
 * would be too large. They stand row by row on white. Free it with stk_image_free.
 */
STK_CHECKED stk_status stk_contact_sheet(const stk_event_batch *batch, stk_image *sheet,
                                         stk_error *err);

#endif
