/*
 * columns.h - how the columns beside the pictures become numbers, as text in a checkpoint.
 *
 * A JSON list with an object for each column, in the order of their numbers: its name; mean and
 * scale where its value is a number, and whether numbers may be missing; its texts. A model that is
 * used later codes other tables in the same way. Threads: any.
 */
#ifndef STK_WEIGHTS_COLUMNS_H
#define STK_WEIGHTS_COLUMNS_H

#include "base/str.h"
#include "dataset/feature_code.h"

void stk_columns_append(const stk_feature_code *code, stk_str *out);

/*
 * Reads the list of a network that takes `features` numbers. NULL or "", as in older files, gives
 * an empty code. A list that does not make as many numbers is STK_ERR_DATA.
 */
STK_CHECKED stk_status stk_columns_read(const char *text, int features, stk_feature_code *code,
                                        stk_error *err);

#endif
