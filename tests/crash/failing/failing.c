/* Preloaded: makes the n-th of the system's calls, or of the kernel's requests for memory, fail while it is armed.

   Each call belongs to a class, and each class has a counter: so many calls came through here while it was armed. What the
   C library does by itself, inside of one of its functions, does not come through. Such a function (opendir, fopen) fails
   as a whole, and counts as what it does. test_failing_calls.py compares the counters with what strace sees. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum class {
    OPEN, STAT, READ, WRITE, CLOSE, MKDIR, RMDIR, RENAME, LINK, SYMLINK, UNLINK, MODE, TRUNCATE, ALLOCATE, SYNC, LOCK, LIST,
    COPY, MAP, ACCESS, READLINK, CONTROL, TIMES, SEEK, ROOM, NO_MEMORY,
    N_CLASSES
};
const char *const classes = "open stat read write close mkdir rmdir rename link symlink unlink mode truncate allocate sync "
    "lock list copy map access readlink control times seek room memory";

/* CALLS: one call fails. GONE: that one and all later ones, as of a disk that is pulled out. FULL: the same, of calls that
   take room on the disk. SHORT: all reads and writes move one byte. HALF: one read or write moves a part of it. */
enum { CALLS, MEMORY, SHORT, GONE, FULL, HALF };
static long n_left = -1, n_calls;    /* fails when it comes to 0; negative: never */
static int error_number, kind, is_armed, last_failed = -1;
long counts[N_CLASSES];

void arm(int what, long n, int number)
{
    n_calls = 0;
    memset(counts, 0, sizeof counts);
    error_number = number;
    kind = what;
    last_failed = -1;
    n_left = n;
    __atomic_store_n(&is_armed, 1, __ATOMIC_SEQ_CST);
}
long disarm(void)
{
    __atomic_store_n(&is_armed, 0, __ATOMIC_SEQ_CST);
    return n_calls;
}
/* The class of the call that has failed, or -1. */
int failed_class(void) { return last_failed; }

static int armed(void) { return __atomic_load_n(&is_armed, __ATOMIC_SEQ_CST); }
static int is_next(void)
{
    long left;
    __atomic_add_fetch(&n_calls, 1, __ATOMIC_SEQ_CST);
    left = __atomic_fetch_sub(&n_left, 1, __ATOMIC_SEQ_CST);
    return kind == GONE || kind == FULL ? left <= 0 : left == 0;
}
static void count(enum class class) { if (armed()) __atomic_add_fetch(&counts[class], 1, __ATOMIC_SEQ_CST); }
static int failing(enum class class, int takes_room)
{
    if (!armed()) return 0;
    count(class);
    if (kind == MEMORY || kind == SHORT || kind == HALF || (kind == FULL && !takes_room)) return 0;
    if (!is_next()) return 0;
    if (last_failed < 0) last_failed = class;
    errno = error_number;
    return 1;
}
static int call_fails(enum class class)
{
    return failing(class, class == WRITE || class == MKDIR || class == LINK || class == SYMLINK || class == ALLOCATE ||
                   class == SYNC || class == COPY);
}
static size_t shortened(size_t n)
{
    if (!armed() || n <= 1) return n;
    if (kind == SHORT) return n_calls++, 1;
    if (kind == HALF && is_next()) return last_failed = READ, (n + 1) / 2;
    return n;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPENS(name, before, call) \
    int name before \
    { \
        REAL(name); \
        va_list list; va_start(list, flags); \
        int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, int) : 0; \
        va_end(list); \
        return failing(OPEN, flags & O_CREAT) ? -1 : real call; \
    }
