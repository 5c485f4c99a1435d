#include "runtime/transport/ucx/connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::transport::ucx {

namespace {

/// Pieces of this size reach full bandwidth on TCP and shared memory, and leave room for a
/// heartbeat every 100 ms on a link of 10 MB/s.
constexpr std::size_t piece_bytes_max = std::size_t{1} << 20;
/// Bytes with UCX at a time. The rest waits here, where heartbeats overtake it.
constexpr std::size_t window_bytes = 4 * piece_bytes_max;
/// From here on the receiver fetches a piece straight into its place instead of having it assembled
/// and copied. Over shared memory without a single-copy mechanism that would take the way over TCP.
constexpr std::size_t rendezvous_bytes_min = std::size_t{256} << 10;
/// Frames that may be incomplete or early at the receiver. The window keeps them far below.
constexpr std::size_t early_frames_max = 65536;

bool is_shared_memory(const std::string& transport) {
  return transport.starts_with("posix") || transport.starts_with("sysv");
}

}  // namespace

struct connection::outgoing_frame {
  flow::frame frame;
  std::uint64_t sequence;
  std::size_t offset = 0;  ///< of the next piece
  bool begun = false;
  std::size_t pieces_on_way = 0;

  bool posted() const { return begun && offset == frame.payload_bytes(); }
};

/// What UCX refers to while it sends one active message.
struct connection::send_operation {
  connection* owner;
  std::vector<std::byte> header;
  std::shared_ptr<outgoing_frame> frame;  ///< null for control messages
  std::array<ucp_dt_iov_t, 2> parts{};  ///< of the payload: tensor, lists
  std::size_t parts_count = 0;
  std::size_t bytes = 0;
};

/// What UCX refers to while it fetches one piece; the bytes go into the owner's inbox.
struct connection::receive_operation {
  connection* owner;
  std::uint64_t sequence;
  std::size_t bytes;
};

connection::connection(worker& owner, std::unique_ptr<endpoint> link, handshake greeting,
                       std::string remote, const limits& bounds, time_point now)
    : worker_(owner),
      link_(std::move(link)),
      greeting_(std::move(greeting)),
      remote_(std::move(remote)),
      since_(now),
      inbox_(early_frames_max, bounds.frame_bytes_max) {}

connection::~connection() = default;

void connection::send_control(std::vector<std::byte> message) {
  if (closed_ || fault_) return;
  auto operation = std::make_unique<send_operation>();
  operation->owner = this;
  operation->header = std::move(message);
  post(std::move(operation), control_message_id, UCP_AM_SEND_FLAG_EAGER);
}

void connection::send_frame(flow::frame frame) {
  if (next_sequence_ == 0) eager_only_ = is_shared_memory(transport());
  queue_.push_back(std::make_shared<outgoing_frame>(
      outgoing_frame{std::move(frame), next_sequence_++, 0, false, 0}));
}

void connection::pump() {
  while (!closed_ && !fault_ && !queue_.empty() && bytes_on_way_ < window_bytes) {
    const std::shared_ptr<outgoing_frame> next = queue_.front();
    const std::size_t left = next->frame.payload_bytes() - next->offset;
    if (!next->begun) ++frames_on_way_;
    next->begun = true;
    const std::size_t bytes = std::min(left, piece_bytes_max);
    ++next->pieces_on_way;
    post_piece(next, bytes);
    if (next->posted()) queue_.pop_front();
  }
}

/// Of bytes [offset, offset + bytes) of tensor followed by lists: the parts in each.
void connection::post_piece(const std::shared_ptr<outgoing_frame>& frame, std::size_t bytes) {
  auto operation = std::make_unique<send_operation>();
  operation->owner = this;
  operation->frame = frame;
  operation->bytes = bytes;

  const piece_prefix prefix{frame->sequence, frame->frame.payload_bytes(), frame->offset};
  const std::vector<std::byte>& header = frame->frame.header;
  operation->header.resize(piece_prefix_bytes + header.size());
  std::memcpy(operation->header.data(), &prefix, piece_prefix_bytes);
  if (!header.empty()) {
    std::memcpy(operation->header.data() + piece_prefix_bytes, header.data(), header.size());
  }

  std::size_t skip = frame->offset, left = bytes;
  for (const std::span<const std::byte> source :
       {flow::bytes_of(frame->frame.tensor), std::span<const std::byte>(frame->frame.lists)}) {
    const std::size_t from = std::min(skip, source.size());
    const std::size_t count = std::min(left, source.size() - from);
    skip -= from;
    left -= count;
    if (count == 0) continue;
    // UCX's descriptors are not const; sending does not write.
    operation->parts[operation->parts_count++] = {const_cast<std::byte*>(source.data() + from),
                                                  count};
  }
  frame->offset += bytes;
  bytes_on_way_ += bytes;
  const bool rendezvous = !eager_only_ && bytes >= rendezvous_bytes_min;
  post(std::move(operation), frame_message_id,
       rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
}

void connection::post(std::unique_ptr<send_operation> operation, unsigned id, std::uint32_t flags) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE;
  params.cb.send = &connection::on_sent;
  params.user_data = operation.get();
  // The reply endpoint tells the receiver which connection a message belongs to.
  params.flags = flags | UCP_AM_SEND_FLAG_REPLY;
  const bool scattered = operation->parts_count > 1;
  params.datatype = scattered ? ucp_dt_make_iov() : ucp_dt_make_contig(1);
  const void* payload = scattered                     ? operation->parts.data()
                        : operation->parts_count == 1 ? operation->parts[0].buffer
                                                      : nullptr;
  const std::size_t count = scattered ? operation->parts_count : operation->bytes;
  ++operations_;
  void* request = ucp_am_send_nbx(handle(), id, operation->header.data(), operation->header.size(),
                                  payload, count, &params);
  if (UCS_PTR_IS_PTR(request)) {
    operation.release();  // on_sent takes it back
    return;
  }
  sent(*operation, UCS_PTR_STATUS(request));
}

