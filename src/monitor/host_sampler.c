/*
 * host_sampler.c - reads the kernel's counters and turns two readings into rates and shares.
 *
 * A reading is half a dozen pread calls on files that stay open. A core's use is its busy ticks as
 * a share of all its ticks, so a reading that comes late distorts nothing. Where a control group
 * limits the process to fewer cores than the machine has, sample->cpu is the group's use of its
 * limit, since the machine's cores say little about what is left.
 */
#include "monitor/host_sampler.h"

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

/* Longest file text that is read: /proc/stat has a line of about 100 bytes for each core. */
#define TEXT_BYTES ((size_t)256 << 10)

#define NAME_BYTES 64 /* name of a disk or a network interface, with its NUL */

#define SECTOR_BYTES 512 /* unit of /proc/diskstats, whatever the sectors of the disk are */

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

/* Ticks of a core since the machine started; NaN: unknown. */
typedef struct core_ticks {
    double busy; /* includes steal time: somebody else works on the core */
    double iowait;
    double idle;
} core_ticks;

/* All counters at one moment. NaN: unknown. */
typedef struct host_counters {
    int64_t at_ns;
    double own_s;        /* CPU time of the run's processes and of their ended children */
    double group_s;      /* CPU time of the control group that limits cores */
    double resident;     /* bytes of the run's processes */
    double memory_used;  /* bytes, of the group that limits memory or of the machine */
    double disk_read;    /* bytes since the start */
    double disk_written; /* bytes since the start */
    double net_in;       /* bytes since the start */
    double net_out;      /* bytes since the start */
    core_ticks *cores;   /* core_count of them */
} host_counters;

struct stk_host_sampler {
    int files[FILE_COUNT]; /* descriptors; -1: the file does not exist */
    char *text;            /* owned; TEXT_BYTES: the file read last */
    int core_count;
    int place[CPU_SETSIZE]; /* index of a core in `cores`, by its number; -1: not sampled */
    double allowed_cores;   /* that this process may use; may be a fraction */
    bool limited;           /* a control group allows fewer than core_count cores */
    bool grouped_memory;    /* a control group allows less memory than the machine has */
    double tick_s;
    double page_bytes;
    double owed_s;      /* by how much own_s fell at the last reading; see own_between() */
    bool has_read;      /* `last` is filled in */
    host_counters last; /* the previous reading */
    host_counters now;
    float *shares; /* owned; core_count: percent, of the last sample */
};

/* ---- Texts ---- */

