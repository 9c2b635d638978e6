/*
 * stoker/options.h - the settings of one verb, by name.
 *
 * A stk_options comes from stk_options_for_train() and its like (stoker/job.h), holds every option
 * of that verb at its default, and is freed with stk_options_free. Names are those of the command
 * line's flags without the dashes in front, or any alias of docs/options.md; dashes and underscores
 * are the same. The options config, quiet, json and detach exist only on the command line: here
 * stk_options_load reads a file, the caller gives an observer or none, and no call leaves its
 * process. Threads: one at a time.
 */
#ifndef STOKER_OPTIONS_H
#define STOKER_OPTIONS_H

#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_options stk_options;

/*
 * Sets one option from text, as on the command line: stk_options_set(o, "batch", "auto", &err). The
 * error for an unknown name gives the nearest known name; the error for a bad value gives the
 * range.
 */
STK_API STK_CHECKED stk_status stk_options_set(stk_options *options, const char *name,
                                               const char *value, stk_error *err);

/* Reads `name: value` lines of a YAML file. What was set before by stk_options_set stays. */
STK_API STK_CHECKED stk_status stk_options_load(stk_options *options, const char *path,
                                                stk_error *err);

/* The value as text ("" when not set), or NULL when there is no such option. */
STK_API const char *stk_options_get(const stk_options *options, const char *name);

STK_API void stk_options_free(stk_options *options);

#ifdef __cplusplus
}
#endif

#endif
