/*
 * xml.c - turns expat's callbacks into objects, folders and errors.
 *
 * XML namespaces are ignored: stores differ in them.
 */
#include "storage/s3/xml.h"

#ifdef STK_HAVE_S3

#include <expat.h>
#include <string.h>

#include "base/error.h"

/* S3's XML is shallow; deeper XML is not from S3. */
#define DEPTH_MAX 16

/* Most bytes of one text. A key has 1,024 bytes, three times that when encoded. */
#define TEXT_MAX ((size_t)16 * 1024)

/* The elements whose text is used. */
typedef enum xml_field {
    NOTHING,
    KEY,
    SIZE,
    ETAG,
    PREFIX,
    TRUNCATED,
    TOKEN,
    CODE,
    MESSAGE,
    REGION
} xml_field;

typedef struct xml_reader {
    XML_Parser parser;
    stk_s3_page *page;        /* NULL: an error is read */
    stk_s3_error_body *error; /* NULL: a page is read */
    const char *trouble;      /* why parsing was stopped, part of a sentence; NULL: it was not */
    bool no_memory;
    int depth;
    bool in_contents;
    bool in_prefixes;
    bool is_page;  /* the outermost element was that of a listing */
    bool encoded;  /* keys are percent-encoded */
    xml_field now; /* the element that is read now */
    stk_str text;  /* of the element that is read now */
    stk_str key;
    stk_str etag;
    uint64_t size;
} xml_reader;

static void stop(xml_reader *r, const char *trouble) {
    if (r->trouble == NULL) {
        r->trouble = trouble;
        (void)XML_StopParser(r->parser, XML_FALSE);
    }
}

static void stop_memory(xml_reader *r) {
    r->no_memory = true;
    stop(r, "");
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes percent-encoding in place, with + for a blank. Returns the new length. */
static size_t decode(char *text, size_t length) {
    size_t out = 0;
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low >= 0) {
            text[out++] = (char)(high * 16 + low);
            i += 2;
        } else {
            text[out++] = text[i] == '+' ? ' ' : text[i];
        }
    }
    text[out] = '\0';
    return out;
}

/* Stores an ETag without its quotes. */
static void keep_etag(xml_reader *r) {
    const char *text = stk_str_text(&r->text);
    size_t length = r->text.length;
    if (length >= 2 && text[0] == '"' && text[length - 1] == '"') {
        text++;
        length -= 2;
    }
    stk_str_clear(&r->etag);
    stk_str_append_bytes(&r->etag, text, length);
}

static void keep_size(xml_reader *r) {
    int64_t size;
    if (!stk_parse_int(stk_str_text(&r->text), &size) || size < 0) {
        stop(r, "an object without a size");
        return;
    }
    r->size = (uint64_t)size;
}

