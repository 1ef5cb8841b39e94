// Exact dot products of four bytes: the device's instruction if the module is compiled with DOT8,
// otherwise multiplications.
//
//     Bytes                                 four bytes, ready to be multiplied
//     Bytes bytes_of(word, is_signed)
//     uint dot8(a, b, a_signed, b_signed)   the signs must be those given to bytes_of
#ifndef REE_GLSL_DOT8
#define REE_GLSL_DOT8

#ifdef DOT8
#extension GL_EXT_spirv_intrinsics : require
// Instructions of SPV_KHR_integer_dot_product. Format 0 means four bytes in a word.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450) int dot_ss(int a, int b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4451) uint dot_uu(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4452) int dot_su(int a, uint b, spirv_literal int format);
#define Bytes uint
Bytes bytes_of(const uint word, const bool is_signed) { return word; }
uint dot8(const uint a, const uint b, const bool a_signed, const bool b_signed) {
    if (a_signed && b_signed) return uint(dot_ss(int(a), int(b), 0));
    if (a_signed) return uint(dot_su(int(a), b, 0));
    if (b_signed) return uint(dot_su(int(b), a, 0));
    return dot_uu(a, b, 0);
}
#else
// Without branches: after inlining, a driver's compiler would have to process hundreds of them.
#define Bytes ivec4
Bytes bytes_of(const uint word, const bool is_signed) {
    int sign = int(is_signed) * 128;
    return (ivec4((uvec4(word) >> uvec4(0u, 8u, 16u, 24u)) & 255u) ^ sign) - sign;
}
uint dot8(const ivec4 a, const ivec4 b, const bool a_signed, const bool b_signed) {
    ivec4 p = a * b;
    return uint(p.x + p.y + p.z + p.w);
}
#endif

#endif
