/*
 * fuzz_exif.c - any bytes, as EXIF, as XMP, as one behind the other and as the chunks of a PNG,
 * have an orientation from 1 to 8, and that is always the same one.
 */
#include "fuzz.h"

#include "image/decode/decoders.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"),
    FUZZ_SEED("MM\0*\0\0\0\x08\0\x02\x01\x0F\0\x02\0\0\0\x04"
              "abc\0\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0"),
    FUZZ_SEED("Exif\0\0II*"
              "\0\x1A\0\0\0abcdefghijklmnopqr\x01\0\x12\x01\x04\0\x01\0\0\0\x03\0\0\0\0\0\0\0"),
    FUZZ_SEED(
        "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF><rdf:Description tiff:Orientation=\"6\"/>"
        "</rdf:RDF></x:xmpmeta>"),
    FUZZ_SEED("<tiff:Orientation> 8 </tiff:Orientation><!-- tiff:Orientation='3' -->"),
    FUZZ_SEED("\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0....\0\0\0\x1A"
              "eXIfII*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0...."),
    FUZZ_SEED("\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0....\0\0\0\x4A"
              "tEXtRaw profile type exif\0\nexif\n      26\n"
              "49492a00080000000100120103000100000006000000000000....\0\0\0\0IEND...."),
};
FUZZ_PLAN(seeds)

static void check(const stk_image_tags *tags) {
    int orientation = stk_image_orientation(tags);
    FUZZ_REQUIRE(orientation >= 1 && orientation <= 8);
    FUZZ_REQUIRE(stk_image_orientation(tags) == orientation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t half = size / 2;
    int orientation = 1;
    stk_error err = {0};
    check(&(stk_image_tags){.exif = data, .exif_size = size});
    check(&(stk_image_tags){.xmp = data, .xmp_size = size});
    check(&(stk_image_tags){
        .exif = data, .exif_size = half, .xmp = data + half, .xmp_size = size - half});
    if (stk_image_png_orientation(data, size, &orientation, &err) == STK_OK) {
        FUZZ_REQUIRE(orientation >= 1 && orientation <= 8);
    } else {
        FUZZ_REQUIRE(err.message[0] != '\0');
    }
    return 0;
}
