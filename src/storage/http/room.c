/* room.c - a sum of bytes and its limit. */
#include "storage/http/room.h"

bool stk_http_room_take(stk_http_room *room, uint64_t held, uint64_t bytes) {
    uint64_t most = atomic_load(&room->most);
    unsigned long long used = atomic_load(&room->used);
    do {
        bool alone = used == held;
        bool fits = used <= most && bytes <= most - used;
        if (most > 0 && !alone && !fits) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&room->used, &used, used + bytes));
    return true;
}

void stk_http_room_give(stk_http_room *room, uint64_t bytes) {
    atomic_fetch_sub(&room->used, bytes);
}
