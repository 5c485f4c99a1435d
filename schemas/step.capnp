# The life of a step: the images that begin in it, what is to be computed, what the head proposes, what
# the scheduler decides, what a drafter is asked for then, and what it answers.
# Counts are lengths of the packed lists in the payload.
@0xb8e3c5d2917f4a06;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("cedar::schemas");

struct StepTable {
  spans @0 :UInt32;
  tokens @1 :UInt32;
  lookback @2 :UInt32;
  taps @3 :UInt32;
  wantLogits @4 :Bool;
  sampling @5 :UInt32;
  prefixes @6 :UInt32;
  dropped @7 :UInt32;
}

struct Proposal {
  tokens @0 :UInt32;
  logitsBytes @1 :UInt64;
  # Tensor bytes: [tokens, vocabulary] f32, or 0.
}

struct Verdict {
  commitments @0 :UInt32;
}

struct DraftOrders {
  orders @0 :UInt32;
}

struct DraftAnswers {
  drafts @0 :UInt32;
}

struct Image {
  request @0 :UInt64;
  position @1 :UInt32;
  # First of its span.

  rows @2 :UInt32;
  # Positions of its span.

  patchRows @3 :UInt32;
  patchColumns @4 :UInt32;
  pixelBytes @5 :UInt64;
  # Tensor bytes: RGB [patchRows * patch, patchColumns * patch, 3] u8.
}
