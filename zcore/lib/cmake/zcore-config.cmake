# find_package(zcore CONFIG) gives the target zcore::zcore. The interpreter that zcore is installed in is found from this
# file's own place; the environment's ZCORE_PYTHON names another one.
if(NOT TARGET zcore::zcore)
  get_filename_component(_zcore "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  get_filename_component(_zcore_python "${_zcore}/../../../../bin/python3" ABSOLUTE)
  find_package(Threads REQUIRED)
  add_library(zcore::zcore STATIC IMPORTED)
  set_target_properties(zcore::zcore PROPERTIES
    IMPORTED_LOCATION "${_zcore}/lib/libzcore_start.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_zcore}/include"
    INTERFACE_COMPILE_DEFINITIONS "ZCORE_PYTHON_DEFAULT=\"${_zcore_python}\""
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
  set(zcore_FORTRAN_SOURCE "${_zcore}/include/zcore.f90")
endif()
