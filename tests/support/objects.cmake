# Sources that several test programs share are compiled once. Included by the directories that need it.

# Compiles each source once for each KIND, of which the settings must be the same everywhere, and
# leaves the libraries in OUT; LINK is what they are compiled against:
# snug_test_objects(OUT KIND SOURCE... [LINK LIBRARY...] [OPTIONS OPTION...])
function(snug_test_objects out kind)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LINK;OPTIONS")
  set(objects)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(source ${source} ABSOLUTE)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/tests ${source})
    string(MAKE_C_IDENTIFIER "${kind}_${name}" name)
    if(NOT TARGET ${name})
      add_library(${name} OBJECT ${source})
      target_link_libraries(${name} PRIVATE ${arg_LINK})
      target_compile_options(${name} PRIVATE ${arg_OPTIONS})
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    list(APPEND objects ${name})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
