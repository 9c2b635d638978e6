/* pretrained_model.c - from weights to their model, by name and by shape. */
#include "weights/pretrained_model.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "weights/safetensors.h"

#define ANY_CLASSES 2 /* a head for another number of classes fits, too */

/* "resnet18.a1_in1k", "resnet18-5c106cde" and "resnet18_mine" begin with a model's name. The
 * longest such name counts. NULL: the text begins with none. */
static const stk_model *named_by(const char *text) {
    const stk_model *best = NULL;
    const stk_model *model = NULL;
    size_t longest = 0;
    for (size_t i = 0; text != NULL && (model = stk_model_at(i)) != NULL; i++) {
        size_t length = strlen(model->name);
        if (length > longest && strncmp(text, model->name, length) == 0 &&
            !isalnum((unsigned char)text[length])) {
            best = model;
            longest = length;
        }
    }
    return best;
}

/* The model that a folder of the path is called after, the last one first. A folder of the hub's
 * cache is "models--OWNER--NAME". */
static const stk_model *named_by_folder(const char *path) {
    const char *end = strrchr(path, '/');
    const stk_model *model = NULL;
    while (end != NULL && model == NULL) {
        const char *begin = end;
        while (begin > path && begin[-1] != '/') {
            begin--;
        }
        const char *name = begin;
        for (const char *p = begin; p + 1 < end; p++) {
            name = p[0] == '-' && p[1] == '-' ? p + 2 : name;
        }
        model = named_by(name);
        end = begin > path ? begin - 1 : NULL;
    }
    return model;
}

/* Whether the weights fit the model; STK_ERR_DATA: they do not. */
static stk_status check_fit(const char *path, const stk_model *model, stk_error *err) {
    stk_model_config config = {.img_size = model->img_size,
                               .classes = ANY_CLASSES,
                               .dropout = STK_MODEL_OWN_RATE,
                               .drop_path = STK_MODEL_OWN_RATE};
    stk_pretrained_report report;
    stk_graph *graph = NULL;
    stk_status status = stk_model_build(model, &config, &graph, err);
    STK_THEN(status, stk_pretrained_check(path, model->name, graph, &report, err));
    stk_graph_free(graph);
    return status;
}

/* The model that the metadata of a Stoker checkpoint names; NULL: none. */
static stk_status read_note(const char *path, const stk_model **model, stk_error *err) {
    stk_tensor_file tensors;
    stk_status status = stk_tensors_open(&tensors, path, err);
    if (status == STK_OK) {
        *model = named_by(stk_tensors_note(&tensors, "model"));
        stk_tensors_close(&tensors);
    }
    return status;
}

static stk_status first_that_fits(const char *path, const stk_model **model, stk_error *err) {
    stk_status status = STK_ERR_DATA;
    stk_error why = {0};
    const stk_model *row = NULL;
    for (size_t i = 0; status == STK_ERR_DATA && (row = stk_model_at(i)) != NULL; i++) {
        why = (stk_error){0};
        status = check_fit(path, row, &why);
        *model = row;
    }
    if (status == STK_ERR_DATA) {
        return STK_FAIL(err, status,
                        "%s: these weights fit none of the models; name the model with --model, "
                        "and the error will say what does not fit",
                        path);
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

stk_status stk_pretrained_model(const stk_pretrained_file *file, const stk_model **model,
                                const char **why, stk_error *err) {
    const stk_model *noted = NULL;
    stk_status status = read_note(file->path, &noted, err);
    if (status != STK_OK) {
        return status;
    }
    const struct {
        const stk_model *model;
        const char *why;
    } named[] = {{noted, "named in the file's metadata"},
                 {named_by(file->name), "named by the weights"},
                 {named_by(stk_path_base(file->path)), "named by the file"},
                 {named_by_folder(file->path), "named by the file's folder"}};
    stk_error misfit = {0};
    for (size_t i = 0; i < STK_COUNT(named); i++) {
        stk_error cause = {0};
        if (named[i].model == NULL) {
            continue;
        }
        status = check_fit(file->path, named[i].model, &cause);
        if (status == STK_OK) {
            *model = named[i].model;
            *why = named[i].why;
            return STK_OK;
        }
        if (status != STK_ERR_DATA) {
            return STK_FAIL(err, status, "%s", cause.message);
        }
        misfit = misfit.status == STK_OK ? cause : misfit;
    }
    *why = "the first model with these parameters";
    status = first_that_fits(file->path, model, misfit.status == STK_OK ? err : NULL);
    return status != STK_OK && misfit.status != STK_OK
               ? STK_FAIL(err, misfit.status, "%s", misfit.message)
               : status;
}

/* Whether one of the names is of the model, with any tag. */
static bool has_name(const stk_str *names, const stk_model *model) {
    size_t length = strcspn(model->name, ".");
    const char *end = names->text + names->length;
    for (const char *p = names->text; p < end; p += strlen(p) + 1) {
        if (strncmp(p, model->name, length) == 0 && (p[length] == '\0' || p[length] == '.')) {
            return true;
        }
    }
    return false;
}

/* Whether the weights that the model's name finds are its own, and not those of another row. */
static stk_status look_for_own(const stk_model *model, bool *own, stk_error *err) {
    stk_pretrained_file file;
    stk_error why = {0};
    const stk_model *owner = NULL;
    stk_status status = stk_pretrained_find(model->name, &file, &why);
    *own = status == STK_OK && stk_model_find(file.name, &owner, NULL) == STK_OK && owner == model;
    stk_pretrained_file_free(&file);
    return status == STK_ERR_MEMORY ? STK_FAIL(err, status, "%s", why.message) : STK_OK;
}

stk_status stk_pretrained_models(const stk_model **models, size_t room, size_t *count,
                                 stk_str *places, stk_error *err) {
    stk_str names = {0};
    const stk_model *model = NULL;
    *count = 0;
    stk_status status = stk_pretrained_names(&names, places, err);
    for (size_t i = 0;
         status == STK_OK && names.length > 0 && *count < room && (model = stk_model_at(i)) != NULL;
         i++) {
        bool own = false;
        if (has_name(&names, model)) {
            status = look_for_own(model, &own, err);
        }
        if (own) {
            models[(*count)++] = model;
        }
    }
    stk_str_free(&names);
    return status;
}
