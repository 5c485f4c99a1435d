// What a load came to, counted while it runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/cedar/load_answer.hpp"
#include "tools/cedar/load_statistics.hpp"

namespace cedar::tools {

/// Resident memory of a server's processes over a load; bytes.
struct memory_report {
  std::uint32_t processes = 0;
  /// In equal steps from when the load began (after the answers of --verify, if any) to its end.
  std::vector<std::uint64_t> bytes;

  std::uint64_t begin() const { return bytes.empty() ? 0 : bytes.front(); }
  /// After a tenth of the time: buffers have their size then, weights that are used are mapped.
  std::uint64_t warm() const { return bytes.empty() ? 0 : bytes[bytes.size() / 10]; }
  std::uint64_t end() const { return bytes.empty() ? 0 : bytes.back(); }
  std::uint64_t max() const { return bytes.empty() ? 0 : *std::ranges::max_element(bytes); }
  /// From warm() to end().
  double growth_percent() const;
};

/// How answers compare with those of the same requests alone.
struct verify_report {
  std::uint64_t prompts = 0;
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
};

class load_report {
 public:
  void add(const load_answer& answer);

  std::string server;  ///< "http://127.0.0.1:8080 (cedar-tiny)"
  std::string shape;  ///< "closed loop, 32 at once"
  std::chrono::steady_clock::duration took{0};
  /// That the server was told to end each answer after; none: it was not told.
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<verify_report> verified;
  std::optional<memory_report> memory;
  /// Gauges of the server that are not zero when the load is over, though nobody asks any more.
  std::map<std::string, double> left_over;
  bool is_left_over_known = false;

  std::string text() const;
  nlohmann::ordered_json json() const;
  /// Why the load failed; empty: every request ended in time, whole, refused with 429 or 503, or
  /// expired; one at least was whole, no answer differed, nothing is left.
  std::string problem() const;

 private:
  double seconds() const;
  std::string latest_text() const;
  std::uint64_t of_status(unsigned status) const;

  std::uint64_t requests_ = 0;
  std::map<unsigned, std::uint64_t> statuses_;  ///< 200: whole answers only
  std::uint64_t expired_ = 0;  ///< streams that had begun
  std::uint64_t late_ = 0;
  std::uint64_t failed_ = 0;  ///< late ones not among them
  std::map<std::string, std::uint64_t> failures_;  ///< by text; some
  std::map<std::string, std::uint64_t> finish_reasons_;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t tokens_ = 0;
  std::vector<double> first_ms_;
  std::vector<double> between_ms_;
  std::vector<double> total_ms_;
  std::vector<double> refused_ms_;
  double latest_ms_ = 0;  ///< of all that ended, from sending on
};

}  // namespace cedar::tools
