/* path.c - paths as text. */
#include "base/files/path.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define NAME_BYTES_MOST 200

/* Called for every file that is read, so it avoids the cost of printf. */
char *stk_path_join(const char *a, const char *b) {
    size_t head = b[0] == '/' ? 0 : strlen(a);
    size_t tail = strlen(b);
    bool slash = head > 0 && a[head - 1] != '/';
    char *path = stk_mem_raw(head + slash + tail + 1, 1);
    if (path != NULL) {
        memcpy(path, a, head);
        path[head] = '/';
        memcpy(path + head + slash, b, tail + 1);
    }
    return path;
}

char *stk_path_trim(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    return stk_mem_strndup(path, length);
}

const char *stk_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool stk_path_is_name(const char *text) {
    size_t length = strlen(text);
    bool good = length > 0 && length <= NAME_BYTES_MOST && text[0] != '.';
    for (size_t i = 0; good && i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        good = c >= 0x20 && c != 0x7F && c != '/' && c != '\\';
    }
    return good;
}

char *stk_path_user_cache(void) {
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (xdg != NULL && xdg[0] == '/') {
        return stk_path_join(xdg, "stoker");
    }
    return home != NULL && home[0] == '/' ? stk_str_format("%s/.cache/stoker", home) : NULL;
}
