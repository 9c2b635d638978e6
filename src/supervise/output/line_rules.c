/*
 * line_rules.c - the table of rules by which the lines of a training are understood.
 *
 * A line is first cleaned: colours go, letters become small, bytes that are not ASCII (the blocks
 * of progress bars) become '~'. Then it is read once from left to right. Each word is looked up by
 * its first letter in the table of rules; the first that fits counts, and reading goes on behind
 * it. Some words change what the ones behind them mean, and numbers may have a unit (see units).
 * README.md tells how to add a row.
 */
#include "supervise/output/line_rules.h"

#include <string.h>

#include "supervise/output/line_text.h"

/* What '*' passes over at most: a progress bar as wide as a screen. */
#define SKIP_MOST 1000

#define FIELDS_MOST 4

typedef enum rule_kind {
    NOTHING, /* for the word before one */
    SAYS,    /* the numbers of the pattern */
    BAR,     /* the same, of a progress bar */
    OUT_OF_MEMORY,
    MAYBE_OUT, /* out of memory if the line names a GPU */
    TROUBLE,
    LONE_TROUBLE, /* if it is the line */
    /* These words change what those behind them mean. */
    ASIDE,    /* what follows is not of training */
    TRAINING, /* it is */
    OTHER,    /* the next word alone means something else than it does by itself */
    DEVICE    /* a GPU is spoken of */
} rule_kind;

typedef struct rule {
    const char *pattern;
    rule_kind kind;
} rule;

/*
 * In a pattern:
 *   letters     themselves, whatever their case
 *   _           what joins two words: one blank, _, - or dot, or nothing
 *   =           what stands between a name and its value: blanks, colons, equals signs, quotes, #,
 *               or nothing
 *   blank       any number of blanks
 *   [ ] ( ) / | themselves, with blanks before them
 *   %x          a number, with blanks before it, that is what stk_said names x; %_ is passed over,
 *               and %G is %m with a unit
 *   %%          a percent sign
 *   ~           blocks of a bar, and blanks
 *   *           whatever comes before the next sign
 *   ^           the line begins here
 * Rows are in the order of their first letter, those without one last, and the more particular
 * ones come first.
 */
