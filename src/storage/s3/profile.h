/*
 * profile.h - one profile of ~/.aws/config and ~/.aws/credentials, as the two files are now.
 *
 * For s3_settings.c and s3_credentials.c. In the credentials file a profile is [x], in the other
 * one [profile x]; only [default] may stand there plainly. Where both files have a value, that of
 * the credentials file counts. Threads: an opened profile may be read by many.
 */
#ifndef STK_STORAGE_S3_PROFILE_H
#define STK_STORAGE_S3_PROFILE_H

#include <stdbool.h>

#include <stoker/status.h>

#include "storage/s3/ini.h"
#include "storage/s3/settings.h"

typedef struct stk_s3_profile { /* starts zeroed */
    stk_ini *config;
    stk_ini *credentials;
    const char *name;     /* settings->profile */
    char *config_section; /* "profile x" or "default"; owned */
} stk_s3_profile;

/*
 * Reads both files. The settings need to have profile, profile_named and the two paths only, and
 * must outlive the profile. A profile that was named and is in neither file is STK_ERR_USAGE.
 */
STK_CHECKED stk_status stk_s3_profile_open(const stk_s3_settings *settings, stk_s3_profile *profile,
                                           stk_error *err);
void stk_s3_profile_close(stk_s3_profile *profile);

/* The value, or NULL when there is none or it is empty; it lives as long as the profile is open. */
const char *stk_s3_profile_get(const stk_s3_profile *profile, const char *name);

/* The value of a variable of the environment, or NULL when it is not set or empty. */
const char *stk_s3_environment(const char *name);

/* True when the variable says so: true, yes, on or 1. */
bool stk_s3_environment_bool(const char *name);

#endif
