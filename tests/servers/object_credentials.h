/*
 * object_credentials.h - the services that hand out credentials, as the test server plays them.
 *
 * The instance metadata service (version 2, with a token) answers below /latest/, and the container
 * credentials service at /container-credentials. Both give the same keys.
 */
#ifndef OBJECT_CREDENTIALS_H
#define OBJECT_CREDENTIALS_H

#include <stdbool.h>

#include "object_http.h"

typedef struct os_credentials {
    bool is_on;
    const char *role;
    const char *access_key, *secret_key, *session_token;
    const char *container_token; /* the Authorization header that it takes; NULL: none is needed */
    double expires_s;            /* how long the keys are good for, from the answer on */
} os_credentials;

/* Whether a path is one of these services'. */
bool os_credentials_owns(const char *path);

void os_answer_credentials(const os_credentials *credentials, const os_request *request,
                           os_answer *answer);

#endif
