# The header of every frame on a data edge. One segment, sent as the active message's header, followed
# there by eight bytes of checksum; the payload (tensor bytes, then packed lists) travels beside it.
# schemas/README.md has the packed lists, who sends what to whom, and the rules of evolution.
@0xd5a3c1f0a7e64b19;

using Cxx = import "/capnp/c++.capnp";
using import "rows.capnp".RowBlock;
using import "rows.capnp".Tap;
using import "step.capnp".DraftAnswers;
using import "step.capnp".DraftOrders;
using import "step.capnp".Image;
using import "step.capnp".Proposal;
using import "step.capnp".StepTable;
using import "step.capnp".Verdict;
$Cxx.namespace("cedar::schemas");

struct Header {
  version @0 :UInt16;
  # Of this schema and of the packed lists. A reader refuses versions it does not know.

  edge @1 :UInt32;
  # Index of the edge in the plan.

  epoch @2 :UInt32;
  # Pipeline epoch of the message.

  sequence @3 :UInt64;
  # From 0, per edge and epoch; credits have a count of their own.

  step @4 :UInt64;
  # 0 for credits.

  fingerprint @5 :UInt64;
  # Of the model.

  body :union {
    stepTable @6 :StepTable;
    rowBlock @7 :RowBlock;
    proposal @8 :Proposal;
    verdict @9 :Verdict;
    tap @10 :Tap;
    credit @11 :Credit;
    draftOrders @12 :DraftOrders;
    draftAnswers @13 :DraftAnswers;
    image @14 :Image;
  }
}

struct Credit {
  messages @0 :UInt32;
  bytes @1 :UInt64;
}
