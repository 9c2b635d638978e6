/*
 * picture_look.h - what a few training pictures are like: their channels, the window of their
 * values, and their size.
 *
 * Arrays and pictures of more than 8 bits have values of any size. One window for the whole data
 * set keeps what is bright in one picture bright beside the others. Threads: the job's.
 */
#ifndef STK_JOB_RECIPE_PICTURE_LOOK_H
#define STK_JOB_RECIPE_PICTURE_LOOK_H

#include "dataset/dataset.h"
#include "image/image.h"

typedef struct stk_picture_look {
    int channels;      /* 3 unless all pictures have another number */
    stk_window window; /* 0 channels: none is needed */
    size_t looked;     /* pictures that could be read */
    int side;          /* px: most pictures' short side has at least so many; 0: not looked at */
} stk_picture_look;

/* Reads some training pictures, spread over the list. A picture that cannot be read is passed over.
 * JPEGs at the beginning end the look, since they need none, unless `sides` are wanted. */
STK_CHECKED stk_status stk_picture_look_at(const stk_dataset *dataset, bool sides,
                                           stk_picture_look *look, stk_error *err);

#endif
