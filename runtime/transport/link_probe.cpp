#include "runtime/transport/link_probe.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cedar::transport {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// How often an exchange is repeated.
struct repetitions {
  std::size_t least;  ///< unless they take longer than time_max
  std::size_t most;  ///< unless they take longer than patience
};
constexpr repetitions of_round_trips{3, 9};
constexpr repetitions of_sizes{2, 5};

constexpr nanoseconds patience = 100ms;
constexpr nanoseconds time_max = 1s;
/// Less is noise of the clock.
constexpr nanoseconds passage_min = 1us;
/// Round trips vary: a rate is told no closer than this part of one allows.
constexpr int round_trip_parts = 16;

/// 1 kbit/s takes 8 s.
constexpr std::size_t size_first = 1024;
constexpr std::size_t size_growth = 32;

/// At least one time, ascending.
result<std::vector<nanoseconds>> repeat(const probe_exchange& exchange, std::size_t there,
                                        std::size_t back, repetitions wanted) {
  std::vector<nanoseconds> times;
  nanoseconds spent{0};
  while (times.size() < wanted.most &&
         spent < (times.size() < wanted.least ? time_max : patience)) {
    const result<nanoseconds> took = exchange(there, back);
    if (!took) return fail(took.error());
    times.push_back(*took);
    spent += *took;
  }
  std::ranges::sort(times);
  return times;
}

/// That frames of `there` or `back` bytes take longer than few bytes do.
result<nanoseconds> passage(const probe_exchange& exchange, std::size_t there, std::size_t back,
                            nanoseconds round_trip) {
  const auto times = repeat(exchange, there, back, of_sizes);
  if (!times) return fail(times.error());
  return std::max(times->front() - round_trip, passage_min);
}

/// The largest that takes no longer than `patience`, if `size` takes `passed`; `size` if none does.
std::size_t size_after(std::size_t size, nanoseconds passed) {
  std::size_t next = std::min(size * size_growth, probe_bytes_max);
  while (next > size && passed * (next / size) > patience) next /= 2;
  return next;
}

double rate_of(std::size_t bytes, nanoseconds passed, nanoseconds round_trip) {
  const std::chrono::duration<double> told = std::max(passed, round_trip / round_trip_parts);
  return static_cast<double>(bytes) / told.count();
}

}  // namespace

result<link_measurement> probe_link(const probe_exchange& exchange) {
  const auto times = repeat(exchange, link_probe_bytes, link_probe_bytes, of_round_trips);
  if (!times) return fail(times.error());
  link_measurement out;
  out.round_trip = (*times)[times->size() / 2];
  out.round_trip_least = times->front();
  for (std::size_t size = size_first, last = 0; size > last;) {
    const auto there = passage(exchange, size, link_probe_bytes, out.round_trip_least);
    if (!there) return fail(there.error());
    const auto back = passage(exchange, link_probe_bytes, size, out.round_trip_least);
    if (!back) return fail(back.error());
    out.rates.push_back({size, rate_of(size, *there, out.round_trip_least),
                         rate_of(size, *back, out.round_trip_least)});
    last = std::exchange(size, size_after(size, std::max(*there, *back)));
  }
  return out;
}

}  // namespace cedar::transport
