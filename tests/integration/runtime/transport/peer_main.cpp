// The other node of the transport tests. Prints its events, obeys its standard input line by line,
// and ends when that ends, or with the process that started it.
//
//   transport_peer CARRY NODE NAME SECRET SILENCE_MS FRAME_BYTES_MAX
//   connect NODE ADDRESS MS | send NODE BYTES COUNT | echo | close
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>

#include "runtime/transport/ucx/ucx_port.hpp"
#include "tests/integration/runtime/transport/test_frame.hpp"

namespace {

using namespace cedar;
using namespace cedar::transport;

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

class talking_handler final : public port_handler {
 public:
  void on_frame(node_id from, flow::received_frame frame) override {
    const bool good = test::is_whole(frame);
    if (echo.load()) {
      flow::frame back;
      back.header = std::move(frame.header);
      if (frame.payload.bytes() > 0) back.tensor = flow::freeze(std::move(frame.payload));
      target.load()->send(from, std::move(back));
    }
    if (!good) say("bad frame from " + std::to_string(from.value));
  }
  void on_peer_up(node_id peer) override { say("up " + std::to_string(peer.value)); }
  void on_peer_lost(node_id peer, const error& reason) override {
    say("lost " + std::to_string(peer.value) + " " + std::string(to_string(reason.code)) + ": " +
        reason.message);
  }

  std::atomic<port*> target{nullptr};
  std::atomic<bool> echo{false};
};

void obey(const std::string& line, port& door, talking_handler& handler) {
  std::istringstream in(line);
  std::string verb;
  in >> verb;
  if (verb == "connect") {
    std::uint32_t node = 0;
    std::string address;
    int milliseconds = 0;
    in >> node >> address >> milliseconds;
    door.connect(node_id{node}, address, std::chrono::milliseconds(milliseconds));
  } else if (verb == "send") {
    std::uint32_t node = 0;
    std::size_t bytes = 0, count = 0;
    in >> node >> bytes >> count;
    for (std::size_t i = 0; i < count; ++i) door.send(node_id{node}, test::whole_frame(bytes, i));
  } else if (verb == "echo") {
    handler.echo = true;
    say("echoing");
  } else if (verb == "close") {
    const result<void> closed = door.close(std::chrono::seconds(2));
    say(closed ? "closed" : "closed late: " + closed.error().message);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  talking_handler handler;
  port_options options;
  options.self = node_id{static_cast<std::uint32_t>(std::stoul(arguments[2]))};
  options.name = arguments[3];
  options.secret = test::secret_of(arguments[4]);
  options.silence_limit = std::chrono::milliseconds(std::stol(arguments[5]));
  options.frame_bytes_max = std::stoul(arguments[6]);
  ucx::ucx_options network;
  network.carry =
      std::string(arguments[1]) == "shared" ? ucx::reach::shared_host : ucx::reach::network;
  auto door = ucx::open_port(options, network, handler);
  if (!door) {
    say("failed " + door.error().message);
    return 1;
  }
  handler.target = door->get();
  say("address " + (*door)->address());
  for (std::string line; std::getline(std::cin, line);) obey(line, **door, handler);
  return 0;
}
