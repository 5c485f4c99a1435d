// Files of images that a chat names by http(s) URLs, fetched from hosts that the server's owner
// named.
//
// 1. One after another, within one time and one number of bytes for all of them. No redirect is
//    followed, and a certificate must be valid for its host.
// 2. They wait at a gate for their turn, and their time begins when it has come.
// 3. A file takes the place of its URL as a data URL: what comes after cannot tell them apart.
// Everything happens in the executor that is given, which must be a strand.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/http/chat_request.hpp"
#include "runtime/http/image_url.hpp"
#include "runtime/http/internal/download_gate.hpp"
#include "runtime/http/server.hpp"

namespace cedar::http {

/// Whether the chat has an image that would have to be fetched.
bool names_downloads(const chat_ask& ask);

class image_downloads : public std::enable_shared_from_this<image_downloads> {
 public:
  /// Called once, unless cancel() is: the chat with its files, or 400 with the image's path.
  using done_fn = std::function<void(api_result<chat_ask>)>;

  /// The options and the gate outlive the downloads.
  image_downloads(boost::asio::any_io_executor executor, const server_options& options,
                  download_gate& gate, chat_ask ask, done_fn done);
  void start();
  void cancel();

 private:
  using plain_stream = boost::beast::tcp_stream;
  using secure_stream = boost::beast::ssl_stream<plain_stream>;
  using parser = boost::beast::http::response_parser<boost::beast::http::string_body>;

  void begin();
  void next();
  void resolved(boost::beast::error_code failed,
                const boost::asio::ip::tcp::resolver::results_type& found);
  void connected(boost::beast::error_code failed);
  template <class Stream>
  void ask_for_file(Stream& stream);
  template <class Stream>
  void read_file(Stream& stream, boost::beast::error_code failed);
  void answered(boost::beast::error_code failed);
  void refuse(const std::string& why);
  void finish(api_result<chat_ask> outcome);

  boost::asio::any_io_executor executor_;
  const server_options& options_;
  download_gate& gate_;
  std::unique_ptr<download_gate::turn> turn_;  ///< until finish() or cancel()
  chat_ask ask_;
  done_fn done_;
  std::vector<text::content_image*> left_;  ///< of ask_; the last one is fetched next
  std::uint64_t bytes_left_;
  image_url url_;
  boost::asio::ssl::context certificates_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer deadline_;
  std::optional<plain_stream> plain_;
  std::optional<secure_stream> secure_;
  boost::beast::http::request<boost::beast::http::empty_body> request_;
  boost::beast::flat_buffer buffer_;
  std::optional<parser> parser_;
};

}  // namespace cedar::http
