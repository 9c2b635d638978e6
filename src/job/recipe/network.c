/*
 * network.c - building a run's network, and the weights that it begins with.
 */
#include "job/recipe/network.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "metrics/task.h"
#include "weights/pretrained.h"

/* Seconds of a budget below which a GPU's first start must not take long. */
#define HURRIED_S 45.0

stk_job_network stk_network_begin(const stk_job_options *options) {
    return (stk_job_network){.plain = !options->compile};
}

/* How --decode is meant. The choice of an earlier run holds where the device still allows it. */
static stk_decoder_wish decoder_wish(const stk_options *options) {
    const stk_loader_options *loader = stk_options_values(options, &stk_loader_option_table);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    return (stk_decoder_wish){.decode = (stk_decode)loader->decode,
                              .kept = stk_options_source(options, "decode") == STK_FROM_RUN,
                              .deterministic = job->deterministic};
}

stk_status stk_network_check_decode(const stk_options *options, stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_decoder_wish wish = decoder_wish(options);
    return stk_opened_decoder_check(job->device, &wish, err);
}

/* Opens the decoder, and stores what was chosen on a GPU. On a CPU there was no choice: a run that
 * is resumed on a GPU may choose then. */
static stk_status open_decoder(stk_job_network *network, stk_options *options, stk_error *err) {
    const stk_decoder_wish wish = decoder_wish(options);
    const stk_opened_decoder *decoder = &network->decoder;
    stk_status status = stk_opened_decoder_open(&network->decoder, &network->opened, &wish, err);
    bool chosen = !stk_opened_device_is_cpu(&network->opened) && decoder->decode != wish.decode;
    return status == STK_OK && chosen
               ? stk_options_resolve(options, "decode", stk_decode_name(decoder->decode),
                                     wish.decode == STK_DECODE_AUTO ? "auto" : decoder->why, err)
               : status;
}

stk_status stk_network_open_device(stk_job_network *network, stk_options *options,
                                   stk_run_clock *clock, stk_error *err) {
    stk_device_config device = {.hurried = clock->budget_s < HURRIED_S, /* false without one */
                                .halted = stk_run_clock_must_halt,
                                .user = clock};
    stk_opened_device *opened = &network->opened;
    stk_status status = stk_recipe_open_device(opened, options, &device, err);
    network->host = (stk_host_memory){.backend = opened->backend, .device = opened->device};
    return status == STK_OK ? open_decoder(network, options, err) : status;
}

void stk_network_close_device(stk_job_network *network) {
    stk_opened_decoder_close(&network->decoder);
    stk_opened_device_close(&network->opened);
}

stk_status stk_network_note_memory(stk_job_network *network, stk_error *err) {
    const stk_opened_device *opened = &network->opened;
    stk_status status = opened->backend->memory(opened->device, &network->memory, err);
    uint64_t owed = stk_opened_decoder_owed(&network->decoder);
    uint64_t *free_bytes = &network->memory.free_bytes;
    *free_bytes -= owed < *free_bytes ? owed : *free_bytes;
    return status;
}

static stk_model_config model_config(const stk_recipe *recipe, int classes) {
    return (stk_model_config){.classes = classes,
                              .channels = recipe->channels,
                              .features = recipe->features,
                              .loss = &recipe->loss,
                              .steps = recipe->task == STK_TASK_ORDINAL,
                              .dropout = recipe->dropout,
                              .drop_path = recipe->drop_path};
}

