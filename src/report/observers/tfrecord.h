/*
 * tfrecord.h - inside the report room: what a TensorBoard event file is made of.
 *
 * Protobuf messages are appended field by field to a stk_str, which remembers a lack of memory; a
 * message within another is built by itself and then appended as bytes. A record is a message with
 * its length and checksums around it. Numbers are little-endian on every machine. Threads: safe.
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

/* The same for a message that was built by itself; its lack of memory is taken over. */
void stk_proto_message(stk_str *message, int field, const stk_str *inner);

/* Length, checksum of the length, message, checksum of the message. */
void stk_tfrecord_append(stk_str *file, const stk_str *message);

/* A CRC-32C as these files have it: turned and moved, so that sums of sums stay apart. */
uint32_t stk_tfrecord_crc(const void *bytes, size_t size);

#endif
