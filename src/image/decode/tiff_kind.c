/* tiff_kind.c - which pixels of TIFF are plain numbers, and what their channels are. */
#include "image/decode/tiff.h"

bool stk_tiff_describe(const stk_tiff_kind *kind, const stk_image_receiver *receiver,
                       stk_samples *samples) {
    static const stk_sample_type types[3][4] = {
        {STK_SAMPLE_U8, STK_SAMPLE_U16, STK_SAMPLE_U32, STK_SAMPLE_U64},
        {STK_SAMPLE_I8, STK_SAMPLE_I16, STK_SAMPLE_I32, STK_SAMPLE_I64},
        {STK_SAMPLE_BOOL, STK_SAMPLE_F16, STK_SAMPLE_F32, STK_SAMPLE_F64}};
    unsigned width = kind->bits == 8 ? 0 : kind->bits == 16 ? 1 : kind->bits == 32 ? 2 : 3;
    unsigned colours = kind->photometric == 2 ? 3 : 1;
    if (kind->photometric > 2 || 8u << width != kind->bits || kind->format < 1 ||
        kind->format > 3 || (kind->format == 3 && width == 0) || kind->channels < colours ||
        kind->channels > STK_IMAGE_MAX_CHANNELS) {
        return false;
    }
    bool has_alpha = kind->channels == colours + 1 && kind->extras == 1 &&
                     (receiver->channels != (int)kind->channels || kind->extra != 0);
    samples->type = types[kind->format - 1][width];
    samples->channels = (int)kind->channels;
    samples->inverted = kind->photometric == 0;
    samples->orientation =
        kind->orientation >= 1 && kind->orientation <= 8 ? (int)kind->orientation : 1;
    samples->alpha = !has_alpha         ? STK_ALPHA_NONE
                     : kind->extra == 0 ? STK_ALPHA_IGNORED
                     : kind->extra == 1 ? STK_ALPHA_DONE
                                        : STK_ALPHA_STRAIGHT;
    return true;
}
