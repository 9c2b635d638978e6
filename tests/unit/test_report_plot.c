/* The canvas, the results plot, and the cleaning of foreign text. */
#include "check.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "report/plots/canvas.h"
#include "report/plots/plots.h"
#include "report/text/text.h"

/* Rows of a run that learns, as a plot would be given them. */
static void fill_rows(stk_event_epoch *rows, int fold, int epochs) {
    for (int i = 0; i < epochs; i++) {
        double progress = epochs > 1 ? (double)i / (epochs - 1) : 0;
        double wave = 0.06 * sin(1.7 * i + fold);
        rows[i] = (stk_event_epoch){
            .fold = fold,
            .epoch = i + 1,
            .epochs = epochs,
            .train_loss = 2.0 * exp(-3.2 * progress) + 0.08,
            .train_acc1 = 97 - 80 * exp(-4.0 * progress),
            .val_loss = 1.9 * exp(-2.6 * progress) + 0.22 + wave,
            .val_acc1 = 92 - 74 * exp(-4.2 * progress) + 20 * wave * (1 - progress),
            .val_acc5 = 99.5 - 32 * exp(-6 * progress),
            .lr = 0.05 * (1 + cos(3.14159265 * progress)) / 2,
            .images_per_second = 800 + 30 * sin(2.1 * i + fold) - (i == 0 ? 120 : 0),
            .wait_fraction = 0.03,
            .seconds = 2.9,
            .best = i == epochs - 1 || i == 0,
        };
    }
}

/* Of one fold, the last row is the best. */
static stk_plot plot_of(const char *title, const stk_event_epoch *rows, size_t count) {
    int folds = count > 0 ? rows[count - 1].fold + 1 : 1;
    return (stk_plot){.title = title,
                      .rows = rows,
                      .count = count,
                      .folds = folds,
                      .best = count > 0 && folds == 1 ? &rows[count - 1] : NULL};
}

static char *read_text(const char *path, size_t *size) {
    char *text = NULL;
    stk_error err = {0};
    return stk_file_read(path, 0, &text, size, &err) == STK_OK ? text : NULL;
}

/* Times that a part occurs. */
static int occurrences(const char *text, const char *part) {
    int count = 0;
    for (const char *p = strstr(text, part); p != NULL; p = strstr(p + 1, part)) {
        count++;
    }
    return count;
}

/*
 * A check of form that our own writer's SVG must pass: tags are balanced, attributes quoted, and no
 * bare '&' or '<' stands in text.
 */
static bool is_well_formed(const char *text) {
    int depth = 0;
    const char *p = text;
    while (*p != '\0') {
        if (*p == '&' && strncmp(p, "&amp;", 5) != 0 && strncmp(p, "&lt;", 4) != 0 &&
            strncmp(p, "&gt;", 4) != 0) {
            return false;
        }
        if (*p != '<') {
            p++;
            continue;
        }
        const char *end = strchr(p, '>');
        if (end == NULL) {
            return false;
        }
        int quotes = 0;
        for (const char *q = p + 1; q < end; q++) {
            quotes += *q == '"';
            if (*q == '<') {
                return false;
            }
        }
        if (quotes % 2 != 0) {
            return false;
        }
        depth += p[1] == '/' ? -1 : p[1] == '?' || end[-1] == '/' ? 0 : 1;
        if (depth < 0) {
            return false;
        }
        p = end + 1;
    }
    return depth == 0;
}

/* The picture of these rows from the plain SVG writer; freed with stk_mem_free. */
static char *plain_svg(const stk_event_epoch *rows, size_t count, const char *title) {
    stk_error err = {0};
    stk_canvas *canvas = NULL;
    stk_str out = {0};
    stk_plot plot = plot_of(title, rows, count);
    if (stk_canvas_svg_new(&canvas, STK_PLOT_WIDTH_PX, STK_PLOT_HEIGHT_PX, &err) != STK_OK ||
        stk_plot_draw(&plot, canvas, &err) != STK_OK ||
        stk_canvas_finish(canvas, &out, &err) != STK_OK) {
        CHECK_FAIL("drawing failed: %s", err.message);
    }
    stk_canvas_free(canvas);
    return stk_str_take(&out);
}

