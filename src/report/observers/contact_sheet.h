/* contact_sheet.h - inside the report room: the pictures of a batch side by side in one image.
 * Threads: safe. */
#ifndef STK_REPORT_OBSERVERS_CONTACT_SHEET_H
#define STK_REPORT_OBSERVERS_CONTACT_SHEET_H

#include <stoker/events.h>

#include "image/image.h"

/*
 * Makes *sheet from the first pictures of a batch that is not empty: 64, or fewer if the sheet
 * would be too large. The pictures stand row by row on white. Free the sheet with stk_image_free.
 */
STK_CHECKED stk_status stk_contact_sheet(const stk_event_batch *batch, stk_image *sheet,
                                         stk_error *err);

#endif
