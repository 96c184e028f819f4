/* zcore_start for programs that are not Python: finds an interpreter, starts it in this process, and takes the table of
   functions from it. Nothing of Python is linked; its library is loaded when it is needed.

   Which interpreter: the environment's ZCORE_PYTHON, the path of a python; else the one that the header which the
   program was built with is installed for; else python3 on the path. It is asked once, as a child, where its library is
   and what it finds its modules by. A process that runs an interpreter already, such as a program that is loaded by
   one, uses that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zcore.h"

enum { MAX_ANSWER = 1 << 20 };

/* What the interpreter is asked: the path of its library, its home, and a line that makes another interpreter find the
   same modules. */
static const char QUESTION[] =
    "import os, sys, sysconfig as s\n"
    "v = s.get_config_var\n"
    "names = [v('INSTSONAME'), v('LDLIBRARY'), 'libpython%d.%d.so.1.0' % sys.version_info[:2],"
    " 'libpython%d.%d.so' % sys.version_info[:2], 'libpython%d.%d.dylib' % sys.version_info[:2]]\n"
    "folders = [v('LIBDIR'), os.path.join(v('LIBDIR') or '', v('MULTIARCH') or ''), os.path.join(sys.base_prefix, 'lib')]\n"
    "found = [os.path.join(f, n) for n in names for f in folders"
    " if f and n and ('.so' in n or '.dylib' in n) and os.path.exists(os.path.join(f, n))]\n"
    "print(found[0] if found else '')\n"
    "print(sys.base_prefix)\n"
    "path = [p for p in sys.path if p]\n"
    "print('import sys, site; sys.path[:] = %a; sys.executable = %a; sys.prefix = %a; sys.exec_prefix = %a;"
    " [site.addsitedir(p) for p in %a]' % (path, sys.executable, sys.prefix, sys.exec_prefix,"
    " [p for p in path if p.endswith(('site-packages', 'dist-packages'))]))\n";

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static const zcore_api *found = NULL;

static const zcore_api *fail(zcore_error *error, const char *what, const char *of)
{
    if (error != NULL) {
        error->code = ZCORE_NO_PYTHON;
        error->sys_errno = 0;
        snprintf(error->message, sizeof error->message, "%.100s: %.800s", what, of);
    }
    return NULL;
}

