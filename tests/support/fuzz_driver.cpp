#include "tests/support/fuzz_driver.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace cedar::test {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): good enough for choices, and the same on every machine.
class choices {
 public:
  choices(std::uint64_t seed, std::uint64_t run) : state_(seed * 0x9e3779b97f4a7c15U ^ run) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// [0, bound), 0 if bound is 0.
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : next() % bound; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t state_;
};

constexpr std::size_t input_bytes_max = 1U << 16;

/// Replaces one decimal number of the text (if there is one) by one at a limit.
void replace_number(std::string& input, choices& random) {
  constexpr std::array<std::string_view, 14> limits{"0",
                                                    "1",
                                                    "-1",
                                                    "255",
                                                    "2147483647",
                                                    "4294967295",
                                                    "4294967296",
                                                    "9223372036854775807",
                                                    "0.5",
                                                    "1e999",
                                                    "18446744073709551615",
                                                    "18446744073709551616",
                                                    "-0",
                                                    "32"};
  const std::size_t start = random.below(input.size());
  const std::size_t digit = input.find_first_of("0123456789", start);
  if (digit == std::string::npos) return;
  std::size_t end = input.find_first_not_of("0123456789", digit);
  if (end == std::string::npos) end = input.size();
  input.replace(digit, end - digit, random.one_of(limits));
}

void mutate_once(std::string& input, const fuzz_material& material, choices& random) {
  const std::size_t at = random.below(input.size() + 1);
  const std::size_t length = random.below(std::min<std::size_t>(input.size() - at, 64) + 1);
  switch (random.below(9)) {
    case 0:  // flip a bit
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1:  // any byte
      if (at < input.size()) input[at] = static_cast<char>(random.next());
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(at, input.substr(at, length));
      break;
    case 4:
      input.insert(at, 1 + random.below(8), static_cast<char>(random.next()));
      break;
    case 5:
      input.resize(at);
      break;
    case 6:
      if (!material.words.empty()) input.insert(at, random.one_of(material.words));
      break;
    case 7: {  // the end of another seed
      const std::string& other = random.one_of(material.seeds);
      input = input.substr(0, at) + other.substr(random.below(other.size() + 1));
      break;
    }
    default:
      replace_number(input, random);
      break;
  }
  if (input.size() > input_bytes_max) input.resize(input_bytes_max);
}

std::string make_input(const fuzz_material& material, std::uint64_t seed, std::uint64_t run) {
  if (run < material.seeds.size()) return material.seeds[run];
  choices random(seed, run);
  std::string input = random.one_of(material.seeds);
  // Mostly few changes, so that inputs get past the first check.
  const std::size_t changes = 1 + random.below(random.below(4) == 0 ? 16 : 3);
  for (std::size_t i = 0; i < changes; ++i) mutate_once(input, material, random);
  return input;
}

// For the signal handler only: how to run the input in progress again.
std::array<char, 128> hint{};

extern "C" void report_signal(int number) {
  std::signal(number, SIG_DFL);
  static_cast<void>(!::write(STDERR_FILENO, hint.data(), std::string_view(hint.data()).size()));
  std::raise(number);
}

void run_one(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

/// In the order of their names, so that a run is the same everywhere.
void add_corpus(const std::string& folder, std::vector<std::string>& seeds) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) seeds.push_back(bytes_of(file));
}

int write_seeds(const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const std::string& seed : fuzz_corpus().seeds) {
    std::ofstream out(std::filesystem::path(folder) / ("seed" + std::to_string(number++)),
                      std::ios::binary);
    if (!out.write(seed.data(), static_cast<std::streamsize>(seed.size())))
      return std::fprintf(stderr, "cannot write to %s\n", folder.c_str()), EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

int run_mutations(const std::string& corpus, std::uint64_t seed, std::uint64_t first,
                  std::uint64_t runs) {
  fuzz_material material = fuzz_corpus();
  if (!corpus.empty()) add_corpus(corpus, material.seeds);
  if (material.seeds.empty()) return std::fputs("no seeds\n", stderr), EXIT_FAILURE;
  std::printf("seed %llu, mutations %llu to %llu\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + runs));
  std::fflush(stdout);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM})
    std::signal(number, report_signal);
  for (std::uint64_t run = first; run < first + runs; ++run) {
    std::snprintf(hint.data(), hint.size(),
                  "failed: run again with --seed %llu --first %llu --runs 1\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run));
    run_one(make_input(material, seed, run));
  }
  return EXIT_SUCCESS;
}

int run_arguments(int count, char** arguments) {
  std::uint64_t seed = 1, first = 0, runs = 20000;
  std::string corpus;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--write-seeds" && i + 1 < count) return write_seeds(arguments[i + 1]);
    if (name == "--corpus" && i + 1 < count) {
      corpus = arguments[++i];
      continue;
    }
    std::uint64_t* number = name == "--seed"    ? &seed
                            : name == "--first" ? &first
                            : name == "--runs"  ? &runs
                                                : nullptr;
    if (number == nullptr)
      files.emplace_back(name);
    else if (i + 1 < count)
      *number = std::strtoull(arguments[++i], nullptr, 10);
  }
  for (const std::string& file : files) run_one(bytes_of(file));
  return files.empty() ? run_mutations(corpus, seed, first, runs) : EXIT_SUCCESS;
}

}  // namespace
}  // namespace cedar::test

int main(int count, char** arguments) {
  try {
    return cedar::test::run_arguments(count, arguments);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n%s", problem.what(), cedar::test::hint.data());
    return EXIT_FAILURE;
  }
}
