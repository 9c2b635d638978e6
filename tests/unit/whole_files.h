/* whole_files.h - checks that the writer of a run folder's files could write all of them. */
#ifndef STK_TESTS_WHOLE_FILES_H
#define STK_TESTS_WHOLE_FILES_H

#include "report/runfiles.h"

static void check_whole(const stk_runfiles *files) {
    stk_str lacking = {0};
    if (stk_runfiles_lacking(files, &lacking)) {
        CHECK_FAIL("%s", stk_str_text(&lacking));
    }
    stk_str_free(&lacking);
}

#endif
