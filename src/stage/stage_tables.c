/* stage_tables.c - writes samples.csv and the other tables, and the description of a staging. */
#include "stage/stage_tables.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "base/text/json.h"

/* Text is collected up to this size before it is written. */
#define FLUSH_BYTES ((size_t)256 * 1024)

#define MOST_JSON_BYTES ((size_t)1 << 20)

/* ---- descriptions ---- */

static void put_number(stk_json_writer *writer, const char *key, int64_t value) {
    stk_json_key(writer, key);
    stk_json_put_int(writer, value > 0 ? value : 0);
}

static void put_text(stk_json_writer *writer, const char *key, const char *text) {
    stk_json_key(writer, key);
    stk_json_put_string(writer, text);
}

void stk_stage_about(stk_str *out, const stk_staging_list *list, const stk_stage_request *request,
                     const stk_staged *staged) {
    const stk_dataset_options *data = request->data;
    stk_json_writer writer = stk_json_write_to(out, 2);
    writer.exact = true; /* column names must be read back unchanged */
    stk_json_begin_object(&writer);
    put_number(&writer, "format", STK_STAGED_FORMAT);
    put_text(&writer, "plan", list->checksum);
    put_text(&writer, "source", list->source);
    stk_json_key(&writer, "flags");
    stk_json_begin_object(&writer);
    put_number(&writer, "classes", data->classes);
    put_number(&writer, "per-class", data->per_class);
    put_number(&writer, "val-per-class", data->val_per_class);
    put_number(&writer, "subset-seed", data->subset_seed);
    put_number(&writer, "max-side", request->options->max_side);
    put_number(&writer, "quality", request->options->quality);
    put_number(&writer, "shard-size", request->options->shard_size);
    stk_json_end_object(&writer);
    if (staged != NULL) {
        put_text(&writer, "id_name", list->dataset->id_name);
        put_text(&writer, "label_name", list->dataset->label_name);
        put_number(&writer, "classes", staged->classes);
        put_number(&writer, "train", staged->train);
        put_number(&writer, "val", staged->val);
        put_number(&writer, "test", staged->test);
        put_number(&writer, "bad", staged->bad);
        put_number(&writer, "shards", staged->shards);
        put_number(&writer, "bytes", staged->bytes);
    }
    stk_json_end_object(&writer);
    stk_str_append(out, "\n");
}

static int64_t number_in(const stk_json *about, const char *key) {
    uint64_t value = 0;
    (void)stk_json_u64(stk_json_get(about, key), &value);
    return (int64_t)value;
}

stk_status stk_stage_read_about(const stk_stage_dest *dest, stk_staged *staged, stk_error *err) {
    char *path = stk_stage_dest_file(dest, STK_STAGED_ABOUT);
    stk_json *about = NULL;
    stk_status status = path != NULL ? stk_json_read(path, MOST_JSON_BYTES, &about, err)
                                     : STK_FAIL_MEMORY(err, dest->path);
    staged->classes = (int)number_in(about, "classes");
    staged->train = number_in(about, "train");
    staged->val = number_in(about, "val");
    staged->test = number_in(about, "test");
    staged->bad = number_in(about, "bad");
    staged->shards = number_in(about, "shards");
    staged->bytes = number_in(about, "bytes");
    stk_json_free(about);
    stk_mem_free(path);
    return status;
}

/* ---- tables ---- */

/* A table being written. */
typedef struct table {
    stk_file_writer *file;
    stk_str text; /* not written yet */
} table;

static stk_status open_table(table *t, const stk_stage_dest *dest, const char *name,
                             stk_error *err) {
    char *path = stk_stage_dest_file(dest, name);
    *t = (table){0};
    stk_status status =
        path != NULL ? stk_file_create(&t->file, path, err) : STK_FAIL_MEMORY(err, name);
    stk_mem_free(path);
    return status;
}

static stk_status flush(table *t, size_t at_least, stk_error *err) {
    if (!stk_str_ok(&t->text)) {
        return STK_FAIL_MEMORY(err, "a table");
    }
    if (t->text.length < at_least || t->text.length == 0) {
        return STK_OK;
    }
    stk_status status = stk_file_append(t->file, t->text.text, t->text.length, err);
    stk_str_clear(&t->text);
    return status;
}

/* Ends the table, also after a failure. */
static stk_status close_table(table *t, stk_status status, stk_error *err) {
    STK_THEN(status, flush(t, 0, err));
    if (status == STK_OK) {
        status = stk_file_commit(t->file, err);
    } else {
        stk_file_discard(t->file);
    }
    stk_str_free(&t->text);
    return status;
}