OPENS(open, (const char *path, int flags, ...), (path, flags, mode))
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode))
OPENS(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPENS(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

#define CALL(class, type, name, parameters, arguments) \
    type name parameters { REAL(name); return call_fails(class) ? (type)-1 : real arguments; }
CALL(OPEN, int, creat, (const char *path, mode_t mode), (path, mode))
CALL(OPEN, int, creat64, (const char *path, mode_t mode), (path, mode))
/* What a program is compiled to that asks for checks of the arguments. */
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int dir, const char *path, int flags) { return openat(dir, path, flags); }
int __openat64_2(int dir, const char *path, int flags) { return openat64(dir, path, flags); }
ssize_t __read_chk(int fd, void *data, size_t n, size_t room) { return n > room ? abort(), -1 : read(fd, data, n); }
ssize_t __pread_chk(int fd, void *data, size_t n, off_t at, size_t room)
{
    return n > room ? abort(), -1 : pread(fd, data, n, at);
}
ssize_t __pread64_chk(int fd, void *data, size_t n, off64_t at, size_t room)
{
    return n > room ? abort(), -1 : pread64(fd, data, n, at);
}
FILE *fopen(const char *path, const char *mode) { REAL(fopen); return call_fails(OPEN) ? NULL : real(path, mode); }
FILE *fopen64(const char *path, const char *mode) { REAL(fopen64); return call_fails(OPEN) ? NULL : real(path, mode); }

CALL(STAT, int, fstat, (int fd, struct stat *s), (fd, s))
CALL(STAT, int, fstat64, (int fd, struct stat64 *s), (fd, s))
CALL(STAT, int, stat, (const char *path, struct stat *s), (path, s))
CALL(STAT, int, stat64, (const char *path, struct stat64 *s), (path, s))
CALL(STAT, int, lstat, (const char *path, struct stat *s), (path, s))
CALL(STAT, int, lstat64, (const char *path, struct stat64 *s), (path, s))
CALL(STAT, int, fstatat, (int dir, const char *path, struct stat *s, int flags), (dir, path, s, flags))
CALL(STAT, int, fstatat64, (int dir, const char *path, struct stat64 *s, int flags), (dir, path, s, flags))
CALL(STAT, int, statx, (int dir, const char *path, int flags, unsigned mask, struct statx *s), (dir, path, flags, mask, s))
/* The names under which programs call them that were compiled for an older C library. */
CALL(STAT, int, __fxstat, (int v, int fd, struct stat *s), (v, fd, s))
CALL(STAT, int, __fxstat64, (int v, int fd, struct stat64 *s), (v, fd, s))
CALL(STAT, int, __xstat, (int v, const char *path, struct stat *s), (v, path, s))
CALL(STAT, int, __xstat64, (int v, const char *path, struct stat64 *s), (v, path, s))
CALL(STAT, int, __lxstat, (int v, const char *path, struct stat *s), (v, path, s))
CALL(STAT, int, __lxstat64, (int v, const char *path, struct stat64 *s), (v, path, s))
CALL(STAT, int, __fxstatat, (int v, int dir, const char *path, struct stat *s, int flags), (v, dir, path, s, flags))
CALL(STAT, int, __fxstatat64, (int v, int dir, const char *path, struct stat64 *s, int flags), (v, dir, path, s, flags))
CALL(ROOM, int, statvfs, (const char *path, struct statvfs *s), (path, s))
CALL(ROOM, int, statvfs64, (const char *path, struct statvfs64 *s), (path, s))
CALL(ROOM, int, fstatfs, (int fd, struct statfs *s), (fd, s))
CALL(ROOM, int, fstatfs64, (int fd, struct statfs64 *s), (fd, s))
CALL(ROOM, int, fstatvfs, (int fd, struct statvfs *s), (fd, s))
CALL(ROOM, int, fstatvfs64, (int fd, struct statvfs64 *s), (fd, s))
CALL(ACCESS, int, access, (const char *path, int mode), (path, mode))
CALL(ACCESS, int, faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags))
CALL(READLINK, ssize_t, readlink, (const char *path, char *data, size_t n), (path, data, n))
CALL(READLINK, ssize_t, readlinkat, (int dir, const char *path, char *data, size_t n), (dir, path, data, n))

