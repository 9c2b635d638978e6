/* test_storage_s3_xml.c - pages and errors of S3 as stores write them, and as they should not. */
#include "check.h"

#ifdef STK_HAVE_S3

#include "base/error.h"
#include "base/mem.h"
#include "storage/s3/xml.h"

#define HEAD                                       \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" \
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define TAIL "</ListBucketResult>"
#define ENCODED "<EncodingType>url</EncodingType>"

typedef struct found {
    char keys[8][64];
    char etags[8][64];
    uint64_t sizes[8];
    char folders[8][64];
    int objects;
    int folder_count;
    int refuse_after; /* objects; as if there were no memory */
} found;

static bool take_object(void *user, const char *key, size_t length, uint64_t size,
                        const char *etag) {
    found *f = user;
    if (f->objects >= f->refuse_after) {
        return false;
    }
    CHECK_INT(strlen(key), length);
    snprintf(f->keys[f->objects], sizeof f->keys[0], "%s", key);
    snprintf(f->etags[f->objects], sizeof f->etags[0], "%s", etag);
    f->sizes[f->objects++] = size;
    return true;
}

static bool take_folder(void *user, const char *prefix, size_t length) {
    found *f = user;
    CHECK_INT(strlen(prefix), length);
    snprintf(f->folders[f->folder_count++], sizeof f->folders[0], "%s", prefix);
    return true;
}

static stk_status parse(const char *text, found *f, stk_s3_page *page, stk_error *err) {
    *f = (found){.refuse_after = 8};
    *page = (stk_s3_page){.object = take_object, .folder = take_folder, .user = f};
    return stk_s3_page_parse(text, strlen(text), page, err);
}

static void a_page(void) {
    stk_error err = {0};
    stk_s3_page page;
    found f;
    REQUIRE_OK(parse(HEAD
                     "<Name>b</Name><Prefix>train/</Prefix><KeyCount>3</KeyCount>" ENCODED
                     "<IsTruncated>true</IsTruncated>"
                     "<NextContinuationToken>1ueGcx/+=&amp;x</NextContinuationToken>"
                     "<Contents><Key>train/a+b%2B%25.jpg</Key><LastModified>2026</LastModified>"
                     "<ETag>&quot;9e107d9d372bb6826bd81d3542a419d6&quot;</ETag>"
                     "<Size>48213</Size><StorageClass>STANDARD</StorageClass>"
                     "<Owner><ID>Key</ID><DisplayName>x</DisplayName></Owner></Contents>"
                     "<Contents><Size>0</Size><Key>train/%E6%97%A5%0a.jpg</Key></Contents>"
                     "<CommonPrefixes><Prefix>train/c%20at/</Prefix></CommonPrefixes>"
                     "<CommonPrefixes><Prefix>train/d/</Prefix></CommonPrefixes>" TAIL,
                     &f, &page, &err),
               &err);
    CHECK_INT(f.objects, 2);
    CHECK_STR(f.keys[0], "train/a b+%.jpg");
    CHECK_STR(f.etags[0], "9e107d9d372bb6826bd81d3542a419d6");
    CHECK_INT(f.sizes[0], 48213);
    CHECK_STR(f.keys[1], "train/\xE6\x97\xA5\n.jpg");
    CHECK_STR(f.etags[1], "");
    CHECK_INT(f.sizes[1], 0);
    CHECK_INT(f.folder_count, 2);
    CHECK_STR(f.folders[0], "train/c at/");
    CHECK_STR(f.folders[1], "train/d/");
    CHECK(page.truncated);
    CHECK_STR(stk_str_text(&page.token), "1ueGcx/+=&x");
    stk_str_free(&page.token);
}

/* Stores that do not encode say so by saying nothing; others say it at the end. */
static void encoding_is_what_the_store_says(void) {
    stk_error err = {0};
    stk_s3_page page;
    found f;
    static const char keys[] =
        "<Contents><Key>a+b%20c &amp; &lt;d&gt;</Key><Size>1</Size></Contents>";
    char text[512];
    snprintf(text, sizeof text, HEAD "%s" TAIL, keys);
    REQUIRE_OK(parse(text, &f, &page, &err), &err);
    CHECK_STR(f.keys[0], "a+b%20c & <d>");
    CHECK(!page.truncated);
    snprintf(text, sizeof text, HEAD "%s" ENCODED TAIL, keys);
    REQUIRE_OK(parse(text, &f, &page, &err), &err);
    CHECK_STR(f.keys[0], "a b c & <d>");
    snprintf(text, sizeof text,
             HEAD ENCODED "<Contents><Key>%s</Key><Size>1</Size></Contents>" TAIL, "50%-%4-%zz%");
    REQUIRE_OK(parse(text, &f, &page, &err), &err);
    CHECK_STR(f.keys[0], "50%-%4-%zz%");
    stk_str_free(&page.token);
}

