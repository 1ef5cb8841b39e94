// struct ree_conv_params of repop.h, for the conv shaders.
#ifndef REE_GLSL_CONV
#define REE_GLSL_CONV

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint n, groups;
    uint c;
    uint m;
    uint in_size[3], kernel[3], out_size[3];
    uint stride[3], dilation[3];
    int pad[3];
    uint transposed;
    uint x_dtype, w_dtype;
    uint has_pad_value;
    uint has_epilogue;
};
#define EPILOGUE_OFFSET 108u

#endif
