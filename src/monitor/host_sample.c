/*
 * host_sample.c - counters of the kernel, and what happened between two readings of them.
 *
 * A look is half a dozen reads of files that stay open. Time on the cores is counted in ticks, of
 * which shares are formed against each other, so that no look has to come at an exact moment. Under
 * a control group's limit the machine's cores say little about what is left for us; what the group
 * has used of its limit does.
 */
#include "monitor/host_sample.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"

/* Of a file, at most: /proc/stat has a line of about 100 bytes for each core. */
#define TEXT_BYTES ((size_t)256 << 10)

#define NAME_BYTES 64 /* of a disk or a network interface */

#define SECTOR_BYTES 512 /* of /proc/diskstats, whatever the disk's own are */

enum {
    FILE_STAT,
    FILE_SELF_STAT,
    FILE_STATM,
    FILE_MEMINFO,
    FILE_DISKS,
    FILE_NET,
    FILE_GROUP_CPU,
    FILE_GROUP_MEMORY,
    FILE_GROUP_MEMORY_STAT,
    FILE_COUNT
};

/* Ticks of a core since the machine was started; NaN: not told. */
typedef struct core_ticks {
    double busy; /* what a hypervisor took away is somebody's work, too */
    double iowait;
    double idle;
} core_ticks;

/* What the counters say at one moment. NaN: not told. */
typedef struct reading {
    int64_t at_ns;
    double own_s;        /* CPU time of our own processes and of their children that have ended */
    double group_s;      /* CPU time of the group whose limit counts */
    double resident;     /* bytes */
    double memory_used;  /* bytes */
    double disk_read;    /* bytes */
    double disk_written; /* bytes */
    double net_in;       /* bytes */
    double net_out;      /* bytes */
    core_ticks *cores;   /* core_count of them */
} reading;

struct stk_host_eye {
    int files[FILE_COUNT]; /* -1: not there */
    char *text;            /* TEXT_BYTES: of the file that was read last */
    int core_count;
    int place[CPU_SETSIZE]; /* by a core's number: its index among those that count; -1: none */
    double allowed_cores;   /* that this process may use: parts of one, too */
    bool limited;           /* by a group to less than the cores */
    bool grouped_memory;    /* a group limits memory to less than the machine has */
    double tick_s;
    double page_bytes;
    double owed_s; /* own CPU time that went missing at the last look */
    bool looked;   /* `last` is filled in */
    reading last;
    reading now;
    float *shares; /* core_count: of the last look */
};

/* ---- Texts ---- */