/* The file's present text; "" where it does not exist. */
static const char *text_of(stk_host_sampler *sampler, int which) {
    size_t length = 0;
    while (sampler->files[which] >= 0 && length < TEXT_BYTES - 1) {
        ssize_t got = pread(sampler->files[which], sampler->text + length, TEXT_BYTES - 1 - length,
                            (off_t)length);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    sampler->text[length] = '\0';
    return sampler->text;
}

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

static bool starts(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

/* Reads up to `most` numbers at *place and moves it past them; returns how many. */
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

/* Reads the name at *place and moves it past the name; false: none, or too long. */
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

/* The number after a name that begins a line ("MemTotal:"); NaN: there is no such line. */
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

/* "cpu3 user nice system idle iowait irq softirq steal ...": old kernels have fewer columns. */
static void read_cores(stk_host_sampler *sampler, core_ticks *cores) {
    for (int i = 0; i < sampler->core_count; i++) {
        cores[i] = (core_ticks){NAN, NAN, NAN};
    }
    const char *line = text_of(sampler, FILE_STAT);
    for (; starts(line, "cpu"); line = next_line(line)) {
        double n[9] = {0}; /* the core's own number first */
        int found = numbers_of(line + 3, n, 9);
        int place =
            isdigit((unsigned char)line[3]) && n[0] < CPU_SETSIZE ? sampler->place[(int)n[0]] : -1;
        if (place >= 0 && found >= 5) {
            cores[place] = (core_ticks){
                .busy = n[1] + n[2] + n[3] + n[6] + n[7] + n[8], .iowait = n[5], .idle = n[4]};
        }
    }
}

/* Fields 14 to 17 of "pid (name) state ...": the name may hold anything, brackets as well. */
static double read_own(stk_host_sampler *sampler) {
    enum { BEFORE = 11 }; /* fields between the name and the four wanted */
    double ticks[4];
    const char *at = strrchr(text_of(sampler, FILE_SELF_STAT), ')');
    for (int i = 0; at != NULL && i <= BEFORE; i++) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL || numbers_of(at, ticks, 4) != 4) {
        return NAN;
    }
    return sampler->tick_s * (ticks[0] + ticks[1] + ticks[2] + ticks[3]);
}

static double read_resident(stk_host_sampler *sampler) {
    double pages[2];
    return numbers_of(text_of(sampler, FILE_STATM), pages, 2) == 2 ? pages[1] * sampler->page_bytes
                                                                   : NAN;
}

/* Control groups of version 1 give nanoseconds, version 2 a list of named numbers. */
static double read_group_cpu(stk_host_sampler *sampler) {
    double ns;
    const char *text = text_of(sampler, FILE_GROUP_CPU);
    return numbers_of(text, &ns, 1) == 1 ? ns / 1e9 : named_number(text, "usage_usec") / 1e6;
}

/* Memory that the kernel cannot reclaim at once. Inactive file pages are left out, as the kernel
 * leaves them out of MemAvailable. */
static double read_group_memory(stk_host_sampler *sampler) {
    double used = NAN;
    if (numbers_of(text_of(sampler, FILE_GROUP_MEMORY), &used, 1) != 1) {
        return NAN;
    }
    const char *text = text_of(sampler, FILE_GROUP_MEMORY_STAT);
    double files = named_number(text, "total_inactive_file"); /* version 1: includes subgroups */
    files = isnan(files) ? named_number(text, "inactive_file") : files;
    return isnan(files) || files > used ? used : used - files;
}

static double read_machine_memory(stk_host_sampler *sampler) {
    const char *text = text_of(sampler, FILE_MEMINFO);
    return 1024 * (named_number(text, "MemTotal:") - named_number(text, "MemAvailable:"));
}

/* A virtual disk, or one that lies on disks which are counted themselves: "dm-0", "loop7". */
static bool is_made_of_others(const char *name) {
    static const char *const kinds[] = {"dm-", "loop", "ram",  "zram",  "md",
                                        "sr",  "fd",   "drbd", "bcache"};
    for (size_t i = 0; i < STK_COUNT(kinds); i++) {
        if (starts(name, kinds[i]) && isdigit((unsigned char)name[strlen(kinds[i])])) {
            return true;
        }
    }
    return false;
}

/* A partition follows its disk in the list: sda and sda1, nvme0n1 and nvme0n1p1. */
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
static void read_disks(stk_host_sampler *sampler, host_counters *r) {
    char disk[NAME_BYTES] = "";
    double read_sectors = 0;
    double written_sectors = 0;
    bool any = false;
    const char *line = text_of(sampler, FILE_DISKS);
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

/* A virtual interface: its bytes pass another interface as well. */
static bool is_on_another(const char *name) {
    static const char *const kinds[] = {"veth",  "docker", "br-",  "virbr",   "ifb",
                                        "dummy", "bond",   "team", "tun",     "tap",
                                        "wg",    "cni",    "cali", "flannel", "vxlan"};
    for (size_t i = 0; i < STK_COUNT(kinds); i++) {
        if (starts(name, kinds[i])) {
            return true;
        }
    }
    return strchr(name, '.') != NULL; /* a VLAN: eth0.7 */
}

/* "  eth0: bytes-in packets errs drop fifo frame compressed multicast bytes-out ...". Where all
 * interfaces are virtual, as in some containers, they are counted. */
static void read_net(stk_host_sampler *sampler, host_counters *r) {
    double in[2] = {0, 0}; /* [0]: real interfaces, [1]: virtual ones */
    double out[2] = {0, 0};
    bool any = false;
    bool own = false;
    const char *line = text_of(sampler, FILE_NET);
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

/* Sums over a process tree; unknown if it is empty. Shared pages count for each process. */
static void read_tree(const stk_proc_tree *tree, host_counters *r) {
    r->own_s = tree->count > 0 ? 0 : NAN;
    r->resident = r->own_s;
    for (size_t i = 0; i < tree->count; i++) {
        r->own_s += tree->items[i].cpu_s + tree->items[i].ended_s;
        r->resident += (double)tree->items[i].resident;
    }
}

static void read_all(stk_host_sampler *sampler, int64_t now_ns, const stk_proc_tree *own,
                     host_counters *r) {
    r->at_ns = now_ns;
    read_cores(sampler, r->cores);
    if (own != NULL) {
        read_tree(own, r);
    } else {
        r->own_s = read_own(sampler);
        r->resident = read_resident(sampler);
    }
    r->group_s = read_group_cpu(sampler);
    r->memory_used =
        sampler->grouped_memory ? read_group_memory(sampler) : read_machine_memory(sampler);
    read_disks(sampler, r);
    read_net(sampler, r);
}

/* ---- From two readings to rates ---- */

static double seconds_between(const host_counters *before, const host_counters *after) {
    return (double)(after->at_ns - before->at_ns) / 1e9;
}

/* A counter that fell was reset: the rate is unknown. */
static double rate(double before, double after, double seconds) {
    return seconds > 0 && after >= before ? (after - before) / seconds : NAN;
}

/* CPU time in percent of the allowed cores; cut at 100, since the kernel may count late. */
static double share_of_cores(double before_s, double after_s, double seconds, double cores) {
    double share = 100 * rate(before_s, after_s, seconds) / cores;
    return share > 100 ? 100 : share;
}

/* Idle time has been seen to fall slightly. */
static double grown(double before, double after) {
    return isnan(before) || isnan(after) ? NAN : fmax(0, after - before);
}

static void shares_of_cores(const stk_host_sampler *sampler, const host_counters *before,
                            const host_counters *after, stk_event_sample *sample) {
    double busy = 0;
    double iowait = 0;
    double all = 0;
    for (int i = 0; i < sampler->core_count; i++) {
        const core_ticks *b = &before->cores[i];
        const core_ticks *a = &after->cores[i];
        double core_busy = grown(b->busy, a->busy);
        double core_wait = grown(b->iowait, a->iowait);
        double core_all = core_busy + core_wait + grown(b->idle, a->idle);
        sampler->shares[i] = core_all > 0 ? (float)(100 * core_busy / core_all) : NAN;
        if (core_all > 0) {
            busy += core_busy;
            iowait += core_wait;
            all += core_all;
        }
    }
    sample->cpu = all > 0 ? 100 * busy / all : NAN;
    sample->iowait = all > 0 ? 100 * iowait / all : NAN;
    sample->core_count = all > 0 ? sampler->core_count : 0;
    sample->cores = sampler->shares;
}

/*
 * CPU time of the run's processes between two readings. When a process ends, its time moves to its
 * parent. A reading between the two moments misses that time, and own_s falls; the next reading has
 * it again. owed_s keeps what fell, so that its return is not counted as new work.
 */
static double own_between(stk_host_sampler *sampler, const host_counters *before,
                          const host_counters *after) {
    double used_s = after->own_s - before->own_s;
    double owed_s = sampler->owed_s;
    sampler->owed_s = used_s < 0 ? -used_s : 0;
    return isnan(used_s) ? NAN : fmax(0, used_s - owed_s);
}

static void write_sample(stk_host_sampler *sampler, const host_counters *before,
                         const host_counters *after, stk_event_sample *sample) {
    double seconds = seconds_between(before, after);
    shares_of_cores(sampler, before, after, sample);
    double own_s = own_between(sampler, before, after);
    sample->cpu_own = share_of_cores(0, own_s, seconds, sampler->allowed_cores);
    if (sampler->limited) {
        sample->cpu =
            share_of_cores(before->group_s, after->group_s, seconds, sampler->allowed_cores);
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

static void open_files(stk_host_sampler *sampler, const char *proc) {
    static const char *const names[] = {
        [FILE_STAT] = "stat",       [FILE_SELF_STAT] = "self/stat", [FILE_STATM] = "self/statm",
        [FILE_MEMINFO] = "meminfo", [FILE_DISKS] = "diskstats",     [FILE_NET] = "net/dev",
    };
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        sampler->files[i] = open_in(proc, names[i]);
    }
}

/* Opens the counters of control groups that allow less than the machine has. */
static void open_groups(stk_host_sampler *sampler, const char *proc, const char *mount) {
    char membership[STK_GROUP_PATH_BYTES];
    snprintf(membership, sizeof membership, "%s/self/cgroup", proc);
    stk_machine_limits limits = stk_machine_group_limits(membership, mount);
    double machine_bytes = 1024 * named_number(text_of(sampler, FILE_MEMINFO), "MemTotal:");
    sampler->allowed_cores = fmin(sampler->core_count, limits.cores);
    sampler->limited = limits.cores < sampler->core_count;
    sampler->grouped_memory =
        limits.bytes < machine_bytes || (isnan(machine_bytes) && limits.bytes < INFINITY);
    if (sampler->limited) {
        /* The cpu.stat of version 1 has no CPU time: ask for cpuacct.usage first. */
        sampler->files[FILE_GROUP_CPU] =
            open_first(limits.cores_group, "cpuacct.usage", "cpu.stat");
    }
    if (sampler->grouped_memory) {
        sampler->files[FILE_GROUP_MEMORY] =
            open_first(limits.bytes_group, "memory.current", "memory.usage_in_bytes");
        sampler->files[FILE_GROUP_MEMORY_STAT] = open_in(limits.bytes_group, "memory.stat");
    }
}

static void choose_cores(stk_host_sampler *sampler, const cpu_set_t *given) {
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
        sampler->place[i] = CPU_ISSET(i, &set) ? sampler->core_count++ : -1;
    }
}

stk_status stk_host_sampler_open(stk_host_sampler **sampler, const stk_host_sampler_config *config,
                                 stk_error *err) {
    const char *proc = config->proc != NULL ? config->proc : "/proc";
    const char *groups = config->groups != NULL ? config->groups : "/sys/fs/cgroup";
    stk_host_sampler *e = stk_mem_new(1, sizeof *e);
    if (e == NULL) {
        return STK_FAIL_MEMORY(err, "sampling the host");
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
        stk_host_sampler_close(e);
        return STK_FAIL_MEMORY(err, "sampling the host");
    }
    e->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    e->page_bytes = (double)sysconf(_SC_PAGE_SIZE);
    open_files(e, proc);
    open_groups(e, proc, groups);
    *sampler = e;
    return STK_OK;
}

void stk_host_sampler_close(stk_host_sampler *sampler) {
    if (sampler == NULL) {
        return;
    }
    for (int i = 0; i < FILE_COUNT; i++) {
        if (sampler->files[i] >= 0) {
            close(sampler->files[i]);
        }
    }
    stk_mem_free(sampler->text);
    stk_mem_free(sampler->last.cores);
    stk_mem_free(sampler->now.cores);
    stk_mem_free(sampler->shares);
    stk_mem_free(sampler);
}

int stk_host_sampler_cores(const stk_host_sampler *sampler) {
    return sampler->core_count;
}

void stk_host_sampler_read(stk_host_sampler *sampler, int64_t now_ns, const stk_proc_tree *own,
                           stk_event_sample *sample) {
    read_all(sampler, now_ns, own, &sampler->now);
    /* Without an earlier reading no time has passed, so all rates come out as unknown. */
    write_sample(sampler, sampler->has_read ? &sampler->last : &sampler->now, &sampler->now,
                 sample);
    host_counters earlier = sampler->last;
    sampler->last = sampler->now;
    sampler->now = earlier;
    sampler->has_read = true;
}

int stk_host_sampler_missing(const stk_host_sampler *sampler, const char *names[STK_HOST_FIGURES]) {
    const host_counters *r = &sampler->last;
    bool cores = false;
    for (int i = 0; i < sampler->core_count; i++) {
        cores = cores || !isnan(r->cores[i].busy);
    }
    const struct {
        bool known;
        const char *name;
    } all[STK_HOST_FIGURES] = {
        {cores, "cores (/proc/stat)"},
        {!sampler->limited || !isnan(r->group_s), "CPU use of the control group"},
        {!isnan(r->own_s), "own CPU use (/proc/self/stat)"},
        {!isnan(r->resident), "own memory (/proc/self/statm)"},
        {!isnan(r->memory_used), "memory in use"},
        {!isnan(r->disk_read), "disks (/proc/diskstats)"},
        {!isnan(r->net_in), "network (/proc/net/dev)"},
    };
    int missing = 0;
    for (int i = 0; i < STK_HOST_FIGURES; i++) {
        if (!all[i].known) {
            names[missing++] = all[i].name;
        }
    }
    return missing;
}
