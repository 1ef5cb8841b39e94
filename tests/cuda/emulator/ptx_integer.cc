// Integer instructions, bits and predicates.
#include "ptx_lanes.h"

namespace ree_ptx {

namespace {

// Twice as wide
template <class T>
using wide_t = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>>;
template <class T> using bits_t = std::make_unsigned_t<T>;

// Arithmetic wraps around.
#define OP_1(name, expression)                                                                     \
    struct name {                                                                                  \
        template <class T> static T of(T a) { return (T)(expression); }                            \
    }
#define OP_2(name, expression)                                                                     \
    struct name {                                                                                  \
        template <class T> static T of(T a, T b) { return (T)(expression); }                       \
    }
OP_2(op_add, (bits_t<T>)a + (bits_t<T>)b);
OP_2(op_sub, (bits_t<T>)a - (bits_t<T>)b);
OP_2(op_min, a < b ? a : b);
OP_2(op_max, a > b ? a : b);
OP_2(op_and, a &b);
OP_2(op_or, a | b);
OP_2(op_xor, a ^ b);
OP_1(op_not, ~a);
OP_1(op_move, a);
OP_1(op_neg, 0 - (bits_t<T>)a);
OP_1(op_abs, a < 0 ? 0 - (bits_t<T>)a : (bits_t<T>)a);
// Division by zero is undefined; the hardware's quotient is all ones, its remainder the dividend.
OP_2(op_div, b == 0 ? ~(T)0 : b == (T) ~(T)0 && std::is_signed_v<T> ? 0 - (bits_t<T>)a : a / b);
OP_2(op_rem, b == 0 ? a : b == (T) ~(T)0 && std::is_signed_v<T> ? 0 : a % b);
OP_2(op_mul_hi, (wide_t<T>)a *(wide_t<T>)b >> 8 * sizeof(T));

struct op_mul_lo {
    template <class T> static T of(T a, T b) { return (T)((uint64_t)a * (uint64_t)b); }
};
struct op_mad_lo {
    template <class T> static T of(T a, T b, T c) {
        return (T)((uint64_t)a * (uint64_t)b + (uint64_t)c);
    }
};
struct op_mul_wide {
    template <class T> static wide_t<T> of(T a, T b) { return (wide_t<T>)a * (wide_t<T>)b; }
};
struct op_mad_wide {
    template <class T> static wide_t<T> of(T a, T b, wide_t<T> c) {
        return (wide_t<T>)((uint64_t)((wide_t<T>)a * (wide_t<T>)b) + (uint64_t)c);
    }
};
struct op_shl {
    template <class T> static T of(T a, uint32_t b) {
        return b >= 8 * sizeof(T) ? 0 : (T)((bits_t<T>)a << b);
    }
};
struct op_shr {
    template <class T> static T of(T a, uint32_t b) {
        return (T)(b < 8 * sizeof(T) ? a >> b : a < 0 ? -1 : 0);
    }
};
struct op_clz {
    template <class T> static uint32_t of(T a) {
        if (a == 0) return 8 * sizeof(T);
        return (uint32_t)(sizeof(T) == 8 ? __builtin_clzll(a) : __builtin_clz((uint32_t)a));
    }
};
struct op_popc {
    template <class T> static uint32_t of(T a) { return (uint32_t)__builtin_popcountll(a); }
};
struct op_brev {
    template <class T> static T of(T a) {
        T reversed = 0;
        for (size_t i = 0; i < 8 * sizeof(T); i++)
            reversed = (T)(reversed << 1 | (a >> i & 1));
        return reversed;
    }
};
// b: first bit, c: number of bits; of each, the low 8 bits
struct op_bfe {
    template <class T> static T of(T a, uint32_t b, uint32_t c) {
        const uint32_t bits = 8 * sizeof(T), first = b & 255, n = c & 255;
        if (n == 0) return 0;
        const uint32_t last = first + n - 1 < bits - 1 ? first + n - 1 : bits - 1;
        const bool negative = std::is_signed_v<T> && ((bits_t<T>)a >> last & 1);
        T field = 0;
        for (uint32_t i = 0; i < bits; i++) {
            bool bit = i < n && first + i < bits ? ((bits_t<T>)a >> (first + i) & 1) : negative;
            field = (T)(field | (T)((bits_t<T>)bit << i));
        }
        return field;
    }
};
// Inserts a's low d bits into b at bit c.
template <class T> void run_bfi(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<T> *to = row<T>(w, i.to[0]);
    const element_t<T> *a = row<T>(w, i.from[0]), *b = row<T>(w, i.from[1]);
    const uint32_t *c = row<uint32_t>(w, i.from[2]), *d = row<uint32_t>(w, i.from[3]);
    each(lanes, [=](uint32_t l) {
        const uint32_t bits = 8 * sizeof(T), first = c[l] & 255, n = d[l] & 255;
        T field = n >= bits ? ~(T)0 : (T)(((T)1 << n) - 1);
        T mask = first >= bits ? 0 : (T)(field << first);
        T value = first >= bits ? 0 : (T)((T)a[l] << first);
        to[l] = (value & mask) | ((T)b[l] & ~mask);
    });
}

struct op_prmt {
    static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
        const uint64_t bytes = (uint64_t)b << 32 | a;
        uint32_t result = 0;
        for (int i = 0; i < 4; i++) {
            const uint32_t which = c >> 4 * i & 15;
            uint32_t byte = (uint32_t)(bytes >> 8 * (which & 7) & 255);
            if (which & 8) byte = byte & 128 ? 255 : 0; // replicates the sign
            result |= byte << 8 * i;
        }
        return result;
    }
};
template <bool LEFT, bool WRAPS> struct op_shf {
    static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
        const uint32_t n = WRAPS ? c & 31 : c < 32 ? c : 32;
        const uint64_t both = (uint64_t)b << 32 | a;
        return LEFT ? (uint32_t)(both << n >> 32) : (uint32_t)(both >> n);
    }
};
template <class A, class B> struct op_dp4a {
    static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
        for (int i = 0; i < 4; i++)
            c += (uint32_t)((int32_t)(A)(a >> 8 * i) * (int32_t)(B)(b >> 8 * i));
        return c;
    }
};
void run_lop3(struct warp &w, const struct instr &i, uint32_t lanes) {
    uint32_t *to = row<uint32_t>(w, i.to[0]);
    const uint32_t *a = row<uint32_t>(w, i.from[0]), *b = row<uint32_t>(w, i.from[1]),
                   *c = row<uint32_t>(w, i.from[2]), *table = row<uint32_t>(w, i.from[3]);
    each(lanes, [=](uint32_t l) {
        uint32_t result = 0;
        for (int k = 0; k < 8; k++)
            if (table[l] >> k & 1)
                result |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
        to[l] = result;
    });
}

