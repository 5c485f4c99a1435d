// One client's connection: requests one after the other, each answered before the next is read.
//
// Everything happens in the connection's strand. The connection lives while an operation of it is
// pending.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/http/generation.hpp"
#include "runtime/http/internal/gateway.hpp"
#include "runtime/http/internal/image_downloads.hpp"

namespace cedar::http {

class connection : public std::enable_shared_from_this<connection> {
 public:
  /// `on_gone` is called by the destructor.
  connection(boost::asio::ip::tcp::socket&& socket, gateway& shared, std::function<void()> on_gone);
  ~connection();

  void start();
  /// Gives up what is running and closes.
  void drop();

 private:
  /// An order whose images are decoded.
  struct decoding {
    decoding(generation_order of, std::unique_ptr<admission::place> at_the_door)
        : order(std::move(of)), place(std::move(at_the_door)) {}
    /// The thread that decodes may pass it over, and nothing waits for that.
    void give_up() {
      given_up = true;
      place.reset();
    }

    generation_order order;
    std::unique_ptr<admission::place> place;
    std::atomic<bool> given_up = false;
  };
  using request = boost::beast::http::request<boost::beast::http::string_body>;
  using parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void read_request();
  void take_header(boost::beast::error_code failed);
  void read_body();
  void take_body(boost::beast::error_code failed);
  void refuse_unread(boost::beast::error_code why);

  void route();
  void answer_get(const std::string& path);
  void generate(bool chats);
  template <class Ask>
  void order(const Ask& ask);
  /// Fetches the images that the chat names by web URLs, then orders.
  void download(chat_ask ask);
  void begin(generation_order order);
  /// Decodes the order's images in the thread for that, then generates.
  void decode(generation_order order, std::unique_ptr<admission::place> place);
  void answer(generation_order order, std::unique_ptr<admission::place> place);

  void respond(unsigned status, std::string body, const char* type = "application/json",
               std::uint32_t retry_after_s = 0, const char* allow = nullptr);
  void refuse(const api_error& what);
  void stream(std::string events, bool last);
  void begin_stream();
  void queue(std::string bytes, bool last);
  void write();
  void written(boost::beast::error_code failed);
  void answered();
  void linger();
  void discard();
  void close();

  /// What an answer may take that was asked to take no longer; nothing: as long as it likes.
  std::optional<std::chrono::milliseconds> time_limit(
      std::optional<std::chrono::milliseconds> asked) const;
  /// What is being done for the request: it generates, fetches images or decodes them.
  std::shared_ptr<const void> work() const;
  /// Gives what is done up when the answer's time has passed.
  void limit_time(std::optional<std::chrono::milliseconds> asked);
  void expire(std::chrono::milliseconds limit);
  /// Looks whether the client goes while it is done.
  void watch();
  void watch(const std::weak_ptr<const void>& whom);

  boost::beast::tcp_stream stream_;
  gateway& shared_;
  std::function<void()> on_gone_;
  boost::beast::flat_buffer buffer_;
  std::optional<parser> parser_;
  request request_;
  std::string route_ = "none";  ///< for metrics
  bool keep_alive_ = true;
  bool unread_ = false;  ///< the client was refused before all was read
  bool answering_ = false;  ///< counted in shared_.answers
  // SHARED: with the pipeline's events, until its requests have ended.
  std::shared_ptr<generation> generation_;
  // SHARED: with its pending operations, until they have ended.
  std::shared_ptr<image_downloads> downloads_;
  // SHARED: with the thread that decodes, until it has.
  std::shared_ptr<decoding> decoding_;
  boost::asio::steady_timer deadline_;
  std::chrono::steady_clock::time_point asked_at_;  ///< the request that is being answered
  bool streaming_ = false;
  std::string outbound_;  ///< to be written next
  std::string writing_;  ///< being written
  bool last_queued_ = false;
};

}  // namespace cedar::http
