/*
 * public_struct.h - structs of include/stoker that a caller allocates and that may grow.
 *
 * Such a struct begins with `size`, which its caller sets to sizeof. If the caller was compiled
 * with another version of the struct, the library refuses it here, instead of reading or writing
 * beyond its end. Every public call does this first. Threads: safe.
 */
#ifndef STK_BASE_PUBLIC_STRUCT_H
#define STK_BASE_PUBLIC_STRUCT_H

#include <stoker/job.h>

/*
 * STK_ERR_USAGE unless `size` is `own`, the size that the library knows; `name` is for the error.
 */
STK_CHECKED stk_status stk_public_check(const char *name, size_t size, size_t own, stk_error *err);

/* The same for the struct at `pointer`, which may be NULL. */
#define STK_PUBLIC_CHECK(type, pointer, err) \
    ((pointer) == NULL ? STK_OK : stk_public_check(#type, (pointer)->size, sizeof(type), err))

/* The same for a run, which may be NULL, and its observer. */
STK_CHECKED stk_status stk_public_check_run(const stk_run *run, stk_error *err);

/*
 * The first step of a public call that gets a run and fills a struct: checks both, and sets the
 * struct to zeros but for its size. Run and struct may be NULL.
 */
#define STK_PUBLIC_BEGIN(type, pointer, run, err) \
    stk_public_begin(#type, (type *){pointer}, sizeof(type), run, err)
STK_CHECKED stk_status stk_public_begin(const char *name, void *result, size_t own,
                                        const stk_run *run, stk_error *err);

#endif
