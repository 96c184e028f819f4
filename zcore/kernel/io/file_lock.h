/* One advisory lock on a range of a file, tried once, owned by the open file description. */
#ifndef ZCORE_FILE_LOCK_H
#define ZCORE_FILE_LOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ZC_UNLOCK = 0, ZC_SHARED = 1, ZC_EXCLUSIVE = 2 };

/* 0, EAGAIN if another holder has the lock, or the errno of a file system without such locks.
   n_bytes 0 means to the end of all files. */
static inline int zc_lock_range(int fd, int kind, int64_t start, int64_t n_bytes)
{
#ifdef F_OFD_SETLK
    struct flock range = {0};
    range.l_type = (short)(kind == ZC_UNLOCK ? F_UNLCK : kind == ZC_SHARED ? F_RDLCK : F_WRLCK);
    range.l_whence = SEEK_SET;
    range.l_start = (off_t)start;
    range.l_len = (off_t)n_bytes;
    for (;;) {
        if (fcntl(fd, F_OFD_SETLK, &range) == 0) return 0;
        if (errno != EINTR) break;
    }
    /* POSIX also allows EACCES for a held lock here; missing permissions show at open. */
    return errno == EACCES ? EAGAIN : errno;
#else
    /* Without locks that belong to an open file description, one lock of the whole document stands for every range.
           Only the holder of the whole range uses two ranges through one descriptor, and takes them together. */
    (void)start; (void)n_bytes;
    for (;;) {
        if (flock(fd, (kind == ZC_UNLOCK ? LOCK_UN : kind == ZC_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return 0;
        if (errno != EINTR) break;
    }
    return errno == EWOULDBLOCK ? EAGAIN : errno;
#endif
}

/* Whether several ranges of one file can be locked independently. */
static inline int zc_has_ranges(void)
{
#ifdef F_OFD_SETLK
    return 1;
#else
    return 0;
#endif
}

#endif
