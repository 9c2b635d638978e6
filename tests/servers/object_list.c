/*
 * object_list.c - see the header.
 *
 * A continuation token says behind what the next page begins: `k` and a key, or `p` and a common
 * prefix, whose keys are all passed over; both in hexadecimal, so that no client finds a meaning in
 * it.
 */
#include "object_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request for a page; the strings are owned and never NULL. */
typedef struct list_query {
    char *prefix, *delimiter, *start_after, *token;
    bool is_url; /* keys are to be percent-encoded */
    int max_keys;
} list_query;

/* A page as it is made. */
typedef struct list_page {
    os_text contents;
    os_text prefixes;
    int count;
    os_text token; /* of the next page; empty: this is the last */
} list_page;

static char *value_or_empty(const char *query, const char *name) {
    char *value = os_query_value(query, name);
    return value != NULL ? value : os_copy("");
}

static void free_query(list_query *query) {
    free(query->prefix);
    free(query->delimiter);
    free(query->start_after);
    free(query->token);
}

/* False when max-keys is not a number; the query must be freed in any case. */
static bool read_query(const char *text, int page, list_query *query) {
    *query = (list_query){.prefix = value_or_empty(text, "prefix"),
                          .delimiter = value_or_empty(text, "delimiter"),
                          .start_after = value_or_empty(text, "start-after"),
                          .token = value_or_empty(text, "continuation-token"),
                          .max_keys = page};
    char *encoding = value_or_empty(text, "encoding-type");
    query->is_url = strcmp(encoding, "url") == 0;
    free(encoding);
    char *most = os_query_value(text, "max-keys");
    bool good = true;
    if (most != NULL) {
        char *end;
        long wanted = strtol(most, &end, 10);
        good = *most != '\0' && *end == '\0' && wanted >= 0;
        query->max_keys = wanted < page ? (int)wanted : page;
    }
    free(most);
    return good;
}

