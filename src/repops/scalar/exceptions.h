// Corrects the results of fast.h for the arguments (bits of a float) for which they are wrong.
// ree-prove found these arguments: their exact results lie so near to a tie that an error of less
// than 2^-53, relative, changes the rounding. x: argument; r: result of fast.h.
#ifndef REE_SCALAR_EXCEPTIONS_H
#define REE_SCALAR_EXCEPTIONS_H

#include "repops/scalar/fast.h"

REE_FN uint32_t ree_except_log(uint32_t x, uint32_t r) {
    r = REE_EXCEPT(x, 0x3C413D3Au, 0xC08E158Fu, r);
    r = REE_EXCEPT(x, 0x41178FEBu, 0x400FE5E7u, r);
    r = REE_EXCEPT(x, 0x4C5D65A5u, 0x418F034Bu, r);
    r = REE_EXCEPT(x, 0x65D890D3u, 0x4254D1F9u, r);
    r = REE_EXCEPT(x, 0x6F31A8ECu, 0x42845A89u, r);
    return r;
}
REE_FN uint32_t ree_except_sigmoid(uint32_t x, uint32_t r) {
    r = REE_EXCEPT(x, 0xBA928601u, 0x3EFFDB5Fu, r);
    return r;
}
REE_FN uint32_t ree_except_softplus(uint32_t x, uint32_t r) {
    r = REE_EXCEPT(x, 0x39EA41D0u, 0x3F3180BDu, r);
    return r;
}

#endif
