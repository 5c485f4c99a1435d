// Goal: a topology file becomes a document with the place of every value, or all of its mistakes.
// Method: small files written out here; expected places are counted by hand in them.
#include "topology/document/document.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace cedar::topology;

namespace {

const std::string minimal = R"(cedar: 1
model: {path: ../models/cedar-tiny}
nodes:
  here: {}
devices:
  cpu: {node: here}
units:
  scheduler: {node: here}
  embedding: {device: cpu}
  stages:
    - {name: all, layers: 0-11, device: cpu}
  head: {device: cpu}
)";

/// `text` with the first `from` replaced by `to`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "the file lacks " << from);
  return text.replace(at, from.size(), to);
}

document good(const std::string& text) {
  auto parsed = parse_document(text, "dir/test.yaml");
  BOOST_REQUIRE_MESSAGE(parsed, (parsed ? "" : to_string(parsed.error())));
  return *parsed;
}

/// The mistakes, one "line:column message | hint" each.
std::vector<std::string> bad(const std::string& text) {
  const auto parsed = parse_document(text, "dir/test.yaml");
  BOOST_REQUIRE(!parsed);
  std::vector<std::string> out;
  for (const diagnostic& what : parsed.error()) {
    BOOST_TEST(what.file == "dir/test.yaml");
    out.push_back(std::to_string(what.line) + ":" + std::to_string(what.column) + " " +
                  what.message + (what.hint.empty() ? "" : " | " + what.hint));
  }
  return out;
}

void expect(const std::string& text, const std::vector<std::string>& mistakes) {
  const auto found = bad(text);
  BOOST_TEST(found == mistakes, boost::test_tools::per_element());
}