CALL(MKDIR, int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(MKDIR, int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(RMDIR, int, rmdir, (const char *path), (path))
CALL(RENAME, int, rename, (const char *a, const char *b), (a, b))
CALL(RENAME, int, renameat, (int dir, const char *a, int other, const char *b), (dir, a, other, b))
CALL(RENAME, int, renameat2, (int dir, const char *a, int other, const char *b, unsigned flags), (dir, a, other, b, flags))
CALL(LINK, int, link, (const char *a, const char *b), (a, b))
CALL(LINK, int, linkat, (int dir, const char *a, int other, const char *b, int flags), (dir, a, other, b, flags))
CALL(SYMLINK, int, symlink, (const char *a, const char *b), (a, b))
CALL(SYMLINK, int, symlinkat, (const char *a, int dir, const char *b), (a, dir, b))
CALL(UNLINK, int, unlink, (const char *path), (path))
CALL(UNLINK, int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
CALL(UNLINK, int, remove, (const char *path), (path))
CALL(MODE, int, chmod, (const char *path, mode_t mode), (path, mode))
CALL(MODE, int, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(MODE, int, fchmodat, (int dir, const char *path, mode_t mode, int flags), (dir, path, mode, flags))
CALL(TIMES, int, utimensat, (int dir, const char *path, const struct timespec t[2], int flags), (dir, path, t, flags))
CALL(TIMES, int, futimens, (int fd, const struct timespec t[2]), (fd, t))
CALL(TRUNCATE, int, truncate, (const char *path, off_t n), (path, n))
CALL(TRUNCATE, int, truncate64, (const char *path, off64_t n), (path, n))
CALL(TRUNCATE, int, ftruncate, (int fd, off_t n), (fd, n))
CALL(TRUNCATE, int, ftruncate64, (int fd, off64_t n), (fd, n))
CALL(ALLOCATE, int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
CALL(ALLOCATE, int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
int posix_fallocate(int fd, off_t at, off_t n)
{
    REAL(posix_fallocate);
    return call_fails(ALLOCATE) ? error_number : real(fd, at, n);
}
int posix_fallocate64(int fd, off64_t at, off64_t n)
{
    REAL(posix_fallocate64);
    return call_fails(ALLOCATE) ? error_number : real(fd, at, n);
}
CALL(SYNC, int, fsync, (int fd), (fd))
CALL(SYNC, int, fdatasync, (int fd), (fd))
CALL(SYNC, int, syncfs, (int fd), (fd))
CALL(SYNC, int, sync_file_range, (int fd, off64_t at, off64_t n, unsigned flags), (fd, at, n, flags))
CALL(SYNC, int, msync, (void *data, size_t n, int flags), (data, n, flags))
CALL(LOCK, int, flock, (int fd, int what), (fd, what))
CALL(SEEK, off_t, lseek, (int fd, off_t at, int from), (fd, at, from))
CALL(SEEK, off64_t, lseek64, (int fd, off64_t at, int from), (fd, at, from))

CALL(READ, ssize_t, read, (int fd, void *data, size_t n), (fd, data, shortened(n)))
CALL(READ, ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, shortened(n), at))
CALL(READ, ssize_t, pread64, (int fd, void *data, size_t n, off64_t at), (fd, data, shortened(n), at))
CALL(WRITE, ssize_t, write, (int fd, const void *data, size_t n), (fd, data, shortened(n)))
CALL(WRITE, ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, shortened(n), at))
CALL(WRITE, ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, shortened(n), at))
/* Of several pieces a short call moves the first. */
static int pieces(int n) { return n > 1 && shortened(2) == 1 ? 1 : n; }
CALL(READ, ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, pieces(n)))
CALL(READ, ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, pieces(n), at))
CALL(READ, ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, pieces(n), at))
CALL(READ, ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int how), (fd, v, pieces(n), at, how))
CALL(READ, ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off64_t at, int how), (fd, v, pieces(n), at, how))
CALL(WRITE, ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, pieces(n)))
CALL(WRITE, ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, pieces(n), at))
CALL(WRITE, ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, pieces(n), at))
CALL(WRITE, ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int how), (fd, v, pieces(n), at, how))
CALL(WRITE, ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off64_t at, int how), (fd, v, pieces(n), at, how))
CALL(COPY, ssize_t, copy_file_range, (int a, off64_t *at, int b, off64_t *to, size_t n, unsigned flags),
     (a, at, b, to, n, flags))
