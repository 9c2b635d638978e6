/*
 * odd_device.c - preloaded, the CPU as a device that is slow, becomes slower or computes nonsense.
 *
 * The backend of the CPU hands the classifier at the end of every network to BLAS, once forwards
 * and once or twice backwards per batch, so that this is the place where each batch passes. Waiting
 * there costs no core: a run that would last on any machine lasts as long on a busy one, and many
 * can be tried at once. Settings, from the environment:
 *
 *     ODD_DEVICE_US     microseconds that a picture takes forwards
 *     ODD_DEVICE_BACK   how many times as long it takes backwards; 1 unless it is given
 *     ODD_DEVICE_FROM   a path: the device is odd as soon as there is such a file or folder,
 *     ODD_DEVICE_UNTIL  until there is this one
 *     ODD_DEVICE_TIMES  how many times as long a picture takes while it is odd
 *     ODD_DEVICE_NAN    1: what it computes forwards while it is odd is no number
 */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Of cblas.h, whose spelling of the types differs from library to library. */
#define NO_TRANS 111
#define TRANS 112

void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static double number(const char *name, double otherwise) {
    const char *text = getenv(name);
    return text != NULL ? strtod(text, NULL) : otherwise;
}

static bool exists(const char *name) {
    const char *path = getenv(name);
    return path != NULL && access(path, F_OK) == 0;
}

static void wait_us(double us) {
    struct timespec left = {.tv_sec = (time_t)(us / 1e6), .tv_nsec = (long)(fmod(us, 1e6) * 1e3)};
    if (us > 0) {
        nanosleep(&left, NULL);
    }
}

void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    __typeof__(&cblas_sgemm) real = (__typeof__(&cblas_sgemm))dlsym(RTLD_NEXT, "cblas_sgemm");
    bool odd = exists("ODD_DEVICE_FROM") && !exists("ODD_DEVICE_UNTIL");
    bool forwards = trans_a == NO_TRANS && trans_b == TRANS;
    real(layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (trans_a == NO_TRANS) { /* then m is the number of pictures */
        wait_us(m * number("ODD_DEVICE_US", 0) * (forwards ? 1 : number("ODD_DEVICE_BACK", 1)) *
                (odd ? number("ODD_DEVICE_TIMES", 1) : 1));
    }
    if (odd && forwards && number("ODD_DEVICE_NAN", 0) > 0) {
        c[0] = NAN;
    }
}
