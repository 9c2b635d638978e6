/*
 * test_base_digest.c - SHA-256, HMAC and MD5 against published vectors and, for all lengths around
 * the borders of blocks, against digests that Python's hashlib made.
 */
#include "check.h"

#include <stdint.h>

#include "base/numbers/digest.h"

#define LENGTHS 301 /* 0 to 300 bytes: five blocks */
#define MILLION 1000000

static uint8_t pattern[LENGTHS];

static void fill_pattern(void) {
    for (size_t i = 0; i < LENGTHS; i++) {
        pattern[i] = (uint8_t)(i * 37 + 11);
    }
}

static const char *sha256_text(const void *data, size_t size) {
    static char text[STK_SHA256_TEXT];
    uint8_t digest[STK_SHA256_BYTES];
    stk_sha256_of(data, size, digest);
    return stk_hex(digest, sizeof digest, text);
}

static const char *md5_text(const void *data, size_t size) {
    static char text[STK_MD5_TEXT];
    uint8_t digest[STK_MD5_BYTES];
    stk_md5_of(data, size, digest);
    return stk_hex(digest, sizeof digest, text);
}

static void hex_is_lower_case_and_ends(void) {
    const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    char text[] = "????????????";
    CHECK_STR(stk_hex(bytes, sizeof bytes, text), "000fa5ff");
    CHECK_STR(text + 9, "???");
    CHECK_STR(stk_hex(NULL, 0, text), "");
}

/* FIPS 180-4's examples. */
static void sha256_of_the_standard(void) {
    static const struct {
        const char *text;
        const char *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK_STR(sha256_text(known[i].text, strlen(known[i].text)), known[i].digest);
    }
}

/* RFC 1321's test suite. */
static void md5_of_the_standard(void) {
    static const struct {
        const char *text;
        const char *digest;
    } known[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK_STR(md5_text(known[i].text, strlen(known[i].text)), known[i].digest);
    }
}

