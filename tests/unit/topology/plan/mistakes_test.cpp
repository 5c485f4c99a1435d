// Goal: every mistake that the planner knows is reported at its place, with its reason and a way
// out; all mistakes of a file at once. Method: one sound file with one mistake planted at a time,
// then many.
#include <boost/test/unit_test.hpp>

#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

void expect(const std::string& text, const std::vector<std::string>& wanted,
            const std::string& model = "cedar-tiny") {
  const auto found = mistakes(text, model);
  BOOST_TEST(found == wanted, boost::test_tools::per_element());
}

const std::string encoder = "{name: encoder, layers: 0-5, device: front-cpu}";
const std::string decoder = "{name: decoder, layers: 6-11, device: back-cpu}";

/// The two-node file with these layers on the two stages.
std::string cut(const std::string& first, const std::string& second) {
  return with(with(two_nodes, "layers: 6-11", "layers: " + second), "layers: 0-5",
              "layers: " + first);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(planner_mistakes)

BOOST_AUTO_TEST_CASE(layers_that_two_stages_hold) {
  expect(cut("0-6", "6-11"),
         {"16:31 layer 6 of stage 'decoder' is on stage 'encoder' too | every layer "
          "must be on exactly one stage"});
  expect(cut("0-11", "3-5"),
         {"16:31 layers 3-5 of stage 'decoder' are on stage 'encoder' too | every "
          "layer must be on exactly one stage"});
}

BOOST_AUTO_TEST_CASE(layers_that_no_stage_holds) {
  expect(cut("0-3", "6-11"),
         {"16:31 layers 4-5 are on no stage | every layer must be on exactly one stage"});
  expect(cut("1-5", "6-11"),
         {"15:31 layer 0 is on no stage | every layer must be on exactly one stage"});
  expect(cut("0-5", "6-10"),
         {"16:31 layer 11 is on no stage | every layer must be on exactly one stage; "
          "the model has layers 0-11"});
}

BOOST_AUTO_TEST_CASE(layers_that_the_model_lacks) {
  expect(cut("0-5", "6-39"),
         {"16:31 layers 12-39 of stage 'decoder' do not exist | the model has layers 0-11"});
  expect(cut("0-11", "12"),
         {"16:31 layer 12 of stage 'decoder' does not exist | the model has layers 0-11"});
  expect(cut("0-5", "20-30"),
         {"16:31 layers 20-30 of stage 'decoder' do not exist | the model has layers 0-11",
          "16:31 layers 6-11 are on no stage | every layer must be on exactly one stage"});
}

BOOST_AUTO_TEST_CASE(stages_out_of_order) {
  expect(cut("6-11", "0-5"),
         {"16:31 stage 'decoder' stands after stage 'encoder' but holds earlier layers "
          "| list the stages in the order of their layers, as rows walk them"});
}

BOOST_AUTO_TEST_CASE(cuts_between_layers_that_share_state) {
  expect(
      cut("0-2", "3-11"),
      {"15:31 the cut after layer 2, between stages 'encoder' and 'decoder', separates layer 3 "
       "from the "
       "owner of their global KV, layer 2; layer 3 from the source of their selection, layer 2 | "
       "write splits: [{owner: 2, mode: mirror}] (or mode: gather), or cut after layer 1 or after "
       "layer 3"});
  expect(cut("0-7", "8-11"),
         {"15:31 the cut after layer 7, between stages 'encoder' and 'decoder', separates layers "
          "8-11 from "
          "the owner of their global KV, layer 6; layers 8, 10 from the source of their "
          "candidates, layer "
          "6 | write splits: [{owner: 6, mode: mirror}] (or mode: gather), or cut after layer 5"});
  for (const std::string mode : {"mirror", "gather"})
    planned(cut("0-7", "8-11") + "splits: [{owner: 6, mode: " + mode + "}]\n");
}

BOOST_AUTO_TEST_CASE(cuts_of_several_owners_some_of_which_the_file_names) {
  const std::string three = with(
      cut("0-2", "3-7"), "  head:", "    - {name: last, layers: 8-11, device: back-cpu}\n  head:");
  const auto missing_both = mistakes(three);
  BOOST_REQUIRE(missing_both.size() == 2U);
  for (const std::string& each : missing_both)
    BOOST_TEST(each.find("write splits: [{owner: 2, mode: mirror}, {owner: 6, mode: mirror}] (or "
                         "mode: gather), or cut after layer") != std::string::npos);
  const auto missing_one = mistakes(three + "splits: [{owner: 2, mode: gather}]\n");
  BOOST_REQUIRE(missing_one.size() == 1U);
  BOOST_TEST(missing_one[0].find("16:31 the cut after layer 7") == 0U);
  BOOST_TEST(missing_one[0].find("| add {owner: 6, mode: mirror} to 'splits' (or mode: gather), or "
                                 "cut after layer 5") != std::string::npos);
  planned(three + "splits:\n  - {owner: 2, mode: gather}\n  - {owner: 6, mode: mirror}\n");
}

BOOST_AUTO_TEST_CASE(splits_that_do_not_exist) {
  const std::string split = cut("0-7", "8-11");
  expect(split + "splits: [{owner: 6, mode: mirrror}]\n",
         {"19:27 there is no split mode 'mirrror' | did you mean 'mirror'?"});
  expect(split + "splits:\n  - {owner: 6, mode: mirror}\n  - {owner: 6, mode: gather}\n",
         {"21:13 the split of owner 6 stands twice; the first is in line 20"});
  expect(split + "splits: [{owner: 6, mode: mirror}, {owner: 3, mode: mirror}]\n",
         {"19:44 layer 3 owns no global KV to split | the owners are layers 2, 4, 6"});
  expect(split + "splits: [{owner: 6, mode: mirror}, {owner: 2, mode: mirror}]\n",
         {"19:44 no cut separates owner 2 from its readers, layers 2-3 | remove the entry, or cut "
          "between them"});
  model::model_config windows = configuration("cedar-tiny");
  windows.kv_sources.clear();
  windows.index_sources.clear();
  windows.candidate_source.reset();
  windows.compress_ratios.assign(windows.compress_ratios.size(), 0);
  const auto made = make_plan(
      *parse_document(two_nodes + "splits: [{owner: 6, mode: mirror}]\n", "x.yaml"), windows);
  BOOST_REQUIRE(!made);
  BOOST_TEST(to_string(made.error()) ==
             "x.yaml:19:18: layer 6 owns no global KV to split\n  hint: remove the entry: no layer "
             "of this model does\n");
}

BOOST_AUTO_TEST_CASE(every_cut_of_the_released_model_is_judged) {
  // Owners 2, 8, 14, 20: free cuts are those right before an owner, and those among the window-only
  // layers.
  const std::string file = with(two_nodes, "requests: 4, context: 1000", "requests: 4");
  std::vector<std::uint32_t> free;
  for (std::uint32_t layer = 0; layer < 39; ++layer) {
    const std::string text = with(with(file, "layers: 0-5", "layers: 0-" + std::to_string(layer)),
                                  "layers: 6-11", "layers: " + std::to_string(layer + 1) + "-39");
    if (make_plan(*parse_document(text, "x.yaml"), configuration("released")))
      free.push_back(layer);
  }
  BOOST_TEST(free == (std::vector<std::uint32_t>{0, 1, 7, 13, 19}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_device_of_one_thread_with_more) {
  const auto back = [](const std::string& rest) {
    return with(two_nodes, "back-cpu: {node: back}", "back-cpu: {node: back, " + rest + "}");
  };
  expect(back("threads: 2, kind: reference"),
         {"9:35 device 'back-cpu' of kind 'reference' has 2 threads: it computes on one | remove "
          "'threads', or write kind: cpu"});
  planned(back("threads: 1, kind: reference"));
  expect(
      back("kind: reference, cores: 0"),
      {"9:50 device 'back-cpu' of kind 'reference' has 'cores', but no threads of its own | remove "
       "'cores', or write kind: cpu"});
}

BOOST_AUTO_TEST_CASE(a_cuda_device_with_what_threads_have) {
  const auto back = [](const std::string& rest) {
    return with(two_nodes, "back-cpu: {node: back}", "back-cpu: {node: back, " + rest + "}");
  };
  expect(back("kind: cuda, threads: 2, numa: 1"),
         {"9:47 device 'back-cpu' of kind 'cuda' has 2 threads: one gives it its work | remove "
          "'threads', or write kind: cpu",
          "9:56 device 'back-cpu' of kind 'cuda' has 'numa', but no threads of its own | remove "
          "'numa', or write kind: cpu"});
  planned(back("kind: cuda, threads: 1, index: 7"));
}

BOOST_AUTO_TEST_CASE(an_index_of_what_is_no_cuda_device) {
  const auto back = [](const std::string& rest) {
    return with(two_nodes, "back-cpu: {node: back}", "back-cpu: {node: back, " + rest + "}");
  };
  for (const std::string kind : {"cpu", "reference"})
    expect(back("index: 0, kind: " + kind), {"9:33 device 'back-cpu' of kind '" + kind +
                                             "' has 'index', which is CUDA's | remove "
                                             "'index', or write kind: cuda"});
}

BOOST_AUTO_TEST_CASE(one_cuda_device_under_two_names) {
  const auto more = [](const std::string& front, const std::string& side) {
    return with(two_nodes, "front-cpu: {node: front}",
                "front-cpu: {node: front" + front + "}\n  side: {node: front" + side + "}");
  };
  expect(more(", kind: cuda", ", kind: cuda, index: 0"),
         {"9:42 devices 'front-cpu' and 'side' of node 'front' are both CUDA device 0 | write "
          "another index, or put the units of both on 'front-cpu'"});
  expect(more(", kind: cuda", ", kind: cuda"),
         {"9:3 devices 'front-cpu' and 'side' of node 'front' are both CUDA device 0 | write "
          "another index, or put the units of both on 'front-cpu'"});
  planned(more(", kind: cuda, index: 1", ", kind: cuda"));
  // Of two nodes they may be devices of two hosts.
  planned(with(with(two_nodes, "{node: front}", "{node: front, kind: cuda}"), "{node: back}",
               "{node: back, kind: cuda}"));
}

BOOST_AUTO_TEST_CASE(more_threads_than_cores) {
  const auto back = [](const std::string& rest) {
    return with(two_nodes, "back-cpu: {node: back}", "back-cpu: {node: back, " + rest + "}");
  };
  expect(
      back("cores: 2-3, threads: 3"),
      {"9:47 device 'back-cpu' has 3 threads on 2 cores | remove 'threads' for one on each core, "
       "or name more cores"});
  planned(back("cores: 2-3, threads: 2"));
}

BOOST_AUTO_TEST_CASE(nice_values_of_threads_that_devices_share) {
  const auto more = [](const std::string& front, const std::string& side) {
    return with(two_nodes, "front-cpu: {node: front}",
                "front-cpu: {node: front, " + front + "}\n  side-cpu: {node: front, " + side + "}");
  };
  expect(more("threads: 2", "threads: 2, nice: 5"),
         {"9:45 devices 'front-cpu' and 'side-cpu' of node 'front' share threads, but have nice 0 "
          "and 5 | give both the same, or put one on a node of its own"});
  planned(more("threads: 2, nice: 5", "threads: 2, nice: 5"));
  planned(more("threads: 1", "threads: 2, nice: 5"));
}

BOOST_AUTO_TEST_CASE(names_that_do_not_exist) {
  std::string text = with(two_nodes, "front-cpu: {node: front}", "front-cpu: {node: font}");
  text = with(text, "back-cpu: {node: back}", "back-cpu: {node: back, kind: abacus}");
  text = with(text, "scheduler: {node: front}", "scheduler: {node: elsewhere}");
  text = with(text, "embedding: {device: front-cpu}", "embedding: {device: front_cpu}");
  text = with(text, "client: front", "client: fron");
  expect(text, {"6:9 there is no node 'fron' | did you mean 'front'?",
                "8:21 there is no node 'font' | did you mean 'front'?",
                "9:32 there is no device kind 'abacus' | known are: cpu, cuda, reference",
                "11:21 there is no node 'elsewhere' | known are: front, back",
                "12:23 there is no device 'front_cpu' | did you mean 'front-cpu'?"});
}

BOOST_AUTO_TEST_CASE(a_node_that_runs_nothing) {
  expect(with(two_nodes, "nodes:\n", "nodes:\n  idle: {}\n"),
         {"4:3 node 'idle' runs no unit | place a unit on one of its devices, or remove it"});
}

BOOST_AUTO_TEST_CASE(a_scheduler_away_from_the_client) {
  expect(
      with(two_nodes, "client: front", "client: back"),
      {"11:21 the scheduler is on node 'front', but the client is node 'back': requests enter the "
       "scheduler in the client's process | write scheduler: {node: back}"});
}

BOOST_AUTO_TEST_CASE(stage_names_that_are_taken) {
  expect(
      with(two_nodes, "name: decoder", "name: encoder"),
      {"16:14 two stages are called 'encoder' | messages and traces name stages: give each its own "
       "name"});
  expect(with(two_nodes, "name: decoder", "name: head"),
         {"16:14 a stage cannot be called 'head': that is the name of another unit"});
}

BOOST_AUTO_TEST_CASE(an_engram_unit_against_the_model) {
  expect(with(two_nodes, "  engram: {device: front-cpu}\n", ""),
         {"11:3 'units.engram' is missing: the model has Engram modules | write engram: {device: "
          "DEVICE}"});
  model::model_config plain = configuration("cedar-tiny");
  plain.engram.layers.clear();
  const auto made = make_plan(*parse_document(two_nodes, "x.yaml"), plain);
  BOOST_REQUIRE(!made);
  BOOST_TEST(
      to_string(made.error()) ==
      "x.yaml:13:11: the model has no Engram modules for 'units.engram' to hold\n  hint: remove "
      "it\n");
}

BOOST_AUTO_TEST_CASE(nodes_without_a_checkpoint) {
  const std::string text = with(two_nodes, "model: {path: model}\n", "");
  expect(
      text,
      {"3:3 node 'front' has no checkpoint | write model: {path: FOLDER} for all nodes, or start "
       "with -m",
       "4:3 node 'back' has no checkpoint | write model: {path: FOLDER} for all nodes, or start "
       "with -m"});
  planned(
      with(with(text, "front: {", "front: {model_path: a, "), "back: {", "back: {model_path: b, "));
}

BOOST_AUTO_TEST_CASE(a_mode_that_does_not_exist) {
  expect(with(two_nodes, "limits:", "mode: bounds\nlimits:"),
         {"18:7 there is no mode 'bounds' | did you mean 'bounded'?"});
}

BOOST_AUTO_TEST_CASE(limits_that_do_not_fit_each_other) {
  expect(with(two_nodes, "rows_per_step: 100, requests: 4", "rows_per_step: 2, requests: 9"),
         {"18:38 'limits.requests' is 9, but 'limits.rows_per_step' 2: a step has a row for every "
          "answer that is being generated | write at most 2, or raise rows_per_step"});
  expect(with(two_nodes, "requests: 4", "prefill_rows: 101"),
         {"18:44 'limits.prefill_rows' is 101, more than the 100 of 'limits.rows_per_step' | write "
          "at most 100"});
  expect(with(two_nodes, "requests: 4", "kv_positions: 1000"),
         {"18:44 'limits.kv_positions' is 1000, but one request may need 1024: its 1000 positions "
          "in steps of 128 | write at least 1024, or lower limits.context"});
}

BOOST_AUTO_TEST_CASE(limits_beyond_the_model) {
  expect(
      with(two_nodes, "context: 1000", "context: 2049"),
      {"18:52 'limits.context' is 2049, beyond the model's 2048 positions | write at most 2048"});
  planned(with(two_nodes, "context: 1000", "context: 2048"));
}

BOOST_AUTO_TEST_CASE(addresses_that_others_can_reach) {
  const std::string remote =
      with(two_nodes, "front: {address: 127.0.0.1}", "front: {address: 10.0.0.1}");
  const std::string devices = "transport: {devices: [eth0]}\n";
  expect(remote + devices, {"4:20 node 'front' has address '10.0.0.1', which other hosts can "
                            "reach: they could read prompts "
                            "and inject tokens | if that is meant, write security: {allow_remote: "
                            "true, secret_file: FILE}"});
  expect(remote + devices + "security: {allow_remote: true}\n",
         {"20:26 'security.allow_remote' needs 'security.secret_file': nodes of different hosts "
          "prove by "
          "it that they belong together | write secret_file: FILE, a copy of the same file on "
          "every host"});
  expect(remote + "transport: {kind: ucx}\nsecurity: {allow_remote: true, secret_file: f}\n",
         {"19:19 'transport.devices' must name the network interfaces when nodes are on other "
          "hosts: the "
          "default is lo | write devices: [INTERFACE]; 'ucx_info -d' lists them"});
  planned(remote + devices + "security: {allow_remote: true, secret_file: f}\n");
}

BOOST_AUTO_TEST_CASE(addresses_that_are_none) {
  expect(with(two_nodes, "front: {address: 127.0.0.1}", "front: {address: \"127.0.0.1:99\"}"),
         {"4:20 node 'front' has address '127.0.0.1:99', which is no address | write an IP address "
          "or a "
          "host name, without a port"});
  expect(with(two_nodes, "front: {address: 127.0.0.1}", "front: {address: 0.0.0.0}"),
         {"4:20 node 'front' has address '0.0.0.0', where no other node can reach it | write the "
          "address "
          "that the other nodes use"});
}

BOOST_AUTO_TEST_CASE(nodes_that_cannot_join) {
  const std::string join =
      with(two_nodes, "back: {address: 127.0.0.1}", "back: {address: 127.0.0.1, start: join}");
  const std::string secret = "security: {secret_file: f}\n";
  expect(with(join, "start: join", "start: joined"),
         {"5:37 there is no start 'joined' | did you mean 'join'?"});
  expect(join, {"5:37 node 'back' is to join, and proves by 'security.secret_file' that it may: it "
                "is missing | write security: {secret_file: FILE}"});
  expect(
      with(two_nodes, "front: {address: 127.0.0.1}", "front: {start: join}") + secret,
      {"4:18 node 'front' is to join, but it is the client: the process that you start, and that "
       "others join | remove it, or name another client"});
  expect(join + secret + "transport: {kind: loopback}\n",
         {"5:37 node 'back' is to join, but transport 'loopback' puts all nodes into one process | "
          "remove it, or write transport: {kind: ucx}"});
  const plan made = planned(join + secret);
  BOOST_TEST((made.find_node("back")->start == node_start::join));
  BOOST_TEST((made.find_node("front")->start == node_start::spawn));
  BOOST_TEST(made.control().host == "127.0.0.1");
  BOOST_TEST(made.control().port == 0U);
}

BOOST_AUTO_TEST_CASE(places_where_no_node_can_join) {
  const std::string hint =
      " | write HOST:PORT, the client's host as the nodes call it; port 0 is any free one";
  for (const std::string wrong : {"127.0.0.1", ":70", "0.0.0.0:70", "host:70000", "host:", "a b:1"})
    expect(two_nodes + "control: {listen: \"" + wrong + "\"}\n",
           {"19:19 'control.listen' is '" + wrong + "', which is no address that nodes can join" +
            hint});
  expect(two_nodes + "control: {listen: \"host:7000\"}\n",
         {"19:19 'control.listen' is 'host:7000', which other hosts can reach: they could take a "
          "node's place | if that is meant, write security: {allow_remote: true, secret_file: "
          "FILE}"});
  const std::string join =
      with(two_nodes, "back: {address: 127.0.0.1}", "back: {address: 10.0.0.2, start: join}") +
      "transport: {devices: [eth0]}\nsecurity: {allow_remote: true, secret_file: f}\n";
  expect(
      join + "control: {listen: \"127.0.0.1:70\"}\n",
      {"21:19 'control.listen' is '127.0.0.1:70', where node 'back' of another host cannot reach "
       "it | write the address of the client's host"});
  const plan made = planned(join + "control: {listen: \"front.example:7000\"}\n");
  BOOST_TEST(made.control().host == "front.example");
  BOOST_TEST(made.control().port == 7000U);
}

BOOST_AUTO_TEST_CASE(transports_that_cannot_carry) {
  expect(two_nodes + "transport: {kind: udp}\n",
         {"19:19 there is no transport kind 'udp' | did you mean 'ucx'?"});
  expect(two_nodes + "transport: {tls: [tpc, self]}\n",
         {"19:19 there is no UCX transport 'tpc' | did you mean 'tcp'?"});
  expect(two_nodes + "transport: {tls: [self]}\n",
         {"19:19 'self' connects a process with itself only | write tls: [tcp, self]"});
  expect(
      two_nodes + "transport: {kind: loopback, devices: [lo]}\n",
      {"19:39 transport 'loopback' is memory and takes no list | remove it, or write kind: ucx"});
  planned(two_nodes + "transport: {kind: loopback}\n");
}

BOOST_AUTO_TEST_CASE(heartbeats_that_would_lose_a_healthy_node) {
  expect(
      two_nodes + "deadlines_ms: {heartbeat_interval: 501}\n",
      {"19:36 'heartbeat_lost' (1000 ms) is not more than two 'heartbeat_interval' (501 ms): one "
       "late heartbeat would look like a lost node"});
  expect(two_nodes + "deadlines_ms: {heartbeat_lost: 400}\n",
         {"19:32 'heartbeat_lost' (400 ms) is not more than two 'heartbeat_interval' (200 ms): one "
          "late heartbeat would look like a lost node"});
  planned(two_nodes + "deadlines_ms: {heartbeat_interval: 499}\n");
}

BOOST_AUTO_TEST_CASE(all_at_once_in_order_of_place) {
  std::string text = cut("0-6", "8-11");
  text = with(text, "back: {address: 127.0.0.1}", "back: {address: 8.8.8.8}");
  text = with(text, "head: {device: back-cpu}", "head: {device: gpu}");
  text = with(text, "context: 1000", "context: 9999");
  text += "transport: {kind: tcp, devices: [eth0]}\ndeadlines_ms: {heartbeat_lost: 1}\n";
  const auto found = mistakes(text);
  std::vector<std::string> places;
  for (const std::string& each : found) places.push_back(each.substr(0, each.find(' ')));
  const std::vector<std::string> wanted = {"5:19", "16:31", "17:18", "18:52", "19:19", "20:32"};
  BOOST_TEST(places == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_form_and_of_meaning_together) {
  std::string text = cut("0-6", "6-11");
  text = with(text, "front-cpu: {node: front}", "front-cpu: {node: front, colour: red}");
  text = with(text, "head: {device: back-cpu}", "head: {device: gpu}");
  text = with(text, "rows_per_step: 100", "rows_per_step: many");
  text = with(text, "context: 1000", "context: 9999");
  expect(
      text,
      {"8:28 unknown key 'colour' in 'devices.front-cpu' | known are: node, kind, cores, threads, "
       "numa, nice, memory, index",
       "16:31 layer 6 of stage 'decoder' is on stage 'encoder' too | every layer must be on "
       "exactly one stage",
       "17:18 there is no device 'gpu' | known are: front-cpu, back-cpu",
       "18:25 'limits.rows_per_step' must be a whole number, not 'many'",
       "18:53 'limits.context' is 9999, beyond the model's 2048 positions | write at most 2048"});
}

BOOST_AUTO_TEST_CASE(none_that_only_follows_from_another) {
  const std::string layers =
      "15:7 'units.stages[0].layers' is missing | write layers: FIRST-LAST, for example layers: "
      "0-5";
  expect(with(two_nodes, "layers: 0-5, ", ""), {layers});
  expect(with(with(two_nodes, "layers: 0-5, ", ""), "layers: 6-11", "layers: 6-12"),
         {layers, "16:31 layer 12 of stage 'decoder' does not exist | the model has layers 0-11"});
  expect(with(two_nodes, "  back-cpu: {node: back}", "  back-cpu: {nodes: back}"),
         {"9:13 'devices.back-cpu.node' is missing | write node: NODE, the process that owns the "
          "device",
          "9:14 unknown key 'nodes' in 'devices.back-cpu' | did you mean 'node'?"});
  expect(with(two_nodes, "rows_per_step: 100, requests: 4", "rows_per_step: 0, requests: 400"),
         {"18:25 'limits.rows_per_step' is '0'; it may be 1 to 65536"});
  expect(two_nodes + "splits: [{mode: mirror}]\n",
         {"19:10 'splits[0].owner' is missing | write owner: LAYER, the layer that creates the "
          "global KV"});
  expect(
      "cedar: 1\nnodes: 3\n",
      {"1:1 'devices' is missing | write devices: {NAME: {node: NODE, kind: cpu}}",
       "1:1 'units' is missing | write units: with scheduler, embedding, stages, head, and engram "
       "if the model has Engram modules",
       "2:8 'nodes' must be a mapping (key: value), not '3'"});
}

BOOST_AUTO_TEST_SUITE_END()
