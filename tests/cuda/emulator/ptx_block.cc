// Runs the warps of a block. Threads of a warp with the same next instruction are a group, which
// executes it together. A branch may divide a group; groups that meet become one. The group that is
// furthest behind runs first: in the innermost call, then at the lowest instruction.
#include "ptx_lanes.h"

#include "launch.h"
#include "threads.h"

#include <stdio.h>

using namespace ree_emulator;

namespace ree_ptx {

namespace {

struct stopped {}; // thrown by a failure

struct ree_emulator_ptx *ptx;
std::vector<struct warp> block_warps;
std::vector<unsigned char> params;

int depth_of(const struct warp &w, int frame) {
    return frame < 0 ? 0 : w.frames[(size_t)frame].depth;
}

// Joins groups that have met, and returns the group that runs next, or NULL if all wait.
struct group *choose(struct warp &w) {
    struct group *best = NULL;
    for (size_t a = 0; a < w.groups.size(); a++)
        for (size_t b = w.groups.size() - 1; b > a; b--)
            if (w.groups[a].at == w.groups[b].at && w.groups[a].frame == w.groups[b].frame) {
                w.groups[a].lanes |= w.groups[b].lanes;
                w.groups[a].waits = false;
                w.groups.erase(w.groups.begin() + (long)b);
            }
    for (auto &g : w.groups) {
        if (g.waits) continue;
        if (!best || depth_of(w, g.frame) > depth_of(w, best->frame) ||
            (depth_of(w, g.frame) == depth_of(w, best->frame) && g.at < best->at))
            best = &g;
    }
    return best;
}

void split_group(struct warp &w, struct group &g, uint32_t at, uint32_t lanes) {
    struct group other = {at, lanes, g.frame, false};
    g.lanes &= ~lanes;
    w.groups.push_back(other); // invalidates g
}

void leave(struct warp &w, struct group &g, uint32_t lanes) {
    w.left &= ~lanes;
    g.lanes &= ~lanes;
    if (g.lanes == 0) w.groups.erase(w.groups.begin() + (&g - w.groups.data()));
    for (auto &other : w.groups)
        other.waits = false;
    if (w.left == 0) w.state = DONE;
}

void copy_parameters(struct warp &w, const std::vector<struct parameter> &to,
                     const std::vector<struct parameter> &from, uint32_t lanes) {
    for (size_t k = 0; k < to.size() && k < from.size(); k++)
        each(lanes, [&](uint32_t l) {
            memcpy(w.params + to[k].at * LANES + l * to[k].size,
                   w.params + from[k].at * LANES + l * from[k].size,
                   to[k].size < from[k].size ? to[k].size : from[k].size);
        });
}

void call_host(struct warp &w, const struct call &call, host_function *function, uint32_t lanes) {
    each(lanes, [&](uint32_t l) {
        uint64_t args[3] = {0}, result;
        for (size_t a = 0; a < call.args.size() && a < 3; a++)
            memcpy(&args[a], w.params + call.args[a].at * LANES + l * call.args[a].size, 8);
        result = function(args);
        if (!call.results.empty())
            memcpy(w.params + call.results[0].at * LANES + l * call.results[0].size, &result, 8);
    });
}

// Executes an instruction for each set of threads with the same mask, if all threads of the mask
// that have not exited are in `lanes`. Returns the threads that executed it.
uint32_t converge(struct warp &w, const struct instr &i, uint32_t lanes) {
    const uint32_t *mask = row<uint32_t>(w, i.mask);
    uint32_t ready = 0;
    for (uint32_t rest = lanes; rest;) {
        const uint32_t first = (uint32_t)__builtin_ctz(rest), members = mask[first] & w.left;
        uint32_t same = 0;
        for (uint32_t l = first; l < LANES; l++)
            if ((rest >> l & 1) && mask[l] == mask[first]) same |= 1u << l;
        rest &= ~same;
        if (!(mask[first] >> first & 1)) {
            enter(w, i);
            enter_lane(w, first);
            fail("a warp operation whose mask is without the thread");
        }
        if (members & ~same) continue; // some are not here yet
        i.run(w, i, members);
        ready |= members;
    }
    return ready;
}

// Runs a group until it divides, waits, or meets another group.
void run_group(struct warp &w, struct group &g) {
    const struct instr *code = ptx->code.data();
    uint32_t at = g.at, limit = ~0u;
    const uint32_t lanes = g.lanes;
    const bool alone = w.groups.size() == 1;
    for (auto &other : w.groups)
        if (other.at > at && other.at < limit) limit = other.at;
    for (;;) {
        if (at == limit) {
            g.at = at;
            return;
        }
        const struct instr &i = code[at];
        uint32_t active = lanes;
        if (i.is_guarded) {
            const uint32_t p = w.predicates[i.guard];
            active &= i.if_not ? ~p : p;
        }
        i.n_warps++;
        i.n_lanes += (uint32_t)__builtin_popcount(active);
        if (i.flow == PLAIN) {
            if (active) i.run(w, i, active);
            at++;
            continue;
        }
        if (active == 0) {
            at++;
            continue;
        }
        if (active != lanes) { // divides
            g.at = at + 1;
            if (i.flow == EXIT) return leave(w, g, active);
            return split_group(w, g, i.flow == BRANCH ? i.target : at, active);
        }
        switch (i.flow) {
        case BRANCH:
            at = i.target;
            if (alone) continue;
            g.at = at;
            return;
        case EXIT: return leave(w, g, active);
        case CALL: {
            const struct call &call = ptx->calls[i.target];
            const struct function &f = ptx->functions[call.function];
            if (f.host) {
                call_host(w, call, f.host, active);
                at++;
                continue;
            }
            bool in_call = false;
            for (auto &other : w.groups)
                in_call = in_call || other.frame >= 0;
            if (!in_call) w.frames.clear(); // of completed calls
            copy_parameters(w, f.args, call.args, active);
            w.frames.push_back({&i, at + 1, g.frame, depth_of(w, g.frame) + 1});
            g.frame = (int)w.frames.size() - 1;
            g.at = f.first;
            return;
        }
        case RETURN: {
            const struct frame frame = w.frames[(size_t)g.frame];
            const struct call &call = ptx->calls[frame.call->target];
            copy_parameters(w, call.results, ptx->functions[call.function].results, active);
            g.frame = frame.caller;
            g.at = frame.back;
            return;
        }
        case CONVERGE: {
            const uint32_t done = converge(w, i, active);
            if (done == lanes) {
                at++;
                continue;
            }
            g.at = at;
            g.waits = true;
            if (done) split_group(w, g, at + 1, done);
            return;
        }
        default: // BARRIER
            g.at = at;
            if (active != w.left) {
                g.waits = true;
                return;
            }
            g.at = at + 1;
            w.barrier = &i;
            w.state = AT_BARRIER;
            return;
        }
    }
}

std::string place_of(const struct instr &i) {
    return ptx->opcodes[i.opcode] + " in line " + std::to_string(i.line);
}

// All groups of the warp wait.
void report_deadlock(const struct warp &w) {
    const struct group &a = w.groups[0], &b = w.groups[w.groups.size() - 1];
    const uint32_t ta = w.number * LANES + (uint32_t)__builtin_ctz(a.lanes),
                   tb = w.number * LANES + (uint32_t)__builtin_ctz(b.lanes);
    current_line = 0;
    fail_outside("deadlock: thread (%u,%u,%u) waits at %s for other threads of its warp; thread "
                 "(%u,%u,%u) is at %s",
                 threads[ta].index.x, threads[ta].index.y, threads[ta].index.z,
                 place_of(ptx->code[a.at]).c_str(), threads[tb].index.x, threads[tb].index.y,
                 threads[tb].index.z, place_of(ptx->code[b.at]).c_str());
}

// Lets groups continue that wait at barriers of the warp in different places, with the same mask.
bool join_barriers(struct warp &w) {
    for (auto &first : w.groups) {
        const struct instr &i = ptx->code[first.at];
        if (i.run != warp_barrier) continue;
        const uint32_t mask = row<uint32_t>(w, i.mask)[__builtin_ctz(first.lanes)];
        uint32_t members = 0;
        for (auto &g : w.groups)
            if (ptx->code[g.at].run == warp_barrier)
                for (uint32_t rest = g.lanes; rest; rest &= rest - 1) {
                    const uint32_t l = (uint32_t)__builtin_ctz(rest);
                    if (row<uint32_t>(w, ptx->code[g.at].mask)[l] == mask) members |= 1u << l;
                }
        if ((mask & w.left) != members) continue;
        warp_barrier(w, i, members);
        for (size_t k = w.groups.size(); k-- > 0;) {
            struct group &g = w.groups[k];
            const uint32_t lanes = g.lanes & members;
            if (!lanes) continue;
            g.waits = g.lanes != lanes;
            if (g.waits)
                split_group(w, g, g.at + 1, lanes);
            else
                g.at++;
        }
        return true;
    }
    return false;
}

void run_warp(struct warp &w) {
    while (w.state == RUNNING) {
        struct group *g = choose(w);
        if (!g && join_barriers(w)) continue;
        if (!g) return report_deadlock(w);
        in_thread = true;
        try {
            run_group(w, *g);
        } catch (const struct stopped &) {
        }
        in_thread = false;
        if (failed) return;
    }
}

// Lets the block continue if all remaining warps are at the same barrier. Returns false if no warp
// remains, or after a failure.
bool complete_barrier() {
    const struct warp *first = NULL;
    uint32_t n = 0, n_true = 0;
    for (auto &w : block_warps) {
        if (w.state == DONE) continue;
        if (!first) first = &w;
        const struct instr &a = *first->barrier, &b = *w.barrier;
        if (a.number != b.number || a.n != b.n) {
            current_line = 0;
            fail_outside("deadlock: warp %u waits at %s, warp %u at %s", first->number,
                         place_of(a).c_str(), w.number, place_of(b).c_str());
            return false;
        }
        n += (uint32_t)__builtin_popcount(w.left);
        if (b.n == 0) continue;
        const uint32_t p = w.predicates[b.from[0]];
        n_true += (uint32_t)__builtin_popcount((b.is_signed ? ~p : p) & w.left);
    }
    if (!first) return false;
    for (auto &w : block_warps) {
        if (w.state == DONE) continue;
        const struct instr &b = *w.barrier;
        w.state = RUNNING;
        if (b.n == 0) continue;
        if (b.n == 3) {
            each(w.left, [&](uint32_t l) { row<uint32_t>(w, b.to[0])[l] = n_true; });
            continue;
        }
        uint32_t &to = w.predicates[b.to[0]];
        to = (to & ~w.left) | ((b.n == 1 ? n_true != 0 : n_true == n) ? w.left : 0);
    }
    advance_time();
    now.barrier = time_of(now.now);
    return true;
}

void run_block() {
    const uint32_t index[] = {blockIdx.x, blockIdx.y, blockIdx.z};
    begin_memory_of_block();
    for (auto &w : block_warps) {
        const uint32_t n = n_threads - w.number * LANES;
        w.left = n < LANES ? (1u << n) - 1 : ALL_LANES;
        w.state = RUNNING;
        w.frames.clear();
        w.groups.assign(1, {0, w.left, -1, false});
        for (uint32_t d = 0; d < 3; d++)
            for (uint32_t l = 0; l < LANES; l++)
                row<uint32_t>(w, (CTAID + d) * ROW)[l] = index[d];
    }
    do {
        uint8_t order[32];
        permute(order, (uint32_t)block_warps.size());
        for (uint32_t i = 0; i < block_warps.size() && !failed; i++)
            run_warp(block_warps[order[i]]);
    } while (!failed && complete_barrier());
}

[[noreturn]] void stop() {
    throw stopped();
}

// Bytes of a warp's registers, then its predicates.
uint64_t warp_bytes() {
    return (ptx->register_bytes + 4 * (uint64_t)ptx->n_predicates + 255) / 256 * 256;
}

// Gives every warp registers, with constants and special registers.
bool prepare(uint32_t n_warps, const uint32_t grid[3], const uint32_t block[3]) {
    if (!ptx->memory) ptx->memory = (unsigned char *)map_memory(32 * warp_bytes());
    if (!ptx->memory) return false;
    params.resize((size_t)ptx->param_bytes * LANES * n_warps + 16);
    block_warps.resize(n_warps);
    for (uint32_t k = 0; k < n_warps; k++) {
        struct warp &w = block_warps[k];
        w.number = k;
        w.registers = ptx->memory + k * warp_bytes();
        w.predicates = (uint32_t *)(w.registers + ptx->register_bytes);
        w.params = params.data() + (size_t)ptx->param_bytes * LANES * k;
        if (k >= ptx->n_prepared) {
            // A register that the kernel has not written must not have a usable value.
            memset(w.registers, 0xCD, warp_bytes());
            for (auto &c : ptx->constants)
                for (uint32_t l = 0; l < LANES; l++)
                    if (c.is_wide)
                        row<uint64_t>(w, c.row)[l] = c.value;
                    else
                        row<uint32_t>(w, c.row)[l] = (uint32_t)c.value;
            w.predicates[0] = 0;
            w.predicates[1] = ALL_LANES;
            ptx->n_prepared = k + 1;
        }
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t t = k * LANES + l, index[] = {t % block[0], t / block[0] % block[1],
                                                         t / block[0] / block[1]};
            for (uint32_t d = 0; d < 3; d++) {
                row<uint32_t>(w, (TID + d) * ROW)[l] = index[d];
                row<uint32_t>(w, (NTID + d) * ROW)[l] = block[d];
                row<uint32_t>(w, (NCTAID + d) * ROW)[l] = grid[d];
            }
            row<uint32_t>(w, LANE_ID * ROW)[l] = l;
            row<uint32_t>(w, WARP_ID * ROW)[l] = k;
        }
    }
    return true;
}

void begin_launch() {
    begin_memory(ptx);
}

} // namespace

} // namespace ree_ptx

using namespace ree_ptx;

int ree_emulator_ptx_run(struct ree_emulator_ptx *kernel, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, const void *args,
                         char *error, size_t size) {
    std::lock_guard<std::recursive_mutex> lock(launches);
    const uint64_t n = (uint64_t)block[0] * block[1] * block[2];
    ptx = kernel;
    if (n == 0 || n > 1024 || !prepare((uint32_t)(n + 31) / 32, grid, block)) {
        snprintf(error, size, "no memory for threads");
        return -1;
    }
    const struct program program = {kernel->name.c_str(),
                                    kernel->args_size,
                                    kernel->max_threads,
                                    begin_launch,
                                    run_block,
                                    stop,
                                    0};
    const bool ok = launch(program, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
                           shared_bytes, args, error, size);
    keep_statistics(kernel, (uint64_t)grid[0] * grid[1] * grid[2]);
    return ok ? 0 : -1;
}

void ree_emulator_ptx_destroy(struct ree_emulator_ptx *kernel) {
    if (!kernel) return;
    ptx = kernel;
    if (kernel->memory) unmap_memory(kernel->memory, 32 * warp_bytes());
    delete kernel;
}