void connection::on_sent(void* request, ucs_status_t status, void* operation) noexcept {
  const std::unique_ptr<send_operation> done(static_cast<send_operation*>(operation));
  done->owner->sent(*done, status);
  ucp_request_free(request);
}

void connection::sent(send_operation& operation, ucs_status_t status) noexcept {
  --operations_;
  if (status != UCS_OK) {
    blame({errc::peer_lost, std::string("cannot send: ") + ucs_status_string(status)});
  }
  if (!operation.frame) return;
  bytes_on_way_ -= operation.bytes;
  --operation.frame->pieces_on_way;
  if (operation.frame->pieces_on_way > 0 || !operation.frame->posted()) return;
  --frames_on_way_;
  ++sent_.frames;
  sent_.bytes += operation.frame->frame.bytes();
}

connection::progress_made connection::take_sent() {
  return std::exchange(sent_, {});
}

ucs_status_t connection::note_piece(const void* header, std::size_t header_bytes, void* data,
                                    std::size_t bytes, std::uint64_t attributes) noexcept {
  heard_ = true;
  if (closed_ || fault_ || leave_by) return UCS_OK;
  if (!greeting_.peer_proven()) {
    ++strange_frames_;
    return UCS_OK;
  }
  if (header_bytes < piece_prefix_bytes) {
    blame({errc::malformed, "a frame without its prefix"});
    return UCS_OK;
  }
  piece_prefix prefix;
  std::memcpy(&prefix, header, piece_prefix_bytes);
  const std::span rest(static_cast<const std::byte*>(header) + piece_prefix_bytes,
                       header_bytes - piece_prefix_bytes);
  const auto room = inbox_.place(prefix, rest, bytes);
  if (!room) {
    blame(room.error());
    return UCS_OK;
  }
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    // Neither kept nor read in place: UCX's bytes are unaligned and, over TCP, gone after this
    // call.
    if (bytes > 0) std::memcpy(room->data(), data, bytes);
    inbox_.landed(prefix.sequence, bytes);
    return UCS_OK;
  }
  auto operation =
      std::make_unique<receive_operation>(receive_operation{this, prefix.sequence, bytes});
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = &connection::on_received;
  params.user_data = operation.get();
  ++operations_;
  void* request = ucp_am_recv_data_nbx(worker_.handle(), data, room->data(), bytes, &params);
  if (UCS_PTR_IS_PTR(request)) {
    operation.release();  // on_received takes it back
    return UCS_INPROGRESS;
  }
  --operations_;
  if (request == nullptr) {
    inbox_.landed(prefix.sequence, bytes);
  } else {
    blame({errc::peer_lost,
           std::string("cannot receive: ") + ucs_status_string(UCS_PTR_STATUS(request))});
  }
  return UCS_OK;  // the descriptor is UCX's since the call, whatever came of it
}

void connection::on_received(void* request, ucs_status_t status, std::size_t,
                             void* operation) noexcept {
  const std::unique_ptr<receive_operation> done(static_cast<receive_operation*>(operation));
  connection& self = *done->owner;
  --self.operations_;
  self.heard_ = true;
  if (status == UCS_OK) {
    self.inbox_.landed(done->sequence, done->bytes);
  } else {
    self.blame({errc::peer_lost, std::string("cannot receive: ") + ucs_status_string(status)});
  }
  ucp_request_free(request);
}

void connection::note_control(const void* header, std::size_t header_bytes) noexcept {
  heard_ = true;
  if (closed_ || fault_ || leave_by) return;
  const auto* first = static_cast<const std::byte*>(header);
  control_.emplace_back(first, first + header_bytes);
}

bool connection::take_heard() {
  return std::exchange(heard_, false);
}

std::uint64_t connection::take_strange_frames() {
  return std::exchange(strange_frames_, 0);
}

std::optional<std::vector<std::byte>> connection::next_control() {
  if (control_.empty()) return std::nullopt;
  std::vector<std::byte> next = std::move(control_.front());
  control_.pop_front();
  return next;
}

std::optional<flow::received_frame> connection::next_frame() {
  return inbox_.pop();
}

void connection::blame(error fault) noexcept {
  if (!fault_ && !closed_) fault_ = std::move(fault);
}

std::optional<error> connection::fault() const {
  if (const auto failure = link_->failure()) return error{errc::peer_lost, *failure};
  return fault_;
}

void connection::close() {
  closed_ = true;
  queue_.clear();
  link_->close();
}

bool connection::finished() {
  return closed_ && link_->closed() && operations_ == 0;
}

}  // namespace cedar::transport::ucx
