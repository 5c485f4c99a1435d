// Hosts of a test's own: network namespaces with cables between them and none to the world.
//
// The namespaces have no names; each lives as long as a process in it. The processes that hold them
// die with the test, whatever it dies of, and with the last process of a namespace goes its end of
// the cable, and with it the other.
#pragma once

#include <sys/types.h>

#include <boost/test/tree/decorator.hpp>
#include <future>
#include <string>
#include <vector>

namespace cedar::test {

/// Host n has device cable<n> with the address 10.77.0.<n + 1>.
class hosts {
 public:
  hosts(const hosts&) = delete;
  hosts& operator=(const hosts&) = delete;

  /// `words` as a command that runs on `host`: its program, and its arguments.
  static std::string enter();
  std::vector<std::string> on(int host, const std::vector<std::string>& words) const;

  /// What `work` returns, done by a thread on `host`: a socket that it opens stays there.
  template <class Work>
  auto at(int host, Work work) const {
    return std::async(std::launch::async,
                      [&] {
                        move_to(host);
                        return work();
                      })
        .get();
  }

 protected:
  /// Without devices. Fails the test case if it cannot.
  explicit hosts(std::size_t count);
  ~hosts();

  /// A cable of two devices, each on its host.
  void link(int host, const std::string& device, int peer_host, const std::string& peer) const;
  /// Runs `ip` there; it must succeed.
  void configure(int host, const std::vector<std::string>& arguments) const;
  /// Gives all devices their addresses, and waits until they carry.
  void bring_up() const;

 private:
  void await_carrier(int host) const;
  void move_to(int host) const;

  std::vector<pid_t> holders_;
};

/// Host 0 and host 1, and one cable between them.
class two_hosts final : public hosts {
 public:
  two_hosts();

  /// What host 0 sends is lost from now on, and nobody is told.
  void cut() const;
  /// Takes host 0's device down.
  void pull() const;
  /// Puts it up again.
  void plug() const;
};

/// Host 0 is a switch, too: hosts 1 and 2 are on cables to it, and reach each other through it.
class three_hosts final : public hosts {
 public:
  three_hosts();

  /// What hosts 1 and 2 send each other is lost from now on, and nobody is told; host 0 reaches
  /// both.
  void part() const;
  void join() const;

 private:
  void isolate(const char* on_or_off) const;
};

/// For a precondition: whether this process may create such hosts, or why not.
boost::test_tools::assertion_result can_have_two_hosts(boost::unit_test::test_unit_id);
/// The same for hosts behind a switch.
boost::test_tools::assertion_result can_have_three_hosts(boost::unit_test::test_unit_id);

}  // namespace cedar::test
