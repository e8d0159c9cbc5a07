# What pip installs (pyproject.toml): the program and libzsq.so inside of the Python package, which find libtorch in
# the package torch beside it.
set(torch "$ORIGIN/../../torch/lib")
set_target_properties(zsq zsq_c PROPERTIES INSTALL_RPATH "${torch}")
set_target_properties(zsq_c PROPERTIES VERSION 0) # a wheel holds no links: one file, by the name that is loaded
install(TARGETS zsq RUNTIME DESTINATION zsq/bin COMPONENT wheel)
install(TARGETS zsq_c LIBRARY DESTINATION zsq/lib COMPONENT wheel NAMELINK_SKIP)
