/* names.h - the order of names: of classes, of folds. Threads: safe. */
#ifndef STK_BASE_TEXT_NAMES_H
#define STK_BASE_TEXT_NAMES_H

#include <stddef.h>

#include <stoker/status.h>

/*
 * Sorts names by bytes or, when all are whole numbers, by value; places[i] is the new position of
 * names[i].
 */
STK_CHECKED stk_status stk_names_sort(const char **names, size_t count, int *places,
                                      stk_error *err);

#endif
