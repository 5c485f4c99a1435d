#include "runtime/transport/ucx/hangup.hpp"

#include <signal.h>
#include <ucs/debug/debug.h>

namespace cedar::transport::ucx {

void give_back_hangup() {
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  // Not UCX's if the environment told it to take another signal, or none.
  if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) ucs_debug_disable_signal(SIGHUP);
}

}  // namespace cedar::transport::ucx
