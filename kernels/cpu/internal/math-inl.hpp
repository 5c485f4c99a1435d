// canonical_math.hpp on vectors: the same operations in the same order, hence the same bits.
#if defined(CEDAR_KERNELS_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_MATH_INL
#undef CEDAR_KERNELS_CPU_MATH_INL
#else
#define CEDAR_KERNELS_CPU_MATH_INL
#endif

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

HWY_INLINE f32_vector exp(f32_vector x) {
  using namespace canonical::constants;
  const i32_tag integers;
  // The bound comes first: a NaN in the second operand passes both.
  const auto bounded = hn::Max(set(exp_smallest), hn::Min(set(exp_largest), x));
  const auto shifted = hn::MulAdd(bounded, set(log2_e), set(rounder));
  const auto n = hn::Sub(shifted, set(rounder));
  const auto exponent =
      hn::Sub(hn::BitCast(integers, shifted), hn::BitCast(integers, set(rounder)));
  const auto reduced = hn::NegMulAdd(n, set(ln2_high), bounded);
  const auto r = hn::NegMulAdd(n, set(ln2_low), reduced);
  const auto r_error = hn::NegMulAdd(n, set(ln2_low), hn::Sub(reduced, r));
  auto q = hn::MulAdd(set(exp_7), r, set(exp_6));
  q = hn::MulAdd(q, r, set(exp_5));
  q = hn::MulAdd(q, r, set(exp_4));
  q = hn::MulAdd(q, r, set(exp_3));
  q = hn::MulAdd(q, r, set(exp_2));
  const auto power = hn::Add(set(1.0F), hn::Add(r, hn::MulAdd(hn::Mul(r, r), q, r_error)));
  const auto bias = hn::Set(integers, 127);
  const auto half = hn::ShiftRight<1>(exponent);
  const auto low = hn::ShiftLeft<23>(hn::Add(half, bias));
  const auto high = hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias));
  return hn::Mul(hn::Mul(power, hn::BitCast(f32_tag{}, low)), hn::BitCast(f32_tag{}, high));
}

HWY_INLINE f32_vector sigmoid(f32_vector x) {
  const auto e = exp(hn::Neg(hn::Abs(x)));
  const auto above = hn::IfThenElse(hn::Lt(x, zero()), e, set(1.0F));
  return hn::Div(above, hn::Add(set(1.0F), e));
}

/// log1p of half a vector, in binary64.
template <class Tag>
HWY_INLINE hn::Vec<Tag> log1p_wide(Tag tag, hn::Vec<Tag> x) {
  using namespace canonical::constants;
  const hn::RebindToUnsigned<Tag> integers;
  const auto one = hn::Set(tag, 1.0);
  const auto direct = hn::Lt(x, hn::Set(tag, log1p_direct));
  const auto bits =
      hn::Add(hn::BitCast(integers, hn::Add(one, x)), hn::Set(integers, one_bits - sqrt_half_bits));
  const auto number = hn::Or(hn::ShiftRight<52>(bits), hn::Set(integers, integer_bits));
  const auto exponent = hn::Sub(hn::BitCast(tag, number), hn::Set(tag, integer_offset + 1023.0));
  const auto mantissa = hn::BitCast(tag, hn::Add(hn::And(bits, hn::Set(integers, mantissa_bits)),
                                                 hn::Set(integers, sqrt_half_bits)));
  const auto f = hn::IfThenElse(direct, x, hn::Sub(mantissa, one));
  const auto k = hn::IfThenZeroElse(direct, exponent);
  const auto s = hn::Div(f, hn::Add(hn::Set(tag, 2.0), f));
  const auto z = hn::Mul(s, s);
  auto series = hn::MulAdd(hn::Set(tag, log_5), z, hn::Set(tag, log_4));
  series = hn::MulAdd(series, z, hn::Set(tag, log_3));
  series = hn::MulAdd(series, z, hn::Set(tag, log_2));
  series = hn::MulAdd(series, z, hn::Set(tag, log_1));
  const auto log_mantissa = hn::MulAdd(s, hn::MulSub(z, series, f), f);
  return hn::MulAdd(k, hn::Set(tag, ln2), hn::MulAdd(hn::Zero(tag), x, log_mantissa));
}

/// For x >= 0.
HWY_INLINE f32_vector log1p(f32_vector x) {
  const hn::Half<f32_tag> half;
  const hn::Rebind<double, hn::Half<f32_tag>> wide;
  const auto low = log1p_wide(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)));
  const auto high = log1p_wide(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)));
  return hn::Combine(f32_tag{}, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

HWY_INLINE f32_vector softplus(f32_vector x) {
  const auto linear = hn::Gt(x, set(canonical::constants::softplus_linear));
  return hn::IfThenElse(linear, x, log1p(exp(x)));
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
