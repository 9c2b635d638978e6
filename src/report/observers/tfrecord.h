/*
 * tfrecord.h - inside the report room: the format of a TensorBoard event file.
 *
 * Protobuf messages are appended field by field to a stk_str, which remembers a lack of memory. A
 * message within another is built first and then appended as bytes. A record is a message between
 * its length and checksums. Numbers are little-endian on every machine. Threads: safe.
 */
#ifndef STK_REPORT_OBSERVERS_TFRECORD_H
#define STK_REPORT_OBSERVERS_TFRECORD_H

#include <stdint.h>

#include "base/str.h"

void stk_proto_int(stk_str *message, int field, int64_t value);
void stk_proto_float(stk_str *message, int field, float value);
void stk_proto_double(stk_str *message, int field, double value);
void stk_proto_bytes(stk_str *message, int field, const void *bytes, size_t size);
void stk_proto_text(stk_str *message, int field, const char *text);

/* A message within a message; a lack of memory of `inner` becomes that of `message`. */
void stk_proto_message(stk_str *message, int field, const stk_str *inner);

/* Length, checksum of the length, message, checksum of the message. */
void stk_tfrecord_append(stk_str *file, const stk_str *message);

/* The masked CRC-32C of the format: rotated and offset, so that a sum over sums differs. */
uint32_t stk_tfrecord_crc(const void *bytes, size_t size);

#endif
