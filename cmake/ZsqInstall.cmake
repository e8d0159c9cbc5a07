# cmake --install: headers under include/zsq, static libraries, the program, and zsqConfig.cmake.