template <class T> void run_select(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<T> *to = row<T>(w, i.to[0]);
    const element_t<T> *a = row<T>(w, i.from[0]), *b = row<T>(w, i.from[1]);
    const uint32_t p = w.predicates[i.from[2]];
    each(lanes, [=](uint32_t l) { to[l] = p >> l & 1 ? a[l] : b[l]; });
}

// Two registers with the halves of a wider register.
template <class T, class HALF>
void run_join(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<T> *to = row<T>(w, i.to[0]);
    const uint32_t *low = row<uint32_t>(w, i.from[0]), *high = row<uint32_t>(w, i.from[1]);
    each(lanes, [=](uint32_t l) {
        to[l] = (element_t<T>)high[l] << 8 * sizeof(HALF) | (element_t<T>)(HALF)low[l];
    });
}
template <class T, class HALF>
void run_divide(struct warp &w, const struct instr &i, uint32_t lanes) {
    uint32_t *low = row<uint32_t>(w, i.to[0]), *high = row<uint32_t>(w, i.to[1]);
    const element_t<T> *from = row<T>(w, i.from[0]);
    each(lanes, [=](uint32_t l) {
        const element_t<T> x = from[l];
        low[l] = (HALF)x;
        high[l] = (HALF)(x >> 8 * sizeof(HALF));
    });
}

