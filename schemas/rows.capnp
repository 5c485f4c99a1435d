# Tensors of a step. Their bytes are the first bytes of the payload.
@0x9c44a1be05d27f83;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("cedar::schemas");

enum RowKind {
  embedded @0;
  activation @1;
  engramRows @2;
  headInput @3;
  sharedKv @4;
  indexKeys @5;
  selection @6;
  candidates @7;
  gatherRequest @8;
  gathered @9;
  draftTaps @10;
  imageRows @11;
  expertRows @12;
  expertOutputs @13;
  indexQuery @14;
  poolQuery @15;
  indexChoice @16;
  poolChoice @17;
  engramSlots @18;
}

struct RowBlock {
  kind @0 :RowKind;
  layer @1 :UInt32;
  spans @2 :UInt32;
  rows @3 :UInt32;
  rowBytes @4 :UInt32;
  # Tensor bytes = rows * rowBytes.

  reader @5 :UInt32;
  # First layer of the stage that asks: requests and replies only.

  slice @6 :UInt32;
  # Number of the slice of experts that is asked: expertRows and expertOutputs. Number of the shard:
  # queries and choices of an index, indexKeys for a shard, engramSlots. Else 0.
}

enum ElementType {
  f32 @0;
  bf16 @1;
  f8E4m3 @2;
  f8E8m0 @3;
  i8 @4;
  u8 @5;
  i16 @6;
  i32 @7;
  i64 @8;
}

struct Tap {
  type @0 :ElementType;
  extents @1 :UInt8;
  # How many; the extents themselves are in the payload.

  tensorBytes @2 :UInt64;
  # = product of the extents * bytes of an element.

  last @3 :Bool;
  # No tensor, but the end of its sender's taps of the step: one extent, 0, and an empty name.
}
