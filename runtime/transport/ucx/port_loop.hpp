// What the port's thread does: one loop over commands, network, connections and clocks.
//
// Every wait has a deadline: handshakes, attempts to connect, silence, goodbyes, the closing
// itself.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/transport/liveness.hpp"
#include "runtime/transport/options.hpp"
#include "runtime/transport/port.hpp"
#include "runtime/transport/ucx/connection.hpp"
#include "runtime/transport/ucx/context.hpp"
#include "runtime/transport/ucx/endpoint.hpp"
#include "runtime/transport/ucx/mailbox.hpp"

namespace cedar::transport::ucx {

class port_loop {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// In the thread that will run() it. Errors: as open_port.
  static result<std::unique_ptr<port_loop>> open(const port_options& common,
                                                 const ucx_options& options, port_handler& handler,
                                                 mailbox& box);
  ~port_loop();
  port_loop(const port_loop&) = delete;
  port_loop& operator=(const port_loop&) = delete;

  std::string address() const;

  /// Until a close command; its outcome.
  result<void> run();

 private:
  /// Looking for a peer, connection after connection, until the deadline.
  struct attempt {
    std::string address;
    sockaddr_in remote;
    std::chrono::milliseconds patience;
    time_point deadline;
    time_point next_try;
    std::chrono::milliseconds pause;
    std::string last_failure;
    connection* current = nullptr;
  };
  struct live_peer {
    connection* link;
    std::uint64_t generation;
  };
  using connection_list = std::vector<std::unique_ptr<connection>>;

  port_loop(const port_options& common, port_handler& handler, mailbox& box);

  // port_loop.cpp: the loop
  bool step();
  void sleep();
  time_point next_due() const;
  bool take_commands();
  void obey(send_command& what);
  void obey(connect_command& what);
  void obey(disconnect_command& what);
  void obey(close_command& what);
  bool closing_done();
  result<void> shut_down();

  // port_peers.cpp: looking for peers, and greeting them
  void accept_requests();
  void look_for_peers();
  void begin_try(node_id peer, attempt& looking);
  void end_attempt(node_id peer, const error& reason);
  void serve_handshake(connection& link, const control_message& message);
  void establish(connection& link, const std::vector<std::byte>& welcome);
  bool stands_back(node_id peer);
  connection& keep(std::unique_ptr<endpoint> link, handshake greeting, std::string remote);

  // port_connections.cpp: serving connections, and ending them
  void serve(connection& link);
  void serve_control(connection& link, const std::vector<std::byte>& bytes);
  void deliver(connection& link);
  void watch_peers();
  void part(connection& link);
  void lose(connection& link, const error& reason);
  void dismiss(connection& link, const std::vector<std::byte>& last_words, const error& reason,
               bool worth_a_retry);
  void note_failure(connection& link, const error& reason, bool worth_a_retry);
  void retire(connection& link);
  void sweep();
  std::string describe(const connection& link) const;

  static ucs_status_t on_frame_message(void* self, const void* header, std::size_t header_bytes,
                                       void* data, std::size_t bytes,
                                       const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t on_control_message(void* self, const void* header, std::size_t header_bytes,
                                         void* data, std::size_t bytes,
                                         const ucp_am_recv_param_t* param) noexcept;
  connection* connection_of(const ucp_am_recv_param_t* param);

  const port_options common_;
  const node_identity self_;
  port_handler& handler_;
  mailbox& box_;
  time_point now_;
  liveness liveness_;

  std::unique_ptr<context> context_;
  std::unique_ptr<worker> worker_;
  std::unique_ptr<listener> listener_;
  connection_list connections_;
  connection_list retired_;  ///< closed, until UCX lets go of them
  std::unordered_map<ucp_ep_h, connection*> by_handle_;
  std::map<node_id, live_peer> live_;
  std::map<node_id, attempt> attempts_;
  std::uint64_t strange_frames_ = 0;  ///< of connections unknown or not proven, not yet reported
  int fruitless_ = 0;  ///< times in a row that UCX could neither work nor sleep
  std::optional<time_point> closing_;  ///< no longer than until then
};

}  // namespace cedar::transport::ucx
