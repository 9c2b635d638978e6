/* pixel_words.cuh - four RGB pixels of 8 bits as three words, the size of a load or store. */

/* `words` is aligned to 4 bytes. */
DEVICE void words_to_bytes(const u8 *words, u8 *bytes /* 12 */) {
    UNROLL for (int k = 0; k < 3; k++) {
        u32 word = ((const u32 *)words)[k];
        UNROLL for (int i = 0; i < 4; i++) {
            bytes[4 * k + i] = (u8)(word >> (8 * i));
        }
    }
}

DEVICE void bytes_to_words(const u8 *bytes /* 12 */, u8 *words) {
    UNROLL for (int k = 0; k < 3; k++) {
        ((u32 *)words)[k] = bytes[4 * k] | (u32)bytes[4 * k + 1] << 8 |
                            (u32)bytes[4 * k + 2] << 16 | (u32)bytes[4 * k + 3] << 24;
    }
}
