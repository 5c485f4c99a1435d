// Goal: a node joins only whom it shares a secret with, ends when it is told or left alone, and
// waits for nobody beyond its deadline. Method: `cedar node` against a controller of this test, a
// silent listener, and nobody.
#include "topology/launch/node.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <caf/io/all.hpp>

#include "actors/error_bridge.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"
#include "topology/launch/controller.hpp"
#include "topology/launch/event_queue.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace cedar::topology;

namespace {

struct joined_node {
  std::string name;
  agent_actor agent;
};

/// Where nodes report to, without the rest of a client.
struct control_plane {
  explicit control_plane(controller_settings settings = {}) {
    const std::string text(40, 's');
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    settings.secret = {bytes, bytes + text.size()};
    settings.nodes = {"node1", "node2"};
    settings.on_joined = [this](const std::string& node, const agent_actor& agent) {
      joined.push({node, agent});
    };
    settings.on_left = [this](const std::string& node, const caf::actor_addr&) { left.push(node); };
    settings.on_refused = [this](const std::string& why) { refused.push(why); };
    settings.on_fault = [](const actors::fault&) {};
    settings.on_lost = [](const std::string&, const std::string&, const error&, epoch_id) {};
    controller = spawn_controller(system, std::move(settings));
    const auto published = system.middleman().publish(controller, 0, "127.0.0.1");
    BOOST_REQUIRE(static_cast<bool>(published));
    port = *published;
  }
  ~control_plane() {
    caf::anon_send_exit(controller, caf::exit_reason::user_shutdown);
    controller = nullptr;
  }

  std::filesystem::path secret_file(char letter = 's') const {
    const auto file = folder.write(std::string("secret-") + letter, std::string(40, letter));
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    return file;
  }
  std::vector<std::string> node_arguments(const std::string& name,
                                          const std::filesystem::path& secret) const {
    return {"node",     "--join",       "127.0.0.1:" + std::to_string(port), "--name", name,
            "--secret", secret.string()};
  }
  agent_actor await_join(const std::string& name) {
    const auto news = joined.pop(patience);
    BOOST_REQUIRE(news.has_value());
    BOOST_TEST(news->name == name);
    return news->agent;
  }

  /// The next that is turned away, which the client hears of too.
  void check_refusal(const std::string& why) {
    const auto news = refused.pop(patience);
    BOOST_REQUIRE(news.has_value());
    BOOST_TEST(contains(*news, why), *news);
  }

  temporary_folder folder;
  event_queue<joined_node> joined;
  event_queue<std::string> left;
  event_queue<std::string> refused;
  system_config config{true};
  caf::actor_system system{config};
  controller_actor controller;
  std::uint16_t port = 0;
};

/// A port of this host where somebody accepts connections and says nothing.
struct silent_listener {
  silent_listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    BOOST_REQUIRE_EQUAL(::bind(socket, generic, sizeof address), 0);
    BOOST_REQUIRE_EQUAL(::listen(socket, 4), 0);
    socklen_t size = sizeof address;
    BOOST_REQUIRE_EQUAL(::getsockname(socket, generic, &size), 0);
    port = ntohs(address.sin_port);
  }
  ~silent_listener() { ::close(socket); }
  silent_listener(const silent_listener&) = delete;
  silent_listener& operator=(const silent_listener&) = delete;

  int socket;
  std::uint16_t port = 0;
};

void check_refused(const finished& ran, const std::string& why) {
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(contains(ran.errors, why), ran.errors);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(node)

BOOST_AUTO_TEST_CASE(ends_when_it_is_told) {
  control_plane here;
  program node(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file()));
  caf::anon_send(here.await_join("node1"), stop_atom::value);
  BOOST_REQUIRE(node.wait_end(2s));
  BOOST_TEST(node.code() == 0);
  BOOST_TEST(node.errors() == "");
  BOOST_TEST(contains(node.output(), "joined the client at 127.0.0.1:"), node.output());
  BOOST_TEST(contains(node.output(), "told to stop"), node.output());
}

BOOST_AUTO_TEST_CASE(ends_when_the_client_is_gone) {
  std::optional<control_plane> here(std::in_place);
  program node(CEDAR_PROGRAM, here->node_arguments("node1", here->secret_file()));
  here->await_join("node1");
  here.reset();
  BOOST_REQUIRE(node.wait_end(2s));
  BOOST_TEST(node.code() == 1);
  BOOST_TEST(contains(node.errors(), "the client is gone"), node.errors());
}

BOOST_AUTO_TEST_CASE(is_refused_without_the_secret) {
  control_plane here;
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file('x'))),
                "node 'node1' does not know the secret");
  here.check_refusal("node 'node1' does not know the secret");
  // Which does not keep the right one out.
  program node(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file()));
  here.await_join("node1");
}

