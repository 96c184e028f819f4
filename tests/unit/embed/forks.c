/* Forks by a signal handler in the middle of each kind of call, and closes the handle in both processes.

   forks ARRAY HOW: HOW is "python" (a handler of Python forks), "c" (a handler of C), "close" (a handler of C, which
   closes the handle at once), "threads" (no handler; this thread forks while others read), or "writer" (no handler; the
   child has nothing of a writer, and opens its own). */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zcore.h"

enum { N = 1000 };

static const int64_t start[1] = {0}, count[1] = {N};
static const char *place;
static zcore_array *array;
static int closes, stops;

static const char SCRIPT[] =
    "import os, signal\n"
    "from zcore.embed import calls\n"
    "def in_the_middle_of(name):\n"
    "    function = getattr(calls, name)\n"
    "    def call(*arguments):\n"
    "        setattr(calls, name, function)\n"
    "        signal.raise_signal(signal.SIGUSR1)\n"
    "        return function(*arguments)\n"
    "    setattr(calls, name, call)\n"
    "def handle(*_):\n"
    "    os.fork()\n";

static void run(const char *text)
{
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int (*simple)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    int state = ensure();
    if (simple(text, NULL) != 0) exit(3);
    release(state);
}

static void handle(int number)
{
    (void)number;
    fork();
    alarm(20);
    if (closes) zcore_close(array);
}

static void *read_on(void *data)
{
    zcore_error error;
    while (!__atomic_load_n(&stops, __ATOMIC_SEQ_CST))
        if (zcore_read(array, start, count, NULL, data, NULL, 1, &error) != 0) exit(4);
    return 0;
}

static int ask(const char *what, double *data, zcore_error *error)
{
    const int64_t shape[1] = {N + 1};
    zcore_array *second;
    if (strcmp(what, "read") == 0) return zcore_read(array, start, count, NULL, data, NULL, 2, error);
    if (strcmp(what, "write") == 0) return zcore_write(array, start, count, NULL, data, NULL, 2, error);
    if (strcmp(what, "resize") == 0) return zcore_resize(array, shape, error);
    if (strcmp(what, "refresh") == 0) return zcore_refresh(array, error);
    if (strcmp(what, "attributes") == 0) return zcore_get_attrs(array, NULL, 0, error) < 0;
    if (strcmp(what, "set_attribute") == 0) return zcore_set_attr(array, "a", "1", error);
    if (strcmp(what, "sync") == 0) return zcore_sync(array, error);
    second = zcore_open(place, "r", NULL, error);
    if (second == NULL || zcore_read(second, start, count, NULL, data, NULL, 2, error) != 0) return -1;
    zcore_close(second);
    return 0;
}

static int read_in_threads(void)
{
    double data[2][N];
    pthread_t threads[2];
    pid_t child = 1;
    int status = 0;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, read_on, data[i]);
    for (int i = 0; i < 20 && child != 0 && status == 0; i++) {
        usleep(1000);
        if ((child = fork()) == 0) alarm(20);
        else wait(&status);
    }
    if (child == 0) zcore_close(array), _exit(0);
    __atomic_store_n(&stops, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    zcore_close(array);
    return status;
}

static int fork_with_a_writer(void)
{
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    double data[N] = {0};
    zcore_error error;
    zcore_writer *writer = zcore_writer_open(array, 0, NULL, &error);
    int status = 0, state;
    pid_t child;
    if (zcore_writer_append(writer, data, N, NULL, &error) != 0 || zcore_writer_flush(writer, &error) != 0
        || zcore_writer_append(writer, data, 7, NULL, &error) != 0)
        return puts(error.message), 1;
    state = ensure();            /* else a thread of the writer may have it, which is not in the child */
    child = fork();
    release(state);
    alarm(20);
    if (child == 0) {
        if (zcore_writer_append(writer, data, 1, NULL, &error) != -1 || error.code != ZCORE_STORE) _exit(1);
        if (zcore_writer_close(writer, &error) != 0) _exit(2);
        writer = zcore_writer_open(array, 0, NULL, &error);
        if (zcore_writer_append(writer, data, 5, NULL, &error) != 0) _exit(3);
        _exit(zcore_writer_close(writer, &error) != 0);
    }
    wait(&status);
    if (zcore_writer_close(writer, &error) != 0) return puts(error.message), 1;
    return status;
}

/* Makes one call, and returns whether both processes came through it. */
static int fork_inside(const char *what)
{
    char text[200];
    double data[N];
    zcore_error error;
    pid_t self = getpid();
    int status = 0, code;
    snprintf(text, sizeof text, "in_the_middle_of('%s')", what);
    run(text);
    for (int i = 0; i < N; i++) data[i] = i;
    code = ask(what, data, &error);
    alarm(20);
    for (int i = 0; i < N; i++) code |= data[i] != i;
    if (code != 0) printf("%s: %s\n", what, error.message), fflush(stdout);
    zcore_close(array);
    if (zcore_ndim(array) != -1) code = 1;
    /* Its slot is free again. */
    array = zcore_open(place, "r+", NULL, &error);
    if (array == NULL || zcore_read(array, start, count, NULL, data, NULL, 1, &error) != 0) code = 1;
    if (getpid() != self) zcore_close(array), _exit(code != 0);
    if (wait(&status) < 0 || status != 0) printf("%s: the child has ended with %d\n", what, status);
    return code == 0 && status == 0;
}

int main(int n_arguments, char **arguments)
{
    static const char *calls[] = {"read", "write", "resize", "refresh", "attributes", "set_attribute", "sync", "open"};
    const char *how = n_arguments > 2 ? arguments[2] : "";
    zcore_error error;
    place = arguments[1];
    if (zcore_start(&error) != 0 || (array = zcore_open(place, "r+", NULL, &error)) == NULL)
        return puts(error.message), 1;
    if (strcmp(how, "threads") == 0) return read_in_threads();
    if (strcmp(how, "writer") == 0) return fork_with_a_writer();
    run(SCRIPT);
    if (strcmp(how, "python") == 0) run("signal.signal(signal.SIGUSR1, handle)");
    else signal(SIGUSR1, handle);
    closes = strcmp(how, "close") == 0;
    for (int i = 0; i < 8; i++)
        if (!fork_inside(calls[i])) return 1;
    zcore_close(array);
    return 0;
}
