/*
 * timed_setting.h - turning a knob that is a key of a file, on a disk that may hang.
 *
 * The file as it was is kept in the run folder before it is changed, and its own disk may hang too.
 * What does not answer within a time is STK_ERR_STORAGE with a sentence, and is left behind; knobs
 * of other kinds touch no disk. Threads: one at a time.
 */
#ifndef STK_SUPERVISE_SETTINGS_TIMED_SETTING_H
#define STK_SUPERVISE_SETTINGS_TIMED_SETTING_H

#include "supervise/settings/command_setting.h"

/* As stk_knob_value, stk_knob_set and stk_knob_restore. */
int64_t stk_knob_value_within(const stk_knob *knob, const stk_command *command, double within_s);
STK_CHECKED stk_status stk_knob_set_within(stk_knob *knob, stk_command *command, int64_t value,
                                           const char *run_dir, double within_s, stk_error *err);
STK_CHECKED stk_status stk_knob_restore_within(stk_knob *knob, bool *mine, double within_s,
                                               stk_error *err);

#endif
