/* member_path.c - makes paths of members harmless. */
#include "storage/tar/member_path.h"

#include <string.h>

bool stk_member_path_clean(const char *raw, stk_str *path) {
    stk_str_clear(path);
    for (const char *part = raw; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length == 2 && memcmp(part, "..", 2) == 0) {
            return false;
        }
        if (length > 0 && !(length == 1 && part[0] == '.')) {
            stk_str_append(path, path->length > 0 ? "/" : "");
            stk_str_append_bytes(path, part, length);
        }
        part += length + (part[length] == '/' ? 1 : 0);
    }
    return path->length > 0;
}

bool stk_member_path_is_hidden(const char *path) {
    return path[0] == '.' || strstr(path, "/.") != NULL;
}
