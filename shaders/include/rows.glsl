// A row computed by a whole workgroup: its maximum, and its sums by the scheme of NUMERICS.md,
// section 3. The shader defines the row's terms:
//
//     uint row_term(uint i);
//
// The terms of a chunk are added in sequence, so one thread adds each chunk. Terms may be
// expensive, so the whole group computes them into a tile of shared memory, and the threads of the
// chunks add them from there.
//
// Every thread of the group must call these functions with the same arguments. The group size is a
// power of two and at most 128.
#ifndef REE_GLSL_ROWS
#define REE_GLSL_ROWS

#include "chunks.glsl"

#define REE_ROW_TILE 2304u // in words: room for 8 whole chunks and their padding
#define REE_ROW_GROUP 128u

shared uint ree_row_tile[REE_ROW_TILE];
shared uint ree_row_results[REE_ROW_GROUP]; // one per thread
shared uint ree_row_total;

uint row_term(uint i);

// A row is processed in tiles: `at_once` chunks from chunk c0 on, `depth` terms of each from offset
// r0 on. Item j of a tile is term ree_row_place(...) of the row, if that is below the number of
// terms; otherwise there is no such item.
uint ree_row_depth(uint at_once) { return min(REE_CHUNK, REE_ROW_TILE / at_once - 1u); }
uint ree_row_place(uint c0, uint r0, uint depth, uint j) {
    uint r = r0 + j % depth;
    return r < REE_CHUNK ? (c0 + j / depth) * REE_CHUNK + r : 0xFFFFFFFFu;
}

// Returns the maximum of the group's values to every thread.
uint ree_row_max(uint value) {
    uint local = ree_local();
    ree_row_results[local] = value;
    memoryBarrierBuffer(); // the caller may overwrite row elements that other threads have read
    barrier();
    for (uint n = gl_WorkGroupSize.x / 2u; n > 0u; n /= 2u) {
        if (local < n) {
            value = ree_soft_max(value, ree_row_results[local + n]);
            ree_row_results[local] = value;
        }
        barrier();
    }
    uint result = ree_row_results[0];
    barrier();
    return result;
}

// Returns to every thread the chunk-sum of the row's n terms, or with `squares` the chunk-dot of
// (term, term). Calls row_term once per term.
uint ree_row_sum(uint n, bool squares) {
    uint local = ree_local(), size = gl_WorkGroupSize.x;
    uint n_chunks = (n + REE_CHUNK - 1u) / REE_CHUNK, total = 0u;
    for (uint c0 = 0u; c0 < n_chunks; c0 += size) {
        uint at_once = min(size, n_chunks - c0), depth = ree_row_depth(at_once), acc = 0u;
        for (uint r0 = 0u; r0 < REE_CHUNK; r0 += depth) {
            for (uint j = local; j < at_once * depth; j += size) {
                uint i = ree_row_place(c0, r0, depth, j);
                // One word of padding after each chunk avoids bank conflicts between threads.
                if (i < n) ree_row_tile[j + j / depth] = row_term(i);
            }
            barrier();
            uint first = (c0 + local) * REE_CHUNK + r0;
            if (local < at_once && first < n) {
                uint n_terms = min(min(depth, REE_CHUNK - r0), n - first);
                for (uint j = 0u; j < n_terms; j++) {
                    uint x = ree_row_tile[local * (depth + 1u) + j];
                    acc = squares ? ree_fma(x, x, acc) : ree_add(acc, x);
                }
            }
            barrier();
        }
        ree_row_results[local] = acc;
        barrier();
        if (local == 0u)
            for (uint c = 0u; c < at_once; c++) {
                uint next = c;
#if REE_PLANT == REE_PLANT_REORDERS
                if (REE_FORM_ADD != REE_INTEGER) next = at_once - 1u - c;
#endif
                total = ree_add(total, ree_row_results[next]);
            }
        barrier();
    }
    if (local == 0u) ree_row_total = ree_plus_zero(total);
    barrier();
    return ree_row_total;
}

#endif