static const rule rules[] = {
    {"aborted", LONE_TROUBLE},
    {"at", OTHER},
    {"avoid", OTHER},
    {"batch_size per device=%b", SAYS},
    {"batch_size(*)=%b", SAYS},
    {"batch_size is %b", SAYS},
    {"batch_size of %b", SAYS},
    {"batch_size=%b", SAYS},
    {"batch=[%s/%S", SAYS},
    {"batch=%s/%S", SAYS},
    {"batch=%s of %S", SAYS},
    {"batch=%k", SAYS},
    {"bs=%b", SAYS},
    {"bus error", TROUBLE},
    {"best", OTHER},
    {"create %w worker processes", SAYS},
    {"cublas_status_alloc_failed", OUT_OF_MEMORY},
    {"cuda out of memory", OUT_OF_MEMORY},
    {"cudaerrormemoryallocation", OUT_OF_MEMORY},
    {"cudnn_status_alloc_failed", OUT_OF_MEMORY},
    {"caching", ASIDE},
    {"computing", ASIDE},
    {"cooldown", OTHER},
    {"cpu", OTHER},
    {"cuda", DEVICE},
    {"downloading", ASIDE},
    {"epoch(train) [%e][%s/%S", SAYS},
    {"epoch=[%e][%s/%S", SAYS},
    {"epoch=[%e/%E", SAYS},
    {"epoch=[%e", SAYS},
    {"epoch=%e/%E", SAYS},
    {"epoch=%e of %E", SAYS},
    {"epoch=%e [%s/%S", SAYS},
    {"epoch=%_%%|*|%d/%E", SAYS},
    {"epoch=%e", SAYS},
    {"epochs=%_%%|*|%d/%E", SAYS},
    {"epochs=%E", SAYS},
    {"ep=[%e/%E", SAYS},
    {"ep=%e/%E", SAYS},
    {"ep=%e", SAYS},
    {"eval", ASIDE},
    {"evaluate", ASIDE},
    {"evaluating", ASIDE},
    {"evaluation", ASIDE},
    {"extracting", ASIDE},
    {"every", OTHER},
    {"fetching", ASIDE},
    {"floating point exception", TROUBLE},
    {"folds", ASIDE},
    {"from", OTHER},
    {"global_step=%g/%S", SAYS},
    {"global_step=%g", SAYS},
    {"gpu_mem=%m/%M", SAYS},
    {"gpu_mem=%m", SAYS},
    {"gpu_memory=%m/%M", SAYS},
    {"gpu_memory=%M", SAYS},
    {"gpu", DEVICE},
    {"hip out of memory", OUT_OF_MEMORY},
    {"host", OTHER},
    {"hip", DEVICE},
    {"images/sec=%i", SAYS},
    {"images/s=%i", SAYS},
    {"images_per_second=%i", SAYS},
    {"images_per_sec=%i", SAYS},
    {"imgs/sec=%i", SAYS},
    {"imgs/s=%i", SAYS},
    {"img/sec=%i", SAYS},
    {"img/s=%i", SAYS},
    {"illegal instruction", TROUBLE},
    {"is killed by signal", TROUBLE},
    {"iteration=[%s/%S", SAYS},
    {"iteration=%s/%S", SAYS},
    {"iteration=%s", SAYS},
    {"iter(train) [%s/%S", SAYS},
    {"iter=[%s/%S", SAYS},
    {"iter=%s/%S", SAYS},
    {"iter=%s", SAYS},
    {"it=%s/%S", SAYS},
    {"it/s=%r", SAYS},
    {"inference", ASIDE},
    {"if", OTHER},
    {"killed", LONE_TROUBLE},
    {"loss=tensor(%l", SAYS},
    {"loss=%l", SAYS},
    {"loss/train=%l", SAYS},
    {"loading", ASIDE},
    {"last", OTHER},
    {"lowest", OTHER},
    {"max_memory_allocated=%m", SAYS},
    {"max_memory=%m", SAYS},
    {"max_mem=%m", SAYS},
    {"memory_allocated=%m", SAYS},
    {"memory_used=%m/%M", SAYS},
    {"memory_used=%m", SAYS},
    {"memory=%m/%M", SAYS},
    {"memory=%u", SAYS},
    {"mem_used=%m", SAYS},
    {"mem=%m/%M", SAYS},
    {"mem=%u", SAYS},
    {"map", ASIDE},
    {"min", OTHER},
    {"mps", DEVICE},
    {"no", OTHER},
    {"oom_kill", TROUBLE},
    {"oom", OUT_OF_MEMORY},
    {"outofmemoryerror", OUT_OF_MEMORY},
    {"out_of_memory", MAYBE_OUT},
    {"peak_memory=%m", SAYS},
    {"peak_mem=%m", SAYS},
    {"predict", ASIDE},
    {"predicting", ASIDE},
    {"preparing", ASIDE},
    {"processing", ASIDE},
    {"patience", OTHER},
    {"previous", OTHER},
    {"resourceexhaustederror", OUT_OF_MEMORY},
    {"resource_exhausted", OUT_OF_MEMORY},
    {"ram", OTHER},
    {"recommended", OTHER},
    {"rocm", DEVICE},
    {"samples/sec=%i", SAYS},
    {"samples/s=%i", SAYS},
    {"samples_per_second=%i", SAYS},
    {"segmentation fault", TROUBLE},
    {"steps_per_second=%r", SAYS},
    {"step=[%s/%S", SAYS},
    {"step=%s/%S", SAYS},
    {"step=%s of %S", SAYS},
    {"step=%s", SAYS},
    {"sanity", ASIDE},
    {"scanning", ASIDE},
    {"since", OTHER},
    {"start", OTHER},
    {"suggested", OTHER},
    {"system", OTHER},
    {"terminate called", TROUBLE},
    {"time=%_s, %i/s", SAYS},
    {"traceback (most", TROUBLE},
    {"train epoch=%e [%n/%N (", SAYS},
    {"training for %E epochs", SAYS},
    {"train for %E epochs", SAYS},
    {"train: %e [%s/%S (", SAYS},
    {"test", ASIDE},
    {"testing", ASIDE},
    {"tta", ASIDE},
    {"train", TRAINING},
    {"training", TRAINING},
    {"try", OTHER},
    {"up", OTHER},
    {"vram=%m/%M", SAYS},
    {"vram=%m", SAYS},
    {"val", ASIDE},
    {"valid", ASIDE},
    {"validate", ASIDE},
    {"validating", ASIDE},
    {"validation", ASIDE},
    {"workers=%w", SAYS},
    {"warmup", OTHER},
    {"%_%%|*|%s/%S [", BAR},
    {"%_%% %s/%S [", BAR},
    {"%_%% ~%s/%S", BAR},
    {"%sit [", BAR},
    {"^%e/%E %G", SAYS},
    {"^%s/%S [=", BAR},
    {"^%s/%S [>", BAR},
    {"^%s/%S [.", BAR},
    {"^%s/%S ~", BAR},
    {"~%s/%S", BAR},
    {"%s/%S batches", SAYS},
    {"%s/%S steps", SAYS},
    {"%s/%S iterations", SAYS},
    {"[%e/%E][%s/%S", SAYS},
    {"[%p/%P", SAYS},
    {"|%p/%P|", SAYS},
};

