/* relay.c - an output (output.h) without a log and without a listener. */
#include "supervise/output/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

stk_status stk_relay_open(stk_output **relay, int fd, int *end, stk_error *err) {
    stk_output_config config = {.out = fd, .err = -1};
    int unused = -1;
    stk_status status = stk_output_open(relay, &config, end, &unused, err);
    if (status != STK_OK) {
        return status;
    }
    close(unused);
    int flags = fcntl(*end, F_GETFL); /* the pipe is ours alone */
    return flags >= 0 && fcntl(*end, F_SETFL, flags | O_NONBLOCK) == 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STORAGE, "cannot prepare a pipe: %s", strerror(errno));
}

void stk_relay_close(stk_output *relay, int end, double within_s) {
    if (end >= 0) {
        close(end);
    }
    stk_output_close(relay, within_s);
}