void at(const position& where, std::uint32_t line, std::uint32_t column) {
  BOOST_TEST(where.line == line);
  BOOST_TEST(where.column == column);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(topology_document)

BOOST_AUTO_TEST_CASE(reads_a_minimal_file_with_defaults) {
  const document d = good(minimal);
  BOOST_TEST(d.model_path.value == "../models/cedar-tiny");
  at(d.model_path.where, 2, 15);
  BOOST_REQUIRE(d.nodes.size() == 1U);
  BOOST_TEST(d.nodes[0].name.value == "here");
  at(d.nodes[0].name.where, 4, 3);
  BOOST_TEST(d.nodes[0].address.value == "127.0.0.1");
  BOOST_TEST(!d.nodes[0].address.given);
  BOOST_TEST(!d.nodes[0].model_path.given);
  BOOST_TEST(d.nodes[0].start.value == "spawn");
  BOOST_TEST(!d.control.listen.given);
  BOOST_REQUIRE(d.devices.size() == 1U);
  BOOST_TEST(d.devices[0].kind.value == "cpu");
  BOOST_TEST(d.devices[0].threads.value == 1U);
  BOOST_TEST(d.devices[0].node.value == "here");
  at(d.devices[0].node.where, 6, 15);
  BOOST_TEST(d.client.value == "here");
  BOOST_TEST(!d.client.given);
  BOOST_TEST(!d.units.engram);
  BOOST_REQUIRE(d.units.stages.size() == 1U);
  BOOST_TEST(d.units.stages[0].name.value == "all");
  BOOST_TEST((d.units.stages[0].layers.value == layer_range{0, 11}));
  at(d.units.stages[0].layers.where, 11, 27);
  BOOST_TEST(d.mode.value == "exact");
  BOOST_TEST(!d.mode.given);
  BOOST_TEST(d.limits.rows_per_step.value == 128U);
  BOOST_TEST(d.limits.requests.value == 16U);
  BOOST_TEST(d.limits.context.value == 2048U);
  BOOST_TEST(d.limits.steps_in_flight.value == 2U);
  BOOST_TEST(!d.limits.context.given);
  BOOST_TEST(d.limits.prefill_rows.value == 128U);
  BOOST_TEST(!d.limits.kv_positions.given);
  BOOST_TEST(d.transport.kind.value == "ucx");
  BOOST_TEST(d.transport.tls.empty());
  BOOST_TEST(d.transport.devices.empty());
  BOOST_TEST(d.deadlines.start.value == 20000U);
  BOOST_TEST(d.deadlines.step.value == 30000U);
  BOOST_TEST(d.deadlines.heartbeat_interval.value == 200U);
  BOOST_TEST(d.deadlines.heartbeat_lost.value == 1000U);
  BOOST_TEST(d.deadlines.drain.value == 5000U);
  BOOST_TEST(!d.security.secret_file.given);
  BOOST_TEST(!d.security.allow_remote.value);
}

BOOST_AUTO_TEST_CASE(reads_every_key) {
  const document d = good(R"(cedar: 1
model:
  path: "models/with blank"
nodes:
  front: {address: 127.0.0.1, model_path: /a}
  back: {address: "::1", start: join}
client: back
devices:
  front-cpu: {node: front, kind: reference}
  back-cpu: {node: back, kind: cpu, threads: 6, index: 4}
units:
  scheduler: {node: back}
  embedding: {device: front-cpu}
  engram: {device: front-cpu}
  stages:
    - name: encoder
      layers: 0-5
      device: front-cpu
    - {name: last, layers: 6, device: back-cpu}
  head: {device: back-cpu}
limits: {rows_per_step: 64, requests: 3, context: 4096, steps_in_flight: 5}
transport: {kind: loopback, tls: [posix, tcp], devices: [lo, eth0]}
deadlines_ms: {start: 1, step: 2, heartbeat_interval: 3, heartbeat_lost: 4, drain: 5}
control: {listen: "front:7000"}
security: {secret_file: secret, allow_remote: true}
mode: bounded
)");
  BOOST_TEST(d.limits.prefill_rows.value == 64U);  // as rows_per_step
  const document tuned = good(minimal + "limits: {prefill_rows: 9, kv_positions: 4294967295}\n");
  BOOST_TEST(tuned.limits.prefill_rows.value == 9U);
  BOOST_TEST(tuned.limits.kv_positions.value == 4294967295U);
  BOOST_TEST(d.model_path.value == "models/with blank");
  BOOST_TEST(d.nodes[0].model_path.value == "/a");
  BOOST_TEST(d.nodes[1].address.value == "::1");
  at(d.nodes[1].address.where, 6, 19);
  BOOST_TEST(d.nodes[1].start.value == "join");
  at(d.nodes[1].start.where, 6, 33);
  BOOST_TEST(d.client.value == "back");
  BOOST_TEST(d.client.given);
  at(d.client.where, 7, 9);
  BOOST_TEST(d.devices[0].kind.value == "reference");
  BOOST_TEST(d.devices[1].threads.value == 6U);
  at(d.devices[1].threads.where, 10, 46);
  BOOST_TEST(d.devices[1].index.value == 4U);
  at(d.devices[1].index.where, 10, 56);
  BOOST_TEST(!d.devices[0].index.given);
  BOOST_TEST(d.units.scheduler_node.value == "back");
  BOOST_TEST(d.units.embedding.device.value == "front-cpu");
  BOOST_REQUIRE(d.units.engram);
  BOOST_TEST(d.units.engram->device.value == "front-cpu");
  BOOST_REQUIRE(d.units.stages.size() == 2U);
  BOOST_TEST(d.units.stages[0].name.value == "encoder");
  at(d.units.stages[0].layers.where, 17, 15);
  BOOST_TEST((d.units.stages[1].layers.value == layer_range{6, 6}));
  BOOST_TEST(d.units.head.device.value == "back-cpu");
  BOOST_TEST(d.limits.rows_per_step.value == 64U);
  BOOST_TEST(d.limits.requests.value == 3U);
  BOOST_TEST(d.limits.context.value == 4096U);
  BOOST_TEST(d.limits.steps_in_flight.value == 5U);
  BOOST_TEST(d.transport.kind.value == "loopback");
  BOOST_REQUIRE(d.transport.tls.size() == 2U);
  BOOST_TEST(d.transport.tls[0].value == "posix");
  BOOST_TEST(d.transport.tls[1].value == "tcp");
  BOOST_REQUIRE(d.transport.devices.size() == 2U);
  at(d.transport.devices[1].where, 22, 62);
  BOOST_TEST(d.deadlines.start.value == 1U);
  BOOST_TEST(d.deadlines.step.value == 2U);
  BOOST_TEST(d.deadlines.heartbeat_interval.value == 3U);
  BOOST_TEST(d.deadlines.heartbeat_lost.value == 4U);
  BOOST_TEST(d.deadlines.drain.value == 5U);
  BOOST_TEST(d.control.listen.value == "front:7000");
  at(d.control.listen.where, 24, 19);
  BOOST_TEST(d.security.secret_file.value == "secret");
  BOOST_TEST(d.mode.value == "bounded");
  at(d.mode.where, 26, 7);
  BOOST_TEST(d.security.allow_remote.value);
}

BOOST_AUTO_TEST_CASE(reports_all_mistakes_at_once_in_order_of_place) {
  expect(R"(cedar: 2
nodes:
  here: {adress: 127.0.0.1}
devices:
  cpu: {kind: cpu}
units:
  scheduler: {node: [here]}
  embedding: cpu
  stages:
    - {name: all, layers: 5-0, device: cpu}
limits: {rows_per_step: 0, requests: many, context: 99999999999999999999}
transports: {}
)",
         {"1:8 format version 2 is unknown | this program reads version 1",
          "3:10 unknown key 'adress' in 'nodes.here' | did you mean 'address'?",
          "5:8 'devices.cpu.node' is missing | write node: NODE, the process that owns the device",
          "7:3 'units.head' is missing | write head: {device: DEVICE}",
          "7:21 'units.scheduler.node' must be a text, not a list",
          "8:14 'units.embedding' must be a mapping (key: value), not 'cpu'",
          "10:27 'units.stages[0].layers' runs backwards: '5-0' | write layers: 0-5",
          "11:25 'limits.rows_per_step' is '0'; it may be 1 to 65536",
          "11:38 'limits.requests' must be a whole number, not 'many'",
          "11:53 'limits.context' is '99999999999999999999'; it may be 1 to 16777216",
          "12:1 unknown key 'transports' | did you mean 'transport'?"});
}