static void an_empty_page(void) {
    stk_error err = {0};
    stk_s3_page page;
    found f;
    REQUIRE_OK(parse(HEAD "<IsTruncated>false</IsTruncated>" TAIL, &f, &page, &err), &err);
    CHECK_INT(f.objects, 0);
    CHECK(!page.truncated);
    REQUIRE_OK(parse("<x:ListBucketResult xmlns:x=\"y\"><x:Contents><x:Key>k</x:Key>"
                     "<x:Size>2</x:Size></x:Contents></x:ListBucketResult>",
                     &f, &page, &err),
               &err);
    CHECK_STR(f.keys[0], "k");
    CHECK_INT(f.sizes[0], 2);
}

static void what_is_no_page_is_refused(void) {
    static const struct {
        const char *text;
        const char *why;
    } bad[] = {
        {"", "broken or cut off"},
        {"<html><body>Welcome</body></html>", "no listing"},
        {"{\"json\": true}", "broken"},
        {HEAD "<Contents><Key>k</Key>", "cut off"},
        {HEAD "<Contents><Key>k</Key><Size>-1</Size></Contents>" TAIL, "without a size"},
        {HEAD "<Contents><Key>k</Key><Size>many</Size></Contents>" TAIL, "without a size"},
        {HEAD "<IsTruncated>true</IsTruncated>" TAIL, "does not say which"},
        {"<!DOCTYPE x [<!ENTITY a \"aaaa\">]><ListBucketResult>&a;</ListBucketResult>",
         "document type"},
        {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "too deeply"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_error err = {0};
        stk_s3_page page;
        found f;
        CHECK_INT(parse(bad[i].text, &f, &page, &err), STK_ERR_STORAGE);
        CHECK_CONTAINS(err.message, bad[i].why);
        stk_str_free(&page.token);
    }
}

static void overlong_text_is_refused(void) {
    stk_error err = {0};
    stk_s3_page page;
    found f;
    stk_str text = {0};
    stk_str_append(&text, HEAD "<Contents><Key>");
    for (int i = 0; i < 20000; i++) {
        stk_str_append(&text, "k");
    }
    stk_str_append(&text, "</Key></Contents>" TAIL);
    CHECK_INT(parse(stk_str_text(&text), &f, &page, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "overlong");
    stk_str_free(&text);
}

static void lack_of_memory_is_told(void) {
    static const char text[] =
        HEAD ENCODED "<IsTruncated>true</IsTruncated>"
                     "<NextContinuationToken>t</NextContinuationToken>"
                     "<Contents><Key>k</Key><ETag>\"e\"</ETag><Size>2</Size></Contents>" TAIL;
    stk_s3_page page = {.object = take_object, .folder = take_folder};
    stk_error err = {0};
    found f = {.refuse_after = 0};
    page.user = &f;
    CHECK_INT(stk_s3_page_parse(text, sizeof text - 1, &page, &err), STK_ERR_MEMORY);
    f.refuse_after = 8;
    stk_status status = STK_ERR_MEMORY;
    for (int64_t n = 0; status == STK_ERR_MEMORY && n < 100; n++) {
        stk_error why = {0};
        f.objects = 0;
        stk_str_free(&page.token);
        stk_mem_fail_after(n);
        status = stk_s3_page_parse(text, sizeof text - 1, &page, &why);
        stk_mem_fail_after(-1);
    }
    CHECK_INT(status, STK_OK);
    stk_str_free(&page.token);
}

static void complaints(void) {
    static const char text[] =
        "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>line\n"
        "two &lt;b&gt;</Message><StringToSign>AWS4-secret</StringToSign>"
        "<Region>eu-west-1</Region></Error>";
    stk_s3_error_body c;
    stk_s3_error_body_parse(text, sizeof text - 1, &c);
    CHECK_STR(c.code, "SignatureDoesNotMatch");
    CHECK_STR(c.message, "line two <b>");
    CHECK_STR(c.region, "eu-west-1");
    stk_s3_error_body_parse(text, 75, &c); /* cut off: what came counts */
    CHECK_STR(c.code, "SignatureDoesNotMatch");
    CHECK_STR(c.message, "");
    static const char html[] = "<html><head><title>403</title></head><p>no</html>";
    stk_s3_error_body_parse(html, sizeof html - 1, &c);
    CHECK_STR(c.code, "");
    stk_s3_error_body_parse("", 0, &c);
    CHECK_STR(c.code, "");
    stk_str endless = {0};
    stk_str_append(&endless, "<Error><Code>X</Code><Message>");
    for (int i = 0; i < 1000; i++) {
        stk_str_append(&endless, "\x01\x7f blah");
    }
    stk_str_append(&endless, "</Message></Error>");
    stk_s3_error_body_parse(stk_str_text(&endless), endless.length, &c);
    CHECK_STR(c.code, "X");
    CHECK(strlen(c.message) < sizeof c.message);
    stk_str_free(&endless);
}

static const check_test tests[] = {
    TEST(a_page),
    TEST(encoding_is_what_the_store_says),
    TEST(an_empty_page),
    TEST(what_is_no_page_is_refused),
    TEST(overlong_text_is_refused),
    TEST(lack_of_memory_is_told),
    TEST(complaints),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
