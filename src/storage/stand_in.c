/* stand_in.c - links until the parts that are being written are there; goes before anything lands.
 */
#include "storage/store.h"
#define WEAK __attribute__((weak))
WEAK stk_status stk_cache_open(stk_cache **c, const stk_cache_config *g, stk_error *e) {
    (void)c;
    (void)g;
    (void)e;
    return STK_OK;
}
WEAK void stk_cache_close(stk_cache *c) {
    (void)c;
}
WEAK bool stk_cache_has(stk_cache *c, stk_cache_key k) {
    (void)c;
    (void)k;
    return false;
}
WEAK bool stk_cache_read(stk_cache *c, stk_cache_key k, stk_bytes *b) {
    (void)c;
    (void)k;
    (void)b;
    return false;
}
WEAK void stk_cache_put(stk_cache *c, stk_cache_key k, const void *d, size_t s) {
    (void)c;
    (void)k;
    (void)d;
    (void)s;
}
WEAK void stk_cache_stats(stk_cache *c, stk_cache_counters *n) {
    (void)c;
    *n = (stk_cache_counters){0};
}
WEAK bool stk_cache_take_notice(stk_cache *c, char *b, size_t s) {
    (void)c;
    (void)b;
    (void)s;
    return false;
}
WEAK stk_cache_key stk_cache_key_make(const char *const *p, size_t n) {
    (void)p;
    (void)n;
    return (stk_cache_key){0};
}
#ifdef STK_HAVE_S3
static bool never(const char *root) {
    (void)root;
    return false;
}
WEAK const stk_storage_source stk_storage_s3 = {.name = "s3", .matches = never};
#endif
