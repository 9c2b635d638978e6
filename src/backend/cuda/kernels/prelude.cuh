/*
 * prelude.cuh - types and functions for all kernels. The host puts kernel_constants.h and this file
 * in front of the source of every kernel.
 *
 * Kernels are specialised by macros that the host passes to NVRTC as -D options: sizes, and flags
 * that are 0 or 1. K_name selects the kernel: each kernel stands between #ifdef K_name and #endif,
 * so that only the selected kernel is compiled. TYPE is a cuda_type (0 float32, 1 float16, 2
 * bfloat16); T is the C type in which activations are stored. Kernels use only the part of CUDA
 * that is also C: tests compile the same source for the host, which emulates the GPU.
 */
#define LANES 8 /* numbers of a vector: of 2-byte types, the 16 bytes of one load */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __CUDACC_RTC__
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ __forceinline__
#define SHARED(type, name) extern __shared__ __align__(16) type name[]
#define UNROLL _Pragma("unroll")
#define UNROLL_FOUR _Pragma("unroll 4")
#define NO_UNROLL _Pragma("unroll 1")

DEVICE float half_up(u16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
DEVICE u16 half_down(float x) {
    u16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
DEVICE u32 half_down2(float low, float high) {
#if __CUDA_ARCH__ >= 800
    u32 y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
#else
    return half_down(low) | (u32)half_down(high) << 16;
#endif
}
DEVICE u16 bfloat_down(float x) {
    u16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
DEVICE u32 bfloat_down2(float low, float high) {
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
DEVICE float bfloat_up(u16 x) {
    return __uint_as_float((u32)x << 16);
}
#endif

#if TYPE == 0
typedef float T;
DEVICE float up(T x) {
    return x;
}
DEVICE T down(float x) {
    return x;
}
#elif TYPE == 1
typedef u16 T;
DEVICE float up(T x) {
    return half_up(x);
}
DEVICE T down(float x) {
    return half_down(x);
}
DEVICE u32 down2(float low, float high) {
    return half_down2(low, high);
}
#else
typedef u16 T;
DEVICE float up(T x) {
    return bfloat_up(x);
}
DEVICE T down(float x) {
    return bfloat_down(x);
}
DEVICE u32 down2(float low, float high) {
    return bfloat_down2(low, high);
}
#endif

/* A vector: eight float32 in registers. */
typedef struct lanes {
    float v[LANES];
} lanes;

/* A vector of T as it lies in memory, not converted yet: so that several loads can be in flight
 * before the first is converted. */
typedef struct packed {
#if TYPE == 0
    float4 a, b;
#else
    uint4 a;
#endif
} packed;

/* Loads the vector at p, which is aligned to 16 bytes. */
DEVICE packed fetch(const T *p) {
    packed x;
#if TYPE == 0
    x.a = *(const float4 *)p;
    x.b = *(const float4 *)(p + 4);
#else
    x.a = *(const uint4 *)p;
#endif
    return x;
}

/*
 * The vector at p in global memory if `wanted`, otherwise `other`. Kernels read such data once, so
 * the load allocates no line in L1. The asm is volatile to keep the load in front of later code.
 */
DEVICE packed fetch_if(const T *p, int wanted, packed other) {
#ifdef __CUDACC_RTC__
#if TYPE == 0
    asm volatile("{\n\t.reg .pred q;\n\tsetp.ne.s32 q, %9, 0;\n\t"
                 "@q ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%8];\n\t"
                 "@q ld.global.L1::no_allocate.v4.f32 {%4, %5, %6, %7}, [%8+16];\n\t}"
                 : "+f"(other.a.x), "+f"(other.a.y), "+f"(other.a.z), "+f"(other.a.w),
                   "+f"(other.b.x), "+f"(other.b.y), "+f"(other.b.z), "+f"(other.b.w)
                 : "l"(p), "r"(wanted));
#else
    asm volatile("{\n\t.reg .pred q;\n\tsetp.ne.s32 q, %5, 0;\n\t"
                 "@q ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "+r"(other.a.x), "+r"(other.a.y), "+r"(other.a.z), "+r"(other.a.w)
                 : "l"(p), "r"(wanted));
#endif
    return other;
#else
    return wanted ? fetch(p) : other;
#endif
}

/* A vector of zeros. */
DEVICE packed fetch_nothing(void) {
    packed x;
#if TYPE == 0
    x.a.x = x.a.y = x.a.z = x.a.w = 0;
    x.b = x.a;
#else
    x.a.x = x.a.y = x.a.z = x.a.w = 0;
#endif
    return x;
}

DEVICE lanes unpack(packed x) {
    lanes y;
#if TYPE == 0
    y.v[0] = x.a.x, y.v[1] = x.a.y, y.v[2] = x.a.z, y.v[3] = x.a.w;
    y.v[4] = x.b.x, y.v[5] = x.b.y, y.v[6] = x.b.z, y.v[7] = x.b.w;
#else
    y.v[0] = up((T)(x.a.x & 0xFFFF)), y.v[1] = up((T)(x.a.x >> 16));
    y.v[2] = up((T)(x.a.y & 0xFFFF)), y.v[3] = up((T)(x.a.y >> 16));
    y.v[4] = up((T)(x.a.z & 0xFFFF)), y.v[5] = up((T)(x.a.z >> 16));
    y.v[6] = up((T)(x.a.w & 0xFFFF)), y.v[7] = up((T)(x.a.w >> 16));
#endif
    return y;
}

DEVICE lanes load(const T *p) {
    return unpack(fetch(p));
}

DEVICE packed pack(lanes x) {
    packed y;
#if TYPE == 0
    y.a.x = x.v[0], y.a.y = x.v[1], y.a.z = x.v[2], y.a.w = x.v[3];
    y.b.x = x.v[4], y.b.y = x.v[5], y.b.z = x.v[6], y.b.w = x.v[7];
#else
    y.a.x = down2(x.v[0], x.v[1]), y.a.y = down2(x.v[2], x.v[3]);
    y.a.z = down2(x.v[4], x.v[5]), y.a.w = down2(x.v[6], x.v[7]);
#endif
    return y;
}

/* Stores a vector to global memory. __stcg, because the compiler may turn an assignment into four
 * stores. */
DEVICE void store(T *p, lanes x) {
    packed y = pack(x);
#if TYPE == 0
    __stcg((float4 *)p, y.a);
    __stcg((float4 *)(p + 4), y.b);
#else
    __stcg((uint4 *)p, y.a);
#endif
}

/* Loads eight float32 from p, which is aligned to 16 bytes. */
DEVICE lanes load_floats(const float *p) {
    lanes y;
    float4 a = *(const float4 *)p;
    float4 b = *(const float4 *)(p + 4);
    y.v[0] = a.x, y.v[1] = a.y, y.v[2] = a.z, y.v[3] = a.w;
    y.v[4] = b.x, y.v[5] = b.y, y.v[6] = b.z, y.v[7] = b.w;
    return y;
}

DEVICE void store_floats(float *p, lanes x) {
    float4 a, b;
    a.x = x.v[0], a.y = x.v[1], a.z = x.v[2], a.w = x.v[3];
    b.x = x.v[4], b.y = x.v[5], b.z = x.v[6], b.w = x.v[7];
    *(float4 *)p = a;
    *(float4 *)(p + 4) = b;
}

/* Values of ACT and the like, as stk_cuda_act_code() of program.c gives them. */
#define ACT_NONE 0
#define ACT_RELU 1
#define ACT_RELU6 2
#define ACT_SILU 3
#define ACT_SIGMOID 4

/* 1 / (1 + exp(-x)). For 2-byte types with the GPU's approximate power of two and reciprocal, which
 * are right to about 1e-7 and take a fifth of the instructions: the exact functions would make SiLU
 * bound by arithmetic. */
DEVICE float sigmoid(float x) {
#if defined(__CUDACC_RTC__) && TYPE != 0
    float power, y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * -1.4426950408889634f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.0f + power));
    return y;
#else
    return 1.0f / (1.0f + expf(-x));
#endif
}

DEVICE float activate(int act, float x) {
    if (act == ACT_RELU) {
        return x < 0 ? 0 : x; /* NaN stays NaN */
    }
    if (act == ACT_RELU6) {
        return x < 0 ? 0 : x > 6 ? 6 : x;
    }
    if (act == ACT_SILU) {
        return x * sigmoid(x);
    }
    return act == ACT_SIGMOID ? sigmoid(x) : x;
}

/* The derivative of the activation at its input x. */
DEVICE float slope(int act, float x) {
    if (act == ACT_RELU) {
        return x > 0 ? 1 : 0;
    }
    if (act == ACT_RELU6) {
        return x > 0 && x < 6 ? 1 : 0;
    }
    if (act == ACT_SILU) {
        float s = sigmoid(x);
        return s * (1 + x * (1 - s));
    }
    if (act == ACT_SIGMOID) {
        float s = sigmoid(x);
        return s * (1 - s);
    }
    return 1;
}

/* ---- vectors of WIDE channels: 8, or 1 where the number of channels is no multiple of 8 ---- */

#ifdef WIDE /* the functions above, for kernels that are compiled for both widths */
#if WIDE == LANES
typedef lanes some;
typedef packed some_packed;
DEVICE some_packed some_fetch(const T *p) {
    return fetch(p);
}
DEVICE some_packed some_fetch_if(const T *p, int wanted, some_packed other) {
    return fetch_if(p, wanted, other);
}
DEVICE some_packed some_nothing(void) {
    return fetch_nothing();
}
DEVICE some some_unpack(some_packed x) {
    return unpack(x);
}
DEVICE void some_store(T *p, some x) {
    store(p, x);
}
DEVICE some some_floats(const float *p) {
    return load_floats(p);
}
#else
typedef struct some {
    float v[1];
} some;
typedef T some_packed;
DEVICE some_packed some_fetch(const T *p) {
    return *p;
}
DEVICE some_packed some_fetch_if(const T *p, int wanted, some_packed other) {
    return wanted ? *p : other;
}
DEVICE some_packed some_nothing(void) {
    return down(0);
}
DEVICE some some_unpack(some_packed x) {
    some y;
    y.v[0] = up(x);
    return y;
}
DEVICE void some_store(T *p, some x) {
    *p = down(x.v[0]);
}
DEVICE some some_floats(const float *p) {
    some y;
    y.v[0] = *p;
    return y;
}
#endif

/*
 * Sums `mine` over all threads of the block whose threadIdx.x is the same modulo `tile`, always in
 * the same order. Threads 0 to tile - 1 get the sums; the results of the others are partial sums.
 * `room` is shared memory, WIDE floats per thread. blockDim.x and `tile` are powers of two.
 */
DEVICE some some_total(some mine, float *room, u32 tile) {
    UNROLL for (int k = 0; k < WIDE; k++) {
        room[k * blockDim.x + threadIdx.x] = mine.v[k];
    }
    __syncthreads();
    for (u32 half = blockDim.x / 2; half >= tile; half /= 2) {
        if (threadIdx.x < half) {
            UNROLL for (int k = 0; k < WIDE; k++) {
                mine.v[k] += room[k * blockDim.x + threadIdx.x + half];
                room[k * blockDim.x + threadIdx.x] = mine.v[k];
            }
        }
        __syncthreads();
    }
    return mine;
}
#endif

/* ---- sums within a warp; the last block of a grid ---- */

/* Sums x over the eight lanes of a warp whose lane number is the same modulo 4. All eight get the
 * sum. */
DEVICE float add_eight(float x) {
    UNROLL
    for (int apart = 16; apart >= 4; apart /= 2) {
        x += __shfl_xor_sync(0xFFFFFFFFu, x, apart);
    }
    return x;
}

/*
 * Returns 1 in the last of `blocks` blocks that call it with the same counter, 0 in the others. All
 * threads of a block call it after they wrote their results; the last block then sees the results
 * of all blocks. The counter is 0 before and after. `told` is in shared memory and not used
 * otherwise.
 */
DEVICE int last_block(u32 *counter, u32 blocks, volatile u32 *told) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 last = atomicAdd(counter, 1u) == blocks - 1;
        if (last) {
            *counter = 0;
        }
        *told = last;
    }
    __syncthreads();
    int last = (int)*told;
    __threadfence();
    return last;
}

