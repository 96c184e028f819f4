/* libFuzzer with an interpreter in it: calls the target that ZCORE_FUZZ_TARGET names, in the module `native`. */
#include <Python.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *failed = run(data, n);
    if (failed != NULL) {
        fprintf(stderr, "expectation failed: %s\n", failed);
        abort();
    }
    return 0;
}
