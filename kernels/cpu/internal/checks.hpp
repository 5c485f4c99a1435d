// Defects that vector code can meet. Out of line, because vector code is compiled for x86-64-v3:
// the inline parts of std::string must not be compiled there, where the linker could pick them for
// the whole program and an older machine could not even start it.
#pragma once

#include <cstddef>

namespace cedar::kernels::cpu {

/// Throws: a row of a format with whole blocks of 32 was given `count` elements more.
[[noreturn]] void refuse_partial_block(std::size_t count);

/// Throws if a product has no columns.
void require_columns(std::size_t columns);

}  // namespace cedar::kernels::cpu
