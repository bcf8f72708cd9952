# What `cmake --install` puts where: headers, both libraries, and what CMake and pkg-config need to
# find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS snug_shared snug_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/snug DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/snug)
configure_package_config_file(snugConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/snugConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/snugConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/snugConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/snugConfigVersion.cmake DESTINATION ${package_dir})

# The prefix of `cmake --install --prefix` is known only then.
set(PC_TEMPLATE ${CMAKE_CURRENT_SOURCE_DIR}/snug.pc.in)
install(CODE "
  set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
  set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
  set(PC_NAME snug)
  set(PC_DESCRIPTION \"A malloc that fits the program snugly\")
  set(PC_LIBRARY -lsnug)
  configure_file(\"${PC_TEMPLATE}\" \"\${to}/snug.pc\" @ONLY)
  set(PC_NAME snug-static)
  set(PC_DESCRIPTION \"The same, linked into the program\")
  set(PC_LIBRARY \"-l:libsnug.a -pthread\")
  configure_file(\"${PC_TEMPLATE}\" \"\${to}/snug-static.pc\" @ONLY)")
