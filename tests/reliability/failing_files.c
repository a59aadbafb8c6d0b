/* Stands before the C library (LD_PRELOAD) and lets calls on files in one folder fail, or kills the process at one.
 *
 * Calls that change files are counted from 1, those that read them only if asked for. fault_at(folder, number, error,
 * lasts, reads) sets what happens at the call with this number: with error 0 the process is killed as by `kill -9`,
 * else the call fails with this error, and all later ones that need space or the disk if `lasts`. A write that is hit
 * has written the first half.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long calls, failing;
static int error_number, is_lasting, counts_reads;
static char failed[64];

void fault_at(const char *in_folder, long number, int error, int lasts, int reads) {
    strncpy(folder, in_folder, sizeof folder - 1);
    calls = 0, failing = number, error_number = error, is_lasting = lasts, counts_reads = reads, failed[0] = 0;
}

long calls_made(void) { return calls; }
const char *failed_call(void) { return failed; }

/* Return 1 for the folder and what is in it; the folder beside it whose name is longer is the driver's. */
static int concerns(const char *path) {
    size_t size = strlen(folder);
    return size && strncmp(path, folder, size) == 0 && (path[size] == '/' || !path[size]);
}

static int concerns_descriptor(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!folder[0])
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return concerns(path);
}

static int concerns_at(int parent, const char *path) {
    return path[0] == '/' || parent == AT_FDCWD ? concerns(path) : concerns_descriptor(parent);
}

/* Return 1 if this call fails, with errno set. */
static int fails(const char *name) {
    long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (number != failing && !(is_lasting && failing && number > failing))
        return 0;
    if (!failed[0])
        strncpy(failed, name, sizeof failed - 1);
    if (!error_number)
        kill(getpid(), SIGKILL);
    errno = error_number;
    return 1;
}

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list list; va_start(list, flags); int mode = va_arg(list, int); va_end(list); \
    int changes = flags & (O_CREAT | O_WRONLY | O_RDWR); \
    if (concerns(path) && (changes || counts_reads) && fails(#name)) return -1; \
    return REAL(name)(path, flags, mode); }
OPEN(open)
OPEN(open64)

int openat64(int parent, const char *path, int flags, ...) {
    va_list list; va_start(list, flags); int mode = va_arg(list, int); va_end(list);
    int changes = flags & (O_CREAT | O_WRONLY | O_RDWR);
    if (concerns_at(parent, path) && (changes || counts_reads) && fails("openat")) return -1;
    return REAL(openat64)(parent, path, flags, mode);
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
    if (concerns_descriptor(descriptor)) {
        if (calls + 1 == failing)
            REAL(write)(descriptor, bytes, size / 2);
        if (fails("write"))
            return -1;
    }
    return REAL(write)(descriptor, bytes, size);
}

ssize_t read(int descriptor, void *bytes, size_t size) {
    return counts_reads && concerns_descriptor(descriptor) && fails("read") ? -1 : REAL(read)(descriptor, bytes, size);
}

int fsync(int descriptor) { return concerns_descriptor(descriptor) && fails("fsync") ? -1 : REAL(fsync)(descriptor); }

int rename(const char *from, const char *to) {
    return concerns(to) && fails("rename") ? -1 : REAL(rename)(from, to);
}

int renameat(int from_parent, const char *from, int to_parent, const char *to) {
    return concerns_at(to_parent, to) && fails("renameat") ? -1 : REAL(renameat)(from_parent, from, to_parent, to);
}

int mkdirat(int parent, const char *path, mode_t mode) {
    return concerns_at(parent, path) && fails("mkdirat") ? -1 : REAL(mkdirat)(parent, path, mode);
}

int mkdir(const char *path, mode_t mode) { return concerns(path) && fails("mkdir") ? -1 : REAL(mkdir)(path, mode); }

/* Removing a file needs no space: it is counted, and a process may be killed here, but no full disk refuses it. */
int unlink(const char *path) {
    if (concerns(path) && fails("unlink") && !is_lasting)
        return -1;
    return REAL(unlink)(path);
}

int unlinkat(int parent, const char *path, int flags) {
    if (concerns_at(parent, path) && fails("unlinkat") && !is_lasting)
        return -1;
    return REAL(unlinkat)(parent, path, flags);
}