/* Asks an interpreter; the answer's three lines are cut apart in `answer`. */
static int ask(const char *python, char *answer, char **lines)
{
    int ends[2], status = 0;
    size_t n = 0;
    ssize_t got;
    pid_t child;
    if (pipe(ends) != 0) return -1;
    child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execlp(python, python, "-c", QUESTION, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (n < MAX_ANSWER - 1) {
        got = read(ends[0], answer + n, MAX_ANSWER - 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        n += (size_t)got;
    }
    answer[n] = 0;
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
    for (int i = 0; i < 3; i++) {
        lines[i] = answer;
        answer = strchr(answer, '\n');
        if (answer == NULL) return -1;
        *answer++ = 0;
    }
    return 0;
}

/* A function of the library of Python that this process has. */
static void *symbol(void *library, const char *name)
{
    return dlsym(library != NULL ? library : RTLD_DEFAULT, name);
}

static const zcore_api *take_table(void *library, const char *python, zcore_error *error)
{
    int (*ensure)(void) = (int (*)(void))symbol(library, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))symbol(library, "PyGILState_Release");
    void *(*import)(const char *, int) = (void *(*)(const char *, int))symbol(library, "PyCapsule_Import");
    void *(*module)(const char *) = (void *(*)(const char *))symbol(library, "PyImport_ImportModule");
    void (*fetch)(void **, void **, void **) = (void (*)(void **, void **, void **))symbol(library, "PyErr_Fetch");
    void *(*str)(void *) = (void *(*)(void *))symbol(library, "PyObject_Str");
    const char *(*utf8)(void *) = (const char *(*)(void *))symbol(library, "PyUnicode_AsUTF8");
    void (*clear)(void) = (void (*)(void))symbol(library, "PyErr_Clear");
    const zcore_api *table;
    void *type = NULL, *value = NULL, *traceback = NULL, *text;
    const char *reason = NULL;
    char where[800];
    int state;
    if (ensure == NULL || release == NULL || import == NULL || module == NULL || fetch == NULL || str == NULL
        || utf8 == NULL || clear == NULL)
        return fail(error, "this library of Python lacks functions", "PyGILState_Ensure, PyCapsule_Import, PyErr_Fetch");
    state = ensure();
    table = module("zcore.embed") != NULL ? (const zcore_api *)import("zcore.embed._C_API", 0) : NULL;
    if (table == NULL) {
        fetch(&type, &value, &traceback);
        text = value != NULL ? str(value) : NULL;
        reason = text != NULL ? utf8(text) : NULL;
        clear();
        snprintf(where, sizeof where, "%.300s, in %.400s", reason != NULL ? reason : "for an unknown reason", python);
        fail(error, "zcore cannot be imported; set ZCORE_PYTHON to the path of a python that has it", where);
    }
    release(state);
    return table;
}

/* Writes the path of the interpreter for which a header is installed: that lies in
   <prefix>/lib/<python>/<packages>/zcore/include. Whether there is one. */
static int find_beside(const char *header, char *python, size_t size)
{
    const char *end = strrchr(header, '/');
    int n = end == NULL ? 1 : (int)(end - header);
    snprintf(python, size, "%.*s/../../../../../bin/python3", n, end == NULL ? "." : header);
    return access(python, X_OK) == 0;
}

static const zcore_api *start(const char *header, zcore_error *error)
{
    char beside[4096];
    const char *python = getenv("ZCORE_PYTHON");
    int (*is_initialized)(void) = (int (*)(void))symbol(NULL, "Py_IsInitialized");
    void (*initialize)(int);
    int (*run)(const char *);
    void *(*save)(void);
    void *library;
    char *answer, *lines[3], *home;
    const zcore_api *table = NULL;
    if (is_initialized != NULL && is_initialized()) return take_table(NULL, "this process", error);
    if (python == NULL || python[0] == 0) python = find_beside(header, beside, sizeof beside) ? beside : "python3";
    answer = (char *)malloc(MAX_ANSWER);
    if (answer == NULL) return fail(error, "no memory to start an interpreter", python);
    if (ask(python, answer, lines) != 0) {
        free(answer);
        return fail(error, "cannot run an interpreter; set ZCORE_PYTHON to the path of another", python);
    }
    if (lines[0][0] == 0) {
        fail(error, "this interpreter has no shared library (libpython); set ZCORE_PYTHON to the path of another", python);
        free(answer);
        return NULL;
    }
    library = dlopen(lines[0], RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        fail(error, "cannot load the library of Python", dlerror());
        free(answer);
        return NULL;
    }
    initialize = (void (*)(int))symbol(library, "Py_InitializeEx");
    run = (int (*)(const char *))symbol(library, "PyRun_SimpleString");
    save = (void *(*)(void))symbol(library, "PyEval_SaveThread");
    if (initialize == NULL || run == NULL || save == NULL) {
        fail(error, "this library of Python lacks functions", lines[0]);
    } else {
        home = getenv("PYTHONHOME") != NULL ? strdup(getenv("PYTHONHOME")) : NULL;
        setenv("PYTHONHOME", lines[1], 1);
        initialize(0);                           /* no signal handlers: signals are the program's */
        if (home != NULL) setenv("PYTHONHOME", home, 1);
        else unsetenv("PYTHONHOME");
        free(home);
        if (run(lines[2]) != 0) fail(error, "the interpreter does not take its own paths", python);
        else table = take_table(library, python, error);
        save();                                  /* the GIL is free for any thread from now on */
    }
    free(answer);
    return table;
}

const zcore_api *zcore_find(const char *header, zcore_error *error)
{
    pthread_mutex_lock(&guard);
    if (found == NULL) found = start(header, error);
    pthread_mutex_unlock(&guard);
    return found;
}

/* What Fortran calls: the functions of the header, which are inline, under names that a linker finds. */
int zcore_f_start(const char *source, zcore_error *e)
{
    const zcore_api *table = zcore_find(source, e);
    if (table != NULL) zcore_table = table;
    return table != NULL ? zcore_fail(e, ZCORE_OK, "") + 1 : -1;
}
zcore_array *zcore_f_open(const char *place, const char *mode, const char *options, zcore_error *e)
{
    return zcore_open(place, mode, options, e);
}
zcore_array *zcore_f_create(const char *place, int ndim, const int64_t *shape, const int64_t *chunks,
                            const char *dtype, const char *options, zcore_error *e)
{
    return zcore_create(place, ndim, shape, chunks, dtype, options, e);
}
void zcore_f_close(zcore_array *a) { zcore_close(a); }
int zcore_f_ndim(const zcore_array *a) { return zcore_ndim(a); }
void zcore_f_shape(const zcore_array *a, int64_t *shape) { zcore_shape(a, shape); }
void zcore_f_chunk_shape(const zcore_array *a, int64_t *chunks) { zcore_chunk_shape(a, chunks); }
void zcore_f_object_shape(const zcore_array *a, int64_t *chunks) { zcore_object_shape(a, chunks); }
void zcore_f_get_dtype(const zcore_array *a, zcore_dtype *dtype) { zcore_get_dtype(a, dtype); }
int zcore_f_expect(zcore_array *a, const char *dtype, int ndim, zcore_error *e)
{
    return zcore_expect(a, dtype, ndim, e);
}
int zcore_f_read(zcore_array *a, const int64_t *start, const int64_t *count, const int64_t *step, void *data,
                 const int64_t *strides, int n_threads, zcore_error *e)
{
    return zcore_read(a, start, count, step, data, strides, n_threads, e);
}
int zcore_f_write(zcore_array *a, const int64_t *start, const int64_t *count, const int64_t *step, const void *data,
                  const int64_t *strides, int n_threads, zcore_error *e)
{
    return zcore_write(a, start, count, step, data, strides, n_threads, e);
}
int zcore_f_resize(zcore_array *a, const int64_t *shape, zcore_error *e) { return zcore_resize(a, shape, e); }
int zcore_f_refresh(zcore_array *a, zcore_error *e) { return zcore_refresh(a, e); }
int64_t zcore_f_get_attrs(zcore_array *a, char *json, int64_t size, zcore_error *e)
{
    return zcore_get_attrs(a, json, size, e);
}
int zcore_f_set_attr(zcore_array *a, const char *name, const char *json, zcore_error *e)
{
    return zcore_set_attr(a, name, json, e);
}
int zcore_f_sync(zcore_array *a, zcore_error *e) { return zcore_sync(a, e); }
zcore_writer *zcore_f_writer_open(zcore_array *a, int axis, const char *options, zcore_error *e)
{
    return zcore_writer_open(a, axis, options, e);
}
int zcore_f_writer_append(zcore_writer *w, const void *data, int64_t n_frames, zcore_error *e)
{
    return zcore_writer_append(w, data, n_frames, NULL, e);
}
int zcore_f_writer_write(zcore_writer *w, const int64_t *start, const int64_t *count, const void *data, zcore_error *e)
{
    return zcore_writer_write(w, start, count, data, NULL, e);
}
int zcore_f_writer_flush(zcore_writer *w, zcore_error *e) { return zcore_writer_flush(w, e); }
int zcore_f_writer_close(zcore_writer *w, zcore_error *e) { return zcore_writer_close(w, e); }
int zcore_f_writer_abort(zcore_writer *w, zcore_error *e) { return zcore_writer_abort(w, e); }
int64_t zcore_f_writer_n_given(const zcore_writer *w) { return zcore_writer_n_given(w); }
