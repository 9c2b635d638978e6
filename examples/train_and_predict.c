/*
 * train_and_predict.c - Stoker from another C program: trains on a folder of pictures, says one
 * line per epoch, and predicts the test pictures again from what the run left behind.
 *
 *     train_and_predict DATA_DIR OUT_DIR [BUDGET]
 *
 * DATA_DIR is a data set as docs/datasets.md describes it and OUT_DIR becomes the run folder.
 * BUDGET is a time such as 60s or 10m; without it three epochs are trained. Ctrl-C ends the
 * training after the running step and keeps what was learnt; a second one gives up. The exit code
 * is that of the stoker command.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <stoker/job.h>

/* A signal handler gets no argument, so the request to stop must be reachable without one. */
static stk_stop stop_request;

static void on_interrupt(int number) {
    (void)number;
    stk_stop_level level =
        stk_stop_asked(&stop_request) == STK_STOP_NONE ? STK_STOP_SOON : STK_STOP_NOW;
    stk_stop_request(&stop_request, level, 0);
}

/* The first line of a run: what is going to happen. */
static void on_start(void *user, const stk_event_start *event) {
    (void)user;
    printf("training %s on %lld images of %d classes\n", event->model,
           (long long)event->train_images, event->classes);
}

static void on_epoch(void *user, const stk_event_epoch *event) {
    int *epochs = user;
    ++*epochs;
    printf("epoch %d of %d: loss %.3f, accuracy %.1f %%%s\n", event->epoch, event->epochs,
           event->train_loss, event->val_acc1, event->best ? " (best so far)" : "");
    fflush(stdout);
}

static void on_warning(void *user, const char *text) {
    (void)user;
    fprintf(stderr, "warning: %s\n", text);
}

/* Options are set by the names of the command line's flags; every other one keeps its default. */
static stk_status train(const char *data, const char *out, const char *budget, const stk_run *run,
                        stk_outcome *outcome, stk_error *err) {
    stk_options *options = NULL;
    stk_status status = stk_options_for_train(&options, err);
    if (status == STK_OK) {
        status = stk_options_set(options, "data", data, err);
    }
    if (status == STK_OK) {
        status = stk_options_set(options, "out", out, err);
    }
    if (status == STK_OK) {
        status = budget != NULL ? stk_options_set(options, "budget", budget, err)
                                : stk_options_set(options, "epochs", "3", err);
    }
    if (status == STK_OK) {
        status = stk_train(options, run, outcome, err);
    }
    stk_options_free(options);
    return status;
}

/* The run folder is enough: its files say which models there are and where the pictures lie. */
static stk_status predict(const char *run_dir, const stk_run *run, stk_outcome *outcome,
                          stk_error *err) {
    stk_options *options = NULL;
    stk_status status = stk_options_for_predict(&options, err);
    if (status == STK_OK) {
        status = stk_options_set(options, "run", run_dir, err);
    }
    if (status == STK_OK) {
        status = stk_predict(options, run, outcome, err);
    }
    stk_options_free(options);
    return status;
}

static void catch_interrupts(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: train_and_predict DATA_DIR OUT_DIR [BUDGET]\n");
        return stk_status_exit_code(STK_ERR_USAGE);
    }
    int epochs = 0;
    stk_observer observer = {.size = sizeof observer,
                             .user = &epochs,
                             .start = on_start,
                             .epoch = on_epoch,
                             .warning = on_warning};
    stk_run run = {.size = sizeof run, .observer = &observer, .stop = &stop_request};
    stk_outcome outcome = {.size = sizeof outcome};
    stk_error err = {0};
    catch_interrupts();
    stk_status status = train(argv[1], argv[2], argc > 3 ? argv[3] : NULL, &run, &outcome, &err);
    if (status == STK_OK) {
        printf("%s after %d epochs; the run folder is %s\n", outcome.status, epochs,
               outcome.run_dir);
    }
    /* Without test pictures there is nothing to predict, and who pressed Ctrl-C wants an end. */
    if (status == STK_OK && outcome.submission[0] != '\0' &&
        stk_stop_asked(&stop_request) == STK_STOP_NONE) {
        status = predict(outcome.run_dir, &run, &outcome, &err);
    }
    if (status != STK_OK) {
        fprintf(stderr, "train_and_predict: %s\n", err.message);
        return stk_status_exit_code(status);
    }
    if (outcome.submission[0] != '\0') {
        printf("submission: %s (%lld rows, from %d model%s)\n", outcome.submission,
               (long long)outcome.rows, outcome.models, outcome.models == 1 ? "" : "s");
    }
    return 0;
}