/* ---- batch norm: from sums to coefficients, in float64 as backend/cpu/kernels/norm.c ---- */

#define NORM_RUNNING 0.1 /* weight of the batch when the running statistics are updated */

#ifndef KEPT_STATS
#define KEPT_STATS 0 /* 1: norms use their running statistics, which stay as they are */
#endif

/*
 * Computes channel c of coefs (4, channels): mean, 1 / deviation, scale = weight / deviation, shift
 * = bias - mean * scale. Updates the running mean and variance. `squares` is the sum of (x -
 * mean)^2 over `rows` rows.
 */
DEVICE void norm_set_coefs(int c, int channels, double mean, double squares, double rows,
                        float epsilon, const float *weight, const float *bias, float *running_mean,
                        float *running_var, float *coefs) {
    float m = (float)mean;
    float invstd = (float)(1.0 / sqrt(squares / rows + (double)epsilon));
    double unbiased = rows > 1 ? squares / (rows - 1) : squares;
    if (KEPT_STATS) {
        m = running_mean[c];
        invstd = (float)(1.0 / sqrt((double)running_var[c] + (double)epsilon));
    } else {
        running_mean[c] += (float)(NORM_RUNNING * ((double)m - (double)running_mean[c]));
        running_var[c] += (float)(NORM_RUNNING * (unbiased - (double)running_var[c]));
    }
    double scale = (double)weight[c] * invstd;
    coefs[c] = m;
    coefs[channels + c] = invstd;
    coefs[2 * channels + c] = (float)scale;
    coefs[3 * channels + c] = (float)((double)bias[c] - (double)m * scale);
}

