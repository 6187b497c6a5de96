# What compiled kernels call in place of the function of `_stop.py`: from time to time it calls `look` there.
cdef extern from *:
    """
    #define COALTREE_SECONDS_BETWEEN_LOOKS 0.05
    #define COALTREE_STRIDE 64
    #if defined(_MSC_VER)
      #define COALTREE_THREAD_LOCAL __declspec(thread)
    #else
      #define COALTREE_THREAD_LOCAL __thread
    #endif
    #if defined(_WIN32)
      #include <windows.h>
      static double coaltree_seconds(void) { return 1e-3 * (double)GetTickCount64(); }
    #else
      #include <time.h>
      static double coaltree_seconds(void) {
          struct timespec now;
          clock_gettime(CLOCK_MONOTONIC, &now);
          return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
      }
    #endif
    static COALTREE_THREAD_LOCAL double coaltree_next_look = 0;
    /* -1 with an exception if the work of this thread is to end, else 0; needs no GIL. */
    static int coaltree_poll(void) {
        double now = coaltree_seconds();
        PyGILState_STATE state;
        PyObject *module, *result = NULL;
        if (now < coaltree_next_look)
            return 0;
        coaltree_next_look = now + COALTREE_SECONDS_BETWEEN_LOOKS;
        state = PyGILState_Ensure();
        module = PyImport_ImportModule("coaltree._stop");
        if (module != NULL)
            result = PyObject_CallMethod(module, "look", NULL);
        Py_XDECREF(module);
        Py_XDECREF(result);
        PyGILState_Release(state);
        return result == NULL ? -1 : 0;
    }
    """
    int poll "coaltree_poll"() except -1 nogil
    Py_ssize_t STRIDE "COALTREE_STRIDE"
