// Makes and reads the bytes of a message between ranks, called a frame: a header of fixed size, the
// sizes of the message's parts, then the parts. Integers are little-endian. Offsets in bytes:
//
//      0  "ree-msg" and a NUL
//      8  u32 version of this format, 1
//     12  u32 kind (enum ree_message_kind)
//     16  u32 rank of the sender
//     20  u32 rank of the receiver
//     24  u64 sequence number: from 0, per sender, receiver and channel
//     32  u64 step
//     40  u32 cache slot
//     44  u32 number of parts
//     48  u64 bytes after the header
//     56  the first 16 bytes of SHA-256("ree-message/1\0" | bytes 0 ... 55 | bytes from 72 on)
//
//     72  u64 size of each part
//
//         the parts, each followed by zeros up to a multiple of 8 bytes
//
// The checksum detects corruption, not forgery: whoever can write to the connection between two
// ranks can forge a message. A receiver checks everything in a message against its expectations
// before using it, and never allocates more than its own limit.
#ifndef REE_TRANSPORT_FRAME_H
#define REE_TRANSPORT_FRAME_H

#include "ree.h"

#define REE_FRAME_HEADER 72
#define REE_FRAME_LENGTH_AT 48 // offset of the number of bytes after the header
#define REE_FRAME_VERSION 1
#define REE_FRAME_MAX_PARTS 4096

struct ree_part {
    const void *data;
    size_t nbytes;
};

struct ree_frame_fields {
    uint32_t kind, from, to;
    uint64_t sequence, step;
    uint32_t slot, n_parts;
};

// Returns the size in bytes of a whole frame with these parts.
size_t ree_frame_nbytes(const struct ree_part *parts, size_t n_parts);
// Makes a frame with copies of parts[fields->n_parts]. The caller releases it with ree_free. Fails
// with REE_UNSUPPORTED if there are more than REE_FRAME_MAX_PARTS parts.
enum ree_status ree_frame_make(const struct ree_frame_fields *fields, const struct ree_part *parts,
                               unsigned char **out_frame, size_t *out_nbytes,
                               struct ree_error *err);
// Reads a frame's total size in bytes from its header. Fails with REE_INVALID if it is not a header
// of this version or the frame is longer than `limit`.
enum ree_status ree_frame_measure(const unsigned char header[REE_FRAME_HEADER], size_t limit,
                                  size_t *out_nbytes, struct ree_error *err);
// Checks a whole frame of `nbytes` bytes (format, sizes, checksum) and returns its fields and
// parts. The parts point into the frame; the caller releases *out_parts with ree_free. Does not
// check the values of the fields. Fails with REE_INVALID if a check fails.
enum ree_status ree_frame_open(const unsigned char *frame, size_t nbytes,
                               struct ree_frame_fields *out_fields, struct ree_part **out_parts,
                               struct ree_error *err);

#endif
