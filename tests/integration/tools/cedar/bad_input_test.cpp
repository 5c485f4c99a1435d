// Goal: whatever is wrong with what a person gives, the command ends with an error that says what
// and where, before any token, and leaves no process. Method: one wrong input each.
#include <boost/test/unit_test.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar::test;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

/// A topology, a checkpoint and files of a test's own, right until something is made wrong.
struct workplace {
  temporary_folder folder;
  std::string good = topology_text({});
  std::filesystem::path topology = folder.write("t.yaml", good);
  std::filesystem::path model = checkpoint_of("cedar-tiny");

  void write_topology(const std::string& text) { folder.write("t.yaml", text); }

  /// A copy of the checkpoint, to be spoilt.
  void copy_model() {
    std::filesystem::copy(model, folder.path() / "model", std::filesystem::copy_options::recursive);
    model = folder.path() / "model";
  }
  void edit_model(const std::string& file, const std::string& from, const std::string& to) {
    folder.write("model/" + file, replaced(read_file(model / file), from, to));
  }

  finished command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--topology", topology.string(), "-m", model.string()});
    return run(CEDAR_PROGRAM, arguments);
  }
  finished run_prompt(const std::string& prompt = "hello") const {
    return command({"run", "-p", prompt});
  }
  finished run_lines(const std::string& lines) const {
    return command({"run", "--prompts", folder.write("prompts.jsonl", lines).string()});
  }
  finished run_ids(const std::string& ids) const {
    return command({"logits", "--tokens", folder.write("ids.txt", ids).string(), "-o",
                    (folder.path() / "out.safetensors").string()});
  }
};

/// It ended with code 1, said all of `parts`, the client's own word among it, and answered nothing.
void check_refused(const finished& ran, const std::vector<std::string>& parts) {
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(ran.output == "");
  BOOST_TEST(contains("\n" + ran.errors, "\ncedar: "), ran.errors);
  for (const std::string& part : parts)
    BOOST_TEST(contains(ran.errors, part), "no \"" << part << "\" in: " << ran.errors);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_input)

BOOST_AUTO_TEST_CASE(text_that_is_not_yaml_is_named_by_place) {
  workplace work;
  work.write_topology("cedar: 1\nnodes: {front: [\n");
  check_refused(work.run_prompt(), {"t.yaml:3:1: ", "not YAML"});
}

BOOST_AUTO_TEST_CASE(an_unknown_key_is_named_by_place) {
  workplace work;
  work.write_topology(work.good + "transprt: {}\n");
  check_refused(work.run_prompt(), {"t.yaml:18:1: unknown key 'transprt'", "'transport'"});
}

BOOST_AUTO_TEST_CASE(all_mistakes_of_a_topology_are_told_at_once) {
  workplace work;
  work.write_topology(work.good + "limits: {rows_per_step: 0}\nsecurity: {allow_remote: maybe}\n");
  check_refused(work.run_prompt(),
                {"t.yaml:18:25: ", "rows_per_step", "t.yaml:19:26: ", "'maybe'"});
  work.write_topology(replaced(replaced(work.good, "6-11, device: cpu1", "6-11, device: gpu"),
                               "kind: ucx", "kind: pigeon"));
  check_refused(work.run_prompt(), {"'gpu'", "'pigeon'"});
}

BOOST_AUTO_TEST_CASE(layers_on_two_stages_or_on_none_are_named) {
  workplace work;
  work.write_topology(replaced(work.good, "6-11", "5-11"));
  check_refused(work.run_prompt(), {"t.yaml:", "layer 5", "'stage1'", "'stage0'"});
  work.write_topology(replaced(work.good, "6-11", "8-11"));
  check_refused(work.run_prompt(), {"t.yaml:", "layers 6-7", "no stage"});
  work.write_topology(replaced(work.good, "6-11", "6-12"));
  check_refused(work.run_prompt(), {"t.yaml:", "12"});
}

BOOST_AUTO_TEST_CASE(a_cut_between_layers_that_share_state_is_refused_with_legal_ones) {
  workplace work;
  work.write_topology(topology_text({.cuts = {2}}));
  check_refused(work.run_prompt(), {"t.yaml:", "cut after layer 2", "owner", "layer 1", "layer 3"});
}

BOOST_AUTO_TEST_CASE(a_missing_topology_or_checkpoint_is_named) {
  workplace work;
  work.model = work.folder.path() / "nowhere";
  check_refused(work.run_prompt(), {work.model.string(), "No such file"});
  work.topology = work.folder.path() / "none.yaml";
  check_refused(work.run_prompt(), {work.topology.string(), "No such file"});
}

BOOST_AUTO_TEST_CASE(a_truncated_checkpoint_is_named_with_its_tensor) {
  workplace work;
  work.copy_model();
  std::filesystem::resize_file(work.model / "model.safetensors", 3'000'000);
  check_refused(work.run_prompt(), {"model.safetensors", "tensor", "truncated"});
  std::filesystem::resize_file(work.model / "model.safetensors", 5);
  check_refused(work.run_prompt(), {"model.safetensors", "5 bytes"});
}

