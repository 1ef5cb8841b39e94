// cvt: conversions between integers and floating-point numbers.
#include "ptx_lanes.h"

#include <math.h>

namespace ree_ptx {

namespace {

template <class R> struct to_integer { // between integers
    template <class T> static R of(T a) { return (R)a; }
};
template <class R> struct to_float { // rounded to nearest
    template <class T> static R of(T a) { return (R)a; }
};

struct nearest {
    static double of(double x) { return rint(x); }
};
struct zero {
    static double of(double x) { return trunc(x); }
};
struct down {
    static double of(double x) { return floor(x); }
};
struct up {
    static double of(double x) { return ceil(x); }
};

// Saturates. A NaN becomes 0, or 2^63 in 64 bits.
template <class R, class ROUND> struct rounded {
    template <class T> static R of(T a) {
        const double x = ROUND::of((double)a),
                     limit = 0x1p1 * (double)((R)1 << (8 * sizeof(R) - 2));
        const bool is_signed = std::is_signed_v<R>;
        const R most = is_signed ? (R)(((uint64_t)1 << (8 * sizeof(R) - 1)) - 1) : (R) ~(R)0;
        if (x != x) return sizeof(R) == 8 ? (R)((uint64_t)1 << 63) : (R)0;
        if (x >= (is_signed ? limit : 2 * limit)) return most;
        if (x < (is_signed ? -limit : 0)) return is_signed ? (R)~most : (R)0;
        return (R)x;
    }
};
// Rounds to a whole number.
template <class ROUND> struct whole {
    template <class T> static T of(T a) { return (T)ROUND::of((double)a); }
};

struct from_half {
    static float of(uint16_t a) { return ree_float(ree_soft_f16_to_f32(a)); }
};
struct to_half {
    static uint16_t of(float a) {
        return a == a ? (uint16_t)ree_soft_f32_to_f16(ree_bits(a)) : (uint16_t)0x7FFF;
    }
};

template <class T> std::string name_of() {
    const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 's' : 'u';
    return "." + std::string(1, kind) + std::to_string(8 * sizeof(T));
}
template <class R, class T> const char *operands_of() {
    return sizeof(R) == 8 ? sizeof(T) == 8 ? "ll" : "lw" : sizeof(T) == 8 ? "wl" : "ww";
}

template <class R, class T>
void add(std::vector<struct entry> &to, const char *rounding, run_t *run) {
    to.push_back(
        {std::string("cvt") + rounding + name_of<R>() + name_of<T>(), run, operands_of<R, T>()});
}

// The low bits of a 64-bit register
template <class R, class T> struct low {
    static R of(uint64_t a) { return (R)(T)a; }
};

template <class R, class T> void add_integers(std::vector<struct entry> &to) {
    add<R, T>(to, "", run_1<to_integer<R>, R, T>);
    if (sizeof(T) < 8)
        to.push_back({"cvt" + name_of<R>() + name_of<T>() + ".wide", run_1<low<R, T>, R, uint64_t>,
                      operands_of<R, uint64_t>()});
}
template <class R> void add_to(std::vector<struct entry> &to) {
    add_integers<R, int8_t>(to);
    add_integers<R, uint8_t>(to);
    add_integers<R, int16_t>(to);
    add_integers<R, uint16_t>(to);
    add_integers<R, int32_t>(to);
    add_integers<R, uint32_t>(to);
    add_integers<R, int64_t>(to);
    add_integers<R, uint64_t>(to);
}
// Between an integer type and floats, both ways
template <class T> void add_with_floats(std::vector<struct entry> &to) {
    add<float, T>(to, ".rn", run_1<to_float<float>, float, T>);
    add<double, T>(to, ".rn", run_1<to_float<double>, double, T>);
#define BACK(rounding, round)                                                                      \
    add<T, float>(to, rounding, run_1<rounded<T, round>, T, float>);                               \
    add<T, double>(to, rounding, run_1<rounded<T, round>, T, double>)
    if constexpr (sizeof(T) >= 4) {
        BACK(".rni", nearest);
        BACK(".rzi", zero);
        BACK(".rmi", down);
        BACK(".rpi", up);
    }
#undef BACK
}

} // namespace

void add_conversion_entries(std::vector<struct entry> &to) {
    add_to<int16_t>(to);
    add_to<uint16_t>(to);
    add_to<int32_t>(to);
    add_to<uint32_t>(to);
    add_to<int64_t>(to);
    add_to<uint64_t>(to);
    add_with_floats<int16_t>(to);
    add_with_floats<uint16_t>(to);
    add_with_floats<int32_t>(to);
    add_with_floats<uint32_t>(to);
    add_with_floats<int64_t>(to);
    add_with_floats<uint64_t>(to);
    add<double, float>(to, "", run_1<to_float<double>, double, float>);
    add<float, double>(to, ".rn", run_1<to_float<float>, float, double>);
#define WHOLE(rounding, round)                                                                     \
    add<float, float>(to, rounding, run_1<whole<round>, float, float>);                            \
    add<double, double>(to, rounding, run_1<whole<round>, double, double>)
    WHOLE(".rni", nearest);
    WHOLE(".rzi", zero);
    WHOLE(".rmi", down);
    WHOLE(".rpi", up);
#undef WHOLE
    to.push_back({"cvt.f32.f16", run_1<from_half, float, uint16_t>, "ww"});
    to.push_back({"cvt.rn.f16.f32", run_1<to_half, uint16_t, float>, "ww"});
}

} // namespace ree_ptx
