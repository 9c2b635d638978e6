/*
 * submission.h - the file that a competition wants.
 *
 * With a sample_submission.csv its header, row order and id spelling are copied; one column per
 * class is filled with probabilities, a single column with labels. Without a sample file there are
 * columns for the id, the label and the probability of every class.
 */
#ifndef STK_PREDICT_SUBMISSION_H
#define STK_PREDICT_SUBMISSION_H

#include <stoker/status.h>

#include "base/files/file.h"
#include "dataset/dataset.h"
#include "events/events.h"
#include "loader/loader.h"
#include "weights/calibration.h"

/*
 * Checks, before hours of training, that the columns of the sample file can be filled from the
 * classes of the data set. Several columns of which none is a class are STK_ERR_DATA; classes
 * without a column and columns without a class are warnings. A column is a class when its
 * name is the class's; where no name is equal, case and outer blanks are ignored.
 */
STK_CHECKED stk_status stk_submission_check(const stk_dataset *dataset, const stk_events *events,
                                            stk_error *err);

/* What the models say of the test samples; everything is borrowed. */
typedef struct stk_answers {
    const char *const *classes; /* those of `probs`; they may come from a checkpoint */
    int class_count;
    stk_task task;             /* of the models; counts where the data set asks for nothing */
    const stk_answer *trained; /* what the models' own competition takes; counts as the task does;
                                  NULL: not known */
    const double *probs;       /* (test pictures, class_count): probabilities or numbers */
    const double *known;       /* (test pictures): above 0 where a model has read the picture; NULL:
                                  all were read */
    const bool *exclusive;     /* (class_count): labels that stand alone; NULL: none does */
    const stk_label_rule *rule; /* how answers are chosen; NULL: the likeliest class */
} stk_answers;

/*
 * Writes the rows of the data set, atomically: a kill leaves the old file or the new one. Rows of
 * probabilities sum to 1: columns unknown to the model get 0, classes without a column are left out
 * and the others scaled. A row with a number that is no probability, or with nothing but zeros, is
 * filled evenly. A row of several pictures gets
 * their mean.
 *
 * This call is for a path that the user gave. `how` says how the file may be written; NULL: as a
 * file of Stoker's own.
 */
STK_CHECKED stk_status stk_submission_write_how(const char *path, const stk_file_how *how,
                                                const stk_dataset *dataset,
                                                const stk_answers *answers, stk_error *err);

/*
 * For the submission of a run folder: if `late` becomes true before all rows are written, the
 * existing file stays and STK_ERR_STOPPED is returned. Otherwise as stk_submission_write_how().
 */
STK_CHECKED stk_status stk_submission_write_unless(const char *path, const stk_dataset *dataset,
                                                   const stk_answers *answers, stk_halt late,
                                                   stk_error *err);

#endif
