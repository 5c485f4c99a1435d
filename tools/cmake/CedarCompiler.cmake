# Flags that every component of cedar is compiled with (the interface target cedar_internal).
add_library(cedar_internal INTERFACE)
target_compile_features(cedar_internal INTERFACE cxx_std_20)
target_include_directories(cedar_internal INTERFACE ${CMAKE_SOURCE_DIR})
# Results are part of the contract (bits, not just values): no contraction that the source does not
# spell as std::fma, no reassociation.
target_compile_options(cedar_internal INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -ffp-contract=off -fno-math-errno)
# GCC 12 warns of overlapping copies in every `"text" + std::string` (GCC bug 105651).
target_compile_options(cedar_internal INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(CMAKE_UNITY_BUILD)
  # Joined files are headers to the compiler, and names of their own in headers suspect.
  target_compile_options(cedar_internal INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(CEDAR_WERROR)
  target_compile_options(cedar_internal INTERFACE -Werror)
endif()
if(CEDAR_SANITIZE)
  # A target with the property CEDAR_UNSANITIZED is compiled with the very flags of a release (and linked with
  # the sanitizer), so that the compiler cache has it when a release was built before.
  function(cedar_sanitizer_options)
    target_compile_options(cedar_internal INTERFACE
      "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CEDAR_UNSANITIZED>>>:${ARGN}>")
  endfunction()
  # Without warnings: a release judges them, and files that are joined to one have more of them.
  cedar_sanitizer_options(
    -O1 -g1 -UNDEBUG -w -fno-omit-frame-pointer -fsanitize=${CEDAR_SANITIZE} -fno-sanitize-recover=all)
  if(CEDAR_SANITIZE MATCHES undefined)
    # CAF's headers bind null references; tools/sanitizers/undefined.supp names them, and suppressions need
    # a check that may return. UBSAN_OPTIONS=halt_on_error=1 (in the test presets) stops at all others.
    cedar_sanitizer_options(-fsanitize-recover=null)
  endif()
  target_link_options(cedar_internal INTERFACE -fsanitize=${CEDAR_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Without the sloppiness it would not keep what is compiled with a precompiled header; the base makes paths
  # relative, and so build folders alike.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
    ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
