/*
 * test_image_tags.c - where files tell which way up they are: EXIF, XMP, and texts of a PNG.
 *
 * The order is Pillow's: EXIF where it tells, otherwise XMP.
 */
#include "check.h"
#include "image_kinds.h"

#include <zlib.h>

#include "base/error.h"

/* "Exif", TIFF header, one directory with one entry; the value is at EXIF_VALUE. */
static const uint8_t exif_six[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0";
#define EXIF_BYTES (sizeof exif_six - 1)
#define EXIF_TAG 17 /* where the tag's second byte is */

static const char xmp_six[] = "<x:xmpmeta><rdf:Description tiff:Orientation=\"6\"/></x:xmpmeta>";

static blob join(const void *a, size_t a_size, const void *b, size_t b_size) {
    blob out = {stk_mem_raw(a_size + b_size, 1), a_size + b_size};
    memcpy(out.bytes, a, a_size);
    memcpy(out.bytes + a_size, b, b_size);
    return out;
}

static blob insert(blob file, size_t place, const void *piece, size_t length) {
    blob front = join(file.bytes, place, piece, length);
    blob out = join(front.bytes, front.size, file.bytes + place, file.size - place);
    free_blob(&front);
    return out;
}

/* What the header of the file says. */
static int orientation_of(blob file) {
    stk_error err = {0};
    catcher c = {.part.divisor = 1};
    stk_status status = catch_part(&c, &file, 0, &err);
    stk_image_free(&c.rows);
    if (status != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return -1;
    }
    return c.info.orientation;
}

/* ---- XMP ---- */

static void xmp_tells_where_exif_does_not(void) {
    static const struct {
        const char *text;
        int orientation;
    } cases[] = {
        {xmp_six, 6},
        {"<tiff:Orientation>8</tiff:Orientation>", 8},
        {"tiff:Orientation= tiff:Orientation tiff:Orientation=\"3\"", 3},
        {"tiff:Orientation=\"9\"", 1},
        {"tiff:Orientation=\"0\" tiff:Orientation=\"5\"", 1},
        {"tiff:Orientation=\"x\"", 1},
        {"tiff:Orientation=\"", 1},
        {"tiff:Orientation>", 1},
        {"tiff:Orientation", 1},
        {"exif:Orientation=\"6\"", 1},
        {"", 1},
    };
    uint8_t told[EXIF_BYTES];
    uint8_t silent[EXIF_BYTES];
    memcpy(told, exif_six, EXIF_BYTES);
    memcpy(silent, exif_six, EXIF_BYTES);
    silent[EXIF_TAG] = 0x13; /* another tag */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = strlen(cases[i].text);
        /* In memory of its own size, so that a sanitizer sees every byte too many. */
        blob exact = join(cases[i].text, size, "", 0);
        stk_image_tags tags = {.xmp = exact.bytes, .xmp_size = size};
        CHECK_INT(stk_image_orientation(&tags), cases[i].orientation);
        tags.exif = silent;
        tags.exif_size = sizeof silent;
        CHECK_INT(stk_image_orientation(&tags), cases[i].orientation);
        tags.exif = told;
        CHECK_INT(stk_image_orientation(&tags), 6);
        free_blob(&exact);
    }
}

/* ---- JPEG and WebP ---- */

static blob app1(const char *sign, size_t sign_size, const void *data, size_t size) {
    size_t length = 2 + sign_size + size;
    uint8_t head[4] = {0xFF, 0xE1, (uint8_t)(length >> 8), (uint8_t)length};
    blob front = join(head, 4, sign, sign_size);
    blob out = join(front.bytes, front.size, data, size);
    free_blob(&front);
    return out;
}

static void jpeg_tells_it_in_xmp(void) {
    static const char sign[] = "http://ns.adobe.com/xap/1.0/"; /* with its NUL */
    stk_image scene = quarters(64, 40);
    blob jpeg = make_rgb_jpeg(&scene, false);
    blob xmp = app1(sign, sizeof sign, xmp_six, strlen(xmp_six));
    blob with_xmp = insert(jpeg, 2, xmp.bytes, xmp.size);
    blob both = with_exif(with_xmp, 3, true);
    CHECK_INT(orientation_of(jpeg), 1);
    CHECK_INT(orientation_of(with_xmp), 6);
    CHECK_INT(orientation_of(both), 3);
    /* Behind the first piece of the file, and across the seam between pieces. */
    for (size_t size = 65400; size <= 65537; size += 7) {
        uint8_t *filling = stk_mem_new(size, 1);
        memcpy(filling, "\xFF\xFE", 2);
        filling[2] = (uint8_t)((size - 2) >> 8);
        filling[3] = (uint8_t)(size - 2);
        blob late = insert(with_xmp, 2, filling, size);
        CHECK_INT(orientation_of(late), 6);
        stk_mem_free(filling);
        free_blob(&late);
    }
    free_blob(&both);
    free_blob(&with_xmp);
    free_blob(&xmp);
    free_blob(&jpeg);
    stk_image_free(&scene);
}

