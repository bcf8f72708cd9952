# Functions to build a black-box test program once and run it in several ways. Included by the
# directories that need it: what is known by directory is said each time, targets are made once.

set(SNUG_SUPPORT_DIR "${CMAKE_CURRENT_LIST_DIR}")
include("${SNUG_SUPPORT_DIR}/objects.cmake")
find_package(Threads REQUIRED)
find_package(Python3 COMPONENTS Interpreter)

# -fno-builtin: malloc and free pairs must not be optimised away. Frame pointers and sanitizers are
# the preset's matter.
set(SNUG_TEST_OPTIONS -Wall -Wextra -Werror -fno-builtin -g)
# clang before 19 has sized delete only on request.
set(SNUG_TEST_CXX_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-std=c++17>
                          $<$<COMPILE_LANGUAGE:CXX>:-fsized-deallocation>)

if(NOT TARGET snug_test_check)
    add_library(snug_test_check STATIC "${SNUG_SUPPORT_DIR}/check.c")
    target_compile_features(snug_test_check PUBLIC c_std_17)
    target_compile_definitions(snug_test_check PUBLIC _GNU_SOURCE)
    target_compile_options(snug_test_check PUBLIC ${SNUG_TEST_OPTIONS})
    target_include_directories(snug_test_check PUBLIC "${SNUG_SUPPORT_DIR}" "${PROJECT_SOURCE_DIR}/include")
    set_target_properties(snug_test_check PROPERTIES POSITION_INDEPENDENT_CODE ON)

    add_library(snug_planted MODULE "${SNUG_SUPPORT_DIR}/planted.c")
    target_compile_features(snug_planted PRIVATE c_std_17)
    target_compile_definitions(snug_planted PRIVATE _GNU_SOURCE)
    target_compile_options(snug_planted PRIVATE ${SNUG_TEST_OPTIONS})
    target_link_libraries(snug_planted PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(snug_planted PROPERTIES C_EXTENSIONS ON)
endif()

# A program for the tests: snug_test_program(TARGET SOURCE... [LINK LIBRARY...]). It is linked with
# no malloc of its own unless LINK says so.
function(snug_test_program target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
    add_executable(${target} ${arg_UNPARSED_ARGUMENTS})
    target_compile_features(${target} PRIVATE c_std_17)
    target_compile_options(${target} PRIVATE ${SNUG_TEST_CXX_OPTIONS})
    target_link_libraries(${target} PRIVATE snug_test_check Threads::Threads ${CMAKE_DL_LIBS}
                                            ${arg_LINK})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# The same of one source, which several programs have: snug_shared_program(TARGET SOURCE [LIBRARY...])
function(snug_shared_program target source)
    snug_test_objects(objects test ${source} LINK snug_test_check Threads::Threads
                      OPTIONS ${SNUG_TEST_CXX_OPTIONS})
    snug_test_program(${target} LINK ${objects} ${ARGN})
    set(language C)
    if(source MATCHES "\\.cpp$")
        set(language CXX)
    endif()
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE ${language})
endfunction()

# Registers a command as a test with snug preloaded; SNUG_TEST_EXPECT makes the program see to it
# that snug is its malloc: snug_preload_test(NAME TIMEOUT COMMAND...).
function(snug_preload_test name timeout)
    add_test(NAME ${name}
             COMMAND env "LD_PRELOAD=$<TARGET_FILE:snug_shared>" SNUG_TEST_EXPECT=1 ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

# Registers a planted fault that must be found: snug_planted_test(NAME FAULT TEXT COMMAND...).
function(snug_planted_test name fault text)
    add_test(NAME ${name}.planted.${fault}
             COMMAND "${SNUG_SUPPORT_DIR}/must_fail.sh" "${text}" env
                     "LD_PRELOAD=$<TARGET_FILE:snug_planted>" "PLANTED=${fault}" ${ARGN})
    set_tests_properties(${name}.planted.${fault} PROPERTIES TIMEOUT 120)
endfunction()

# Builds one test program in all the ways a program can get snug, and registers each of them:
#   NAME.preload  NAME.shared  NAME.static  NAME.full_static
# snug_test_all_ways(NAME TIMEOUT SOURCE)
function(snug_test_all_ways name timeout source)
    string(REPLACE "." "_" target ${name})
    snug_shared_program(${target} ${source})
    snug_preload_test(${name}.preload ${timeout} $<TARGET_FILE:${target}>)

    snug_shared_program(${target}_shared ${source} snug_shared)
    snug_shared_program(${target}_static ${source} snug_static)
    snug_shared_program(${target}_full_static ${source} snug_static)
    target_link_options(${target}_full_static PRIVATE -static)

    # check.c knows these by weak names, for which no linker would fetch anything.
    target_link_options(${target}_shared PRIVATE LINKER:--no-as-needed)
    foreach(way static full_static)
        target_link_options(${target}_${way} PRIVATE
                            LINKER:-u,snug_check,-u,snug_version,-u,snug_free)
    endforeach()
    foreach(way shared static full_static)
        add_test(NAME ${name}.${way} COMMAND ${target}_${way})
        set_tests_properties(${name}.${way} PROPERTIES ENVIRONMENT SNUG_TEST_EXPECT=1
                             TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
    endforeach()
endfunction()
