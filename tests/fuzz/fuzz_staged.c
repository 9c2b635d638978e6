/*
 * fuzz_staged.c - the tables of a staged data set that somebody hands on: stage.json, samples.csv
 * and the sample submission beside a whole shard.
 */
#include "fuzz_dataset.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("{\"format\": 1, \"id_name\": \"id\", \"label_name\": \"label\"}" FUZZ_NEXT
              "split,class,id,path,member\ntrain,a,1,train/1.jpg,000000000.jpg\n"
              "train,b,2,train/2.jpg,000000001.jpg\nval,a,3,v.jpg,\ntest,,4,test/4.jpg,\n" FUZZ_NEXT
              "id,label\n4,a\n"),
    FUZZ_SEED(
        "{\"format\": 1}" FUZZ_NEXT "split,class,id,path,member,fold\n"
        "train,a,1,../../etc/passwd,000000000.jpg,0\ntrain,b,2,x,/000000001.jpg,1\n" FUZZ_NEXT),
    FUZZ_SEED("{\"format\": 2}" FUZZ_NEXT "a\n" FUZZ_NEXT "b\n"),
};
FUZZ_PLAN_FILES(seeds)

/* A tar with one byte in each of two members. */
static void make_shard(void) {
    static bool made;
    static char tar[512 * 6];
    if (made) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        char *head = tar + 1024 * i;
        unsigned sum = 8 * ' ';
        snprintf(head, 100, "%09d.jpg", i);
        memcpy(head + 100,
               "0000644\0"
               "0000000\0"
               "0000000\0"
               "00000000001\0"
               "00000000000\0",
               48);
        head[156] = '0';
        memcpy(head + 257,
               "ustar\0"
               "00",
               8);
        for (int k = 0; k < 512; k++) {
            sum += k >= 148 && k < 156 ? 0 : (unsigned char)head[k];
        }
        snprintf(head + 148, 8, "%06o", sum);
        head[155] = ' ';
    }
    fuzz_put("train-000000.tar", (fuzz_seed){tar, sizeof tar});
    made = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_seed parts[FUZZ_PARTS];
    make_shard();
    fuzz_divide(data, size, parts);
    fuzz_put("stage.json", parts[0]);
    fuzz_put("samples.csv", parts[1]);
    fuzz_put("sample_submission.csv", parts[2]);
    fuzz_open_dataset((stk_dataset_options){.mismatch = STK_MISMATCH_ERROR});
    fuzz_open_dataset((stk_dataset_options){
        .mismatch = STK_MISMATCH_SKIP, .rare_class = STK_RARE_DROP, .fold_column = "fold"});
    return 0;
}
