/* test_dataset_unfit.c - what Stoker does not learn is refused in one sentence. */
#include "test_dataset.h"

#include "base/str.h"

#define ROWS 30

/* A table of pictures a0.jpg, a1.jpg ... whose further cells are those of `cells`, in turn; with a
 * sample of two rows of `answer`. */
static void put_folder_of(const char *header, const char *const *cells, const char *sample_header,
                          const char *answer) {
    stk_str csv = {0};
    size_t count = 0;
    while (cells[count] != NULL) {
        count++;
    }
    fresh();
    stk_str_appendf(&csv, "%s\n", header);
    for (size_t i = 0; i < ROWS; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/a%zu.jpg", i);
        put(name);
        stk_str_appendf(&csv, "a%zu.jpg,%s\n", i, cells[i % count]);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    put("test/t0.jpg");
    put("test/t1.jpg");
    if (sample_header != NULL) {
        char text[400];
        snprintf(text, sizeof text, "%s\nt0.jpg,%s\nt1.jpg,%s\n", sample_header, answer, answer);
        put_text("sample_submission.csv", text);
    }
}

/* Opens with --task NAME and finds so many outputs. */
static void trains_as(stk_task task, int outputs) {
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_TRAIN;
    o.task = (int)task;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->task, task == STK_TASK_AUTO ? d->task : task);
    CHECK_INT(d->class_count, outputs);
    stk_dataset_free(d);
}

static void runs_of_pixels(void) {
    static const char *const runs[] = {"0 87 101 22 202 43", "", "5 3 9 1 20 4 30 2",
                                       "1 2 10 5 44 1 70 3", NULL};
    static const char *const unsorted[] = {"104 4 2247 6 978 9", "5 1 3 2", "-1", "", NULL};
    static const char *const attributes[] = {"51 111 1092",        "3 51",   "7",
                                             "111 2000 2001 3000", "3 7 51", NULL};
    put_folder_of("id,what", runs, "id,what", "1 1");
    fails_with(STK_ERR_DATA, "column 'what' of ");
    CHECK_CONTAINS(error.message, "holds masks as runs of pixels, such as '0 87 101 22 202 43'");
    CHECK_CONTAINS(error.message, "--task multilabel");
    trains_as(STK_TASK_MULTILABEL, 17);
    put_folder_of("ImageId,EncodedPixels", unsorted, "ImageId,EncodedPixels", "1 2");
    fails_with(STK_ERR_DATA, "masks as runs of pixels");
    put_folder_of("id,what", unsorted, "id,what", "1 2");
    put_text("description.md", "Rated by the mean Dice coefficient.\n");
    fails_with(STK_ERR_DATA, "masks as runs of pixels");
    put_folder_of("id,what", unsorted, "id,what", "1 2");
    put_text("description.md", "Rated by various indices of Charles.\n"); /* no such words */
    trains_as(STK_TASK_AUTO, 11);
    static const char *const fours[] = {"1 20 30 44", "2 3 40 50", "5 6 20 99", NULL};
    put_folder_of("id,attribute_ids", fours, NULL, NULL); /* always four labels */
    trains_as(STK_TASK_AUTO, 11);
    put_folder_of("id,attribute_ids", attributes, "id,attribute_ids", "0 1 2");
    trains_as(STK_TASK_AUTO, 8);
}

static void masks_and_pairs_of_pictures(void) {
    static const char *const masks[] = {"m0.png", "m1.png", "m2.png", NULL};
    static const char *const pairs[] = {"a3.jpg,1", "a4.jpg,0", NULL};
    put_folder_of("image,mask", masks, NULL, NULL);
    fails_with(STK_ERR_DATA, "column 'mask' of ");
    CHECK_CONTAINS(error.message, "names pictures, such as 'm0.png'");
    static const char *const both[] = {"m0.png,cat", "m1.png,dog", NULL};
    put_folder_of("image,mask,label", both, NULL, NULL); /* labels beside masks are learned */
    trains_as(STK_TASK_AUTO, 2);
    static const char *const people[] = {"F1/M2,1", "F1/M3,0", NULL};
    put_folder_of("left,right,same", pairs, "left,same", "0.5");
    fails_with(STK_ERR_DATA, "columns 'left' and 'right' of ");
    put_folder_of("p1,p2,same", people, NULL, NULL);
    fails_with(STK_ERR_DATA, "columns 'p1' and 'p2' of ");
    put_folder_of("image1,image2,same", pairs, "image1,same", "0.5");
    fails_with(STK_ERR_DATA, "columns 'image1' and 'image2' of ");
    CHECK_CONTAINS(error.message, "compares no pairs");
    stk_dataset_options o = options();
    o.label_column = "same";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->task, STK_TASK_BINARY);
    stk_dataset_free(d);
}

static void matches_of_rows(void) {
    static const char *const groups[] = {"12345", "12346", "12347", NULL};
    put_folder_of("id,label_group", groups, NULL, NULL);
    put_text("sample_submission.csv", "id,matches\nt0.jpg,t0.jpg\nt1.jpg,t1.jpg t0.jpg\n");
    fails_with(STK_ERR_DATA, "has ids of rows in column 'matches', such as 't0.jpg'");
    stk_dataset_options o = options();
    o.label_column = "label_group";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 3);
    stk_dataset_free(d);
}

