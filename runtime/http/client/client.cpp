#include "runtime/http/client/client.hpp"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <limits>
#include <utility>

namespace cedar::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using beast::error_code;
using beast::http::field;
using beast::http::verb;
using tcp = asio::ip::tcp;

constexpr std::size_t piece_bytes = 16384;
constexpr std::uint32_t header_bytes_max = 64U << 10U;
constexpr std::size_t reply_bytes_max = 16U << 20U;

bool is_http_error(const error_code& failed) {
  return failed.category() ==
         beast::http::make_error_code(beast::http::error::bad_version).category();
}

/// One request and its answer. Lives while an operation of it is pending.
class exchange : public std::enable_shared_from_this<exchange> {
 public:
  exchange(asio::io_context& io, server_url to, client_request what, client_events events)
      : to_(std::move(to)),
        limit_(what.limit),
        events_(std::move(events)),
        resolver_(io),
        stream_(io) {
    request_.method(what.body.empty() ? verb::get : verb::post);
    request_.target(what.path);
    request_.version(11);
    request_.keep_alive(false);
    request_.set(field::host, to_.text().substr(to_.text().find("//") + 2));
    request_.set(field::user_agent, "cedar");
    if (!what.body.empty()) request_.set(field::content_type, "application/json");
    request_.body() = std::move(what.body);
    request_.prepare_payload();
    parser_.header_limit(header_bytes_max);
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  void start() {
    stream_.expires_after(limit_);
    resolver_.async_resolve(
        to_.host, to_.port,
        [self = shared_from_this()](error_code failed, const tcp::resolver::results_type& found) {
          if (failed)
            return self->end(fail(
                errc::not_found, "there is no host '" + self->to_.host + "': " + failed.message()));
          self->connect(found);
        });
  }

 private:
  void connect(const tcp::resolver::results_type& found) {
    stream_.async_connect(
        found, [self = shared_from_this()](error_code failed, const tcp::endpoint&) {
          if (failed && failed != beast::error::timeout)
            return self->end(fail(errc::not_found, "nothing answers at " + self->to_.text() + ": " +
                                                       failed.message()));
          if (failed) return self->end_by(failed);
          error_code ignored;
          self->stream_.socket().set_option(tcp::no_delay(true), ignored);
          self->write();
        });
  }

  void write() {
    beast::http::async_write(stream_, request_,
                             [self = shared_from_this()](error_code failed, std::size_t) {
                               // Who refuses may do so before it has read everything.
                               if (failed == beast::error::timeout) return self->end_by(failed);
                               self->read_header();
                             });
  }

  void read_header() {
    beast::http::async_read_header(stream_, buffer_, parser_,
                                   [self = shared_from_this()](error_code failed, std::size_t) {
                                     if (failed) return self->end_by(failed);
                                     self->events_.on_status(self->parser_.get().result_int());
                                     self->read_body();
                                   });
  }

  void read_body() {
    if (parser_.is_done()) return end({});
    auto& body = parser_.get().body();
    body.data = piece_.data();
    body.size = piece_.size();
    beast::http::async_read_some(
        stream_, buffer_, parser_, [self = shared_from_this()](error_code failed, std::size_t) {
          if (failed == beast::http::error::need_buffer) failed = {};
          const std::size_t size = self->piece_.size() - self->parser_.get().body().size;
          if (size > 0) self->events_.on_bytes({self->piece_.data(), size});
          if (failed) return self->end_by(failed);
          self->read_body();
        });
  }

  void end_by(const error_code& failed) {
    if (failed == beast::error::timeout)
      return end(fail(errc::timeout,
                      "no end of the answer within " + std::to_string(limit_.count()) + " ms"));
    if (failed == beast::http::error::end_of_stream ||
        failed == beast::http::error::partial_message || failed == asio::error::eof ||
        failed == asio::error::connection_reset || failed == asio::error::broken_pipe)
      return end(fail(errc::peer_lost, "the server closed the connection within its answer"));
    if (is_http_error(failed))
      return end(
          fail(errc::malformed, "what " + to_.text() + " says is no HTTP: " + failed.message()));
    end(fail(errc::io, failed.message()));
  }

  void end(const result<void>& how) {
    stream_.close();
    events_.on_end(how);
  }

  server_url to_;
  std::chrono::milliseconds limit_;
  client_events events_;
  tcp::resolver resolver_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  beast::http::request<beast::http::string_body> request_;
  beast::http::response_parser<beast::http::buffer_body> parser_;
  std::array<char, piece_bytes> piece_{};
};

}  // namespace

struct client::parts {
  explicit parts(server_url where) : to(std::move(where)) {}

  server_url to;
  asio::io_context io{1};
};

client::client(server_url to) : parts_(std::make_unique<parts>(std::move(to))) {}
client::~client() = default;

void client::send(client_request what, client_events events) {
  // SHARED: by its pending operations, until the last one has ended.
  std::make_shared<exchange>(parts_->io, parts_->to, std::move(what), std::move(events))->start();
}

void client::at(std::chrono::steady_clock::time_point when, std::function<void()> what) {
  // SHARED: with its only handler, so that the timer lives until it has fired.
  const auto timer = std::make_shared<asio::steady_timer>(parts_->io, when);
  timer->async_wait([timer, what = std::move(what)](error_code) { what(); });
}

void client::run() {
  parts_->io.run();
}

void client::stop() {
  parts_->io.stop();
}

result<client_reply> ask(const server_url& server, const client_request& what) {
  client one(server);
  client_reply out;
  result<void> how;
  client_events events;
  events.on_status = [&](unsigned status) { out.status = status; };
  events.on_bytes = [&](std::string_view bytes) {
    if (out.body.size() + bytes.size() <= reply_bytes_max)
      out.body += bytes;
    else
      how = fail(errc::malformed, what.path + ": an answer of more than 16 MiB");
  };
  events.on_end = [&](const result<void>& end) {
    if (how) how = end;
  };
  one.send(what, std::move(events));
  one.run();
  if (!how) return fail(how.error());
  return out;
}

}  // namespace cedar::http
