#include "runtime/http/internal/image_downloads.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>

#include "runtime/http/order_images.hpp"

namespace cedar::http {

namespace {

namespace beast = boost::beast;
namespace asio = boost::asio;
using tcp = asio::ip::tcp;

std::vector<text::content_image*> downloads_of(chat_ask& ask) {
  std::vector<text::content_image*> out;
  for (text::chat_message& message : ask.messages)
    for (text::content_image& image : message.images)
      if (is_web_url(image.url)) out.push_back(&image);
  std::ranges::reverse(out);
  return out;
}

/// What it is, its header says.
std::string as_data_url(const std::string& file) {
  std::string out(4 * ((file.size() + 2) / 3) + 1, '\0');
  const int made = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(file.data()),
                                   static_cast<int>(file.size()));
  out.resize(static_cast<std::size_t>(made));
  return "data:image/png;base64," + out;
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

bool names_downloads(const chat_ask& ask) {
  std::size_t images = 0;
  bool named = false;
  for (const text::chat_message& message : ask.messages)
    for (const text::content_image& image : message.images) {
      ++images;
      named = named || is_web_url(image.url);
    }
  return named && images <= images_max;  // more are refused anyway
}

image_downloads::image_downloads(asio::any_io_executor executor, const server_options& options,
                                 download_gate& gate, chat_ask ask, done_fn done)
    : executor_(std::move(executor)),
      options_(options),
      gate_(gate),
      ask_(std::move(ask)),
      done_(std::move(done)),
      left_(downloads_of(ask_)),
      bytes_left_(options.body_bytes_max),
      certificates_(asio::ssl::context::tls_client),
      resolver_(executor_),
      deadline_(executor_) {}

void image_downloads::start() {
  turn_ = gate_.enter([executor = executor_, to = weak_from_this()] {
    asio::post(executor, [to] {
      if (const auto self = to.lock()) self->begin();
    });
  });
}

void image_downloads::begin() {
  if (!done_) return;
  deadline_.expires_after(options_.download_limit);
  deadline_.async_wait([self = shared_from_this()](beast::error_code cancelled) {
    if (!cancelled)
      self->refuse(
          fmt::format("it did not come within {} ms", self->options_.download_limit.count()));
  });
  next();
}

void image_downloads::cancel() {
  done_ = nullptr;
  turn_.reset();
  deadline_.cancel();
  resolver_.cancel();
  if (plain_) plain_->cancel();
  if (secure_) beast::get_lowest_layer(*secure_).cancel();
}

void image_downloads::finish(api_result<chat_ask> outcome) {
  const done_fn done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(std::move(outcome));
}

void image_downloads::refuse(const std::string& why) {
  if (!done_) return;
  const text::content_image& image = *left_.back();
  finish(tl::unexpected(
      bad_request(fmt::format("the image at {}://{}:{}: {}", url_.secure ? "https" : "http",
                              url_.host, url_.port, why),
                  image.path)));
}

void image_downloads::next() {
  if (left_.empty()) return finish(std::move(ask_));
  auto url = parse_image_url(left_.back()->url);
  if (!url) return finish(tl::unexpected(bad_request(url.error().message, left_.back()->path)));
  url_ = std::move(*url);
  if (!is_allowed(url_, options_.image_hosts))
    return refuse("this server does not fetch images from there; send a data URL");
  resolver_.async_resolve(without_brackets(url_.host), url_.port,
                          [self = shared_from_this()](beast::error_code failed, auto found) {
                            self->resolved(failed, found);
                          });
}

void image_downloads::resolved(beast::error_code failed, const tcp::resolver::results_type& found) {
  if (!done_) return;
  if (failed) return refuse("no such host: " + failed.message());
  plain_.reset();
  secure_.reset();
  if (url_.secure) {
    beast::error_code unread;
    certificates_.set_default_verify_paths(unread);
    secure_.emplace(executor_, certificates_);
    secure_->set_verify_mode(asio::ssl::verify_peer);
    secure_->set_verify_callback(asio::ssl::host_name_verification(without_brackets(url_.host)));
    SSL_set_tlsext_host_name(secure_->native_handle(), url_.host.c_str());
  } else {
    plain_.emplace(executor_);
  }
  plain_stream& lowest = secure_ ? beast::get_lowest_layer(*secure_) : *plain_;
  lowest.async_connect(
      found, [self = shared_from_this()](beast::error_code refused, const tcp::endpoint&) {
        self->connected(refused);
      });
}

void image_downloads::connected(beast::error_code failed) {
  if (!done_) return;
  if (failed) return refuse("nobody answers: " + failed.message());
  request_ = {beast::http::verb::get, url_.target, 11};
  request_.set(beast::http::field::host, url_.host);
  request_.set(beast::http::field::user_agent, "cedar");
  request_.set(beast::http::field::connection, "close");
  buffer_.clear();
  parser_.emplace();
  parser_->body_limit(bytes_left_);
  if (plain_) return ask_for_file(*plain_);
  secure_->async_handshake(asio::ssl::stream_base::client,
                           [self = shared_from_this()](beast::error_code refused) {
                             if (!self->done_) return;
                             if (refused) return self->refuse("TLS: " + refused.message());
                             self->ask_for_file(*self->secure_);
                           });
}

template <class Stream>
void image_downloads::ask_for_file(Stream& stream) {
  beast::http::async_write(
      stream, request_,
      [self = shared_from_this(), &stream](beast::error_code failed, std::size_t) {
        if (failed) return self->answered(failed);
        beast::http::async_read_header(stream, self->buffer_, *self->parser_,
                                       [self, &stream](beast::error_code unread, std::size_t) {
                                         self->read_file(stream, unread);
                                       });
      });
}

template <class Stream>
void image_downloads::read_file(Stream& stream, beast::error_code failed) {
  if (failed) return answered(failed);
  // The parser's own bound does not hold for an answer that tells its length.
  const auto length = parser_->content_length();
  if (length && *length > bytes_left_) return answered(beast::http::error::body_limit);
  beast::http::async_read(
      stream, buffer_, *parser_,
      [self = shared_from_this()](beast::error_code read, std::size_t) { self->answered(read); });
}

void image_downloads::answered(beast::error_code failed) {
  if (!done_) return;
  if (failed == beast::http::error::body_limit)
    return refuse(
        fmt::format("the files of a request may have {} bytes together", options_.body_bytes_max));
  if (failed) return refuse("the answer broke off: " + failed.message());
  const auto file = parser_->release();
  if (file.result_int() / 100 == 3)
    return refuse("the answer is a redirect, which is not followed; name the file itself");
  if (file.result_int() != 200)
    return refuse(fmt::format("the answer has status {}", file.result_int()));
  if (file.body().empty()) return refuse("the file is empty");
  bytes_left_ -= std::min<std::uint64_t>(bytes_left_, file.body().size());
  left_.back()->url = as_data_url(file.body());
  left_.pop_back();
  next();
}

}  // namespace cedar::http
