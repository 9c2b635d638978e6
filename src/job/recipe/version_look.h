/*
 * version_look.h - whether versions of the same pictures differ so little that scaling wipes it
 * out.
 *
 * Folders whose pictures have the same names may hold numbered pictures of other things, or changes
 * that everybody sees. The pictures themselves tell. Threads: the job's.
 */
#ifndef STK_JOB_RECIPE_VERSION_LOOK_H
#define STK_JOB_RECIPE_VERSION_LOOK_H

#include "dataset/dataset.h"

/*
 * Reads some pairs of training pictures of one group and different classes. *faint: most pairs are
 * of the same size and look the same when they are small. False where there are no groups. Pictures
 * that cannot be read are passed over.
 */
STK_CHECKED stk_status stk_versions_look_at(const stk_dataset *dataset, bool *faint,
                                            stk_error *err);

#endif
