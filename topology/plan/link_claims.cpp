#include "topology/plan/link_claims.hpp"

#include <fmt/format.h>

namespace cedar::topology {

namespace {

using std::chrono::nanoseconds;

constexpr int factor = 2;
constexpr nanoseconds scheduling_floor = std::chrono::milliseconds(1);

/// Three digits, without an exponent.
std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

std::string ms_text(nanoseconds time) {
  return number(std::chrono::duration<double, std::milli>(time).count());
}

std::string mbit(double bytes_per_second) {
  return number(bytes_per_second * 8 / 1e6);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kib = 1024;
  constexpr std::uint64_t mib = kib * kib;
  if (bytes % mib == 0) return fmt::format("{} MiB", bytes / mib);
  if (bytes % kib == 0) return fmt::format("{} KiB", bytes / kib);
  return fmt::format("{} B", bytes);
}

/// Claims of both directions; of one that is not declared, the latency of the other.
struct claims {
  link_shape there;
  link_shape back;

  nanoseconds jitter() const { return there.jitter + back.jitter; }
  nanoseconds round_trip() const {
    return there.passage(link_probe_bytes) + back.passage(link_probe_bytes) + jitter();
  }
};

std::optional<claims> claims_of(const plan& planned, const measured_link& link) {
  const link_shape* there = planned.link(link.from, link.to);
  const link_shape* back = planned.link(link.to, link.from);
  if (there == nullptr && back == nullptr) return std::nullopt;
  const auto undeclared = [](const link_shape& other) {
    return link_shape{.latency = other.latency, .jitter = other.jitter};
  };
  return claims{there != nullptr ? *there : undeclared(*back),
                back != nullptr ? *back : undeclared(*there)};
}

bool too_narrow(const link_shape& claimed, std::uint64_t bytes, double rate, nanoseconds jitter,
                nanoseconds round_trip) {
  if (claimed.bytes_per_second <= 0 || claimed.loss > 0 || bytes == 0) return false;
  const std::chrono::duration<double> took(static_cast<double>(bytes) / rate);
  return took > factor * claimed.occupancy(bytes) + jitter + round_trip;
}

}  // namespace

std::string to_string(const plan& planned, const measured_link& link) {
  const link_measurement& found = link.found;
  std::string text = fmt::format("{} <-> {}: {}, round trip {} ms (least {})",
                                 planned[link.from].name, planned[link.to].name, found.transport,
                                 ms_text(found.round_trip), ms_text(found.round_trip_least));
  std::string_view before = ", Mbit/s there and back: ";
  for (const link_rate& rate : found.rates) {
    text += fmt::format("{}{} {} and {}", before, size_text(rate.bytes), mbit(rate.there),
                        mbit(rate.back));
    before = ", ";
  }
  return text;
}

std::optional<std::string> slower_than_claimed(const plan& planned, const measured_link& link) {
  const auto claimed = claims_of(planned, link);
  if (!claimed) return std::nullopt;
  const link_measurement& found = link.found;
  std::string text;
  if (found.round_trip_least > factor * claimed->round_trip() + scheduling_floor)
    text = fmt::format("round trip {} ms, claimed {} ms", ms_text(found.round_trip_least),
                       ms_text(claimed->round_trip()));
  const link_rate largest = found.rates.empty() ? link_rate{} : found.rates.back();
  const auto judge = [&](const link_shape& shape, double rate, node_id from, node_id to) {
    if (!too_narrow(shape, largest.bytes, rate, claimed->jitter(), found.round_trip_least)) return;
    text += fmt::format("{}{} -> {} {} Mbit/s (by {}), claimed {} Mbit/s", text.empty() ? "" : "; ",
                        planned[from].name, planned[to].name, mbit(rate), size_text(largest.bytes),
                        mbit(shape.bytes_per_second));
  };
  judge(claimed->there, largest.there, link.from, link.to);
  judge(claimed->back, largest.back, link.to, link.from);
  if (text.empty()) return std::nullopt;
  return fmt::format("the link {} <-> {} is slower than {} claims: {}", planned[link.from].name,
                     planned[link.to].name, planned.file(), text);
}

}  // namespace cedar::topology