stk_status stk_network_build(stk_job_network *network, const stk_recipe *recipe, int classes,
                             stk_error *err) {
    stk_model_config config = model_config(recipe, classes);
    network->state_config = (stk_state_config){.train = true,
                                               .optimizer = (stk_optimizer)recipe->train.optimizer,
                                               .ema = recipe->train.ema > 0};
    const struct {
        int size;
        stk_graph **graph;
    } graphs[] = {{recipe->img_size, &network->graph},
                  {recipe->eval_size, &network->eval_graph},
                  {recipe->early_size, &network->early_graph},
                  {recipe->early_eval_size, &network->early_eval_graph}};
    stk_status status = STK_OK;
    for (size_t i = 0; i < STK_COUNT(graphs) && status == STK_OK; i++) {
        config.img_size = graphs[i].size;
        if (graphs[i].size > 0) {
            status = stk_model_build(recipe->model, &config, graphs[i].graph, err);
        }
    }
    return status;
}

stk_status stk_network_build_embedding(const stk_job_network *network, const stk_recipe *recipe,
                                       stk_graph **graph, stk_error *err) {
    stk_model_config config = model_config(recipe, network->graph->classes);
    config.img_size = recipe->eval_size;
    config.embeds = true;
    return stk_model_build(recipe->model, &config, graph, err);
}

stk_status stk_network_allocate(stk_job_network *network, stk_error *err) {
    const stk_opened_device *opened = &network->opened;
    stk_status status = opened->backend->state_new(&network->state, opened->device, network->graph,
                                                   &network->state_config, err);
    network->execs = (stk_exec_cache){.backend = opened->backend, .state = network->state};
    return status;
}

void stk_network_free_state(stk_job_network *network) {
    if (network->opened.backend != NULL) {
        stk_exec_cache_clear(&network->execs);
        network->opened.backend->state_free(network->state);
    }
    network->state = NULL;
}

void stk_network_free_graph(stk_job_network *network) {
    stk_network_free_state(network);
    stk_graph_free(network->graph);
    stk_graph_free(network->eval_graph);
    stk_graph_free(network->early_graph);
    stk_graph_free(network->early_eval_graph);
    network->graph = network->eval_graph = NULL;
    network->early_graph = network->early_eval_graph = NULL;
}

void stk_network_free(stk_job_network *network) {
    stk_network_free_graph(network);
    stk_mem_free(network->pretrained);
    network->pretrained = NULL;
}

stk_compile_config stk_network_compile_config(const stk_job_network *network,
                                              const stk_recipe *recipe, bool train) {
    const stk_graph *small = network->early_eval_graph;
    bool is_small = small != NULL && small->img_size == recipe->eval_size;
    return (stk_compile_config){.graph = train      ? NULL
                                         : is_small ? small
                                                    : network->eval_graph,
                                .batch = train ? recipe->batch : recipe->infer_batch,
                                .precision = network->opened.precision,
                                .train = train,
                                .kept_stats =
                                    train && recipe->train.norm_stats == STK_NORM_STATS_KEPT,
                                .ema = !train && network->state_config.ema,
                                .plain = network->plain};
}

stk_status stk_network_first_weights(stk_job_network *network, const stk_recipe *recipe, int fold,
                                     stk_run_clock *clock, stk_error *err) {
    const stk_backend *backend = network->opened.backend;
    stk_status status = stk_state_first_weights_unless(backend, network->state, network->graph,
                                                       recipe->seed + (uint64_t)fold,
                                                       stk_run_clock_must_write, clock, err);
    if (status == STK_OK && network->pretrained != NULL) {
        stk_pretrained_report report;
        status = stk_pretrained_load(network->pretrained, recipe->model->name, backend,
                                     network->state, network->graph, &report, err);
    }
    return status == STK_OK ? stk_train_reset_state(backend, network->state, network->graph, err)
                            : status;
}

/* ---- pretrained weights ---- */

