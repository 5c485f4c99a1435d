#include "runtime/transport/shaped_link.hpp"

#include <algorithm>
#include <cmath>

namespace cedar::transport {

namespace {

using namespace std::chrono_literals;
/// Linux's TCP_RTO_MIN.
constexpr std::chrono::nanoseconds timeout_margin_min = 200ms;

std::mt19937_64 generator_of(std::uint64_t seed, node_id self, node_id peer) {
  std::seed_seq parts{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                      self.value, peer.value};
  return std::mt19937_64(parts);
}

}  // namespace

std::chrono::nanoseconds retransmission_timeout(const link_shape& shape) {
  return 2 * shape.latency + shape.jitter + std::max(timeout_margin_min, shape.jitter);
}

shaped_link::shaped_link(const link_shape& shape, std::uint64_t seed, node_id self, node_id peer)
    : shape_(shape), random_(generator_of(seed, self, peer)) {}

double shaped_link::draw() {
  constexpr double scale = 0x1p-53;
  return static_cast<double>(random_() >> 11U) * scale;
}

/// All of a frame's packets arrive with at most n losses of each with probability
/// (1 - loss^(n + 1))^packets: so one draw tells how often the unluckiest is lost.
unsigned shaped_link::losses_of(std::uint64_t bytes) {
  const double luck = draw();
  const auto packets =
      static_cast<double>((std::max<std::uint64_t>(bytes, 1) + packet_bytes - 1) / packet_bytes);
  unsigned losses = 0;
  double lost = shape_.loss;
  while (losses < losses_in_a_row_max && std::pow(1 - lost, packets) <= luck) {
    ++losses;
    lost *= shape_.loss;
  }
  return losses;
}

shaped_link::passage shaped_link::take(time_point now, std::uint64_t bytes) {
  // Both are drawn for every frame, so that changing one leaves the other's draws alone.
  const auto jitter = std::chrono::duration_cast<std::chrono::nanoseconds>(shape_.jitter * draw());
  passage out;
  out.losses = losses_of(bytes);
  out.given_up = out.losses == losses_in_a_row_max;
  free_ = std::max(now, free_) + shape_.occupancy(bytes);
  // Timeouts of 1, 2, 4, ...
  const auto late = retransmission_timeout(shape_) * ((1U << out.losses) - 1);
  last_due_ = std::max(last_due_, free_ + shape_.latency + jitter + late);
  out.due = last_due_;
  return out;
}

void shaped_link::clear() {
  free_ = last_due_ = {};
}

}  // namespace cedar::transport
