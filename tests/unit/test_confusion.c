/* test_confusion.c - what a validation.csv comes to. */
#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "report/page/confusion.h"

#define HEADER "path,label,predicted,probability,fold\n"

static stk_status make(stk_confusion *confusion, const char *text, stk_error *err) {
    stk_csv table;
    stk_status status = stk_csv_parse("validation.csv", text, strlen(text), &table, err);
    return status == STK_OK ? stk_confusion_make(confusion, &table, "validation.csv", err) : status;
}

/* Pictures of class `label` for which class `predicted` was predicted. */
static size_t count_of(const stk_confusion *confusion, int label, int predicted) {
    for (size_t i = 0; i < confusion->cell_count; i++) {
        const stk_confusion_cell *cell = &confusion->cells[i];
        if (cell->label == label && cell->predicted == predicted) {
            return cell->count;
        }
    }
    return 0;
}

static void confusion_counts(void) {
    stk_error err = {0};
    stk_confusion c;
    REQUIRE(make(&c,
                 HEADER "a/1.jpg,cat,cat,0.9,0\n"
                        "a/2.jpg,cat,dog,0.2,0\n"
                        "a/3.jpg,dog,cat,0.1,1\n"
                        "a/4.jpg,cat,dog,0.05,1\n",
                 &err) == STK_OK);
    CHECK(c.class_count == 2 && c.pictures == 4 && c.right == 1);
    CHECK_STR(c.classes[0], "cat");
    CHECK_STR(c.classes[1], "dog");
    CHECK(count_of(&c, 0, 0) == 1);
    CHECK(count_of(&c, 0, 1) == 2);
    CHECK(count_of(&c, 1, 0) == 1);
    CHECK(count_of(&c, 1, 1) == 0);
    CHECK(c.cell_count == 3);
    REQUIRE(c.worst_count == 3);
    CHECK_STR(c.worst[0].path, "a/4.jpg");
    CHECK(c.worst[0].label == 0 && c.worst[0].predicted == 1 && c.worst[0].fold == 1);
    CHECK_NEAR(c.worst[0].probability, 0.05, 1e-12);
    CHECK_STR(c.worst[1].path, "a/3.jpg");
    CHECK_STR(c.worst[2].path, "a/2.jpg");
    stk_confusion_free(&c);
}

/* A class that is never predicted has a row, one that nothing has the label of a column. */
static void confusion_one_sided_classes(void) {
    stk_error err = {0};
    stk_confusion c;
    REQUIRE(make(&c, HEADER "1,10,2,0,0\n2,9,2,0,0\n3,2,2,1,0\n4,9,11,0.5,0\n", &err) == STK_OK);
    REQUIRE(c.class_count == 4); /* whole numbers, by value */
    CHECK_STR(c.classes[0], "2");
    CHECK_STR(c.classes[1], "9");
    CHECK_STR(c.classes[2], "10");
    CHECK_STR(c.classes[3], "11");
    CHECK(count_of(&c, 2, 0) == 1 && count_of(&c, 2, 2) == 0);
    CHECK(count_of(&c, 1, 3) == 1 && count_of(&c, 3, 3) == 0);
    stk_confusion_free(&c);
}

/* The order of equals is that of their names, whatever the order in the file. */
static void confusion_worst_are_few_and_sorted(void) {
    stk_error err = {0};
    stk_confusion c;
    stk_str text = {0};
    stk_str_append(&text, HEADER);
    for (int i = 40; i > 0; i--) {
        stk_str_appendf(&text, "p%02d,a,b,%.2f,0\n", i, i <= 5 ? 0.25 : (double)i / 100);
    }
    stk_str_append(&text, "sure,a,a,0.01,0\n"); /* right, however unsure */
    REQUIRE(make(&c, stk_str_text(&text), &err) == STK_OK);
    CHECK(c.worst_count == STK_CONFUSION_WORST);
    for (int i = 0; i < c.worst_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%02d", i + 6);
        CHECK_STR(c.worst[i].path, name);
    }
    stk_confusion_free(&c);
    stk_str_clear(&text);
    stk_str_append(&text, HEADER "b,x,y,0,0\nc,x,y,0,0\na,x,y,0,0\n");
    REQUIRE(make(&c, stk_str_text(&text), &err) == STK_OK);
    CHECK_STR(c.worst[0].path, "a");
    CHECK_STR(c.worst[1].path, "b");
    CHECK_STR(c.worst[2].path, "c");
    stk_confusion_free(&c);
    stk_str_free(&text);
}