/* Emits how the weights differ from the file. */
static void emit_pretrained(const stk_recipe *recipe, int classes,
                            const stk_pretrained_report *report, const stk_events *events) {
    char what[96];
    char why[160];
    if (report->head_anew) {
        snprintf(what, sizeof what, "head for %d %s starts anew", classes,
                 stk_task_outputs(recipe->task, classes));
        snprintf(why, sizeof why, "the file has %llu", (unsigned long long)report->file_classes);
        stk_events_decision(events, what, report->file_classes > 0 ? why : "the file has none");
    }
    if (report->converted > 0) {
        snprintf(what, sizeof what, "%d tensors converted to fp32", report->converted);
        snprintf(why, sizeof why, "the file has %s", report->type);
        stk_events_decision(events, what, why);
    }
    if (report->prefix[0] != '\0') {
        snprintf(what, sizeof what, "\"%s\" taken off the tensors' names", report->prefix);
        stk_events_decision(events, what, "without it they are the model's");
    }
    if (report->checkpoint_of[0] != '\0') {
        stk_events_warning(events, "the weights fit but are a checkpoint of %s, not of %s",
                           report->checkpoint_of, recipe->model->name);
    }
}

/* A checksum of a whole file, as text, as the saved state has it. */
static stk_status sum_file(const char *path, char text[STK_RANDOM_ID_TEXT], stk_error *err) {
    uint64_t sum = 0;
    stk_status status = stk_checksum_file(path, &sum, err);
    snprintf(text, STK_RANDOM_ID_TEXT, "%016llx", (unsigned long long)sum);
    return status;
}

/* Folds that have not begun yet must begin from the same weights as the folds before. */
static stk_status check_pretrained(stk_job_network *network, const char *path, const char *before,
                                   stk_error *err) {
    stk_status status = sum_file(path, network->pretrained_sum, err);
    if (status == STK_OK && before[0] != '\0' && strcmp(before, network->pretrained_sum) != 0) {
        status =
            STK_FAIL(err, STK_ERR_DATA,
                     "%s is not the file that the run was begun with: its contents changed, "
                     "and folds that are still to begin would start from other weights; put it "
                     "back, or begin a new run",
                     path);
    }
    return status;
}

void stk_network_warn_replaced_pretrained(const stk_job_options *options, const char *before,
                                          const stk_events *events) {
    const char *path = options->pretrained;
    char now[STK_RANDOM_ID_TEXT];
    if (path != NULL && before[0] != '\0' && stk_path_is_file(path) &&
        sum_file(path, now, NULL) == STK_OK && strcmp(before, now) != 0) {
        stk_events_warning(events,
                           "%s is not the file that the run was begun with; the run goes on with "
                           "its own weights and does not read it again",
                           path);
    }
}

stk_status stk_network_find_pretrained(stk_job_network *network, const stk_recipe *recipe,
                                       stk_options *options, int classes, const char *before,
                                       const stk_events *events, stk_error *err) {
    const char *model = recipe->model->name;
    if (recipe->weights == NULL) {
        return STK_OK;
    }
    stk_pretrained_file place;
    stk_pretrained_report report;
    stk_status status = stk_pretrained_find(recipe->weights, &place, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_pretrained_check(place.path, model, network->graph, &report, err);
    STK_THEN(status, check_pretrained(network, place.path, before, err));
    if (status == STK_OK) {
        /* An absolute path works from any folder. Links of a hub's cache stay links: the names of
         * their targets say nothing. */
        char *absolute = place.path[0] != '/' ? stk_disk_resolve(place.path) : NULL;
        status = stk_options_resolve(options, "pretrained",
                                     absolute != NULL ? absolute : place.path, place.why, err);
        stk_mem_free(absolute);
    }
    char *what = stk_str_format("weights from %s", place.path);
    if (status == STK_OK && what == NULL) {
        status = STK_FAIL_MEMORY(err, place.path);
    }
    if (status == STK_OK) {
        stk_events_decision(events, what, place.why);
        emit_pretrained(recipe, classes, &report, events);
        network->head_anew = report.head_anew;
        stk_mem_free(network->pretrained); /* of a model that was tried before */
        network->pretrained = place.path;
        place.path = NULL;
    }
    stk_mem_free(what);
    stk_pretrained_file_free(&place);
    return status;
}
