#include "runtime/http/internal/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <sstream>

namespace cedar::http {

namespace {

namespace beast = boost::beast;
namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using beast::http::field;
using beast::http::verb;

/// For a client that was refused to stop sending.
constexpr std::chrono::seconds linger_limit{2};
constexpr std::size_t discard_bytes = 65536;
constexpr const char* continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

std::string path_of(const std::string& target) {
  return target.substr(0, target.find_first_of("?#"));
}

nlohmann::ordered_json model_json(const served_model& model) {
  return {
      {"id", model.name}, {"object", "model"}, {"created", model.created_s}, {"owned_by", "cedar"}};
}

nlohmann::ordered_json ready_json(const session::service_status& pipeline, bool draining) {
  nlohmann::ordered_json units = nlohmann::ordered_json::array();
  bool all_up = pipeline.problem.empty();
  for (const session::unit_status& unit : pipeline.units) {
    all_up = all_up && unit.up;
    units.push_back({{"unit", unit.unit}, {"node", unit.node}, {"up", unit.up}});
  }
  return {{"ready", all_up && !draining},
          {"draining", draining},
          {"problem", pipeline.problem.empty() ? nlohmann::ordered_json(nullptr)
                                               : nlohmann::ordered_json(pipeline.problem)},
          {"units", std::move(units)}};
}

bool is_get_route(const std::string& path) {
  return path == "/health" || path == "/ready" || path == "/metrics" || path == "/v1/models" ||
         path.starts_with("/v1/models/");
}

}  // namespace

connection::connection(tcp::socket&& socket, gateway& shared, std::function<void()> on_gone)
    : stream_(std::move(socket)),
      shared_(shared),
      on_gone_(std::move(on_gone)),
      deadline_(stream_.get_executor()) {}

connection::~connection() {
  if (answering_) shared_.end_answer();
  on_gone_();
}

void connection::start() {
  // Not at once: the strand is not this thread's.
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->read_request(); });
}

/// Reads what the client still sends, for a while: closing on unread bytes would reset the
/// connection, and the client might never see the answer.
void connection::linger() {
  beast::error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.expires_after(linger_limit);
  discard();
}

void connection::discard() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(discard_bytes),
                          [self = shared_from_this()](beast::error_code failed, std::size_t) {
                            failed ? self->close() : self->discard();
                          });
}

void connection::drop() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void connection::close() {
  if (generation_) std::exchange(generation_, nullptr)->abandon();
  if (downloads_) std::exchange(downloads_, nullptr)->cancel();
  if (decoding_) std::exchange(decoding_, nullptr)->give_up();
  deadline_.cancel();
  beast::error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.close();
}

void connection::read_request() {
  parser_.emplace();
  parser_->header_limit(shared_.options.header_bytes_max);
  parser_->body_limit(shared_.options.body_bytes_max);
  stream_.expires_after(shared_.options.header_limit);
  beast::http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](beast::error_code failed, std::size_t) {
        self->take_header(failed);
      });
}

/// The client sent something that is no request, or went away.
void connection::refuse_unread(beast::error_code why) {
  const bool is_request_error =
      why.category() == beast::http::make_error_code(beast::http::error::bad_method).category();
  if (!is_request_error || why == beast::http::error::end_of_stream ||
      why == beast::http::error::partial_message)
    return close();
  keep_alive_ = false;
  unread_ = true;
  if (!std::exchange(answering_, true)) shared_.begin_answer();
  if (why == beast::http::error::body_limit)
    return refuse({413,
                   fmt::format("the body is larger than the {} bytes that this server takes",
                               shared_.options.body_bytes_max),
                   "invalid_request_error",
                   {},
                   "body_too_large",
                   0});
  if (why == beast::http::error::header_limit)
    return refuse({431, "the header is too large", "invalid_request_error", {}, {}, 0});
  refuse(bad_request("this is no HTTP request: " + why.message()));
}

void connection::take_header(beast::error_code failed) {
  route_ = "none";
  if (failed) return refuse_unread(failed);
  const auto& header = parser_->get();
  keep_alive_ = header.keep_alive();
  const auto length = parser_->content_length();
  if (length && *length > shared_.options.body_bytes_max)
    return refuse_unread(beast::http::error::body_limit);
  if (!beast::iequals(header[field::expect], "100-continue")) return read_body();
  stream_.expires_after(shared_.options.write_limit);
  asio::async_write(stream_, asio::buffer(continue_line, std::strlen(continue_line)),
                    [self = shared_from_this()](beast::error_code unsent, std::size_t) {
                      unsent ? self->close() : self->read_body();
                    });
}

void connection::read_body() {
  stream_.expires_after(shared_.options.body_limit);
  beast::http::async_read(stream_, buffer_, *parser_,
                          [self = shared_from_this()](beast::error_code problem, std::size_t) {
                            self->take_body(problem);
                          });
}

void connection::take_body(beast::error_code failed) {
  if (failed) return refuse_unread(failed);
  request_ = parser_->release();
  shared_.begin_answer();
  answering_ = true;
  stream_.expires_never();
  route();
}

