/* channels.h - the first layer of pretrained weights for pictures that are not RGB. */
#ifndef STK_WEIGHTS_CHANNELS_H
#define STK_WEIGHTS_CHANNELS_H

#include "engine/graph.h"

/* Channels of the pictures that pretrained weights know. */
#define STK_PRETRAINED_CHANNELS 3

/*
 * Makes filters over `channels` channels from filters over RGB, as timm does: one channel gets the
 * sum of the three; several get red, green, blue, red and so on, times 3 / channels, so that the
 * layer's output stays about as large as it was.
 */
void stk_weights_adapt_channels(const float *rgb /* (filters, 3, taps) */, size_t filters,
                                size_t taps, int channels,
                                float *out /* (filters, channels, taps) */);

/* Whether a parameter holds the filters of a convolution that reads the pictures. */
bool stk_weights_reads_pictures(const stk_graph *graph, int param);

#endif
