// What UCX does to a process before its main() begins, undone.
#pragma once

namespace cedar::transport::ucx {

/// UCX takes SIGHUP for itself when it is loaded (UCX_DEBUG_SIGNO), and keeps later handlers out,
/// so that a process outlives its terminal. Gives SIGHUP the action back that the process was
/// started with: to end, or to be ignored (nohup). For a program's beginning, before any thread.
void give_back_hangup();

}  // namespace cedar::transport::ucx