BOOST_AUTO_TEST_CASE(names_every_missing_required_key) {
  expect("model: {}\n",
         {"1:1 'cedar' is missing | write cedar: 1 (the version of this format)",
          "1:1 'nodes' is missing | write nodes: {NAME: {address: 127.0.0.1}}",
          "1:1 'devices' is missing | write devices: {NAME: {node: NODE, kind: cpu}}",
          "1:1 'units' is missing | write units: with scheduler, embedding, stages, head, and "
          "engram if the model has Engram modules"});
}

BOOST_AUTO_TEST_CASE(reports_malformed_yaml_with_its_place) {
  const auto found = bad("cedar: 1\nnodes: {here: {\n");
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0].find("3:1 this is not YAML: ") == 0U);
  BOOST_TEST(bad("cedar: 1\n\tnodes: x\n")[0].find("2:") == 0U);
  BOOST_TEST(bad("nodes: \"\\\x01\"\n")[0] ==
             "1:11 this is not YAML: unknown escape character: \\x01");
  BOOST_TEST(bad("nodes: *nowhere\n")[0].find("1:8 this is not YAML: ") == 0U);
}

BOOST_AUTO_TEST_CASE(reports_an_empty_file_a_list_and_a_second_document) {
  const std::string empty =
      "1:1 the file is empty | configs/topologies/README.md shows what to write";
  expect("", {empty});
  expect("# only a comment\n", {empty});
  expect("- cedar\n", {"1:1 the file must be a mapping (key: value), not a list"});
  expect(minimal + "---\nother: 1\n", {"13:1 the file holds a second document | one file describes "
                                       "one topology: remove the '---'"});
}

BOOST_AUTO_TEST_CASE(does_not_loop_on_what_yaml_cpp_takes_for_endless_documents) {
  expect(", cedar: 1\n", {"1:1 this is not YAML: nothing can begin like this"});
  expect("# comment\n, x\n", {"2:1 this is not YAML: nothing can begin like this"});
}

BOOST_AUTO_TEST_CASE(reports_duplicate_keys_at_the_second) {
  expect(with(minimal, "  here: {}\n", "  here: {}\n  here: {}\n"),
         {"5:3 'here' stands twice; the first is in line 4"});
  expect(minimal + "cedar: 1\n", {"13:1 'cedar' stands twice; the first is in line 1"});
  expect(minimal + "transport: {tls: [tcp, self, tcp]}\n",
         {"13:30 'transport.tls' names 'tcp' twice"});
}

