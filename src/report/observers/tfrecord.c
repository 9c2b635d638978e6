/* tfrecord.c - protobuf's wire format and TensorFlow's records, as far as they are needed. */
#include "report/observers/tfrecord.h"

#include <string.h>

#include "base/numbers/checksum.h"

/* How a field's value is laid out. */
enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2, WIRE_32_BITS = 5 };

#define CRC_DELTA UINT32_C(0xA282EAD8)

static void append_little(stk_str *out, uint64_t value, size_t bytes) {
    uint8_t little[sizeof value];
    for (size_t i = 0; i < bytes; i++) {
        little[i] = (uint8_t)(value >> 8 * i);
    }
    stk_str_append_bytes(out, little, bytes);
}

/* Seven bits a byte, the lowest first; all but the last byte have the high bit set. */
static void append_varint(stk_str *out, uint64_t value) {
    uint8_t bytes[10];
    size_t count = 0;
    while (value >= 0x80) {
        bytes[count++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[count++] = (uint8_t)value;
    stk_str_append_bytes(out, bytes, count);
}

static void append_key(stk_str *out, int field, int wire) {
    append_varint(out, (uint64_t)field << 3 | (uint64_t)wire);
}

void stk_proto_int(stk_str *message, int field, int64_t value) {
    append_key(message, field, WIRE_VARINT);
    append_varint(message, (uint64_t)value);
}

void stk_proto_float(stk_str *message, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_key(message, field, WIRE_32_BITS);
    append_little(message, bits, sizeof bits);
}

void stk_proto_double(stk_str *message, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_key(message, field, WIRE_64_BITS);
    append_little(message, bits, sizeof bits);
}

void stk_proto_bytes(stk_str *message, int field, const void *bytes, size_t size) {
    append_key(message, field, WIRE_BYTES);
    append_varint(message, size);
    stk_str_append_bytes(message, bytes, size);
}

void stk_proto_text(stk_str *message, int field, const char *text) {
    stk_proto_bytes(message, field, text, strlen(text));
}

void stk_proto_message(stk_str *message, int field, const stk_str *inner) {
    stk_proto_bytes(message, field, stk_str_text(inner), inner->length);
    message->failed = message->failed || !stk_str_ok(inner);
}

void stk_tfrecord_append(stk_str *file, const stk_str *message) {
    size_t start = file->length;
    append_little(file, message->length, sizeof(uint64_t));
    if (stk_str_ok(file)) {
        append_little(file, stk_tfrecord_crc(file->text + start, sizeof(uint64_t)), 4);
    }
    stk_str_append_bytes(file, stk_str_text(message), message->length);
    append_little(file, stk_tfrecord_crc(stk_str_text(message), message->length), 4);
    file->failed = file->failed || !stk_str_ok(message);
}

uint32_t stk_tfrecord_crc(const void *bytes, size_t size) {
    uint32_t crc = stk_crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + CRC_DELTA;
}
