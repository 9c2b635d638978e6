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
#include "predict/ensemble.h"
#include "weights/calibration.h"

/*
 * Checks, before hours of training, that the columns of the sample file can be filled from the
 * classes of the data set. Several columns of which none is a class are STK_ERR_DATA; classes
 * without a column and columns without a class are warnings, which say what these get. A column is
 * a class when its name is the class's; where no name is equal, case and outer blanks are ignored.
 */
STK_CHECKED stk_status stk_submission_check(const stk_dataset *dataset, const stk_events *events,
                                            stk_error *err);

/*
 * The header of the file for people: the columns as they are written, or, where these are too long
 * for a line, "id, 120 columns from affenpinscher to yorkshire_terrier". *columns: how many the
 * file has. Only where the data set has rows.
 */
STK_CHECKED stk_status stk_submission_describe(const stk_dataset *dataset, char *header,
                                               size_t size, int *columns, stk_error *err);

/* What the models say of the test samples; everything is borrowed. */
typedef struct stk_answers {
    const char *const *classes; /* those of the ensemble; they may come from a checkpoint */
    int class_count;
    stk_task task;             /* of the models; counts where the data set asks for nothing */
    const stk_answer *trained; /* what the models' own competition takes; counts as the task does;
                                  NULL: not known */
    size_t pictures;           /* that the models were trained on; 0: not known */
    const stk_ensemble *ensemble; /* probabilities or numbers of the test pictures */
    const bool *exclusive;        /* (class_count): labels that stand alone; NULL: none does */
    const stk_label_rule *rule;   /* how answers are chosen; NULL: the likeliest class */
    stk_pooling pool;             /* how a row of several pictures gets its values; not AUTO */
} stk_answers;

/* What the rows take: what the data set asks for or, where it asks for nothing, what the models'
 * competition takes, or what the task gives. Needs the count of classes, the task and `trained`. */
stk_answer stk_submission_answer(const stk_dataset *dataset, const stk_answers *answers);

/*
 * Writes the rows of the data set, atomically: a kill leaves the old file or the new one. Rows of
 * probabilities sum to 1: a column of a class without training pictures gets the share of it that
 * add-one smoothing has, 1 / (pictures + columns), classes without a column are left out, and the
 * others are scaled (where the number of pictures is not known, the column gets 0). A row with a
 * number that is no probability, or with nothing but zeros, is filled evenly. A row of several
 * pictures gets what answers->pool makes of them. Without a sample file there is no column for a
 * class where the ensemble has only the likeliest classes of each picture.
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
