// Fuzz targets that every compiler can run for a bounded time.
//
// A target is one file with LLVMFuzzerTestOneInput() and fuzz_corpus(). Built as usual it gets a
// main of ours (fuzz_driver.cpp) that mutates the corpus a fixed number of times; built by clang
// with CEDAR_SANITIZE=fuzzer-no-link,... the same file is a libFuzzer target.
//
// Input i depends on the seed and on i alone, so that a failing one is run again by itself:
//   fuzz_NAME [--corpus FOLDER] [--seed S] [--runs N] [--first I]     mutations [I, I + N)
//   fuzz_NAME FILE...                               these inputs as they are
//   fuzz_NAME --write-seeds FOLDER                  its seeds as files, for libFuzzer to start from
// FOLDER has more inputs to start from, one a file: what libFuzzer found worth keeping.
// A target reports a wrong result by throwing (CEDAR_ASSERT); what it refuses, it refuses silently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cedar::test {

struct fuzz_material {
  std::vector<std::string> seeds;  ///< inputs to start from, at least one; themselves run first
  std::vector<std::string> words;  ///< pieces of the format to insert, may be empty
};

/// Defined by each target.
fuzz_material fuzz_corpus();

}  // namespace cedar::test
