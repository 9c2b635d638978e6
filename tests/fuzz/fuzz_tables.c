/*
 * fuzz_tables.c - the tables of a Kaggle data set, labels and sample submission: a data set whose
 * samples have classes and files, or a sentence.
 */
#include "fuzz_dataset.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("id,label\na,cat\nb,dog\nc,cat\nd,dog\n" FUZZ_NEXT "id,label\nx,cat\ny,cat\n"),
    FUZZ_SEED("image_id,breed,fold,group\na.jpg,1,0,g\nb.jpg,2,1,h\nc.jpg,1,-1,g\n" FUZZ_NEXT
              "image_id,1,2\nx.jpg,0.5,0.5\n"),
    FUZZ_SEED("filename,class\n\"train/a.jpg\",\"a,b\"\ntrain/b.jpg,c\ntrain/../c.jpg,c\n" FUZZ_NEXT
              "filename,target,a,b\n../x,1,0,1\n"),
    FUZZ_SEED("id,label\na,cat\na,dog\n" FUZZ_NEXT "id\nx\nx\n"),
};
FUZZ_PLAN_FILES(seeds)

/* Listing does not read pictures. */
static void make_pictures(void) {
    static const char *const names[] = {"train/a.jpg", "train/b.jpg", "train/c.jpg",
                                        "train/d.jpg", "test/x.jpg",  "test/y.jpg"};
    static bool made;
    if (!made) {
        fuzz_make_folder("train");
        fuzz_make_folder("test");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            fuzz_put(names[i], (fuzz_seed){"", 0});
        }
        made = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_seed parts[FUZZ_PARTS];
    make_pictures();
    fuzz_divide(data, size, parts);
    fuzz_put("train.csv", parts[0]);
    fuzz_put("sample_submission.csv", parts[1]);
    fuzz_open_dataset((stk_dataset_options){.mismatch = STK_MISMATCH_ERROR});
    fuzz_open_dataset((stk_dataset_options){.mismatch = STK_MISMATCH_SKIP,
                                            .rare_class = STK_RARE_TRAIN,
                                            .fold_column = "fold",
                                            .per_class = 1});
    fuzz_open_dataset((stk_dataset_options){
        .mismatch = STK_MISMATCH_SKIP, .rare_class = STK_RARE_DROP, .group_column = "group"});
    return 0;
}
