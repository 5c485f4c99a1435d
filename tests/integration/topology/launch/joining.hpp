// Runs whose nodes a person starts: what the tests of joining share.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cedar::test {

/// `text` with the first `from`, which it must have, replaced by `to`.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// A folder with a secret and a topology, and the commands of the people at its hosts.
class joining {
 public:
  /// Node0 is the client; node1 and each further one of `nodes` joins. `more` are lines of the
  /// topology, e.g. deadlines.
  explicit joining(std::size_t nodes = 2, const std::string& more = {});

  const std::filesystem::path& folder() const { return folder_.path(); }
  const std::string& topology() const { return text_; }
  void write_topology(const std::string& text);
  /// A secret that is this topology's only for the letter 's'.
  std::filesystem::path secret(char letter = 's') const;

  /// Arguments of `cedar serve` at a free port of this host.
  std::vector<std::string> serve_arguments() const;
  /// Arguments of `cedar run` with a short prompt.
  std::vector<std::string> run_arguments(std::uint32_t new_tokens = 12) const;
  /// The command that `client` prints for `name`, without the program; it must come.
  static std::vector<std::string> node_arguments(program& client, const std::string& name);
  /// What `cedar run` answers without a topology.
  static std::string answer(std::uint32_t new_tokens = 12);

 private:
  temporary_folder folder_;
  std::string text_;
};

/// The port that a server listens at; it must.
std::string port_of(program& server);
/// The text in an answer that is not streamed.
std::string text_of(const std::string& answer);

/// `arguments` with the value after `option` replaced.
std::vector<std::string> with_option(std::vector<std::string> arguments, const std::string& option,
                                     const std::string& value);

}  // namespace cedar::test
