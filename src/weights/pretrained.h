/*
 * pretrained.h - starting from weights that somebody else has trained.
 *
 * stk_pretrained_wanted says what an option's text asks for, stk_pretrained_find where it lies on
 * this machine, stk_pretrained_check whether it fits a model, and stk_pretrained_load puts it into
 * a state. Nothing is ever downloaded.
 */
#ifndef STK_WEIGHTS_PRETRAINED_H
#define STK_WEIGHTS_PRETRAINED_H

#include "engine/backend.h"

/*
 * What to look for: `given` itself, the model's own name where it is a word for yes, NULL where it
 * is a word for no, empty or NULL. A pointer into one of the two.
 */
const char *stk_pretrained_wanted(const char *given, const char *model);

typedef struct stk_pretrained_place {
    char *path; /* owned */
    char *why;  /* owned: which one it is and why it, for people */
} stk_pretrained_place;

/*
 * Finds a file or a timm name, with or without a tag ("resnet50", "resnet50.a1_in1k"), in the
 * folders where the Hugging Face hub and Stoker keep weights. A bare name means timm's default tag
 * where it is there, otherwise the newest one. What is not there is STK_ERR_USAGE with the command
 * that fetches it and the places that were looked at.
 */
STK_CHECKED stk_status stk_pretrained_find(const char *wanted, stk_pretrained_place *place,
                                           stk_error *err);
void stk_pretrained_place_free(stk_pretrained_place *place);

/* What became of a file. */
typedef struct stk_pretrained_report {
    int tensors;            /* that parameters are taken from */
    int converted;          /* of these, not F32 in the file */
    char type[16];          /* of the converted ones, the first one's: "F16" */
    int passed_over;        /* counters of batch norms, which the model does not have */
    char prefix[24];        /* that was taken off the names; "" mostly */
    bool head_anew;         /* the classifier is left as it was */
    uint64_t file_classes;  /* of the file's classifier; 0: the file has none */
    char checkpoint_of[64]; /* a model of another name that the file says it is of; "" mostly */
} stk_pretrained_report;

/*
 * Whether a file fits the graph of `model`: every parameter is there in its shape, as F32, F16,
 * BF16 or F64, and nothing that the model does not know. A classifier for another number of
 * classes, or none, is fine. Otherwise STK_ERR_DATA names what does not fit.
 */
STK_CHECKED stk_status stk_pretrained_check(const char *path, const char *model,
                                            const stk_graph *graph, stk_pretrained_report *report,
                                            stk_error *err);

/* The same, and the state's parameters become the file's; a head that starts anew is left alone. */
STK_CHECKED stk_status stk_pretrained_load(const char *path, const char *model,
                                           const stk_backend *backend, stk_state *state,
                                           const stk_graph *graph, stk_pretrained_report *report,
                                           stk_error *err);

#endif
