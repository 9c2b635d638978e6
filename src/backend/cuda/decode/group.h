/*
 * group.h - inside the CUDA backend: pictures that are decoded together, and their memory.
 *
 *     pinned host memory    tables (cuda_picture, first pixels and weights) | encoded pictures
 *     device memory         tables                                          | planes, RGB, squares
 *
 * A picture is reserved (one thread at a time), then filled in (each by its own thread), and the
 * group runs once all are: nvJPEG writes the planes, the tables are copied to the device, kernels
 * make the squares, and these are copied to where the batch lies.
 */
#ifndef STK_BACKEND_CUDA_DECODE_GROUP_H
#define STK_BACKEND_CUDA_DECODE_GROUP_H

#include "backend/cuda/decode/picture_kernels.h"
#include "backend/cuda/driver/jpeg_api.h"
#include "backend/cuda/emit/changes.h"
#include "image/device_decoder.h"

#define CUDA_GROUP_PICTURES 64

/* What all groups of a decoder use. */
typedef struct cuda_decode_tools {
    const cuda_driver *driver; /* borrowed */
    const cuda_jpeg *jpeg;     /* borrowed */
    cuda_jpeg_handle handle;   /* borrowed */
    cuda_picture_kernels kernels;
} cuda_decode_tools;

typedef struct cuda_group {
    const cuda_decode_tools *tools;
    cuda_stream stream;        /* owned */
    cuda_event ended;          /* owned */
    cuda_jpeg_decoder decoder; /* owned */
    int begun;                 /* pictures that the decoder was begun for; 0: none */
    uint8_t *host;             /* owned, pinned */
    cuda_pointer memory;       /* borrowed, of the device */
    size_t memory_bytes;
    size_t tables;         /* bytes in use of the tables, for all pictures so far */
    size_t files;          /* bytes in use of the encoded pictures */
    size_t pixels;         /* bytes in use of the device's memory behind the tables */
    size_t squares;        /* bytes that the squares will take behind them */
    int count;             /* pictures that are reserved */
    cuda_picture *entries; /* in `host`: (CUDA_GROUP_PICTURES) */
    stk_device_picture pictures[CUDA_GROUP_PICTURES]; /* bytes and plan are not valid later */
    const unsigned char *encoded[CUDA_GROUP_PICTURES];
    size_t sizes[CUDA_GROUP_PICTURES];
    cuda_jpeg_image planes[CUDA_GROUP_PICTURES];
    bool failed[CUDA_GROUP_PICTURES]; /* nvJPEG did not decode it */
} cuda_group;

/* Device memory of a group whose pixels take so many bytes. */
size_t stk_cuda_group_bytes(size_t pixel_bytes);

/* Larger files are refused. */
size_t stk_cuda_group_most_bytes(void);

/* `memory` is stk_cuda_group_bytes() long. The context is current. */
STK_CHECKED stk_status stk_cuda_group_open(cuda_group *group, const cuda_decode_tools *tools,
                                           cuda_pointer memory, size_t memory_bytes,
                                           stk_error *err);
void stk_cuda_group_close(cuda_group *group); /* a struct of zeros is fine */

/* Forgets the pictures of the group, which is then empty. */
void stk_cuda_group_clear(cuda_group *group);

/* Where a picture lies in its group. */
typedef struct cuda_group_place {
    int index;
    size_t table, file, pixel; /* offsets of its tables, bytes and planes */
} cuda_group_place;

/* Reserves room: TAKEN, FULL where a fresh group would have room, REFUSED where none has. */
stk_offer stk_cuda_group_reserve(cuda_group *group, const stk_device_picture *picture,
                                 cuda_group_place *place);

/* Copies what was reserved for: bytes, tables, and what the kernels must know. */
void stk_cuda_group_fill(cuda_group *group, const stk_device_picture *picture,
                         const cuda_group_place *place);

/* Decodes a picture several times into an empty group and forgets it: the library takes its memory
 * at its first pictures. */
void stk_cuda_group_warm_up(cuda_group *group, const uint8_t *bytes, size_t size, int width,
                            int height);

/*
 * Decodes the pictures; `failed` says which could not be. Returns when nvJPEG has them all under
 * way; stk_cuda_group_launch() then puts the rest on the stream, and stk_cuda_group_wait() waits
 * until the squares are complete. Results are the driver's codes.
 */
void stk_cuda_group_decode(cuda_group *group);
int stk_cuda_group_launch(cuda_group *group);
int stk_cuda_group_wait(cuda_group *group);

#endif