CALL(COPY, ssize_t, sendfile, (int to, int from, off_t *at, size_t n), (to, from, at, n))
CALL(COPY, ssize_t, sendfile64, (int to, int from, off64_t *at, size_t n), (to, from, at, n))

#define MAPS(name, offset) \
    void *name(void *where, size_t n, int protection, int flags, int fd, offset at) \
    { \
        REAL(name); \
        return fd >= 0 && call_fails(MAP) ? MAP_FAILED : real(where, n, protection, flags, fd, at); \
    }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

/* What is closed stays so, whatever is said. */
int close(int fd)
{
    REAL(close);
    int failed = real(fd);
    return call_fails(CLOSE) ? -1 : failed;
}
int closedir(DIR *dir)
{
    REAL(closedir);
    int failed = real(dir);
    return call_fails(CLOSE) ? -1 : failed;
}
struct dirent *readdir(DIR *dir) { REAL(readdir); return call_fails(LIST) ? NULL : real(dir); }
struct dirent64 *readdir64(DIR *dir) { REAL(readdir64); return call_fails(LIST) ? NULL : real(dir); }
/* These also open, look what it is that is open, and set flags of it. */
DIR *opendir(const char *path)
{
    REAL(opendir);
    DIR *dir;
    count(OPEN);
    if (call_fails(LIST)) return NULL;
    if ((dir = real(path))) count(STAT);
    return dir;
}
DIR *fdopendir(int fd)
{
    REAL(fdopendir);
    if (call_fails(LIST)) return NULL;
    count(STAT); count(CONTROL); count(CONTROL);
    return real(fd);
}
void rewinddir(DIR *dir) { REAL(rewinddir); count(SEEK); real(dir); }

#define CONTROLS(name) \
    int name(int fd, int what, ...) \
    { \
        REAL(name); \
        va_list list; va_start(list, what); \
        void *argument = va_arg(list, void *); \
        va_end(list); \
        /* These cannot fail for an open descriptor. */ \
        if (what == F_GETFD || what == F_SETFD || what == F_GETFL) { count(CONTROL); return real(fd, what, argument); } \
        int locks = what == F_SETLK || what == F_SETLKW || what == F_GETLK || what == F_OFD_SETLK || \
            what == F_OFD_SETLKW || what == F_OFD_GETLK; \
        return call_fails(locks ? LOCK : CONTROL) ? -1 : real(fd, what, argument); \
    }
CONTROLS(fcntl)
CONTROLS(fcntl64)

/* Calls that are made by their number. */
long syscall(long number, ...)
{
    REAL(syscall);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    int class = number == SYS_openat2 || number == SYS_openat ? OPEN :
        number == SYS_renameat2 ? RENAME :
        number == SYS_getdents64 ? LIST :
        number == SYS_statx ? STAT :
        number == SYS_copy_file_range ? COPY : -1;
    return class >= 0 && call_fails(class) ? -1 : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Memory fails for callers in the kernel alone. */
static int memory_fails(void *caller)
{
    Dl_info info;
    if (!armed() || kind != MEMORY) return 0;
    if (!dladdr(caller, &info) || !info.dli_fname || !strstr(info.dli_fname, "zcore/kernel") || !is_next()) return 0;
    last_failed = NO_MEMORY;
    errno = error_number;
    return 1;
}
#define GIVES(name, parameters, arguments) \
    void *name parameters { REAL(name); return memory_fails(__builtin_return_address(0)) ? NULL : real arguments; }
GIVES(malloc, (size_t n), (n))
GIVES(realloc, (void *old, size_t n), (old, n))
GIVES(aligned_alloc, (size_t to, size_t n), (to, n))
int posix_memalign(void **data, size_t to, size_t n)
{
    REAL(posix_memalign);
    return memory_fails(__builtin_return_address(0)) ? ENOMEM : real(data, to, n);
}
int pthread_create(pthread_t *id, const pthread_attr_t *how, void *(*work)(void *), void *argument)
{
    REAL(pthread_create);
    return memory_fails(__builtin_return_address(0)) ? EAGAIN : real(id, how, work, argument);
}
/* dlsym itself may ask for this one. */
extern void *__libc_calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}
