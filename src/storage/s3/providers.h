/*
 * providers.h - credential providers: where the AWS tools keep keys, secrets and tokens.
 *
 * stk_s3_credentials_find() asks one provider after the other, in botocore's order: the
 * environment, the profile in ~/.aws/credentials and ~/.aws/config (keys or credential_process),
 * the container's service, the instance's service. The first provider that has something decides:
 * if its credentials cannot be used, that is an error with the reason, and the others are not
 * asked.
 *
 * Built with STK_HAVE_S3 only. Threads: safe while nobody changes the environment.
 */
#ifndef STK_STORAGE_S3_PROVIDERS_H
#define STK_STORAGE_S3_PROVIDERS_H

#include "storage/s3/credentials.h"
#include "storage/s3/profile.h"
#include "storage/s3/settings.h"

/* Most bytes that a service or a credential_process may answer. */
#define STK_S3_ANSWER_MAX ((size_t)64 * 1024)

/*
 * Finds credentials. None at all is a success with key_id NULL and the reason in `source`. Blocks
 * for as long as a service or a credential_process takes: at most about a minute, and about two
 * seconds where there is no service. (provider_chain.c)
 */
STK_CHECKED stk_status stk_s3_credentials_find(const stk_s3_settings *settings,
                                               stk_s3_credentials *credentials, stk_error *err);

/* ---- providers that stk_s3_credentials_find() asks ---- */

/*
 * Each fills in zeroed credentials. A success with key_id NULL means that this provider is not in
 * use here; an error, that it is, and failed.
 */

/* Runs the profile's credential_process for at most limit_s seconds. (process_provider.c) */
STK_CHECKED stk_status stk_s3_from_process(const char *command, const char *profile, int limit_s,
                                           stk_s3_credentials *credentials, stk_error *err);

/* The service of a container (ECS, EKS), where the environment names one. (service_providers.c) */
STK_CHECKED stk_status stk_s3_from_container(const stk_s3_settings *settings,
                                             stk_s3_credentials *credentials, stk_error *err);

/* The metadata service of an EC2 instance (IMDSv2). (service_providers.c) */
STK_CHECKED stk_status stk_s3_from_instance(const stk_s3_profile *profile,
                                            stk_s3_credentials *credentials, stk_error *err);

#endif
