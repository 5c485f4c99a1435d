// Who compares the recordings of tests/data/golden, or why nobody does.
#pragma once

#include <string_view>
#include <vector>

namespace cedar::test {

/// Tensors of files, both as patterns in which * stands for anything.
struct recording {
  std::string_view files;  ///< below tests/data/golden, without ".safetensors"
  std::string_view tensors;
  std::string_view test;  ///< source that compares them; empty: nobody does
  /// What the source says where it reads them; without a source: why they are not compared.
  std::string_view why;
};

const std::vector<recording>& recordings();

}  // namespace cedar::test
