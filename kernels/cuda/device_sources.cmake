# Device code, which two compilers compile: nvcc into the module, the host's into the emulated backend.
set(device_sources
  launch/attention.cu
  launch/elementwise.cu
  launch/engram.cu
  launch/entries.cu
  launch/full_attention.cu
  launch/index.cu
  launch/linear.cu
  launch/norm.cu
  launch/pooling.cu
  launch/rotary.cu
  launch/streams.cu)
