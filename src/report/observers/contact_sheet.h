/* contact_sheet.h - inside the report room: the pictures of a batch side by side in one. */
#ifndef STK_REPORT_OBSERVERS_CONTACT_SHEET_H
#define STK_REPORT_OBSERVERS_CONTACT_SHEET_H

#include <stoker/events.h>

#include "image/image.h"

/*
 * The first pictures of the batch, which has some: 64, or as many as are not too large together,
 * row by row on white. Ends with stk_image_free.
 */
STK_CHECKED stk_status stk_contact_sheet(const stk_event_batch *batch, stk_image *sheet,
                                         stk_error *err);

#endif
