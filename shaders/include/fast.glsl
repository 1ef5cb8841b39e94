// e^x, tanh and sigmoid of binary32 in float64, for devices whose fma is computed in float64. The
// operations of src/repops/scalar/fast.h, in the same order. The exhaustive proof covers fast.h
// (src/repops/PROOF.md, form c). It applies here if the device rounds float64 as IEEE 754 requires.
// The probe tests that: sums and products as parts of fma, and quotients.
#ifndef REE_GLSL_FAST
#define REE_GLSL_FAST

#define REE_DOUBLE(high, low) packDouble2x32(uvec2(low, high))

const uint REE_FAST_EXPONENT = 20u; // position of the exponent in a double's high word

// e^x = 2^K * (1 + p): K in the low bits of k, and p.
struct ReeFastExp {
    uint k;
    double p;
};
ReeFastExp ree_fast_exp_parts(const double x) {
    precise double shifted = x * REE_DOUBLE(0x3FF71547u, 0x652B82FEu) +
                             REE_DOUBLE(0x43380000u, 0x00000000u); // x / ln 2 + 0x1.8p52
    precise double k = shifted - REE_DOUBLE(0x43380000u, 0x00000000u);
    precise double r = (x - k * REE_DOUBLE(0x3FE62E42u, 0xFEFA0000u)) -
                       k * REE_DOUBLE(0x3D7CF79Au, 0xBC9E3B3Au); // ln 2 in two parts
    precise double t = r * r;
    // The coefficients of ree_fast_poly_exp, fast.inc.
    precise double even =
        ((((REE_DOUBLE(0x3E21F730u, 0x194C8D34u) * t + REE_DOUBLE(0x3E927E4Du, 0xB653E2F8u)) * t +
           REE_DOUBLE(0x3EFA01A0u, 0x1A6D8468u)) * t + REE_DOUBLE(0x3F56C16Cu, 0x16C162D5u)) * t +
         REE_DOUBLE(0x3FA55555u, 0x55555556u)) * t + REE_DOUBLE(0x3FE00000u, 0x00000000u);
    precise double odd =
        (((REE_DOUBLE(0x3E5AF4DEu, 0x6A3DBAE2u) * t + REE_DOUBLE(0x3EC71DE0u, 0x232F4424u)) * t +
          REE_DOUBLE(0x3F2A01A0u, 0x1ABE78FAu)) * t + REE_DOUBLE(0x3F811111u, 0x111100DCu)) * t +
        REE_DOUBLE(0x3FC55555u, 0x55555557u);
    precise double p = r + t * (even + r * odd);
    return ReeFastExp(unpackDouble2x32(shifted).x, p);
}
// Returns x * 2^K.
double ree_fast_scaled(const double x, const uint k) {
    uvec2 bits = unpackDouble2x32(x);
    return packDouble2x32(uvec2(bits.x, bits.y + (k << REE_FAST_EXPONENT)));
}
double ree_fast_exp_double(const double x) {
    ReeFastExp e = ree_fast_exp_parts(x);
    precise double m = 1.0lf + e.p;
    return ree_fast_scaled(m, e.k);
}
double ree_fast_clamp(const double x, const double bound) {
    double y = x > bound ? bound : x;
    return y < -bound ? -bound : y;
}
uint ree_fast_round(const uint x, const double y) {
    return ree_is_nan(x) ? REE_NAN : ree_narrowed(unpackDouble2x32(y));
}

uint ree_fast_exp_f32(const uint x) {
    return ree_fast_round(x, ree_fast_exp_double(ree_fast_clamp(ree_widened(x), 110.0lf)));
}
uint ree_fast_tanh_f32(const uint x) {
    precise double twice = 2.0lf * ree_widened(x & 0x7FFFFFFFu);
    ReeFastExp e = ree_fast_exp_parts(ree_fast_clamp(twice, 40.0lf));
    double scale = ree_fast_scaled(1.0lf, e.k);
    precise double y = scale * e.p + (scale - 1.0lf);
    precise double quotient = y / (y + 2.0lf);
    uint bits = ree_fast_round(x, quotient);
    return ree_is_nan(x) ? bits : bits | (x & REE_SIGN);
}
uint ree_fast_sigmoid_f32(const uint x) {
    if (x == 0xBA928601u) return 0x3EFFDB5Fu; // exceptions.h
    double v = ree_widened(x);
    precise double denominator = 1.0lf + ree_fast_exp_double(ree_fast_clamp(-v, 110.0lf));
    precise double y = 1.0lf / denominator;
    precise double near = 0.5lf + v * REE_DOUBLE(0x3FCFFFFFu, 0xFE000000u); // 1/4 - 2^-30
    return ree_fast_round(x, (x & 0x7FFFFFFFu) < 0x39800000u ? near : y); // 2^-12
}

#define REE_EXP(x) (REE_FORM_FMA == REE_FLOAT64 ? ree_fast_exp_f32(x) : ree_int_exp_f32(x))
#define REE_TANH(x) (REE_FORM_FMA == REE_FLOAT64 ? ree_fast_tanh_f32(x) : ree_int_tanh_f32(x))
#define REE_SIGMOID(x)                                                                             \
    (REE_FORM_FMA == REE_FLOAT64 ? ree_fast_sigmoid_f32(x) : ree_int_sigmoid_f32(x))

#endif
