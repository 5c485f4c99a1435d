// How many requests fetch images at once; the others wait, in their order. What bounds their wait
// is the time of their answers, and what bounds their number that of connections.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace cedar::http {

/// Thread-safe; outlives its turns.
class download_gate {
 public:
  explicit download_gate(std::uint32_t at_once_max) : at_once_max_(at_once_max) {}

  /// Waits, and then counts as fetching; whichever it does, it ends when it goes.
  class turn {
   public:
    turn(download_gate& gate, std::function<void()> begin);
    ~turn() { gate_.leave(*this); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    friend download_gate;

    download_gate& gate_;
    std::function<void()> begin_;
    bool come_ = false;  ///< guarded by the gate's mutex
  };

  /// `begin` is called once, when the turn has come, unless that goes before: in this call or in
  /// whose turn goes. The gate is locked then: it may only post.
  std::unique_ptr<turn> enter(std::function<void()> begin);

  std::uint32_t fetching() const;
  std::uint32_t waiting() const;

 private:
  void leave(turn& gone);
  /// Lets those in front come; the mutex is held.
  void let_come();

  const std::uint32_t at_once_max_;
  mutable std::mutex mutex_;
  std::uint32_t fetching_ = 0;
  std::list<turn*> waiting_;
};

}  // namespace cedar::http
