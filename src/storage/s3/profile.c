/* profile.c - finds a profile's sections in the two files of the AWS tools. */
#include "storage/s3/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

const char *stk_s3_environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

bool stk_s3_environment_bool(const char *name) {
    const char *value = stk_s3_environment(name);
    bool on = false;
    return value != NULL && stk_parse_bool(value, &on) && on;
}

static stk_status read_file(stk_ini **ini, const char *path, stk_error *err) {
    return path != NULL ? stk_ini_read(ini, path, err) : stk_ini_parse(ini, "", 0, "", err);
}

/* The name of the profile's section in the config file. */
static char *config_section(const stk_ini *config, const char *name) {
    char *section = stk_str_format("profile %s", name);
    if (section != NULL && strcmp(name, "default") == 0 && !stk_ini_has(config, section)) {
        stk_mem_free(section);
        section = stk_mem_strdup("default");
    }
    return section;
}

static stk_status not_found(const stk_s3_settings *settings, stk_error *err) {
    const char *config = settings->config_path != NULL ? settings->config_path : "~/.aws/config";
    const char *other =
        settings->credentials_path != NULL ? settings->credentials_path : "~/.aws/credentials";
    return STK_FAIL(err, STK_ERR_USAGE,
                    "AWS_PROFILE asks for the profile '%s', which neither %s (as [profile %s]) nor "
                    "%s (as [%s]) has; name one that they have, or unset AWS_PROFILE",
                    settings->profile, config, settings->profile, other, settings->profile);
}

stk_status stk_s3_profile_open(const stk_s3_settings *settings, stk_s3_profile *profile,
                               stk_error *err) {
    profile->name = settings->profile;
    stk_status status = read_file(&profile->config, settings->config_path, err);
    STK_THEN(status, read_file(&profile->credentials, settings->credentials_path, err));
    if (status == STK_OK) {
        profile->config_section = config_section(profile->config, settings->profile);
        status = profile->config_section != NULL ? STK_OK : STK_FAIL_MEMORY(err, "an AWS profile");
    }
    if (status == STK_OK && settings->profile_named &&
        !stk_ini_has(profile->config, profile->config_section) &&
        !stk_ini_has(profile->credentials, settings->profile)) {
        status = not_found(settings, err);
    }
    if (status != STK_OK) {
        stk_s3_profile_close(profile);
    }
    return status;
}

void stk_s3_profile_close(stk_s3_profile *profile) {
    stk_ini_free(profile->config);
    stk_ini_free(profile->credentials);
    stk_mem_free(profile->config_section);
    memset(profile, 0, sizeof *profile);
}

const char *stk_s3_profile_get(const stk_s3_profile *profile, const char *name) {
    const char *value = stk_ini_get(profile->credentials, profile->name, name);
    return value != NULL ? value : stk_ini_get(profile->config, profile->config_section, name);
}
