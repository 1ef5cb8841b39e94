// Finds which operands an address may point into. Operands may be neighbours in memory, so an index
// outside one of them can be inside another; the check needs to know which one is meant.
//
// A register points into an operand if its value comes from the operand's address in the kernel's
// argument, through any instructions with 64-bit results. A loaded or joined address may point
// anywhere.
#include "ptx_parse.h"

#include "ptx_lanes.h"

#include "device/cuda/kernel_interface.h"

#include "launch.h"

#include <algorithm>
#include <set>
#include <stddef.h>
#include <unordered_map>

namespace ree_ptx {

static uint64_t origin_at(uint64_t offset) {
    const uint64_t operands = offsetof(struct ree_cuda_header, operands);
    if (offset >= operands && offset < operands + 8 * REE_MAX_OPERANDS)
        return UINT64_C(1) << (offset - operands) / 8;
    if (offset == offsetof(struct ree_cuda_header, scratch)) return ORIGIN_SCRATCH;
    if (offset == offsetof(struct ree_cuda_header, fault)) return ORIGIN_FAULT;
    return 0; // a number
}
static_assert(REE_MAX_OPERANDS <= 60);

// Returns the rows that hold an address in the kernel's argument and nothing else, with its offset.
static std::map<uint32_t, uint64_t> find_argument(struct parser *p) {
    std::map<uint32_t, uint64_t> rows;
    std::set<uint32_t> others(p->computed.begin(), p->computed.end());
    for (auto &i : p->ptx->code)
        if (i.is_wide &&
            (i.run == load || i.run == load_argument || i.run == load_parameter || i.run == atomic))
            others.insert(i.to, i.to + std::max(i.n, 1u));
    for (auto &c : p->ptx->constants)
        if (c.is_wide && c.value == (uint64_t)ree_emulator::arguments)
            rows[c.row] = 0;
        else
            others.insert(c.row);
    for (bool changed = true; changed;) {
        changed = false;
        for (auto &copy : p->copies) {
            auto from = rows.find(copy.from), to = rows.find(copy.to);
            const uint64_t offset = from == rows.end() ? 0 : from->second + copy.plus;
            if (others.count(copy.from) || (from != rows.end() && to != rows.end() &&
                                            to->second != offset)) // another value, too
                changed |= others.insert(copy.to).second;
            else if (from != rows.end())
                changed |= rows.emplace(copy.to, offset).second;
        }
    }
    for (uint32_t row : others)
        rows.erase(row);
    return rows;
}

void find_origins(struct parser *p) {
    std::unordered_map<uint32_t, uint64_t> origins;
    const std::map<uint32_t, uint64_t> argument = find_argument(p);
    for (auto &c : p->ptx->constants) // addresses of variables
        for (auto &t : p->ptx->tables)
            if (c.is_wide && c.value == (uint64_t)t.memory.data()) origins[c.row] |= ORIGIN_UNKNOWN;
    for (auto &i : p->ptx->code) {
        auto base = i.run == load && i.space == PARAM ? argument.find(i.from[0]) : argument.end();
        const bool is_argument = i.run == load_argument || base != argument.end();
        const uint64_t offset = (uint64_t)i.offset + (base == argument.end() ? 0 : base->second);
        if (i.run == run_join_words) origins[i.to[0]] |= ORIGIN_UNKNOWN;
        if (!i.is_wide ||
            !(is_argument || i.run == load || i.run == load_parameter || i.run == atomic))
            continue;
        for (uint32_t e = 0; e < std::max(i.n, 1u); e++)
            origins[i.to[e]] |=
                is_argument && i.size == 8 ? origin_at(offset + 8 * e) : ORIGIN_UNKNOWN;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (auto &flow : p->flows) {
            const uint64_t from = origins[flow.second];
            uint64_t &to = origins[flow.first];
            changed = changed || (to | from) != to;
            to |= from;
        }
    }
    for (auto &i : p->ptx->code) {
        i.origins = origins[i.run == async_copy ? i.from[1] : i.from[0]];
        if (i.origins == 0) i.origins = ORIGIN_UNKNOWN;
    }
}

} // namespace ree_ptx