/* Copies printable bytes only: the text may be shown in a terminal. */
static void keep_plain(const xml_reader *r, char *out, size_t room) {
    size_t length = r->text.length < room ? r->text.length : room - 1;
    for (size_t i = 0; i < length; i++) {
        char c = r->text.text[i];
        out[i] = (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
    }
    out[length] = '\0';
}

static xml_field field_in_page(const xml_reader *r, const char *name) {
    if (r->depth == 3 && r->in_contents) {
        return strcmp(name, "Key") == 0    ? KEY
               : strcmp(name, "Size") == 0 ? SIZE
               : strcmp(name, "ETag") == 0 ? ETAG
                                           : NOTHING;
    }
    if (r->depth == 3 && r->in_prefixes) {
        return strcmp(name, "Prefix") == 0 ? PREFIX : NOTHING;
    }
    if (r->depth != 2) {
        return NOTHING;
    }
    return strcmp(name, "IsTruncated") == 0             ? TRUNCATED
           : strcmp(name, "NextContinuationToken") == 0 ? TOKEN
                                                        : NOTHING;
}

/* At any depth: some stores put the error into an outer element. */
static xml_field field_in_error(const char *name) {
    return strcmp(name, "Code") == 0      ? CODE
           : strcmp(name, "Message") == 0 ? MESSAGE
           : strcmp(name, "Region") == 0  ? REGION
                                          : NOTHING;
}

static void XMLCALL begin_element(void *user, const XML_Char *name, const XML_Char **attributes) {
    xml_reader *r = user;
    (void)attributes;
    const char *colon = strchr(name, ':');
    const char *bare = colon != NULL ? colon + 1 : name;
    if (++r->depth > DEPTH_MAX) {
        stop(r, "XML that is nested too deeply");
        return;
    }
    if (r->depth == 1) {
        r->is_page = strcmp(bare, "ListBucketResult") == 0;
    } else if (r->depth == 2) {
        r->in_contents = strcmp(bare, "Contents") == 0;
        r->in_prefixes = strcmp(bare, "CommonPrefixes") == 0;
        if (r->in_contents) {
            stk_str_clear(&r->key);
            stk_str_clear(&r->etag);
            r->size = 0;
        }
    }
    r->now = r->error != NULL ? field_in_error(bare) : field_in_page(r, bare);
    stk_str_clear(&r->text);
}

static void XMLCALL take_text(void *user, const XML_Char *text, int length) {
    xml_reader *r = user;
    if (r->now == NOTHING) {
        return;
    }
    if (r->text.length + (size_t)length > TEXT_MAX) {
        stop(r, "an overlong text");
        return;
    }
    stk_str_append_bytes(&r->text, text, (size_t)length);
    if (!stk_str_ok(&r->text)) {
        stop_memory(r);
    }
}

static void end_text(xml_reader *r) {
    switch (r->now) {
    case KEY:
    case PREFIX:
        stk_str_clear(&r->key);
        stk_str_append_bytes(&r->key, stk_str_text(&r->text), r->text.length);
        break;
    case SIZE:
        keep_size(r);
        break;
    case ETAG:
        keep_etag(r);
        break;
    case TRUNCATED:
        r->page->truncated = strcmp(stk_str_text(&r->text), "true") == 0;
        break;
    case TOKEN:
        stk_str_clear(&r->page->token);
        stk_str_append_bytes(&r->page->token, stk_str_text(&r->text), r->text.length);
        break;
    case CODE:
        keep_plain(r, r->error->code, sizeof r->error->code);
        break;
    case MESSAGE:
        keep_plain(r, r->error->message, sizeof r->error->message);
        break;
    case REGION:
        keep_plain(r, r->error->region, sizeof r->error->region);
        break;
    case NOTHING:
        break;
    }
    r->now = NOTHING;
}

static void XMLCALL end_element(void *user, const XML_Char *name) {
    xml_reader *r = user;
    (void)name;
    end_text(r);
    bool whole = r->page != NULL && r->is_page && r->depth == 2;
    r->depth--;
    if (r->trouble != NULL || !whole || (!r->in_contents && !r->in_prefixes)) {
        return;
    }
    if (!stk_str_ok(&r->key) || !stk_str_ok(&r->etag)) {
        stop_memory(r);
        return;
    }
    size_t length = r->key.length;
    if (r->encoded && length > 0) {
        length = decode(r->key.text, length);
    }
    const char *key = stk_str_text(&r->key);
    bool good = r->in_contents
                    ? r->page->object(r->page->user, key, length, r->size, stk_str_text(&r->etag))
                    : r->page->folder(r->page->user, key, length);
    if (!good) {
        stop_memory(r);
    }
    r->in_contents = false;
    r->in_prefixes = false;
}

static void XMLCALL refuse_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                                   const XML_Char *public_id, int internal) {
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)internal;
    stop(user, "XML with a document type");
}

/* Parses everything; false on any trouble. */
static bool read_all(xml_reader *r, const void *data, size_t size) {
    r->parser = XML_ParserCreate(NULL);
    if (r->parser == NULL) {
        r->no_memory = true;
        return false;
    }
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(r->parser, take_text);
    XML_SetStartDoctypeDeclHandler(r->parser, refuse_doctype);
    bool good =
        size <= INT32_MAX && XML_Parse(r->parser, data, (int)size, XML_TRUE) == XML_STATUS_OK;
    if (!good && r->trouble == NULL) {
        enum XML_Error code = XML_GetErrorCode(r->parser);
        r->no_memory = code == XML_ERROR_NO_MEMORY;
        r->trouble = "XML that is broken or cut off";
    }
    XML_ParserFree(r->parser);
    stk_str_free(&r->text);
    stk_str_free(&r->key);
    stk_str_free(&r->etag);
    return good && !r->no_memory;
}

stk_status stk_s3_page_parse(const void *data, size_t size, stk_s3_page *page, stk_error *err) {
    /* Some stores send this element after the keys. A key cannot contain it: "<" is escaped. */
    static const char said[] = "<EncodingType>url</EncodingType>";
    page->truncated = false;
    stk_str_clear(&page->token);
    xml_reader r = {.page = page,
                    .encoded = size > 0 && memmem(data, size, said, sizeof said - 1) != NULL};
    bool good = read_all(&r, data, size);
    if (r.no_memory || !stk_str_ok(&page->token)) {
        return STK_FAIL_MEMORY(err, "a page of the listing");
    }
    if (good && !r.is_page) {
        good = false;
        r.trouble = "something that is no listing of S3's";
    }
    if (good && page->truncated && page->token.length == 0) {
        good = false;
        r.trouble = "a page that has a next one and does not say which";
    }
    return good ? STK_OK : STK_FAIL(err, STK_ERR_STORAGE, "%s", r.trouble);
}

void stk_s3_error_body_parse(const void *data, size_t size, stk_s3_error_body *error) {
    memset(error, 0, sizeof *error);
    xml_reader r = {.error = error};
    (void)read_all(&r, data, size); /* on trouble, the fields that were read before it are kept */
}

#endif
