#include "tests/architecture/tree_rules.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/architecture/layers.hpp"
#include "tests/architecture/source_text.hpp"

namespace cedar::architecture {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t lines_max = 700;

struct confined {
  std::string what;  ///< beginning of an include, or a word of code
  std::vector<std::string> folders;  ///< where it may stand; tests may use anything
};

// Generated Cap'n Proto headers count as Cap'n Proto.
const std::vector<confined> confined_includes = {
    {"caf/", {"actors/", "topology/launch/", "tools/cedar/"}},
    {"capnp/", {"runtime/wire/"}},
    {"kj/", {"runtime/wire/"}},
    {"ucp/", {"runtime/transport/ucx/"}},
    {"ucs/", {"runtime/transport/ucx/"}},
    {"uct/", {"runtime/transport/ucx/"}},
    {"yaml-cpp/", {"topology/document/"}},
    {"tbb/", {"kernels/cpu/"}},
    {"oneapi/", {"kernels/cpu/"}},
    {"dnnl", {"tools/cedar/onednn/"}},
    {"cuda", {"kernels/cuda/"}},
    {"nccl", {"kernels/cuda/"}},
    {"boost/", {"runtime/http/", "kernels/cuda/emulation/"}},
    {"prometheus/", {"runtime/http/"}},
    {"png.h", {"runtime/image/"}},
    {"turbojpeg.h", {"runtime/image/"}},
    {"webp/", {"runtime/image/"}},
    {"iostream", {"tools/"}},
};

const std::vector<confined> confined_words = {
    {"getenv", {"tools/"}},     {"secure_getenv", {"tools/"}}, {"setenv", {"tools/"}},
    {"exit", {"tools/"}},       {"_exit", {"tools/"}},         {"_Exit", {"tools/"}},
    {"quick_exit", {"tools/"}},
};

// Put together so that this file keeps the rule itself.
const std::vector<std::string> markers = {
    "FIX"
    "ME",
    "XX"
    "X",
    "HA"
    "CK"};

bool has_extension(const fs::path& path, const std::set<std::string>& extensions) {
  return extensions.count(path.extension().string()) != 0;
}

bool is_header(const fs::path& path) {
  return has_extension(path, {".hpp", ".cuh"});
}
bool is_cxx(const fs::path& path) {
  return is_header(path) || has_extension(path, {".cpp", ".cu"});
}
bool is_source(const fs::path& path) {
  return is_cxx(path) || path.extension() == ".capnp";
}

bool is_script(const std::string& text) {
  return text.compare(0, 2, "#!") == 0;
}

bool allowed_in(const std::string& path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return path.starts_with(folder); });
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class checker {
 public:
  explicit checker(fs::path root) : root_(std::move(root)) {}

  std::vector<violation> run() {
    for (const char* folder :
         {"kernels", "runtime", "schemas", "actors", "topology", "tools", "tests"}) {
      if (fs::is_directory(root_ / folder)) visit(root_ / folder);
    }
    for (const std::string& folder : source_folders_) {
      if (!fs::exists(root_ / folder / "README.md")) {
        report("readme", folder, 0,
               "a folder with sources needs a README.md: what lives here and why");
      }
    }
    std::sort(out_.begin(), out_.end(), [](const violation& a, const violation& b) {
      return std::tie(a.path, a.line) < std::tie(b.path, b.line);
    });
    return std::move(out_);
  }

 private:
  void report(std::string rule, std::string path, std::size_t line, std::string text) {
    out_.push_back({std::move(rule), std::move(path), line, std::move(text)});
  }

  void visit(const fs::path& folder) {
    for (auto entry = fs::recursive_directory_iterator(folder);
         entry != fs::recursive_directory_iterator(); ++entry) {
      const std::string path = entry->path().lexically_relative(root_).generic_string();
      if (entry->is_directory()) {
        if (path == "tests/data" || entry->path().filename() == "build") {
          entry.disable_recursion_pending();
        }
        continue;
      }
      const bool named_script = !entry->path().has_extension();
      if (!is_source(entry->path()) && !named_script) continue;
      const std::string text = read(entry->path());
      if (named_script && !is_script(text)) continue;
      check_file(entry->path(), path, text);
    }
  }

  void check_file(const fs::path& file, const std::string& path, const std::string& text) {
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    if (lines > lines_max) {
      report("length", path, 0,
             std::to_string(lines) + " lines; " + std::to_string(lines_max) + " is the most");
    }
    if (is_source(file)) note_folder(path);
    if (!is_cxx(file)) return;
    const source_text source = parse_source(text);
    check_markers(path, source);
    if (is_header(file) && !is_per_target(path)) check_pragma(path, source);
    if (path.starts_with("tests/")) return;  // tests may include and call anything
    check_directions(path, source);
    check_internal(path, source);
    check_confinement(path, source);
  }

  /// The README.md of a component explains its subfolders too; tests are explained by their first
  /// lines.
  void note_folder(const std::string& path) {
    if (path.starts_with("tests/")) return;
    const auto component = component_of(path, layers());
    source_folders_.insert(component.value_or(fs::path(path).parent_path().generic_string()));
  }

  void check_markers(const std::string& path, const source_text& source) {
    for (std::size_t i = 0; i < source.comments.size(); ++i) {
      for (const std::string& marker : markers) {
        if (contains_word(source.comments[i], marker)) {
          report("markers", path, i + 1, "'" + marker + "': do it, or say in prose what is so");
        }
      }
    }
  }

  /// Highway compiles a file named so once for each instruction set, within one source file.
  static bool is_per_target(const std::string& path) { return path.ends_with("-inl.hpp"); }

  void check_pragma(const std::string& path, const source_text& source) {
    for (std::size_t i = 0; i < source.code.size(); ++i) {
      const std::size_t begin = source.code[i].find_first_not_of(" \t");
      if (begin == std::string::npos) continue;
      if (!source.code[i].substr(begin).starts_with("#pragma once")) {
        report("pragma", path, i + 1, "a header begins with #pragma once");
      }
      return;
    }
  }

  void check_directions(const std::string& path, const source_text& source) {
    const auto from = component_of(path, layers());
    if (!from) {
      report("directions", path, 0,
             "this folder is not in the table of tests/architecture/layers.cpp");
      return;
    }
    const std::set<std::string> allowed = reachable(*from, layers());
    for (const include_line& include : source.includes) {
      if (!include.quoted) continue;
      const auto to = component_of(include.target, layers());
      if (to && allowed.count(*to) == 0) {
        report("directions", path, include.line, *from + " must not include " + *to);
      } else if (!to && !is_generated(include.target)) {
        report("directions", path, include.line,
               "'" + include.target + "' is no path from the root to a component");
      }
    }
  }

  static bool is_generated(const std::string& target) {
    return fs::path(target).extension() == ".h" && fs::path(target).stem().extension() == ".capnp";
  }

  void check_internal(const std::string& path, const source_text& source) {
    for (const include_line& include : source.includes) {
      const std::size_t at = include.target.find("internal/");
      if (at == std::string::npos || !include.quoted) continue;
      const std::string owner = include.target.substr(0, at);
      const bool own = path.starts_with(owner);
      const bool is_public_header = is_header(path) && !path.starts_with(owner + "internal/");
      if (!own || is_public_header) {
        report("internal", path, include.line,
               "'" + include.target + "' is for the .cpp files of " + owner + " only");
      }
    }
  }

  void check_confinement(const std::string& path, const source_text& source) {
    for (const include_line& include : source.includes) {
      const std::string target = is_generated(include.target) ? "capnp/" : include.target;
      for (const confined& rule : confined_includes) {
        if (target.starts_with(rule.what) && !allowed_in(path, rule.folders)) {
          report("confinement", path, include.line,
                 "<" + include.target + "> belongs in " + rule.folders.front());
        }
      }
    }
    for (std::size_t i = 0; i < source.code.size(); ++i) {
      for (const confined& rule : confined_words) {
        if (contains_word(source.code[i], rule.what) && !allowed_in(path, rule.folders)) {
          report("confinement", path, i + 1, rule.what + " belongs in " + rule.folders.front());
        }
      }
    }
  }

  fs::path root_;
  std::set<std::string> source_folders_;
  std::vector<violation> out_;
};

}  // namespace

std::string to_string(const violation& what) {
  return what.path + (what.line == 0 ? "" : ":" + std::to_string(what.line)) + ": [" + what.rule +
         "] " + what.text;
}

std::vector<violation> check_tree(const fs::path& root) {
  return checker(root).run();
}

}  // namespace cedar::architecture