BOOST_AUTO_TEST_CASE(a_header_that_lies_about_its_length_is_refused) {
  workplace work;
  work.copy_model();
  std::string bytes = read_file(work.model / "model.safetensors");
  bytes.replace(0, 8, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8));
  work.folder.write("model/model.safetensors", bytes);
  check_refused(work.run_prompt(), {"model.safetensors", "header"});
}

BOOST_AUTO_TEST_CASE(a_configuration_that_the_tensors_do_not_fit_is_refused_by_tensor) {
  workplace work;
  work.copy_model();
  work.edit_model("config.json", "\"vocab_size\": 2048", "\"vocab_size\": 2056");
  work.edit_model("inference/config.json", "\"vocab_size\": 2048", "\"vocab_size\": 2056");
  check_refused(work.run_prompt(), {"head.weight", "2048", "2056"});
}

BOOST_AUTO_TEST_CASE(two_configurations_that_contradict_each_other_are_refused) {
  workplace work;
  work.copy_model();
  work.edit_model("config.json", "\"vocab_size\": 2048", "\"vocab_size\": 2040");
  check_refused(work.run_prompt(), {"config.json", "vocab_size", "2048", "2040"});
}

BOOST_AUTO_TEST_CASE(a_missing_tokenizer_is_named) {
  workplace work;
  work.copy_model();
  std::filesystem::remove(work.model / "tokenizer.json");
  check_refused(work.run_prompt(), {"tokenizer.json"});
}

BOOST_AUTO_TEST_CASE(checkpoints_that_differ_between_nodes_are_refused) {
  workplace work;
  work.copy_model();
  // Another value of the same size in the weights of a node that has its own copy.
  std::string bytes = read_file(work.model / "model.safetensors");
  bytes[bytes.size() - 1] = static_cast<char>(bytes.back() ^ 1);
  work.folder.write("model/model.safetensors", bytes);
  work.write_topology(
      replaced(work.good, "node1: {address: 127.0.0.1}",
               "node1: {address: 127.0.0.1, model_path: " + work.model.string() + "}"));
  const finished ran =
      run(CEDAR_PROGRAM, {"run", "-p", "hello", "--topology", work.topology.string()});
  check_refused(ran, {"model"});  // the file names no checkpoint for node0
  const std::string with_model =
      replaced(read_file(work.topology), "cedar: 1\n",
               "cedar: 1\nmodel: {path: " + checkpoint_of("cedar-tiny").string() + "}\n");
  work.write_topology(with_model);
  check_refused(run(CEDAR_PROGRAM, {"run", "-p", "hello", "--topology", work.topology.string()}),
                {"node 'node1'", work.model.string(), "not the client's"});
}

BOOST_AUTO_TEST_CASE(empty_prompts_and_bytes_that_are_not_utf8_are_refused) {
  const workplace work;
  check_refused(work.run_prompt(""), {"prompt is empty"});
  check_refused(work.run_prompt("a\xff"), {"prompt", "not UTF-8 at byte 1"});
  check_refused(work.run_ids(" \n"), {"prompt is empty"});
}

BOOST_AUTO_TEST_CASE(a_prompt_beyond_the_context_is_refused) {
  workplace work;
  work.write_topology(work.good + "limits: {context: 20}\n");
  std::string ids;
  for (int i = 0; i < 21; ++i) ids += "7 ";
  check_refused(work.run_ids(ids), {"21 tokens", "20", "limits.context"});
}

BOOST_AUTO_TEST_CASE(an_answer_ends_where_the_context_ends) {
  workplace work;
  work.write_topology(work.good + "limits: {context: 20}\n");
  const finished ran = work.run_lines("{\"prompt\": \"Once upon a time\", \"max_tokens\": 100}\n");
  BOOST_TEST(ran.code == 0);
  BOOST_TEST(contains(ran.output, "\"finish_reason\":\"length\""), ran.output);
  const finished told = work.run_prompt("Once upon a time");
  BOOST_TEST(told.code == 0);
  BOOST_TEST(contains(told.errors, "the context is full after "), told.errors);
}

BOOST_AUTO_TEST_CASE(token_ids_outside_the_vocabulary_are_refused) {
  const workplace work;
  check_refused(work.run_ids("1 2 2048"), {"token 2048", "vocabulary of 2048"});
  check_refused(work.run_ids("1 -1"), {"token -1"});
  check_refused(work.run_ids("1 5000000000"), {"ids.txt", "'5000000000'"});
  check_refused(work.run_ids("1 two"), {"ids.txt", "'two'"});
}

