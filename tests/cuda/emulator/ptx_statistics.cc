// Counts what kernels execute, if $REE_EMULATOR_STATISTICS names a file, which gets JSON. It is
// written every second and at the end of the process:
//
//   {"ree_softmax_rows": {"launches": 3, "blocks": 12, "instructions": 9310, "threads": 297920,
//                         "shared_wavefronts": 96, "global_sectors": 384,
//                         "opcodes": {"add.s32": 1200, ...}}, ...}
//
// instructions, opcodes: executed by warps; threads: by threads. A wavefront is an access to shared
// memory in one clock: 32 banks of 4 bytes. Accesses of 8 bytes are made for half a warp at a time,
// those of 16 bytes for a quarter. Sectors are the different 32-byte blocks of a warp's access to
// global memory.
#include "ptx_lanes.h"

#include "launch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace ree_ptx {

namespace {

struct numbers {
    uint64_t launches, blocks, instructions, threads, wavefronts, sectors;
    std::map<std::string, uint64_t> opcodes;
};
std::map<std::string, struct numbers> kernels;

// Opened when the library is loaded, because a program may later forbid itself to open files.
FILE *const file = [] {
    const char *name = getenv("REE_EMULATOR_STATISTICS");
    return name && *name ? fopen(name, "w") : NULL;
}();

void write_file() {
    rewind(file);
    const char *comma = "{";
    for (auto &k : kernels) {
        fprintf(file,
                "%s\"%s\": {\"launches\": %llu, \"blocks\": %llu, \"instructions\": %llu, "
                "\"threads\": %llu,\n  \"shared_wavefronts\": %llu, \"global_sectors\": %llu, "
                "\"opcodes\": {",
                comma, k.first.c_str(), (unsigned long long)k.second.launches,
                (unsigned long long)k.second.blocks, (unsigned long long)k.second.instructions,
                (unsigned long long)k.second.threads, (unsigned long long)k.second.wavefronts,
                (unsigned long long)k.second.sectors);
        const char *inner = "";
        for (auto &o : k.second.opcodes) {
            fprintf(file, "%s\"%s\": %llu", inner, o.first.c_str(), (unsigned long long)o.second);
            inner = ", ";
        }
        fprintf(file, "}}");
        comma = ",\n";
    }
    fprintf(file, "%s}\n", kernels.empty() ? "{" : "");
    fflush(file);
    if (ftruncate(fileno(file), ftell(file)) != 0) perror("REE_EMULATOR_STATISTICS");
}

} // namespace

bool counts_memory() {
    return file != NULL;
}

void count_shared(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes) {
    const uint32_t step = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
    for (uint32_t first = 0; first < LANES; first += step) {
        uint64_t words[LANES];
        size_t n = 0, most = 0, in_bank[32] = {0};
        for (uint32_t l = first; l < first + step; l++)
            for (uint32_t b = 0; (lanes >> l & 1) && b < bytes; b += 4)
                words[n++] = (at[l] + b) / 4;
        std::sort(words, words + n);
        n = (size_t)(std::unique(words, words + n) - words);
        for (size_t k = 0; k < n; k++)
            most = std::max(most, ++in_bank[words[k] % 32]);
        i.n_wavefronts += most;
    }
}

void count_global(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes) {
    uint64_t sectors[2 * LANES];
    size_t n = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        sectors[n++] = at[l] / 32;
        sectors[n++] = (at[l] + bytes - 1) / 32;
    }
    std::sort(sectors, sectors + n);
    i.n_sectors += (uint64_t)(std::unique(sectors, sectors + n) - sectors);
}

// A process may end without exit().
static void write_at_times() {
    static std::chrono::steady_clock::time_point last;
    const auto time = std::chrono::steady_clock::now();
    if (time - last < std::chrono::seconds(1)) return;
    last = time;
    write_file();
}

void keep_statistics(const struct ree_emulator_ptx *ptx, uint64_t n_blocks) {
    if (!file) return;
    if (kernels.empty()) atexit(write_file);
    struct numbers &k = kernels[ptx->name];
    k.launches++;
    k.blocks += n_blocks;
    for (auto &i : ptx->code) {
        if (i.n_warps == 0) continue;
        k.instructions += i.n_warps;
        k.threads += i.n_lanes;
        k.wavefronts += i.n_wavefronts;
        k.sectors += i.n_sectors;
        k.opcodes[ptx->opcodes[i.opcode]] += i.n_warps;
        i.n_warps = i.n_lanes = i.n_wavefronts = i.n_sectors = 0;
    }
    write_at_times();
}

} // namespace ree_ptx
