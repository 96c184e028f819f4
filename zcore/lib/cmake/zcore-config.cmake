# find_package(zcore CONFIG) gives the target zcore::zcore.
if(NOT TARGET zcore::zcore)
  get_filename_component(_zcore "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  find_package(Threads REQUIRED)
  add_library(zcore::zcore STATIC IMPORTED)
  set_target_properties(zcore::zcore PROPERTIES
    IMPORTED_LOCATION "${_zcore}/lib/libzcore_start.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_zcore}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
  set(zcore_FORTRAN_SOURCE "${_zcore}/include/zcore.F90")
endif()
