// Parameters that say how large twins are, and which properties of a dispatch they keep.
#ifndef REE_DEVICE_SELFTEST_TWIN_SIZE_H
#define REE_DEVICE_SELFTEST_TWIN_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct ree_twin_size {
    uint32_t elements; // approximate elements of elementwise RepOps
    // Approximate columns of a product's result. With keeps_ones or alignment, a product with fewer
    // columns keeps its number of columns.
    uint32_t columns;
    uint32_t length; // terms of a sum, if alignment is 0
    // Rows of softmax and norm with at least long_from elements get long_length elements, if
    // alignment is 0. Without keeps_ones all rows do.
    uint32_t long_length;
    uint32_t long_from;
    // Sums that fit one chunk also fit one chunk in the twin, because other code runs for them.
    bool one_chunk;
    // Dimensions of size 1 keep their size, and an attention with few queries (few_queries) keeps
    // their number, even if that selects no code. A non-zero `alignment` implies this.
    bool keeps_ones;
    uint32_t few_rows;    // products with fewer rows than this keep their number of rows
    uint32_t rows;        // approximate rows of the twin of a product with at least few_rows rows
    uint32_t few_queries; // maximum queries per head of an attention with few queries
    uint32_t keys;        // keys of an attention, if alignment is 0; 0: half the length of a row
    // A power of two, or 0 to keep none of the following properties:
    // - the greatest common divisor of lengths, strides and offsets with `alignment` (or with 16)
    // - the position of operands within 16 bytes
    // - the number of chunks of a sum, if it is at most 9
    // - whether a size is smaller or larger than one tile
    uint32_t alignment;
    bool small; // the device is slow: products are smaller than a full tile
};

#endif