static void webp_tells_it_in_xmp(void) {
#ifdef STK_HAVE_WEBP
    stk_image scene = quarters(64, 40);
    blob simple = make_webp(scene.pixels, 64, 40, 3, WEBP_LOSSY);
    blob exif = webp_with_exif(simple, 64, 40, 6);
    uint8_t head[8] = {'X', 'M', 'P', ' ', (uint8_t)strlen(xmp_six)};
    blob chunk = join(head, 8, xmp_six, sizeof xmp_six - 1 + (sizeof xmp_six - 1) % 2);
    blob both = insert(exif, exif.size, chunk.bytes, chunk.size);
    CHECK_INT(orientation_of(exif), 6);
    memcpy(both.bytes + exif.size - 34, "JUNK", 4); /* the name of the EXIF chunk */
    both.bytes[4] = (uint8_t)(both.size - 8);
    both.bytes[5] = (uint8_t)((both.size - 8) >> 8);
    memcpy(both.bytes + exif.size + 8, "tiff:Orientation=\"5\" ", 21);
    CHECK_INT(orientation_of(both), 5);
    free_blob(&both);
    free_blob(&chunk);
    free_blob(&exif);
    free_blob(&simple);
    stk_image_free(&scene);
#else
    CHECK_SKIP("this build has no WebP");
#endif
}

/* ---- PNG ---- */

typedef enum text_form { PLAIN, PACKED, PLAIN_UNICODE, PACKED_UNICODE, TEXT_FORMS } text_form;

/* A chunk with its checksum. */
static blob make_chunk(const char *name, blob data) {
    uint8_t head[8] = {(uint8_t)(data.size >> 24), (uint8_t)(data.size >> 16),
                       (uint8_t)(data.size >> 8), (uint8_t)data.size};
    memcpy(head + 4, name, 4);
    blob front = join(head, 8, data.bytes, data.size);
    uint32_t sum = (uint32_t)crc32(0, front.bytes + 4, (uInt)(front.size - 4));
    uint8_t tail[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                       (uint8_t)sum};
    blob out = join(front.bytes, front.size, tail, 4);
    free_blob(&front);
    return out;
}

static blob text_chunk(const char *key, const char *text, size_t size, text_form form) {
    static const char *const names[TEXT_FORMS] = {"tEXt", "zTXt", "iTXt", "iTXt"};
    static const char *const heads[TEXT_FORMS] = {"", "\0", "\0\0en\0\0", "\1\0\0\0"};
    static const size_t head_sizes[TEXT_FORMS] = {0, 1, 6, 4};
    uLongf room = compressBound((uLong)size);
    Bytef *packed = stk_mem_raw(room, 1);
    compress(packed, &room, (const Bytef *)text, (uLong)size);
    bool plain = form == PLAIN || form == PLAIN_UNICODE;
    blob front = join(key, strlen(key) + 1, heads[form], head_sizes[form]);
    blob data =
        join(front.bytes, front.size, plain ? (const void *)text : packed, plain ? size : room);
    blob chunk = make_chunk(names[form], data);
    stk_mem_free(packed);
    free_blob(&front);
    free_blob(&data);
    return chunk;
}

/* As ImageMagick writes it: a head of three lines, then 36 bytes in each line. */
static void write_hex(stk_str *text, const uint8_t *bytes, size_t size) {
    stk_str_appendf(text, "\nexif\n%8zu\n", size);
    for (size_t i = 0; i < size; i++) {
        stk_str_appendf(text, "%02x%s", bytes[i], i % 36 == 35 ? "\n" : "");
    }
    stk_str_appendf(text, "\n");
}

static void png_tells_it_in_texts(void) {
    stk_image scene = quarters(64, 40);
    blob png = make_rgb_png(&scene, PNG_INTERLACE_NONE);
    stk_str hex = {0};
    write_hex(&hex, exif_six, EXIF_BYTES);
    const char *const keys[2] = {"Raw profile type exif", "XML:com.adobe.xmp"};
    const char *const texts[2] = {stk_str_text(&hex), xmp_six};
    size_t places[2] = {33, png.size - 12}; /* behind IHDR, and before IEND */
    CHECK_INT(orientation_of(png), 1);
    for (int form = PLAIN; form < TEXT_FORMS; form++) {
        for (int kind = 0; kind < 2; kind++) {
            for (int place = 0; place < 2; place++) {
                blob chunk = text_chunk(keys[kind], texts[kind], strlen(texts[kind]), form);
                blob tagged = insert(png, places[place], chunk.bytes, chunk.size);
                int told = orientation_of(tagged);
                if (told != 6) {
                    CHECK_FAIL("%s in form %d: orientation %d", keys[kind], form, told);
                }
                free_blob(&tagged);
                free_blob(&chunk);
            }
        }
    }
    stk_str_free(&hex);
    free_blob(&png);
    stk_image_free(&scene);
}

