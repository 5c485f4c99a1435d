// Two hosts of a test's own: network namespaces with one cable between them and none to the world.
//
// The namespaces have no names; each lives as long as a process in it. The processes that hold them
// die with the test, whatever it dies of, and with the last process of a namespace goes its end of
// the cable, and with it the other.
#pragma once

#include <sys/types.h>

#include <boost/test/tree/decorator.hpp>
#include <string>
#include <vector>

namespace cedar::test {

class two_hosts {
 public:
  /// 10.77.0.1 on device cable0, and 10.77.0.2 on cable1. Fails the test case if it cannot.
  two_hosts();
  ~two_hosts();
  two_hosts(const two_hosts&) = delete;
  two_hosts& operator=(const two_hosts&) = delete;

  /// `words` as a command that runs on host 0 or 1: its program, and its arguments.
  static std::string enter();
  std::vector<std::string> on(int host, const std::vector<std::string>& words) const;

  /// What host 0 sends is lost from now on, and nobody is told.
  void cut() const;
  /// Takes host 0's device down.
  void pull() const;
  /// Puts it up again.
  void plug() const;

 private:
  void configure(int host, const std::vector<std::string>& arguments) const;
  void await_carrier(int host) const;

  pid_t holders_[2] = {-1, -1};
};

/// For a precondition: whether this process may create such hosts, or why not.
boost::test_tools::assertion_result can_have_two_hosts(boost::unit_test::test_unit_id);

}  // namespace cedar::test