/* RFC 4231's test cases 1 to 4, 6 and 7; case 5 is one of a cut digest. */
static void hmac_of_the_standard(void) {
    static const struct {
        char key_byte; /* repeated; 0: the key is in text */
        size_t key_size;
        const char *key;
        char data_byte;
        size_t data_size;
        const char *data;
        const char *digest;
    } known[] = {
        {0x0b, 20, NULL, 0, 8, "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0, 4, "Jefe", 0, 28, "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {(char)0xaa, 20, NULL, (char)0xdd, 50, NULL,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {0, 25, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31", (char)0xcd,
         50, NULL, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {(char)0xaa, 131, NULL, 0, 54, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {(char)0xaa, 131, NULL, 0, 152,
         "This is a test using a larger than block-size key and a larger than block-size data. The "
         "key needs to be hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char key[160];
        char data[160];
        uint8_t digest[STK_SHA256_BYTES];
        char text[STK_SHA256_TEXT];
        memset(key, known[i].key_byte, sizeof key);
        memset(data, known[i].data_byte, sizeof data);
        stk_hmac_sha256(known[i].key != NULL ? known[i].key : key, known[i].key_size,
                        known[i].data != NULL ? known[i].data : data, known[i].data_size, digest);
        CHECK_STR(stk_hex(digest, sizeof digest, text), known[i].digest);
    }
}

/* The digest of the digests of all lengths: one text stands for 301 of them. */
static void every_length_around_the_borders(void) {
    uint8_t digest[STK_SHA256_BYTES];
    char text[STK_SHA256_TEXT];
    stk_sha256 sha256s;
    stk_md5 md5s;
    fill_pattern();
    stk_sha256_begin(&sha256s);
    stk_md5_begin(&md5s);
    for (size_t length = 0; length < LENGTHS; length++) {
        stk_sha256_of(pattern, length, digest);
        stk_sha256_add(&sha256s, digest, STK_SHA256_BYTES);
        stk_md5_of(pattern, length, digest);
        stk_md5_add(&md5s, digest, STK_MD5_BYTES);
    }
    stk_sha256_end(&sha256s, digest);
    CHECK_STR(stk_hex(digest, STK_SHA256_BYTES, text),
              "04fb0a96a55968fbda07295fecba14af486380896cc1d6946aa2da7478e5d0ba");
    stk_md5_end(&md5s, digest);
    CHECK_STR(stk_hex(digest, STK_MD5_BYTES, text), "9df7754bce71307d33204bbdd780672a");
    stk_sha256_begin(&sha256s);
    for (size_t length = 0; length <= 200; length++) {
        stk_hmac_sha256(pattern, length, pattern, 300 - length, digest);
        stk_sha256_add(&sha256s, digest, STK_SHA256_BYTES);
    }
    stk_sha256_end(&sha256s, digest);
    CHECK_STR(stk_hex(digest, STK_SHA256_BYTES, text),
              "105d93ccbc6c1f24c108bcdc2b1087b91e388430d7eff896814d1351c1410472");
}

/* Pieces of every size up to two blocks and a bit, nothing now and then, at odd addresses. */
static void pieces_are_the_whole(void) {
    fill_pattern();
    for (size_t piece = 1; piece < 140; piece++) {
        uint8_t whole[STK_SHA256_BYTES];
        uint8_t digest[STK_SHA256_BYTES];
        stk_sha256 sha256;
        stk_md5 md5;
        stk_sha256_begin(&sha256);
        stk_md5_begin(&md5);
        for (size_t at = 1; at < LENGTHS; at += piece) {
            size_t size = LENGTHS - at < piece ? LENGTHS - at : piece;
            stk_sha256_add(&sha256, pattern + at, size);
            stk_sha256_add(&sha256, NULL, 0);
            stk_md5_add(&md5, pattern + at, size);
            stk_md5_add(&md5, NULL, 0);
        }
        stk_sha256_end(&sha256, digest);
        stk_sha256_of(pattern + 1, LENGTHS - 1, whole);
        CHECK(memcmp(digest, whole, STK_SHA256_BYTES) == 0);
        stk_md5_end(&md5, digest);
        stk_md5_of(pattern + 1, LENGTHS - 1, whole);
        CHECK(memcmp(digest, whole, STK_MD5_BYTES) == 0);
    }
}

/* The long message of both standards, in pieces that grow and fall back. */
static void a_million_letters(void) {
    uint8_t letters[997];
    uint8_t digest[STK_SHA256_BYTES];
    char text[STK_SHA256_TEXT];
    stk_sha256 sha256;
    stk_md5 md5;
    memset(letters, 'a', sizeof letters);
    stk_sha256_begin(&sha256);
    stk_md5_begin(&md5);
    size_t size = 0;
    for (size_t left = MILLION; left > 0; left -= size) {
        size = (size * 7 + 13) % sizeof letters + 1;
        size = size < left ? size : left;
        stk_sha256_add(&sha256, letters, size);
        stk_md5_add(&md5, letters, size);
    }
    stk_sha256_end(&sha256, digest);
    CHECK_STR(stk_hex(digest, STK_SHA256_BYTES, text),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    stk_md5_end(&md5, digest);
    CHECK_STR(stk_hex(digest, STK_MD5_BYTES, text), "7707d6ae4e027c70eea2a935c2296f21");
}

/* A chain of keys, as signing makes one, writes each digest over the key before. */
static void a_digest_may_replace_its_key(void) {
    uint8_t apart[STK_SHA256_BYTES];
    uint8_t chain[STK_SHA256_BYTES];
    uint8_t data[STK_SHA256_BYTES];
    stk_sha256_of("key", 3, chain);
    stk_sha256_of("data", 4, data);
    stk_hmac_sha256(chain, sizeof chain, data, sizeof data, apart);
    stk_hmac_sha256(chain, sizeof chain, data, sizeof data, chain);
    CHECK(memcmp(apart, chain, sizeof apart) == 0);
    stk_sha256_of("key", 3, chain);
    stk_hmac_sha256(chain, sizeof chain, data, sizeof data, data);
    CHECK(memcmp(apart, data, sizeof apart) == 0);
}

static const check_test tests[] = {
    TEST(hex_is_lower_case_and_ends),
    TEST(sha256_of_the_standard),
    TEST(md5_of_the_standard),
    TEST(hmac_of_the_standard),
    TEST(every_length_around_the_borders),
    TEST(pieces_are_the_whole),
    TEST(a_million_letters),
    TEST(a_digest_may_replace_its_key),
};
CHECK_MAIN(tests)
