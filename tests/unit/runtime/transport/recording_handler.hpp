// A port_handler that writes down what it was told.
#pragma once

#include <string>
#include <vector>

#include "runtime/transport/port.hpp"

namespace cedar::transport::test {

class recording_handler : public port_handler {
 public:
  void on_frame(node_id from, flow::received_frame frame) override {
    log.push_back("frame " + std::to_string(from.value));
    frames.push_back(std::move(frame));
  }
  void on_peer_up(node_id peer) override { log.push_back("up " + std::to_string(peer.value)); }
  void on_peer_lost(node_id peer, const error& reason) override {
    log.push_back("lost " + std::to_string(peer.value));
    reasons.push_back(reason);
  }

  std::vector<std::string> log;
  std::vector<flow::received_frame> frames;
  std::vector<error> reasons;
};

inline flow::frame frame_of(std::size_t tensor_bytes, unsigned salt = 0) {
  flow::frame out;
  out.header.resize(16, static_cast<std::byte>(salt));
  kernels::buffer tensor(tensor_bytes);
  for (std::size_t i = 0; i < tensor_bytes; ++i) {
    tensor.data()[i] = static_cast<std::byte>((i + salt) & 0xff);
  }
  if (tensor_bytes > 0) out.tensor = flow::freeze(std::move(tensor));
  out.lists.resize(5, static_cast<std::byte>(salt + 1));
  return out;
}

}  // namespace cedar::transport::test