/* eXIf before the text of digits, and both before XMP. */
static void png_tags_have_an_order(void) {
    stk_image scene = quarters(64, 40);
    png_kind kind = {.depth = 8, .colour = PNG_COLOR_TYPE_RGB, .orientation = 3};
    blob plain = make_rgb_png(&scene, PNG_INTERLACE_NONE);
    blob exif = make_png(scene.pixels, 64 * 3, 64, 40, kind);
    stk_str hex = {0};
    write_hex(&hex, exif_six, EXIF_BYTES);
    blob digits = text_chunk("Raw profile type exif", stk_str_text(&hex), hex.length, PACKED);
    static const char words[] = "tiff:Orientation=\"8\"";
    blob xmp = text_chunk("XML:com.adobe.xmp", words, sizeof words - 1, PLAIN_UNICODE);
    blob both = insert(plain, 33, xmp.bytes, xmp.size);
    blob three = insert(both, 33, digits.bytes, digits.size);
    CHECK_INT(orientation_of(both), 8);
    CHECK_INT(orientation_of(three), 6);
    free_blob(&both);
    free_blob(&three);
#ifdef PNG_eXIf_SUPPORTED
    both = insert(exif, 33, xmp.bytes, xmp.size);
    three = insert(both, 33, digits.bytes, digits.size);
    CHECK_INT(orientation_of(three), 3);
    free_blob(&both);
    free_blob(&three);
#endif
    free_blob(&xmp);
    free_blob(&digits);
    free_blob(&exif);
    free_blob(&plain);
    stk_str_free(&hex);
    stk_image_free(&scene);
}

/* Cut, spoilt or endless texts: the picture counts. */
static void damaged_texts_say_nothing(void) {
    stk_image scene = quarters(64, 40);
    blob png = make_rgb_png(&scene, PNG_INTERLACE_NONE);
    size_t endless = (size_t)64 << 20;
    char *zeros = stk_mem_new(endless, 1);
    memset(zeros, '0', endless);
    blob bomb = text_chunk("Raw profile type exif", zeros, endless, PACKED);
    blob tagged = insert(png, 33, bomb.bytes, bomb.size);
    CHECK_INT(orientation_of(tagged), 1);
    free_blob(&tagged);
    free_blob(&bomb);
    stk_mem_free(zeros);
    static const char *const texts[] = {
        "", "\n", "\nexif\n 5\n", "\nexif\n 5\n4", "\nexif\n 5\n4578x", "tiff:Orientation=\"6\""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (int form = PLAIN; form < TEXT_FORMS; form++) {
            blob chunk = text_chunk("Raw profile type exif", texts[i], strlen(texts[i]), form);
            tagged = insert(png, 33, chunk.bytes, chunk.size);
            CHECK_INT(orientation_of(tagged), 1);
            free_blob(&tagged);
            free_blob(&chunk);
        }
    }
    blob empty = make_chunk("zTXt", (blob){(uint8_t *)"XML:com.adobe.xmp", 18});
    tagged = insert(png, 33, empty.bytes, empty.size);
    CHECK_INT(orientation_of(tagged), 1);
    free_blob(&tagged);
    free_blob(&empty);
    free_blob(&png);
    stk_image_free(&scene);
}

/* Without memory for a text the picture is not taken for one that stands upright. */
static void memory_for_texts_may_run_out(void) {
    stk_image scene = quarters(64, 40);
    blob png = make_rgb_png(&scene, PNG_INTERLACE_NONE);
    blob chunk = text_chunk("XML:com.adobe.xmp", xmp_six, sizeof xmp_six - 1, PACKED);
    blob tagged = insert(png, 33, chunk.bytes, chunk.size);
    int failures = 0;
    for (int64_t requests = 0; requests < 10; requests++) {
        stk_error err = {0};
        int orientation = 0;
        stk_mem_fail_after(requests);
        stk_status status =
            stk_image_png_orientation(tagged.bytes, tagged.size, &orientation, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_ERR_MEMORY || orientation == 6);
        failures += status == STK_ERR_MEMORY;
    }
    CHECK(failures > 0 && failures < 10);
    free_blob(&tagged);
    free_blob(&chunk);
    free_blob(&png);
    stk_image_free(&scene);
}

static const check_test tests[] = {
    TEST(xmp_tells_where_exif_does_not), TEST(jpeg_tells_it_in_xmp),
    TEST(webp_tells_it_in_xmp),          TEST(png_tells_it_in_texts),
    TEST(png_tags_have_an_order),        TEST(damaged_texts_say_nothing),
    TEST(memory_for_texts_may_run_out),
};

CHECK_MAIN(tests)
