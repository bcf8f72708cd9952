# What ANCHOR_LAYOUT is: see report/anchor.h. Alone, `cmake -DSOURCES=src -P layout.cmake` prints it.
#
# The first 32 bits of the SHA-256 of one line per header and table, `NAME SHA256`, in the order of
# their names. tool/build.rs computes the same.

function(compute_layout sources result)
  file(GLOB_RECURSE names RELATIVE ${sources} ${ARGN} ${sources}/*.h ${sources}/*.def)
  list(SORT names)
  set(lines "")
  foreach(name IN LISTS names)
    file(SHA256 ${sources}/${name} hash)
    string(APPEND lines "${name} ${hash}\n")
  endforeach()
  string(SHA256 hash "${lines}")
  string(SUBSTRING ${hash} 0 8 hash)
  set(${result} 0x${hash}u PARENT_SCOPE)
  set(${result}_FILES ${names} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  compute_layout(${SOURCES} layout)
  message(NOTICE ${layout})
endif()
