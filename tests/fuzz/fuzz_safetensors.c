/*
 * fuzz_safetensors.c - what the reader of weights accepts lies inside the file, without overlaps,
 * and is as large as its shape says.
 */
#include "fuzz.h"

#include <string.h>

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
};
FUZZ_PLAN(seeds)

static size_t dtype_bytes(const char *dtype) {
    size_t bits = strtoul(dtype + strcspn(dtype, "0123456789"), NULL, 10);
    return bits > 0 ? bits / 8 : 1; /* BOOL has no number */
}

static void check_file(const stk_tensor_file *file, size_t size) {
    size_t total = 0;
    for (size_t i = 0; i < file->count; i++) {
        const stk_tensor *tensor = &file->tensors[i];
        const char *data = tensor->data;
        FUZZ_REQUIRE(tensor->rank >= 0 && tensor->rank <= STK_TENSOR_MAX_RANK);
        FUZZ_REQUIRE(data >= file->buffer + 8 && data + tensor->bytes <= file->buffer + size);
        FUZZ_REQUIRE(stk_tensors_find(file, tensor->name) == tensor);
        uint64_t bytes = dtype_bytes(tensor->dtype);
        for (int d = 0; d < tensor->rank; d++) {
            bytes *= tensor->shape[d];
        }
        FUZZ_REQUIRE(bytes == tensor->bytes);
        if (i > 0) {
            const stk_tensor *before = &file->tensors[i - 1];
            FUZZ_REQUIRE((const char *)before->data + before->bytes == data);
        }
        /* Every byte can be read. */
        unsigned sum = 0;
        for (size_t b = 0; b < tensor->bytes; b++) {
            sum += (unsigned char)data[b];
        }
        FUZZ_REQUIRE(sum <= 255 * tensor->bytes);
        total += tensor->bytes;
    }
    FUZZ_REQUIRE(total + 8 <= size);
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
        FUZZ_REQUIRE(file.buffer == NULL && file.count == 0);
    }
    stk_tensors_free(&file);
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
    try_file(whole, 8 + size + NUMBERS);
    free(whole);
    return 0;
}