static void svg_is_well_formed(void) {
    const int counts[] = {1, 2, 14, 100};
    static stk_event_epoch rows[100];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fill_rows(rows, 0, counts[i]);
        char *svg = plain_svg(rows, (size_t)counts[i], "convnet_s on <a & b>");
        REQUIRE(svg != NULL);
        CHECK(is_well_formed(svg));
        CHECK(strstr(svg, "nan") == NULL);
        CHECK(strstr(svg, "inf") == NULL);
        CHECK_CONTAINS(svg, "width=\"1200\" height=\"400\"");
        CHECK_CONTAINS(svg, "convnet_s on &lt;a &amp; b&gt;");
        CHECK_CONTAINS(svg, ">Loss</text>");
        CHECK_CONTAINS(svg, ">images/s, right</text>");
        stk_mem_free(svg);
    }
}

static void one_epoch_shows_as_dots(void) {
    stk_event_epoch row;
    fill_rows(&row, 0, 1);
    char *svg = plain_svg(&row, 1, NULL);
    REQUIRE(svg != NULL);
    /* Two losses, three accuracies, a rate, a speed, and the two dots of the best mark. */
    CHECK_INT(occurrences(svg, "<circle"), 9);
    stk_mem_free(svg);
}

static void no_rows_give_empty_axes(void) {
    char *svg = plain_svg(NULL, 0, "nothing yet");
    REQUIRE(svg != NULL);
    CHECK(is_well_formed(svg));
    CHECK_INT(occurrences(svg, "<circle"), 0);
    stk_mem_free(svg);
}

static void unknown_values_leave_gaps(void) {
    stk_event_epoch rows[5];
    fill_rows(rows, 0, 5);
    for (int i = 0; i < 5; i++) {
        rows[i].val_loss = NAN;
        rows[i].val_acc1 = NAN;
        rows[i].val_acc5 = NAN;
        rows[i].best = false;
    }
    rows[2].train_loss = INFINITY;
    rows[3].lr = NAN;
    char *svg = plain_svg(rows, 5, NULL);
    REQUIRE(svg != NULL);
    CHECK(is_well_formed(svg));
    CHECK(strstr(svg, "nan") == NULL);
    CHECK(strstr(svg, "inf") == NULL);
    CHECK(strstr(svg, "top-5") == NULL);
    /* Four of five losses, five accuracies, four rates, five speeds. */
    CHECK_INT(occurrences(svg, "<circle"), 4 + 5 + 4 + 5);
    stk_mem_free(svg);
}

static void extreme_values_stay_finite(void) {
    stk_event_epoch rows[3];
    fill_rows(rows, 0, 3);
    rows[0].train_loss = 1e30;
    rows[1].train_loss = -4;
    rows[2].train_loss = 0;
    for (int i = 0; i < 3; i++) {
        rows[i].lr = 3e-7;
        rows[i].images_per_second = 0;
        rows[i].val_acc1 = 100;
        rows[i].train_acc1 = 100;
        rows[i].val_acc5 = 100;
    }
    char *svg = plain_svg(rows, 3, NULL);
    REQUIRE(svg != NULL);
    CHECK(is_well_formed(svg));
    CHECK(strstr(svg, "nan") == NULL);
    CHECK(strstr(svg, "inf") == NULL);
    CHECK(strstr(svg, ">105<") == NULL);
    stk_mem_free(svg);
}

