/* model_search.c - candidates by name, by file and from the caches. */
#include "job/recipe/model_search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/traffic.h"
#include "job/recipe/recipe_sizes.h"
#include "models/memory_need.h"
#include "weights/pretrained.h"
#include "weights/pretrained_model.h"

#define SCRATCH_MODEL "convnet_s" /* where there are no weights */
#define LEAST_BATCH 8             /* pictures of a step for which a candidate needs memory */

/* A home folder may lie on a mount that does not answer. The search for weights that nobody named
 * ends after so many seconds, and after this share of the time that is left. */
#define LOOK_S 3.0
#define LOOK_SHARE 0.1

/*
 * Pretrained weights named with a tag ("resnet34.ra4_e3600_r224_in1k") may need another
 * preprocessing: then the model of that tag is used.
 */
static const stk_model *as_pretrained(const stk_model *model, const char *pretrained) {
    const stk_model *tagged = NULL;
    size_t length = strcspn(model->name, ".");
    if (strchr(model->name, '.') != NULL || pretrained == NULL ||
        strncmp(pretrained, model->name, length) != 0 || pretrained[length] != '.' ||
        stk_model_find(pretrained, &tagged, NULL) != STK_OK) {
        return model;
    }
    return tagged;
}

static void set_only(stk_model_search *search, const stk_model *model, const char *weights,
                     const char *why) {
    search->count = 1;
    search->chosen = 0;
    search->candidates[0] = (stk_model_source){model, weights};
    search->why = why;
}

static stk_status take_named(stk_model_search *search, const stk_job_options *job, stk_error *err) {
    const stk_model *model = NULL;
    stk_status status = stk_model_find(job->model, &model, err);
    if (status == STK_OK) {
        set_only(search, as_pretrained(model, job->pretrained),
                 stk_pretrained_wanted(job->pretrained, job->model), NULL);
    }
    return status;
}

static stk_status take_file(stk_model_search *search, const char *wanted, stk_error *err) {
    stk_pretrained_file file;
    const stk_model *model = NULL;
    const char *why = NULL;
    stk_status status = stk_pretrained_find(wanted, &file, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_pretrained_model(&file, &model, &why, err);
    stk_pretrained_file_free(&file);
    if (status == STK_OK) {
        set_only(search, model, wanted, why);
    }
    return status;
}

/* Checks the weights of a candidate, and works out what it costs. */
static stk_status weigh(const stk_model *model, int img_size, int classes, stk_model_offer *offer,
                        stk_error *err) {
    stk_model_config config = {.img_size = img_size,
                               .classes = classes,
                               .dropout = STK_MODEL_OWN_RATE,
                               .drop_path = STK_MODEL_OWN_RATE};
    stk_graph *graph = NULL;
    stk_pretrained_file file = {0};
    stk_pretrained_report report;
    stk_traffic traffic = {0};
    stk_status status = stk_model_build(model, &config, &graph, err);
    STK_THEN(status, stk_graph_traffic(graph, true, sizeof(float), &traffic, err));
    STK_THEN(status, stk_pretrained_find(model->name, &file, err));
    STK_THEN(status, stk_pretrained_check(file.path, model->name, graph, &report, err));
    *offer = (stk_model_offer){.quality = model->top1,
                               .multiply_adds = traffic.multiply_adds,
                               .bytes = traffic.image_bytes,
                               .img_size = img_size};
    stk_pretrained_file_free(&file);
    stk_graph_free(graph);
    return status;
}

/* Lists the models whose weights are here. */
static stk_status list_present(const stk_model **models, size_t room, size_t *count,
                               stk_str *places, const stk_events *events, stk_error *err) {
    stk_disk *disk = stk_disk_enter_within(fmin(LOOK_S, LOOK_SHARE * stk_disk_left_s()));
    stk_status status = stk_pretrained_models(models, room, count, places, err);
    if (!stk_disk_leave(disk)) {
        stk_events_warning(events, "the folders with pretrained weights do not answer: %s",
                           stk_str_text(places));
    }
    return status;
}

/* Keeps the marked candidates; all of them where none is marked. */
static void keep_marked(stk_model_search *search, const bool *marked) {
    size_t kept = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (marked[i]) {
            search->candidates[kept] = search->candidates[i];
            search->offers[kept++] = search->offers[i];
        }
    }
    search->count = kept > 0 ? kept : search->count;
}

/* Takes the models whose weights are here and can be used. How good a network of our own is nobody
 * has published: it is taken where there is no other. */
static stk_status take_present(stk_model_search *search, const stk_recipe *recipe,
                               const stk_options *options, int classes, stk_str *places,
                               const stk_events *events, stk_error *err) {
    const stk_model *models[STK_MOST_CANDIDATES];
    bool known[STK_MOST_CANDIDATES]; /* how good the model is */
    size_t count = 0;
    stk_status status = list_present(models, STK_COUNT(models), &count, places, events, err);
    for (size_t i = 0; status == STK_OK && i < count; i++) {
        int size = stk_recipe_size_for(recipe, options, models[i]);
        stk_error why = {0};
        stk_status fits = weigh(models[i], size, classes, &search->offers[search->count], &why);
        if (fits == STK_OK) {
            known[search->count] = models[i]->top1 > 0;
            search->candidates[search->count++] = (stk_model_source){models[i], models[i]->name};
        } else if (fits == STK_ERR_MEMORY) {
            status = STK_FAIL(err, fits, "%s", why.message);
        } else {
            stk_events_warning(events, "%s is not considered: %s", models[i]->name, why.message);
        }
    }
    keep_marked(search, known);
    search->why = "the only usable pretrained model on this machine";
    return status;
}

