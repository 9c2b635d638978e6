/* names.c - sorting names. */
#include "base/text/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

typedef struct name_order {
    const char *name;
    int64_t value; /* when all names are whole numbers */
    int old;       /* position before sorting */
} name_order;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const name_order *)a)->name, ((const name_order *)b)->name);
}

static int compare_values(const void *a, const void *b) {
    const name_order *x = a;
    const name_order *y = b;
    return x->value != y->value ? (x->value < y->value ? -1 : 1) : strcmp(x->name, y->name);
}

stk_status stk_names_sort(const char **names, size_t count, int *places, stk_error *err) {
    name_order *order = stk_mem_new(count, sizeof *order);
    if (order == NULL) {
        return STK_FAIL_MEMORY(err, "the order of names");
    }
    bool numbers = true;
    for (size_t i = 0; i < count; i++) {
        order[i] = (name_order){.name = names[i], .old = (int)i};
        numbers = numbers && stk_parse_int(order[i].name, &order[i].value);
    }
    qsort(order, count, sizeof *order, numbers ? compare_values : compare_names);
    for (size_t i = 0; i < count; i++) {
        names[i] = order[i].name;
        places[order[i].old] = (int)i;
    }
    stk_mem_free(order);
    return STK_OK;
}
