/*
 * learn.h - inside storage: finds out where all members of a place's shards are.
 */
#ifndef STK_STORAGE_SHARDS_LEARN_H
#define STK_STORAGE_SHARDS_LEARN_H

#include "storage/shards/index.h"
#include "storage/shards/place.h"

typedef struct stk_shard_facts {
    stk_shard_index index;
    size_t staged; /* so many members, the first ones, are shown by the path that they have */
    char *
        *versions; /* owned: for each shard of the index what changes when it does; NULL: unused */
} stk_shard_facts; /* starts zeroed */

void stk_shard_facts_free(stk_shard_facts *facts);

/* As stk_shards_open(); the place was listed before. */
STK_CHECKED stk_status stk_shard_learn(stk_store *store, const stk_shard_place *place,
                                       const char *only, const char *kept, bool refresh,
                                       const stk_events *events, stk_shard_facts *facts,
                                       stk_error *err);

#endif