static void folds_have_colours(void) {
    stk_event_epoch rows[15];
    for (int fold = 0; fold < 3; fold++) {
        fill_rows(rows + (ptrdiff_t)fold * 5, fold, 5);
    }
    char *svg = plain_svg(rows, 15, "five folds");
    REQUIRE(svg != NULL);
    CHECK(is_well_formed(svg));
    CHECK_CONTAINS(svg, ">fold 1</text>");
    CHECK_CONTAINS(svg, ">fold 3</text>");
    CHECK(strstr(svg, ">fold 4</text>") == NULL);
    CHECK_CONTAINS(svg, "stroke=\"#3f9d6c\"");
    stk_mem_free(svg);
}

static void check_picture(const char *path, size_t at_least) {
    static const char png_mark[] = "\x89PNG\r\n\x1a\n";
    size_t size = 0;
    char *bytes = read_text(path, &size);
    REQUIRE(bytes != NULL);
    CHECK(size > at_least);
    if (stk_str_ends_with_nocase(path, ".png")) {
        CHECK(memcmp(bytes, png_mark, 8) == 0);
        /* IHDR: width and height, big-endian. */
        const unsigned char *head = (const unsigned char *)bytes;
        CHECK_INT(head[18] << 8 | head[19], STK_PLOT_WIDTH_PX);
        CHECK_INT(head[22] << 8 | head[23], STK_PLOT_HEIGHT_PX);
    } else {
        CHECK_CONTAINS(bytes, "<svg");
        CHECK_CONTAINS(bytes, "</svg>");
    }
    stk_mem_free(bytes);
}

static void writes_files(void) {
    static stk_event_epoch rows[500];
    stk_error err = {0};
    const char *folder = check_folder();
    const int counts[] = {1, 2, 14, 100};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fill_rows(rows, 0, counts[i]);
        stk_plot plot = plot_of("convnet_s on demo", rows, (size_t)counts[i]);
        char *svg = stk_str_format("%s/plot-%d.svg", folder, counts[i]);
        REQUIRE_OK(stk_plot_write(&plot, svg, &err), &err);
        check_picture(svg, 1000);
        stk_mem_free(svg);
        char *png = stk_str_format("%s/plot-%d.png", folder, counts[i]);
        if (stk_canvas_has_png()) {
            REQUIRE_OK(stk_plot_write(&plot, png, &err), &err);
            check_picture(png, 5000);
        } else {
            CHECK_INT(stk_plot_write(&plot, png, &err), STK_ERR_USAGE);
            CHECK_CONTAINS(err.message, "cairo");
            stk_error_clear(&err);
        }
        stk_mem_free(png);
    }
    for (int fold = 0; fold < 5; fold++) {
        fill_rows(rows + (ptrdiff_t)fold * 12, fold, 12);
    }
    rows[3].val_acc1 = NAN;
    stk_plot plot = plot_of("five folds, invalid \xff bytes", rows, 60);
    char *path = stk_str_format("%s/folds.%s", folder, stk_canvas_has_png() ? "png" : "svg");
    REQUIRE_OK(stk_plot_write(&plot, path, &err), &err);
    check_picture(path, 5000);
    stk_mem_free(path);
}

/* A metric has a panel of its own, in a wider picture; without accuracies theirs is left out. */
static void a_metric_has_a_panel(void) {
    stk_event_epoch rows[4];
    stk_error err = {0};
    size_t size = 0;
    fill_rows(rows, 0, 4);
    for (int i = 0; i < 4; i++) {
        rows[i].val_metric = -1.5 + 0.5 * i;
    }
    stk_plot plot = plot_of("t", rows, 4);
    plot.metric = "r2";
    for (int known = 1; known >= 0; known--) {
        char *path = stk_str_format("%s/metric.svg", check_folder());
        REQUIRE_OK(stk_plot_write(&plot, path, &err), &err);
        char *svg = read_text(path, &size);
        REQUIRE(svg != NULL);
        CHECK_CONTAINS(svg, ">r2</text>");
        CHECK_CONTAINS(svg, "width=\"1600\"");
        CHECK((strstr(svg, ">Accuracy, %</text>") != NULL) == (known == 1));
        CHECK(strstr(svg, "nan") == NULL);
        stk_mem_free(svg);
        stk_mem_free(path);
        for (int i = 0; i < 4; i++) {
            rows[i].val_acc1 = NAN;
        }
    }
}

