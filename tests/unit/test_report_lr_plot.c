/* test_report_lr_plot.c - the picture of a learning-rate test, as the SVG that is always there. */
#include "report/plots/plots.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "check.h"

#define COUNT 60

static void fill(stk_lr_point *points) {
    for (int i = 0; i < COUNT; i++) {
        double lr = 1e-7 * pow(10, i / 8.0);
        double loss = 2.3 - 1.2 / (1 + exp(-(i - 42.0) / 3)) + (i > 54 ? 40.0 * (i - 54) : 0);
        points[i] = (stk_lr_point){lr, loss + 0.05 * sin(3.0 * i), loss};
    }
}

/* What the plain canvas makes of a plot; freed by the caller. */
static char *draw(const stk_lr_plot *plot) {
    stk_canvas *canvas = NULL;
    stk_str bytes = {0};
    stk_error err = {0};
    if (stk_canvas_svg_new(&canvas, STK_LR_PLOT_WIDTH_PX, STK_LR_PLOT_HEIGHT_PX, &err) != STK_OK ||
        stk_lr_plot_draw(plot, canvas, &err) != STK_OK ||
        stk_canvas_finish(canvas, &bytes, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    stk_canvas_free(canvas);
    return stk_str_take(&bytes);
}

static void shows_the_curve_and_the_rate(void) {
    stk_lr_point points[COUNT];
    fill(points);
    stk_lr_plot plot = {
        .title = "resnet18 <&>", .points = points, .count = COUNT, .suggestion = 0.0123};
    char *svg = draw(&plot);
    REQUIRE(svg != NULL);
    CHECK_CONTAINS(svg, "suggested 0.0123");
    CHECK_CONTAINS(svg, "resnet18 &lt;&amp;&gt;");
    CHECK_CONTAINS(svg, "learning rate");
    CHECK_CONTAINS(svg, ">1e-07<");
    CHECK_CONTAINS(svg, ">0.1<");
    CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    CHECK(strstr(svg, ">200<") == NULL); /* the explosion is cut off: the valley can be seen */
    stk_mem_free(svg);
}

static void odd_curves(void) {
    stk_lr_point points[COUNT];
    fill(points);
    points[20].loss = NAN;
    points[30].smoothed = INFINITY;
    const stk_lr_plot plots[] = {
        {.points = points, .count = 0, .suggestion = NAN},
        {.points = points, .count = 1, .suggestion = 1e-7},
        {.points = points, .count = COUNT, .suggestion = NAN},
        {.points = points, .count = COUNT, .suggestion = 0},
        {.points = points, .count = COUNT, .suggestion = 1e6},
    };
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        char *svg = draw(&plots[i]);
        REQUIRE(svg != NULL);
        CHECK_CONTAINS(svg, "</svg>");
        CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
        CHECK_INT(strstr(svg, "suggested") != NULL, i == 1 || i == 4);
        stk_mem_free(svg);
    }
    for (int i = 0; i < COUNT; i++) { /* a level loss has an axis, too */
        points[i].loss = points[i].smoothed = 0;
    }
    char *svg = draw(&plots[2]);
    REQUIRE(svg != NULL);
    CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    stk_mem_free(svg);
}

static void files_are_written(void) {
    stk_lr_point points[COUNT];
    stk_error err = {0};
    fill(points);
    stk_lr_plot plot = {.points = points, .count = COUNT, .suggestion = 0.01};
    char *svg = stk_path_join(check_folder(), "lr.svg");
    char *png = stk_path_join(check_folder(), "lr.png");
    REQUIRE_OK(stk_lr_plot_write(&plot, svg, &err), &err);
    CHECK(stk_path_is_file(svg));
    if (stk_canvas_has_png()) {
        char *bytes = NULL;
        size_t size = 0;
        REQUIRE_OK(stk_lr_plot_write(&plot, png, &err), &err);
        REQUIRE_OK(stk_file_read(png, 0, &bytes, &size, &err), &err);
        CHECK(size > 1000 && memcmp(bytes, "\x89PNG", 4) == 0);
        stk_mem_free(bytes);
    }
    stk_mem_free(svg);
    stk_mem_free(png);
}

static const check_test tests[] = {
    TEST(shows_the_curve_and_the_rate),
    TEST(odd_curves),
    TEST(files_are_written),
};

CHECK_MAIN(tests)
