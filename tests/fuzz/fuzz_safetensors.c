/*
 * fuzz_safetensors.c - what the reader of weights accepts lies inside the file, without overlaps,
 * and is as large as its shape says; numbers of any type become as many floats; and what is loaded
 * into a network fills it.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weights/pretrained.h"
#include "weights/safetensors.h"

#define NUMBERS 24 /* bytes of tensors behind a header that is given alone */

/* Whole files and headers alone: an edit of a whole file's header mostly spoils its length. */
static const fuzz_seed seeds[] = {
    FUZZ_SEED("\x3d\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}"
              "     \0\0\x80\x3f\0\0\0\x40"),
    FUZZ_SEED("\x02\0\0\0\0\0\0\0{}"),
    FUZZ_SEED("{\"__metadata__\":{\"format\":\"pt\"},\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,"
              "2],\"data_offsets\":[0,16]},\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[2],"
              "\"data_offsets\":[16,24]}}"),
    FUZZ_SEED("{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[21,24]},\"a\":{\"dtype\":"
              "\"I8\",\"shape\":[7,3],\"data_offsets\":[0,21]}}"),
    FUZZ_SEED("{\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"z\":{\"dtype\":"
              "\"BF16\",\"shape\":[0,9],\"data_offsets\":[8,8]},\"h\":{\"dtype\":\"F16\",\"shape\":"
              "[1,1,1,1,1,1,1,8],\"data_offsets\":[8,24]}}"),
    /* What fits the network below: as it is, with a prefix, with another head. */
    FUZZ_SEED("{\"fc.weight\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
              "\"fc.bias\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]},"
              "\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[16,"
              "24]}}"),
    FUZZ_SEED("{\"module.fc.weight\":{\"dtype\":\"F16\",\"shape\":[3,3],\"data_offsets\":[0,18]}"
              ",\"module.fc.bias\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[18,24]},"
              "\"__metadata__\":{\"model\":\"resnet18\"}}"),
};
FUZZ_PLAN(seeds)

static size_t dtype_bytes(const char *dtype) {
    size_t bits = strtoul(dtype + strcspn(dtype, "0123456789"), NULL, 10);
    return bits > 0 ? bits / 8 : 1; /* BOOL has no number */
}

/* What is converted on its way is as long as the shape says, and every byte can be read. */
static void check_numbers(const stk_tensor_file *file, const stk_tensor *tensor) {
    size_t count = (size_t)stk_tensor_count(tensor);
    unsigned char *bytes = malloc((size_t)tensor->bytes + 1);
    FUZZ_REQUIRE(bytes != NULL);
    FUZZ_REQUIRE(stk_tensors_read(file, tensor, bytes, NULL) == STK_OK);
    if (stk_tensor_is_float(tensor)) {
        float *values = malloc(count * sizeof *values + 1);
        FUZZ_REQUIRE(values != NULL);
        FUZZ_REQUIRE(stk_tensors_read_floats(file, tensor, values, NULL) == STK_OK);
        if (strcmp(tensor->dtype, "F32") == 0 && count > 0) {
            FUZZ_REQUIRE(memcmp(values, bytes, count * sizeof *values) == 0);
        }
        for (size_t i = 0; i < count && strcmp(tensor->dtype, "F16") == 0; i++) {
            uint16_t half = (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
            bool negative = signbit(values[i]) != 0;
            FUZZ_REQUIRE(negative == (half >> 15 != 0));
            FUZZ_REQUIRE(isfinite(values[i]) == ((half & 0x7C00) != 0x7C00));
        }
        free(values);
    }
    free(bytes);
}

static void check_file(const stk_tensor_file *file, size_t size) {
    uint64_t total = 0;
    for (size_t i = 0; i < file->count; i++) {
        const stk_tensor *tensor = &file->tensors[i];
        FUZZ_REQUIRE(tensor->rank >= 0 && tensor->rank <= STK_TENSOR_MAX_RANK);
        FUZZ_REQUIRE(tensor->offset == total && file->start >= 8);
        FUZZ_REQUIRE(file->start + tensor->offset + tensor->bytes <= size);
        FUZZ_REQUIRE(stk_tensors_find(file, tensor->name) == tensor);
        uint64_t bytes = dtype_bytes(tensor->dtype);
        for (int d = 0; d < tensor->rank; d++) {
            bytes *= tensor->shape[d];
        }
        FUZZ_REQUIRE(bytes == tensor->bytes);
        FUZZ_REQUIRE(stk_tensor_count(tensor) * dtype_bytes(tensor->dtype) == tensor->bytes);
        check_numbers(file, tensor);
        total += tensor->bytes;
    }
    FUZZ_REQUIRE(file->start + total == size);
    stk_tensors_note(file, "format");
}

static void try_file(const void *bytes, size_t size) {
    stk_tensor_file file;
    stk_error err = {0};
    stk_status status = stk_tensors_parse(&file, "input", bytes, size, &err);
    if (status == STK_OK) {
        check_file(&file, size);
    } else {
        FUZZ_REQUIRE(status == STK_ERR_DATA && err.message[0] != '\0');
        FUZZ_REQUIRE(file.header == NULL && file.tensors == NULL && file.count == 0);
    }
    stk_tensors_close(&file);
}

/* A small network; the file may be taken for its weights. */
static const stk_graph *network(void) {
    static stk_graph *graph;
    if (graph == NULL) {
        FUZZ_REQUIRE(stk_graph_new(&graph, 8, 2, NULL) == STK_OK);
        int x = stk_graph_avg_pool(graph, stk_graph_input(graph));
        x = stk_graph_linear(graph, x, "fc", 2);
        FUZZ_REQUIRE(stk_graph_finish(graph, x, NULL) == STK_OK);
    }
    return graph;
}

struct stk_state {
    int written;
};

static stk_status write_param(stk_state *state, stk_tensor_kind kind, int param,
                              const float *values, stk_error *err) {
    volatile float last = values[network()->params[param].count - 1];
    (void)last;
    (void)err;
    FUZZ_REQUIRE(kind == STK_TENSOR_VALUE);
    state->written++;
    return STK_OK;
}

static void try_weights(const void *bytes, size_t size) {
    static const stk_backend backend = {.name = "none", .state_write = write_param};
    stk_pretrained_report report;
    stk_state state = {0};
    stk_error err = {0};
    char path[64];
    int fd = memfd_create("weights", MFD_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    stk_status status =
        stk_pretrained_load(path, "resnet50", &backend, &state, network(), &report, &err);
    if (status == STK_OK) {
        /* Both parameters are the head's: a new head is written as zeros. */
        FUZZ_REQUIRE(state.written == 2 && report.converted <= report.tensors);
        FUZZ_REQUIRE(report.head_anew ? report.tensors == 0 : report.tensors == 2);
    } else {
        FUZZ_REQUIRE(status == STK_ERR_DATA && err.message[0] != '\0' && state.written == 0);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_file(data, size);
    uint8_t *whole = calloc(8 + size + NUMBERS, 1);
    FUZZ_REQUIRE(whole != NULL);
    for (int i = 0; i < 8; i++) {
        whole[i] = (uint8_t)((uint64_t)size >> (8 * i));
    }
    if (size > 0) {
        memcpy(whole + 8, data, size);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        whole[8 + size + i] = (uint8_t)(i * 37 + size);
    }
    try_file(whole, 8 + size + NUMBERS);
    try_weights(whole, 8 + size + NUMBERS);
    free(whole);
    return 0;
}
