# cedar_add_component(<name> [DEPENDS PUBLIC <targets...> PRIVATE <targets...>] SOURCES <files...>)
#   One static library cedar_<name>, alias cedar::<name>, for one folder. Sources are explicit.
#   Headers are included by their full path from the repository root.
#   Without SOURCES the component is header-only.
function(cedar_add_component name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;SOURCES" ${ARGN})
  if(ARG_SOURCES)
    add_library(cedar_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(cedar_${name} PUBLIC ${ARG_PUBLIC} PRIVATE cedar_internal ${ARG_PRIVATE})
    target_include_directories(cedar_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
    target_compile_features(cedar_${name} PUBLIC cxx_std_20)
  else()
    add_library(cedar_${name} INTERFACE)
    target_link_libraries(cedar_${name} INTERFACE ${ARG_PUBLIC})
    target_include_directories(cedar_${name} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  endif()
  add_library(cedar::${name} ALIAS cedar_${name})
endfunction()

# cedar_add_test(<name> LABEL <unit|numeric|golden|sim|integration|architecture|fuzz>
#                SOURCES <files...> DEPENDS <targets...> [TIMEOUT <seconds>] [PRECOMPILE <headers...>]
#                [CASES <patterns...>])
#   One Boost.Test program, registered with ctest under <label>.<name>. Test data is found through
#   the compile definition CEDAR_TEST_DATA (the folder tests/data of the source tree). Tests share one
#   precompiled header (tests/support) unless PRECOMPILE names their own. CASES are those of Boost.Test that
#   it runs, all unless told.
function(cedar_add_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS;PRECOMPILE;CASES" ${ARGN})
  set(target test_${ARG_LABEL}_${name})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE cedar_internal cedar::test_support ${ARG_DEPENDS})
  # Test code runs once and is mostly Boost.Test's templates: optimising it costs minutes of build, and what is
  # judged is the code under test, which stays optimised. For the same reason the address sanitizer leaves it out;
  # the thread sanitizer must see all code.
  target_compile_options(${target} PRIVATE -O0)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # so that all presets compile the same files
  list(TRANSFORM ARG_CASES PREPEND "--run_test=" OUTPUT_VARIABLE cases)
  if(CEDAR_SANITIZE MATCHES address)
    set_target_properties(${target} PROPERTIES CEDAR_UNSANITIZED ON)
    # Cases labelled `values` are long, judge values, and run no code that other cases do not.
    list(APPEND cases --run_test=!@values)
  endif()
  if(ARG_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <boost/test/unit_test.hpp> ${ARG_PRECOMPILE})
  else()
    target_precompile_headers(${target} REUSE_FROM test_headers)
  endif()
  add_test(NAME ${ARG_LABEL}.${name} COMMAND ${target} --log_level=test_suite --color_output=no ${cases})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)  # a guard against hangs: sanitizers take thirty times as long
  endif()
  set_tests_properties(${ARG_LABEL}.${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  # What is long begins first, so that the rest fills the other cores. Integration tests start processes and watch
  # deadlines: one at a time, beside others that use a core each.
  if(ARG_LABEL STREQUAL integration)
    set_tests_properties(${ARG_LABEL}.${name} PROPERTIES RESOURCE_LOCK processes COST 1000)
  elseif(ARG_LABEL MATCHES "^(sim|golden)$")
    set_tests_properties(${ARG_LABEL}.${name} PROPERTIES COST 100)
  endif()
endfunction()

# cedar_add_fuzz(<name> SOURCES <files...> DEPENDS <targets...> [RUNS <count>])
#   One fuzz target (tests/support/fuzz_driver.hpp), registered with ctest as fuzz.<name> for a bounded
#   number of mutations (20000 unless told), from its own seeds and the files of tests/fuzz/corpus/<name>, if
#   there are any. With clang and CEDAR_SANITIZE=fuzzer-no-link,address it is
#   a libFuzzer program instead of one with our driver.
function(cedar_add_fuzz name)
  cmake_parse_arguments(ARG "" "RUNS" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_RUNS)
    set(ARG_RUNS 20000)
  endif()
  set(target fuzz_${name})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE cedar_internal ${ARG_DEPENDS})
  target_compile_definitions(${target} PRIVATE
    CEDAR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data" CEDAR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(NOT EXISTS ${corpus})
    unset(corpus)
  endif()
  if(CEDAR_SANITIZE MATCHES "fuzzer")
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    # libFuzzer writes to the first folder that it is given.
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/corpus/${target})
    add_test(NAME fuzz.${name}
      COMMAND ${target} -seed=1 -runs=${ARG_RUNS} ${CMAKE_BINARY_DIR}/corpus/${target} ${corpus})
  else()
    target_link_libraries(${target} PRIVATE cedar::fuzz_driver)
    add_test(NAME fuzz.${name}
      COMMAND ${target} $<$<BOOL:${corpus}>:--corpus> ${corpus} --seed 1 --runs ${ARG_RUNS}
      COMMAND_EXPAND_LISTS)
  endif()
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endfunction()
