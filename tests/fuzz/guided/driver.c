/* libFuzzer with an interpreter in it: calls the target that ZCORE_FUZZ_TARGET names, in the module `native`. */
#include <Python.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_SECONDS 1.0

static const char *(*run)(const uint8_t *data, size_t n);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    PyObject *module, *address = NULL;
    (void)argc;
    (void)argv;
    Py_InitializeEx(0);
    module = PyImport_ImportModule("native");
    if (module != NULL)
        address = PyObject_CallMethod(module, "address", "s", getenv("ZCORE_FUZZ_TARGET"));
    if (address == NULL) {
        PyErr_Print();
        exit(2);
    }
    run = (const char *(*)(const uint8_t *, size_t))PyLong_AsVoidPtr(address);
    return 0;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    double began = seconds(CLOCK_MONOTONIC);
    const char *failed = run(data, n);
    if (failed == NULL && seconds(CLOCK_MONOTONIC) - began > MAX_SECONDS) {
        /* Perhaps it only had to wait for the processor. */
        began = seconds(CLOCK_PROCESS_CPUTIME_ID);
        run(data, n);
        if (seconds(CLOCK_PROCESS_CPUTIME_ID) - began > MAX_SECONDS)
            failed = "no more than a second of the processor";
    }
    if (failed != NULL) {
        fprintf(stderr, "expectation failed: %s\n", failed);
        abort();
    }
    return 0;
}