/* The file as it is now; "" where it is not there. */
static const char *text_of(stk_host_eye *eye, int which) {
    size_t length = 0;
    while (eye->files[which] >= 0 && length < TEXT_BYTES - 1) {
        ssize_t got =
            pread(eye->files[which], eye->text + length, TEXT_BYTES - 1 - length, (off_t)length);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    eye->text[length] = '\0';
    return eye->text;
}

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

static bool starts(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

/* Up to `most` numbers that stand at a place in a line, which is moved behind them; how many there
 * are. */
static int numbers_at(const char **place, double *numbers, int most) {
    const char *at = *place;
    int count = 0;
    while (count < most) {
        at += strspn(at, " \t");
        if (!isdigit((unsigned char)*at)) {
            break;
        }
        double number = 0;
        for (; isdigit((unsigned char)*at); at++) {
            number = 10 * number + (*at - '0');
        }
        numbers[count++] = number;
    }
    *place = at;
    return count;
}

static int numbers_of(const char *text, double *numbers, int most) {
    return numbers_at(&text, numbers, most);
}

/* The name that stands at a place in a line, which is moved behind it; false: none, or too long. */
static bool name_at(const char **place, char name[NAME_BYTES]) {
    const char *at = *place + strspn(*place, " \t");
    size_t length = strcspn(at, ": \t\n");
    if (length == 0 || length >= NAME_BYTES) {
        return false;
    }
    memcpy(name, at, length);
    name[length] = '\0';
    *place = at + length;
    return true;
}

/* The number behind a name that begins a line ("MemTotal:"); NaN: there is no such line. */
static double named_number(const char *text, const char *name) {
    double number = NAN;
    for (const char *line = text; *line != '\0'; line = next_line(line)) {
        const char *after = line + strlen(name);
        if (starts(line, name) && (*after == ' ' || *after == '\t') &&
            numbers_of(after, &number, 1) == 1) {
            return number;
        }
    }
    return NAN;
}

/* ---- Readings ---- */

/* "cpu3 user nice system idle iowait irq softirq steal ...": old kernels have fewer of them. */
static void read_cores(stk_host_eye *eye, core_ticks *cores) {
    for (int i = 0; i < eye->core_count; i++) {
        cores[i] = (core_ticks){NAN, NAN, NAN};
    }
    const char *line = text_of(eye, FILE_STAT);
    for (; starts(line, "cpu"); line = next_line(line)) {
        double n[9] = {0}; /* the core's own number first */
        int found = numbers_of(line + 3, n, 9);
        int place =
            isdigit((unsigned char)line[3]) && n[0] < CPU_SETSIZE ? eye->place[(int)n[0]] : -1;
        if (place >= 0 && found >= 5) {
            cores[place] = (core_ticks){
                .busy = n[1] + n[2] + n[3] + n[6] + n[7] + n[8], .iowait = n[5], .idle = n[4]};
        }
    }
}

/* Fields 14 to 17 of "pid (name) state ...": the name may hold anything, brackets as well. */
static double read_own(stk_host_eye *eye) {
    enum { BEFORE = 11 }; /* fields between the name and those */
    double ticks[4];
    const char *at = strrchr(text_of(eye, FILE_SELF_STAT), ')');
    for (int i = 0; at != NULL && i <= BEFORE; i++) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL || numbers_of(at, ticks, 4) != 4) {
        return NAN;
    }
    return eye->tick_s * (ticks[0] + ticks[1] + ticks[2] + ticks[3]);
}

static double read_resident(stk_host_eye *eye) {
    double pages[2];
    return numbers_of(text_of(eye, FILE_STATM), pages, 2) == 2 ? pages[1] * eye->page_bytes : NAN;
}

/* Version 1 of control groups has a number of nanoseconds, version 2 a list. */
static double read_group_cpu(stk_host_eye *eye) {
    double ns;
    const char *text = text_of(eye, FILE_GROUP_CPU);
    return numbers_of(text, &ns, 1) == 1 ? ns / 1e9 : named_number(text, "usage_usec") / 1e6;
}

/* What could not be taken back at once: files that were not used lately do not count, as they do
 * not in what a machine has available. */
static double read_group_memory(stk_host_eye *eye) {
    double used = NAN;
    if (numbers_of(text_of(eye, FILE_GROUP_MEMORY), &used, 1) != 1) {
        return NAN;
    }
    const char *text = text_of(eye, FILE_GROUP_MEMORY_STAT);
    double files = named_number(text, "total_inactive_file"); /* version 1: of groups below, too */
    files = isnan(files) ? named_number(text, "inactive_file") : files;
    return isnan(files) || files > used ? used : used - files;
}

static double read_machine_memory(stk_host_eye *eye) {
    const char *text = text_of(eye, FILE_MEMINFO);
    return 1024 * (named_number(text, "MemTotal:") - named_number(text, "MemAvailable:"));
}

/* A disk that is no disk of its own, or lies on others that are counted: "dm-0", "loop7". */
static bool is_made_of_others(const char *name) {
    static const char *const kinds[] = {"dm-", "loop", "ram",  "zram",  "md",
                                        "sr",  "fd",   "drbd", "bcache"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (starts(name, kinds[i]) && isdigit((unsigned char)name[strlen(kinds[i])])) {
            return true;
        }
    }
    return false;
}

/* A part follows the disk that it is of: sda and sda1, nvme0n1 and nvme0n1p1. */
static bool is_part_of(const char *name, const char *disk) {
    size_t length = strlen(disk);
    if (length == 0 || !starts(name, disk)) {
        return false;
    }
    const char *rest = name + length;
    if (isdigit((unsigned char)disk[length - 1])) {
        if (*rest != 'p') {
            return false;
        }
        rest++;
    }
    return *rest != '\0' && rest[strspn(rest, "0123456789")] == '\0';
}

/* "major minor name reads merged sectors-read ms writes merged sectors-written ...". */
static void read_disks(stk_host_eye *eye, reading *r) {
    char disk[NAME_BYTES] = "";
    double read_sectors = 0;
    double written_sectors = 0;
    bool any = false;
    const char *line = text_of(eye, FILE_DISKS);
    for (; *line != '\0'; line = next_line(line)) {
        char name[NAME_BYTES];
        double n[7];
        const char *at = line;
        if (numbers_at(&at, n, 2) != 2 || !name_at(&at, name) || numbers_at(&at, n, 7) != 7) {
            continue;
        }
        any = true;
        if (is_made_of_others(name) || is_part_of(name, disk)) {
            continue;
        }
        memcpy(disk, name, sizeof disk);
        read_sectors += n[2];
        written_sectors += n[6];
    }
    r->disk_read = any ? read_sectors * SECTOR_BYTES : NAN;
    r->disk_written = any ? written_sectors * SECTOR_BYTES : NAN;
}

/* An interface whose bytes go through another one as well. */
static bool is_on_another(const char *name) {
    static const char *const kinds[] = {"veth",  "docker", "br-",  "virbr",   "ifb",
                                        "dummy", "bond",   "team", "tun",     "tap",
                                        "wg",    "cni",    "cali", "flannel", "vxlan"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (starts(name, kinds[i])) {
            return true;
        }
    }
    return strchr(name, '.') != NULL; /* a virtual network of an interface: eth0.7 */
}

/* "  eth0: bytes-in packets errs drop fifo frame compressed multicast bytes-out ...". Where all
 * interfaces are of that kind, as in some containers, they are the network. */
static void read_net(stk_host_eye *eye, reading *r) {
    double in[2] = {0, 0}; /* [1]: of interfaces on others */
    double out[2] = {0, 0};
    bool any = false;
    bool own = false;
    const char *line = text_of(eye, FILE_NET);
    for (; *line != '\0'; line = next_line(line)) {
        char name[NAME_BYTES];
        double n[9];
        const char *at = line;
        if (!name_at(&at, name) || *at++ != ':' || numbers_at(&at, n, 9) != 9) {
            continue;
        }
        any = true;
        if (strcmp(name, "lo") != 0) {
            int kind = is_on_another(name) ? 1 : 0;
            own = own || kind == 0;
            in[kind] += n[0];
            out[kind] += n[8];
        }
    }
    r->net_in = any ? in[own ? 0 : 1] : NAN;
    r->net_out = any ? out[own ? 0 : 1] : NAN;
}

/* Of a tree of processes; an empty one tells nothing. What they share counts for each of them. */
static void read_tree(const stk_proc_tree *tree, reading *r) {
    r->own_s = tree->count > 0 ? 0 : NAN;
    r->resident = r->own_s;
    for (size_t i = 0; i < tree->count; i++) {
        r->own_s += tree->items[i].cpu_s + tree->items[i].ended_s;
        r->resident += (double)tree->items[i].resident;
    }
}

static void read_all(stk_host_eye *eye, int64_t now_ns, const stk_proc_tree *own, reading *r) {
    r->at_ns = now_ns;
    read_cores(eye, r->cores);
    if (own != NULL) {
        read_tree(own, r);
    } else {
        r->own_s = read_own(eye);
        r->resident = read_resident(eye);
    }
    r->group_s = read_group_cpu(eye);
    r->memory_used = eye->grouped_memory ? read_group_memory(eye) : read_machine_memory(eye);
    read_disks(eye, r);
    read_net(eye, r);
}

/* ---- From two readings to what happened between them ---- */

static double seconds_between(const reading *before, const reading *after) {
    return (double)(after->at_ns - before->at_ns) / 1e9;
}

/* A counter that went back counts something else now. */
static double rate(double before, double after, double seconds) {
    return seconds > 0 && after >= before ? (after - before) / seconds : NAN;
}

/* CPU time as a share of what the cores that we may use have; what was counted late can be more. */
static double share_of_cores(double before_s, double after_s, double seconds, double cores) {
    double share = 100 * rate(before_s, after_s, seconds) / cores;
    return share > 100 ? 100 : share;
}

/* Idle time has been seen to go back by a little. */
static double grown(double before, double after) {
    return isnan(before) || isnan(after) ? NAN : fmax(0, after - before);
}

static void shares_of_cores(const stk_host_eye *eye, const reading *before, const reading *after,
                            stk_event_sample *sample) {
    double busy = 0;
    double iowait = 0;
    double all = 0;
    for (int i = 0; i < eye->core_count; i++) {
        const core_ticks *b = &before->cores[i];
        const core_ticks *a = &after->cores[i];
        double core_busy = grown(b->busy, a->busy);
        double core_wait = grown(b->iowait, a->iowait);
        double core_all = core_busy + core_wait + grown(b->idle, a->idle);
        eye->shares[i] = core_all > 0 ? (float)(100 * core_busy / core_all) : NAN;
        if (core_all > 0) {
            busy += core_busy;
            iowait += core_wait;
            all += core_all;
        }
    }
    sample->cpu = all > 0 ? 100 * busy / all : NAN;
    sample->iowait = all > 0 ? 100 * iowait / all : NAN;
    sample->core_count = all > 0 ? eye->core_count : 0;
    sample->cores = eye->shares;
}

/*
 * CPU time of our own processes between two readings. What one of them has used is its parent's
 * when it has ended: a reading that fell between the two misses it, and the next one has it again,
 * which must not be taken for work of that time.
 */
static double own_between(stk_host_eye *eye, const reading *before, const reading *after) {
    double used_s = after->own_s - before->own_s;
    double owed_s = eye->owed_s;
    eye->owed_s = used_s < 0 ? -used_s : 0;
    return isnan(used_s) ? NAN : fmax(0, used_s - owed_s);
}

static void tell(stk_host_eye *eye, const reading *before, const reading *after,
                 stk_event_sample *sample) {
    double seconds = seconds_between(before, after);
    shares_of_cores(eye, before, after, sample);
    double own_s = own_between(eye, before, after);
    sample->cpu_own = share_of_cores(0, own_s, seconds, eye->allowed_cores);
    if (eye->limited) {
        sample->cpu = share_of_cores(before->group_s, after->group_s, seconds, eye->allowed_cores);
    }
    sample->disk_read = rate(before->disk_read, after->disk_read, seconds);
    sample->disk_written = rate(before->disk_written, after->disk_written, seconds);
    sample->net_in = rate(before->net_in, after->net_in, seconds);
    sample->net_out = rate(before->net_out, after->net_out, seconds);
    sample->resident = after->resident;
    sample->memory_used = after->memory_used;
}

/* ---- Opening ---- */

static int open_in(const char *folder, const char *name) {
    char path[STK_GROUP_PATH_BYTES + 64];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return folder[0] != '\0' && length > 0 && (size_t)length < sizeof path
               ? open(path, O_RDONLY | O_CLOEXEC)
               : -1;
}

static int open_first(const char *folder, const char *name, const char *other) {
    int file = open_in(folder, name);
    return file >= 0 ? file : open_in(folder, other);
}

static void open_files(stk_host_eye *eye, const char *proc) {
    static const char *const names[] = {
        [FILE_STAT] = "stat",       [FILE_SELF_STAT] = "self/stat", [FILE_STATM] = "self/statm",
        [FILE_MEMINFO] = "meminfo", [FILE_DISKS] = "diskstats",     [FILE_NET] = "net/dev",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        eye->files[i] = open_in(proc, names[i]);
    }
}

/* The groups that limit us to less than there is, and their counters. */
static void open_groups(stk_host_eye *eye, const char *proc, const char *mount) {
    char membership[STK_GROUP_PATH_BYTES];
    snprintf(membership, sizeof membership, "%s/self/cgroup", proc);
    stk_machine_limits limits = stk_machine_group_limits(membership, mount);
    double machine_bytes = 1024 * named_number(text_of(eye, FILE_MEMINFO), "MemTotal:");
    eye->allowed_cores = fmin(eye->core_count, limits.cores);
    eye->limited = limits.cores < eye->core_count;
    eye->grouped_memory =
        limits.bytes < machine_bytes || (isnan(machine_bytes) && limits.bytes < INFINITY);
    if (eye->limited) {
        /* Version 1 has a cpu.stat too, which tells other things. */
        eye->files[FILE_GROUP_CPU] = open_first(limits.cores_group, "cpuacct.usage", "cpu.stat");
    }
    if (eye->grouped_memory) {
        eye->files[FILE_GROUP_MEMORY] =
            open_first(limits.bytes_group, "memory.current", "memory.usage_in_bytes");
        eye->files[FILE_GROUP_MEMORY_STAT] = open_in(limits.bytes_group, "memory.stat");
    }
}

static void choose_cores(stk_host_eye *eye, const cpu_set_t *given) {
    cpu_set_t set;
    if (given != NULL) {
        set = *given;
    } else if (sched_getaffinity(0, sizeof set, &set) != 0) {
        CPU_ZERO(&set);
        for (int i = 0; i < stk_machine_cores() && i < CPU_SETSIZE; i++) {
            CPU_SET(i, &set);
        }
    }
    for (int i = 0; i < CPU_SETSIZE; i++) {
        eye->place[i] = CPU_ISSET(i, &set) ? eye->core_count++ : -1;
    }
}

stk_status stk_host_eye_open(stk_host_eye **eye, const stk_host_config *config, stk_error *err) {
    const char *proc = config->proc != NULL ? config->proc : "/proc";
    const char *groups = config->groups != NULL ? config->groups : "/sys/fs/cgroup";
    stk_host_eye *e = stk_mem_new(1, sizeof *e);
    if (e == NULL) {
        return STK_FAIL_MEMORY(err, "looking at the host");
    }
    for (int i = 0; i < FILE_COUNT; i++) {
        e->files[i] = -1;
    }
    choose_cores(e, config->cores);
    size_t cores = (size_t)e->core_count;
    e->text = stk_mem_raw(TEXT_BYTES, 1);
    e->last.cores = stk_mem_new(cores, sizeof *e->last.cores);
    e->now.cores = stk_mem_new(cores, sizeof *e->now.cores);
    e->shares = stk_mem_new(cores, sizeof *e->shares);
    if (e->text == NULL || e->last.cores == NULL || e->now.cores == NULL || e->shares == NULL) {
        stk_host_eye_close(e);
        return STK_FAIL_MEMORY(err, "looking at the host");
    }
    e->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    e->page_bytes = (double)sysconf(_SC_PAGE_SIZE);
    open_files(e, proc);
    open_groups(e, proc, groups);
    *eye = e;
    return STK_OK;
}

void stk_host_eye_close(stk_host_eye *eye) {
    if (eye == NULL) {
        return;
    }
    for (int i = 0; i < FILE_COUNT; i++) {
        if (eye->files[i] >= 0) {
            close(eye->files[i]);
        }
    }
    stk_mem_free(eye->text);
    stk_mem_free(eye->last.cores);
    stk_mem_free(eye->now.cores);
    stk_mem_free(eye->shares);
    stk_mem_free(eye);
}

int stk_host_eye_cores(const stk_host_eye *eye) {
    return eye->core_count;
}

void stk_host_eye_look(stk_host_eye *eye, int64_t now_ns, const stk_proc_tree *own,
                       stk_event_sample *sample) {
    read_all(eye, now_ns, own, &eye->now);
    /* Without an earlier reading no time has passed, and all that needs some is not known. */
    tell(eye, eye->looked ? &eye->last : &eye->now, &eye->now, sample);
    reading earlier = eye->last;
    eye->last = eye->now;
    eye->now = earlier;
    eye->looked = true;
}

void stk_host_eye_parts(const stk_host_eye *eye, stk_part parts[STK_HOST_PARTS]) {
    const reading *r = &eye->last;
    bool cores = false;
    for (int i = 0; i < eye->core_count; i++) {
        cores = cores || !isnan(r->cores[i].busy);
    }
    const stk_part found[STK_HOST_PARTS] = {
        {cores, "cores (/proc/stat)"},
        {!eye->limited || !isnan(r->group_s), "CPU use of the control group"},
        {!isnan(r->own_s), "own CPU use (/proc/self/stat)"},
        {!isnan(r->resident), "own memory (/proc/self/statm)"},
        {!isnan(r->memory_used), "memory in use"},
        {!isnan(r->disk_read), "disks (/proc/diskstats)"},
        {!isnan(r->net_in), "network (/proc/net/dev)"},
    };
    memcpy(parts, found, sizeof found);
}