static void confusion_of_many_classes(void) {
    enum { CLASSES = 20000 };
    stk_error err = {0};
    stk_confusion c;
    stk_str text = {0};
    stk_confusion_cell pairs[3];
    stk_str_append(&text, HEADER);
    for (int i = 0; i < CLASSES; i++) {
        stk_str_appendf(&text, "%d.jpg,class%05d,class%05d,0.5,0\n", i, i, (i + 1) % CLASSES);
    }
    stk_str_append(&text, "x,class00007,class00003,0.5,0\nx,class00007,class00003,0.5,0\n");
    stk_str_append(&text, "x,class00009,class00010,0.5,0\nx,class00009,class00010,0.5,0\n");
    REQUIRE(make(&c, stk_str_text(&text), &err) == STK_OK);
    CHECK(c.class_count == CLASSES && c.pictures == CLASSES + 4 && c.right == 0);
    CHECK(count_of(&c, 9, 10) == 3 && count_of(&c, 10, 9) == 0);
    CHECK(stk_confusion_pairs(&c, pairs, 3) == 3);
    CHECK(pairs[0].label == 9 && pairs[0].predicted == 10 && pairs[0].count == 3);
    CHECK(pairs[1].label == 7 && pairs[1].predicted == 3 && pairs[1].count == 2);
    CHECK(pairs[2].count == 1 && pairs[2].label == 0 && pairs[2].predicted == 1);
    CHECK(stk_confusion_pairs(&c, pairs, 0) == 0);
    stk_confusion_free(&c);
    stk_str_free(&text);
}

static void confusion_of_nothing(void) {
    stk_error err = {0};
    stk_confusion c;
    stk_confusion_cell pair;
    REQUIRE(make(&c, HEADER, &err) == STK_OK);
    CHECK(c.class_count == 0 && c.pictures == 0 && c.worst_count == 0);
    CHECK(count_of(&c, 0, 0) == 0);
    CHECK(stk_confusion_pairs(&c, &pair, 1) == 0);
    stk_confusion_free(&c);
}

static void confusion_odd_names(void) {
    stk_error err = {0};
    stk_confusion c;
    REQUIRE(make(&c,
                 HEADER "\"a,\"\"b\"\".jpg\",\"x,y\",\"line\nbreak\",1e-9,3\n"
                        "\xff\xfe.jpg,\"x,y\",\"x,y\",1,0\n",
                 &err) == STK_OK);
    CHECK(c.class_count == 2 && c.worst_count == 1);
    CHECK_STR(c.worst[0].path, "a,\"b\".jpg");
    CHECK_STR(c.classes[c.worst[0].predicted], "line\nbreak");
    CHECK_NEAR(c.worst[0].probability, 1e-9, 1e-20);
    stk_confusion_free(&c);
}

static void confusion_refuses(void) {
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"path,label,predicted,fold\na,b,c,0\n", "columns"},
        {HEADER "a,b,c,much,0\n", "line 2"},
        {HEADER "a,b,c,0.5,0\nd,b,c,1.5,0\n", "line 3"},
        {HEADER "a,b,c,nan,0\n", "line 2"},
        {HEADER "a,b,c,0.5,-1\n", "line 2"},
        {HEADER "a,b,c,0.5,first\n", "line 2"},
        {HEADER "a,b,c\n", "line 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_confusion c = {0};
        CHECK(make(&c, cases[i].text, &err) == STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].words);
        stk_confusion_free(&c);
    }
}

static void confusion_without_memory(void) {
    bool done = false;
    for (int64_t n = 0; n < 100 && !done; n++) {
        stk_error err = {0};
        stk_confusion c = {0};
        stk_mem_fail_after(n);
        stk_status status = make(&c, HEADER "a,b,c,0.5,0\nd,c,c,0.5,0\n", &err);
        stk_mem_fail_after(-1);
        done = status == STK_OK;
        CHECK(done || status == STK_ERR_MEMORY);
        stk_confusion_free(&c);
    }
    CHECK(done);
}

static const check_test tests[] = {
    TEST(confusion_counts),
    TEST(confusion_one_sided_classes),
    TEST(confusion_worst_are_few_and_sorted),
    TEST(confusion_of_many_classes),
    TEST(confusion_of_nothing),
    TEST(confusion_odd_names),
    TEST(confusion_refuses),
    TEST(confusion_without_memory),
};

CHECK_MAIN(tests)