#define RULE_COUNT (sizeof rules / sizeof *rules)
_Static_assert(RULE_COUNT <= UINT8_MAX, "the index has a byte for each row");

/* What is counted per second. A time before the slash instead (`s/it`) is that of one. */
static const struct {
    char word[12];
    stk_said rate;
} units[] = {
    {"it", STK_SAID_STEP_RATE},        {"its", STK_SAID_STEP_RATE},
    {"iter", STK_SAID_STEP_RATE},      {"iters", STK_SAID_STEP_RATE},
    {"step", STK_SAID_STEP_RATE},      {"steps", STK_SAID_STEP_RATE},
    {"batch", STK_SAID_STEP_RATE},     {"batches", STK_SAID_STEP_RATE},
    {"im", STK_SAID_IMAGE_RATE},       {"img", STK_SAID_IMAGE_RATE},
    {"imgs", STK_SAID_IMAGE_RATE},     {"image", STK_SAID_IMAGE_RATE},
    {"images", STK_SAID_IMAGE_RATE},   {"sample", STK_SAID_IMAGE_RATE},
    {"samples", STK_SAID_IMAGE_RATE},  {"example", STK_SAID_IMAGE_RATE},
    {"examples", STK_SAID_IMAGE_RATE}, {"ex", STK_SAID_IMAGE_RATE},
};

/* The same order as stk_said's. */
static const char letters[] = "eEdsSgnNpPlrimMubkw";

/* Said of training alone, and not counted where something else is spoken of. */
#define BIT(what) (1u << (what))
#define OF_TRAINING                                                              \
    (BIT(STK_SAID_EPOCHS_DONE) | BIT(STK_SAID_STEP) | BIT(STK_SAID_STEPS) |      \
     BIT(STK_SAID_GLOBAL_STEP) | BIT(STK_SAID_IMAGE) | BIT(STK_SAID_IMAGES) |    \
     BIT(STK_SAID_MAYBE_STEP) | BIT(STK_SAID_MAYBE_STEPS) | BIT(STK_SAID_LOSS) | \
     BIT(STK_SAID_STEP_RATE) | BIT(STK_SAID_IMAGE_RATE) | BIT(STK_SAID_MAYBE_BATCH))

/* One number of a pattern that fits. */
typedef struct hit {
    stk_said what;
    stk_figure number;
} hit;

typedef struct reader {
    const char *text;     /* clean, ends with a NUL */
    const char *start;    /* its first character that is no blank */
    const char *word_end; /* of the word before, where it means something for this one; or NULL */
    rule_kind before;     /* what it means for the next */
    bool aside;           /* what follows is not of training */
    bool device;          /* a GPU was named */
    bool maybe_out;       /* out of memory was said */
    const uint8_t *first;
    stk_line *line;
} reader;

static bool is_memory(stk_said what) {
    return what == STK_SAID_MEMORY || what == STK_SAID_MEMORY_TOTAL ||
           what == STK_SAID_MAYBE_MEMORY;
}

/* Whether a number can be what it is taken for. */
static bool is_sound(stk_said what, const stk_figure *number) {
    double value = number->value;
    switch (what) {
    case STK_SAID_LOSS:
        return true;
    case STK_SAID_STEP_RATE:
    case STK_SAID_IMAGE_RATE:
        return value > 0 && value < 1e9;
    case STK_SAID_MEMORY:
    case STK_SAID_MEMORY_TOTAL:
    case STK_SAID_MAYBE_MEMORY:
        return value >= 0 && value < 1e15;
    case STK_SAID_EPOCH:
        return value >= 0 && value < 1e7;
    case STK_SAID_EPOCHS:
    case STK_SAID_BATCH:
    case STK_SAID_MAYBE_BATCH:
        return value >= 1 && value < 1e7 && !number->point;
    case STK_SAID_WORKERS:
        return value >= 0 && value < 1e4 && !number->point;
    default:
        return value >= 0 && value < 1e15 && !number->point;
    }
}