#define PREDICATE_OP(name, expression)                                                             \
    void name(struct warp &w, const struct instr &i, uint32_t lanes) {                             \
        const uint32_t a = w.predicates[i.from[0]], b = w.predicates[i.from[1]];                   \
        uint32_t &to = w.predicates[i.to[0]];                                                      \
        (void)b;                                                                                   \
        to = (to & ~lanes) | ((expression)&lanes);                                                 \
    }
PREDICATE_OP(predicate_and, a &b)
PREDICATE_OP(predicate_or, a | b)
PREDICATE_OP(predicate_xor, a ^ b)
PREDICATE_OP(predicate_not, ~a)
PREDICATE_OP(predicate_move, a)

#define COMPARISON(name, op)                                                                       \
    struct name {                                                                                  \
        template <class T> static bool of(T a, T b) { return a op b; }                             \
    }
COMPARISON(is_eq, ==);
COMPARISON(is_ne, !=);
COMPARISON(is_lt, <);
COMPARISON(is_le, <=);
COMPARISON(is_gt, >);
COMPARISON(is_ge, >=);

template <class T> std::string type_name(char kind) {
    return "." + std::string(1, kind) + std::to_string(8 * sizeof(T));
}
template <class T> constexpr const char *pick(const char *narrow, const char *wide) {
    return sizeof(T) == 8 ? wide : narrow;
}

template <class T> void add_type(std::vector<struct entry> &to) {
    const std::string s = type_name<T>(std::is_signed_v<T> ? 's' : 'u');
    const char *two = pick<T>("www", "lll");
    to.push_back({"add" + s, run_2<op_add, T, T, T>, two});
    to.push_back({"sub" + s, run_2<op_sub, T, T, T>, two});
    to.push_back({"mul.lo" + s, run_2<op_mul_lo, T, T, T>, two});
    to.push_back({"mul.hi" + s, run_2<op_mul_hi, T, T, T>, two});
    to.push_back({"mad.lo" + s, run_3<op_mad_lo, T, T, T, T>, pick<T>("wwww", "llll")});
    to.push_back({"div" + s, run_2<op_div, T, T, T>, two});
    to.push_back({"rem" + s, run_2<op_rem, T, T, T>, two});
    to.push_back({"min" + s, run_2<op_min, T, T, T>, two});
    to.push_back({"max" + s, run_2<op_max, T, T, T>, two});
    to.push_back({"shr" + s, run_2<op_shr, T, T, uint32_t>, pick<T>("www", "llw")});
    const char *one = pick<T>("ww", "ll"), *set = pick<T>("pww", "pll");
    to.push_back({"mov" + s, run_1<op_move, T, T>, one});
    to.push_back({"selp" + s, run_select<T>, pick<T>("wwwp", "lllp")});
    to.push_back({"setp.eq" + s, run_set<is_eq, T>, set});
    to.push_back({"setp.ne" + s, run_set<is_ne, T>, set});
    to.push_back({"setp.lt" + s, run_set<is_lt, T>, set});
    to.push_back({"setp.le" + s, run_set<is_le, T>, set});
    to.push_back({"setp.gt" + s, run_set<is_gt, T>, set});
    to.push_back({"setp.ge" + s, run_set<is_ge, T>, set});
    if constexpr (std::is_signed_v<T>) {
        to.push_back({"neg" + s, run_1<op_neg, T, T>, one});
        to.push_back({"abs" + s, run_1<op_abs, T, T>, one});
    }
    if constexpr (sizeof(T) >= 4) {
        to.push_back({"bfe" + s, run_3<op_bfe, T, T, uint32_t, uint32_t>, pick<T>("wwww", "llww")});
    }
    if constexpr (sizeof(T) < 8) {
        const bool is_wide = sizeof(T) == 4;
        to.push_back(
            {"mul.wide" + s, run_2<op_mul_wide, wide_t<T>, T, T>, is_wide ? "lww" : "www"});
        to.push_back({"mad.wide" + s, run_3<op_mad_wide, wide_t<T>, T, T, wide_t<T>>,
                      is_wide ? "lwwl" : "wwww"});
    }
}