void connection::route() {
  const std::string path = path_of(std::string(request_.target()));
  const bool get = request_.method() == verb::get;
  const bool post = request_.method() == verb::post;
  const bool is_get = is_get_route(path);
  const bool is_post = path == "/v1/completions" || path == "/v1/chat/completions";
  if (is_get || is_post) route_ = path.starts_with("/v1/models") ? "/v1/models" : path;
  if (is_get && get) return answer_get(path);
  if (is_post && post) return generate(path == "/v1/chat/completions");
  if (is_get || is_post) {
    const char* allowed = is_get ? "GET" : "POST";
    keep_alive_ = false;  // what answers HEAD has no body, and ours has
    const api_error told{405,
                         path + " takes " + allowed + " only",
                         "invalid_request_error",
                         {},
                         "method_not_allowed",
                         0};
    return respond(told.status, told.body(), "application/json", 0, allowed);
  }
  refuse({404, "there is nothing at '" + path + "'", "invalid_request_error", {}, "not_found", 0});
}

void connection::answer_get(const std::string& path) {
  const served_model& model = shared_.options.model;
  if (path == "/health") return respond(200, R"({"status":"alive"})");
  if (path == "/ready") {
    const auto body = ready_json(shared_.service.status(), shared_.draining);
    return body["ready"].get<bool>() ? respond(200, to_text(body))
                                     : respond(503, to_text(body), "application/json", 5);
  }
  if (path == "/metrics")
    return respond(
        200,
        shared_.counters.text(shared_.service.status(),
                              {shared_.door.requests(), shared_.door.tokens(),
                               shared_.downloads.fetching(), shared_.downloads.waiting()}),
        "text/plain; version=0.0.4; charset=utf-8");
  if (path == "/v1/models")
    return respond(200, to_text({{"object", "list"},
                                 {"data", nlohmann::ordered_json::array({model_json(model)})}}));
  if (path == "/v1/models/" + model.name) return respond(200, to_text(model_json(model)));
  refuse({404, "there is no such model here; this server has '" + model.name + "'",
          "invalid_request_error", "model", "model_not_found", 0});
}

void connection::generate(bool chats) {
  asked_at_ = std::chrono::steady_clock::now();
  if (shared_.draining) {
    keep_alive_ = false;
    return refuse(unavailable("the server is stopping"));
  }
  if (chats) {
    auto ask = parse_chat(request_.body());
    if (!ask) return refuse(ask.error());
    const bool fetches = !shared_.options.image_hosts.empty() && shared_.limits.images;
    return fetches && names_downloads(*ask) ? download(std::move(*ask)) : order(*ask);
  }
  const auto ask = parse_completion(request_.body());
  return ask ? order(*ask) : refuse(ask.error());
}

template <class Ask>
void connection::order(const Ask& ask) {
  auto made = order_maker(shared_.options.model, shared_.vocabulary, shared_.limits).make(ask);
  made ? begin(std::move(*made)) : refuse(made.error());
}

void connection::download(chat_ask ask) {
  const auto asked = ask.time_limit;
  downloads_ = std::make_shared<image_downloads>(
      stream_.get_executor(), shared_.options, shared_.downloads, std::move(ask),
      [self = shared_from_this()](api_result<chat_ask> fetched) {
        self->downloads_.reset();
        fetched ? self->order(*fetched) : self->refuse(fetched.error());
      });
  limit_time(asked);
  watch();
  downloads_->start();
}

void connection::begin(generation_order order) {
  auto place =
      shared_.door.enter(static_cast<std::uint32_t>(order.requests.size()), order.tokens_most);
  if (!place) return refuse(place.error());
  order.images.empty() ? answer(std::move(order), std::move(*place))
                       : decode(std::move(order), std::move(*place));
}

void connection::decode(generation_order order, std::unique_ptr<admission::place> place) {
  const auto asked = order.time_limit;
  decoding_ = std::make_shared<decoding>(std::move(order), std::move(place));
  limit_time(asked);
  watch();
  asio::post(shared_.decoding, [self = shared_from_this(), job = decoding_] {
    if (job->given_up) return;
    auto done = self->shared_.options.decoder(job->order, *self->shared_.limits.images);
    asio::post(self->stream_.get_executor(), [self, job, done = std::move(done)] {
      if (self->decoding_ != job) return;
      self->decoding_.reset();
      done ? self->answer(std::move(job->order), std::move(job->place))
           : self->refuse(done.error());
    });
  });
}

void connection::answer(generation_order order, std::unique_ptr<admission::place> place) {
  // SHARED: with the generation, which lets go of its listener when it is over or abandoned.
  const auto self = shared_from_this();
  generation_listener listener;
  listener.on_body = [self](std::string body) { self->respond(200, std::move(body)); };
  listener.on_events = [self](std::string events, bool last) {
    self->stream(std::move(events), last);
  };
  listener.on_error = [self](const api_error& what) { self->refuse(what); };
  const auto asked = order.time_limit;
  const auto post = [executor = stream_.get_executor()](std::function<void()> work) {
    asio::post(executor, std::move(work));
  };
  generation_ = std::make_shared<generation>(
      generation_setting{shared_.service, shared_.vocabulary, shared_.counters, post},
      std::move(place), std::move(order), std::move(listener));
  watch();
  limit_time(asked);
  generation_->start();
}

