// Counts what kernels execute, if $REE_EMULATOR_STATISTICS names a file, which gets JSON. It is
// written after a launch, at most once per second, and at the end of the process:
//
//   {"ree_softmax_rows": {"launches": 3, "blocks": 12, "blocks_run": 12, "instructions": 9310,
//                         "threads": 297920, "shared_wavefronts": 96, "global_sectors": 384,
//                         "sectors": {"ld.global.v4.f32": 256, ...},
//                         "opcodes": {"add.s32": 1200, ...}, "lines": {"118": 12, ...}}, ...}
//
// instructions, opcodes, lines (of the PTX): executed by warps; threads: by threads. A wavefront is
// an access to shared memory in one clock: 32 banks of 4 bytes. Accesses of 8 bytes are made for
// half a warp at a time, those of 16 bytes for a quarter. Sectors are the different 32-byte blocks
// of a warp's access to global memory. blocks: of the grids; blocks_run: those that were run, fewer
// with the option blocks=N; everything else counts these. After ree_emulator_statistics_label("a")
// the kernel's name is "a ree_softmax_rows".
#include "ptx_lanes.h"

#include "api.h"
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
    uint64_t launches, blocks, blocks_run, instructions, threads, wavefronts, sectors;
    std::map<std::string, uint64_t> opcodes, sectors_by_opcode;
    std::map<int, uint64_t> lines;
};
std::map<std::string, struct numbers> kernels;
std::string label;

// Opened when the library is loaded, because a program may later forbid itself to open files.
FILE *const file = [] {
    const char *name = getenv("REE_EMULATOR_STATISTICS");
    return name && *name ? fopen(name, "w") : NULL;
}();

std::string text_of(const std::string &key) {
    return key;
}
std::string text_of(int key) {
    return std::to_string(key);
}
template <class Key> void write_map(const char *name, const std::map<Key, uint64_t> &map) {
    const char *comma = "";
    fprintf(file, "\"%s\": {", name);
    for (auto &entry : map) {
        fprintf(file, "%s\"%s\": %llu", comma, text_of(entry.first).c_str(),
                (unsigned long long)entry.second);
        comma = ", ";
    }
    fprintf(file, "}");
}

void write_file() {
    rewind(file);
    const char *comma = "{";
    for (auto &k : kernels) {
        const struct numbers &n = k.second;
        fprintf(file,
                "%s\"%s\": {\"launches\": %llu, \"blocks\": %llu, \"blocks_run\": %llu, "
                "\"instructions\": %llu, \"threads\": %llu,\n  \"shared_wavefronts\": %llu, "
                "\"global_sectors\": %llu, ",
                comma, k.first.c_str(), (unsigned long long)n.launches,
                (unsigned long long)n.blocks, (unsigned long long)n.blocks_run,
                (unsigned long long)n.instructions, (unsigned long long)n.threads,
                (unsigned long long)n.wavefronts, (unsigned long long)n.sectors);
        write_map("sectors", n.sectors_by_opcode);
        fprintf(file, ",\n  ");
        write_map("opcodes", n.opcodes);
        fprintf(file, ",\n  ");
        write_map("lines", n.lines);
        fprintf(file, "}");
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
    struct numbers &k = kernels[label.empty() ? ptx->name : label + " " + ptx->name];
    k.launches++;
    k.blocks += n_blocks;
    const uint64_t most = ree_emulator::options.n_blocks;
    k.blocks_run += most ? std::min(n_blocks, most) : n_blocks;
    for (auto &i : ptx->code) {
        if (i.n_warps == 0) continue;
        k.instructions += i.n_warps;
        k.threads += i.n_lanes;
        k.wavefronts += i.n_wavefronts;
        k.sectors += i.n_sectors;
        k.opcodes[ptx->opcodes[i.opcode]] += i.n_warps;
        k.lines[i.line] += i.n_warps;
        if (i.n_sectors) k.sectors_by_opcode[ptx->opcodes[i.opcode]] += i.n_sectors;
        i.n_warps = i.n_lanes = i.n_wavefronts = i.n_sectors = 0;
    }
    write_at_times();
}

} // namespace ree_ptx

void ree_emulator_statistics_label(const char *text) {
    std::lock_guard<std::recursive_mutex> lock(ree_emulator::launches);
    ree_ptx::label = text;
}