static void append_row(stk_str *out, const char *const *cells, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_str_append(out, i > 0 ? "," : "");
        stk_csv_append(out, cells[i]);
    }
    stk_str_append(out, "\n");
}

static stk_status write_samples(const stk_stage_dest *dest, const stk_staging_list *list,
                                const char *const *members, stk_error *err) {
    const stk_dataset *dataset = list->dataset;
    size_t picture = 0;
    table t;
    stk_status status = open_table(&t, dest, STK_STAGED_SAMPLES, err);
    if (status != STK_OK) {
        return status;
    }
    stk_str_append(&t.text, STK_STAGED_HEADER);
    if (dataset->part_column != NULL) {
        stk_str_append(&t.text, ",");
        stk_csv_append(&t.text, dataset->part_column);
    }
    stk_str_append(&t.text, "\n");
    for (int s = 0; s < STK_STAGE_SPLITS; s++) {
        const stk_sample_list *samples = stk_stage_samples(dataset, (stk_stage_split)s);
        for (size_t i = 0; status == STK_OK && i < samples->count; i++) {
            const stk_sample *sample = &samples->items[i];
            const char *member = sample->path != NULL ? members[picture++] : NULL;
            const char *cells[] = {stk_stage_split_names[s],
                                   sample->label >= 0 ? dataset->classes[sample->label] : "",
                                   sample->id,
                                   sample->path != NULL ? sample->path : "",
                                   member != NULL ? member : "",
                                   s == STK_STAGE_TRAIN ? stk_stage_part(dataset, sample) : ""};
            size_t count = STK_COUNT(cells);
            append_row(&t.text, cells, dataset->part_column != NULL ? count : count - 1);
            status = flush(&t, FLUSH_BYTES, err);
        }
    }
    return close_table(&t, status, err);
}

static stk_status write_classes(const stk_stage_dest *dest, const stk_dataset *dataset,
                                stk_error *err) {
    table t;
    stk_status status = open_table(&t, dest, "classes.txt", err);
    if (status != STK_OK) {
        return status;
    }
    for (int c = 0; c < dataset->class_count; c++) {
        stk_str_append(&t.text, dataset->classes[c]);
        stk_str_append(&t.text, "\n");
    }
    return close_table(&t, status, err);
}

static stk_status write_bad(const stk_stage_dest *dest, const stk_staging_list *list,
                            const stk_stage_bad_list *bad, stk_error *err) {
    table t;
    stk_status status = bad->count > 0 ? open_table(&t, dest, "bad_images.csv", err) : STK_OK;
    if (status != STK_OK || bad->count == 0) {
        return status;
    }
    stk_str_append(&t.text, "path,split,reason\n");
    for (size_t i = 0; i < bad->count; i++) {
        const stk_stage_picture *picture = &list->pictures[bad->items[i].picture];
        const char *cells[] = {picture->sample->path, stk_stage_split_names[picture->split],
                               bad->items[i].reason};
        append_row(&t.text, cells, STK_COUNT(cells));
    }
    return close_table(&t, status, err);
}

static stk_status write_text(const stk_stage_dest *dest, const char *name, const void *text,
                             size_t size, stk_error *err) {
    char *path = stk_stage_dest_file(dest, name);
    stk_status status =
        path != NULL ? stk_file_write(path, text, size, err) : STK_FAIL_MEMORY(err, name);
    stk_mem_free(path);
    return status;
}

static stk_status copy_template(const stk_stage_dest *dest, const stk_dataset *dataset,
                                stk_error *err) {
    stk_bytes bytes = {0};
    if (dataset->template_file == NULL) {
        return STK_OK;
    }
    stk_status status = stk_store_read(dataset->store, dataset->template_file, &bytes, err);
    STK_THEN(status, write_text(dest, "sample_submission.csv", bytes.data, bytes.size, err));
    stk_bytes_free(&bytes);
    return status;
}

stk_status stk_stage_write_tables(const stk_stage_dest *dest, const stk_staging_list *list,
                                  const stk_stage_request *request, const char *const *members,
                                  const stk_stage_bad_list *bad, const stk_staged *staged,
                                  stk_error *err) {
    stk_str about = {0};
    stk_status status = write_samples(dest, list, members, err);
    STK_THEN(status, write_classes(dest, list->dataset, err));
    STK_THEN(status, write_bad(dest, list, bad, err));
    STK_THEN(status, copy_template(dest, list->dataset, err));
    stk_stage_about(&about, list, request, staged);
    if (status == STK_OK && !stk_str_ok(&about)) {
        status = STK_FAIL_MEMORY(err, STK_STAGED_ABOUT);
    }
    STK_THEN(status, write_text(dest, STK_STAGED_ABOUT, about.text, about.length, err));
    stk_str_free(&about);
    return status;
}