BOOST_AUTO_TEST_CASE(keeps_numbers_words_and_flags_apart) {
  expect(minimal +
             "limits: {requests: \"4\", context: 1.5, rows_per_step: 0x10, steps_in_flight: -1}\n",
         {"13:20 'limits.requests' must be a whole number, not '4' (in quotes)",
          "13:34 'limits.context' must be a whole number, not '1.5'",
          "13:54 'limits.rows_per_step' must be a whole number, not '0x10'",
          "13:77 'limits.steps_in_flight' is '-1'; it may be 1 to 64"});
  expect(minimal + "security: {allow_remote: yes}\n",
         {"13:26 'security.allow_remote' must be true or false, not 'yes'"});
  expect(minimal + "transport: {tls: tcp, devices: []}\n",
         {"13:18 'transport.tls' must be a list of words, not 'tcp' | write tls: [first, second]",
          "13:32 'transport.devices' must be a list of words, not a list | write devices: [first, "
          "second]"});
  expect(with(minimal, "{path: ../models/cedar-tiny}", "{path: }"),
         {"2:15 'model.path' must be a text, not nothing"});
}

BOOST_AUTO_TEST_CASE(accepts_numbers_at_their_bounds_only) {
  BOOST_TEST(good(minimal + "limits: {steps_in_flight: 64}\n").limits.steps_in_flight.value == 64U);
  BOOST_TEST(good(minimal + "limits: {steps_in_flight: 1}\n").limits.steps_in_flight.value == 1U);
  bad(minimal + "limits: {steps_in_flight: 65}\n");
  bad(minimal + "limits: {steps_in_flight: 0}\n");
  const auto threads = [](const std::string& count) {
    return with(minimal, "cpu: {node: here}", "cpu: {node: here, threads: " + count + "}");
  };
  BOOST_TEST(good(threads("256")).devices[0].threads.value == 256U);
  expect(threads("0"), {"6:30 'devices.cpu.threads' is '0'; it may be 1 to 256"});
  expect(threads("257"), {"6:30 'devices.cpu.threads' is '257'; it may be 1 to 256"});
}

