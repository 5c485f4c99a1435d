// One connection to one node: handshake, frames out in pieces, frames in in order, goodbye.
//
// 1. Everything runs in the worker's thread; UCX's callbacks only note down what came.
// 2. Pieces on their way own what they send: the frame, and their header bytes.
// 3. A connection lives until UCX has let go of every piece: see finished().
// What a connection's fate means for its node is port_loop's business.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/flow/frame.hpp"
#include "runtime/transport/frame_inbox.hpp"
#include "runtime/transport/handshake.hpp"
#include "runtime/transport/ucx/context.hpp"
#include "runtime/transport/ucx/endpoint.hpp"

namespace cedar::transport::ucx {

/// Active message ids.
inline constexpr unsigned frame_message_id = 1;
inline constexpr unsigned control_message_id = 2;

class connection {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct limits {
    std::size_t frame_bytes_max;
  };

  /// `remote`: the other side's address, for texts.
  connection(worker& owner, std::unique_ptr<endpoint> link, handshake greeting, std::string remote,
             const limits& bounds, time_point now);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  ucp_ep_h handle() const { return link_->handle(); }
  handshake& greeting() { return greeting_; }
  const handshake& greeting() const { return greeting_; }
  const std::string& remote() const { return remote_; }
  time_point since() const { return since_; }
  std::string transport() const { return link_->transport(); }

  // --- out
  // -----------------------------------------------------------------------------------------
  void send_control(std::vector<std::byte> message);
  void send_frame(flow::frame frame);
  /// Hands pieces to UCX as far as the window allows.
  void pump();
  /// No frame waits or is on its way.
  bool drained() const { return queue_.empty() && frames_on_way_ == 0; }
  std::uint64_t frames_sent() const { return next_sequence_; }

  struct progress_made {
    std::uint64_t frames = 0;  ///< taken by the network
    std::uint64_t bytes = 0;  ///< theirs
  };
  /// Since the last call.
  progress_made take_sent();

  // --- in
  // ------------------------------------------------------------------------------------------
  /// Callbacks of the worker, for messages of this connection.
  ucs_status_t note_piece(const void* header, std::size_t header_bytes, void* data,
                          std::size_t bytes, std::uint64_t attributes) noexcept;
  void note_control(const void* header, std::size_t header_bytes) noexcept;

  /// Something came since the last call.
  bool take_heard();
  std::optional<std::vector<std::byte>> next_control();
  std::optional<flow::received_frame> next_frame();
  std::uint64_t frames_received() const { return inbox_.popped(); }
  /// Frames dropped since the last call because the peer has not proven itself.
  std::uint64_t take_strange_frames();

  // --- end
  // -----------------------------------------------------------------------------------------
  /// What is wrong with the connection, as soon as something is: the network's or the frames'
  /// fault.
  std::optional<error> fault() const;
  /// Gives up: nothing is sent or received any more.
  void close();
  /// Closed, and UCX has let go of everything: the object may be destroyed.
  bool finished();

  bool closed() const { return closed_; }

  bool up = false;  ///< its node was reported up
  /// Set: nothing is taken from it any more; it only waits for the other side to go, until then.
  std::optional<time_point> leave_by;
  std::optional<std::uint64_t> goodbye_after;  ///< the peer leaves after this many frames
  bool goodbye_sent = false;
  bool goodbye_seen = false;

 private:
  struct outgoing_frame;
  struct send_operation;
  struct receive_operation;
  static void on_sent(void* request, ucs_status_t status, void* operation) noexcept;
  static void on_received(void* request, ucs_status_t status, std::size_t bytes,
                          void* operation) noexcept;
  void post(std::unique_ptr<send_operation> operation, unsigned id, std::uint32_t flags);
  void post_piece(const std::shared_ptr<outgoing_frame>& frame, std::size_t bytes);
  void sent(send_operation& operation, ucs_status_t status) noexcept;
  void blame(error fault) noexcept;

  worker& worker_;
  std::unique_ptr<endpoint> link_;
  handshake greeting_;
  std::string remote_;
  time_point since_;
  bool closed_ = false;
  bool eager_only_ = false;
  std::optional<error> fault_;
  std::size_t operations_ = 0;  ///< with UCX, in both directions

  // SHARED: by the queue and the pieces on their way, until the last of them is through
  std::deque<std::shared_ptr<outgoing_frame>> queue_;
  std::uint64_t next_sequence_ = 0;
  std::size_t frames_on_way_ = 0;
  std::size_t bytes_on_way_ = 0;
  progress_made sent_;

  frame_inbox inbox_;
  std::deque<std::vector<std::byte>> control_;
  bool heard_ = false;
  std::uint64_t strange_frames_ = 0;
};

}  // namespace cedar::transport::ucx
