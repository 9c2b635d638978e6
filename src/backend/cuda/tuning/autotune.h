/*
 * autotune.h - inside the CUDA backend: questions that lowering asks, and races that answer
 * them.
 *
 * Where a thing can be computed in two ways and arithmetic does not tell which is faster, lowering
 * asks. The first time the answer is way 0, the plain one, and the question is noted in the
 * program; the executable then lets both ways race in its own memory, keeps the answers
 * (tuning_results.h), and lowers once more. An answer may lead to further questions.
 *
 * A new kind of question is a number in cuda_question_kind, a row of the table in autotune.c,
 * and a function that appends both ways to a program.
 */
#ifndef STK_BACKEND_CUDA_TUNING_AUTOTUNE_H
#define STK_BACKEND_CUDA_TUNING_AUTOTUNE_H

#include "backend/cuda/tuning/tuning_results.h"
#include "backend/cuda/exec.h"

#define CUDA_CONTEST_WAYS 2

/*
 * Appends what both ways of a question read (noise: plans are timed on it), and then the ways, on
 * buffers of their own: nothing of the network may change.
 */
typedef void cuda_contest_ways(cuda_program *p, const cuda_question *question,
                               cuda_range ways[CUDA_CONTEST_WAYS]);

/* A place with `count` numbers of noise in it, of the program's type or as long as float32. */
cuda_ref stk_cuda_noise_place(cuda_program *p, size_t count);
cuda_ref stk_cuda_noise_floats(cuda_program *p, size_t count);

/* What a question is called in cuda_choices. */
void stk_cuda_question_name(const cuda_question *question, char name[CUDA_CHOICE_NAME]);

/* What is known of a question so far: a way, or CUDA_UNDECIDED; choices may be NULL. */
int stk_cuda_answer(cuda_choices *choices, const cuda_question *question);

/*
 * The answer to a question: a way. Notes the question in the program; *asked is then what
 * cuda_conv_op.asked has to be where a convolution is what it is by this answer. choices NULL and
 * strict programs: always way 0, and nothing is noted.
 */
int stk_cuda_ask(cuda_program *p, cuda_choices *choices, const cuda_question *question, int *asked);

/*
 * Answers all open questions of the player's program by races in the memory of the player, whose
 * contents are lost. *answered: there were some, so that the program has to be lowered again, which
 * may lead to further questions.
 */
STK_CHECKED stk_status stk_cuda_contests(const cuda_player *player, bool *answered, stk_error *err);

/*
 * After the program's convolutions were prepared: where one is what it is by an answer and no plan
 * is there for it (what was kept on disk is gone, or damaged), the answer is way 0 from now on.
 * True when there was one: the program is of no use then.
 */
bool stk_cuda_contests_void(const cuda_player *player);

#endif
