#include "kernels/cuda/emulation/shadow.hpp"

#include "kernels/cuda/device/launch_shape.hpp"

namespace cedar::kernels::cuda::emulation {

namespace {

bool same_warp(unsigned a, unsigned b) {
  return a / warp_threads == b / warp_threads;
}

}  // namespace

void shared_shadow::begin_block(std::size_t bytes) {
  block_began_ = ++now_;
  if (bytes_.size() < bytes) bytes_.resize(bytes);
}

access_verdict shared_shadow::read(std::size_t first, std::size_t bytes, actor by) {
  for (std::size_t i = first; i < first + bytes; ++i) {
    byte_state& state = bytes_[i];
    if (state.in_flight) return {access_problem::copy_in_flight, i, state.writer};
    if (state.written < block_began_) return {access_problem::uninitialised, i, by.thread};
    const bool ordered =
        state.written != now_ || state.writer == by.thread ||
        (same_warp(state.writer, by.thread) && state.written_at < by.warp_barriers);
    if (!ordered) return {access_problem::read_after_write, i, state.writer};
    note_read(state, by);
  }
  return {};
}

void shared_shadow::note_read(byte_state& state, actor by) const {
  const bool first = state.read != now_;
  if (first) {
    state.read_by = readers::one_thread;
  } else if (state.read_by == readers::several_warps || !same_warp(state.reader, by.thread)) {
    state.read_by = readers::several_warps;
  } else if (state.read_at < by.warp_barriers) {
    // What the warp read before its latest barrier is ordered before all that it does from here on.
    state.read_by = readers::one_thread;
  } else if (state.reader != by.thread) {
    state.read_by = readers::one_warp;
  }
  state.read = now_;
  state.read_at = by.warp_barriers;
  state.reader = static_cast<std::uint16_t>(by.thread);
}

access_problem shared_shadow::judge_write(const byte_state& state, actor by,
                                          unsigned& other) const {
  other = state.writer;
  if (state.in_flight) return access_problem::copy_in_flight;
  const auto ordered_in_warp = [&](unsigned thread, std::uint32_t at) {
    return same_warp(thread, by.thread) && at < by.warp_barriers;
  };
  if (state.written == now_ && state.writer != by.thread &&
      !ordered_in_warp(state.writer, state.written_at)) {
    return access_problem::write_after_write;
  }
  if (state.read != now_) return access_problem::none;
  const bool own = state.read_by == readers::one_thread && state.reader == by.thread;
  const bool ordered =
      state.read_by != readers::several_warps && ordered_in_warp(state.reader, state.read_at);
  other = state.reader;
  return own || ordered ? access_problem::none : access_problem::write_after_read;
}

access_verdict shared_shadow::write(std::size_t first, std::size_t bytes, actor by) {
  for (std::size_t i = first; i < first + bytes; ++i) {
    unsigned other = 0;
    const access_problem problem = judge_write(bytes_[i], by, other);
    if (problem != access_problem::none) return {problem, i, other};
    bytes_[i].written = now_;
    bytes_[i].written_at = by.warp_barriers;
    bytes_[i].writer = static_cast<std::uint16_t>(by.thread);
  }
  return {};
}

access_verdict shared_shadow::start_copy(std::size_t first, std::size_t bytes, actor by) {
  const access_verdict verdict = write(first, bytes, by);
  if (verdict.problem != access_problem::none) return verdict;
  for (std::size_t i = first; i < first + bytes; ++i) bytes_[i].in_flight = true;
  return verdict;
}

void shared_shadow::finish_copy(std::size_t first, std::size_t bytes, actor by) {
  for (std::size_t i = first; i < first + bytes; ++i) {
    bytes_[i].in_flight = false;
    bytes_[i].written = now_;
    bytes_[i].written_at = by.warp_barriers;
  }
}

}  // namespace cedar::kernels::cuda::emulation
