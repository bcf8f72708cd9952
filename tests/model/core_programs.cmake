# Programs that contain the allocator's objects, and their tests; for the model and the stress tests.

set(SNUG_MODEL_DIR "${CMAKE_CURRENT_LIST_DIR}")
include("${SNUG_MODEL_DIR}/../support/objects.cmake")
if(NOT TARGET snug_model_settings)
  add_library(snug_model_settings INTERFACE)
  target_link_libraries(snug_model_settings INTERFACE snug_settings Threads::Threads)
  target_include_directories(snug_model_settings INTERFACE ${SNUG_MODEL_DIR} ${PROJECT_SOURCE_DIR}/tests/support)
endif()

# The functions that planted.c replaces.
set(SNUG_PLANTED_FUNCTIONS snug_malloc snug_calloc snug_realloc snug_aligned_alloc snug_free
                           snug_free_sized snug_free_aligned_sized cache_free heap_fork_in_child
                           arenas_end_orphans cache_end_orphan magazine_above object_waits os_pagemap_resident)

# The limit of a test in seconds; a full run has hours.
function(snug_core_limit name seconds)
  if(SNUG_TEST_FULL)
    set(seconds 14400)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
endfunction()

# A program on the allocator's objects, and NAME_planted, the same with the wrong functions of
# planted.c: snug_core_program(NAME SOURCE...)
function(snug_core_program name)
  snug_test_objects(objects core ${ARGN} ${SNUG_MODEL_DIR}/expect.c ${SNUG_MODEL_DIR}/random.c
                    LINK snug_model_settings)
  snug_test_objects(planted core ${SNUG_MODEL_DIR}/planted.c LINK snug_model_settings)
  snug_both_programs(${name} ${objects} ${planted})
endfunction()

# The program of the objects, and the one with the last of them, which has the wrong functions:
# snug_both_programs(NAME OBJECTS... PLANTED)
function(snug_both_programs name)
  set(objects ${ARGN})
  list(POP_BACK objects planted)
  add_executable(${name})
  add_executable(${name}_planted)
  target_link_libraries(${name} PRIVATE ${objects} snug_core)
  target_link_libraries(${name}_planted PRIVATE ${objects} ${planted} snug_core)
  list(TRANSFORM SNUG_PLANTED_FUNCTIONS PREPEND "LINKER:--wrap=" OUTPUT_VARIABLE wraps)
  target_link_options(${name}_planted PRIVATE ${wraps})
  set_target_properties(${name} ${name}_planted PROPERTIES LINKER_LANGUAGE C)
endfunction()

# The same program on a heap of its own, see heap_face.h, and a test for each place that the heap can
# have its memory from: snug_heap_program(NAME TEST SOURCE... [HEAPS HEAP...] [ARGUMENTS ARGUMENT...])
# Of the planted faults, NAME_heap_planted has those that are not in functions of heap_face.h, and
# those of heap_face.c.
function(snug_heap_program name test)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "HEAPS;ARGUMENTS")
  snug_test_objects(objects heap ${arg_UNPARSED_ARGUMENTS} ${SNUG_MODEL_DIR}/expect.c ${SNUG_MODEL_DIR}/random.c
                    ${SNUG_MODEL_DIR}/heap_face.c
                    LINK snug_model_settings OPTIONS -include ${SNUG_MODEL_DIR}/heap_face.h)
  snug_test_objects(planted core ${SNUG_MODEL_DIR}/planted.c LINK snug_model_settings)
  snug_both_programs(${name}_heap ${objects} ${planted})
  foreach(heap ${arg_HEAPS})
    add_test(NAME ${test}.heap.${heap} COMMAND ${name}_heap ${arg_ARGUMENTS})
    set_tests_properties(${test}.heap.${heap} PROPERTIES ENVIRONMENT SNUG_TEST_HEAP=${heap})
    snug_core_limit(${test}.heap.${heap} 240)
  endforeach()
endfunction()

# The test itself has to notice, not ThreadSanitizer before it.
set(SNUG_PLANTED_ENVIRONMENT TSAN_OPTIONS=report_bugs=0)

# Registers PROGRAM_planted with a fault that it must find, in the words of the regular expression:
# snug_planted_core_test(NAME FAULT TEXT PROGRAM [ARGUMENT...])
function(snug_planted_core_test name fault text program)
  add_test(NAME ${name}.planted.${fault}
           COMMAND ${SNUG_MODEL_DIR}/../support/must_fail.sh "${text}"
                   $<TARGET_FILE:${program}_planted> ${ARGN})
  set_tests_properties(${name}.planted.${fault} PROPERTIES TIMEOUT 120
                       ENVIRONMENT "PLANTED=${fault};${SNUG_PLANTED_ENVIRONMENT}")
  if(name MATCHES "^stress")
    set_property(TEST ${name}.planted.${fault} APPEND PROPERTY ENVIRONMENT MUST_FAIL_TRIES=5)
  endif()
endfunction()

# The same on a heap: snug_planted_heap_test(NAME HEAP FAULT TEXT PROGRAM [ARGUMENT...])
function(snug_planted_heap_test name heap fault text program)
  snug_planted_core_test(${name}.heap.${heap} ${fault} "${text}" ${program}_heap ${ARGN})
  set_property(TEST ${name}.heap.${heap}.planted.${fault} APPEND PROPERTY ENVIRONMENT SNUG_TEST_HEAP=${heap})
endfunction()
