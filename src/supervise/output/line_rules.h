/*
 * line_rules.h - one line of a training's output, taken apart by the table of rules.
 *
 * What a line says is collected here; what follows from it for the whole is words.c's business.
 * Pure; the time that a line takes grows with its length only.
 */
#ifndef STK_SUPERVISE_OUTPUT_LINE_RULES_H
#define STK_SUPERVISE_OUTPUT_LINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer lines are read up to here. */
#define STK_LINE_MOST 4096

/* Rules are found by their first letter, those that begin with a number or sign under the last. */
#define STK_RULE_LETTERS 27

/* What a line can say; the letter is its name in the patterns of rules. */
typedef enum stk_said {
    STK_SAID_EPOCH,        /* e: as the command counts it, perhaps with a fraction */
    STK_SAID_EPOCHS,       /* E: wanted */
    STK_SAID_EPOCHS_DONE,  /* d */
    STK_SAID_STEP,         /* s */
    STK_SAID_STEPS,        /* S */
    STK_SAID_GLOBAL_STEP,  /* g: through all epochs */
    STK_SAID_IMAGE,        /* n: progress that is counted in images */
    STK_SAID_IMAGES,       /* N */
    STK_SAID_MAYBE_STEP,   /* p: a step if the line speaks of training otherwise */
    STK_SAID_MAYBE_STEPS,  /* P */
    STK_SAID_LOSS,         /* l */
    STK_SAID_STEP_RATE,    /* r: per second */
    STK_SAID_IMAGE_RATE,   /* i: per second */
    STK_SAID_MEMORY,       /* m: bytes of the GPU's */
    STK_SAID_MEMORY_TOTAL, /* M */
    STK_SAID_MAYBE_MEMORY, /* u: if the line speaks of training otherwise */
    STK_SAID_BATCH,        /* b */
    STK_SAID_MAYBE_BATCH,  /* k: its size, or the number of a step */
    STK_SAID_WORKERS,      /* w */
    STK_SAID_COUNT
} stk_said;

typedef struct stk_line {
    uint32_t said; /* a bit for each stk_said */
    double value[STK_SAID_COUNT];
    bool bar;           /* the step is that of a progress bar */
    bool train;         /* the line says that it is about training */
    bool fraction;      /* the epoch has one */
    bool any_loss;      /* a loss of any kind was said, that of validation too */
    bool out_of_memory; /* of a GPU */
    bool trouble;       /* it looks like an error */
} stk_line;

static inline bool stk_line_says(const stk_line *line, stk_said what) {
    return (line->said >> what & 1) != 0;
}

/* Where the rules of each letter begin, for stk_line_read. */
void stk_line_index(uint8_t first[STK_RULE_LETTERS + 1]);

void stk_line_read(stk_line *line, const uint8_t first[STK_RULE_LETTERS + 1], const char *text,
                   size_t length);

#endif