BOOST_AUTO_TEST_CASE(is_refused_under_a_name_that_is_unknown_or_taken) {
  control_plane here;
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node7", here.secret_file())),
                "expects no node 'node7'");
  here.check_refusal("expects no node 'node7'");
  program node(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file()));
  const agent_actor first = here.await_join("node1");
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file())),
                "'node1' has joined already");
  here.check_refusal("'node1' has joined already");
  // Which is nothing to the first one.
  caf::anon_send(first, stop_atom::value);
  BOOST_REQUIRE(node.wait_end());
  BOOST_TEST(node.code() == 0);
}

BOOST_AUTO_TEST_CASE(is_refused_if_its_program_is_not_the_clients) {
  for (std::size_t item = 0; item < program_identity().size(); ++item) {
    controller_settings settings;
    const std::string own = program_identity().at(item);
    settings.identity.at(item) = "another " + own;
    control_plane here(std::move(settings));
    const std::string why =
        "node 'node1' has " + own + ", the client has another " + own + "; run the same version";
    check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file())), why);
    here.check_refusal(why);
  }
  // A client of a version that compares more.
  controller_settings settings;
  settings.identity.emplace_back("dialect 2");
  control_plane here(std::move(settings));
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file())),
                "has nothing of the kind, the client has dialect 2");
}

BOOST_AUTO_TEST_CASE(ends_when_the_client_does_not_go_on) {
  controller_settings settings;
  settings.start_limit = 200ms;
  control_plane here(std::move(settings));
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", here.secret_file())),
                "the client did not start this node within 200 ms (deadlines_ms.start)");
  here.await_join("node1");
  const auto left = here.left.pop(patience);
  BOOST_REQUIRE(left.has_value());
  BOOST_TEST(*left == "node1");
}

BOOST_AUTO_TEST_CASE(says_what_it_cannot_deploy) {
  control_plane here;
  program node(CEDAR_PROGRAM, here.node_arguments("node2", here.secret_file()));
  const agent_actor agent = here.await_join("node2");
  const caf::scoped_actor self{here.system};
  const auto ask = [&](const deployment& order) {
    error got;
    self->request(agent, patience, deploy_atom::value, order)
        .receive([](const std::string&) {},
                 [&](const caf::error& what) { got = actors::from_caf(here.system, what); });
    return got;
  };
  deployment order{"t.yaml", "cedar: [", checkpoint_of("cedar-tiny").string(), 0, 0, false, ""};
  BOOST_TEST(contains(ask(order).message, "t.yaml:1:"));
  order.text = topology_text({});
  const error other_model = ask(order);
  BOOST_TEST((other_model.code == errc::mismatch));
  BOOST_TEST(contains(other_model.message, "not the client's"), other_model.message);
  BOOST_TEST(contains(other_model.message, checkpoint_of("cedar-tiny").string()));
  order.model = "/nowhere";
  BOOST_TEST(contains(ask(order).message, "/nowhere"));
  // And it is not wired before it is deployed.
  error unwired;
  self->request(agent, patience, wire_atom::value, std::vector<std::string>{"a", "b"},
                std::uint32_t{1})
      .receive([](actors::bound_atom) {},
               [&](const caf::error& what) { unwired = actors::from_caf(here.system, what); });
  BOOST_TEST((unwired.code == errc::refused));
}

BOOST_AUTO_TEST_CASE(gives_up_where_nobody_listens_or_answers) {
  const control_plane here;
  const std::string secret = here.secret_file().string();
  std::uint16_t free_port = 0;
  {
    const silent_listener gone;
    free_port = gone.port;
  }
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port);
  check_refused(
      run(CEDAR_PROGRAM, {"node", "--join", nobody, "--name", "node1", "--secret", secret}),
      "client at " + nobody + ": nobody listens there");
  const silent_listener silent;
  const std::string quiet = "127.0.0.1:" + std::to_string(silent.port);
  const finished waited = run(CEDAR_PROGRAM, {"node", "--join", quiet, "--name", "node1",
                                              "--secret", secret, "--join-deadline", "300"});
  check_refused(waited, "client at " + quiet + ": no answer in time");
  BOOST_TEST(waited.took.count() >= 300);
}

BOOST_AUTO_TEST_CASE(refuses_secrets_that_are_missing_short_or_readable_by_others) {
  const control_plane here;
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", "/nowhere/secret")),
                "/nowhere/secret");
  const auto shorter = here.folder.write("short", "abc");
  std::filesystem::permissions(shorter, std::filesystem::perms::owner_read);
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", shorter)), "3 bytes");
  const auto open = here.folder.write("open", std::string(40, 's'));
  std::filesystem::permissions(open, std::filesystem::perms(0644));
  check_refused(run(CEDAR_PROGRAM, here.node_arguments("node1", open)), "chmod 600");
}

BOOST_AUTO_TEST_CASE(does_not_start_for_a_parent_that_is_gone) {
  const control_plane here;
  std::vector<std::string> arguments = here.node_arguments("node1", here.secret_file());
  arguments.insert(arguments.end(), {"--parent", "1"});  // which is not this process
  BOOST_TEST(run(CEDAR_PROGRAM, arguments).code == 1);
}

BOOST_AUTO_TEST_SUITE_END()
