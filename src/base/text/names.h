/* names.h - the order of names: of classes, of folds. Threads: safe. */
#ifndef STK_BASE_TEXT_NAMES_H
#define STK_BASE_TEXT_NAMES_H

#include <stddef.h>

#include <stoker/status.h>

/*
 * Puts names in order, by bytes or, when all are whole numbers, by value; places[i] is where
 * names[i] has gone.
 */
STK_CHECKED stk_status stk_names_sort(const char **names, size_t count, int *places,
                                      stk_error *err);

#endif
