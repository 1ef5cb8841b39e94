// What a message between ranks looks like on the wire: a header of fixed size, the sizes of its
// parts, the parts. Integers are little-endian.
//
//      0  "ree-msg" and a NUL
//      8  u32 version of this format, 1
//     12  u32 kind
//     16  u32 rank of the sender
//     20  u32 rank of the receiver
//     24  u64 sequence number: of this sender's messages to this receiver on this channel, from 0
//     32  u64 step
//     40  u32 set
//     44  u32 number of parts
//     48  u64 bytes behind the header
//     56  16 bytes: the first of SHA-256("ree-message/1\0", bytes 0 ... 55, what is behind 72)
//
//     72  u64 size of each part
//
//         the parts, each followed by zeros up to a multiple of 8 bytes
//
// The checksum finds damage, not forgery: whoever can write into the connection of two ranks can
// make a message. Nothing in a message is believed before it is checked against what its receiver
// expects, and nothing is allocated by what one claims beyond the receiver's limit.
#ifndef REE_TRANSPORT_FRAME_H
#define REE_TRANSPORT_FRAME_H

#include "ree.h"

#define REE_FRAME_HEADER 72
#define REE_FRAME_LENGTH_AT 48 // of the bytes behind the header
#define REE_FRAME_VERSION 1
#define REE_FRAME_MAX_PARTS 4096

struct ree_part {
    const void *data;
    size_t nbytes;
};

struct ree_frame_fields {
    uint32_t kind, from, to;
    uint64_t sequence, step;
    uint32_t set, n_parts;
};

// Bytes of a whole frame with parts of these sizes.
size_t ree_frame_nbytes(const struct ree_part *parts, size_t n_parts);
// Makes a frame; malloc. n_parts of the fields counts.
enum ree_status ree_frame_make(const struct ree_frame_fields *fields, const struct ree_part *parts,
                               unsigned char **out_frame, size_t *out_nbytes,
                               struct ree_error *err);
// From a header alone, how long its frame is. REE_INVALID where it is no header of this version, or
// the frame is longer than `limit`.
enum ree_status ree_frame_measure(const unsigned char header[REE_FRAME_HEADER], size_t limit,
                                  size_t *out_nbytes, struct ree_error *err);
// Checks a whole frame (format, sizes, checksum) and gives its fields and its parts, which point
// into it; *out_parts is malloc. What the fields say is for the caller to check.
enum ree_status ree_frame_open(const unsigned char *frame, size_t nbytes,
                               struct ree_frame_fields *out_fields, struct ree_part **out_parts,
                               struct ree_error *err);

#endif
