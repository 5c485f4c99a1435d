// Goal: a child process is reported with how it ended, and never outlives its owner. Method: shells
// that end, sleep, or are stopped.
#include "topology/launch/child_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/support/program.hpp"

using namespace cedar::topology;
using namespace cedar::test;

namespace {

child_process shell(const std::string& command) {
  auto started = child_process::start("/bin/sh", {"-c", command});
  BOOST_REQUIRE(started.has_value());
  return std::move(*started);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(child)

BOOST_AUTO_TEST_CASE(reports_how_it_ended) {
  child_process normal = shell("exit 3");
  BOOST_REQUIRE(normal.wait(patience));
  BOOST_TEST(*normal.ended() == "exit status 3");
  child_process killed = shell("kill -KILL $$");
  BOOST_REQUIRE(killed.wait(patience));
  BOOST_TEST(killed.ended()->starts_with("signal 9"));
}

BOOST_AUTO_TEST_CASE(is_waited_for_within_the_limit) {
  child_process sleeper = shell("exec sleep 1000");
  BOOST_TEST(!sleeper.wait(20ms));
  BOOST_TEST(!sleeper.ended().has_value());
  sleeper.kill();
  BOOST_TEST(sleeper.ended()->starts_with("signal 9"));
}

BOOST_AUTO_TEST_CASE(ends_with_its_owner_even_if_it_is_stopped) {
  {
    child_process stopped = shell("exec sleep 1000");
    BOOST_REQUIRE(::kill(stopped.pid(), SIGSTOP) == 0);
    child_process moved = std::move(stopped);
    BOOST_TEST(children_of(::getpid()).size() == 1U);
  }
  BOOST_TEST(children_of(::getpid()).empty());
}

BOOST_AUTO_TEST_CASE(leads_a_group_of_its_own_with_no_signal_blocked) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  child_process child = shell("exec sleep 1000");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  BOOST_TEST(::getpgid(child.pid()) == child.pid());
  BOOST_REQUIRE(::kill(child.pid(), SIGTERM) == 0);
  BOOST_REQUIRE(child.wait(patience));
  BOOST_TEST(child.ended()->starts_with("signal 15"));
}

BOOST_AUTO_TEST_CASE(that_cannot_start_is_an_error) {
  const auto none = child_process::start("/nowhere/program", {});
  BOOST_REQUIRE(!none.has_value());
  BOOST_TEST((none.error().code == cedar::errc::io));
  BOOST_TEST(contains(none.error().message, "/nowhere/program"));
}

BOOST_AUTO_TEST_SUITE_END()
