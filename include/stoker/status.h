/*
 * stoker/status.h - how every call of the library says that it failed.
 *
 * A function that can fail returns a stk_status and takes, last, a stk_error that the caller owns
 * (usually on the stack, zeroed) or NULL. On failure the error holds one human sentence that names
 * the action, the object, the cause and, where known, the remedy. The first error wins: a function
 * that is handed an error that is already set leaves it alone.
 */
#ifndef STOKER_STATUS_H
#define STOKER_STATUS_H

#if defined(__GNUC__)
#define STK_API __attribute__((visibility("default")))
#define STK_CHECKED __attribute__((warn_unused_result))
#define STK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define STK_API
#define STK_CHECKED
#define STK_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_status {
    STK_OK = 0,
    STK_ERR_INTERNAL, /* a fault of Stoker itself: exit code 1 */
    STK_ERR_USAGE,    /* a wrong option, value or configuration: exit code 2 */
    STK_ERR_DATA,     /* the data set or a file of it: exit code 3 */
    STK_ERR_DEVICE,   /* the device or its libraries, but not its memory: exit code 4 */
    STK_ERR_MEMORY,   /* too little memory, on the host or on the device: exit code 4 */
    STK_ERR_STORAGE,  /* reading or writing files: exit code 5 */
    STK_ERR_STOPPED   /* asked to stop before anything could be delivered: exit code 130 */
} stk_status;

typedef struct stk_error {
    stk_status status;  /* STK_OK while nothing has failed */
    int line;           /* where in Stoker's source the error was raised */
    const char *file;   /* static string, NULL while nothing has failed */
    char message[1024]; /* one sentence, NUL-terminated, cut when longer */
} stk_error;

/* A short word for a status, such as "data". Never NULL. */
STK_API const char *stk_status_name(stk_status status);

/* The exit code that a command ends with when it fails with this status. */
STK_API int stk_status_exit_code(stk_status status);

/* The library's version, such as "0.1.0". */
STK_API const char *stk_version(void);

#ifdef __cplusplus
}
#endif

#endif
