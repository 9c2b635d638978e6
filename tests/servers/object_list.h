/*
 * object_list.h - ListObjectsV2 of the test server.
 */
#ifndef OBJECT_LIST_H
#define OBJECT_LIST_H

#include "object_answers.h"

/* Answers `GET /bucket?list-type=2&...` with a page of keys. */
void os_answer_list(os_server *server, const os_request *request, os_bucket *bucket,
                    os_answer *answer);

#endif