/* Reads what `letter` names; returns the end, or NULL. `what` is STK_SAID_COUNT for one that is
 * passed over. */
static const char *read_field(char letter, const char *at, hit *found) {
    at = stk_skip_blanks(at);
    if (!stk_figure_read(at, &found->number)) {
        return NULL;
    }
    found->what = STK_SAID_COUNT;
    if (letter == '_') {
        return found->number.end;
    }
    const char *named = strchr(letters, letter == 'G' ? 'm' : letter);
    found->what = (stk_said)(named - letters);
    if (is_memory(found->what)) {
        stk_figure_read_unit(&found->number);
        if (letter == 'G' && found->number.unit == 0) {
            return NULL;
        }
    }
    return is_sound(found->what, &found->number) ? found->number.end : NULL;
}

/* Passes over what one sign of a pattern, other than a number, stands for; NULL: it is not there.
 */
static const char *match_sign(const reader *r, const char *sign, const char *at) {
    const char *from = at;
    switch (*sign) {
    case ' ':
        return stk_skip_blanks(at);
    case '_':
        return *at == ' ' || *at == '_' || *at == '-' || *at == '.' ? at + 1 : at;
    case '=':
        while (*at == ' ' || *at == ':' || *at == '=' || *at == '#' || *at == '\'' || *at == '"') {
            at++;
        }
        return at;
    case '~':
        if (*at != ' ' && *at != '~') {
            return NULL;
        }
        while (*at == ' ' || *at == '~') {
            at++;
        }
        return at;
    case '*':
        while (*at != '\0' && *at != sign[1] && at - from < SKIP_MOST) {
            at++;
        }
        return at;
    case '^':
        return at == r->start ? at : NULL;
    case '[':
    case ']':
    case '(':
    case ')':
    case '/':
    case '|':
        at = stk_skip_blanks(at);
        break;
    default:
        break;
    }
    return *at == *sign ? at + 1 : NULL;
}

/* Where the pattern's match ends, or NULL; the numbers go into hits. */
static const char *match(const reader *r, const char *pattern, const char *at, hit *hits,
                         size_t *count) {
    *count = 0;
    bool number_last = false;
    const char *p = pattern;
    for (; *p != '\0' && at != NULL; p++) {
        number_last = *p == '%' && p[1] != '%';
        if (!number_last) {
            p += *p == '%' ? 1 : 0;
            at = match_sign(r, p, at);
            continue;
        }
        p++;
        at = read_field(*p, at, &hits[*count]);
        *count += at != NULL && hits[*count].what != STK_SAID_COUNT ? 1 : 0;
    }
    if (at == NULL) {
        return NULL;
    }
    bool word_last = stk_is_letter(p[-1]) && !number_last;
    bool whole = number_last && !hits[*count - 1].number.point;
    return (word_last && stk_is_letter(*at)) || (whole && (stk_is_letter(*at) || *at == '%')) ? NULL
                                                                                              : at;
}

static void say(stk_line *line, stk_said what, double value) {
    if (!stk_line_says(line, what)) { /* the first on a line is the main one */
        line->said |= BIT(what);
        line->value[what] = value;
    }
}

/* Bytes of memory: without a unit the size of the larger number tells which one is meant. */
static double memory_bytes(const hit *hits, size_t count, size_t which) {
    const stk_figure *number = &hits[which].number;
    const stk_figure *pair = &hits[count - 1].number;
    double unit = number->unit;
    if (unit == 0 && is_memory(hits[count - 1].what)) {
        bool is_pair = hits[count - 1].what == STK_SAID_MEMORY_TOTAL && count > 1;
        unit = pair->unit > 0                  ? pair->unit
               : pair->value >= 1e7            ? 1
               : is_pair && pair->value < 1024 ? 0x1p30
                                               : 0x1p20;
    }
    return number->value * unit;
}

