// Goal: the tree keeps its architecture, and the rules bite.
// Method: the rules run over this repository and must find nothing; then over small trees with one
// planted violation each, and must find exactly that one.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "tests/architecture/layers.hpp"
#include "tests/architecture/source_text.hpp"
#include "tests/architecture/tree_rules.hpp"

using namespace cedar::architecture;
namespace fs = std::filesystem;

namespace {

/// A tree in a temporary folder, gone at the end of the test.
class planted_tree {
 public:
  planted_tree() : root_(fs::temp_directory_path() / ("cedar-tree-" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
  }
  ~planted_tree() { fs::remove_all(root_); }
  planted_tree(const planted_tree&) = delete;
  planted_tree& operator=(const planted_tree&) = delete;

  planted_tree& file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return *this;
  }
  /// A source file of a component that has its README.md.
  planted_tree& source(const std::string& path, const std::string& text) {
    const auto component = component_of(path, layers());
    const auto folder = component.value_or(fs::path(path).parent_path().string());
    return file(path, text).file(folder + "/README.md", "why\n");
  }

  /// "rule path:line" of each violation.
  std::vector<std::string> violations() const {
    std::vector<std::string> out;
    for (const violation& each : check_tree(root_)) {
      out.push_back(each.rule + " " + each.path + ":" + std::to_string(each.line));
    }
    return out;
  }

