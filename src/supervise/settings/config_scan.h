/*
 * config_scan.h - lists the keys of a JSON or YAML text with the position of each value.
 *
 * YAML is read by libyaml, whose events carry the position of every scalar; without libyaml only
 * JSON can be read. A file with anchors, aliases or several documents is refused, since one number
 * could then stand for more than one key. libyaml is strict: control characters, bytes that are not
 * UTF-8, tabs as indentation and values such as `@x` or `a: b: c` are errors. Threads: safe.
 */
#ifndef STK_SUPERVISE_SETTINGS_CONFIG_SCAN_H
#define STK_SUPERVISE_SETTINGS_CONFIG_SCAN_H

#include "supervise/settings/config_keys.h"

/* Deepest nesting of mappings and lists. */
#define STK_CONFIG_DEPTH 64

/*
 * Lists the keys of a text. `file` ends in .json, .yaml or .yml; `file` and `text` are borrowed
 * until the list is freed. STK_ERR_USAGE: another ending, or the text is not valid. Free the list
 * after an error too.
 */
STK_CHECKED stk_status stk_config_scan(stk_config_keys *keys, const char *file, const char *text,
                                       size_t size, stk_error *err);

#endif
