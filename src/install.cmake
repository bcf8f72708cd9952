# What `cmake --install` puts where. Three components, which distributions make packages of:
#
#   library      libsnug.so.0
#   development  headers, libsnug.so, libsnug.a, and what CMake and pkg-config need to find them
#   tool         snug, if it was built (SNUG_TOOL), with its manual, completions and licences
#
# Nothing that is installed knows the prefix, so a tree that was staged can be moved; only gdb's
# script stands where gdb looks for it, and that depends on the prefix.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(SNUG_TOOL ${PROJECT_SOURCE_DIR}/build/bin/snug CACHE FILEPATH "The built tool, to be installed too")
set(SNUG_LICENCES ${PROJECT_SOURCE_DIR}/build/share/licences.txt CACHE FILEPATH
    "The licences of what is built into the tool, to be installed with it")

install(TARGETS snug_shared snug_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/snug DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)

# ---- CMake and pkg-config ----

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/snug)
configure_package_config_file(snugConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/snugConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/snugConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/snugConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/snugConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# From lib/pkgconfig, or lib/MACHINE/pkgconfig, up to the prefix.
string(REGEX REPLACE "[^/]+" ".." PC_UP ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
function(install_pc PC_NAME PC_DESCRIPTION PC_LIBRARY)
  configure_file(snug.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${PC_NAME}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${PC_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT development)
endfunction()
install_pc(snug "A malloc that fits the program snugly" -lsnug)
install_pc(snug-static "The same, linked into the program" "-l:libsnug.a -pthread -Wl,--eh-frame-hdr -Wl,-z,nodelete")

# ---- gdb ----

# Under /usr, gdb has a directory for scripts, by the library's path, and trusts it. Elsewhere it looks
# beside the library, and says which line lets it load what it finds there.
install(CODE "
  set(libdir \"${CMAKE_INSTALL_LIBDIR}\")
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(to \"\${CMAKE_INSTALL_PREFIX}/share/gdb/auto-load/usr/\${libdir}\")
  else()
    set(to \"\${CMAKE_INSTALL_PREFIX}/\${libdir}\")
  endif()
  file(INSTALL DESTINATION \"\${to}\" TYPE FILE RENAME libsnug.so.${PROJECT_VERSION}-gdb.py
       FILES \"${PROJECT_SOURCE_DIR}/scripts/snug-gdb.py\")" COMPONENT library)

# ---- The tool ----

# It writes its manual and completions itself.
install(CODE "
  set(SNUG_TOOL \"${SNUG_TOOL}\")
  set(SNUG_LICENCES \"${SNUG_LICENCES}\")
  set(written \"${CMAKE_CURRENT_BINARY_DIR}/written\")
  set(bindir \"${CMAKE_INSTALL_BINDIR}\")
  set(mandir \"${CMAKE_INSTALL_MANDIR}\")
  set(datadir \"${CMAKE_INSTALL_DATADIR}\")
  set(docdir \"${CMAKE_INSTALL_DOCDIR}\")
  include(\"${CMAKE_CURRENT_SOURCE_DIR}/install_tool.cmake\")" COMPONENT tool)
