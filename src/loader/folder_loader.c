/*
 * folder_loader.c - the calls of stoker/loader.h that know a folder: opening by options, paths,
 * classes. The loader owns the data set.
 */
#include "loader/loader.h"

#include "base/error.h"
#include "base/machine.h"
#include "base/str.h"
#include "base/public_struct.h"
#include "loader/folder_samples.h"
#include "loader/pipeline.h"

static const stk_option_table *const tables[] = {
    &stk_dataset_option_table, &stk_storage_option_table, &stk_folder_option_table,
    &stk_loader_option_table,  &stk_augment_option_table,
};

stk_status stk_options_for_loader(stk_options **out, stk_error *err) {
    return stk_options_new(out, "bench loader", tables, sizeof tables / sizeof *tables, err);
}

/* Refuses what cannot work before threads start: too little memory, or sampling without labels. */
static stk_status check_request(const stk_folder_samples *samples, const stk_loader_options *loader,
                                const stk_folder_options *folder, const stk_loader_sizing *sizing,
                                size_t batch, uint64_t memory, stk_error *err) {
    uint64_t bytes = (uint64_t)sizing->slots * sizing->slot_bytes;
    if (bytes > memory / 2) {
        char need[32];
        char have[32];
        return STK_FAIL(err, STK_ERR_MEMORY,
                        "%d batches of %zu pictures at %d px need %s of memory, this process may "
                        "use %s; use a smaller --batch or --img-size",
                        sizing->slots, batch, (int)folder->img_size,
                        stk_format_bytes(need, sizeof need, bytes),
                        stk_format_bytes(have, sizeof have, memory));
    }
    if (folder->train && stk_sampling_is_by_class((stk_sampling)loader->sampling) &&
        samples->dataset->class_count == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "sampling by class needs labels, and %s has none: sort the pictures into "
                        "one folder per class, or leave --sampling natural",
                        samples->dataset->root);
    }
    return STK_OK;
}

/* Refuses a device that this loader was not given. */
static stk_status check_decode(const stk_loader_options *loader, const stk_loader_place *place,
                               stk_error *err) {
    bool wants = loader->decode == STK_DECODE_GPU || loader->decode == STK_DECODE_BOTH;
    return !wants || place->decoder.state != NULL
               ? STK_OK
               : STK_FAIL(err, STK_ERR_USAGE,
                          "--decode %s needs a GPU, and this loader has none; use --decode cpu or "
                          "auto",
                          loader->decode == STK_DECODE_GPU ? "gpu" : "both");
}

stk_status stk_loader_open(stk_loader **out, stk_options *given, stk_error *err) {
    return stk_loader_open_at(out, given, &(stk_loader_place){0}, err);
}

stk_status stk_loader_open_at(stk_loader **out, stk_options *given, const stk_loader_place *place,
                              stk_error *err) {
    const stk_folder_options *folder = stk_options_values(given, &stk_folder_option_table);
    const stk_loader_options *loader = stk_options_values(given, &stk_loader_option_table);
    stk_folder_samples samples;
    stk_status status = check_decode(loader, place, err);
    STK_THEN(status, stk_folder_samples_open(&samples, given, place->stop, place->events, err));
    if (status != STK_OK) {
        return status;
    }
    int size = (int)folder->img_size;
    size_t batch = (size_t)folder->batch < samples.count ? (size_t)folder->batch : samples.count;
    uint64_t memory = stk_machine_memory();
    stk_loader_sizing sizing =
        stk_loader_sizing_make(loader, batch, size, stk_machine_cores(), memory);
    status = check_request(&samples, loader, folder, &sizing, batch, memory, err);
    if (status != STK_OK) {
        stk_folder_samples_close(&samples);
        return status;
    }
    stk_augment_options augment = stk_folder_augment(given);
    stk_loader_config config = {.store = samples.dataset->store,
                                .samples = samples.list->items,
                                .indices = samples.indices,
                                .count = samples.count,
                                .transform = {.size = size,
                                              .train = folder->train,
                                              .augment = augment,
                                              .native = augment.resize == STK_RESIZE_NONE,
                                              .crop_fraction = STK_FOLDER_CROP_FRACTION},
                                .batch = batch,
                                .sizing = sizing,
                                .memory = place->memory,
                                .decoder = place->decoder,
                                .device_first = place->device_first,
                                .stop = place->stop,
                                .seed = (uint64_t)folder->seed,
                                .order = {.shuffle = folder->train,
                                          .drop_last = folder->train && folder->drop_last,
                                          .replace_bad = folder->train,
                                          .epochs = (uint64_t)folder->epochs},
                                .stop_after_bad = stk_loader_bad_limit(loader, samples.count),
                                .sampling = folder->train ? (stk_sampling)loader->sampling
                                                          : STK_SAMPLING_NATURAL,
                                .rank = (size_t)folder->rank,
                                .world = (size_t)folder->world};
    status = stk_loader_start(out, &config, err);
    if (status != STK_OK) {
        stk_folder_samples_close(&samples);
        return status;
    }
    (*out)->folder = samples;
    return STK_OK;
}

stk_status stk_loader_describe(const stk_loader *l, stk_loader_info *info, stk_error *err) {
    stk_status status = STK_PUBLIC_CHECK(stk_loader_info, info, err);
    if (status == STK_OK) {
        *info = stk_loader_info_of(l);
    }
    return status;
}

stk_status stk_loader_stats(const stk_loader *l, stk_loader_counters *counters, stk_error *err) {
    stk_status status = STK_PUBLIC_CHECK(stk_loader_counters, counters, err);
    if (status == STK_OK) {
        *counters = stk_loader_counters_of(l);
    }
    return status;
}

const char *stk_loader_path(const stk_loader *l, size_t sample) {
    const stk_sample_list *list = l->folder.list;
    return list != NULL && sample < list->count ? list->items[sample].path : NULL;
}

const char *stk_loader_class(const stk_loader *l, int label) {
    const stk_dataset *d = l->folder.dataset;
    return d != NULL && label >= 0 && label < d->class_count ? d->classes[label] : NULL;
}
