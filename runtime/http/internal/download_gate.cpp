#include "runtime/http/internal/download_gate.hpp"

#include <utility>

namespace cedar::http {

download_gate::turn::turn(download_gate& gate, std::function<void()> begin)
    : gate_(gate), begin_(std::move(begin)) {}

std::unique_ptr<download_gate::turn> download_gate::enter(std::function<void()> begin) {
  auto entered = std::make_unique<turn>(*this, std::move(begin));
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(entered.get());
  let_come();
  return entered;
}

void download_gate::leave(turn& gone) {
  const std::scoped_lock lock(mutex_);
  if (gone.come_)
    --fetching_;
  else
    waiting_.remove(&gone);
  let_come();
}

void download_gate::let_come() {
  while (fetching_ < at_once_max_ && !waiting_.empty()) {
    turn& next = *waiting_.front();
    waiting_.pop_front();
    ++fetching_;
    next.come_ = true;
    next.begin_();
  }
}

std::uint32_t download_gate::fetching() const {
  const std::scoped_lock lock(mutex_);
  return fetching_;
}

std::uint32_t download_gate::waiting() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::uint32_t>(waiting_.size());
}

}  // namespace cedar::http