/* Takes what a rule's numbers say, unless the words before it make them something else's. */
static void take(reader *r, const rule *row, rule_kind before, const hit *hits, size_t count) {
    uint32_t passed = before == OTHER   ? UINT32_MAX
                      : before == ASIDE ? OF_TRAINING | BIT(STK_SAID_BATCH) | BIT(STK_SAID_WORKERS)
                      : r->aside        ? OF_TRAINING
                                        : 0;
    for (size_t i = 0; i < count; i++) {
        stk_said what = hits[i].what;
        r->line->any_loss = r->line->any_loss || what == STK_SAID_LOSS;
        if ((passed & BIT(what)) != 0) {
            continue;
        }
        double value = is_memory(what) ? memory_bytes(hits, count, i) : hits[i].number.value;
        bool first = !stk_line_says(r->line, what);
        say(r->line, what, value);
        if (what == STK_SAID_EPOCH && first) {
            r->line->fraction = hits[i].number.point;
        }
        if (what == STK_SAID_STEP && first) {
            r->line->bar = row->kind == BAR;
        }
    }
}

/* A word that means something for those behind it. It does so for all of the line where it stands
 * by itself, and is no part of a name. */
static void turn(reader *r, rule_kind kind, const char *word, const char *end) {
    bool joined = (word > r->text && word[-1] == '_') || *end == '_' || *end == '=';
    if (kind == DEVICE) {
        r->device = true;
    } else if (kind != OTHER && !joined) {
        r->aside = kind == ASIDE;
        r->line->train = r->line->train || kind == TRAINING;
    }
    r->before = kind;
    r->word_end = end;
}

static void act(reader *r, const rule *row, rule_kind before, const char *at, const char *end,
                const hit *hits, size_t count) {
    switch (row->kind) {
    case SAYS:
    case BAR:
        take(r, row, before, hits, count);
        break;
    case OUT_OF_MEMORY:
        if (before != OTHER && *end != '_' && *end != '=') { /* those make it a name */
            r->line->out_of_memory = true;
        }
        break;
    case MAYBE_OUT:
        r->maybe_out = true;
        break;
    case TROUBLE:
        r->line->trouble = true;
        break;
    case LONE_TROUBLE:
        r->line->trouble = r->line->trouble || (at == r->start && *end == '\0');
        break;
    case ASIDE:
    case TRAINING:
    case OTHER:
    case DEVICE:
        turn(r, row->kind, at, end);
        break;
    case NOTHING:
        break;
    }
}

/* A quick look: most rows do not fit. */
static bool may_fit(const char *pattern, const char *at) {
    if (stk_is_letter(*at)) {
        return !stk_is_letter(pattern[1]) || pattern[1] == at[1];
    }
    return stk_is_digit(*at) ? *pattern == '%' || *pattern == '^' : *pattern == *at;
}

/* Tries the rules of a letter; returns the end of the first that fits, or NULL. */
static const char *try_rules(reader *r, size_t letter, rule_kind before, const char *at) {
    for (size_t i = r->first[letter]; i < r->first[letter + 1]; i++) {
        const char *pattern = rules[i].pattern;
        if (!may_fit(pattern, at)) {
            continue;
        }
        hit hits[FIELDS_MOST];
        size_t count;
        const char *end = match(r, pattern, at, hits, &count);
        if (end != NULL) {
            act(r, &rules[i], before, at, end, hits, count);
            return end;
        }
    }
    return NULL;
}

/*
 * An error has a name that ends so, and behind it a colon and words, or nothing: "error: 0.25" is a
 * measure of quality.
 */
static bool is_error(const reader *r, const char *word, const char *end) {
    bool named = (end - word >= 5 && strncmp(end - 5, "error", 5) == 0) ||
                 (end - word >= 9 && strncmp(end - 9, "exception", 9) == 0);
    if (!named || (word > r->text && word[-1] == '_')) {
        return false;
    }
    if (*end == '\0') {
        return word == r->start && end - word > 5;
    }
    const char *next = stk_skip_blanks(end + 1);
    stk_figure number;
    return (*end == ':' && !stk_figure_read(next, &number)) ||
           (*end == ']' && word > r->text && word[-1] == '[');
}

/* What the word right before `at` means for what is there. */
static rule_kind meaning_at(const reader *r, const char *at) {
    bool joined = r->word_end != NULL && at == r->word_end + 1 && *r->word_end != '\0' &&
                  strchr(" _-/.", *r->word_end) != NULL;
    return joined ? r->before : NOTHING;
}

static const char *read_word(reader *r, const char *at) {
    rule_kind before = meaning_at(r, at);
    r->word_end = NULL;
    const char *end = try_rules(r, (size_t)(*at - 'a'), before, at);
    if (end != NULL) {
        return end;
    }
    for (end = at; stk_is_letter(*end);) {
        end++;
    }
    r->line->trouble = r->line->trouble || is_error(r, at, end);
    while (stk_is_letter(*end) ||
           stk_is_digit(*end)) { /* a number that is part of a name is none */
        end++;
    }
    return end;
}