BOOST_AUTO_TEST_CASE(reads_lists_of_cores_strictly) {
  const auto device = [](const std::string& rest) {
    return with(minimal, "cpu: {node: here}", "cpu: {node: here, " + rest + "}");
  };
  const auto cores = [&](const std::string& list) {
    return good(device("cores: " + list)).devices[0].cores.value;
  };
  using numbers = std::vector<std::uint32_t>;
  BOOST_TEST(cores("0-3") == (numbers{0, 1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(cores("7") == (numbers{7}), boost::test_tools::per_element());
  BOOST_TEST(cores("'8,0-1,1-2'") == (numbers{0, 1, 2, 8}), boost::test_tools::per_element());
  BOOST_TEST(cores("1023") == (numbers{1023}), boost::test_tools::per_element());
  BOOST_TEST(good(device("cores: 0-3")).devices[0].threads.value == 4U);
  BOOST_TEST(good(device("cores: 0-3, threads: 2")).devices[0].threads.value == 2U);
  BOOST_TEST(good(device("threads: 2, cores: 0-3")).devices[0].threads.value == 2U);
  BOOST_TEST(good(device("cores: 0-999")).devices[0].threads.value == 256U);
  for (const std::string list : {"'0,'", "',0'", "0-", "-1", "3-1", "0-1-2", "a", "0..3", "1024",
                                 "[0, 1]", "''", "'0, 1'"}) {
    const auto found = bad(device("cores: " + list));
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].find("6:28 'devices.cpu.cores' must be a list of numbers up to 1023") == 0U,
               list << ": " << found[0]);
  }
  BOOST_TEST(good(device("numa: 0, nice: 19")).devices[0].nice.value == 19U);
  expect(device("nice: 20"), {"6:27 'devices.cpu.nice' is '20'; it may be 0 to 19"});
  expect(device("nice: -1"), {"6:27 'devices.cpu.nice' is '-1'; it may be 0 to 19"});
}

BOOST_AUTO_TEST_CASE(reads_layer_ranges_strictly) {
  for (const std::string text :
       {"0-", "-5", "0-5-7", "a-b", "0 - 5", "0..5", "0-100000", "''", "[0, 5]"}) {
    const auto found = bad(with(minimal, "0-11", text));
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(
        found[0].find("11:27 'units.stages[0].layers' must be a range of layers, not ") == 0U,
        text << ": " << found[0]);
  }
}

BOOST_AUTO_TEST_CASE(refuses_names_that_no_command_line_could_carry) {
  const std::string long_name(64, 'n');
  expect(
      with(minimal, "  here: {}", "  'two words': {}"),
      {"4:3 'two words' is no name for a node | use letters, digits, '-', '_' and '.', at most 63 "
       "of them"});
  BOOST_TEST(bad(with(minimal, "  cpu: ", "  " + long_name + ": ")).size() == 1U);
  BOOST_TEST(bad(with(minimal, "name: all", "name: a/b")).size() == 1U);
  good(with(minimal, "name: all", "name: " + long_name.substr(1)));
}

BOOST_AUTO_TEST_CASE(asks_for_at_least_one_node_and_one_stage) {
  expect(with(minimal, "nodes:\n  here: {}\n", "nodes: {}\n"),
         {"3:8 'nodes' names no node | write nodes: {NAME: {address: 127.0.0.1}}"});
  expect(with(minimal, "devices:\n  cpu: {node: here}\n", "devices: {}\n"),
         {"5:10 'devices' names no device | write devices: {NAME: {node: NODE, kind: cpu}}"});
  const std::string stages = "  stages:\n    - {name: all, layers: 0-11, device: cpu}\n";
  expect(
      with(minimal, stages, "  stages: []\n"),
      {"10:11 'units.stages' must be a list of stages, not an empty one | write stages:, a list of "
       "{name: NAME, layers: FIRST-LAST, device: DEVICE}"});
}

BOOST_AUTO_TEST_CASE(reads_shards_of_engram_tables) {
  const auto with_engram = [](const std::string& list) {
    return with(minimal, "  head:", "  engram:" + list + "\n  head:");
  };
  const document d =
      good(with_engram("\n    - {name: a, layer: 1, rows: 0-999, device: cpu}\n"
                       "    - {name: b, layer: 1, rows: 1000-, device: cpu}\n"
                       "    - {name: c, layer: 4, rows: 7, device: cpu}\n"
                       "    - {name: d, layer: 5, device: cpu}"));
  BOOST_TEST(!d.units.engram);
  const auto& shards = d.units.engram_shards;
  at(shards.where, 13, 5);
  BOOST_REQUIRE(shards.value.size() == 4U);
  BOOST_TEST(shards.value[0].name.value == "a");
  BOOST_TEST(shards.value[0].layer.value == 1U);
  BOOST_TEST((shards.value[0].rows.value == row_range{0, 999}));
  at(shards.value[0].rows.where, 13, 33);
  BOOST_TEST((shards.value[1].rows.value == row_range{1000, {}}));
  BOOST_TEST((shards.value[2].rows.value == row_range{7, 7}));
  BOOST_TEST(!shards.value[3].rows.given);
  BOOST_TEST(shards.value[3].device.value == "cpu");
  expect(
      with_engram(" []"),
      {"12:11 'units.engram' must name at least one shard | write engram: {device: DEVICE}, or a "
       "list of {name: NAME, layer: LAYER, rows: FIRST-LAST, device: DEVICE}"});
  expect(
      with_engram("\n    - {rows: 9-3, devices: cpu}\n"
                  "    - {name: b, layer: one, rows: -3, device: cpu}"),
      {"13:7 'units.engram[0].name' is missing | write name: NAME",
       "13:7 'units.engram[0].layer' is missing | write layer: LAYER, the one after the Engram "
       "module",
       "13:7 'units.engram[0].device' is missing | write device: DEVICE",
       "13:14 'units.engram[0].rows' runs backwards: '9-3' | write rows: 3-9",
       "13:19 unknown key 'devices' in 'units.engram[0]' | did you mean 'device'?",
       "14:24 'units.engram[1].layer' must be a whole number, not 'one'",
       "14:35 'units.engram[1].rows' must be a range of rows, not '-3' | write rows: FIRST-LAST, "
       "or rows: FIRST- up to the last"});
}

BOOST_AUTO_TEST_CASE(reads_slices_of_experts) {
  const auto with_experts = [](const std::string& list) {
    return with(minimal, "  head:", "  experts:" + list + "\n  head:");
  };
  const document d =
      good(with_experts("\n    - {name: a, layers: 2-5, experts: '0-2,7', device: cpu}\n"
                        "    - {name: b, layers: 6, device: cpu}"));
  BOOST_REQUIRE(d.units.experts.size() == 2U);
  BOOST_TEST(d.units.experts[0].name.value == "a");
  BOOST_TEST((d.units.experts[0].layers.value == layer_range{2, 5}));
  BOOST_TEST(d.units.experts[0].experts.value == (std::vector<std::uint32_t>{0, 1, 2, 7}),
             boost::test_tools::per_element());
  BOOST_TEST(d.units.experts[0].experts.given);
  BOOST_TEST(!d.units.experts[1].experts.given);
  BOOST_TEST(good(with_experts(" []")).units.experts.empty());
  expect(with_experts(" all"),
         {"12:12 'units.experts' must be a list of slices, not 'all' | write experts:, a list of "
          "{name: NAME, layers: FIRST-LAST, experts: FIRST-LAST, device: DEVICE}"});
  expect(with_experts("\n    - {experts: 3-1, devices: cpu}"),
         {"13:7 'units.experts[0].name' is missing | write name: NAME",
          "13:7 'units.experts[0].layers' is missing | write layers: FIRST-LAST, for example "
          "layers: 0-5",
          "13:7 'units.experts[0].device' is missing | write device: DEVICE",
          "13:17 'units.experts[0].experts' must be a list of numbers up to 65535, not '3-1' | "
          "write experts: FIRST-LAST, or a list of such, for example experts: 0-3,8",
          "13:22 unknown key 'devices' in 'units.experts[0]' | did you mean 'device'?"});
}

BOOST_AUTO_TEST_CASE(reads_indexers) {
  const auto with_indexers = [](const std::string& list) {
    return with(minimal, "  head:", "  indexers:" + list + "\n  head:");
  };
  const document d = good(with_indexers("\n    - {name: a, owner: 6, device: cpu}"));
  BOOST_REQUIRE(d.units.indexers.size() == 1U);
  BOOST_TEST(d.units.indexers[0].name.value == "a");
  BOOST_TEST(d.units.indexers[0].owner.value == 6U);
  BOOST_TEST(d.units.indexers[0].device.value == "cpu");
  BOOST_TEST(good(with_indexers(" []")).units.indexers.empty());
  expect(with_indexers(" all"),
         {"12:13 'units.indexers' must be a list of shards, not 'all' | write indexers:, a list of "
          "{name: NAME, owner: LAYER, device: DEVICE}"});
  expect(with_indexers("\n    - {devices: cpu}"),
         {"13:7 'units.indexers[0].name' is missing | write name: NAME",
          "13:7 'units.indexers[0].owner' is missing | write owner: LAYER, the layer that creates "
          "the index keys",
          "13:7 'units.indexers[0].device' is missing | write device: DEVICE",
          "13:8 unknown key 'devices' in 'units.indexers[0]' | did you mean 'device'?"});
}

BOOST_AUTO_TEST_CASE(shows_bytes_of_the_file_only_escaped_and_shortened) {
  const auto found = bad(minimal + "\"k\\x01\\u00e9" + std::string(100, 'x') + "\": 1\n");
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0].find("unknown key 'k\\x01\\xc3\\xa9xxx") != std::string::npos);
  BOOST_TEST(found[0].find("x'... | ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(prints_a_diagnostic_as_compilers_do) {
  BOOST_TEST(to_string(diagnostic{"a.yaml", 3, 7, "wrong", ""}) == "a.yaml:3:7: wrong");
  BOOST_TEST(to_string(std::vector{diagnostic{"a.yaml", 3, 7, "wrong", "do this"}}) ==
             "a.yaml:3:7: wrong\n  hint: do this\n");
}

BOOST_AUTO_TEST_CASE(resolves_paths_beside_the_file) {
  document d = good(minimal);
  BOOST_TEST(d.resolve(d.model_path.value) == std::filesystem::path("models/cedar-tiny"));
  BOOST_TEST(d.resolve("/abs/x") == std::filesystem::path("/abs/x"));
  d.nodes[0].model_path = {"/own", {}, true};
  override_model(d, "elsewhere");
  BOOST_TEST(d.resolve(d.model_path.value) == std::filesystem::current_path() / "elsewhere");
  BOOST_TEST(d.model_path.given);
  BOOST_TEST(!d.nodes[0].model_path.given);
  // A node of another host knows best where its own copy lies.
  d.nodes[0].model_path = {"/own", {}, true};
  d.nodes[0].start.value = "join";
  override_model(d, "elsewhere");
  BOOST_TEST(d.model_of("here") == std::filesystem::path("/own"));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_is_no_folder_is_a_mistake_where_it_is_named) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  reading there = read_text(with(minimal, "../models/cedar-tiny", folder), "test.yaml");
  there.check_model("here");
  BOOST_TEST(there.mistakes.empty());

  reading files = read_text(minimal, "nowhere/test.yaml");
  files.check_model("here");
  BOOST_REQUIRE(files.mistakes.size() == 1U);
  const std::string text = to_string(files.mistakes);
  const std::string looked_for = (std::filesystem::current_path() / "models/cedar-tiny").string();
  BOOST_TEST(text.find("nowhere/test.yaml:2:15: the checkpoint '../models/cedar-tiny'") == 0U,
             text);
  BOOST_TEST(text.find(looked_for) != std::string::npos, text);
  BOOST_TEST(text.find("relative to the topology file") != std::string::npos, text);

  reading own = read_text(with(minimal, "here: {}", "here: {model_path: gone}"), "test.yaml");
  own.check_model("here");
  BOOST_REQUIRE(own.mistakes.size() == 1U);
  BOOST_TEST(to_string(own.mistakes).find("test.yaml:4:22: the checkpoint 'gone'") == 0U,
             to_string(own.mistakes));
}