stk_status stk_model_search_find(stk_model_search *search, const stk_recipe *recipe,
                                 const stk_options *options, int classes, const stk_events *events,
                                 stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_model *scratch = NULL;
    stk_str places = {0};
    bool yes = false;
    bool left_open = stk_options_source(options, "pretrained") == STK_FROM_DEFAULT;
    const char *wanted = stk_pretrained_wanted(job->pretrained, SCRATCH_MODEL);
    bool any = left_open || (wanted != NULL && stk_parse_bool(job->pretrained, &yes));
    search->count = 0;
    search->chosen = 0;
    if (job->model != NULL) {
        return take_named(search, job, err);
    }
    if (wanted != NULL && !any) {
        return take_file(search, wanted, err);
    }
    stk_status status =
        any ? take_present(search, recipe, options, classes, &places, events, err) : STK_OK;
    STK_THEN(status, stk_model_find(SCRATCH_MODEL, &scratch, err));
    if (status == STK_OK && search->count == 0 && wanted != NULL) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "--pretrained %s: no weights of a known model are on this machine; fetch "
                          "some, for example with `hf download timm/tf_efficientnet_lite0.in1k "
                          "model.safetensors` (from pip install huggingface_hub), or give a file: "
                          "--pretrained FILE.safetensors; looked in %s",
                          job->pretrained,
                          places.length > 0 ? places.text : "no folder: HOME is not set");
    } else if (status == STK_OK && search->count == 0) {
        set_only(search, scratch, NULL, NULL);
    }
    stk_str_free(&places);
    return status;
}

/* Whether there is memory to train the candidate. */
static bool has_memory(const stk_model_search *search, size_t index, const stk_job_network *network,
                       const stk_recipe *recipe, int classes) {
    const stk_opened_device *opened = &network->opened;
    stk_memory_need_config config = {
        .classes = classes,
        .state = {.train = true, .optimizer = (stk_optimizer)recipe->train.optimizer},
        .plain = network->plain};
    stk_memory_need need;
    stk_error ignored = {0};
    return stk_model_memory_need(search->candidates[index].model, LEAST_BATCH,
                                 search->offers[index].img_size, opened->precision, &config,
                                 opened->backend, opened->device, &need, &ignored) == STK_OK &&
           need.bytes <= network->memory.free_bytes;
}

stk_status stk_model_search_begin(stk_model_search *search, stk_job_network *network,
                                  const stk_recipe *recipe, int classes, stk_error *err) {
    bool on_cpu = stk_opened_device_is_cpu(&network->opened);
    bool marked[STK_MOST_CANDIDATES];
    if (!stk_model_search_is_open(search)) {
        return STK_OK;
    }
    stk_status status = stk_network_note_memory(network, err);
    for (size_t i = 0; status == STK_OK && i < search->count; i++) {
        marked[i] = has_memory(search, i, network, recipe, classes);
    }
    if (status != STK_OK) {
        return status;
    }
    keep_marked(search, marked); /* where none fits, an error will say what is missing */
    search->why = "the only pretrained model on this machine for which there is memory";
    search->chosen = stk_model_choose_untimed(search->offers, search->count, on_cpu);
    return STK_OK;
}

bool stk_model_search_is_open(const stk_model_search *search) {
    return search->count > 1;
}

/* "the best of 3 pretrained models on this machine for which there is time (about 18 epochs);
 * resnet50 would get 4" */
static void explain_timed(const stk_model_search *search, const stk_model_choice *choice,
                          stk_str *why) {
    if (choice->enough && choice->better == choice->index) {
        stk_str_appendf(why,
                        "the best of %zu pretrained models on this machine; there is time for "
                        "about %s",
                        search->count, stk_format_amount(choice->epochs, 2, "epoch").text);
    } else if (choice->enough) {
        stk_str_appendf(why,
                        "the best of %zu pretrained models on this machine for which there is "
                        "time (about %s)",
                        search->count, stk_format_amount(choice->epochs, 2, "epoch").text);
    } else {
        stk_str_appendf(why,
                        "the fastest of %zu pretrained models on this machine; there is time "
                        "for about %s",
                        search->count, stk_format_amount(choice->epochs, 2, "epoch").text);
    }
    if (choice->better != choice->index) {
        stk_str_appendf(why, "; %s would get %.2g", search->candidates[choice->better].model->name,
                        choice->better_epochs);
    }
}

void stk_model_search_emit(const stk_model_search *search, const stk_model_choice *choice,
                           bool on_cpu, const stk_events *events) {
    char what[96];
    stk_str why = {0};
    snprintf(what, sizeof what, "model %s", search->candidates[search->chosen].model->name);
    if (!stk_model_search_is_open(search)) {
        stk_str_append(&why, search->why != NULL ? search->why : "");
    } else if (choice != NULL && choice->epochs >= 0) { /* not NaN */
        explain_timed(search, choice, &why);
    } else {
        stk_str_appendf(&why,
                        on_cpu ? "the fastest good one of %zu pretrained models on this machine: "
                                 "larger ones take long on a CPU"
                               : "the best of %zu pretrained models on this machine that are not "
                                 "too large",
                        search->count);
    }
    if (why.length > 0) {
        stk_events_decision(events, what, stk_str_text(&why));
    }
    stk_str_free(&why);
}
