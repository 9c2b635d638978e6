/*
 * mean_and_std.c - Stoker's loader from another C program: the mean and the standard deviation of
 * every colour over a folder of pictures, which is what networks are normalised with.
 *
 *     mean_and_std DATA_DIR
 *
 * Built with: cc mean_and_std.c -o mean_and_std $(pkg-config --cflags --libs stoker) -lm
 *
 * DATA_DIR is a data set as docs/datasets.md describes it, or any folder with pictures in or below
 * it. The pictures are read once, in order, scaled to 64 px with their centre kept. Pictures that
 * cannot be used are named and left out. The exit code is that of the stoker command.
 */
#include <math.h>
#include <stdio.h>

#include <stoker/loader.h>

typedef struct sums {
    double count;
    double sum[3];
    double squares[3];
} sums;

/* batch->images is (count, size, size, 3), red, green, blue. */
static void add_batch(sums *s, const stk_batch *batch, size_t pixels) {
    for (size_t i = 0; i < batch->count; i++) {
        const uint8_t *image = batch->images + i * pixels * 3;
        if (batch->bad[i]) {
            continue;
        }
        for (size_t p = 0; p < pixels; p++) {
            for (int c = 0; c < 3; c++) {
                double value = image[3 * p + (size_t)c] / 255.0;
                s->sum[c] += value;
                s->squares[c] += value * value;
            }
        }
        s->count += (double)pixels;
    }
}

static void tell_bad(void *user, const char *path, const char *reason) {
    (void)user;
    fprintf(stderr, "left out %s: %s\n", path, reason);
}

/* Options have the names of the flags of `stoker bench loader`. */
static stk_status set_options(stk_options *options, const char *data, stk_error *err) {
    static const char *const settings[][2] = {
        {"train-transform", "no"}, {"img-size", "64"}, {"batch", "32"}, {"epochs", "1"}};
    stk_status status = stk_options_set(options, "data", data, err);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && status == STK_OK; i++) {
        status = stk_options_set(options, settings[i][0], settings[i][1], err);
    }
    return status;
}

static stk_status add_all(stk_loader *loader, sums *s, stk_error *err) {
    const stk_batch *batch = NULL;
    stk_loader_info info = {.size = sizeof info};
    stk_status status = stk_loader_describe(loader, &info, err);
    while (status == STK_OK && (status = stk_loader_next(loader, &batch, err)) == STK_OK &&
           batch != NULL) {
        add_batch(s, batch, (size_t)info.img_size * (size_t)info.img_size);
        stk_loader_release(loader, batch);
    }
    stk_loader_take_bad(loader, tell_bad, NULL);
    return status;
}

int main(int argc, char **argv) {
    stk_error err = {0};
    stk_options *options = NULL;
    stk_loader *loader = NULL;
    sums s = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: mean_and_std DATA_DIR\n");
        return stk_status_exit_code(STK_ERR_USAGE);
    }
    stk_status status = stk_options_for_loader(&options, &err);
    if (status == STK_OK) {
        status = set_options(options, argv[1], &err);
    }
    if (status == STK_OK) {
        status = stk_loader_open(&loader, options, &err);
    }
    if (status == STK_OK) {
        status = add_all(loader, &s, &err);
    }
    if (status != STK_OK) {
        fprintf(stderr, "mean_and_std: %s\n", err.message);
    } else if (s.count <= 0) {
        fprintf(stderr, "mean_and_std: none of the pictures in %s can be used\n", argv[1]);
        status = STK_ERR_DATA;
    } else {
        for (int c = 0; c < 3; c++) {
            double mean = s.sum[c] / s.count;
            printf("%s mean %.4f std %.4f\n",
                   c == 0   ? "red  "
                   : c == 1 ? "green"
                            : "blue ",
                   mean, sqrt(fmax(s.squares[c] / s.count - mean * mean, 0)));
        }
    }
    stk_loader_close(loader);
    stk_options_free(options);
    return stk_status_exit_code(status);
}