static void a_missing_folder_is_an_error(void) {
    stk_error err = {0};
    stk_event_epoch row;
    fill_rows(&row, 0, 1);
    stk_plot plot = plot_of("t", &row, 1);
    CHECK_INT(stk_plot_write(&plot, "/nonexistent/results.svg", &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "/nonexistent/results.svg");
}

static void lack_of_memory_is_an_error(void) {
    stk_event_epoch rows[4];
    fill_rows(rows, 0, 4);
    const char *folder = check_folder();
    char *path = stk_str_format("%s/plot.svg", folder);
    stk_plot plot = plot_of("t", rows, 4);
    bool done = false;
    for (int i = 0; i < 2000 && !done; i++) {
        stk_error err = {0};
        stk_mem_fail_after(i);
        stk_status status = stk_plot_write(&plot, path, &err);
        stk_mem_fail_after(-1);
        done = status == STK_OK;
        if (!done) {
            CHECK_INT(status, STK_ERR_MEMORY);
        }
    }
    CHECK(done);
    stk_mem_free(path);
}

static void plain_svg_survives_lack_of_memory(void) {
    stk_event_epoch rows[4];
    fill_rows(rows, 0, 4);
    stk_plot plot = plot_of("t", rows, 4);
    bool done = false;
    for (int i = 0; i < 2000 && !done; i++) {
        stk_error err = {0};
        stk_canvas *canvas = NULL;
        stk_str out = {0};
        stk_mem_fail_after(i);
        stk_status status = stk_canvas_svg_new(&canvas, 300, 100, &err);
        status = status == STK_OK ? stk_plot_draw(&plot, canvas, &err) : status;
        status = status == STK_OK ? stk_canvas_finish(canvas, &out, &err) : status;
        stk_mem_fail_after(-1);
        done = status == STK_OK;
        CHECK(done || status == STK_ERR_MEMORY);
        stk_canvas_free(canvas);
        stk_str_free(&out);
    }
    CHECK(done);
}

static void check_clean(const char *text, const char *as_line, const char *as_utf8) {
    stk_str line = {0};
    stk_str utf8 = {0};
    stk_report_append_line(&line, text);
    stk_report_append_utf8(&utf8, text);
    CHECK_STR(stk_str_text(&line), as_line);
    CHECK_STR(stk_str_text(&utf8), as_utf8);
    stk_str_free(&line);
    stk_str_free(&utf8);
}

static void foreign_text_is_cleaned(void) {
    check_clean("", "", "");
    check_clean("caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80",
                "caf\xc3\xa9 \xf0\x9f\x98\x80");
    check_clean("a\x1b[2J\nb", "a [2J b", "a\x1b[2J\nb");
    check_clean("\xc2\x9b"
                "31m",
                " 31m",
                "\xc2\x9b"
                "31m");
    check_clean("x\xff", "x\xef\xbf\xbd", "x\xef\xbf\xbd");
    check_clean("x\xc3", "x\xef\xbf\xbd", "x\xef\xbf\xbd");
    check_clean("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd");
    check_clean("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_clean("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static const check_test tests[] = {
    TEST(svg_is_well_formed),
    TEST(one_epoch_shows_as_dots),
    TEST(no_rows_give_empty_axes),
    TEST(unknown_values_leave_gaps),
    TEST(extreme_values_stay_finite),
    TEST(folds_have_colours),
    TEST(writes_files),
    TEST(a_metric_has_a_panel),
    TEST(a_missing_folder_is_an_error),
    TEST(lack_of_memory_is_an_error),
    TEST(plain_svg_survives_lack_of_memory),
    TEST(foreign_text_is_cleaned),
};

CHECK_MAIN(tests)
