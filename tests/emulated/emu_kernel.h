/*
 * emu_kernel.h - the CUDA that kernels are written in, for the host's C compiler.
 *
 * The emulated NVRTC includes it in front of a kernel's text; it is what NVRTC has built in, and
 * the part of kernels/prelude.cuh that is machine code there. What is not defined here is not part
 * of the language that Stoker's kernels may use, and does not compile.
 */
#include "emu_link.h"

extern emu_link_table emu_link;
emu_link_table emu_link;

/* The emulated NVRTC looks for this word, and writes what calls the kernel in front of it. */
#define KERNEL void
#define DEVICE static inline __attribute__((unused))
#define SHARED(type, name) type *const name = (type *)emu_link.shared
#define UNROLL
#define UNROLL_FOUR
#define NO_UNROLL
#define __launch_bounds__(...)

#define threadIdx (*emu_link.thread)
#define blockIdx (emu_link.block)
#define blockDim (emu_link.block_dim)
#define gridDim (emu_link.grid_dim)
#define warpSize EMU_WARP

#define bool _Bool
#define true 1
#define false 0
typedef __SIZE_TYPE__ size_t;

typedef struct __attribute__((aligned(8))) uint2 {
    unsigned x, y;
} uint2;
typedef struct __attribute__((aligned(16))) uint4 {
    unsigned x, y, z, w;
} uint4;
typedef struct __attribute__((aligned(8))) int2 {
    int x, y;
} int2;
typedef struct __attribute__((aligned(16))) int4 {
    int x, y, z, w;
} int4;
typedef struct __attribute__((aligned(8))) float2 {
    float x, y;
} float2;
typedef struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
} float4;
typedef struct __attribute__((aligned(16))) double2 {
    double x, y;
} double2;

#define make_uint2(x, y) ((uint2){(x), (y)})
#define make_uint4(x, y, z, w) ((uint4){(x), (y), (z), (w)})
#define make_int2(x, y) ((int2){(x), (y)})
#define make_int4(x, y, z, w) ((int4){(x), (y), (z), (w)})
#define make_float2(x, y) ((float2){(x), (y)})
#define make_float4(x, y, z, w) ((float4){(x), (y), (z), (w)})

/* ---- mathematics ---- */

#define EMU_FLOAT_1(name)        \
    extern float name##f(float); \
    extern double name(double);
EMU_FLOAT_1(exp)
EMU_FLOAT_1(exp2)
EMU_FLOAT_1(log)
EMU_FLOAT_1(log2)
EMU_FLOAT_1(log1p)
EMU_FLOAT_1(sqrt)
EMU_FLOAT_1(fabs)
EMU_FLOAT_1(floor)
EMU_FLOAT_1(ceil)
EMU_FLOAT_1(rint)
EMU_FLOAT_1(tanh)
extern float fmaf(float, float, float);
extern double fma(double, double, double);
extern float fminf(float, float);
extern float fmaxf(float, float);
extern double fmin(double, double);
extern double fmax(double, double);
extern float powf(float, float);
extern double pow(double, double);
extern int printf(const char *, ...);

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)

DEVICE float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}

#define min(a, b)                          \
    ({                                     \
        __typeof__((a) + (b)) emu_a = (a); \
        __typeof__((a) + (b)) emu_b = (b); \
        emu_b < emu_a ? emu_b : emu_a;     \
    })
#define max(a, b)                          \
    ({                                     \
        __typeof__((a) + (b)) emu_a = (a); \
        __typeof__((a) + (b)) emu_b = (b); \
        emu_b > emu_a ? emu_b : emu_a;     \
    })

