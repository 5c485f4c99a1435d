// Allocations of this program, counted: malloc and its family, and with them operator new.
#pragma once

#include <cstdint>

namespace cedar::test {

/// Allocations of all threads since the program started.
std::uint64_t allocations() noexcept;

}  // namespace cedar::test
