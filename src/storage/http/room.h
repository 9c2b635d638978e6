/*
 * room.h - inside storage: the memory that the bodies of all requests in flight may take.
 *
 * A request takes what it is expected to bring before it is sent, and more when more comes; it
 * gives all of that back when it has ended. One request alone may take any amount: its own limit
 * bounds it. Threads: safe.
 */
#ifndef STK_STORAGE_HTTP_ROOM_H
#define STK_STORAGE_HTTP_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct stk_http_room {
    atomic_ullong most; /* bytes; 0: no limit */
    atomic_ullong used; /* by requests in flight */
} stk_http_room;

/* Takes bytes for a request that has taken `held` before; false: others have to end first. */
bool stk_http_room_take(stk_http_room *room, uint64_t held, uint64_t bytes);

void stk_http_room_give(stk_http_room *room, uint64_t bytes);

#endif
