// Goal: a unit that dies of a defect, while its process lives, is named and made anew, and nothing
// else is. Method: a server whose checkpoint is damaged while it is mapped, as a bad disk would do
// it: a weight that is no number is what backends refuse to choose by. Then the file is repaired.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/integration/tools/serve/fault_watch.hpp"
#include "tests/integration/tools/serve/faults.hpp"

using namespace cedar::test;
using nlohmann::json;

namespace {

/// A copy of cedar-tiny, of which one weight can be replaced under the programs that have mapped
/// it.
class fragile_checkpoint {
 public:
  explicit fragile_checkpoint(const std::string& tensor) {
    std::filesystem::copy(checkpoint_of("cedar-tiny"), path(),
                          std::filesystem::copy_options::recursive);
    std::fstream file(path() / "model.safetensors", std::ios::in | std::ios::binary);
    std::uint64_t header_bytes = 0;
    file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
    std::string header(header_bytes, '\0');
    file.read(header.data(), static_cast<std::streamsize>(header.size()));
    const json entry = json::parse(header).at(tensor);
    BOOST_REQUIRE(entry.at("dtype") == "BF16");
    at_ = static_cast<std::streamoff>(sizeof header_bytes + header_bytes) +
          entry.at("data_offsets").at(0).get<std::streamoff>();
    file.seekg(at_);
    file.read(whole_.data(), whole_.size());
    BOOST_REQUIRE(file.good());
  }

  std::filesystem::path path() const { return folder_.path() / "cedar-tiny"; }
  void damage() const { write({'\xc0', '\x7f'}); }  // NaN in bf16, little endian
  void repair() const { write(whole_); }

 private:
  void write(const std::array<char, 2>& element) const {
    std::fstream file(path() / "model.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at_);
    file.write(element.data(), element.size());
    BOOST_REQUIRE(file.flush().good());
  }

  temporary_folder folder_;
  std::streamoff at_ = 0;
  std::array<char, 2> whole_{};
};

struct weight {
  const char* tensor;
  const char* unit;
  const char* node;

  std::string name() const {
    return std::string("unit '") + unit + "' on node '" + node + "': requirement failed: ";
  }
  friend std::ostream& operator<<(std::ostream& out, const weight& one) {
    return out << one.unit << " on " << one.node;
  }
};

const std::vector<weight> weights{{"layers.4.ffn.gate.weight", "stage0", "node0"},
                                  {"layers.7.ffn.gate.weight", "stage1", "node1"},
                                  {"head.weight", "head", "node1"}};

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_faults_of_units)

BOOST_DATA_TEST_CASE(are_named_and_pass_without_a_new_process,
                     boost::unit_test::data::make(weights), bad) {
  const fragile_checkpoint checkpoint(bad.tensor);
  server one({}, topology_options{}, checkpoint.path());
  const std::string before = one.completion(greedy("The fox", 12));
  const pid_t node1 = pid_of(one, "node1");
  http_client client(one.port);
  client.send("POST", "/v1/completions", endless().dump());
  client.wait_for("data: ");
  fault_watch watch(std::make_unique<http_client>(one.port), {"cedar_recoveries_total"});

  const auto fault = std::chrono::steady_clock::now();
  checkpoint.damage();
  const auto events = events_of(client.receive().body);
  const auto in_stream = std::chrono::steady_clock::now();
  const json error = json::parse(events.back()).at("error");
  BOOST_TEST(contains(error.at("message"), bad.name()), events.back());
  BOOST_TEST(contains(error.at("message"), " is NaN"), events.back());
  BOOST_TEST(error.at("code") == "defect");
  BOOST_TEST(one.process.wait_errors("the pipeline has failed: " + bad.name()),
             one.process.errors());
  const auto in_log = std::chrono::steady_clock::now();
  // A new unit takes no time to make, so /ready may have missed it; but pauses grow.
  while (!watch.over() && std::chrono::steady_clock::now() < fault + patience)
    BOOST_TEST(one.post("/v1/completions", greedy("The fox", 12)).status >= 500);
  const auto seen = watch.wait();
  BOOST_TEST(contains(seen.problem, bad.name()), seen.problem);
  BOOST_TEST(one.get("/health").status == 200);

  checkpoint.repair();
  wait_ready(one);
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  std::ostringstream what;
  what << bad;
  tell_times(what.str(), fault, in_stream, seen, in_log);
  BOOST_TEST(pid_of(one, "node1") == node1);
  BOOST_TEST(one.metric("cedar_node_losses_total{node=\"node1\"}") == 0);
  BOOST_TEST(one.wait_metric("cedar_kv_positions", 0));
  stop(one);
}

BOOST_AUTO_TEST_CASE(of_a_server_without_a_topology_are_named_and_pass) {
  const fragile_checkpoint checkpoint("layers.7.ffn.gate.weight");
  server one({}, std::nullopt, checkpoint.path());
  const std::string before = one.completion(greedy("The fox", 12));
  http_client client(one.port);
  client.send("POST", "/v1/completions", endless().dump());
  client.wait_for("data: ");
  checkpoint.damage();
  const json error = json::parse(events_of(client.receive().body).back()).at("error");
  BOOST_TEST(contains(error.at("message"), "engine: requirement failed: "), error.dump());
  BOOST_TEST(error.at("code") == "defect");
  BOOST_TEST(one.post("/v1/completions", greedy("The fox", 12)).status == 500);
  checkpoint.repair();
  BOOST_TEST(one.completion(greedy("The fox", 12)) == before);
  BOOST_TEST(one.metric("cedar_recoveries_total") == 2);
  BOOST_TEST(one.wait_metric("cedar_kv_positions", 0));
  stop(one);
}

BOOST_AUTO_TEST_SUITE_END()
