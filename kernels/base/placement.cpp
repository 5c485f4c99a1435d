#include "kernels/base/placement.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

namespace cedar::kernels {

namespace {

/// As <numaif.h> has it, which comes with libnuma.
constexpr int mempolicy_preferred = 1;
constexpr std::uint32_t numa_nodes_max = 1024;

/// "0-3,8", as the kernel writes lists of processors.
std::vector<std::uint32_t> parse_processors(const std::string& text) {
  std::vector<std::uint32_t> out;
  std::size_t at = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    std::size_t read = 0;
    const unsigned long first = std::stoul(text.substr(at), &read);
    at += read;
    unsigned long last = first;
    if (at < text.size() && text[at] == '-') {
      last = std::stoul(text.substr(at + 1), &read);
      at += 1 + read;
    }
    for (unsigned long each = first; each <= last; ++each)
      out.push_back(static_cast<std::uint32_t>(each));
    if (at < text.size() && text[at] == ',') ++at;
  }
  return out;
}

}  // namespace

std::vector<std::uint32_t> usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<std::uint32_t> out;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (std::uint32_t each = 0; each < CPU_SETSIZE; ++each)
    if (CPU_ISSET(each, &set)) out.push_back(each);
  return out;
}

std::vector<std::uint32_t> processors_of_numa_node(std::uint32_t node) {
  std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::string text;
  std::getline(file, text);
  return parse_processors(text);
}

void place_this_thread(const thread_placement& placement) noexcept {
  if (!placement.processors.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t each : placement.processors)
      if (each < CPU_SETSIZE) CPU_SET(each, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  if (placement.numa_node && *placement.numa_node < numa_nodes_max) {
    constexpr std::size_t bits = 8 * sizeof(unsigned long);
    std::array<unsigned long, numa_nodes_max / bits> nodes{};
    nodes[*placement.numa_node / bits] |= 1UL << *placement.numa_node % bits;
    syscall(SYS_set_mempolicy, mempolicy_preferred, nodes.data(), numa_nodes_max);
  }
  if (placement.nice > 0) {
    const auto thread = static_cast<id_t>(gettid());
    const int now = getpriority(PRIO_PROCESS, thread);
    setpriority(PRIO_PROCESS, thread, std::max(now, static_cast<int>(placement.nice)));
  }
}

}  // namespace cedar::kernels