BOOST_AUTO_TEST_CASE(reads_files_and_reports_those_it_cannot_read) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("cedar-document-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "good.yaml") << minimal;
  const auto read = read_document(folder / "good.yaml");
  BOOST_REQUIRE(read);
  BOOST_TEST(read->resolve("x") == folder / "x");

  const auto missing = read_document(folder / "missing.yaml");
  BOOST_REQUIRE(!missing);
  BOOST_TEST(to_string(missing.error()).find("missing.yaml:1:1: cannot read the file") !=
             std::string::npos);
  BOOST_TEST(!read_document(folder));
  std::ofstream(folder / "large.yaml") << std::string((1U << 20U) + 1, '#');
  const auto large = read_document(folder / "large.yaml");
  BOOST_REQUIRE(!large);
  BOOST_TEST(large.error()[0].message.find("1048577 bytes") != std::string::npos);
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(survives_deep_nesting_and_recursive_aliases) {
  bad(std::string(100000, '['));
  bad(std::string(100000, '{'));
  bad("&a [*a]\n");
  bad("cedar: 1\nnodes: &n {here: *n}\n");
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const auto prior = "*a" + std::to_string(i - 1);
    bomb +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + prior + ", " + prior + "]\n";
  }
  bad(bomb);
}

BOOST_AUTO_TEST_CASE(splits_are_a_list_of_owners_and_modes) {
  const document d = good(minimal + "splits:\n  - {owner: 6, mode: mirror}\n");
  BOOST_REQUIRE(d.splits.size() == 1U);
  BOOST_TEST(d.splits[0].owner.value == 6U);
  at(d.splits[0].owner.where, 14, 13);
  BOOST_TEST(d.splits[0].mode.value == "mirror");
  at(d.splits[0].mode.where, 14, 22);
  BOOST_TEST(good(minimal + "splits: []\n").splits.empty());
  expect(minimal + "splits: mirror\n",
         {"13:9 'splits' must be a list of splits, not 'mirror' | write splits:, a list of {owner: "
          "LAYER, mode: mirror}"});
  expect(minimal + "splits: [{owner: six, mode: mirror}, {layer: 6, mode: mirror}, {owner: 2}]\n",
         {"13:18 'splits[0].owner' must be a whole number, not 'six'",
          "13:38 'splits[1].owner' is missing | write owner: LAYER, the layer that creates the "
          "global KV",
          "13:39 unknown key 'layer' in 'splits[1]' | known are: owner, mode",
          "13:64 'splits[2].mode' is missing | write mode: mirror, or mode: gather"});
}

