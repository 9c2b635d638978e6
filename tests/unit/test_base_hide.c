/* test_base_hide.c - which parts of a command line are hidden, and which stay. */
#include "check.h"

#include "base/hide.h"

/* One line hidden, as a word of its own; NULL: all of it stays. */
static void expect_hidden(const char *line, const char *wanted) {
    stk_hider hider = {0};
    stk_str text = {0};
    stk_hide_word(&hider, line, &text);
    CHECK_STR(stk_str_text(&text), wanted != NULL ? wanted : line);
    stk_str_free(&text);
}

static void values_of_secret_names_are_hidden(void) {
    expect_hidden("--token=abc", "--token=***");
    expect_hidden("train --token abc --epochs 3", "train --token *** --epochs 3");
    expect_hidden("--api-key=abc", "--api-key=***");
    expect_hidden("--wandb-key=abc --lr 1", "--wandb-key=*** --lr 1");
    expect_hidden("WANDB_API_KEY=abc python t.py", "WANDB_API_KEY=*** python t.py");
    expect_hidden("env DB_PASSWORD='a b' run", "env DB_PASSWORD='***' run");
    expect_hidden("--hfToken abc", "--hfToken ***");
    expect_hidden("+logger.wandb.api_key=abc", "+logger.wandb.api_key=***");
    expect_hidden("--aws-secret-access-key abc", "--aws-secret-access-key ***");
    expect_hidden("--passwd abc; --pwd=abc&& x", "--passwd ***; --pwd=***&& x");
    expect_hidden("{\"token\": \"abc\", \"epochs\": 3}", "{\"token\": \"***\", \"epochs\": 3}");
    expect_hidden("curl -H 'Authorization: Bearer abc.def' -o x",
                  "curl -H 'Authorization: ***' -o x");
    expect_hidden("AccountName=a;AccountKey=abc==;x=1", "AccountName=a;AccountKey=***;x=1");
    expect_hidden("--private_key \"a b\" c", "--private_key \"***\" c");
    expect_hidden("--credentials=x --auth me:you", "--credentials=*** --auth ***");
    expect_hidden("--key 0123456789abcdef0123", "--key ***");
    expect_hidden("--clientSecret abc --jwt=abc", "--clientSecret *** --jwt=***");
    expect_hidden("DB_PASS=abc x --db-pw abc", "DB_PASS=*** x --db-pw ***");
    expect_hidden("curl -H 'Cookie: a=b; c=d' -o x", "curl -H 'Cookie: ***' -o x");
}

static void addresses_lose_their_secrets(void) {
    expect_hidden("https://me:pass@host/a?b=c", "https://***@host/a?b=c");
    expect_hidden("https://h/a?X-Amz-Credential=q&X-Amz-Signature=0f&n=1",
                  "https://h/a?X-Amz-Credential=***&X-Amz-Signature=***&n=1");
    expect_hidden("https://h/a?access_token=q1", "https://h/a?access_token=***");
    expect_hidden("ssh://git@host/a", "ssh://git@host/a");
    expect_hidden("postgres://u:p@h:5432/db x@y", "postgres://***@h:5432/db x@y");
    expect_hidden("--data s3://me:a/b+c@bucket/x", "--data s3://***@bucket/x");
    expect_hidden("http://h:80/a@b http://[::1]:80/a@b s3://b/a:c@d",
                  "http://h:80/a@b http://[::1]:80/a@b s3://b/a:c@d");
}

