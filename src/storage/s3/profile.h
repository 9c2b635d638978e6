/*
 * profile.h - one profile of ~/.aws/config and ~/.aws/credentials; variables of the environment.
 *
 * In the credentials file a profile is the section [x], in the config file [profile x]; there only
 * [default] may lack the word. Where both files have a value, the one in the credentials file
 * counts. Opening reads both files anew. Threads: many threads may read an open profile.
 */
#ifndef STK_STORAGE_S3_PROFILE_H
#define STK_STORAGE_S3_PROFILE_H

#include <stdbool.h>

#include <stoker/status.h>

#include "storage/s3/ini.h"
#include "storage/s3/settings.h"

typedef struct stk_s3_profile { /* starts zeroed */
    stk_ini *config;            /* owned: ~/.aws/config */
    stk_ini *credentials;       /* owned: ~/.aws/credentials */
    const char *name;           /* borrowed: settings->profile */
    char *config_section;       /* owned: "profile x" or "default" */
} stk_s3_profile;

/*
 * Reads both files. Of the settings it uses profile, profile_named and the two paths; they must
 * outlive the profile. A named profile that is in neither file is STK_ERR_USAGE.
 */
STK_CHECKED stk_status stk_s3_profile_open(const stk_s3_settings *settings, stk_s3_profile *profile,
                                           stk_error *err);
void stk_s3_profile_close(stk_s3_profile *profile);

/* A value of the profile, valid while it is open; NULL: none, or empty. */
const char *stk_s3_profile_get(const stk_s3_profile *profile, const char *name);

/* A variable of the environment; NULL: unset or empty. */
const char *stk_s3_environment(const char *name);

/* Whether a variable is true, yes, on or 1. */
bool stk_s3_environment_bool(const char *name);

#endif