template <class T> void add_bits(std::vector<struct entry> &to) {
    const std::string s = type_name<T>('b');
    const char *two = pick<T>("www", "lll"), *one = pick<T>("ww", "ll");
    to.push_back({"mov" + s, run_1<op_move, T, T>, one});
    to.push_back({"and" + s, run_2<op_and, T, T, T>, two});
    to.push_back({"or" + s, run_2<op_or, T, T, T>, two});
    to.push_back({"xor" + s, run_2<op_xor, T, T, T>, two});
    to.push_back({"not" + s, run_1<op_not, T, T>, one});
    to.push_back({"shl" + s, run_2<op_shl, T, T, uint32_t>, pick<T>("www", "llw")});
    to.push_back({"shr" + s, run_2<op_shr, T, T, uint32_t>, pick<T>("www", "llw")});
    to.push_back({"selp" + s, run_select<T>, pick<T>("wwwp", "lllp")});
    to.push_back({"setp.eq" + s, run_set<is_eq, T>, pick<T>("pww", "pll")});
    to.push_back({"setp.ne" + s, run_set<is_ne, T>, pick<T>("pww", "pll")});
    if constexpr (sizeof(T) >= 4) {
        to.push_back({"clz" + s, run_1<op_clz, uint32_t, T>, pick<T>("ww", "wl")});
        to.push_back({"popc" + s, run_1<op_popc, uint32_t, T>, pick<T>("ww", "wl")});
        to.push_back({"brev" + s, run_1<op_brev, T, T>, one});
        to.push_back({"bfi" + s, run_bfi<T>, pick<T>("wwwww", "lllww")});
    }
}

} // namespace

void run_join_words(struct warp &w, const struct instr &i, uint32_t lanes) {
    run_join<uint64_t, uint32_t>(w, i, lanes);
}

void add_integer_entries(std::vector<struct entry> &to) {
    add_type<int16_t>(to);
    add_type<uint16_t>(to);
    add_type<int32_t>(to);
    add_type<uint32_t>(to);
    add_type<int64_t>(to);
    add_type<uint64_t>(to);
    add_bits<uint16_t>(to);
    add_bits<uint32_t>(to);
    add_bits<uint64_t>(to);
    to.push_back({"prmt.b32", run_3<op_prmt, uint32_t, uint32_t, uint32_t, uint32_t>, "wwww"});
#define SHF(name, left, wraps)                                                                     \
    to.push_back({name, run_3<op_shf<left, wraps>, uint32_t, uint32_t, uint32_t, uint32_t>, "wwww"})
    SHF("shf.l.wrap.b32", true, true);
    SHF("shf.l.clamp.b32", true, false);
    SHF("shf.r.wrap.b32", false, true);
    SHF("shf.r.clamp.b32", false, false);
#undef SHF
#define DP4A(name, A, B)                                                                           \
    to.push_back({name, run_3<op_dp4a<A, B>, uint32_t, uint32_t, uint32_t, uint32_t>, "wwww"})
    DP4A("dp4a.s32.s32", int8_t, int8_t);
    DP4A("dp4a.s32.u32", int8_t, uint8_t);
    DP4A("dp4a.u32.s32", uint8_t, int8_t);
    DP4A("dp4a.u32.u32", uint8_t, uint8_t);
#undef DP4A
    to.push_back({"lop3.b32", run_lop3, "wwwww"});
    to.push_back({"mov.b64.join", run_join_words, "lww"});
    to.push_back({"mov.b64.divide", run_divide<uint64_t, uint32_t>, "wwl"});
    to.push_back({"mov.b32.join", run_join<uint32_t, uint16_t>, "www"});
    to.push_back({"mov.b32.divide", run_divide<uint32_t, uint16_t>, "www"});
    to.push_back({"and.pred", predicate_and, "ppp"});
    to.push_back({"or.pred", predicate_or, "ppp"});
    to.push_back({"xor.pred", predicate_xor, "ppp"});
    to.push_back({"not.pred", predicate_not, "pp"});
    to.push_back({"mov.pred", predicate_move, "pp"});
}

} // namespace ree_ptx