 private:
  fs::path root_;
};

void expect(const planted_tree& tree, const std::vector<std::string>& wanted) {
  const auto found = tree.violations();
  BOOST_TEST(found == wanted, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(architecture)

BOOST_AUTO_TEST_CASE(this_tree_keeps_every_rule) {
  for (const violation& each : check_tree(CEDAR_SOURCE_DIR)) BOOST_ERROR(to_string(each));
}

BOOST_AUTO_TEST_CASE(the_table_has_no_cycle_and_names_only_its_own_entries) {
  BOOST_TEST(cyclic(layers()).empty());
  for (const auto& [component, direct] : layers()) {
    for (const std::string& next : direct) BOOST_TEST(layers().count(next) == 1U, next);
  }
  BOOST_TEST(cyclic({{"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}, {"d", {"a"}}}).size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_component_reaches_what_its_neighbours_reach) {
  const auto model = reachable("runtime/model", layers());
  BOOST_TEST(model.count("kernels/base") == 1U);
  BOOST_TEST(model.count("kernels/cpu") == 0U);
  BOOST_TEST(model.count("runtime/wire") == 0U);
  BOOST_TEST(component_of("runtime/transport/ucx/x.cpp", layers()).value() == "runtime/transport");
  BOOST_TEST(!component_of("elsewhere/x.cpp", layers()));
  BOOST_TEST(!component_of("x.cpp", layers()));
}

BOOST_AUTO_TEST_CASE(finds_an_include_against_the_direction) {
  planted_tree tree;
  tree.source("kernels/ops/a.cpp", "#include \"runtime/base/ids.hpp\"\n")
      .source("runtime/model/a.cpp",
              "\n#include \"kernels/cpu/x.hpp\"\n#include \"kernels/base/x.hpp\"\n")
      .source("topology/plan/a.cpp", "#include \"topology/document/document.hpp\"\n")
      .source("runtime/flow/a.cpp", "// #include \"actors/x.hpp\"\n#include \"actors/y.hpp\"\n");
  expect(tree, {"directions kernels/ops/a.cpp:1", "directions runtime/flow/a.cpp:2",
                "directions runtime/model/a.cpp:2"});
}

BOOST_AUTO_TEST_CASE(finds_includes_that_are_no_paths_from_the_root_and_unknown_folders) {
  planted_tree tree;
  tree.source("runtime/base/a.cpp", "#include \"ids.hpp\"\n#include \"kernels/base/x.hpp\"\n")
      .source("runtime/novelty/a.cpp", "\n");
  expect(tree, {"directions runtime/base/a.cpp:1", "directions runtime/novelty/a.cpp:0"});
}

BOOST_AUTO_TEST_CASE(finds_internal_headers_used_from_outside) {
  planted_tree tree;
  const std::string use = "#include \"topology/document/internal/x.hpp\"\n";
  tree.source("topology/document/internal/x.hpp", "#pragma once\n")
      .source("topology/document/internal/y.hpp", "#pragma once\n" + use)
      .source("topology/document/a.cpp", use)
      .source("topology/document/a.hpp", "#pragma once\n" + use)
      .source("topology/plan/a.cpp", use)
      .file("tests/unit/topology/a.cpp", use);
  expect(tree, {"internal topology/document/a.hpp:2", "internal topology/plan/a.cpp:1"});
}

BOOST_AUTO_TEST_CASE(finds_foreign_libraries_outside_their_folders) {
  for (const auto& [include, home] : std::vector<std::pair<std::string, std::string>>{
           {"<caf/all.hpp>", "actors/a.cpp"},
           {"<caf/all.hpp>", "topology/launch/a.cpp"},
           {"<capnp/message.h>", "runtime/wire/a.cpp"},
           {"<kj/array.h>", "runtime/wire/a.cpp"},
           {"\"schemas/step.capnp.h\"", "runtime/wire/a.cpp"},
           {"<ucp/api/ucp.h>", "runtime/transport/ucx/a.cpp"},
           {"<yaml-cpp/yaml.h>", "topology/document/a.cpp"},
           {"<tbb/task_arena.h>", "kernels/cpu/a.cpp"},
           {"<oneapi/tbb/task_arena.h>", "kernels/cpu/a.cpp"},
           {"<dnnl.hpp>", "tools/cedar/onednn/a.cpp"},
           {"<iostream>", "tools/cedar/a.cpp"}}) {
    const std::string text = "#include " + include + "\n";
    planted_tree tree;
    tree.source(home, text).file("tests/unit/a.cpp", text).source("runtime/session/a.cpp", text);
    const auto found = tree.violations();
    const auto planted = std::string("confinement runtime/session/a.cpp:1");
    BOOST_TEST(std::count(found.begin(), found.end(), planted) == 1, include);
    BOOST_TEST(std::all_of(found.begin(), found.end(), [](const std::string& each) {
      return each.find("runtime/session/a.cpp") != std::string::npos;
    }));
  }
}

BOOST_AUTO_TEST_CASE(finds_process_wide_calls_outside_tools) {
  planted_tree tree;
  tree.source("runtime/base/a.cpp",
              "// getenv in a comment\nconst char* text = \"exit(1)\";\nint exits = 1;\n"
              "void f() { std::exit(exits); }\nauto* home = getenv(\"HOME\");\n")
      .source("tools/cedar/a.cpp", "auto* home = getenv(\"HOME\");\n")
      .file("tests/unit/a.cpp", "auto* home = getenv(\"HOME\");\n");
  expect(tree, {"confinement runtime/base/a.cpp:4", "confinement runtime/base/a.cpp:5"});
}

BOOST_AUTO_TEST_CASE(finds_headers_without_pragma_once_in_front) {
  planted_tree tree;
  tree.source("runtime/base/good.hpp", "// What.\n/* More.\n */\n\n#pragma once\n#include <map>\n")
      .source("runtime/base/late.hpp", "// What.\n#include <map>\n#pragma once\n")
      .source("kernels/cpu/internal/twice-inl.hpp", "#include <map>\n")
      .file("tests/support/guard.hpp", "#ifndef GUARD\n#endif\n");
  expect(tree, {"pragma runtime/base/late.hpp:2", "pragma tests/support/guard.hpp:1"});
}

BOOST_AUTO_TEST_CASE(finds_files_that_are_too_long) {
  std::string lines;
  for (int i = 0; i < 700; ++i) lines += "\n";
  planted_tree tree;
  tree.source("runtime/base/a.cpp", lines)
      .source("runtime/base/b.cpp", lines + "\n")
      .file("tools/script", "#!/bin/bash\n" + lines)
      .file("tools/data.txt", lines + "\n")
      .file("tests/data/generated.cpp", lines + "\n");
  expect(tree, {"length runtime/base/b.cpp:0", "length tools/script:0"});
}

BOOST_AUTO_TEST_CASE(finds_markers_in_comments) {
  const std::string marker = std::string("FIX") + "ME";
  planted_tree tree;
  tree.source("runtime/base/a.cpp", "int a;  // " + marker + ": later\n/*\n " + marker +
                                        "\n*/\nint " + marker + ";\n// PRE" + marker + "\n");
  expect(tree, {"markers runtime/base/a.cpp:1", "markers runtime/base/a.cpp:3"});
}

BOOST_AUTO_TEST_CASE(finds_components_without_a_readme) {
  planted_tree tree;
  tree.file("runtime/base/a.cpp", "\n")
      .file("topology/plan/internal/a.cpp", "\n")
      .file("schemas/a.capnp", "\n")
      .file("tests/unit/a.cpp", "\n")
      .file("tools/cmake/a.cmake", "\n");
  expect(tree, {"readme runtime/base:0", "readme schemas:0", "readme topology/plan:0"});
}

BOOST_AUTO_TEST_CASE(reads_sources_as_the_compiler_does) {
  const auto source = parse_source(
      "#include <a>  // why\n#  include <b>\n /* #include <c> */ #include \"d\"\n"
      "auto s = \"// no comment \\\" exit\"; int n = 1'000; char c = '\\'';  // exit\n"
      "auto r = R\"x(exit )\" )x\"; exit\n");
  BOOST_REQUIRE(source.includes.size() == 2U);
  BOOST_TEST(source.includes[0].target == "a");
  BOOST_TEST(!source.includes[0].quoted);
  BOOST_TEST(source.includes[1].target == "d");
  BOOST_TEST(source.includes[1].line == 3U);
  BOOST_TEST(!contains_word(source.code[3], "exit"));
  BOOST_TEST(contains_word(source.code[3], "n"));
  BOOST_TEST(contains_word(source.comments[3], "exit"));
  BOOST_TEST(contains_word(source.code[4], "exit"));
  BOOST_TEST(source.code[4].find("exit") == source.code[4].size() - 4);
}

BOOST_AUTO_TEST_SUITE_END()