BOOST_AUTO_TEST_CASE(a_wrong_line_of_a_prompts_file_is_named_by_number) {
  const workplace work;
  check_refused(work.run_lines("{\"prompt\": \"a\"}\n{\"prompt\"\n"), {"prompts.jsonl:2"});
  check_refused(work.run_lines("{\"prompt\": \"a\"}\n\n{\"promt\": \"a\"}\n"),
                {"prompts.jsonl:3", "'promt'"});
  check_refused(work.run_lines("{\"prompt\": \"a\", \"max_tokens\": -1}\n"),
                {"prompts.jsonl:1", "max_tokens"});
  check_refused(work.run_lines("\n"), {"prompts.jsonl", "no prompt"});
}

BOOST_AUTO_TEST_CASE(all_wrong_lines_of_a_prompts_file_are_told_at_once) {
  workplace work;
  const finished ran = work.run_lines(R"({"prompt": "a"}
{"prompt"
{"prompt": "b", "mode": "fast"}

{"prompt": ""}
{"prompt": "c", "temperature": -1}
{"prompt": "d", "max_tokens": 1}
)");
  check_refused(ran, {"prompts.jsonl:2: not a JSON object\n", "prompts.jsonl:3: mode ",
                      "prompts.jsonl:5: the prompt is empty\n", "prompts.jsonl:6: temperature "});
  BOOST_TEST(!contains(ran.errors, "jsonl:1:"), ran.errors);
  BOOST_TEST(!contains(ran.errors, "jsonl:7:"), ran.errors);
  // What only the model can say.
  work.write_topology(work.good + "limits: {context: 4}\n");
  const finished longer = work.run_lines(R"({"prompt": "a"}
{"prompt": "a cat and a dog and a cat and a dog"}

{"prompt": "a", "logit_bias": {"2048": 1}}
{"prompt": "a dog and a cat and a dog and a cat"}
)");
  check_refused(longer, {"prompts.jsonl:2: the prompt has ", "prompts.jsonl:4: the logit bias of ",
                         "prompts.jsonl:5: the prompt has "});
  BOOST_TEST(!contains(longer.errors, "jsonl:1:"), longer.errors);
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_written_are_named) {
  const workplace work;
  check_refused(work.command({"run", "-p", "hello", "--trace", "/nowhere/trace.json"}),
                {"/nowhere/trace.json"});
  const std::string ids = work.folder.write("ids.txt", "1 2").string();
  check_refused(work.command({"logits", "--tokens", ids, "-o", "/nowhere/out.safetensors"}),
                {"/nowhere/out.safetensors"});
}

BOOST_AUTO_TEST_CASE(a_misspelt_tap_is_told) {
  const workplace work;
  const std::string ids = work.folder.write("ids.txt", "1 2").string();
  const finished ran =
      work.command({"logits", "--tokens", ids, "-o", (work.folder.path() / "o").string(), "--taps",
                    "L*.attn.out,L0.atn.out"});
  BOOST_TEST(ran.code == 0);
  BOOST_TEST(contains(ran.errors, "'L0.atn.out'"));
  BOOST_TEST(!contains(ran.errors, "L*.attn.out"));
}

BOOST_AUTO_TEST_CASE(an_address_that_is_not_of_this_host_is_named) {
  workplace work;
  const std::filesystem::path secret = work.folder.write("secret", std::string(40, 's'));
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  // 192.0.2.0/24 is reserved for documentation: no host has it.
  work.write_topology(
      replaced(replaced(work.good, "node0: {address: 127.0.0.1}", "node0: {address: 192.0.2.1}"),
               "tls: [tcp, self]", "tls: [tcp, self], devices: [lo]") +
      "security: {allow_remote: true, secret_file: secret}\n");
  check_refused(work.run_prompt(), {"control plane at 192.0.2.1"});
}

BOOST_AUTO_TEST_CASE(options_that_exclude_each_other_are_a_wrong_command_line) {
  const workplace work;
  BOOST_TEST(work.command({"run", "-p", "a", "--backend", "cpu"}).code == 2);
  BOOST_TEST(work.command({"run"}).code == 2);
  BOOST_TEST(
      run(CEDAR_PROGRAM, {"run", "-p", "a", "-m", work.model.string(), "--trace", "t"}).code == 2);
  BOOST_TEST(run(CEDAR_PROGRAM, {}).code == 2);
  BOOST_TEST(work.command({"run", "-p", "a", "--thinking"}).code == 2);
  BOOST_TEST(work.command({"run", "-p", "a", "--system", "b"}).code == 2);
  BOOST_TEST(work.command({"run", "-p", "a", "--chat", "--effort", "low"}).code == 2);
}

BOOST_AUTO_TEST_CASE(an_effort_out_of_range_is_told) {
  const workplace work;
  for (const char* effort : {"0", "101", "medium", "1.5"})
    check_refused(work.command({"run", "-p", "a", "--chat", "--thinking", "--effort", effort}),
                  {"--effort", "'" + std::string(effort) + "'", "low, high, max", "1 to 100"});
}

BOOST_AUTO_TEST_SUITE_END()