DEVICE unsigned __float_as_uint(float x) {
    unsigned y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
DEVICE float __uint_as_float(unsigned x) {
    float y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
DEVICE int __float_as_int(float x) {
    return (int)__float_as_uint(x);
}
DEVICE float __int_as_float(int x) {
    return __uint_as_float((unsigned)x);
}
DEVICE int __popc(unsigned x) {
    return __builtin_popcount(x);
}
DEVICE int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
DEVICE int __ffs(int x) {
    return __builtin_ffs(x);
}
DEVICE unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}

/* ---- 16-bit floats ---- */

DEVICE float half_up(unsigned short x) {
    unsigned sign = (unsigned)(x & 0x8000) << 16;
    unsigned exponent = x >> 10 & 31;
    unsigned mantissa = x & 0x3FF;
    if (exponent == 31) {
        return __uint_as_float(sign | 0x7F800000u | mantissa << 13);
    }
    if (exponent == 0) { /* a multiple of 2^-24, which float32 holds exactly */
        float size = (float)mantissa * 0x1.0p-24f;
        return sign != 0 ? -size : size;
    }
    return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* To the nearest, ties to even; what is no number becomes 0x7FFF as on a GPU. */
DEVICE unsigned short half_down(float x) {
    unsigned bits = __float_as_uint(x);
    unsigned sign = bits >> 16 & 0x8000;
    unsigned size = bits & 0x7FFFFFFF;
    if (size > 0x7F800000) {
        return 0x7FFF;
    }
    if (size >= 0x477FF000) { /* 65520 and above round to infinity */
        return (unsigned short)(sign | 0x7C00);
    }
    if (size <
        0x38800000) { /* below 2^-14: adding 0.5 leaves a multiple of 2^-24 in the mantissa */
        return (unsigned short)(sign |
                                (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3F000000));
    }
    size += 0xFFF + (size >> 13 & 1);
    return (unsigned short)(sign | (size >> 13) - (112 << 10));
}

DEVICE unsigned half_down2(float low, float high) {
    return half_down(low) | (unsigned)half_down(high) << 16;
}

DEVICE float bfloat_up(unsigned short x) {
    return __uint_as_float((unsigned)x << 16);
}

DEVICE unsigned short bfloat_down(float x) {
    unsigned bits = __float_as_uint(x);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) {
        return 0x7FFF;
    }
    return (unsigned short)(bits + 0x7FFF + (bits >> 16 & 1) >> 16);
}

DEVICE unsigned bfloat_down2(float low, float high) {
    return bfloat_down(low) | (unsigned)bfloat_down(high) << 16;
}

/* ---- threads together ---- */

#define __syncthreads() emu_link.barrier(__LINE__)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

DEVICE unsigned long long emu_meet(emu_meeting meeting, unsigned mask, unsigned long long value,
                                   int amount, int width, int line) {
    const unsigned long long *all;
    int lane = emu_link.meet(meeting, mask, value, &all, line);
    int begin = lane & ~(width - 1);
    int from = lane;
    if (meeting == EMU_MEET_SHUFFLE) {
        from = begin + (amount & (width - 1));
    } else if (meeting == EMU_MEET_XOR) {
        from = lane ^ amount;
    } else if (meeting == EMU_MEET_DOWN) {
        from = lane + amount;
    } else if (meeting == EMU_MEET_UP) {
        from = lane - amount;
    }
    return all[from < begin || from >= begin + width ? lane : from];
}

#define EMU_WIDTH(ignored, width, ...) (width)
#define EMU_SHUFFLE(meeting, mask, value, amount, width)                                \
    ({                                                                                  \
        __typeof__((value) + 0) emu_value = (value);                                    \
        unsigned long long emu_bits = 0;                                                \
        __builtin_memcpy(&emu_bits, &emu_value, sizeof emu_value);                      \
        emu_bits = emu_meet(meeting, mask, emu_bits, (int)(amount), (width), __LINE__); \
        __builtin_memcpy(&emu_value, &emu_bits, sizeof emu_value);                      \
        emu_value;                                                                      \
    })
/* The width, 32 unless it is told, is the last argument. */
#define __shfl_sync(mask, value, lane, ...) \
    EMU_SHUFFLE(EMU_MEET_SHUFFLE, mask, value, lane, EMU_WIDTH(0, ##__VA_ARGS__, EMU_WARP))
#define __shfl_xor_sync(mask, value, lanes, ...) \
    EMU_SHUFFLE(EMU_MEET_XOR, mask, value, lanes, EMU_WIDTH(0, ##__VA_ARGS__, EMU_WARP))
#define __shfl_down_sync(mask, value, lanes, ...) \
    EMU_SHUFFLE(EMU_MEET_DOWN, mask, value, lanes, EMU_WIDTH(0, ##__VA_ARGS__, EMU_WARP))
#define __shfl_up_sync(mask, value, lanes, ...) \
    EMU_SHUFFLE(EMU_MEET_UP, mask, value, lanes, EMU_WIDTH(0, ##__VA_ARGS__, EMU_WARP))

#define __syncwarp(...) ((void)emu_meet(EMU_MEET_SYNC, 0xFFFFFFFFu, 0, 0, EMU_WARP, __LINE__))

DEVICE unsigned emu_ballot(unsigned mask, int vote, int line) {
    const unsigned long long *all;
    unsigned votes = 0;
    emu_link.meet(EMU_MEET_VOTE, mask, vote != 0, &all, line);
    for (int i = 0; i < EMU_WARP; i++) {
        votes |= all[i] == 1 ? 1u << i : 0;
    }
    return votes;
}
#define __ballot_sync(mask, vote) emu_ballot(mask, (vote) != 0, __LINE__)
#define __any_sync(mask, vote) (emu_ballot(mask, (vote) != 0, __LINE__) != 0)
#define __all_sync(mask, vote) (emu_ballot(mask, (vote) == 0, __LINE__) == 0)

#if EMU_ARCH >= 80

/* ---- copies that go on while threads compute ---- */

/*
 * They happen as late as they may, when a thread waits for them, and until then nothing is there
 * that could be taken for data.
 */
#define EMU_MOST_COPIES 128 /* that a thread has under way */
typedef struct emu_copies {
    struct {
        void *to;
        const void *from;
        int bytes, group;
    } all[EMU_MOST_COPIES];
    int count, group;
} emu_copies;
static emu_copies emu_under_way[1024] __attribute__((unused));

DEVICE emu_copies *emu_own_copies(void) {
    return &emu_under_way[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
}

DEVICE void copy_begin(void *to, const void *from, int bytes) {
    emu_copies *own = emu_own_copies();
    if (own->count == EMU_MOST_COPIES || ((size_t)to | (size_t)from) % 16 != 0) {
        __builtin_trap();
    }
    own->all[own->count].to = to;
    own->all[own->count].from = from;
    own->all[own->count].bytes = bytes;
    own->all[own->count].group = own->group;
    own->count++;
    __builtin_memset(to, 0xFF, 16);
}

DEVICE void copy_group(void) {
    emu_own_copies()->group++;
}

DEVICE void copy_wait(int groups) {
    emu_copies *own = emu_own_copies();
    int left = 0;
    for (int i = 0; i < own->count; i++) {
        if (own->all[i].group >= own->group - groups) {
            own->all[left++] = own->all[i];
            continue;
        }
        __builtin_memset(own->all[i].to, 0, 16);
        __builtin_memcpy(own->all[i].to, own->all[i].from, (size_t)own->all[i].bytes);
    }
    own->count = left;
}

/* ---- matrices of a warp ---- */

/* Waits a second time, so that no lane goes on and writes before all have read. */
#define matrices(to, row) emu_matrices(to, row, 0, __LINE__)
#define matrices_turned(to, row) emu_matrices(to, row, 1, __LINE__)
DEVICE void emu_matrices(unsigned *to, const void *row, int turned, int line) {
    const unsigned long long *all;
    int lane = emu_link.meet(EMU_MEET_MATRIX, 0xFFFFFFFFu, (unsigned long long)row, &all, line);
    for (int i = 0; i < 4; i++) {
        const unsigned short *rows[8];
        for (int k = 0; k < 8; k++) {
            rows[k] = (const unsigned short *)all[8 * i + k];
            if ((size_t)rows[k] % 16 != 0) {
                __builtin_trap();
            }
        }
        int a = lane / 4;
        int b = 2 * (lane % 4);
        to[i] = turned ? rows[b][a] | (unsigned)rows[b + 1][a] << 16
                       : rows[a][b] | (unsigned)rows[a][b + 1] << 16;
    }
    emu_link.meet(EMU_MEET_MATRIX, 0xFFFFFFFFu, 0, &all, line);
}

DEVICE float emu_half_of(unsigned pair, int high) {
    unsigned short x = (unsigned short)(high ? pair >> 16 : pair);
#if TYPE == 2
    return bfloat_up(x);
#else
    return half_up(x);
#endif
}

#define add_product(c, a, b) emu_add_product(c, a, b, __LINE__)
DEVICE void emu_add_product(float *c, const unsigned *a, const unsigned *b, int line) {
    const unsigned long long *all;
    unsigned long long rows[2]
                           [4]; /* of a: the two rows of this lane, from the four that have them */
    unsigned long long columns[2][4];
    double sums[4] = {c[0], c[1], c[2], c[3]};
    int lane = 0;
    for (int k = 0; k < 2; k++) { /* k: the first 8 columns of a, then the others */
        lane = emu_link.meet(EMU_MEET_MATRIX, 0xFFFFFFFFu,
                             a[2 * k] | (unsigned long long)a[2 * k + 1] << 32, &all, line);
        for (int t = 0; t < 4; t++) {
            rows[k][t] = all[lane / 4 * 4 + t];
        }
    }
    lane = emu_link.meet(EMU_MEET_MATRIX, 0xFFFFFFFFu, b[0] | (unsigned long long)b[1] << 32, &all,
                         line);
    for (int t = 0; t < 4; t++) {
        columns[0][t] = all[2 * (lane % 4) * 4 + t];
        columns[1][t] = all[(2 * (lane % 4) + 1) * 4 + t];
    }
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 16; k++) {
            unsigned x = (unsigned)(rows[k / 8][k % 8 / 2] >> (i / 2 * 32));
            unsigned y = (unsigned)(columns[i % 2][k % 8 / 2] >> (k / 8 * 32));
            sums[i] += (double)emu_half_of(x, k % 2) * (double)emu_half_of(y, k % 2);
        }
        c[i] = (float)sums[i];
    }
}

#else /* an older GPU: a kernel that uses them does not compile */
#define EMU_TOO_NEW __attribute__((error("not on a GPU of this compute capability")))
void copy_begin(void *to, const void *from, int bytes) EMU_TOO_NEW;
void copy_group(void) EMU_TOO_NEW;
void copy_wait(int groups) EMU_TOO_NEW;
#endif

#define atomicAdd(place, value)                          \
    ({                                                   \
        __typeof__(place) emu_place = (place);           \
        __typeof__(*emu_place + 0) emu_old = *emu_place; \
        *emu_place = emu_old + (value);                  \
        emu_old;                                         \
    })

/* Hints to the caches. */
#define __ldg(place) (*(place))
#define __ldcg(place) (*(place))
#define __ldcs(place) (*(place))
#define __stcg(place, value) ((void)(*(place) = (value)))
#define __stcs(place, value) ((void)(*(place) = (value)))
