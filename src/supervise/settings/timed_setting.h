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

/* As stk_setting_value, stk_setting_set and stk_setting_restore. */
int64_t stk_setting_value_within(const stk_command_setting *knob, const stk_command *command,
                                 double within_s);
STK_CHECKED stk_status stk_setting_set_within(stk_command_setting *knob, stk_command *command,
                                              int64_t value, const char *run_dir, double within_s,
                                              stk_error *err);
STK_CHECKED stk_status stk_setting_restore_within(stk_command_setting *knob, bool *mine,
                                                  double within_s, stk_error *err);

#endif
