/*
 * sheet.h - draws a contact sheet that shows what the augmentation options do to pictures.
 *
 * Each row is one picture of the data set, spread over its classes: first as validation sees it,
 * then as training sees it in one epoch after the other. The same options give the same sheet.
 */
#ifndef STK_PROBE_SHEET_H
#define STK_PROBE_SHEET_H

#include <stoker/status.h>
#include <stoker/stop.h>

#include "events/events.h"
#include "image/image.h"
#include "options/options.h"

#define STK_SHEET_ROWS 6 /* fewer when the data set has fewer pictures */
#define STK_SHEET_VIEWS 7
#define STK_SHEET_GAP_PX 4 /* white, between pictures and around them */

/* The sheet as a picture, freed with stk_image_free; the options are those of `bench loader`. */
STK_CHECKED stk_status stk_sheet_draw(stk_options *options, const stk_stop *stop,
                                      const stk_events *events, stk_image *sheet, stk_error *err);

/* Draws the sheet into a PNG file, which is replaced in one step. */
STK_CHECKED stk_status stk_sheet_write(stk_options *options, const stk_stop *stop,
                                       const stk_events *events, const char *path, stk_error *err);

#endif
