/* Preloaded: makes the n-th of the system's calls, or of the kernel's requests for memory, fail while it is armed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long n_left = -1, n_calls;    /* fails when it comes to 0; negative: never */
static int error_number, of_memory, n_short;

/* `kind`: 0 for system calls, 1 for memory, 2 for reads and writes that move one byte instead of failing. */
void arm(int kind, long n, int number)
{
    n_calls = 0;
    error_number = number;
    of_memory = kind == 1;
    n_short = kind == 2;
    __atomic_store_n(&n_left, n, __ATOMIC_SEQ_CST);
}
long disarm(void)
{
    __atomic_store_n(&n_left, -1, __ATOMIC_SEQ_CST);
    return n_calls;
}

static int fails(void)
{
    if (__atomic_load_n(&n_left, __ATOMIC_SEQ_CST) < 0) return 0;
    __atomic_add_fetch(&n_calls, 1, __ATOMIC_SEQ_CST);
    if (__atomic_fetch_sub(&n_left, 1, __ATOMIC_SEQ_CST) == 0) {
        errno = error_number;
        return 1;
    }
    return 0;
}
static int call_fails(void) { return !of_memory && !n_short && fails(); }
static size_t shortened(size_t n) { return n_left >= 0 && n_short && n > 1 ? (n_calls++, 1) : n; }

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPEN(name, before, call) \
    int name before \
    { \
        REAL(name); \
        va_list list; va_start(list, flags); \
        int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, int) : 0; \
        va_end(list); \
        return call_fails() ? -1 : real call; \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

#define CALL(type, name, parameters, arguments) \
    type name parameters { REAL(name); return call_fails() ? (type)-1 : real arguments; }
CALL(int, fsync, (int fd), (fd))
CALL(int, fstat, (int fd, struct stat *s), (fd, s))
CALL(int, fstat64, (int fd, struct stat64 *s), (fd, s))
CALL(int, stat, (const char *path, struct stat *s), (path, s))
CALL(int, stat64, (const char *path, struct stat64 *s), (path, s))
CALL(int, lstat, (const char *path, struct stat *s), (path, s))
CALL(int, lstat64, (const char *path, struct stat64 *s), (path, s))
CALL(int, fstatat, (int dir, const char *path, struct stat *s, int flags), (dir, path, s, flags))
CALL(int, fstatat64, (int dir, const char *path, struct stat64 *s, int flags), (dir, path, s, flags))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(int, rmdir, (const char *path), (path))
CALL(int, rename, (const char *a, const char *b), (a, b))
CALL(int, renameat, (int dir, const char *a, int other, const char *b), (dir, a, other, b))
CALL(int, link, (const char *a, const char *b), (a, b))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(int, fchmodat, (int dir, const char *path, mode_t mode, int flags), (dir, path, mode, flags))
CALL(int, ftruncate, (int fd, off_t n), (fd, n))
CALL(int, ftruncate64, (int fd, off64_t n), (fd, n))
CALL(int, flock, (int fd, int what), (fd, what))
CALL(ssize_t, read, (int fd, void *data, size_t n), (fd, data, shortened(n)))
CALL(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, shortened(n)))
CALL(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, shortened(n), at))
CALL(ssize_t, pread64, (int fd, void *data, size_t n, off64_t at), (fd, data, shortened(n), at))
CALL(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, shortened(n), at))
CALL(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, shortened(n), at))
#define CALL_PIECES(name, type) \
    ssize_t name(int fd, const struct iovec *pieces, int n, type at) \
    { \
        REAL(name); \
        struct iovec one = {pieces[0].iov_base, 1}; \
        if (call_fails()) return -1; \
        return shortened(2) == 1 ? real(fd, &one, 1, at) : real(fd, pieces, n, at); \
    }
CALL_PIECES(preadv, off_t)
CALL_PIECES(preadv64, off64_t)
/* What is closed stays so, whatever is said. */
int close(int fd)
{
    REAL(close);
    int failed = real(fd);
    return call_fails() ? -1 : failed;
}
struct dirent64 *readdir64(DIR *dir) { REAL(readdir64); return call_fails() ? NULL : real(dir); }
DIR *opendir(const char *path) { REAL(opendir); return call_fails() ? NULL : real(path); }
DIR *fdopendir(int fd) { REAL(fdopendir); return call_fails() ? NULL : real(fd); }

#define LOCK(name) \
    int name(int fd, int what, ...) \
    { \
        REAL(name); \
        va_list list; va_start(list, what); \
        void *argument = va_arg(list, void *); \
        va_end(list); \
        return what == F_OFD_SETLK && call_fails() ? -1 : real(fd, what, argument); \
    }
LOCK(fcntl)
LOCK(fcntl64)

/* Memory fails for callers in the kernel alone. */
static int memory_fails(void *caller)
{
    Dl_info info;
    if (!of_memory || __atomic_load_n(&n_left, __ATOMIC_SEQ_CST) < 0) return 0;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "zcore/kernel") && fails();
}
#define MEMORY(name, parameters, arguments) \
    void *name parameters { REAL(name); return memory_fails(__builtin_return_address(0)) ? NULL : real arguments; }
MEMORY(malloc, (size_t n), (n))
MEMORY(realloc, (void *old, size_t n), (old, n))
MEMORY(aligned_alloc, (size_t to, size_t n), (to, n))
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