std::optional<std::chrono::milliseconds> connection::time_limit(
    std::optional<std::chrono::milliseconds> asked) const {
  const std::chrono::milliseconds most = shared_.options.request_limit;
  return most.count() == 0 ? asked : std::min(most, asked.value_or(most));
}

std::shared_ptr<const void> connection::work() const {
  if (generation_) return generation_;
  if (downloads_) return downloads_;
  return decoding_;
}

void connection::limit_time(std::optional<std::chrono::milliseconds> asked) {
  const auto limit = time_limit(asked);
  if (!limit) return;
  deadline_.expires_at(asked_at_ + *limit);
  deadline_.async_wait([of = std::weak_ptr(work()), to = weak_from_this(),
                        limit = *limit](beast::error_code cancelled) {
    const auto running = of.lock();
    const auto self = to.lock();
    if (!cancelled && running && self && running == self->work()) self->expire(limit);
  });
}

void connection::expire(std::chrono::milliseconds limit) {
  if (generation_) return generation_->expire(limit);
  if (downloads_) std::exchange(downloads_, nullptr)->cancel();
  if (decoding_) std::exchange(decoding_, nullptr)->give_up();
  refuse(deadline_exceeded(limit));
}

void connection::watch() {
  watch(work());
}

void connection::watch(const std::weak_ptr<const void>& whom) {
  stream_.socket().async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), whom](beast::error_code failed) {
        const auto running = whom.lock();
        if (failed || !running || running != self->work()) return;
        char byte = 0;
        beast::error_code gone;
        // Readiness may be that of bytes which have been read since: a look must not wait for more.
        self->stream_.socket().non_blocking(true, gone);
        if (!gone)
          self->stream_.socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek, gone);
        if (gone == asio::error::would_block) return self->watch(whom);
        // What is there is the beginning of the next request.
        if (gone) self->close();
      });
}

void connection::refuse(const api_error& what) {
  respond(what.status, what.body(), "application/json", what.retry_after_s);
}

void connection::respond(unsigned status, std::string body, const char* type,
                         std::uint32_t retry_after_s, const char* allow) {
  beast::http::response<beast::http::string_body> out;
  out.version(request_.version() == 10 ? 10 : 11);
  out.result(status);
  out.set(field::server, "cedar");
  out.set(field::content_type, type);
  if (retry_after_s > 0) out.set(field::retry_after, std::to_string(retry_after_s));
  if (allow != nullptr) out.set(field::allow, allow);
  out.keep_alive(keep_alive_);
  out.body() = std::move(body);
  out.prepare_payload();
  shared_.counters.answered(route_, status);
  std::ostringstream text;
  text << out;
  queue(text.str(), true);
}

void connection::begin_stream() {
  streaming_ = true;
  if (request_.version() == 10) keep_alive_ = false;
  beast::http::response<beast::http::empty_body> out;
  out.version(request_.version());
  out.result(200);
  out.set(field::server, "cedar");
  out.set(field::content_type, "text/event-stream; charset=utf-8");
  out.set(field::cache_control, "no-cache");
  out.chunked(request_.version() >= 11);
  out.keep_alive(keep_alive_);
  shared_.counters.answered(route_, 200);
  std::ostringstream text;
  text << out.base();
  queue(text.str(), false);
}

void connection::stream(std::string events, bool last) {
  if (!streaming_) begin_stream();
  const bool chunked = request_.version() >= 11;
  std::string bytes =
      chunked ? fmt::format("{:x}\r\n{}\r\n", events.size(), events) : std::move(events);
  if (chunked && last) bytes += "0\r\n\r\n";
  queue(std::move(bytes), last);
}

void connection::queue(std::string bytes, bool last) {
  outbound_ += bytes;
  last_queued_ = last;
  if (writing_.empty()) write();
}

/// All that has come meanwhile goes out together. It is bounded by the answer's length.
void connection::write() {
  writing_.swap(outbound_);
  stream_.expires_after(shared_.options.write_limit);
  asio::async_write(stream_, asio::buffer(writing_),
                    [self = shared_from_this()](beast::error_code failed, std::size_t) {
                      self->written(failed);
                    });
}

void connection::written(beast::error_code failed) {
  writing_.clear();
  if (failed) return close();
  stream_.expires_never();
  if (!outbound_.empty()) return write();
  if (last_queued_) answered();
}

void connection::answered() {
  generation_.reset();
  deadline_.cancel();
  streaming_ = false;
  last_queued_ = false;
  if (std::exchange(answering_, false)) shared_.end_answer();
  if (unread_) return linger();
  if (!keep_alive_) return close();
  beast::error_code ignored;
  stream_.socket().cancel(ignored);  // the watch
  read_request();
}

}  // namespace cedar::http