BOOST_AUTO_TEST_CASE(links_lead_both_ways_or_one_way) {
  const document d = good(minimal +
                          "links:\n"
                          "  - {between: [front, back], latency_ms: 20, bandwidth_mbps: 1000, "
                          "jitter_ms: 2.5, loss: 1e-3}\n"
                          "  - {from: back, to: front}\n");
  BOOST_REQUIRE(d.links.size() == 2U);
  const link_entry& both = d.links[0];
  BOOST_TEST(both.both_ways);
  at(both.where, 14, 5);
  BOOST_TEST(both.from.value == "front");
  BOOST_TEST(both.to.value == "back");
  at(both.to.where, 14, 23);
  BOOST_TEST(both.latency_ms.value == 20.0);
  BOOST_TEST(both.bandwidth_mbps.value == 1000.0);
  BOOST_TEST(both.jitter_ms.value == 2.5);
  BOOST_TEST(both.loss.value == 0.001);
  const link_entry& one = d.links[1];
  BOOST_TEST(!one.both_ways);
  BOOST_TEST(one.from.value == "back");
  BOOST_TEST(one.to.value == "front");
  BOOST_TEST(one.latency_ms.value == 0.0);
  BOOST_TEST(!one.bandwidth_mbps.given);
  BOOST_TEST(good(minimal + "links: []\n").links.empty());
}

