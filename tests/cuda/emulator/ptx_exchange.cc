// Instructions with which the threads of a warp exchange values. The threads of the instruction's
// mask execute it together; `lanes` are those that have not exited.
#include "ptx_lanes.h"

#include "launch.h"

using namespace ree_emulator;

namespace ree_ptx {

enum { INDEX, UP, DOWN, XOR }; // ptx_decode.cc has the same order

// shfl.sync: to[0] = from[0] of another thread, which from[1] and from[2] select. number = mode.
// to[1] is a predicate if is_wide is set: the selected thread is inside the segment.
void shuffle(struct warp &w, const struct instr &i, uint32_t lanes) {
    uint32_t *to = row<uint32_t>(w, i.to[0]), values[LANES], inside = 0;
    const uint32_t *a = row<uint32_t>(w, i.from[0]), *b = row<uint32_t>(w, i.from[1]),
                   *c = row<uint32_t>(w, i.from[2]);
    memcpy(values, a, sizeof values);
    enter(w, i);
    uint32_t results[LANES];
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest), by = b[l] & 31, clamp = c[l] & 31,
                       segment = c[l] >> 8 & 31;
        const uint32_t last = (l & segment) | (clamp & ~segment), first = l & segment;
        int from;
        bool is_inside;
        switch (i.number) {
        case UP:
            from = (int)l - (int)by;
            is_inside = from >= (int)last;
            break;
        case DOWN:
            from = (int)(l + by);
            is_inside = from <= (int)last;
            break;
        case XOR:
            from = (int)(l ^ by);
            is_inside = from <= (int)last;
            break;
        default:
            from = (int)(first | (by & ~segment));
            is_inside = from <= (int)last;
            break;
        }
        if (!is_inside) from = (int)l;
        enter_lane(w, l);
        if (!(lanes >> from & 1))
            fail("a shuffle takes from lane %d, which does not take part", from);
        inside |= (uint32_t)is_inside << l;
        results[l] = values[from];
    }
    each(lanes, [&](uint32_t l) { to[l] = results[l]; });
    if (i.is_wide) w.predicates[i.to[1]] = (w.predicates[i.to[1]] & ~lanes) | inside;
}

enum { ALL, ANY, UNIFORM, BALLOT }; // ptx_decode.cc has the same order

// vote.sync: from[0] is a predicate, inverted if is_signed is set.
void vote(struct warp &w, const struct instr &i, uint32_t lanes) {
    const uint32_t p = w.predicates[i.from[0]], bits = (i.is_signed ? ~p : p) & lanes;
    if (i.number == BALLOT) {
        uint32_t *to = row<uint32_t>(w, i.to[0]);
        each(lanes, [=](uint32_t l) { to[l] = bits; });
        return;
    }
    const bool result = i.number == ALL   ? bits == lanes
                        : i.number == ANY ? bits != 0
                                          : bits == lanes || bits == 0;
    uint32_t &to = w.predicates[i.to[0]];
    to = (to & ~lanes) | (result ? lanes : 0);
}

void warp_barrier(struct warp &w, const struct instr &, uint32_t lanes) {
    bring_together(w.number, lanes, lanes == w.left);
}

} // namespace ree_ptx