static void sentences_lose_the_secrets_of_addresses(void) {
    static const char *const cases[][2] = {
        {"cannot open s3://me:a/b+c@bucket/x: no", "cannot open s3://***@bucket/x: no"},
        {"x://u:p@h and y://v:longer@i", "x://***@h and y://***@i"},
        {"a://:@h b://u:@h c://:p@h", "a://*@h b://**@h c://**@h"},
        {"http://host:9000/x@y: no answer", "http://host:9000/x@y: no answer"},
        {"password=abc stays: it is a word", "password=abc stays: it is a word"},
        {"://", "://"},
        {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        stk_hide_addresses(text);
        CHECK_STR(text, cases[i][1]);
    }
}

static void known_tokens_are_hidden(void) {
    expect_hidden("push ghp_0123456789abcdefABCDEF012345", "push ***");
    expect_hidden("x hf_abcdefghij0123456789 y", "x *** y");
    expect_hidden("AKIA0123456789ABCDEF", "***");
    expect_hidden("f(sk-ant-api03-0123456789abcdef)", "f(***)");
}

/* Some services give out no digits. */
static void tokens_of_letters_are_hidden(void) {
    expect_hidden("x hf_QkAbCdEfGhIjKlMnOpQrStUvWxYzabcdef y", "x *** y");
    expect_hidden("AKIAIOSFODNNAEXAMPLE", "***");
    expect_hidden("hf_hub_download_of_a_model sk-learn-contrib-extras", NULL);
}

/* What a program gets as one argument may have anything in it, and no shell looks at it. */
static void an_argument_is_hidden_to_its_end(void) {
    static const char *const words[][2] = {
        {"--password=a,b;c&d e\"f'g(h)", "--password=***"},
        {"DB_PASSWORD=a;b c", "DB_PASSWORD=***"},
        {"+db.password=a,b", "+db.password=***"},
        {"--secrets-json={\"a\": \"b\"}", "--secrets-json=***"},
        {"Cookie: a=b; c=d", "Cookie: ***"},
        {"https://h/?token=a&n=1", "https://h/?token=***&n=1"},
        {"-c", "-c"},
        {"TOKEN=a python t.py --password=b; x", "TOKEN=*** python t.py --password=***; x"},
        {"--pass", "--pass"},
        {"word", "***"},
        {"--pass", "--pass"},
        {"2", "2"},
        {"--key", "--key"},
        {"0123456789abcdef0123", "***"},
        {"--key", "--key"},
        {"label", "label"},
    };
    stk_hider hider = {.arguments = true};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        stk_str text = {0};
        stk_hide_word(&hider, words[i][0], &text);
        CHECK_STR(stk_str_text(&text), words[i][1]);
        stk_str_free(&text);
    }
}

/* What trainings are given day by day. */
static void other_words_stay(void) {
    static const char *const lines[] = {
        "python -u train.py --tokenizer bert --max-tokens 512 --num_tokens=3",
        "--sort-key name --batch-key train.batch_size --key label",
        "--authors me --secretary x --keys a,b --monkey 1",
        "torchrun --nproc_per_node=8 --rdzv-endpoint=host:29400 train.py",
        "a=b c:d e@f http://host:80/x?y=z#w",
        "--passes 3 --compass north --signal TERM",
        "--pass 2 --two-pass=true --bypass x",
        "hf_transfer sk-learn AKIA eyJ",
        "--lr=1e-3 --out 'a b' \"c d\" $HOME",
        "--token",
        "--token --epochs 3",
        "",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        expect_hidden(lines[i], lines[i]);
    }
}

static void a_flag_hides_the_next_word(void) {
    static const char *const words[] = {"train", "--token",   "a b=c", "--password", "--x",
                                        "y",     "--api-key", "z",     "last"};
    stk_hider hider = {0};
    stk_str text = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        stk_hide_word(&hider, words[i], &text);
        stk_str_append(&text, " ");
    }
    CHECK_STR(stk_str_text(&text), "train --token *** --password --x y --api-key *** last ");
    stk_str_free(&text);
}

static void values_of_variables_are_hidden(void) {
    char token[] = "A_TOKEN=long-enough";
    char brief[] = "B_TOKEN=short";
    char other[] = "HOME=/home/somebody";
    char pass[] = "DB_PASS=dunno-what";
    char *environment[] = {token, brief, other, pass, NULL};
    stk_str text = {0};
    stk_str_append(&text, "x long-enough short=long-enough /home/somebody:dunno-what");
    stk_hide_values(environment, &text);
    CHECK_STR(stk_str_text(&text), "x *** short=*** /home/somebody:***");
    stk_str_free(&text);
}

static void names_are_told_apart(void) {
    static const char *const secret[] = {"token",  "HF_TOKEN",   "--auth-token", "client_secret",
                                         "ApiKey", "KAGGLE_KEY", "my.password"};
    static const char *const other[] = {"tokens", "tokenizer", "key", "sort_key",
                                        "author", "",          "-"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
        CHECK(stk_hide_is_secret(secret[i], strlen(secret[i])));
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        CHECK(!stk_hide_is_secret(other[i], strlen(other[i])));
    }
    CHECK(stk_hide_is_secret("a_very_long_name_of_many_parts_in_a_row_that_ends_in_token", 58));
}

static const check_test tests[] = {
    TEST(values_of_secret_names_are_hidden),
    TEST(addresses_lose_their_secrets),
    TEST(sentences_lose_the_secrets_of_addresses),
    TEST(known_tokens_are_hidden),
    TEST(tokens_of_letters_are_hidden),
    TEST(an_argument_is_hidden_to_its_end),
    TEST(other_words_stay),
    TEST(a_flag_hides_the_next_word),
    TEST(values_of_variables_are_hidden),
    TEST(names_are_told_apart),
};

CHECK_MAIN(tests)