/*
 * Stores scale and shift of channel c once more, as T (2, channels) after coefs. The shift is
 * computed from the rounded scale: otherwise a mean of many deviations would multiply the error of
 * rounding.
 */
DEVICE void norm_narrow(int c, int channels, const float *bias, float *coefs) {
    T *to = (T *)(coefs + 4 * channels);
    T scale = down(coefs[2 * channels + c]);
    to[c] = scale;
    to[channels + c] = down(fmaf(-coefs[c], up(scale), bias[c]));
}

/*
 * As norm_set_coefs(), from `sum`, the sum of x, and `all`, the sum of x^2, both of float32
 * precision. The difference that gives the variance has an error of about all * 2^-23. A variance
 * below that is unknown and is raised to it: a smaller one would scale noise up to large numbers.
 */
DEVICE void norm_set_coefs_of_sums(int c, int channels, double sum, double all, double rows,
                             float epsilon, const float *weight, const float *bias,
                             float *running_mean, float *running_var, float *coefs, int narrow) {
    double mean = sum / rows;
    double squares = all - sum * mean;
    double least = all * 0x1.0p-23;
    norm_set_coefs(c, channels, mean, squares < least ? least : squares, rows, epsilon, weight, bias,
                running_mean, running_var, coefs);
    if (narrow) {
        norm_narrow(c, channels, bias, coefs);
    }
}

