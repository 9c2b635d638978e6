/*
 * line_rules.h - finds the progress figures in one output line, by a table of rules.
 *
 * Looks at one line alone; command_progress.c follows the training from line to line. Pure. Reading
 * takes time proportional to the line's length.
 */
#ifndef STK_SUPERVISE_OUTPUT_LINE_RULES_H
#define STK_SUPERVISE_OUTPUT_LINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a line that are read; the rest is ignored. */
#define STK_LINE_MOST 4096

/* Rules are indexed by their first letter; rules that begin with a number or sign come last. */
#define STK_RULE_LETTERS 27

/* Figures that a line can hold. The letter in front stands for the figure in the patterns of rules.
 */
typedef enum stk_line_figure {
    STK_FIGURE_EPOCH,        /* e: as the command counts it, perhaps with a fraction */
    STK_FIGURE_EPOCHS,       /* E: planned epochs */
    STK_FIGURE_EPOCHS_DONE,  /* d: finished epochs */
    STK_FIGURE_STEP,         /* s: step within the epoch */
    STK_FIGURE_STEPS,        /* S: steps per epoch */
    STK_FIGURE_GLOBAL_STEP,  /* g: step through all epochs */
    STK_FIGURE_IMAGE,        /* n: progress counted in images */
    STK_FIGURE_IMAGES,       /* N: images per epoch */
    STK_FIGURE_MAYBE_STEP,   /* p: a step if another figure shows that the line is training's */
    STK_FIGURE_MAYBE_STEPS,  /* P: steps per epoch under the same condition */
    STK_FIGURE_LOSS,         /* l */
    STK_FIGURE_STEP_RATE,    /* r: steps per second */
    STK_FIGURE_IMAGE_RATE,   /* i: images per second */
    STK_FIGURE_MEMORY,       /* m: bytes used on the GPU */
    STK_FIGURE_MEMORY_TOTAL, /* M: bytes of the GPU */
    STK_FIGURE_MAYBE_MEMORY, /* u: bytes used if the line is training's */
    STK_FIGURE_BATCH,        /* b: batch size */
    STK_FIGURE_MAYBE_BATCH,  /* k: batch size, or in a line of training the step */
    STK_FIGURE_WORKERS,      /* w: loader workers */
    STK_FIGURE_COUNT
} stk_line_figure;

/* The figures of one line. */
typedef struct stk_line {
    uint32_t found;                 /* a bit for each stk_line_figure in the line */
    double value[STK_FIGURE_COUNT]; /* valid where the bit is set */
    bool bar;                       /* the step comes from a progress bar */
    bool train;                     /* the line calls itself training */
    bool fraction;                  /* the epoch has a fraction: 1.25 */
    bool any_loss;                  /* a loss of any kind, validation included */
    bool out_of_memory;             /* a GPU ran out of memory */
    bool is_error;                  /* the line looks like an error */
} stk_line;

static inline bool stk_line_has(const stk_line *line, stk_line_figure figure) {
    return (line->found >> figure & 1) != 0;
}

/* Fills the index that stk_line_read() needs: where the rules of each letter begin. */
void stk_line_index(uint8_t first[STK_RULE_LETTERS + 1]);

void stk_line_read(stk_line *line, const uint8_t first[STK_RULE_LETTERS + 1], const char *text,
                   size_t length);

#endif
