/*
 * checksum.h - a fast 64-bit checksum of bytes, and CRC-32C for other programs' file formats.
 *
 * The checksum finds damage and tells contents apart: every change of bytes or length changes it,
 * but for a chance of 1 in 2^64. It is no protection against someone who wants two contents to
 * agree. The value is the same on all machines and in all versions: it is written to disk. Threads:
 * safe.
 */
#ifndef STK_BASE_NUMBERS_CHECKSUM_H
#define STK_BASE_NUMBERS_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

/* data may be NULL when size is 0, and need not be aligned. */
uint64_t stk_checksum(const void *data, size_t size);

/* The same with a seed: checksums of different seeds are unrelated. */
uint64_t stk_checksum_seeded(const void *data, size_t size, uint64_t seed);

/* Of a whole file: its pieces of 1 MiB in turn, each seeded with the checksum before it. */
STK_CHECKED stk_status stk_checksum_file(const char *path, uint64_t *sum, stk_error *err);

/* CRC-32C (Castagnoli), as iSCSI and TensorFlow's records have it; far slower than the above. */
uint32_t stk_crc32c(const void *data, size_t size);

#endif