/*
 * Computes, for channel c, the gradients of weight and bias, and back (3, channels), the factors a,
 * b and d of dx = a * dn + b * (x - mean) + d. dn is the gradient of the norm's output. `sum` is
 * the sum of dn over `rows` rows, `product` the sum of dn * (x - mean) / deviation.
 */
DEVICE void norm_set_back(int c, int channels, double sum, double product, double rows,
                             const float *weight, const float *coefs, float *weight_grad,
                             float *bias_grad, float *back) {
    double invstd = coefs[channels + c];
    double a = (double)weight[c] * invstd;
    weight_grad[c] = (float)product;
    bias_grad[c] = (float)sum;
    back[c] = (float)a;
    back[channels + c] = KEPT_STATS ? 0 : (float)(-a * invstd * product / rows);
    back[2 * channels + c] = KEPT_STATS ? 0 : (float)(-a * sum / rows);
}

/* ---- random numbers: the same bits as base/numbers/rng.c and engine/drop.h ---- */

#define GOLDEN 0x9E3779B97F4A7C15ull
#define STREAM_DROP 11ull /* STK_RNG_DROP */

DEVICE u64 mix_bits(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/* stk_drop_factor(): 0 with probability `rate`, otherwise 1 / (1 - rate). */
DEVICE float drop_factor(float rate, u64 seed, u64 step, int node, u64 index) {
    u64 key = mix_bits(seed + GOLDEN);
    key = mix_bits(key ^ (STREAM_DROP * GOLDEN));
    key = mix_bits(key + step * 0xD1342543DE82EF95ull);
    key = mix_bits(key ^ ((((u64)node << 40) + index) * GOLDEN + 1));
    u64 drawn = mix_bits(key + GOLDEN);
    return (double)(drawn >> 11) * 0x1.0p-53 < rate ? 0 : 1 / (1 - rate);
}
