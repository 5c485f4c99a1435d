#include "tools/cedar/load_generator.hpp"

#include <memory>
#include <utility>

namespace cedar::tools {

namespace {

using clock = std::chrono::steady_clock;

}  // namespace

void load_generator::watch(std::chrono::milliseconds interval, std::function<void()> look) {
  look_interval_ = interval;
  look_ = std::move(look);
}

bool load_generator::is_over() const {
  return begun_ >= shape_.requests_max ||
         (shape_.duration && clock::now() - begin_ >= *shape_.duration);
}

void load_generator::begin_one() {
  const std::size_t body = begun_++ % bodies_.size();
  ++running_;
  // SHARED: by the three events of one request, until the last.
  const auto reader = std::make_shared<answer_reader>(clock::now());
  http::client_events events;
  events.on_status = [reader](unsigned status) { reader->take_status(status); };
  events.on_bytes = [reader](std::string_view bytes) { reader->take_bytes(bytes, clock::now()); };
  events.on_end = [this, reader, body](const result<void>& how) {
    last_end_ = clock::now();
    --running_;
    on_answer(body, reader->finish(how, last_end_));
    if (!shape_.rate && !is_over()) begin_one();
  };
  client_.send({"/v1/completions", bodies_[body], shape_.deadline}, std::move(events));
}

void load_generator::begin_at_arrival() {
  if (begun_ >= shape_.requests_max) return;
  const auto arrival = arrivals_->next();
  if (shape_.duration && arrival >= *shape_.duration) return;
  client_.at(begin_ + std::chrono::duration_cast<clock::duration>(arrival), [this] {
    begin_one();
    begin_at_arrival();
  });
}

void load_generator::look_again() {
  client_.at(clock::now() + look_interval_, [this] {
    if (running_ == 0 && is_over()) return;
    look_();
    look_again();
  });
}

clock::duration load_generator::run() {
  begin_ = last_end_ = clock::now();
  if (shape_.rate) {
    arrivals_.emplace(*shape_.rate, shape_.seed);
    begin_at_arrival();
  } else {
    for (std::uint32_t i = 0; i < shape_.concurrency && !is_over(); ++i) begin_one();
  }
  if (look_) look_again();
  client_.run();
  return last_end_ - begin_;
}

}  // namespace cedar::tools
