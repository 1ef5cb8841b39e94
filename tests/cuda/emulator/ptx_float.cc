// Instructions on floating-point numbers. Each rounds once, to nearest even; subnormals are kept.
#include "ptx_lanes.h"

#include <math.h>

namespace ree_ptx {

namespace {

#define OP(name, parameters, expression)                                                           \
    struct name {                                                                                  \
        template <class T> static T of parameters { return expression; }                           \
    }
OP(op_add, (T a, T b), a + b);
OP(op_sub, (T a, T b), a - b);
OP(op_mul, (T a, T b), a *b);
OP(op_div, (T a, T b), a / b);
OP(op_rcp, (T a), (T)1 / a);
OP(op_neg, (T a), -a);
struct op_fma {
    static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct op_sqrt {
    static float of(float a) { return __builtin_sqrtf(a); }
    static double of(double a) { return __builtin_sqrt(a); }
};
struct op_abs {
    static float of(float a) { return __builtin_fabsf(a); }
    static double of(double a) { return __builtin_fabs(a); }
};
// Of a NaN and a number, the result is the number; -0 is less than +0.
OP(op_min, (T a, T b), a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b);
OP(op_max, (T a, T b), a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b);

// The bits of b with a's sign
struct op_copysign {
    template <class T> static T of(T a, T b) {
        const T sign = (T)1 << (8 * sizeof(T) - 1);
        return (a & sign) | (b & ~sign);
    }
};
struct op_move {
    template <class T> static T of(T a) { return a; }
};

#define COMPARISON(name, expression)                                                               \
    struct name {                                                                                  \
        template <class T> static bool of(T a, T b) { return expression; }                         \
    }
COMPARISON(is_eq, a == b);
COMPARISON(is_ne, a<b || a> b);
COMPARISON(is_lt, a < b);
COMPARISON(is_le, a <= b);
COMPARISON(is_gt, a > b);
COMPARISON(is_ge, a >= b);
// True also if one of the two is a NaN.
COMPARISON(is_equ, !(a < b || a > b));
COMPARISON(is_neu, !(a == b));
COMPARISON(is_ltu, !(a >= b));
COMPARISON(is_leu, !(a > b));
COMPARISON(is_gtu, !(a <= b));
COMPARISON(is_geu, !(a < b));
COMPARISON(is_num, a == a && b == b);
COMPARISON(is_nan, a != a || b != b);

template <class T> void run_select(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<T> *to = row<T>(w, i.to[0]);
    const element_t<T> *a = row<T>(w, i.from[0]), *b = row<T>(w, i.from[1]);
    const uint32_t p = w.predicates[i.from[2]];
    each(lanes, [=](uint32_t l) { to[l] = p >> l & 1 ? a[l] : b[l]; });
}

template <class T> void add_type(std::vector<struct entry> &to) {
    typedef element_t<T> bits;
    const bool is_wide = sizeof(T) == 8;
    const std::string s = is_wide ? ".f64" : ".f32";
    const char *one = is_wide ? "ll" : "ww", *two = is_wide ? "lll" : "www",
               *set = is_wide ? "pll" : "pww";
    to.push_back({"add.rn" + s, run_2<op_add, T, T, T>, two});
    to.push_back({"sub.rn" + s, run_2<op_sub, T, T, T>, two});
    to.push_back({"mul.rn" + s, run_2<op_mul, T, T, T>, two});
    to.push_back({"div.rn" + s, run_2<op_div, T, T, T>, two});
    to.push_back({"fma.rn" + s, run_3<op_fma, T, T, T, T>, is_wide ? "llll" : "wwww"});
    to.push_back({"rcp.rn" + s, run_1<op_rcp, T, T>, one});
    to.push_back({"sqrt.rn" + s, run_1<op_sqrt, T, T>, one});
    to.push_back({"neg" + s, run_1<op_neg, T, T>, one});
    to.push_back({"abs" + s, run_1<op_abs, T, T>, one});
    to.push_back({"min" + s, run_2<op_min, T, T, T>, two});
    to.push_back({"max" + s, run_2<op_max, T, T, T>, two});
    to.push_back({"mov" + s, run_1<op_move, bits, bits>, one}); // keeps the bits of a NaN
    to.push_back({"copysign" + s, run_2<op_copysign, bits, bits, bits>, two});
    to.push_back({"selp" + s, run_select<T>, is_wide ? "lllp" : "wwwp"});
#define SET(name) to.push_back({"setp." #name + s, run_set<is_##name, T>, set})
    SET(eq);
    SET(ne);
    SET(lt);
    SET(le);
    SET(gt);
    SET(ge);
    SET(equ);
    SET(neu);
    SET(ltu);
    SET(leu);
    SET(gtu);
    SET(geu);
    SET(num);
    SET(nan);
#undef SET
}

} // namespace

void add_float_entries(std::vector<struct entry> &to) {
    add_type<float>(to);
    add_type<double>(to);
}

} // namespace ree_ptx