static void boxes(void) {
    static const char *const corners[] = {"red,3,8,36,58", "blue,12,14,31,30", NULL};
    static const char *const records[] = {"\"[{'x': 0, 'y': 4, 'width': 5, 'height': 6}]\"", "[]",
                                          NULL};
    static const char *const named[] = {"U+3042 1 2 30 40 U+3044 5 6 70 80", "U+3044 9 8 7 6",
                                        "U+3046 1 1 2 2", NULL};
    static const char *const fours[] = {"\"[70.0, 5.5, 8.0, 7.0]\"", "\"[1.0, 2.0, 3.0, 4.0]\"",
                                        NULL};
    static const struct {
        const char *header;
        const char *const *cells;
        const char *sample_header;
        const char *answer;
        const char *where;
    } folders[] = {
        {"id,class,xmin,ymin,xmax,ymax", corners, "id,PredictionString", "red 0.9 0 0 1 1",
         "(xmin ... ymax in train.csv)"},
        {"id,kind,bbox_x1,bbox_y1,bbox_x2,bbox_y2", corners, "id,bbox_x1,bbox_y1,bbox_x2,bbox_y2",
         "0,0,0,0", "(bbox_x1 ... bbox_y2 in train.csv)"},
        {"id,kind,x,y,w,h", corners, "id,kind,conf,x,y,w,h", "a,0.5,0,0,1,1",
         "(x ... h in train.csv)"},
        {"id,annotations", records, "id,annotations", "0.5 0 0 100 100",
         "(annotations in train.csv)"},
        {"id,labels", named, "id,labels", "U+003F 1 1 2 2", "(labels in train.csv)"},
        {"id,bbox", fours, "id,PredictionString", "1.0 0 0 50 50", "(bbox in train.csv)"},
    };
    for (size_t i = 0; i < STK_COUNT(folders); i++) {
        put_folder_of(folders[i].header, folders[i].cells, folders[i].sample_header,
                      folders[i].answer);
        fails_with(STK_ERR_DATA, "the sample submission asks for boxes in pictures ");
        CHECK_CONTAINS(error.message, folders[i].where);
    }
    put_folder_of("id,bbox", fours, NULL, NULL);
    fails_with(STK_ERR_DATA, "column 'bbox' of ");
    CHECK_CONTAINS(error.message, "holds boxes");
    /* Labels beside boxes are learned where they are asked for. */
    put_folder_of("id,class,xmin,ymin,xmax,ymax", corners, "id,class", "red");
    trains_as(STK_TASK_AUTO, 2);
    put_folder_of("id,class,xmin,ymin,xmax,ymax", corners, NULL, NULL);
    trains_as(STK_TASK_AUTO, 2);
}

static void several_numbers_in_a_cell(void) {
    static const char *const tuples[] = {"\"(30, 47)\"", "\"(5, 6)\"", "\"(7, 1)\"", NULL};
    static const char *const points[] = {"0.44 0.24", "0.5 0.82", "0.18 0.01", NULL};
    put_folder_of("id,label", tuples, "id,label", "\"(0, 0)\"");
    fails_with(STK_ERR_DATA, "holds several numbers in a cell, such as '(30, 47)'");
    CHECK_CONTAINS(error.message, "--label-column A,B");
    static const char *const outlines[] = {"\"[[3, 4], [5, 6], [7, 8]]\"", "\"[[1, 2], [3, 4]]\"",
                                           NULL};
    put_folder_of("id,outline", outlines, NULL, NULL);
    fails_with(STK_ERR_DATA, "several numbers in a cell, such as '[[3, 4], [5, 6], [7, 8]]'");
    put_folder_of("id,label", points, "id,label", "0.5 0.5");
    fails_with(STK_ERR_DATA, "several numbers in a cell, such as '0.44 0.24'");
    trains_as(STK_TASK_SINGLE, 3);
}

static void sentences_and_names(void) {
    stk_str csv = {0};
    fresh();
    stk_str_append(&csv, "id,caption\n");
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/a%d.jpg", i);
        put(name);
        stk_str_appendf(&csv, "a%d.jpg,a shape of kind %d on the floor\n", i, i);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    fails_with(STK_ERR_DATA, "column 'caption' of ");
    CHECK_CONTAINS(error.message, "holds sentences, such as 'a shape of kind 0 on the floor'");
    static const char *const birds[] = {"great bird of paradise", "lily of the valley", "rose",
                                        "crown of the north", NULL};
    put_folder_of("id,label", birds, NULL, NULL);
    trains_as(STK_TASK_AUTO, 4);
}

static void memory_runs_out(void) {
    static const char *const corners[] = {"red,3,8,36,58", "blue,12,14,31,30", NULL};
    put_folder_of("id,class,xmin,ymin,xmax,ymax", corners, NULL, NULL);
    stk_dataset_options o = options();
    open_without_memory(&o);
}

static const check_test tests[] = {
    TEST(runs_of_pixels),  TEST(masks_and_pairs_of_pictures), TEST(matches_of_rows),
    TEST(boxes),           TEST(several_numbers_in_a_cell),   TEST(sentences_and_names),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
