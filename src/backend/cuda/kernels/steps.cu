/*
 * steps.cu - one number becomes the logits of classes that are steps of a scale, as engine/steps.h
 * has it. A thread has one sample: the classes are few.
 */

#ifdef K_steps
/* y (batch, classes) from x (batch). */
KERNEL steps(const T *x, T *y, int batch, int classes, float middle, float pull, float fall) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch) {
        float place = up(x[i]);
        for (int k = 0; k < classes; k++) {
            float above = (float)k - middle;
            y[(u64)i * classes + k] = down(above * (pull * place - fall * above));
        }
    }
}
#endif

#ifdef K_steps_back
/* dx (batch) from dy (batch, classes); added to what is there where `add` is 1. */
KERNEL steps_back(const T *dy, T *dx, int add, int batch, int classes, float middle, float pull) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch) {
        float sum = 0;
        for (int k = 0; k < classes; k++) {
            sum += ((float)k - middle) * up(dy[(u64)i * classes + k]);
        }
        dx[i] = down(pull * sum + (add ? up(dx[i]) : 0));
    }
}
#endif