/* The index of the first key behind `text`, or, with `all`, behind all that begin with it. */
static size_t first_behind(const os_keys *keys, const char *text, bool all) {
    size_t size = strlen(text);
    size_t low = 0, high = keys->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *key = keys->keys[middle];
        if ((all ? strncmp(key, text, size) : strcmp(key, text)) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Where a page begins; false for a token that no page of ours had. */
static bool find_start(const os_keys *keys, const list_query *query, size_t *start) {
    const char *token = query->token;
    if (token[0] == '\0') {
        *start = query->start_after[0] != '\0' ? first_behind(keys, query->start_after, false) : 0;
        return true;
    }
    os_text behind = {0};
    for (const char *digits = token + 1; digits[0] != '\0' && digits[1] != '\0'; digits += 2) {
        os_text_addf(&behind, "%%%.2s", digits);
    }
    bool good = (token[0] == 'k' || token[0] == 'p') && strlen(token) % 2 == 1 && behind.size > 0 &&
                os_percent_decode(behind.bytes);
    if (good) {
        *start = first_behind(keys, behind.bytes, token[0] == 'p');
    }
    os_text_free(&behind);
    return good;
}

static void add_name(os_text *text, const char *element, const char *name, bool is_url) {
    os_text_addf(text, "<%s>", element);
    if (is_url) {
        os_text_add_url(text, name);
    } else {
        os_text_add_xml(text, name);
    }
    os_text_addf(text, "</%s>", element);
}

static void add_object(os_text *text, const char *key, const os_object *object, bool is_url) {
    char date[40];
    os_xml_date(object->modified, date);
    os_text_addf(text, "<Contents>");
    add_name(text, "Key", key, is_url);
    os_text_addf(text,
                 "<LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag><Size>%llu</Size>"
                 "<StorageClass>STANDARD</StorageClass></Contents>",
                 date, object->etag, (unsigned long long)object->size);
}

static void set_token(os_text *token, char kind, const char *name) {
    token->size = 0;
    os_text_add(token, &kind, 1);
    for (; *name != '\0'; name++) {
        os_text_addf(token, "%02x", (unsigned char)*name);
    }
}

static void fill_page(os_store *store, os_bucket *bucket, const list_query *query, size_t at,
                      list_page *page) {
    const os_keys *keys = os_store_keys(store, bucket);
    size_t prefix_size = strlen(query->prefix);
    size_t delimiter_size = strlen(query->delimiter);
    size_t first = prefix_size > 0 ? first_behind(keys, query->prefix, false) : 0;
    /* An object may have the prefix itself as its key. */
    first -= first > 0 && strcmp(keys->keys[first - 1], query->prefix) == 0;
    at = at > first ? at : first;
    os_text last = {0};
    while (at < keys->count && strncmp(keys->keys[at], query->prefix, prefix_size) == 0) {
        const char *key = keys->keys[at];
        if (page->count == query->max_keys) {
            os_text_add(&page->token, last.bytes, last.size);
            break;
        }
        const char *end = delimiter_size > 0 ? strstr(key + prefix_size, query->delimiter) : NULL;
        if (end != NULL) {
            os_text common = {0};
            os_text_add(&common, key, (size_t)(end - key) + delimiter_size);
            os_text_addf(&page->prefixes, "<CommonPrefixes>");
            add_name(&page->prefixes, "Prefix", common.bytes, query->is_url);
            os_text_addf(&page->prefixes, "</CommonPrefixes>");
            set_token(&last, 'p', common.bytes);
            at = first_behind(keys, common.bytes, true);
            os_text_free(&common);
            page->count++;
            continue;
        }
        os_object object;
        if (os_store_find(store, bucket, key, false, &object)) {
            add_object(&page->contents, key, &object, query->is_url);
            set_token(&last, 'k', key);
            page->count++;
        }
        at++;
    }
    os_text_free(&last);
}

static void write_page(const list_query *query, const os_bucket *bucket, const list_page *page,
                       os_text *body) {
    os_text_addf(body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
                       "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>");
    os_text_add_xml(body, bucket->name);
    os_text_addf(body, "</Name>");
    add_name(body, "Prefix", query->prefix, query->is_url);
    if (query->delimiter[0] != '\0') {
        add_name(body, "Delimiter", query->delimiter, query->is_url);
    }
    if (query->start_after[0] != '\0') {
        add_name(body, "StartAfter", query->start_after, query->is_url);
    }
    if (query->token[0] != '\0') {
        add_name(body, "ContinuationToken", query->token, false);
    }
    if (page->token.size > 0) {
        add_name(body, "NextContinuationToken", page->token.bytes, false);
    }
    os_text_addf(
        body, "<KeyCount>%d</KeyCount><MaxKeys>%d</MaxKeys>%s<IsTruncated>%s</IsTruncated>",
        page->count, query->max_keys, query->is_url ? "<EncodingType>url</EncodingType>" : "",
        page->token.size > 0 ? "true" : "false");
    os_text_add(body, page->contents.bytes, page->contents.size);
    os_text_add(body, page->prefixes.bytes, page->prefixes.size);
    os_text_addf(body, "</ListBucketResult>");
}

void os_answer_list(os_server *server, const os_request *request, os_bucket *bucket,
                    os_answer *answer) {
    list_query query;
    list_page page = {0};
    size_t start = 0;
    if (!read_query(request->query, server->page, &query) ||
        !find_start(os_store_keys(&server->store, bucket), &query, &start)) {
        os_answer_error(answer, request, "InvalidArgument", NULL);
    } else {
        fill_page(&server->store, bucket, &query, start, &page);
        write_page(&query, bucket, &page, &answer->body);
        os_answer_text(answer, request, 200, "application/xml");
    }
    os_text_free(&page.contents);
    os_text_free(&page.prefixes);
    os_text_free(&page.token);
    free_query(&query);
}
