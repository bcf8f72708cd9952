# Installs the tool SNUG_TOOL, and what it writes: its manual and what shells complete. Part of
# `cmake --install`, and looked at only then: the tool may be built after the library.
if(NOT EXISTS "${SNUG_TOOL}")
  message(STATUS "The tool is not installed: there is no ${SNUG_TOOL}")
  return()
endif()

# What is written must be that tool's; another directory each time would stay behind.
file(REMOVE_RECURSE "${written}")
file(MAKE_DIRECTORY "${written}")

function(write_by_tool)
  execute_process(COMMAND "${SNUG_TOOL}" ${ARGN} RESULT_VARIABLE status ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "snug ${command} failed (${status}): ${said}")
  endif()
endfunction()

function(install_completions shell directory name)
  write_by_tool(completions ${shell} OUTPUT_FILE "${written}/${name}")
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${datadir}/${directory}" TYPE FILE
       FILES "${written}/${name}")
endfunction()

file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${bindir}" TYPE PROGRAM RENAME snug FILES "${SNUG_TOOL}")
write_by_tool(man --to "${written}/man")
foreach(section 1 3 7)
  file(GLOB pages "${written}/man/man${section}/*")
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${mandir}/man${section}" TYPE FILE FILES ${pages})
endforeach()
install_completions(bash bash-completion/completions snug)
install_completions(zsh zsh/site-functions _snug)
install_completions(fish fish/vendor_completions.d snug.fish)
if(EXISTS "${SNUG_LICENCES}")
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${docdir}" TYPE FILE FILES "${SNUG_LICENCES}")
endif()
