/*
 * pretrained.h - starting from pretrained weights: timm's, or those of another run.
 *
 * stk_pretrained_wanted says what an option's text asks for, stk_pretrained_find where it lies on
 * this machine, stk_pretrained_names what else lies there, stk_pretrained_check whether it fits a
 * model, and stk_pretrained_load puts it into a state. Nothing is ever downloaded.
 */
#ifndef STK_WEIGHTS_PRETRAINED_H
#define STK_WEIGHTS_PRETRAINED_H

#include "base/str.h"
#include "engine/backend.h"

/*
 * What the option's text asks for: `given` itself; `model` where the text means yes; NULL where it
 * means no, is empty or is NULL. The result is one of the two arguments.
 */
const char *stk_pretrained_wanted(const char *given, const char *model);

typedef struct stk_pretrained_file {
    char *path; /* owned */
    char *name; /* owned: timm's name of the weights, "resnet50.a1_in1k"; "": a path was given */
    char *why;  /* owned: which file was chosen and why, for people */
} stk_pretrained_file;

/*
 * Finds a file by its path or by a timm name with or without a tag ("resnet50",
 * "resnet50.a1_in1k"). Names are looked for in the caches of the Hugging Face hub and of Stoker. A
 * bare name means timm's default tag if that file exists, otherwise the newest file. Weights that
 * do not exist are STK_ERR_USAGE; the message has the command that fetches them and the folders
 * that were searched.
 */
STK_CHECKED stk_status stk_pretrained_find(const char *wanted, stk_pretrained_file *file,
                                           stk_error *err);
void stk_pretrained_file_free(stk_pretrained_file *file);

/*
 * Appends the names of everything that lies where weights are looked for, each with a NUL after it,
 * and to `places` the folders, for people. Lists each folder once and opens no file, so that it is
 * quick: whether a name's weights can be used only stk_pretrained_find() says.
 */
STK_CHECKED stk_status stk_pretrained_names(stk_str *names, stk_str *places, stk_error *err);

/* How a file was used. */
typedef struct stk_pretrained_report {
    int tensors;     /* used for parameters */
    int converted;   /* used tensors that are not F32 in the file */
    char type[16];   /* of the first converted tensor: "F16" */
    int ignored;     /* ignored tensors: batch norm counters, which the model does not have */
    char prefix[24]; /* removed from the names; usually "" */
    bool head_anew;  /* the classifier starts at zero */
    int channels; /* the first layer was for RGB and became one for so many; 0: it is as it was */
    uint64_t file_classes;  /* of the file's classifier; 0: the file has none */
    char checkpoint_of[64]; /* the model that the file's metadata names, if another; usually "" */
} stk_pretrained_report;

/*
 * Checks that a file fits the graph of `model`: it has every parameter in its shape, as F32, F16,
 * BF16 or F64, and no tensor that the model does not know. A classifier for another number of
 * classes, or none, is fine, and so is a first layer over RGB where pictures have other channels.
 * Otherwise STK_ERR_DATA names what does not fit.
 */
STK_CHECKED stk_status stk_pretrained_check(const char *path, const char *model,
                                            const stk_graph *graph, stk_pretrained_report *report,
                                            stk_error *err);

/* The same, and the state's parameters become the file's; a head that starts anew becomes zero. */
STK_CHECKED stk_status stk_pretrained_load(const char *path, const char *model,
                                           const stk_backend *backend, stk_state *state,
                                           const stk_graph *graph, stk_pretrained_report *report,
                                           stk_error *err);

#endif
