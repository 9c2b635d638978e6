/* probe_texts.h - inside the probe room: scripts, as texts in the program. The build makes them. */
#ifndef STK_PROBE_PROBE_TEXTS_H
#define STK_PROBE_PROBE_TEXTS_H

#include <stddef.h>

typedef struct probe_text {
    const char *name; /* "torch_step.py" */
    const char *text;
} probe_text;

extern const probe_text stk_probe_texts[]; /* the last has no name */

#endif