BOOST_AUTO_TEST_CASE(links_are_strict_if_the_file_says_so) {
  BOOST_TEST(!good(minimal).strict_links.value);
  const document d = good(minimal + "strict_links: true\n");
  BOOST_TEST(d.strict_links.value);
  at(d.strict_links.where, 13, 15);
  expect(minimal + "strict_links: 1\n", {"13:15 'strict_links' must be true or false, not '1'"});
}

BOOST_AUTO_TEST_CASE(links_must_say_where_they_lead) {
  const std::string must =
      "' must say where it leads, by 'between' or by 'from' and 'to' | write between: [NODE, NODE] "
      "for both directions, from: NODE, to: NODE for one";
  expect(minimal + "links: {between: [a, b]}\n",
         {"13:8 'links' must be a list of links, not a mapping | write links:, a list of {between: "
          "[NODE, NODE], latency_ms: 20}"});
  expect(minimal +
             "links:\n"
             "  - {latency_ms: 1}\n"
             "  - {from: a}\n"
             "  - {between: [a, b], to: b}\n"
             "  - {between: [a]}\n"
             "  - {between: [a, b, c]}\n"
             "  - {between: [a, a]}\n"
             "  - far\n"
             "  - {between: [a, b], latency_mz: 1}\n",
         {"14:5 'links[0]" + must, "15:5 'links[1]" + must, "16:5 'links[2]" + must,
          "17:15 'links[3].between' must name two nodes, not 1",
          "18:15 'links[4].between' must name two nodes, not 3",
          "19:19 'links[5].between' names 'a' twice",
          "20:5 'links[6]' must be a mapping (key: value), not 'far'",
          "21:23 unknown key 'latency_mz' in 'links[7]' | did you mean 'latency_ms'?"});
}

BOOST_AUTO_TEST_CASE(numbers_of_links_have_ranges) {
  const auto link = [](const std::string& numbers) {
    return minimal + "links: [{between: [a, b], " + numbers + "}]\n";
  };
  expect(link("latency_ms: -1, bandwidth_mbps: 0, jitter_ms: 10000.5, loss: 1.1"),
         {"13:39 'links[0].latency_ms' is '-1'; it may be 0 to 10000",
          "13:59 'links[0].bandwidth_mbps' is '0'; it may be 0.001 to 10000000",
          "13:73 'links[0].jitter_ms' is '10000.5'; it may be 0 to 10000",
          "13:88 'links[0].loss' is '1.1'; it may be 0 to 1"});
  expect(link("latency_ms: 1e400"),
         {"13:39 'links[0].latency_ms' is '1e400'; it may be 0 to 10000"});
  for (const std::string value : {".nan", "nan", ".inf", "-", "1-2", "0x10", "20 ms", "e5"})
    expect(link("latency_ms: " + value),
           {"13:39 'links[0].latency_ms' must be a number, not '" + value + "'"});
  expect(link("latency_ms: '20'"),
         {"13:39 'links[0].latency_ms' must be a number, not '20' (in quotes)"});
  for (const std::string value : {"0", "10000", "1e4", "+5", "0.5", ".5", "5.", "1e-400"})
    BOOST_TEST(good(link("latency_ms: " + value)).links[0].latency_ms.given, value);
}

BOOST_AUTO_TEST_SUITE_END()