/* The rate of the unit that is named by a word, or STK_SAID_COUNT. */
static stk_said unit_of(const char *word, const char *end) {
    size_t length = (size_t)(end - word);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strncmp(units[i].word, word, length) == 0 && units[i].word[length] == '\0') {
            return units[i].rate;
        }
    }
    return STK_SAID_COUNT;
}

/* Seconds of a unit of time that is named by a word; 0: it is none. */
static double seconds_of(const char *word, const char *end) {
    size_t length = (size_t)(end - word);
    static const struct {
        char word[12];
        double seconds;
    } times[] = {{"s", 1}, {"sec", 1}, {"secs", 1}, {"second", 1}, {"seconds", 1}, {"ms", 1e-3}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (strncmp(times[i].word, word, length) == 0 && times[i].word[length] == '\0') {
            return times[i].seconds;
        }
    }
    return 0;
}

static const char *word_end(const char *at) {
    for (int i = 0; i < 11 && stk_is_letter(*at); i++) {
        at++;
    }
    return at;
}

/* A rate such as "10.0it/s", "832 imgs/sec", "1.25s/it" or "9 images per second". */
static void read_rate(reader *r, const stk_figure *number) {
    const char *over = number->end + (*number->end == ' ' ? 1 : 0);
    const char *over_end = word_end(over);
    if (over_end == over) {
        return;
    }
    const char *under = strncmp(over_end, " per ", 5) == 0 ? over_end + 5 : over_end + 1;
    if (under == over_end + 1 && *over_end != '/') {
        return;
    }
    const char *under_end = word_end(under);
    if (*under_end == ':' || *under_end == '=') { /* the name of what follows */
        return;
    }
    stk_said rate = unit_of(over, over_end);
    double value = number->value;
    if (rate != STK_SAID_COUNT) {
        value /= seconds_of(under, under_end);
    } else {
        rate = unit_of(under, under_end);
        value = 1 / (value * seconds_of(over, over_end));
    }
    if (rate != STK_SAID_COUNT && value > 0 && value < 1e9 && !r->aside) {
        say(r->line, rate, value);
    }
}

static const char *read_digit(reader *r, const char *at) {
    stk_figure number;
    if (!stk_figure_read(at, &number)) {
        while (stk_is_digit(*at)) {
            at++;
        }
        return at;
    }
    const char *next = stk_skip_blanks(number.end);
    if (*next == '%' || *next == '/' || *next == 'i') {
        const char *end = try_rules(r, STK_RULE_LETTERS - 1, NOTHING, at);
        if (end != NULL) {
            return end;
        }
    }
    read_rate(r, &number);
    return number.end;
}

void stk_line_index(uint8_t first[STK_RULE_LETTERS + 1]) {
    size_t i = 0;
    for (size_t letter = 0; letter < STK_RULE_LETTERS; letter++) {
        first[letter] = (uint8_t)i;
        while (i < RULE_COUNT &&
               (letter == STK_RULE_LETTERS - 1 || rules[i].pattern[0] == (char)('a' + letter))) {
            i++;
        }
    }
    first[STK_RULE_LETTERS] = (uint8_t)i;
}

void stk_line_read(stk_line *line, const uint8_t first[STK_RULE_LETTERS + 1], const char *text,
                   size_t length) {
    char room[STK_LINE_MOST + 1];
    *line = (stk_line){0};
    stk_text_clean(text, length < STK_LINE_MOST ? length : STK_LINE_MOST, room);
    reader r = {.text = room, .start = stk_skip_blanks(room), .first = first, .line = line};
    const char *at = r.start;
    while (*at != '\0') {
        const char *end = NULL;
        if (stk_is_letter(*at)) {
            end = read_word(&r, at);
        } else if (stk_is_digit(*at)) {
            end = read_digit(&r, at);
        } else if (*at == '[' || *at == '|' || (*at == '~' && (at == room || at[-1] != '~'))) {
            end = try_rules(&r, STK_RULE_LETTERS - 1, NOTHING, at);
        }
        at = end != NULL && end > at ? end : at + 1;
    }
    line->out_of_memory = line->out_of_memory || (r.maybe_out && r.device);
    line->trouble = line->trouble || line->out_of_memory;
}
